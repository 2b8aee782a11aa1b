"""Tile operators that repeat a column, a row or a scalar over a tile."""

from __future__ import annotations

from ..dtypes import DataType
from ..ir.enums import MemorySpace, TileLayout
from ..ir.types import Type
from .registry import Bound, Core, Pto, declare
from .rules import (
    check_dtype,
    check_rank,
    check_same_dtype,
    dim_text,
    exceeds,
    fresh_like,
    layout_of,
    same,
    shaped,
    valid_of,
    value,
)
from .tile_elementwise import vec

_D = DataType
ADD_DTYPES = (_D.INT8, _D.INT16, _D.INT32, _D.FP16, _D.FP32)
ARITHMETIC = {
    "add": "tile + vector",
    "sub": "tile - vector",
    "mul": "tile * vector",
    "div": "tile / vector",
    "max": "the greater of tile and vector",
    "min": "the smaller of tile and vector",
    "expdif": "exp(tile - vector)",
}


def _row_add(b: Bound) -> Type:
    """Addition takes exact operands: the carrier is ``[M, 1]``, or row major with 32 bytes of copies in each row."""
    main, row = b.type("tile"), b.type("row_vec")
    if row.dtype is not main.dtype:
        raise b.fail(f"requires src0 and src1 to have the same dtype, got {shaped(main)} and {shaped(row)}",
                     f"cast one: pl.cast(row_vec, pl.{main.dtype.name})")  # fmt: skip
    check_dtype(b, "tile", ADD_DTYPES)
    check_rank(b, "tile", 2)
    check_rank(b, "row_vec", 2)
    if layout_of(main)[0] is not TileLayout.row_major:
        raise b.fail(f"requires src0 effective blayout to be row_major, got {layout_of(main)[0].name}")
    rows, width = valid_of(b, "row_vec")
    if not same(rows, valid_of(b, "tile")[0]):
        raise b.fail(
            f"requires src1 valid row extent to match src0/dst: {dim_text(rows)} is not provably "
            f"{dim_text(valid_of(b, 'tile')[0])}",
            "give both the same valid rows",
        )
    packed = layout_of(row)[0] is TileLayout.row_major
    wanted = 32 // main.dtype.get_byte() if packed else 1
    if value(width) != wanted:
        how = "a row-major vector holds 32 bytes of copies a row" if packed else "a column vector is [M, 1]"
        raise b.fail(f"requires src1's valid last dimension to be {wanted} ({how}), got {dim_text(width)}")
    return fresh_like(main, None, valid_of(b, "tile"))


def _row(b: Bound) -> Type:
    main, row = b.type("tile"), b.type("row_vec")
    check_same_dtype(b, "tile", "row_vec")
    _check_column(b, row)
    if exceeds(main.shape[-2], row.shape[-2]):
        raise b.fail(f"requires row_vec to have the tile's rows, got {shaped(main)} and {shaped(row)}")
    region, have = list(valid_of(b, "tile")), valid_of(b, "row_vec")[-2]
    if exceeds(region[-2], have):
        region[-2] = have
    return fresh_like(main, None, region)


def _check_column(b: Bound, row: object) -> None:
    shape = b.type("row_vec").shape
    if len(shape) < 2 or len(b.type("tile").shape) != len(shape):
        raise b.fail(f"requires row_vec [M, 1] beside tile [M, N], got {shaped(b.type('tile'))} and {shaped(row)}")
    width = value(shape[-1])
    packed = 32 // b.type("row_vec").dtype.get_byte()
    if width is not None and width not in (1, packed):
        raise b.fail(
            f"requires row_vec [M, 1], got {shaped(row)}",
            "pl.col_expand_* takes a [1, N] vector; two full tiles need none",
        )


def _col(b: Bound) -> Type:
    main, col = b.type("tile"), b.type("col_vec")
    check_same_dtype(b, "tile", "col_vec")
    if len(col.shape) != len(main.shape) or len(col.shape) < 2:
        raise b.fail(f"requires col_vec [1, N] beside tile [M, N], got {shaped(main)} and {shaped(col)}")
    if value(col.shape[-2]) not in (1, None):
        raise b.fail(
            f"requires col_vec [1, N], got {shaped(col)}",
            "pl.row_expand_* takes an [M, 1] vector; two full tiles need none",
        )
    if not same(col.shape[-1], main.shape[-1]):
        raise b.fail(f"requires col_vec to have the tile's columns, got {shaped(main)} and {shaped(col)}")
    region, have = list(valid_of(b, "tile")), valid_of(b, "col_vec")[-1]
    if exceeds(region[-1], have):
        region[-1] = have
    return fresh_like(main, None, region)


for _name, _what in ARITHMETIC.items():
    declare(
        f"tile.row_expand_{_name}",
        "in tile: tile, in row_vec: tile, out tmp: tile?",
        _row_add if _name == "add" else _row,
        f"Row by row, {_what}, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional "
        "scratch.",
        core=Core.VECTOR,
        spaces=vec("tile", "row_vec", "tmp"),
        result_space=MemorySpace.Vec,
        same_valid=True,
        pto=Pto(f"pto.trowexpand{_name}", ("tile", "row_vec", "tmp")),
    )
    declare(
        f"tile.col_expand_{_name}",
        "in tile: tile, in col_vec: tile",
        _col,
        f"Column by column, {_what}, where vector is that column's element of ``col_vec`` ``[1, N]``.",
        core=Core.VECTOR,
        spaces=vec("tile", "col_vec"),
        result_space=MemorySpace.Vec,
        same_valid=True,
        pto=Pto(f"pto.tcolexpand{_name}", ("tile", "col_vec")),
    )

declare(
    "tile.row_expand",
    "in tile: tile, in row_vec: tile",
    _row,
    "A tile of ``tile``'s shape whose rows repeat that row's element of ``row_vec`` ``[M, 1]``.",
    core=Core.VECTOR,
    spaces=vec("tile", "row_vec"),
    result_space=MemorySpace.Vec,
    same_valid=True,
    pto=Pto("pto.trowexpand", ("row_vec",)),
)
declare(
    "tile.col_expand",
    "in tile: tile, in col_vec: tile",
    _col,
    "A tile of ``tile``'s shape whose every row is ``col_vec`` ``[1, N]``.",
    core=Core.VECTOR,
    spaces=vec("tile", "col_vec"),
    result_space=MemorySpace.Vec,
    same_valid=True,
    pto=Pto("pto.tcolexpand", ("col_vec",)),
)


def _expands(b: Bound) -> Type:
    return fresh_like(b.type("target"), None, valid_of(b, "target"))


declare(
    "tile.expands",
    "in target: tile, in scalar: scalar like target",
    _expands,
    "A tile of ``target``'s shape, dtype and valid region filled with ``scalar``.",
    core=Core.VECTOR,
    spaces=vec("target"),
    result_space=MemorySpace.Vec,
    pto=Pto("pto.texpands", ("scalar",)),
)
