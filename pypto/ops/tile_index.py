"""Tile operators that generate indices, select by mask, gather, scatter and sort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace, TensorLayout
from ..ir.expr import ConstFloat, ConstInt, Expr, index_const
from ..ir.types import TensorType, TileType, TupleType, Type, implicit_layout
from .registry import ArgEffect, Bound, Core, Pto, WriteChannel, attr_kind, declare, scalar_operand
from .rules import (
    FLOATS,
    INT_OR_FLOAT,
    all_same,
    at_most,
    check_dtype,
    check_rank,
    dim_text,
    dims_text,
    dtype_names,
    fresh_like,
    plus,
    product,
    same,
    shaped,
    static_shape,
    tile_type,
    times,
    valid_of,
    value,
)
from .tile_elementwise import CMP_MODES, vec

_M = MemorySpace
_D = DataType
_INDEX_DTYPES = (_D.INT16, _D.INT32, _D.UINT16, _D.UINT32)
_VECTOR: dict[str, Any] = {"core": Core.VECTOR, "result_space": _M.Vec, "inplace_safe": False}


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


# Sequences.


def check_sequence(b: Bound) -> None:
    """Raise OpError unless ``ci`` can fill the shape: one row of more than one integer."""
    dtype = b["dtype"]
    if dtype not in _INDEX_DTYPES:
        raise b.fail(f"requires dtype in {{{dtype_names(_INDEX_DTYPES)}}}, got {dtype}")
    shape = static_shape(b, "shape")
    if shape[-1] == 1:
        raise b.fail(f"requires an innermost dimension greater than 1, got {shape}")
    if any(d != 1 for d in shape[:-1]):
        raise b.fail(f"leading dimensions must be 1, got {shape}: only one row is filled", "repeat it with pl.col_expand")
    start = b.type("start").dtype
    if start is not dtype and start is not _D.INDEX:
        raise b.fail(f"requires start of dtype {dtype}, got {start}", f"pl.cast(start, pl.{dtype.name})")


def sequence_start(b: Bound) -> None:
    """Give a literal start the dtype of the sequence."""
    b.values["start"] = scalar_operand(b.decl, "start", b["start"], b["dtype"], b.span)


def _ci(b: Bound) -> Type:
    check_sequence(b)
    sequence_start(b)
    return tile_type(b.dims("shape"), b["dtype"], (), _M.Vec)


SEQUENCE = "in start: scalar, in shape: dims, attr dtype: DataType! = DataType.INT32, attr descending: bool! = False"
declare(
    "tile.ci",
    SEQUENCE,
    _ci,
    "One row of consecutive integers from ``start``, up or ``descending``.",
    pto=Pto("pto.tci", ("start",), attrs={"descending": "descending"}),
    **_VECTOR,
)

RANDOM = (
    "in key0: scalar like INT32, in key1: scalar like INT32, in counter0: scalar like INT32, "
    "in counter1: scalar like INT32, in counter2: scalar like INT32, in counter3: scalar like INT32, "
    "in shape: dims, in valid_shape: dims?, attr dtype: DataType! = DataType.UINT32, attr rounds: int! = 10"
)


def check_random(b: Bound) -> None:
    if b["dtype"] not in (_D.INT32, _D.UINT32):
        raise b.fail(f"requires dtype in {{INT32, UINT32}}, got {b['dtype']}")
    if b["rounds"] not in (7, 10):
        raise b.fail(f"requires rounds to be 7 or 10, got {b['rounds']}")
    if len(b.dims("shape")) != 2:
        raise b.fail(f"requires a 2D shape, got {dims_text(b.dims('shape'))}")


def narrowed_valid(b: Bound, positive: bool = False) -> Sequence[Expr]:
    """``valid_shape`` of a generated tile; the whole shape without one."""
    shape, valid = b.dims("shape"), b.dims("valid_shape")
    if not valid:
        return shape
    if len(valid) != len(shape):
        raise b.fail(f"requires a valid_shape rank of {len(shape)}, got {dims_text(valid)}")
    for axis, (want, size) in enumerate(zip(valid, shape)):
        known = value(want)
        if known is not None and (known > (value(size) or 0) or known < (1 if positive else 0)):
            low = f"0 < valid_shape[{axis}]" if positive else f"0 <= valid_shape element {axis}"
            raise b.fail(f"requires {low} <= {dim_text(size)}, got {known} (valid_shape element {axis})")
    return valid


def _random(b: Bound) -> Type:
    check_random(b)
    static_shape(b, "shape")
    return tile_type(b.dims("shape"), b["dtype"], narrowed_valid(b), _M.Vec)


declare(
    "tile.random",
    RANDOM,
    _random,
    "Random 32-bit integers of a counter-based generator: two key words, four counter words, 7 or 10 rounds.",
    pto=Pto(
        "pto.trandom",
        ("key0", "key1", "counter0", "counter1", "counter2", "counter3"),
        attrs={"rounds": "rounds"},
    ),
    **_VECTOR,
)

_TRI = (*_INDEX_DTYPES, _D.FP16, _D.FP32)


def _tri(b: Bound) -> Type:
    diagonal = b.type("diagonal").dtype
    if diagonal is not _D.INT32:
        raise b.fail(f"requires diagonal to be an INT32 scalar, got {diagonal}")
    if len(b.dims("shape")) != 2:
        raise b.fail(f"requires a 2D shape, got {dims_text(b.dims('shape'))}")
    static_shape(b, "shape")
    if b["dtype"] not in _TRI:
        raise b.fail(f"requires dtype in {{{dtype_names(_TRI)}}}, got {b['dtype']}")
    return tile_type(b.dims("shape"), b["dtype"], narrowed_valid(b, positive=True), _M.Vec)


declare(
    "tile.tri",
    "in diagonal: scalar like INT32, in shape: dims, in valid_shape: dims?, "
    "attr dtype: DataType! = DataType.FP32, attr upper: bool! = False",
    _tri,
    "1 on and below the diagonal shifted by ``diagonal``, 0 elsewhere; ``upper`` takes the other side.",
    pto=Pto("pto.ttri", ("diagonal",), attrs={"upperOrLower": "upper"}),
    **_VECTOR,
)

# Selection with a scalar.

_SELS = (_D.INT8, _D.UINT8, _D.INT16, _D.UINT16, _D.INT32, _D.UINT32, _D.FP16, _D.FP32)
_SIGNED = {_D.UINT8: _D.INT8, _D.UINT16: _D.INT16, _D.UINT32: _D.INT32}


def _selected_scalar(b: Bound, dtype: DataType) -> Expr:
    """The scalar operand: a constant in ``dtype``, with the bits of an unsigned one; anything else must have it."""
    scalar: Any = b["scalar"]
    if not isinstance(scalar, (ConstInt, ConstFloat)):
        if scalar.type.dtype is not dtype:
            raise b.fail(
                f"requires scalar dtype {dtype} for src dtype {b.type('src').dtype}, got {scalar.type.dtype}",
                f"pl.cast(scalar, pl.{dtype.name})",
            )
        return scalar
    if dtype.is_float():
        return ConstFloat(float(scalar.value), dtype, scalar.span)
    if scalar.value != int(scalar.value):
        raise b.fail(f"cannot select the non-integral {scalar.value} for {dtype} elements")
    low, high = dtype.int_range()
    known = int(scalar.value)
    if known > high and known < 2 * (high + 1):
        known -= 2 * (high + 1)
    if not low <= known <= high:
        raise b.fail(f"scalar {scalar.value} does not fit {b.type('src').dtype} elements")
    return ConstInt(known, dtype, scalar.span)


def _check_mask(b: Bound) -> None:
    """Raise OpError unless the packed mask has a bit for every valid element of ``src``."""
    mask, src = b.type("mask"), b.type("src")
    if not mask.dtype.is_int():
        raise b.fail(f"requires an integer mask, got {shaped(mask)}", "pl.cmp and pl.cmps make masks")
    check_rank(b, "mask", 2)
    rows, columns = valid_of(b, "src")
    mask_rows, mask_columns = valid_of(b, "mask")
    if not at_most(rows, mask_rows):
        raise b.fail(f"requires mask carrier rows for every row of src: {dim_text(mask_rows)} of {dim_text(rows)}")
    width = mask.dtype.get_byte()
    have, need = value(mask_columns), value(columns)
    enough = have * width * 8 >= need if have is not None and need is not None else _packs(columns, mask_columns, width)
    if not enough:
        raise b.fail(
            f"requires each mask carrier row to hold {dim_text(columns)} bits, got {dim_text(mask_columns)} elements "
            "of "
            f"{mask.dtype} for {shaped(src)}"
        )


def _packs(columns: Expr, carrier: Expr, width: int) -> bool:
    """Whether a symbolic carrier extent is provably the columns packed into bits, or at least as wide."""
    bits = 8 * width
    return same(carrier, columns) or same(carrier, (columns + (bits - 1)) // bits)


def _sels(b: Bound) -> Type:
    check_dtype(b, "src", _SELS, "src")
    check_rank(b, "src", 2)
    check_rank(b, "tmp", 2)
    _check_mask(b)
    dtype = b.type("src").dtype
    b.values["scalar"] = _selected_scalar(b, _SIGNED.get(dtype, dtype))
    return fresh_like(b.type("src"), None, valid_of(b, "src"))


declare(
    "tile.sels",
    "in mask: tile, in src: tile, out tmp: tile, in scalar: scalar",
    _sels,
    "src where the packed mask's bit is set, ``scalar`` elsewhere; ``tmp`` is scratch.",
    spaces=vec("mask", "src", "tmp"),
    pto=Pto("pto.tsels", ("mask", "src", "tmp", "scalar")),
    **_VECTOR,
)

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
    "The elements of ``src`` at flat ``indices``, in the indices' shape; ``tmp`` is scratch.",
    spaces=vec("src", "indices", "tmp"),
    pto=Pto("pto.tgather", ("src", "indices", "tmp"), form="gather"),
    **_VECTOR,
)


def mask_pattern(b: Bound) -> MaskPattern:
    pattern = b["mask_pattern"]
    if not 1 <= pattern <= 7:
        raise b.fail(f"requires mask_pattern in range [1, 7], got {pattern} (mask_pattern in [1, 7])")
    return MaskPattern(pattern)


def compacted(b: Bound, name: str) -> tuple[list[Expr], DataType]:
    """Shape and dtype of the marked columns of argument ``name``."""
    t, stride = b.type(name), mask_pattern(b).stride
    last = value(t.shape[-1])
    if last is not None and last % stride:
        raise b.fail(f"requires a last dimension divisible by {stride} for mask_pattern={b['mask_pattern']}, got {shaped(t)}")
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
    "in src: tile, attr mask_pattern: int!, attr output_dtype: DataType? = None",
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
    found, counts = gathered_pair(b, "src")
    return TupleType([tile_type(found, _D.INT32, (), _M.Vec), tile_type(counts, _D.INT32, (), _M.Vec)])


COMPARE = "attr cmp_mode: CmpMode! = 'eq', attr offset: int! = 0, attr out_cols: int!"
declare(
    "tile.gather_compare",
    f"in src: tile, in kvalue: scalar like src, out tmp: tile, {COMPARE}",
    _gather_compare,
    "Row by row, the indices (plus ``offset``) of elements that compare with ``kvalue``, at most ``out_cols``, and "
    "their "
    "counts.",
    core=Core.VECTOR,
    spaces=vec("src", "tmp"),
    inplace_safe=False,
    pto=Pto("pto.tgather", ("src", "kvalue", "tmp"), attrs={"cmpMode": "cmp_mode", "offset": "offset"}, form="gather_compare"),
)

_GATHERB = (*_SELS, _D.BF16)


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

# Scatters.

_SCATTER = (_D.INT8, _D.INT16, _D.INT32, _D.FP16, _D.FP32, _D.BF16)


def check_scatter(b: Bound, dst: str, src: str, index: str) -> None:
    """Raise OpError unless dtypes fit: one payload dtype, INT32 indices for 4-byte elements, INT16 for narrower ones."""
    target, source, at = b.type(dst), b.type(src), b.type(index)
    if target.dtype not in _SCATTER:
        raise b.fail(f"requires {dst} dtype in {{{dtype_names(_SCATTER)}}}, got {target.dtype}")
    if source.dtype is not target.dtype:
        raise b.fail(f"requires one dtype: {dst} dtype {target.dtype}, {src} dtype {source.dtype}")
    wanted = _D.INT32 if target.dtype.get_byte() == 4 else _D.INT16
    if at.dtype is not wanted:
        raise b.fail(f"requires {index} dtype {wanted} for {target.dtype} elements, got {at.dtype}")
    for axis in range(min(2, len(source.shape), len(at.shape))):
        if not same(at.shape[axis], source.shape[axis]):
            raise b.fail(
                f"requires {index}.shape[{axis}] == {src}.shape[{axis}], got {shaped(at)} and {shaped(source)}"
            )


def written(t: TileType) -> TileType:
    """The type of a vector tile written in place."""
    return t if t.memref is None else t.replace(memref=None)


def _scatter(b: Bound) -> Type:
    check_scatter(b, "dst", "src", "indexes")
    return written(b.type("dst"))


declare(
    "tile.scatter",
    "inout dst: tile, in src: tile, in indexes: tile",
    _scatter,
    "Write the elements of ``src`` into ``dst`` at flat ``indexes``; the value is ``dst`` as written.",
    spaces=vec("dst", "src", "indexes"),
    reuses="dst",
    pto=Pto("pto.tscatter", ("src", "indexes"), out="dst", form="scatter"),
    **_VECTOR,
)


def check_scatter_mask(b: Bound, dst: str, src: str) -> None:
    target, source, stride = b.type(dst), b.type(src), mask_pattern(b).stride
    if target.dtype is not source.dtype:
        raise b.fail(f"requires the same dtype for {src} and {dst}, got {shaped(source)} and {shaped(target)}")
    expanded = times(source.shape[-1], index_const(stride))
    if not same(target.shape[-1], expanded) or not all_same(target.shape[:-1], source.shape[:-1]):
        raise b.fail(
            f"requires {dst} columns = {src} columns * {stride} for mask_pattern={b['mask_pattern']}, got "
            f"{shaped(target)} and {shaped(source)}"
        )


def _scatter_mask(b: Bound) -> Type:
    check_scatter_mask(b, "dst", "src")
    return written(b.type("dst"))


declare(
    "tile.scatter_mask",
    "inout dst: tile, in src: tile, attr mask_pattern: int!",
    _scatter_mask,
    "Write the columns of ``src`` into those of ``dst`` that `MaskPattern` marks.",
    spaces=vec("dst", "src"),
    reuses="dst",
    pto=Pto("pto.tscatter", ("src",), out="dst", attrs={"maskPattern": "mask_pattern"}, form="scatter_mask"),
    **_VECTOR,
)


def check_scatter_update(b: Bound) -> None:
    target, source, index = b.type("input"), b.type("src"), b.type("index")
    if b["dim"] not in (-2,):
        raise b.fail(f"supports dim=-2 only, got {b['dim']}")
    if source.dtype is not target.dtype:
        raise b.fail(f"requires src dtype {target.dtype}, got {source.dtype}")
    if not index.dtype.is_int():
        raise b.fail(f"requires an integer index, got {shaped(index)}")
    if len(target.shape) not in (2, 4) or len(source.shape) != len(target.shape):
        raise b.fail(f"requires 2D or 4D input and src of one rank, got {shaped(target)} and {shaped(source)}")
    if not same(source.shape[-1], target.shape[-1]):
        raise b.fail(f"requires rows of one length, got {shaped(target)} and {shaped(source)}")


def _scatter_update(b: Bound) -> Type:
    check_scatter_update(b)
    return written(b.type("input"))


declare(
    "tile.scatter_update",
    "inout input: tile, attr dim: int!, in index: tile, in src: tile",
    _scatter_update,
    "Replace the rows of ``input`` that ``index`` names by the rows of ``src``, ``dim`` -2.",
    spaces=vec("input", "index", "src"),
    reuses="input",
    pto=Pto(form="composite"),
    **_VECTOR,
)


def _mscatter(b: Bound) -> Type:
    src, idx, out = b.type("src"), b.type("idx"), b.type("output_tensor")
    check_dtype(b, "src", _SCATTER, "src")
    if idx.dtype is not _D.INT32:
        raise b.fail(f"requires idx dtype INT32, got {idx.dtype}")
    if len(idx.shape) != len(src.shape):
        raise b.fail(f"requires idx rank {len(src.shape)}, got {shaped(idx)}")
    if not all_same(idx.shape, src.shape):
        raise b.fail(f"requires idx shape to match src shape, got {shaped(idx)} and {shaped(src)}")
    if len(out.shape) < 1:
        raise b.fail("requires output_tensor to have at least 1 dimension")
    if out.dtype is not src.dtype:
        raise b.fail(f"requires output_tensor dtype {src.dtype}, got {out.dtype}")
    return out


declare(
    "tile.mscatter",
    "in src: tile, in idx: tile, out output_tensor: tensor",
    _mscatter,
    "Write the elements of ``src`` into ``output_tensor`` at flat indices ``idx`` (INT32).",
    core=Core.VECTOR,
    spaces=vec("src", "idx"),
    reuses="output_tensor",
    channel=WriteChannel.Dma,
    pto=Pto("pto.mscatter", ("src", "idx"), out="output_tensor", form="mscatter"),
)


def _mgather_effect(kwargs: Mapping[str, Any]) -> ArgEffect:
    """The scratch is written by element gathers into Mat; elsewhere there is none."""
    staged = kwargs.get("target_memory") is _M.Mat and kwargs.get("coalesce", 0) == 1
    return ArgEffect.Write if staged else ArgEffect.Read


_MGATHER = (*_SELS, _D.BF16, _D.FP8E4M3FN, _D.FP8E5M2, _D.HF8)


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
    if b.dims("valid_shape"):
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
    valid = b.dims("valid_shape") or shape
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
    "in mem: tensor, in idx: tile|tensor, in scratch: tile|tensor?, in valid_shape: dims?, "
    "attr coalesce: Coalesce! = 'row', attr target_memory: MemorySpace = MemorySpace.Vec, "
    "attr gather_oob: GatherOob = 'undefined'",
    _mgather,
    "Gather from global memory: rows of ``mem`` (coalesce row) or flat elements (elem) at INT32 ``idx``.\n\n"
    "Into Vec with an index tile, into Mat with an index tensor; element gathers into Mat stage through ``scratch``. "
    "``gather_oob`` says what an index outside gives: undefined, clamp, wrap or zero.",
    core=Core.MOVE,
    result_space="target_memory",
    inplace_safe=False,
    effects={"scratch": _mgather_effect},
    channel=WriteChannel.Dma,
    pto=Pto("pto.mgather", ("mem", "idx", "scratch"), attrs={"coalesce": "coalesce", "gatherOob": "gather_oob"}, form="mgather"),
)

# Sorting.


def check_sort32(b: Bound) -> None:
    src, idx = b.type("src"), b.type("idx")
    if src.dtype not in FLOATS:
        raise b.fail(f"requires FP16 or FP32 src, got {shaped(src)}")
    if not idx.dtype.is_int() or not all_same(src.shape, idx.shape):
        raise b.fail(f"requires integer idx of src's shape, got {shaped(src)} and {shaped(idx)}")
    last = value(src.shape[-1])
    if last is not None and last % 32:
        raise b.fail(f"sorts blocks of 32: the last dimension must be a multiple of 32, got {shaped(src)}")


def pairs(b: Bound) -> tuple[list[Expr], list[Expr]]:
    """Shape and valid region of value-index pairs, twice (four times for FP16) as wide as the values."""
    src = b.type("src")
    factor = index_const(2 if src.dtype is _D.FP32 else 4)
    valid = valid_of(b, "src")
    return [*src.shape[:-1], times(src.shape[-1], factor)], [*valid[:-1], times(valid[-1], factor)]


def _sort32(b: Bound) -> Type:
    check_sort32(b)
    shape, valid = pairs(b)
    return tile_type(shape, b.type("src").dtype, valid, _M.Vec)


declare(
    "tile.sort32",
    "in src: tile, in idx: tile, out tmp: tile?",
    _sort32,
    "Sort each block of 32 elements in descending order to pairs of value and ``idx``.",
    spaces=vec("src", "idx", "tmp"),
    pto=Pto("pto.tsort32", ("src", "idx", "tmp")),
    **_VECTOR,
)


def check_block_len(b: Bound) -> None:
    known = value(b["block_len"])
    if known is not None and (known <= 0 or known % 64):
        raise b.fail(f"requires block_len to be a multiple of 64, got {known}")


def _mrgsort1(b: Bound) -> Type:
    check_dtype(b, "src", FLOATS, "src")
    check_block_len(b)
    return fresh_like(b.type("src"), None, valid_of(b, "src"))


declare(
    "tile.mrgsort_format1",
    "in src: tile, in block_len: scalar like INT32",
    _mrgsort1,
    "Merge each four sorted runs of ``block_len`` elements of value-index pairs to one.",
    spaces=vec("src"),
    pto=Pto("pto.tmrgsort", ("src", "block_len"), form="mrgsort"),
    **_VECTOR,
)


def merged(b: Bound) -> tuple[list[Expr], list[str]]:
    """The shape of merged runs, one after the other in the last dimension, and the runs' names."""
    names = [p.name for p in b.decl.args if p.name.startswith("src") and b[p.name] is not None]
    first = b.type(names[0])
    for name in names[1:]:
        other = b.type(name)
        if other.dtype is not first.dtype:
            raise b.fail(f"requires runs of matching dtype, got {shaped(first)} and {shaped(other)}")
        if not all_same(other.shape[:-1], first.shape[:-1]):
            raise b.fail(f"requires runs of matching rows, got {shaped(first)} and {shaped(other)}")
    total = first.shape[-1]
    for name in names[1:]:
        total = plus(total, b.type(name).shape[-1])
    return [*first.shape[:-1], total], names


def _mrgsort2(b: Bound) -> Type:
    check_dtype(b, "src0", FLOATS, "src0")
    shape, names = merged(b)
    wanted = [b.type(n) for n in names]
    if not all(all_same(t.valid_shape, t.shape) for t in wanted):
        raise b.fail("requires fully valid runs")
    return tile_type(shape, wanted[0].dtype, (), _M.Vec)



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
    for dim in shapes:
        if value(dim) is None:
            raise b.fail(
                f"requires shapes to be positive compile-time ConstInt, got {dim_text(dim)}. Pass a dynamic row count "
                "through valid_shape instead"
            )
        if (value(dim) or 0) <= 0:
            raise b.fail(f"requires shapes to be positive compile-time ConstInt, got {dim_text(dim)}")
    if valid and len(valid) != len(shapes):
        raise b.fail(f"requires valid_shape to have the same rank as shapes, got {dims_text(valid)}")
    for want, size in zip(valid, shapes):
        if not at_most(want, size) and value(want) is not None:
            raise b.fail(f"valid_shape {dims_text(valid)} provably exceeds physical shape extent {dim_text(size)}")
    if b["transpose"] and any(value(d) is None for d in valid):
        raise b.fail("does not support a dynamic valid_shape together with transpose")


ROW_COPY = (
    "in dst_offset: dims, in src_offset: dims, in shapes: dims, attr transpose: bool! = False, in valid_shape: dims?"
)
declare(
    "tile.gather_row",
    f"inout acc: tile, in src: tensor, {ROW_COPY}",
    _row_copy,
    "Load the window of ``src`` at ``src_offset`` into ``acc`` at ``dst_offset``, as columns when ``transpose``.",
    core=Core.MOVE,
    result_space="acc",
    reuses="acc",
    inplace_safe=False,
    pto=Pto("pto.tload", out="acc", form="gather_row"),
)

declare(
    "tile.mrgsort_format2",
    "in src0: tile, in src1: tile, in src2: tile?, in src3: tile?, out tmp: tile?, out executed: tile?, "
    "attr exhausted: bool = False",
    _mrgsort2,
    "Merge two to four sorted tiles of value-index pairs to one.",
    spaces=vec("src0", "src1", "src2", "src3", "tmp", "executed"),
    pto=Pto("pto.tmrgsort", ("src0", "src1", "src2", "src3", "tmp", "executed"), form="mrgsort"),
    **_VECTOR,
)

