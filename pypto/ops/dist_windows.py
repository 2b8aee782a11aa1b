"""Communication windows: their allocation on the host, and the tensors that are their slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import ConstInt, Expr, is_integer
from ..ir.scalar import binary, cast_scalar
from ..ir.types import DistributedTensorType, PtrType, Type
from .registry import Bound, OpTypeError, declare
from .rules import dims_text, value


def _alloc(b: Bound) -> Type:
    if not b["name"]:
        raise b.fail("requires a non-empty 'name'", "assign the buffer to a name: buf = pld.alloc_window_buffer(..)")
    size = value(b["size"])
    if size is not None and size <= 0:
        raise b.fail(f"requires a positive size in bytes, got {size}")
    return PtrType()


declare(
    "pld.tensor.alloc_window_buffer",
    "in size: index, pos name: str!",
    _alloc,
    "Allocate a communication window of ``size`` bytes on every rank, on the host.\n\n"
    "``alloc_window_buffer(shape, dtype=..)`` computes the size. ``name`` is the name the buffer is assigned to.",
    pure=False,
)


def _window(b: Bound) -> Type:
    shape = b.dims("shape")
    if not shape:
        raise b.fail("requires a non-empty shape tuple")
    for i, dim in enumerate(shape):
        known = value(dim)
        if not is_integer(dim) or (known is not None and known <= 0):
            raise b.fail(f"shape dimension {i} must be a positive integer, got {dims_text(shape)}")
    return DistributedTensorType(shape, b["dtype"])


declare(
    "pld.tensor.window",
    "in buf: ptr, in shape: dims, key dtype: DataType!",
    _window,
    "The window at ``buf`` as a tensor of ``shape``: each rank's slice, which operators address by rank.",
)


def choose_alloc(level: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A window of a size in bytes, or of a shape and ``dtype``. Raises OpTypeError for anything between."""
    what = f"{level}.alloc_window_buffer"
    names = ("size", "name", "dtype")
    if len(args) > 2:
        raise OpTypeError(f"{what} takes at most 2 positional arguments, got {len(args)}")
    values: dict[str, Any] = dict(zip(names, args))
    for name, given in kwargs.items():
        known = "size" if name == "shape" else name
        if known not in names or known in values:
            problem = "multiple values for" if known in names else "an unexpected keyword argument"
            raise OpTypeError(f"{what} got {problem} '{name}': it takes a size, or a shape and dtype")
        values[known] = given
    size, dtype = values.get("size"), values.pop("dtype", None)
    if isinstance(size, (list, tuple, E.MakeTuple)):
        values["size"] = _bytes_of(what, size.elements if isinstance(size, E.MakeTuple) else size, dtype)
    elif dtype is not None:
        raise OpTypeError(f"{what}: dtype= is only valid when the first argument is a shape\n  hint: drop dtype=")
    return "alloc_window_buffer", values


def _bytes_of(what: str, shape: Sequence[Any], dtype: Any) -> Expr:
    """The size of a tensor: one INT64 constant while all dimensions are, else a product."""
    if not isinstance(dtype, DataType):
        raise OpTypeError(f"{what}: a shape requires dtype=\n  hint: alloc_window_buffer([64], dtype=pl.FP32)")
    if not shape:
        raise OpTypeError(f"{what}: shape must be non-empty")
    if dtype.bits % 8:
        raise OpTypeError(f"{what}: {dtype} elements have no whole number of bytes\n  hint: give the size in bytes")
    known, runtime = dtype.bits // 8, []
    for dim in shape:
        size = dim.value if isinstance(dim, ConstInt) else dim
        if type(size) is int:
            if size <= 0:
                raise OpTypeError(f"{what}: all dimensions must be positive, got {size}")
            known *= size
        elif isinstance(dim, Expr) and is_integer(dim):
            runtime.append(dim)
        else:
            raise OpTypeError(f"{what}: dimensions must be integers, got {dim!r:.40}")
    total: Expr = ConstInt(known, DataType.INT64)
    for dim in runtime:
        total = binary(E.Mul, cast_scalar(dim, DataType.INT64), total)
    return total
