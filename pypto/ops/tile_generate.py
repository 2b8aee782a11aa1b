"""Tile operators that generate values, and selection by a packed mask."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import ConstFloat, ConstInt, Expr
from ..ir.types import Type
from .arguments import scalar_operand
from .registry import Bound, Core, Pto, declare
from .rules import (
    at_most,
    check_dtype,
    check_rank,
    dim_text,
    dims_text,
    dtype_names,
    fresh_like,
    same,
    shaped,
    static_shape,
    tile_type,
    valid_of,
    value,
)
from .tile_elementwise import vec

_M = MemorySpace
_D = DataType
_VECTOR: dict[str, Any] = {"core": Core.VECTOR, "result_space": _M.Vec}
_INDEX_DTYPES = (_D.INT16, _D.INT32, _D.UINT16, _D.UINT32)
PAYLOADS = (_D.INT8, _D.UINT8, _D.INT16, _D.UINT16, _D.INT32, _D.UINT32, _D.FP16, _D.FP32)
"""Elements of 1, 2 and 4 bytes that masks select and gathers move."""


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
        raise b.fail(f"leading dimensions must be 1, got {shape}: one row is filled", "repeat it with pl.col_expand")
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
    f"{SEQUENCE}, out* tmp: tile?",
    _ci,
    "One row of consecutive integers from ``start``, up or ``descending``. `SupplyScratch` makes ``tmp`` where the "
    "target works in scratch.",
    spaces=vec("tmp"),
    pto=Pto("pto.tci", ("start", "tmp"), attrs={"descending": "descending"}),
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

_TRI = (_D.INT8, *_INDEX_DTYPES, _D.UINT8, _D.FP16, _D.BF16, _D.FP32)


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
    pto=Pto("pto.ttri", ("diagonal",), attrs={"upperOrLower": "upper"}, form="generic"),
    **_VECTOR,
)

# Selection with a scalar.

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
    if not math.isfinite(scalar.value) or scalar.value != int(scalar.value):
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
    check_dtype(b, "src", PAYLOADS, "src")
    check_rank(b, "src", 2)
    check_rank(b, "tmp", 2)
    _check_mask(b)
    dtype = b.type("src").dtype
    b.values["scalar"] = _selected_scalar(b, _SIGNED.get(dtype) or dtype)
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

