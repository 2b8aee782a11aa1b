"""FP4 tensors: the runtime counts pairs of elements along the last axis, the language elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...dtypes import DataType
from ...ir.expr import Call, ConstInt, Expr
from ...ir.types import TensorType
from ..context import Op
from .cpp import cpp

if TYPE_CHECKING:
    from .builder import OrchestrationBuilder


def _is_packed(type: TensorType) -> bool:
    return type.dtype is DataType.FP4


def _assertion(condition: str) -> Op:
    return Op("evaluate", value=cpp("call", "always_assert", [condition]))


def extents(
    builder: OrchestrationBuilder, type: TensorType, dims: Sequence[Expr]
) -> tuple[list[Op], list[str]]:
    """The extents of a shape as the runtime counts them, and what has to come before them."""
    words = [builder.scalars.word(d) for d in dims]
    if not _is_packed(type):
        return [], words
    last = dims[-1]
    if isinstance(last, ConstInt):
        return [], [*words[:-1], str(last.value // 2)]
    name = builder.names.take("fp4_logical_dim")
    value = cpp("cast", "int64_t", builder.scalars.text(last))
    ops = [
        Op("declare", type="const int64_t", name=name, value=value),
        _assertion(cpp("positive_even", name)),
    ]
    return ops, [*words[:-1], cpp("cast", "uint32_t", cpp("compare", name, "/", "2"))]


def offsets(
    builder: OrchestrationBuilder, type: TensorType, begins: Sequence[Expr], name: str, call: Call
) -> list[str]:
    """Where a window begins, as the runtime counts."""
    words = [builder.scalars.word(b) for b in begins]
    if not _is_packed(type):
        return words
    last = begins[-1]
    if isinstance(last, ConstInt):
        if last.value % 2:
            raise builder.refused(
                f"packed FP4 last-axis offset must be byte-aligned: {last.value} is odd", call, "begin at an even one"
            )
        return [*words[:-1], str(last.value // 2)]
    offset = builder.names.take(f"{name}_logical_fp4_offset")
    builder.emit(Op("declare", type="uint32_t", name=offset, value=words[-1]))
    builder.emit(_assertion(cpp("even", offset)))
    return [*words[:-1], cpp("binary", "/", offset, "2")]


def argument_extent(builder: OrchestrationBuilder, name: str, type: TensorType, index: int, axis: int) -> list[Op]:
    """Statements that declare ``name``, an argument's extent in elements."""
    value = cpp("extent_of_argument", index, axis)
    if not _is_packed(type) or axis != len(type.shape) - 1:
        return [Op("declare", type="int64_t", name=name, value=value)]
    pairs = builder.names.take("fp4_carrier_dim")
    return [
        Op("declare", type="const int64_t", name=pairs, value=value),
        _assertion(cpp("compare", pairs, ">", "0")),
        Op("declare", type="int64_t", name=name, value=cpp("binary", "*", pairs, "2")),
    ]


def check_axes(builder: OrchestrationBuilder, type: TensorType, axes: Sequence[int], call: Call) -> None:
    """Raise the user's error for an exchange of axes that takes elements out of their pairs."""
    if _is_packed(type) and axes[0] != axes[1] and len(type.shape) - 1 in axes:
        raise builder.refused(
            "an orchestration cannot move the packed FP4 last axis", call, "exchange the other axes only"
        )


def check_elements(builder: OrchestrationBuilder, type: TensorType, call: Call) -> None:
    """Raise the user's error for access to a single element of a pair."""
    if _is_packed(type):
        raise builder.refused(f"{call.op.name} of an FP4 tensor: its elements share bytes", call, "cast it in a kernel")


def check_axis(builder: OrchestrationBuilder, type: TensorType, axis: int, call: Call) -> None:
    """Raise the user's error for an extent that only the runtime knows, in pairs."""
    if _is_packed(type) and axis == len(type.shape) - 1:
        raise builder.refused(f"{call.op.name} of the packed axis of an FP4 tensor made here", call)
