"""Tile operators that gather elements, blocks and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace, TensorLayout
from ..ir.expr import Expr, index_const
from ..ir.types import TensorType, TileType, TupleType, Type, implicit_layout
from .regions import check_offsets, read_region
from .registry import ArgEffect, Bound, Core, Pto, WriteChannel, attr_kind, declare
from .rules import (
    INT_OR_FLOAT,
    at_most,
    check_dtype,
    dim_text,
    dims_text,
    dtype_names,
    exceeds,
    plus,
    product,
    same,
    shaped,
    tile_type,
    times,
    valid_of,
    value,
)
from .tile_elementwise import CMP_MODES, vec
from .tile_generate import PAYLOADS

_M = MemorySpace
_D = DataType
_VECTOR: dict[str, Any] = {"core": Core.VECTOR, "result_space": _M.Vec}


class MaskPattern(IntEnum):
    """Columns a mask marks, read from the right: ``P0101`` marks columns 0, 2, 4 ..."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7

    @property
    def stride(self) -> int:
        """Columns for each marked one."""
        return 2 if self < 3 else 1 if self == 7 else 4



@attr_kind("MaskPattern")
def _pattern_code(v: Any) -> int:
    if isinstance(v, int) and not isinstance(v, bool):
        return int(v)
    raise ValueError(f"mask_pattern must be a pl.tile.MaskPattern, got {v!r}")


def mask_pattern(b: Bound) -> MaskPattern:
    pattern = b["mask_pattern"]
    if not 1 <= pattern <= 7:
        raise b.fail(f"requires mask_pattern in range [1, 7], got {pattern} (mask_pattern in [1, 7])")
    return MaskPattern(pattern)


def written(t: TileType) -> TileType:
    """The type of a vector tile written in place."""
    return t if t.memref is None else t.replace(memref=None)


# Gathers.


def check_gather_index(b: Bound, source: str, index: str, what: str) -> None:
    """Raise OpError unless index elements are INT32, or INT16 for 16-bit sources."""
    dtype, width = b.type(index).dtype, b.type(source).dtype.bits
    if dtype is _D.INT16 and width != 16:
        raise b.fail(f"takes INT16 {index} with a 16-bit {source} only, got {b.type(source).dtype}")
    if dtype not in (_D.INT16, _D.INT32):
        raise b.fail(f"requires {what} dtype INT32 (or INT16 for 16-bit {source}), got {dtype}")


def _gather(b: Bound) -> Type:
    check_dtype(b, "src", INT_OR_FLOAT, "src")
    check_gather_index(b, "src", "indices", "indices")
    index = b.type("indices")
    return tile_type(index.shape, b.type("src").dtype, valid_of(b, "indices"), _M.Vec)


declare(
    "tile.gather",
    "in src: tile, in indices: tile, out tmp: tile",
    _gather,
    "The elements of ``src`` at flat ``indices``, in the indices' shape, whose columns are all valid; ``tmp`` is "
    "scratch of the indices' dtype and shape.",
    spaces=vec("src", "indices", "tmp"),
    pto=Pto("pto.tgather", ("src", "indices", "tmp"), form="gather"),
    **_VECTOR,
)


def compacted(b: Bound, name: str) -> tuple[list[Expr], DataType]:
    """Shape and dtype of the marked columns of argument ``name``."""
    t, stride = b.type(name), mask_pattern(b).stride
    last = value(t.shape[-1])
    if last is not None and last % stride:
        raise b.fail(
            f"requires a last dimension divisible by {stride} for mask_pattern={b['mask_pattern']}, got {shaped(t)}"
        )
    dtype = b["output_dtype"] or t.dtype
    if dtype.bits != t.dtype.bits:
        raise b.fail(f"requires output_dtype of the same bit width as {t.dtype}, got {dtype}")
    size = index_const(last // stride) if last is not None else t.shape[-1] // stride
    return [*t.shape[:-1], size], dtype


def _gather_mask(b: Bound) -> Type:
    shape, dtype = compacted(b, "src")
    stride, valid = mask_pattern(b).stride, valid_of(b, "src")
    last = value(valid[-1])
    if last is not None and last % stride:
        raise b.fail(f"requires valid columns divisible by {stride}, got {dims_text(valid)}")
    columns = index_const(last // stride) if last is not None else valid[-1] // stride
    return tile_type(shape, dtype, [*valid[:-1], columns], _M.Vec)


declare(
    "tile.gather_mask",
    "in src: tile, attr mask_pattern: MaskPattern!, attr output_dtype: DataType? = None",
    _gather_mask,
    "The columns `MaskPattern` marks, side by side; ``output_dtype`` of the same width reinterprets them.",
    spaces=vec("src"),
    pto=Pto("pto.tgather", ("src",), attrs={"maskPattern": "mask_pattern"}, form="gather_mask"),
    **_VECTOR,
)


@attr_kind("CmpMode")
def _cmp_mode(v: Any) -> int:
    if isinstance(v, str) and v in CMP_MODES:
        return CMP_MODES.index(v)
    if isinstance(v, int) and not isinstance(v, bool) and 0 <= v < len(CMP_MODES):
        return v
    raise ValueError(f"cmp_mode must be one of {', '.join(CMP_MODES)} or 0 to 5, got {v!r}")


def gathered_pair(b: Bound, name: str) -> tuple[list[Expr], list[Expr]]:
    """Shapes of the indices found and of their counts."""
    t = b.type(name)
    if t.dtype not in INT_OR_FLOAT:
        raise b.fail(f"requires {name} dtype in {{{dtype_names(INT_OR_FLOAT)}}}, got {t.dtype}")
    if b.type("kvalue").dtype is not t.dtype:
        raise b.fail(f"requires kvalue dtype {t.dtype}, got {b.type('kvalue').dtype}")
    if b["out_cols"] <= 0:
        raise b.fail(f"requires out_cols to be positive, got {b['out_cols']}")
    return [t.shape[0], index_const(b["out_cols"])], [index_const(1), t.shape[0]]


def _gather_compare(b: Bound) -> Type:
    """The pair of tiles, valid in the rows that the source is."""
    found, counts = gathered_pair(b, "src")
    rows = valid_of(b, "src")[0]
    return TupleType([
        tile_type(found, _D.INT32, [rows, found[1]], _M.Vec), tile_type(counts, _D.INT32, [counts[0], rows], _M.Vec)
    ])  # fmt: skip


def compare_scratch(rows: int, columns: int, dtype: DataType) -> tuple[int, int]:
    """Bytes of a row of the masks that a comparing gather keeps, and of all that it keeps.

    After the masks come a position for each element and the value for each row.
    """
    mask = -(-columns // 256) * 32
    return mask, -(-(rows * (mask + columns * 4) + dtype.storage_bytes(rows)) // 32) * 32


COMPARE = "attr cmp_mode: CmpMode! = 'eq', attr offset: int! = 0, attr out_cols: int!"
declare(
    "tile.gather_compare",
    f"in src: tile, in kvalue: scalar like src, out tmp: tile, {COMPARE}",
    _gather_compare,
    "Row by row, the indices (plus ``offset``) of elements that compare with ``kvalue``, and how many they are: at "
    "most ``out_cols``. What follows them in a row is not written. The 910B uses all of ``tmp``.",
    core=Core.VECTOR,
    spaces=vec("src", "tmp"),
    pto=Pto(
        "pto.tgather",
        ("src", "kvalue", "tmp"),
        attrs={"cmpMode": "cmp_mode", "offset": "offset"},
        form="gather_compare",
    ),
)

_GATHERB = (*PAYLOADS, _D.BF16)


def _gatherb(b: Bound) -> Type:
    src, offset = b.type("src"), b.type("offset")
    check_dtype(b, "src", _GATHERB, "src")
    dtype = b["output_dtype"] or src.dtype
    if dtype not in _GATHERB:
        raise b.fail(f"requires output_dtype in {{{dtype_names(_GATHERB)}}}, got {dtype}")
    if offset.dtype is not _D.UINT32:
        raise b.fail(f"requires UINT32 offsets, got {shaped(offset)}")
    if len(src.shape) != 2:
        raise b.fail(f"requires a 2D src, got {shaped(src)}")
    if len(offset.shape) != 2:
        raise b.fail(f"requires a 2D offset, got {shaped(offset)}")
    columns = value(offset.shape[1])
    if columns is None:
        raise b.fail(f"requires static offset columns, got {shaped(offset)}")
    if columns <= 0 or columns % 8:
        raise b.fail(f"requires offset columns to be a positive multiple of 8, got {columns}")
    block = index_const(32 // dtype.get_byte())
    rows, valid = valid_of(b, "offset")
    return tile_type([offset.shape[0], times(offset.shape[1], block)], dtype, [rows, times(valid, block)], _M.Vec)


declare(
    "tile.gatherb",
    "in src: tile, in offset: tile, attr output_dtype: DataType? = None",
    _gatherb,
    "The 32-byte blocks of ``src`` at byte ``offset``\\ s (UINT32, a multiple of 8 a row), side by side.",
    spaces=vec("src", "offset"),
    pto=Pto("pto.tgatherb", ("src", "offset")),
    **_VECTOR,
)

# From global memory.


def _mgather_effect(kwargs: Mapping[str, Any]) -> ArgEffect:
    """The scratch is written by element gathers into Mat; elsewhere there is none."""
    staged = kwargs.get("target_memory") is _M.Mat and kwargs.get("coalesce", 0) == 1
    return ArgEffect.Write if staged else ArgEffect.Read


_MGATHER = (*PAYLOADS, _D.BF16, _D.FP8E4M3FN, _D.FP8E5M2, _D.HF8)


def _mgather(b: Bound) -> Type:
    check_dtype(b, "mem", _MGATHER, "mem")
    space, idx = b["target_memory"], b["idx"]
    if space not in (_M.Vec, _M.Mat):
        raise b.fail(f"gathers into Vec or Mat, not {space.name}")
    wanted = TensorType if space is _M.Mat else TileType
    if not isinstance(idx.type, wanted):
        raise b.fail(f"requires idx to be a {'GM TensorType' if space is _M.Mat else 'TileType'} for {space.name}")
    if idx.type.dtype is not _D.INT32:
        raise b.fail(f"requires INT32 idx, got {shaped(idx.type)}")
    rows = b["coalesce"] == 0
    if rows and len(b.type("mem").shape) < 2:
        raise b.fail(f"requires mem rank >= 2 to gather rows, got {shaped(b.type('mem'))}")
    return _mgather_mat(b, rows) if space is _M.Mat else _mgather_vec(b, rows)


def _mgather_vec(b: Bound, rows: bool) -> Type:
    mem, idx = b.type("mem"), b.type("idx")
    if b["scratch"] is not None:
        raise b.fail("permits scratch only for Mat elem mode")
    if b["valid_shape"] is not None:
        raise b.fail("takes valid_shape for Mat only: a Vec result is valid where idx is")
    if len(idx.shape) != 2:
        raise b.fail(f"requires a 2D idx tile, got {shaped(idx)}")
    if not rows:
        return tile_type(idx.shape, mem.dtype, valid_of(b, "idx"), _M.Vec)
    static = [value(d) for d in idx.shape]
    if None in static:
        raise b.fail(f"requires a static [1, R] or [R, 1] idx shape, got {shaped(idx)}")
    if 1 not in static:
        raise b.fail(f"requires a [1, R] or [R, 1] idx shape, got {shaped(idx)}")
    axis = 1 if static[0] == 1 else 0
    columns = product(mem.shape[1:])
    return tile_type([idx.shape[axis], columns], mem.dtype, [valid_of(b, "idx")[axis], columns], _M.Vec)


def _mgather_mat(b: Bound, rows: bool) -> Type:
    mem, idx = b.type("mem"), b.type("idx")
    for name in ("mem", "idx"):
        if b.type(name).layout is not TensorLayout.ND:
            raise b.fail(f"requires {name} to use ND tensor layout, got {b.type(name).layout.name}")
    if len(idx.shape) != 2:
        raise b.fail(f"requires a 2D Mat idx tensor, got {shaped(idx)}")
    if rows and value(idx.shape[0]) != 1:
        raise b.fail(f"requires a [1, R] GM idx tensor, got {shaped(idx)}")
    shape = [idx.shape[1], product(mem.shape[1:])] if rows else list(idx.shape)
    if any(value(d) is None for d in shape):
        raise b.fail(f"Mat {'' if rows else 'elem '}output shape must be static, got {dims_text(shape)}")
    if rows and b["scratch"] is not None:
        raise b.fail("Mat row mode accepts only an optional valid_shape")
    for size, unit, what in zip(shape, (16, 32 // mem.dtype.get_byte()), ("rows", "cols")):
        if (value(size) or 0) % unit:
            raise b.fail(f"{what} must be a multiple of {unit}, got {dims_text(shape)}")
    if not rows:
        _check_gather_scratch(b, shape)
    valid = shape if b["valid_shape"] is None else b.dims("valid_shape")
    if len(valid) != 2:
        raise b.fail(f"valid_shape must have rank 2, got {dims_text(valid)}")
    for axis, (want, size) in enumerate(zip(valid, shape)):
        known = value(want)
        if known is not None and not 0 < known <= (value(size) or 0):
            raise b.fail(f"requires 0 < Mat valid_shape[{axis}] <= {dim_text(size)}, got {known}")
    return tile_type(shape, mem.dtype, valid, _M.Mat, implicit_layout(shape, _M.Mat))


def _check_gather_scratch(b: Bound, shape: Sequence[Expr]) -> None:
    scratch, mem = b["scratch"], b.type("mem")
    if scratch is None:
        raise b.fail("requires GM scratch for Mat elem mode", "pass a tensor of the result's size and dtype")
    if not isinstance(scratch.type, TensorType):
        raise b.fail(f"scratch must be a GM tensor, got {shaped(scratch.type)}")
    if scratch is b["mem"] or scratch is b["idx"]:
        raise b.fail("scratch must not alias mem or idx")
    t = scratch.type
    if t.dtype is not mem.dtype:
        raise b.fail(f"scratch dtype must match mem dtype {mem.dtype}, got {shaped(t)}")
    have, need = value(product(t.shape)), value(product(shape)) or 0
    if have is None:
        raise b.fail(f"scratch shape must be static, got {shaped(t)}")
    if have < need:
        raise b.fail(f"scratch must hold at least {need} elements, got {shaped(t)}")
    view = t.tensor_view
    if t.layout is not TensorLayout.ND or (view is not None and view.stride and not _contiguous(t.shape, view.stride)):
        raise b.fail(f"scratch must be contiguous ND, got {shaped(t)}")


def _contiguous(shape: Sequence[Expr], stride: Sequence[Expr]) -> bool:
    step: Expr = index_const(1)
    for dim, found in zip(reversed(shape), reversed(stride)):
        if value(dim) != 1 and not same(step, found):
            return False
        step = times(dim, step)
    return True


declare(
    "tile.mgather",
    "in mem: tensor, in idx: tile|tensor, in* scratch: tile|tensor?, in* valid_shape: dims?, "
    "attr coalesce: Coalesce! = 'row', attr target_memory: MemorySpace = MemorySpace.Vec, "
    "attr gather_oob: GatherOob = 'undefined'",
    _mgather,
    "Gather from global memory: rows of ``mem`` (coalesce row) or flat elements (elem) at INT32 ``idx``.\n\n"
    "Into Vec with an index tile, into Mat with an index tensor; element gathers into Mat stage through ``scratch``. "
    "``gather_oob`` says what an index outside gives: undefined, clamp, wrap or zero.",
    core=Core.MOVE,
    result_space="target_memory",
    effects={"scratch": _mgather_effect},
    channel=WriteChannel.Dma,
    pto=Pto(
        "pto.mgather",
        ("mem", "idx", "scratch"),
        attrs={"coalesce": "coalesce", "gatherOob": "gather_oob"},
        form="mgather",
    ),
)


def _row_copy(b: Bound) -> Type:
    check_row_copy(b)
    acc = b.type("acc")
    if b["transpose"] and (len(acc.shape) != 2 or acc.memory_space not in (_M.Mat, None)):
        raise b.fail(f"takes transpose=true only for a 2D tile with target_memory=Mat, got {shaped(acc)}")
    return written(acc)


def check_row_copy(b: Bound) -> None:
    """Raise OpError unless a window of ``src`` fits and its dtype is the accumulator's."""
    acc, src, shapes, valid = b.type("acc"), b.type("src"), b.dims("shapes"), b.dims("valid_shape")
    if acc.dtype is not src.dtype:
        raise b.fail(f"requires acc and src to share dtype, got {shaped(acc)} and {shaped(src)}")
    for name, t in (("dst_offset", acc), ("src_offset", src), ("shapes", src)):
        if len(b.dims(name)) != len(t.shape):
            raise b.fail(f"requires {name} with as many dimensions as {shaped(t)}, got {dims_text(b.dims(name))}")
    for dim in shapes:
        if value(dim) is None:
            raise b.fail(
                f"requires shapes to be positive compile-time ConstInt, got {dim_text(dim)}. Pass a dynamic row count "
                "through valid_shape instead"
            )
        if (value(dim) or 0) <= 0:
            raise b.fail(f"requires shapes to be positive compile-time ConstInt, got {dim_text(dim)}")
    if b["valid_shape"] is not None and len(valid) != len(shapes):
        raise b.fail(f"requires valid_shape to have the same rank as shapes, got {dims_text(valid)}")
    for want, size in zip(valid, shapes):
        if not at_most(want, size) and value(want) is not None:
            raise b.fail(f"valid_shape {dims_text(valid)} provably exceeds physical shape extent {dim_text(size)}")
    if b["transpose"] and any(value(d) is None for d in valid):
        raise b.fail("does not support a dynamic valid_shape together with transpose")
    moved = valid or shapes
    read_region(b, src.shape, valid_of(b, "src"), b.dims("src_offset"), shapes, moved, no_clamp="rows are copied whole")
    check_offsets(b, b.dims("dst_offset"))
    placed = moved[::-1] if b["transpose"] else moved[-len(acc.shape) :]
    for axis, (offset, size, room) in enumerate(zip(b.dims("dst_offset"), placed, acc.shape)):
        if value(offset) is not None and value(size) is not None and exceeds(plus(offset, size), room):
            raise b.fail(
                f"writes past the end of dimension {axis} of acc: offset {dim_text(offset)} + {dim_text(size)} of "
                f"{dim_text(room)}"
            )


ROW_COPY = (
    "in dst_offset: dims, in src_offset: dims, in shapes: dims, in* valid_shape: dims?, attr transpose: bool! = False"
)
declare(
    "tile.gather_row",
    f"inout acc: tile, in src: tensor, {ROW_COPY}",
    _row_copy,
    "Load the window of ``src`` at ``src_offset`` into ``acc`` at ``dst_offset``, as columns when ``transpose``.",
    core=Core.MOVE,
    result_space="acc",
    reuses="acc",
    pto=Pto("pto.tload", out="acc", form="gather_row"),
)

