"""Histograms, joins by counts, and element choices that keep their indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.types import Type
from .registry import Bound, Core, OpError, Pto, declare
from .rules import (
    all_same,
    check_dtype,
    check_rank,
    check_same_dtype,
    dims_text,
    plus,
    same,
    shaped,
    tile_type,
    valid_of,
    value,
)
from .tile_elementwise import check_same_shape, vec

_D = DataType
_M = MemorySpace
_VECTOR: dict[str, Any] = {"core": Core.VECTOR}


def _histogram(b: Bound) -> Type:
    check_rank(b, "tile", 2)
    check_rank(b, "index", 2)
    width = check_dtype(b, "tile", (_D.UINT16, _D.UINT32)).get_byte()
    check_dtype(b, "index", (_D.UINT8,))
    byte = b["byte"]
    if not 0 <= byte < width:
        raise b.fail(f"counts byte 0..{width - 1} of {b.type('tile').dtype}, got byte={byte}")
    rows, columns = valid_of(b, "tile")
    have = valid_of(b, "index")
    if width == 2 and not (value(b.type("index").shape[1]) == 1 and same(have[0], rows)):
        raise b.fail(f"requires index [M, 1], the byte above of each row, got {shaped(b.type('index'))}")
    above = 3 - byte
    if width == 4 and above and not (value(have[0]) == above and same(have[1], columns)):
        raise b.fail(
            f"of byte {byte} of UINT32 requires index with {above} valid rows, the bytes above from the highest, and "
            f"the columns of the tile, got {shaped(b.type('index'))}"
        )
    bins = index_const(256)
    return tile_type([b.type("tile").shape[0], bins], _D.UINT32, [rows, bins], _M.Vec)


declare(
    "tile.histogram",
    "in tile: tile, in index: tile, attr byte: int = 1",
    _histogram,
    "Row by row, how often each value of byte ``byte`` (0 lowest) occurs, in 256 UINT32 columns (Ascend950).\n\n"
    "Only elements whose bytes above are those of ``index`` count: none for the highest byte. For UINT16 tiles "
    "``index`` is a UINT8 column ``[M, 1]``; for UINT32 it has a row for each byte above, the highest first, "
    "the same for every row.",
    spaces=vec("tile", "index"),
    result_space=_M.Vec,
    pto=Pto("pto.thistogram", ("tile", "index"), attrs={"byte": "byte"}),
    **_VECTOR,
)


def _concat_idx(b: Bound) -> Type:
    left, right = b.type("src0"), b.type("src1")
    check_same_dtype(b, "src0", "src1")
    check_same_dtype(b, "count0", "count1")
    if b.type("count0").dtype != _D.INT8:
        raise b.fail(
            f"takes counts in INT8, got {b.type('count0').dtype}: the instruction divides wider ones by their size",
            hint="pl.cast the counts to pl.INT8, or load them so",
        )
    for name in ("src0", "src1", "count0", "count1"):
        check_rank(b, name, 2)
        if not same(valid_of(b, name)[0], valid_of(b, "src0")[0]):
            raise b.fail(f"requires the same valid rows, got {shaped(left)} and {name} {shaped(b.type(name))}")
    if not same(left.shape[0], right.shape[0]):
        raise b.fail(f"row count must match, got {shaped(left)} and {shaped(right)}")
    rows, columns = valid_of(b, "src0")
    shape = [left.shape[0], plus(left.shape[1], right.shape[1])]
    return tile_type(shape, left.dtype, [rows, plus(columns, valid_of(b, "src1")[1])], _M.Vec)


declare(
    "tile.concat_idx",
    "in src0: tile, in src1: tile, in count0: tile, in count1: tile",
    _concat_idx,
    "Row by row, the first ``count0`` columns of ``src0`` and then the first ``count1`` of ``src1``.\n\n"
    "The counts are the first column of row-major INT8 tiles; what they leave of a row is not written.",
    spaces=vec("src0", "src1", "count0", "count1"),
    result_space=_M.Vec,
    pto=Pto("pto.tconcatidx", ("src0", "src1", "count0", "count1")),
    **_VECTOR,
)


def _contains(outer: Sequence[Expr], inner: Sequence[Expr]) -> bool:
    pairs = [(value(o), value(i)) for o, i in zip(outer, inner)]
    known = all(o is not None and i is not None and o >= i for o, i in pairs)
    return known or all(same(o, i) for o, i in zip(outer, inner))


def _part_arg(b: Bound) -> Type:
    values, indices = ("lhs", "rhs"), ("lhs_index", "rhs_index", "index")
    check_same_dtype(b, *values)
    check_dtype(b, "lhs", (_D.FP16, _D.FP32))
    check_same_dtype(b, *indices)
    check_dtype(b, "index", (_D.INT32, _D.UINT32))
    check_same_shape(b, *values, *indices)
    left, right = valid_of(b, "lhs"), valid_of(b, "rhs")
    for name, other in (("lhs", "lhs_index"), ("rhs", "rhs_index")):
        if not all_same(valid_of(b, name), valid_of(b, other)):
            raise b.fail(f"requires {other} valid where {name} is, got {shaped(b.type(other))}")
    region = left if _contains(left, right) else right if _contains(right, left) else None
    if region is None:
        raise b.fail(
            f"requires one operand's valid region to contain the other's, got {shaped(b.type('lhs'))} and "
            f"{shaped(b.type('rhs'))}"
        )
    if not all_same(valid_of(b, "index"), region):
        raise _index_region(b, region)
    return tile_type(b.type("lhs").shape, b.type("lhs").dtype, region, _M.Vec)


def _index_region(b: Bound, region: Sequence[Expr]) -> OpError:
    return b.fail(
        f"requires index valid where the result is, {dims_text(region)}, got {shaped(b.type('index'))}",
        "create it with that valid_shape",
    )


for _name, _what in (("part_argmax", "greater"), ("part_argmin", "smaller")):
    declare(
        f"tile.{_name}",
        "in lhs: tile, in rhs: tile, in lhs_index: tile, in rhs_index: tile, out index: tile",
        _part_arg,
        f"Element by element, the {_what} of lhs and rhs, or the one there is; its index goes into ``index``.\n\n"
        "Of equal elements the second is taken. Indices are INT32 or UINT32 tiles beside their values.",
        spaces=vec("lhs", "rhs", "lhs_index", "rhs_index", "index"),
        result_space=_M.Vec,
        row_major=True,
        pure=False,
        pto=Pto(f"pto.t{_name.replace('_', '')}", ("lhs", "rhs", "lhs_index", "rhs_index"), form="part_arg"),
        **_VECTOR,
    )
