"""Rearrangement, sequences and sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import OnlyOn, dtypes, item_size, row_major, same_dtype, scalar_of, valid_axis, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, vector_cost
from ..scratch import enough, merged_lists, on_a2a3, sequence, sorted_blocks, transposed
from ..spec import Run, Site, declare

_ANY = "i8 i16 i32 ui8 ui16 ui32 f16 bf16 f32"


def _transpose(site: Site) -> Run:
    def run(src: TileValue, dst: TileValue) -> None:
        rows, cols = src.valid
        if dst.valid != (cols, rows):
            raise PtoError(
                f"'pto.ttrans': {rows}x{cols} valid elements transpose to {cols}x{rows}, 'dst' has {dst.valid}"
            )
        dst.write(np.array(src.read()).T)

    return run


declare(
    "ttrans",
    "src ~tmp? -> dst",
    pipe="V",
    checks=(
        vec("src", "tmp", "dst"),
        same_dtype("dst", "src"),
        item_size("src", bytes=(1, 2, 4)),
        row_major("src"),
        same_dtype("src", "tmp"),
        on_a2a3(transposed),
    ),
    bind=_transpose,
    cost=vector_cost(4),
    doc="dst[j, i] = src[i, j].",
)


def _sequence(site: Site) -> Run:
    dtype = site.tile("dst").numpy
    step = -1 if site.attrs["descending"] else 1

    def run(start: int, dst: TileValue) -> None:
        rows, cols = dst.valid
        counted = int(start) + step * np.arange(rows * cols, dtype=np.int64)
        dst.write(counted.astype(dtype).reshape(rows, cols))

    return run


def _several_columns(site: Site) -> None:
    if site.tile("dst").cols == 1:
        raise PtoError("'pto.tci': 'dst' must have more than one column")


declare(
    "tci",
    "S:int ~tmp? -> dst",
    pipe="V",
    attrs="descending:bool=false",
    checks=(
        vec("tmp", "dst"),
        dtypes("dst", "i16 i32"),
        scalar_of("S", "dst", signed=True),
        row_major("dst"),
        _several_columns,
        enough,
    ),
    scratch=sequence,
    bits="int",
    bind=_sequence,
    cost=vector_cost(),
    doc="S, S+1, .. over the valid elements, row after row; S, S-1, .. when descending.",
)


def _rounds(site: Site) -> None:
    if site.attrs["rounds"] not in (7, 10):
        raise PtoError(f"'pto.trandom': 7 or 10 rounds, got {site.attrs['rounds']}")


def _random(site: Site) -> Run:
    """Text is checked, but no public page says which cipher it is: there is nothing to compute it by."""

    def run(*operands: object) -> None:
        raise PtoError(
            "'pto.trandom': the numbers are those of a device: its generator is not specified publicly",
            hint="run the kernel on a device, or give it random numbers as a tensor",
        )

    return run


declare(
    "trandom",
    "key0:scalar key1:scalar counter0:scalar counter1:scalar counter2:scalar counter3:scalar -> dst",
    pipe="V",
    attrs="rounds:int=10",
    checks=(OnlyOn("a5"), vec("dst"), dtypes("dst", "i32 ui32"), row_major("dst"), _rounds),
    bind=_random,
    cost=vector_cost(4),
    doc="Random 32-bit integers from a 64-bit key and a 128-bit counter, on a device.",
)


def _concat(site: Site) -> Run:
    def run(src0: TileValue, src1: TileValue, dst: TileValue) -> None:
        left, right = src0.valid, src1.valid
        if left[0] != right[0] or dst.valid != (left[0], left[1] + right[1]):
            raise PtoError(f"'pto.tconcat': {left} and {right} valid elements do not give {dst.valid}")
        dst.write(np.concatenate([src0.read(), src1.read()], axis=1))

    return run


declare(
    "tconcat",
    "src0 src1 -> dst",
    pipe="V",
    checks=(
        vec("src0", "src1", "dst"),
        same_dtype("dst", "src0", "src1"),
        dtypes("dst", "i8 i16 i32 f16 bf16 f32"),
        row_major("src0", "src1", "dst"),
        valid_axis("src0", "src1", 0),
        valid_axis("src0", "dst", 0),
    ),
    bind=_concat,
    cost=vector_cost(),
    doc="Columns of src0, then those of src1.",
)


def _triangle(site: Site) -> Run:
    dtype = site.tile("dst").numpy
    upper = site.attrs["upperOrLower"] == 1

    def run(diagonal: int, dst: TileValue) -> None:
        ones = np.ones(dst.valid, dtype)
        dst.write(np.triu(ones, diagonal) if upper else np.tril(ones, diagonal))

    return run


declare(
    "ttri",
    "diagonal:int -> dst",
    pipe="V",
    attrs="upperOrLower:int=0",
    checks=(vec("dst"), row_major("dst"), dtypes("dst", "i16 i32 ui16 ui32 f16 f32", _ANY)),
    bind=_triangle,
    cost=vector_cost(),
    doc="1 on one side of a diagonal and on it, 0 on the other: below for upperOrLower 0, above for 1.",
)


def _pairs(values: Array, indices: Array) -> Array:
    """Value and index pairs of 8 bytes each, as ``values``' elements: the value, zeros up to 4 bytes, the index."""
    width = 8 // values.dtype.itemsize
    packed = np.zeros((*values.shape, width), values.dtype)
    packed[..., 0] = values
    packed[..., width // 2 :] = np.ascontiguousarray(indices.astype(np.uint32)[..., None]).view(values.dtype)
    return packed.reshape(*values.shape[:-1], -1)


def _descending(values: Array) -> Array:
    """Order of values from largest to smallest along the last axis, equal ones as they stand."""
    return np.argsort(-values.astype(np.float64), axis=-1, kind="stable")


def _sort32(site: Site) -> Run:
    factor = 8 // site.tile("src").item

    def run(src: TileValue, idx: TileValue, dst: TileValue) -> None:
        rows, cols = src.valid
        if cols % 32 and not site.has("tmp"):
            raise PtoError(f"'pto.tsort32': {cols} columns are not whole blocks of 32; pass a tmp tile")
        if dst.type.rows < rows or dst.type.cols < cols * factor:
            raise PtoError(f"'pto.tsort32': 'dst' must hold {cols * factor} elements a row for {cols} pairs")
        values = src.read()
        indices = np.broadcast_to(idx.read_at(0, 0, 1 if idx.valid[0] == 1 else rows, cols), (rows, cols))
        out = np.empty((rows, cols * factor), values.dtype)
        for start in range(0, cols, 32):
            block, labels = values[:, start : start + 32], indices[:, start : start + 32]
            order = _descending(block)
            sorted_pairs = _pairs(np.take_along_axis(block, order, 1), np.take_along_axis(labels, order, 1))
            out[:, start * factor : start * factor + sorted_pairs.shape[1]] = sorted_pairs
        dst.write_at(0, 0, out)

    return run


def _whole_blocks(site: Site) -> None:
    src = site.tile("src")
    if src.v_col is not None and src.v_col % 32 == 0:
        return
    if not site.has("tmp"):
        if src.v_col is not None:
            raise PtoError(f"'pto.tsort32': {src.v_col} columns are not whole blocks of 32; pass a tmp tile")
        return


declare(
    "tsort32",
    "src idx ~tmp? -> dst",
    pipe="V",
    checks=(
        vec("src", "idx", "tmp", "dst"),
        same_dtype("dst", "src"),
        dtypes("src", "f16 f32"),
        dtypes("idx", "ui32"),
        row_major("src", "idx", "dst"),
        _whole_blocks,
        enough,
    ),
    scratch=sorted_blocks,
    bind=_sort32,
    cost=vector_cost(4, of="src"),
    doc="Blocks of 32 columns sorted from largest to smallest, as pairs of value and index, 8 bytes each.",
)


def _merge(site: Site) -> Run:
    return _merge_runs(site) if site.has("blockLen") else _merge_lists(site)


_MOST_GROUPS = 255


def _merge_runs(site: Site) -> Run:
    factor = 8 // site.tile("src").item

    def run(src: TileValue, *others: Any) -> None:
        length, dst = int(others[-3]), others[-2]
        cols = src.valid[1]
        if length % 64 or length <= 0 or cols % (4 * length) or not 0 < cols // (4 * length) <= _MOST_GROUPS:
            raise PtoError(
                f"'pto.tmrgsort': {cols} columns are not 1..{_MOST_GROUPS} groups of four blocks of {length}, "
                "a multiple of 64"
            )
        pairs = src.read().reshape(-1, 4 * length // factor, factor)
        order = _descending(pairs[..., 0])
        dst.write_at(0, 0, np.take_along_axis(pairs, order[..., None], 1).reshape(1, cols))

    return run


_LISTS = ("src", "src1", "src2", "src3", "tmp")


def _merge_lists(site: Site) -> Run:
    """The last tile is scratch; the others are sorted, so merging them is sorting them together."""
    factor, count = 8 // site.tile("src").item, sum(map(site.has, _LISTS)) - 1
    stops = site.attrs["exhausted"]

    def run(*values: Any) -> None:
        lists = [tile.read().reshape(-1, factor) for tile in values[:count]]
        pairs = np.concatenate(lists)
        order = _descending(pairs[:, 0])
        if stops:
            place = np.argsort(order)
            ends = np.cumsum([len(each) for each in lists])
            order = order[: int(place[ends - 1].min()) + 1]
        dst = values[-2]
        if dst.type.cols < pairs.size:
            raise PtoError(f"'pto.tmrgsort': {pairs.size} merged elements do not fit 'dst' of {dst.type.cols} columns")
        dst.write_at(0, 0, pairs[order].reshape(1, -1))

    return run


def _merge_form(site: Site) -> None:
    tiles = [name for name in _LISTS if site.has(name)]
    if site.has("blockLen") != (len(tiles) == 1) or site.has("blockLen") == site.has("executed"):
        raise PtoError(
            "'pto.tmrgsort' takes one tile and a blockLen, or two to four tiles and scratch with a vector of counts"
        )
    if len(tiles) == 2:
        raise PtoError("'pto.tmrgsort' of several tiles takes two to four and then scratch")
    for name in (*tiles, "dst"):
        if site.tile(name).rows != 1:
            raise PtoError(f"'pto.tmrgsort': '{name}' must have one row")
    if len(tiles) > 1:
        need = max(site.tile("dst").cols, sum(site.tile(name).cols for name in tiles[:-1]))
        if site.tile(tiles[-1]).cols < need:
            raise PtoError(f"'pto.tmrgsort': the scratch must have {need} columns, those of all the lists")


declare(
    "tmrgsort",
    "src src1? src2? src3? tmp? blockLen?:int -> dst executed?:scalar",
    pipe="V",
    attrs="exhausted:bool=false",
    checks=(
        vec(*_LISTS, "dst"),
        same_dtype("dst", *_LISTS),
        dtypes("src", "f16 f32"),
        row_major(*_LISTS, "dst"),
        _merge_form,
    ),
    scratch=merged_lists,
    bind=_merge,
    cost=vector_cost(4),
    doc="Groups of four sorted blocks of pairs merged, largest first, blockLen counting elements; or two to four "
    "sorted tiles merged, up to the end of one of them when exhausted. How many were taken of each is not modelled.",
)
