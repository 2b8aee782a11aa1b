"""Tile operators that allocate, transfer and address: what moves a tile between memories or element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from ..ir.expr import Expr, MakeTuple, index_const
from ..ir.tensor_view_semantics import MX_LAYOUTS, is_blocked_mx_shape, is_blocked_nz_shape, nz_window_shape
from ..ir.types import PtrType, ScalarType, TensorType, TensorView, TileType, Type, dim_list, implicit_layout
from .mx_scales import SCALE_SPACES, load_boxes, load_scales, move_scales
from .regions import read_region, write_region
from .registry import ArgEffect, Bound, Core, Pto, WriteChannel, declare, no_result
from .rules import (
    Layout,
    check_positive,
    check_same_dtype,
    dim_text,
    dims_text,
    layout_of,
    same,
    scalar_result,
    shaped,
    static_shape,
    tile_type,
    valid_of,
    value,
)

_MEMORY = MemorySpace
_FLAT = (TileLayout.row_major, TileLayout.none_box, 512)
_WORDS = (DataType.UINT64, DataType.INT64)
_PACKED = "pypto.layouts.fix_pipe_words packs them"


def atomic_effect(kwargs: Mapping[str, Any]) -> ArgEffect:
    """A store overwrites its destination; one that adds reads it too."""
    atomic = kwargs.get("atomic")
    return ArgEffect.ReadWrite if getattr(atomic, "value", atomic) else ArgEffect.Write


# Allocation.


def _alloc(b: Bound) -> Type:
    if b["size"] < 0:
        raise b.fail(f"requires a size of at least 0 bytes, got {b['size']}")
    return PtrType()


declare(
    "tile.alloc",
    "pos memory_space: MemorySpace, pos size: int, attr pinned: bool = False, attr slot_count: int = 1",
    _alloc,
    "Declare an allocation of ``size`` bytes; `InitMemRef` writes these.",
    pure=False,
    pto=Pto(form="alloc"),
)


def _create(b: Bound) -> Type:
    static_shape(b, "shape")
    shape, space = b.dims("shape"), b["target_memory"]
    if space is _MEMORY.DDR:
        raise b.fail("cannot create a tile in DDR", "pl.create_tensor makes a tensor in global memory")
    if space in SCALE_SPACES:
        raise b.fail(
            "does not support target_memory=LeftScale/RightScale",
            "load the MX scales into pl.Mem.Mat and pl.move them there",
        )
    return tile_type(shape, b["dtype"], shape, space, _created_layout(b, shape, space))


def _created_layout(b: Bound, shape: Sequence[Expr], space: MemorySpace | None) -> Layout | None:
    transpose, flat = b["transpose"], b["flat_layout"]
    if not transpose and not flat:
        return None
    if transpose and flat:
        raise b.fail("takes transpose or flat_layout, not both")
    if transpose and (space is not _MEMORY.Mat or len(shape) != 2):
        where = f" in {space.name}" if space is not None else ""
        raise b.fail(f"takes transpose=true only for a 2D tile with target_memory=Mat, got {dims_text(shape)}{where}")
    if flat and space is not _MEMORY.Mat:
        raise b.fail("takes flat_layout in pl.Mem.Mat only")
    return (TileLayout.row_major, TileLayout.col_major, 512) if transpose else _FLAT


declare(
    "tile.create",
    "in shape: dims, attr dtype: DataType!, attr target_memory: MemorySpace! = MemorySpace.Vec, "
    "attr transpose: bool = False, "
    "attr flat_layout: bool = False",
    _create,
    "Allocate a tile of ``shape`` in ``target_memory``, contents undefined.\n\n"
    "In ``Mat``, ``transpose`` gives a 2D tile the layout of a transposed matmul operand and ``flat_layout`` an "
    "unboxed one.",
    result_space="target_memory",
    pto=Pto(form="create"),
)


def _full(b: Bound) -> Type:
    static_shape(b, "shape")
    dtype = b["dtype"]
    scalar = b.type("value").dtype
    if scalar.is_float() and not dtype.is_float():
        hint = f"pass an integer, or dtype=pl.{scalar.name}"
        raise b.fail(f"cannot fill {dtype} elements with a {scalar} value", hint)
    return tile_type(b.dims("shape"), dtype, (), _MEMORY.Vec)


declare(
    "tile.full",
    "in shape: dims, attr dtype: DataType!, in value: scalar",
    _full,
    "A tile of ``shape`` filled with the constant ``value``.",
    core=Core.VECTOR,
    result_space=_MEMORY.Vec,
    pto=Pto("pto.texpands", ("value",), form="full"),
)


# Transfers.


def load_window(b: Bound) -> Type:
    """Type rule of a copy of a tensor's window into a new tile."""
    source, space = b.type("tensor"), b["target_memory"]
    if space not in (None, _MEMORY.Vec, _MEMORY.Mat):
        raise b.fail(
            f"cannot load into {space.name}: global memory reaches Vec and Mat only",
            f"load with target_memory=pl.Mem.Mat and pl.move(tile, target_memory=pl.Mem.{space.name})",
        )
    window, offsets = b.dims("shapes"), b.dims("offsets")
    if len(offsets) != len(window) and len(offsets) != len(source.shape):
        raise b.fail(f"requires one offset a dimension: offsets {dims_text(offsets)}, shapes {dims_text(window)}")
    check_positive(b, "shapes")
    if source.layout in MX_LAYOUTS and is_blocked_mx_shape(source.shape):
        if not b.dims("valid_shape"):
            b.values["valid_shape"] = MakeTuple(window, b.span)
        return load_boxes(b, source, window)
    requested = b.dims("valid_shape") or window
    region = read_region(
        b, source.shape, valid_of(b, "tensor"), offsets, window, requested, clamp=b["clamp"]
    )
    if not b.dims("valid_shape"):
        b.values["valid_shape"] = MakeTuple(window, b.span)
    if source.layout in MX_LAYOUTS:
        return load_scales(b, source, window, region)
    view = source.tensor_view
    pad = view.pad if view is not None and len(window) == len(source.shape) else PadValue.null
    if source.layout is TensorLayout.NZ and is_blocked_nz_shape(source.shape, source.dtype):
        return _load_blocks(b, source, window, space, pad)
    return tile_type(window, source.dtype, region, space, None, pad)


def _load_blocks(
    b: Bound, source: TensorType, window: Sequence[Expr], space: MemorySpace | None, pad: PadValue
) -> Type:
    """The tile of a window of blocks is rows by columns again. Raises OpError for anything but whole blocks."""
    offsets, asked = b.dims("offsets"), b.dims("valid_shape")
    whole = len(window) == len(offsets) == 5 and all(map(same, window[3:], source.shape[3:]))
    if not whole or value(window[0]) != 1 or not all(map(same, asked, window)):
        raise b.fail(f"takes a whole window [1, c, r, 16, c0] of blocks of an NZ tensor, got {dims_text(window)}")
    if any(value(o) != 0 for o in offsets[3:]) or space is not _MEMORY.Mat:
        raise b.fail("takes whole blocks of an NZ tensor into pl.Mem.Mat, at offsets [.., 0, 0]")
    return tile_type(nz_window_shape(window), source.dtype, (), space, None, pad)


declare(
    "tile.load",
    "in tensor: tensor, in offsets: dims, in shapes: dims, in valid_shape: dims?, "
    "attr target_memory: MemorySpace! = MemorySpace.Vec, attr clamp: bool = False",
    load_window,
    "Copy the window of ``tensor`` at ``offsets`` into a new tile of shape ``shapes``.\n\n"
    "``valid_shape`` is what is read, the whole window by default, and must lie inside the tensor; ``clamp`` cuts it "
    "at the tensor's edge. A load into Vec, the default, goes to Mat where its consumers cannot be reached from Vec.",
    core=Core.MOVE,
    result_space="target_memory",
    pto=Pto("pto.tload", form="load"),
)

_STORE_NOTE = (
    "a store performs no layout conversion, so a transposed tile needs the matching view of the tensor"
)


def _store(b: Bound) -> Type:
    source, out = b.type("tile"), b.type("output_tensor")
    offsets, partition = b.dims("offsets"), b.dims("shapes")
    if source.memory_space is not _MEMORY.Acc and source.memory_space is not None:
        check_same_dtype(b, "tile", "output_tensor")
    if len(offsets) != len(out.shape) and len(offsets) != len(source.shape):
        raise b.fail(f"requires one offset for each dimension of the tensor {shaped(out)}, got {dims_text(offsets)}")
    if partition or len(source.shape) != len(out.shape) or len(offsets) != len(out.shape):
        return out
    return stored_tensor(b, out, valid_of(b, "tile"))


def stored_tensor(b: Bound, out: TensorType, moved: Sequence[Expr]) -> TensorType:
    """``output_tensor`` after a region of extents ``moved`` was written at ``offsets``."""
    offsets, held = b.dims("offsets"), valid_of(b, "output_tensor")
    region = write_region(b, out.shape, held, offsets, moved, moved, _STORE_NOTE)
    if all(same(x, y) for x, y in zip(region, held)):
        return out
    view = out.tensor_view or TensorView()
    return out.replace(tensor_view=view.replace(valid_shape=dim_list(region)))


declare(
    "tile.store",
    "in tile: tile, in offsets: dims, out output_tensor: tensor, in shapes: dims?, "
    "attr atomic: AtomicType = AtomicType.None_",
    _store,
    "Copy the valid part of ``tile`` into ``output_tensor`` at ``offsets``; the value is the tensor as written.\n\n"
    "``shapes`` is the window's shape in the tensor where the tile has another rank. ``atomic=pl.AtomicType.Add`` adds "
    "instead of overwriting.",
    core=Core.MOVE,
    spaces={"tile": (_MEMORY.Vec, _MEMORY.Acc)},
    reuses="output_tensor",
    effects={"output_tensor": atomic_effect},
    channel=WriteChannel.Dma,
    pure=False,
    pto=Pto("pto.tstore", out="output_tensor", form="store"),
)


def _move(b: Bound) -> Type:
    source, space = b.type("src"), b["target_memory"]
    if space is _MEMORY.DDR:
        raise b.fail("cannot move to DDR", "pl.store(tile, offsets, tensor) writes global memory")
    if space in SCALE_SPACES:
        return move_scales(b)
    if space is _MEMORY.Scaling and (source.dtype not in _WORDS or value(source.shape[0]) != 1):
        raise b.fail(f"moves a row of UINT64 words to Scaling, got {shaped(source)}", _PACKED)
    blayout, slayout, fractal = implicit_layout(source.shape, space)
    flat = implicit_layout(source.shape, None)[:2]
    if space is _MEMORY.Right:
        blayout = TileLayout.row_major
    elif (blayout, slayout) == flat:
        blayout, slayout, _ = layout_of(source)
    blayout, slayout = b["blayout"] or blayout, b["slayout"] or slayout
    view = source.tile_view
    pad = view.pad if view is not None else PadValue.null
    return tile_type(source.shape, source.dtype, valid_of(b, "src"), space, (blayout, slayout, fractal), pad)


declare(
    "tile.move",
    "in src: tile, attr target_memory: MemorySpace! = MemorySpace.Vec, attr blayout: TileLayout? = None, "
    "attr slayout: TileLayout? = None",
    _move,
    "Copy a tile to another on-chip memory, the only way into Left, Right and Bias.\n\n"
    "The result is laid out as its memory demands; ``blayout`` and ``slayout`` override that.",
    core=Core.MOVE,
    result_space="target_memory",
    inplace_safe=False,
    pto=Pto("pto.tmov", ("src",), form="move"),
)


def _extract(b: Bound) -> Type:
    source, space = b.type("src"), b["target_memory"]
    shape = b.dims("shape")
    if len(shape) != 2 or len(source.shape) != 2:
        raise b.fail(f"requires a 2D tile and shape, got {shaped(source)} and {dims_text(shape)}")
    for dim in shape:
        if value(dim) is None:
            raise b.fail(f"requires shape elements to be a compile-time ConstInt, got {dim_text(dim)}")
    if space is _MEMORY.DDR:
        raise b.fail("cannot extract to DDR", "pl.store(tile, offsets, tensor) writes global memory")
    offsets = (b["index_row"], b["index_col"])
    for axis, name in enumerate(("row", "col")):
        start, size, whole = value(offsets[axis]), value(shape[axis]) or 0, value(source.shape[axis])
        if start is not None and start < 0:
            raise b.fail(f"index_{name} must be >= 0, got {start}")
        if whole is not None and (start or 0) + size > whole:
            raise b.fail(f"window exceeds src {name} extent: {start or 0} + {size} > {whole}")
    held = valid_of(b, "src")
    region = read_region(b, source.shape, held, offsets, shape, shape)
    for axis, (offset, size, whole) in enumerate(zip(offsets, shape, source.shape)):
        if value(offset) == 0 and same(size, whole):
            region[axis] = held[axis]
    partial = not all(same(v, s) for v, s in zip(region, shape))
    operand = space in (_MEMORY.Left, _MEMORY.Right)
    layout = _extracted_layout(shape, space)
    compact = CompactMode.normal if partial and operand else CompactMode.null
    return tile_type(shape, source.dtype, region, space, layout, PadValue.null, compact)


def _extracted_layout(shape: Sequence[Expr], space: MemorySpace | None) -> Layout:
    """Left comes out of an extraction row major in both orders, unlike out of a move."""
    if space is _MEMORY.Left:
        return TileLayout.row_major, TileLayout.row_major, 512
    if space is _MEMORY.Right:
        return TileLayout.row_major, TileLayout.col_major, 512
    return implicit_layout(shape, space)


declare(
    "tile.extract",
    "in src: tile, in index_row: index, in index_col: index, in shape: dims, "
    "attr target_memory: MemorySpace! = MemorySpace.Mat",
    _extract,
    "Copy the ``shape`` window of a 2D tile at (``index_row``, ``index_col``) to another memory.",
    core=Core.MOVE,
    result_space="target_memory",
    pto=Pto("pto.textract", ("src", "index_row", "index_col"), form="extract"),
)

INSERT_NOTE = "it copies the whole source subview, so all of the source's shape must fit"


def _assemble(b: Bound) -> Type:
    target, source = b.type("target"), b.type("source")
    if not (source.memory_space is _MEMORY.Acc and source.dtype is DataType.FP32):
        check_same_dtype(b, "target", "source")
    offsets = b.dims("offset")
    if len(offsets) != len(target.shape) or len(source.shape) > len(target.shape):
        raise b.fail(
            f"requires one offset for each dimension of the target {shaped(target)}, got {shaped(source)} at "
            f"{dims_text(offsets)}"
        )
    held = valid_of(b, "target")
    ones = [index_const(1)] * (len(target.shape) - len(source.shape))
    moved = [*ones, *valid_of(b, "source")]
    region = write_region(b, target.shape, held, offsets, moved, [*ones, *source.shape], INSERT_NOTE)
    return narrowed(target, region)


def narrowed(t: TileType, region: Sequence[Expr]) -> TileType:
    """The tile ``t`` with another valid region, everything else as it is."""
    if all(same(x, y) for x, y in zip(region, t.valid_shape)):
        return t if t.memref is None else t.replace(memref=None)
    view = t.get_effective_tile_view().replace(valid_shape=dim_list(region))
    return TileType(t.shape, t.dtype, None, view, t.memory_space)


declare(
    "tile.assemble",
    "inout target: tile, in source: tile, in offset: dims",
    _assemble,
    "Write ``source`` into ``target`` at ``offset``; the value is the target as written.",
    core=Core.MOVE,
    spaces={"target": (_MEMORY.Vec, _MEMORY.Mat, _MEMORY.Acc)},
    result_space="target",
    reuses="target",
    pto=Pto("pto.tinsert", ("source", "offset"), out="target", form="assemble"),
)


# Single elements.


def check_indices(b: Bound, t: Any, name: str = "indices") -> None:
    """Raise OpError unless the indices have ``t``'s rank and provably stay inside it where constant."""
    indices = b.dims(name)
    if len(indices) != len(t.shape):
        raise b.fail(f"requires one index for each dimension of {shaped(t)}, got {dims_text(indices)}")
    for axis, (i, size) in enumerate(zip(indices, t.shape)):
        known, limit = value(i), value(size)
        if known is not None and (known < 0 or (limit is not None and known >= limit)):
            raise b.fail(f"index {known} is outside dimension {axis} of {shaped(t)}")


def check_element(b: Bound, t: Any, name: str = "value") -> None:
    """Raise OpError unless scalar ``name`` has ``t``'s element dtype."""
    dtype = b.type(name).dtype
    if dtype is not t.dtype and not (dtype is DataType.INDEX and t.dtype.is_int()):
        raise b.fail(
            f"requires the scalar dtype of {name!r} to be {t.dtype}, got {dtype}", f"pl.cast({name}, pl.{t.dtype.name})"
        )


def _read(b: Bound) -> Type:
    check_indices(b, b.type("tile"))
    return ScalarType(b.type("tile").dtype)


declare(
    "tile.read",
    "in tile: tile, in indices: dims|index",
    _read,
    "The element of ``tile`` at ``indices``.",
    core=Core.VECTOR,
    spaces={"tile": (_MEMORY.Vec,)},
    pto=Pto("pto.tgetval", form="tile_read"),
)


def _write(b: Bound) -> Type:
    check_indices(b, b.type("tile"))
    check_element(b, b.type("tile"))
    return no_result(b)


declare(
    "tile.write",
    "inout tile: tile, in indices: dims|index, in value: element like tile",
    _write,
    "Set the element of ``tile`` at ``indices`` to ``value``.",
    core=Core.VECTOR,
    spaces={"tile": (_MEMORY.Vec,)},
    pure=False,
    pto=Pto("pto.tsetval", out="tile", form="tile_write"),
)


# The executing block.

for _name, _doc in (
    ("get_block_idx", "Index of the executing block."),
    ("get_block_num", "Number of blocks running."),
    ("get_subblock_idx", "Index of the executing vector core in its core group."),
):
    declare(f"tile.{_name}", "", scalar_result(DataType.INDEX), _doc, pto=Pto(f"pto.{_name}", form="lane"))

