"""What the distributed operators' type rules share: ranks of coordinates, element types, combining stores."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from ..dtypes import DataType
from ..ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from ..ir.expr import Expr, is_integer
from .registry import Bound, attr_kind
from .rules import shaped, value

ATOMIC_DTYPES: Final = (
    DataType.FP32, DataType.BF16, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8,
)  # fmt: skip
"""Elements a store can add in global memory; a target may support fewer."""
_REDUCED_DTYPES: Final = (DataType.FP16, DataType.FP32)


def _enum_kind(name: str, enum: type[Enum], text: str) -> None:
    @attr_kind(name)
    def convert(v: Any) -> Any:
        if isinstance(v, enum):
            return v
        if type(v) is int and v in {m.value for m in enum}:
            return enum(v)
        raise ValueError(f"{text}, got {v!r}")


_enum_kind("RemoteAtomic", AtomicType, "atomic must be AtomicType.None_ or AtomicType.Add")
_enum_kind("NotifyOp", NotifyOp, "op must be NotifyOp.AtomicAdd or NotifyOp.Set")
_enum_kind("WaitCmp", WaitCmp, "cmp must be WaitCmp.Eq or WaitCmp.Ge")
_enum_kind("ReduceOp", ReduceOp, "op must be ReduceOp.Sum, Max, Min, or Prod")


@attr_kind("CoreCount")
def core_count(v: Any) -> int:
    """A positive number of cores known at compile time."""
    if type(v) is not int:
        raise TypeError(f"core_num must be a compile-time int, got {v!r}")
    if v < 1:
        raise ValueError(f"core_num must be positive, got {v}")
    return v


def check_peer(b: Bound) -> None:
    """Raise OpError unless ``peer`` is an integer."""
    if not is_integer(b["peer"]):
        raise b.fail(f"requires peer to be an integer rank, got {b.type('peer')}", "pl.cast(peer, pl.INT32)")


def check_coordinates(b: Bound, name: str, of: str) -> None:
    """Raise OpError unless ``name`` has one integer for each dimension of argument ``of``."""
    rank = len(b.type(of).shape)
    found = b.dims(name)
    if len(found) != rank:
        raise b.fail(f"{name} rank ({len(found)}) must match the rank ({rank}) of {of} {shaped(b.type(of))}")
    for i, item in enumerate(found):
        if not is_integer(item):
            raise b.fail(f"{name.removesuffix('s')} {i} must be an integer or index scalar, got {item.type}")


def check_not_negative(b: Bound, name: str) -> None:
    """Raise OpError for an entry of ``name`` that is provably negative."""
    for i, item in enumerate(b.dims(name)):
        known = value(item)
        if known is not None and known < 0:
            raise b.fail(f"{name} dimension {i} must be non-negative, got {known}")


def check_signal(b: Bound, name: str = "signal") -> None:
    """Raise OpError unless ``name`` holds INT32 counters."""
    t = b.type(name)
    if t.dtype is not DataType.INT32:
        raise b.fail(
            f"{name} must have INT32 element type, got {shaped(t)}", "pld.window(buffer, shape, dtype=pl.INT32)"
        )


def check_reduced(b: Bound, name: str) -> None:
    """Raise OpError unless ``name`` has elements the reductions are defined on."""
    dtype = b.type(name).dtype
    if dtype not in _REDUCED_DTYPES:
        raise b.fail(f"target dtype must be FP16 or FP32, got {dtype}", "convert the data before it enters the window")


def check_same_elements(b: Bound, first: str, second: str) -> None:
    """Raise OpError unless two arguments have one element dtype."""
    x, y = b.type(first), b.type(second)
    if x.dtype is not y.dtype:
        raise b.fail(
            f"{first} and {second} must have the same element type (dtype), got {shaped(x)} and {shaped(y)}",
            f"convert one: pl.cast({second}, pl.{x.dtype.name})",
        )


def may_equal(a: Expr, b: Expr) -> bool:
    """Whether two dimensions are not provably different."""
    x, y = value(a), value(b)
    return x is None or y is None or x == y
