"""Edges along which one SSA value is the bytes of another."""

from __future__ import annotations

from ...ir.expr import Call, Expr
from ...ir.types import TileType, Type, static_dims
from ...ops.registry import decl_of

SLICE = "tile.slice"


def landing(call: Call) -> Expr | None:
    """The argument whose storage the result of ``call`` lands on; None when the result has storage of its own."""
    decl = decl_of(call)
    if decl is None:
        return None
    name = decl.reuses or (decl.inherits if decl.inplace_safe else None)
    if name is None:
        return None
    index = decl.arg_index(name)
    return call.args[index] if index < len(call.args) else None


def written_argument(call: Call) -> int | None:
    """Which argument ``call`` overwrites with its result, if it works in place."""
    decl = decl_of(call)
    return None if decl is None or decl.reuses is None else decl.arg_index(decl.reuses)


def same_extent(a: Type, b: Type) -> bool:
    """Whether two tiles provably have the same constant shape and the same element type."""
    if not isinstance(a, TileType) or not isinstance(b, TileType) or a.dtype is not b.dtype:
        return False
    dims = static_dims(a.shape)
    return dims is not None and dims == static_dims(b.shape)
