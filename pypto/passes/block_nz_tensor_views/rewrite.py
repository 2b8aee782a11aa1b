"""The NZ tensors of one function, and the loads that read them."""

from __future__ import annotations

from ...errors import InternalError
from ...ir.enums import MemorySpace, TensorLayout, TileLayout
from ...ir.expr import Call, ConstInt, index_const
from ...ir.node import NodeList
from ...ir.span import Span
from ...ir.tensor_view_semantics import FRACTAL_ROWS, nz_c0
from ...ir.types import TensorType, TileType, same_dims
from ...ops.rules import dims_text, value
from ..tensor_blocks.proofs import Facts
from ..tensor_blocks.rewriting import BlockedLoad, Blocker
from .shapes import block_shape


class _Load(BlockedLoad):
    words = "NZ"

    def __init__(self, op: Call, source: TensorType, facts: Facts) -> None:
        super().__init__(op, source, facts)
        self._c0 = nz_c0(source.dtype)

    def blocked(self, tensor: TensorType) -> list[NodeList]:
        self._check_tile()
        self._check_window()
        batch = self._offsets[0] if len(self._offsets) == 3 else index_const(0)
        rows = self.block(-2, FRACTAL_ROWS, "rows", 256)
        columns = self.block(-1, self._c0, "columns", 256)
        zero = index_const(0)
        self._check_gap()
        window = [index_const(1), self.count(-1, self._c0), self.count(-2, FRACTAL_ROWS), *tensor.shape[3:]]
        return [NodeList([batch, columns, rows, zero, zero]), NodeList(window), NodeList(window)]

    def _check_tile(self) -> None:
        tile, span = self._op.type, self._op.span
        if self._space is not MemorySpace.Mat:
            space = self._space.name if self._space is not None else "no memory in particular"
            raise self.refuse(
                f"it goes to {space}, but NZ bytes are an operand of the cube and reach pl.Mem.Mat only",
                "load with target_memory=pl.Mem.Mat, or annotate the tensor pl.ND",
            )
        if not isinstance(tile, TileType) or len(tile.shape) != 2:
            raise InternalError("an NZ load whose tile is not 2-D: FlattenTileNdTo2D has not run", span)
        view = tile.get_effective_tile_view()
        if (view.blayout, view.slayout) != (TileLayout.col_major, TileLayout.row_major):
            raise self.refuse(
                "the tile is not in NZ, and these bytes are not converted on the way",
                "load the tile as it is and take pl.tile.transpose_view of it where the operand is transposed",
            )
        if not same_dims(self._asked, self._window) or not same_dims(tile.valid_shape, tile.shape):
            raise self.refuse(
                f"it is valid in {dims_text(self._asked)} of {dims_text(self._window)} only, or cut at the tensor's "
                "edge: a part of a fractal cannot be loaded",
                "load whole windows that lie inside the tensor, without valid_shape and clamp",
            )

    def _check_window(self) -> None:
        rank = len(self._source.shape)
        if len(self._window) != rank or len(self._offsets) != rank:
            raise self.refuse(
                f"offsets {dims_text(self._offsets)} and window {dims_text(self._window)} must have one entry for "
                f"each dimension of {dims_text(self._source.shape)}",
                "write an offset and an extent for every dimension, 1 for the batch",
            )
        if rank == 3 and value(self._window[0]) != 1:
            raise self.refuse(
                f"a window of {dims_text(self._window)} spans several batches, whose fractals do not follow each "
                "other as the rows of one tile do",
                "load one batch at a time: an extent of 1 in dimension 0",
            )
        for axis, unit, what in ((-2, FRACTAL_ROWS, "rows"), (-1, self._c0, "columns")):
            extent = self._window[axis]
            if not isinstance(extent, ConstInt) or extent.value % unit:
                raise self.refuse(
                    f"a window of {dims_text(self._window)} does not hold {what} in whole blocks of {unit}",
                    f"make the window a multiple of {unit} in dimension {rank + axis}",
                )


    def _check_gap(self) -> None:
        """A load moves columns of boxes; an instruction holds how many rows it leaves out between two of them."""
        rows, taken, columns = value(self._source.shape[-2]), value(self._window[-2]), value(self._window[-1])
        if rows is None or taken is None or columns is None or columns <= self._c0:
            return
        if rows - taken > _MOST_BETWEEN:
            raise self.refuse(
                f"a window of {taken} of {rows} rows leaves out {rows - taken} rows between its columns of boxes, and "
                f"the load instruction at most {_MOST_BETWEEN}",
                f"load {self._c0} columns at a time, or cut the tensor into batches of fewer rows: [B, R, C]",
            )


_MOST_BETWEEN = 65_535
"""Rows of a box, 32 bytes each, between the ends and starts of what a load moves."""


class NzBlocker(Blocker):
    layouts = (TensorLayout.NZ,)
    load = _Load
    elsewhere = (
        "load a window of the tensor with target_memory=pl.Mem.Mat, or annotate it pl.ND and keep its bytes in "
        "row-major order"
    )

    def block_shape(self, tensor: TensorType, name: str, span: Span) -> TensorType:
        return block_shape(tensor, name, span)
