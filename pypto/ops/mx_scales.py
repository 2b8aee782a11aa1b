"""How MX scales reach the scale memories: from a scale tensor into L1, from there where the cube reads them."""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DataType
from ..ir.enums import MemorySpace, TensorLayout, TileLayout
from ..ir.expr import Expr, index_const
from ..ir.types import TensorType, Type, implicit_layout
from .registry import Bound
from .rules import Layout, dims_text, layout_of, same, shaped, tile_type, valid_of

SCALE_SPACES = (MemorySpace.LeftScale, MemorySpace.RightScale)
_LAYOUTS: dict[TensorLayout, Layout] = {
    TensorLayout.MX_A_ZZ: (TileLayout.row_major, TileLayout.row_major, 32),
    TensorLayout.MX_B_NN: (TileLayout.col_major, TileLayout.col_major, 32),
}
MX_LAYOUTS = tuple(_LAYOUTS)
_SCALES = (DataType.UINT8, DataType.FP8E8M0)


def load_scales(b: Bound, source: TensorType, window: Sequence[Expr], region: Sequence[Expr]) -> Type:
    """The L1 tile of a window of a scale tensor, in the order the tensor's layout has them."""
    if b["target_memory"] is not MemorySpace.Mat:
        raise b.fail(
            f"requires explicit target_memory=MemorySpace.Mat for a tensor in layout {source.layout.name}, not Vec",
            "pl.load(.., target_memory=pl.Mem.Mat)",
        )
    if len(window) != 2:
        raise b.fail(f"requires a 2D load window of MX scales, got {dims_text(window)}")
    view = source.tensor_view
    packed = (*source.shape[1:], index_const(1))
    if len(source.shape) != 2 or (view is not None and view.stride and not all(map(same, view.stride, packed))):
        raise b.fail(f"requires a packed 2D tensor of MX scales, got {shaped(source)}")
    return tile_type(window, source.dtype, region, MemorySpace.Mat, _LAYOUTS[source.layout])


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
