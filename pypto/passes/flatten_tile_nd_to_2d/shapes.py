"""How a tile of any rank lies in two dimensions: leading dimensions run together, the last stays."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import user_error
from ...ir.expr import Expr, index_const
from ...ir.node import EMPTY
from ...ir.span import Span
from ...ir.types import TileType, implicit_layout
from ...ops.rules import dims_text, plus, product, same, times, value


def is_flat(kind: object) -> bool:
    """Whether ``kind`` is no tile, or a two-dimensional one."""
    return not isinstance(kind, TileType) or len(kind.shape) == 2


def flat_shape(shape: Sequence[Expr], span: Span) -> list[Expr]:
    """``[A, B, C]`` as ``[A * B, C]``, ``[N]`` as ``[1, N]``. Raises KernelValueError for dynamic extents."""
    if any(value(d) is None for d in shape):
        raise user_error(
            ValueError,
            f"a tile of shape {dims_text(shape)} cannot be flattened to 2D: its extents must be constants",
            span,
            "work on blocks of constant size in a pl.range or pl.parallel loop and give the ragged end as valid_shape, "
            "or reshape the tensor to 2D before the kernel",
        )
    return [product(shape[:-1]), shape[-1]]


def flat_valid(valid: Sequence[Expr], shape: Sequence[Expr], span: Span) -> list[Expr]:
    """The valid region of the flattened tile. Raises KernelValueError when it would not be one block of rows."""
    if not runs_together(valid, shape):
        raise user_error(
            ValueError,
            f"a tile of shape {dims_text(shape)} with valid region {dims_text(valid)} cannot be flattened to 2D: the "
            "valid rows do not lie one after another",
            span,
            "make the region partial in its first dimension of more than 1 only, or process the slices one by one",
        )
    return [product(valid[:-1]), valid[-1]]


def runs_together(part: Sequence[Expr], whole: Sequence[Expr]) -> bool:
    """Whether the rows of a ``part`` sized corner of ``whole`` lie one after another."""
    leading = [i for i, d in enumerate(part[:-1]) if value(d) != 1]
    return all(same(part[i], whole[i]) for i in range(leading[0] + 1, len(part) - 1)) if leading else True


def flat_type(kind: TileType, span: Span) -> TileType:
    """The type of the flattened tile; ``kind`` itself when it is two-dimensional."""
    if len(kind.shape) == 2:
        return kind
    shape = flat_shape(kind.shape, span)
    view = kind.tile_view
    if view is None:
        return TileType(shape, kind.dtype, kind.memref, None, kind.memory_space)
    layout = (view.blayout, view.slayout, view.fractal)
    if layout == implicit_layout(kind.shape, kind.memory_space):
        layout = implicit_layout(shape, kind.memory_space)
    blayout, slayout, fractal = layout
    valid = type(kind.shape)(flat_valid(kind.valid_shape, kind.shape, span))
    made = view.replace(valid_shape=valid, stride=EMPTY, blayout=blayout, slayout=slayout, fractal=fractal)
    return TileType(shape, kind.dtype, kind.memref, made, kind.memory_space)


def flat_offsets(offsets: Sequence[Expr], shape: Sequence[Expr]) -> list[Expr]:
    """Row and column of ``offsets`` into a tile of ``shape``."""
    row: Expr = index_const(0)
    for offset, extent in zip(offsets[:-1], shape[:-1]):
        row = plus(times(row, extent) if value(row) != 0 else row, offset)
    return [row, offsets[-1]]
