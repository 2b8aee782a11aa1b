"""Tile operators that sort and merge pairs of value and index."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.types import Type
from .registry import Bound, Core, Pto, declare
from .rules import (
    FLOATS,
    all_same,
    check_dtype,
    fresh_like,
    plus,
    shaped,
    tile_type,
    times,
    valid_of,
    value,
)
from .tile_elementwise import vec

_M = MemorySpace
_D = DataType
_VECTOR: dict[str, Any] = {"core": Core.VECTOR, "result_space": _M.Vec}

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
    "in src: tile, in block_len: index",
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

