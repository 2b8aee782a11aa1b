"""Views, tiles, pointers, arrays and single elements as steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from pypto.pto import ops as pto
from pypto.pto.elements import numpy_type
from pypto.pto.errors import PtoError
from pypto.pto.parser import location_of
from pypto.pto.runtime import to_scalar
from pypto.pto.scalar_types import scalar_name
from pypto.pto.shapes import Tile, View as ViewType
from pypto.pto.sync_ops import SYNC_OPS
from pypto.pto.types import LocalArrayType, TileBufType

from .steps import BUILDERS, Compiler, Env, Step, apply, guard
from .tile import SimTile
from .window import Pointer, View


def _make_view(self: Compiler, op: pto.MakeTensorView) -> Step:
    pointer, out = self.slot(op.operands[0]), self.slot(op.results[0])
    shape, strides = self.slots_of(op.shape), self.slots_of(op.strides)
    layout = op.layout or "nd"

    def make(env: Env) -> None:
        extents = tuple([env[slot] for slot in shape])
        env[out] = View(env[pointer], extents, tuple([env[slot] for slot in strides]), layout)

    return make


def _partition(self: Compiler, op: pto.PartitionView) -> Step:
    source, out = self.slot(op.operands[0]), self.slot(op.results[0])
    offsets, sizes = self.slots_of(op.offsets), self.slots_of(op.sizes)
    stated = _view_type(op).shape

    def window(env: Env) -> None:
        extents = tuple([env[slot] for slot in sizes])
        if any(want is not None and want != got for want, got in zip(stated, extents, strict=True)):
            raise PtoError(f"window of {extents} where the type says {stated}")
        env[out] = env[source].window(tuple([env[slot] for slot in offsets]), extents)

    return guard(window, op)


def _view_type(op: pto.PartitionView) -> ViewType:
    data = getattr(op.results[0].type, "data", None)
    if not isinstance(data, ViewType):
        raise PtoError(f"expected a view, got {op.results[0].type}", location_of(op))
    return data


def _tile_type(value: SSAValue) -> Tile:
    if not isinstance(value.type, TileBufType):
        raise PtoError(f"expected a tile, got {value.type}")
    return value.type.data


def _alloc(self: Compiler, op: pto.AllocTile) -> Step | None:
    tile, out = _tile_type(op.results[0]), self.slot(op.results[0])
    addr = self.slot(op.addr) if op.addr is not None else None
    row, col = (self.slot(value) if value is not None else None for value in op.valid)
    known = op.known
    fixed = (known.v_row, known.v_col) if known.v_row is not None and known.v_col is not None else None
    start = pto.constant(op.addr) if op.addr is not None else None
    if fixed is not None and start is not None and isinstance(op.parent_op(), FuncOp):
        # Handles of one place and type, which nothing changes, are one tile.
        first = self.slots[op.results[0]] = self.tiles.setdefault((known, start), out)
        if first != out:
            return None
    placed = self.spare() if addr is None else 0

    def allocate(env: Env) -> None:
        core = env[0]
        if addr is not None:
            start = env[addr]
        else:
            # A tile in a loop keeps its place: only the first time round takes new bytes.
            start = env[placed]
            if start is None:
                start = env[placed] = core.place(tile.loc, tile.nbytes, tile.place)
        rows, cols = fixed or (tile.v_row if row is None else env[row], tile.v_col if col is None else env[col])
        env[out] = core.tile(tile, start, (rows, cols))

    return guard(allocate, op)


def _subview(self: Compiler, op: pto.Subview) -> Step:
    tile, out = _tile_type(op.results[0]), self.slot(op.results[0])
    source, row, col, *valid = self.slots_of(op.operands)

    def take(env: Env) -> None:
        if valid:
            extents = (min(env[valid[0]], tile.rows), min(env[valid[1]], tile.cols))
        else:
            extents = (tile.rows if tile.v_row is None else tile.v_row, tile.cols if tile.v_col is None else tile.v_col)
        env[out] = env[source].sub(tile, env[row], env[col], extents)

    return guard(take, op)


def _recast_valid(tile: Tile, source: SimTile) -> tuple[int, int]:
    """Valid extents of a reshaped tile: as its type says, an open one from the valid elements of the source."""
    rows, cols = source.valid
    if tile.v_row is not None and tile.v_col is not None:
        return tile.v_row, tile.v_col
    if tile.v_row is not None:
        return tile.v_row, rows * cols // max(1, tile.v_row)
    if tile.v_col is not None:
        return rows * cols // max(1, tile.v_col), tile.v_col
    if (tile.rows, tile.cols) == (source.type.rows, source.type.cols):
        return rows, cols
    if (tile.rows, tile.cols) == (source.type.cols, source.type.rows):
        return cols, rows
    return tile.rows, tile.cols


def _recast(self: Compiler, op: Operation) -> Step:
    tile, out = _tile_type(op.results[0]), self.slot(op.results[0])
    source = self.slot(op.operands[0])

    def recast(env: Env) -> None:
        env[out] = env[source].recast(tile, _recast_valid(tile, env[source]))

    return guard(recast, op)


def _set_valid(self: Compiler, op: pto.SetValidShape) -> Step:
    source, row, col = self.slots_of(op.operands)
    return guard(lambda env: env[source].set_valid(env[row], env[col]), op)


def _valid(pick: Callable[[tuple[int, int]], tuple[int, ...]]):
    def build(self: Compiler, op: Operation) -> Step:
        source, outs = self.slot(op.operands[0]), self.slots_of(op.results)

        def read(env: Env) -> None:
            for slot, value in zip(outs, pick(env[source].valid), strict=True):
                env[slot] = value

        return read

    return build


def _add_pointer(self: Compiler, op: pto.AddPtr) -> Step:
    return apply(
        lambda pointer, offset: Pointer(pointer.buffer, pointer.offset + offset),
        self.slots_of(op.operands),
        self.slot(op.results[0]),
    )


def _python(value: Any) -> Any:
    """A numpy integer as a Python int; floats stay numpy scalars."""
    return int(value) if value.dtype.kind in "iub" else value


def _load_scalar(self: Compiler, op: pto.LoadScalar) -> Step:
    def load(pointer: Pointer, offset: int) -> Any:
        return _python(pointer.buffer.load(pointer.at(offset)))

    return guard(apply(load, self.slots_of(op.operands), self.slot(op.results[0])), op)


def _store_scalar(self: Compiler, op: pto.StoreScalar) -> Step:
    value, pointer, offset = self.slots_of(op.operands)

    def store(env: Env) -> None:
        buffer = env[pointer].buffer
        buffer.store(env[pointer].at(env[offset]), to_scalar(env[value], buffer.dtype))

    return guard(store, op)


def _position(tile: Tile, offset: int) -> tuple[int, int]:
    if not 0 <= offset < tile.rows * tile.cols:
        raise PtoError(f"element {offset} of a tile of {tile.rows * tile.cols}")
    if tile.blayout == "row_major":
        return divmod(offset, tile.cols)
    col, row = divmod(offset, tile.rows)
    return row, col


def _get_value(self: Compiler, op: pto.GetValue) -> Step:
    def get(tile: SimTile, offset: int) -> Any:
        row, col = _position(tile.type, offset)
        return _python(tile.read_at(row, col, 1, 1)[0, 0])

    return guard(apply(get, self.slots_of(op.operands), self.slot(op.results[0])), op)


def _set_value(self: Compiler, op: pto.SetValue) -> Step:
    tile, offset, value = self.slots_of(op.operands)
    dtype = numpy_type(scalar_name(op.operands[2].type))

    def put(env: Env) -> None:
        row, col = _position(env[tile].type, env[offset])
        scalar = to_scalar(env[value], env[tile].type.numpy if dtype.kind in "iu" else dtype)
        env[tile].write_at(row, col, np.full((1, 1), scalar, env[tile].type.numpy))

    return guard(put, op)


def _declare_array(self: Compiler, op: pto.DeclareLocalArray) -> Step:
    shape, out = _array_type(op.results[0]), self.slot(op.results[0])
    size = math.prod(extent or 0 for extent in shape.shape) * shape.numpy.itemsize

    def declare(env: Env) -> None:
        env[out] = np.full(size, env[0].poison, np.uint8).view(shape.numpy).reshape([n or 0 for n in shape.shape])

    return declare


def _array_type(value: SSAValue) -> ViewType:
    if not isinstance(value.type, LocalArrayType):
        raise PtoError(f"expected a local array, got {value.type}")
    return value.type.data


def _checked_index(array: np.ndarray, indices: Sequence[int]) -> tuple[int, ...]:
    if not all(0 <= index < extent for index, extent in zip(indices, array.shape, strict=True)):
        raise PtoError(f"element {list(indices)} is outside an array of {list(array.shape)}")
    return tuple(indices)


def _array_get(self: Compiler, op: pto.LocalArrayGet) -> Step:
    def get(array: np.ndarray, *indices: int) -> Any:
        return _python(array[_checked_index(array, indices)])

    return guard(apply(get, self.slots_of(op.operands), self.slot(op.results[0])), op)


def _array_set(self: Compiler, op: pto.LocalArraySet) -> Step:
    array, *indices, value = self.slots_of(op.operands)

    def put(env: Env) -> None:
        target = env[array]
        target[_checked_index(target, [env[slot] for slot in indices])] = to_scalar(env[value], target.dtype)

    return guard(put, op)


def _query(name: str):
    def build(self: Compiler, op: Operation) -> Step:
        out = self.slot(op.results[0])

        def read(env: Env) -> None:
            env[out] = getattr(env[0], name)

        return read

    return build


def _view_figure(what: str):
    def build(self: Compiler, op: Operation) -> Step:
        def read(view: View, axis: int) -> int:
            figures = getattr(view, what)
            if not 0 <= axis < len(figures):
                raise PtoError(f"axis {axis} of a view of rank {len(figures)}")
            return figures[axis]

        return guard(apply(read, self.slots_of(op.operands), self.slot(op.results[0])), op)

    return build


def _in_order(self: Compiler, op: Operation) -> Step:
    """One instruction runs after the other and there are no caches: nothing is left to order."""
    return lambda env: None


BUILDERS.update(dict.fromkeys(SYNC_OPS, _in_order))
BUILDERS.update(
    {
        pto.MakeTensorView: _make_view,
        pto.PartitionView: _partition,
        pto.AllocTile: _alloc,
        pto.Subview: _subview,
        pto.Reshape: _recast,
        pto.Bitcast: _recast,
        pto.SetValidShape: _set_valid,
        pto.GetValidShape: _valid(lambda valid: valid),
        pto.TileValidRows: _valid(lambda valid: valid[:1]),
        pto.TileValidCols: _valid(lambda valid: valid[1:]),
        pto.AddPtr: _add_pointer,
        pto.LoadScalar: _load_scalar,
        pto.StoreScalar: _store_scalar,
        pto.GetValue: _get_value,
        pto.SetValue: _set_value,
        pto.DeclareLocalArray: _declare_array,
        pto.LocalArrayGet: _array_get,
        pto.LocalArraySet: _array_set,
        pto.GetBlockIdx: _query("block_idx"),
        pto.GetBlockNum: _query("block_num"),
        pto.GetSubblockIdx: _query("subblock_idx"),
        pto.GetSubblockNum: _query("subblock_num"),
        pto.ViewDim: _view_figure("shape"),
        pto.ViewStride: _view_figure("strides"),
    }
)
