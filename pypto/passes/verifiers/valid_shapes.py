"""Whether a type's valid region has the rank of its shape and lies inside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...ir.expr import ConstInt, Expr, Sub, is_integer
from ...ir.types import TensorType, TileType, TupleType, Type


class Finding(NamedTuple):
    """What is wrong with a type; ``where`` leads to the part of it that is wrong."""

    is_rank: bool
    where: str
    message: str


def has_view(type: Type) -> bool:
    """Whether ``type`` states a valid region, itself or in an element."""
    if isinstance(type, TupleType):
        return any(map(has_view, type.types))
    view = type.tensor_view if isinstance(type, TensorType) else type.tile_view if isinstance(type, TileType) else None
    return view is not None and bool(view.valid_shape)


def findings(type: Type, where: str) -> Iterator[Finding]:
    """What is certainly wrong with the valid regions in ``type``; an extent known at run time only is trusted."""
    if isinstance(type, TupleType):
        for i, element in enumerate(type.types):
            yield from findings(element, f"{where} TupleType element[{i}]")
    elif has_view(type) and isinstance(type, (TensorType, TileType)):
        yield from _of_shaped(type, where)


def _of_shaped(type: TensorType | TileType, where: str) -> Iterator[Finding]:
    name = type.type_name()
    valid, shape = type.valid_shape, type.shape
    if len(valid) != len(shape):
        text = f"{name} valid_shape rank mismatch: got rank {len(valid)}, physical shape has rank {len(shape)}"
        yield Finding(True, where, text)
        return
    for i, (extent, size) in enumerate(zip(valid, shape)):
        fault = _fault(extent, size)
        if fault is not None:
            yield Finding(False, where, f"{name} valid_shape dimension {i} {fault}")


def _fault(extent: Expr, size: Expr) -> str | None:
    if isinstance(extent, ConstInt) and extent.value < 0:
        return f"has negative extent {extent.value}"
    if isinstance(extent, ConstInt) and isinstance(size, ConstInt):
        inside = extent.value <= size.value
        return None if inside else f"extent {extent.value} exceeds physical shape extent {size.value}"
    if extent is size or not is_integer(extent) or not is_integer(size):
        return None
    return _symbolic_fault(extent, size)


def _symbolic_fault(extent: Expr, size: Expr) -> str | None:
    from ...arith.analyzer import Analyzer

    analyzer = Analyzer()
    if analyzer.const_int_bound(analyzer.simplify(extent)).max_value < 0:
        return f"has provably negative extent {extent}"
    excess = analyzer.simplify(Sub(extent, size, extent.dtype))
    if analyzer.const_int_bound(excess).min_value > 0:
        return f"extent {extent} exceeds physical shape extent {size}"
    return None
