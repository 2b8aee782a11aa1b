"""Windows of tiles copied within Vec, where `pto.tmov` does not: by `pto.textract` and `pto.tinsert`.

Both move elements without looking at them, so that elements of a type they lack are moved as others of that width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import Call, Expr, Var, index_const, tile_type_of
from ..ir.types import TileType, same_dims
from ..ops.registry import rebind
from .context import Op, Value
from .instructions import instruction
from .types import tile_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder


def extracted(kernel: KernelBuilder, source: Expr, result: Var, out: Value) -> bool:
    """Copy a slice, ``source``, to a tile of its own; False where `pto.tmov` does that, or nothing else can."""
    call = kernel.slices.get(source) if isinstance(source, Var) else None
    if call is None or not _within_vec(kernel, source, result) or not _is_narrower(call):
        return False
    bound = rebind(call)
    owner, at = bound["tile"], bound.dims("offset")
    dtype = _moved_as(kernel, "textract", owner)
    if dtype is None or (dtype is not tile_type_of(owner).dtype and owner in kernel.slices):
        return False
    if owner in kernel.slices:
        owner, at = source, [index_const(0)] * 2
    ins = [_as(kernel, owner, dtype), *(kernel.scalars.index(o) for o in at)]
    instruction(kernel, "pto.textract", ins, out if dtype is tile_type_of(owner).dtype else _as(kernel, result, dtype))
    return True


def inserted(kernel: KernelBuilder, source: Expr, offsets: Sequence[Value], result: Var, out: Value) -> bool:
    """Copy a tile over a window of another; False where `pto.tmov` to a view does that, or nothing else can."""
    if not isinstance(source, Var) or not _within_vec(kernel, source, result):
        return False
    whole = same_dims(tile_type_of(source).shape[1:], tile_type_of(result).shape[1:])
    if whole and source not in kernel.slices:
        return False
    dtype = _moved_as(kernel, "tinsert", result)
    if dtype is None or (dtype is not tile_type_of(result).dtype and source in kernel.slices):
        return False
    moved = _as(kernel, source, dtype)
    into = out if dtype is tile_type_of(result).dtype else _as(kernel, result, dtype)
    instruction(kernel, "pto.tinsert", [moved, *offsets], into)
    return True


def _within_vec(kernel: KernelBuilder, source: Expr, result: Var) -> bool:
    types = (source.type, result.type)
    here = all(isinstance(t, TileType) and t.memory_space is MemorySpace.Vec for t in types)
    return here and kernel.target.quirks.moves_whole and kernel.options.addresses


def _is_narrower(call: Call) -> bool:
    """Whether a slice leaves out columns, so that its rows lie apart."""
    owner = rebind(call).type("tile")
    return isinstance(call.type, TileType) and not same_dims(call.type.shape[1:], owner.shape[1:])


def _moved_as(kernel: KernelBuilder, mnemonic: str, tile: Expr) -> DataType | None:
    """The element type an instruction moves a tile's elements as."""
    from ..pto.checks import stand_in
    from ..pto.elements import data_type
    from ..pto.instructions import INSTRUCTIONS

    name = stand_in(INSTRUCTIONS[mnemonic], kernel.target.module_arch, tile_type_of(tile).dtype.mlir or "")
    return None if name is None else data_type(name)


def _as(kernel: KernelBuilder, tile: Expr, dtype: DataType) -> Value:
    """A tile's bytes as elements of ``dtype``, of the same width."""
    type = tile.type
    assert isinstance(tile, Var) and isinstance(type, TileType)
    if type.dtype is dtype:
        return kernel.value(tile)
    seen = type.replace(dtype=dtype, memref=None)
    if type.memref is None:
        source = kernel.value(tile)
        made = kernel.fresh(f"{tile.name_hint}_bits", tile_text(seen, kernel.target))
        kernel.add(Op("bitcast", result=made, source=source))
        return made
    return kernel.buffers.at(seen, type.memref.byte_offset, index_const(0), f"{tile.name_hint}_bits")
