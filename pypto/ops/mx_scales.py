"""How MX scales reach the scale memories: from a scale tensor into L1, from there where the cube reads them."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DataType
from ..ir.enums import MemorySpace, TensorLayout, TileLayout
from ..ir.expr import Expr, index_const
from ..ir.tensor_view_semantics import mx_window_shape
from ..ir.types import TensorType, Type, implicit_layout
from .registry import Bound
from .rules import Layout, all_same, dims_text, layout_of, same, shaped, tile_type, valid_of, value

SCALE_SPACES = (MemorySpace.LeftScale, MemorySpace.RightScale)
_LAYOUTS: dict[TensorLayout, Layout] = {
    TensorLayout.MX_A_ZZ: (TileLayout.row_major, TileLayout.row_major, 32),
    TensorLayout.MX_B_NN: (TileLayout.col_major, TileLayout.col_major, 32),
}
_SCALES = (DataType.UINT8, DataType.FP8E8M0)


def _check_memory(b: Bound, source: TensorType) -> None:
    space = b["target_memory"]
    if space is not MemorySpace.Mat:
        raise b.fail(
            f"requires explicit target_memory=MemorySpace.Mat for a tensor in layout {source.layout.name}, got "
            f"{space and space.name}",
            "pl.load(.., target_memory=pl.Mem.Mat)",
        )


def load_scales(b: Bound, source: TensorType, window: Sequence[Expr], region: Sequence[Expr]) -> Type:
    """The L1 tile of a window of a scale tensor, in the order the tensor's layout has them."""
    _check_memory(b, source)
    if len(window) != 2:
        raise b.fail(f"requires a 2D load window of MX scales, got {dims_text(window)}")
    view = source.tensor_view
    packed = (*source.shape[1:], index_const(1))
    if len(source.shape) != 2 or (view is not None and view.stride and not all(map(same, view.stride, packed))):
        raise b.fail(f"requires a packed 2D tensor of MX scales, got {shaped(source)}")
    return tile_type(window, source.dtype, region, MemorySpace.Mat, _LAYOUTS[source.layout])


def load_boxes(b: Bound, source: TensorType, window: Sequence[Expr]) -> Type:
    """The tile of a window of boxes is rows by columns again.

    ``valid_shape``, the window by default, is what counts of the tile, in rows and columns; whole boxes are read.
    """
    _check_memory(b, source)
    if len(window) != 5 or value(window[0]) != 1 or not all(map(same, window[3:], source.shape[3:])):
        raise b.fail(f"takes a whole window [1, r, g, 16, 2] of boxes of MX scales, got {dims_text(window)}")
    if any(value(o) != 0 for o in (b.dims("offsets")[0], *b.dims("offsets")[3:])):
        raise b.fail("takes whole boxes of MX scales, at offsets [0, .., .., 0, 0]")
    shape = mx_window_shape(window, source.layout)
    asked = b.dims("valid_shape")
    region = asked if len(asked) == 2 else ()
    if not region and not all_same(asked, window):
        raise b.fail(f"takes a 2-D valid_shape for MX scales, or the window, got {dims_text(asked)}")
    for have, room in zip(region, shape):
        if (value(have) or 0) > (value(room) or 0):
            raise b.fail(f"requires valid_shape {dims_text(region)} inside the tile {dims_text(shape)}")
    return tile_type(shape, source.dtype, region, MemorySpace.Mat, _LAYOUTS[source.layout])


def move_scales(b: Bound) -> Type:
    """The tile in a scale memory: FP8E8M0 in the layout the hardware fixes, which the source must have."""
    source, space = b.type("src"), b["target_memory"]
    if source.dtype not in _SCALES:
        raise b.fail(f"requires UINT8 or FP8E8M0 scales, got {shaped(source)}")
    if source.memory_space is not MemorySpace.Mat:
        raise b.fail(f"requires scales in Mat memory, got {source.memory_space and source.memory_space.name}")
    if len(source.shape) != 2:
        raise b.fail(f"requires a 2D tile of scales, got {shaped(source)}")
    fixed = implicit_layout(source.shape, space)
    for given, wanted in ((b["blayout"], fixed[0]), (b["slayout"], fixed[1])):
        if given not in (None, wanted):
            raise b.fail(f"{space.name} has a hardware-fixed layout, {fixed[0].name} and {fixed[1].name}")
    if source.tile_view is not None and layout_of(source) != fixed:
        raise b.fail(f"requires a source matching {space.name}'s layout {fixed[0].name}, {fixed[1].name}, 32 bytes")
    return tile_type(source.shape, DataType.FP8E8M0, valid_of(b, "src"), space, fixed)
