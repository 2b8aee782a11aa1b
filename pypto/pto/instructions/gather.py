"""Gathers and scatters: by index, by byte offset, by a repeating pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import dtypes, item_size, row_major, same_dtype, same_item_size, same_valid, scalar_of, valid_axis, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, to_scalar, vector_cost
from ..scratch import covers, like
from ..shapes import Tile
from ..spec import Run, Site, declare


def _in_buffer(site: Site, index: Array, limit: int) -> None:
    bad = (index < 0) | (index >= limit)
    if bad.any():
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': index {int(index[bad][0])} is outside 'src', which has {limit} elements"
        )


def _pick(site: Site, src: TileValue, index: Array) -> Array:
    """Elements at linear positions of the whole buffer, row after row; only the rows asked for are read."""
    width = src.type.cols
    _in_buffer(site, index, src.type.rows * width)
    rows, cols = np.divmod(index, width)
    return src.read_at(0, 0, int(rows.max(initial=0)) + 1, width)[rows, cols]


PATTERNS: dict[str, tuple[int, int]] = {
    "P1111": (1, 0),
    "P0101": (2, 0),
    "P1010": (2, 1),
    "P0001": (4, 0),
    "P0010": (4, 1),
    "P0100": (4, 2),
    "P1000": (4, 3),
}
"""Of how many elements a pattern takes one, and which: patterns are read from the right."""


def _one_form(site: Site) -> None:
    forms = {"indices": _INDEX_CHECKS, "kValue": _COMPARE_CHECKS, "maskPattern": _MASK_CHECKS}
    named = [name for name in forms if site.has(name) or (name == "maskPattern" and site.attrs[name] is not None)]
    if len(named) != 1:
        raise PtoError("'pto.tgather' takes one of indices, a kValue and a maskPattern")
    if site.has("cdst") != (named == ["kValue"]):
        raise PtoError("'pto.tgather' has a 'cdst' when it compares with a kValue, and only then")
    for check in forms[named[0]]:
        check(site)


def _gaps(dst: Tile, valid: int) -> PtoError:
    return PtoError(
        f"'pto.tgather': 'dst' must have all its {dst.cols} columns valid, got {valid}",
        hint="gather the whole tile, then narrow it: pl.set_validshape(tile, rows, columns)",
    )


def _dense(site: Site) -> None:
    """The library writes the elements one after the other: no gap between the rows of ``dst``."""
    dst = site.tile("dst")
    if dst.v_col not in (None, 0, dst.cols):
        raise _gaps(dst, dst.v_col)


def _check_gaps(dst: TileValue) -> None:
    rows, cols = dst.valid
    if rows and cols not in (0, dst.type.cols):
        raise _gaps(dst.type, cols)


def _scratch(site: Site) -> None:
    if site.arch != "a2a3":
        return
    if not site.has("tmp"):
        raise PtoError("'pto.tgather' needs 'tmp' to gather by index")
    like("indices")(site)
    covers("indices")(site)


_INDEX_CHECKS = (
    same_dtype("dst", "src"),
    _dense,
    _scratch,
    dtypes("dst", "i16 i32 ui16 ui32 f16 f32", "i8 i16 i32 ui16 ui32 f16 f32"),
    dtypes("indices", "i32", "i16 i32"),
    row_major("indices"),
    same_valid("dst", "indices"),
)
def _comparison(site: Site) -> None:
    mode = site.attrs["cmpMode"]
    if not site.has("tmp"):
        raise PtoError("'pto.tgather' needs 'tmp' when it compares with a kValue")
    if mode not in ("eq", "gt"):
        raise PtoError(f"'pto.tgather' compares for eq or gt, not {mode}")
    if mode == "gt" and site.arch == "a2a3" and site.tile("src").dtype == "i32":
        raise PtoError("'pto.tgather' compares i32 elements for eq only on a2a3")


_COMPARE_CHECKS = (
    dtypes("src", "f16 f32 i32", "i16 i32 f16 f32"),
    dtypes("dst", "i32"),
    dtypes("cdst", "i32"),
    scalar_of("kValue", "src"),
    row_major("cdst", "tmp"),
    _comparison,
)
def _masked_size(site: Site) -> None:
    item_size("src", "dst", bytes=(2, 4) if site.arch == "a2a3" else (1, 2, 4))(site)


_MASK_CHECKS = (_masked_size, same_item_size("src", "dst"), _dense)


def _gather(site: Site) -> Run:
    if site.attrs["maskPattern"] is not None:
        return _gather_pattern(site)
    if site.has("kValue"):
        return _gather_matches(site)

    def run(src: TileValue, indices: TileValue, value: None, dst: TileValue, counts: None) -> None:
        if indices.valid != dst.valid:
            raise PtoError(f"'pto.tgather': {indices.valid} indices for {dst.valid} valid elements of 'dst'")
        _check_gaps(dst)
        dst.write(_pick(site, src, indices.read().astype(np.int64)))

    return run


def _gather_matches(site: Site) -> Run:
    compare = np.equal if site.attrs["cmpMode"] == "eq" else np.greater
    dtype, offset = site.tile("src").numpy, site.attrs["offset"]

    def run(src: TileValue, indices: None, value: Any, dst: TileValue, counts: TileValue) -> None:
        hits = compare(src.read(), to_scalar(value, dtype))
        found, rows, room = hits.sum(axis=1, dtype=np.int32), src.valid[0], dst.valid[1]
        if dst.valid[0] < rows or counts.valid[1] < rows or counts.valid[0] < 1:
            raise PtoError(f"'pto.tgather': {rows} rows, for which 'dst' has {dst.valid} and 'cdst' {counts.valid}")
        if found.max(initial=0) > room:
            row = int(found.argmax())
            raise PtoError(f"'pto.tgather': row {row} has {found[row]} matches, and 'dst' has room for {room}")
        for row in np.flatnonzero(found).tolist():
            dst.write_at(row, 0, (np.flatnonzero(hits[row])[None] + offset).astype(np.int32))
        counts.write_at(0, 0, found[None])

    return run


def _gather_pattern(site: Site) -> Run:
    step, first = PATTERNS[site.attrs["maskPattern"]]
    by_rows = site.attrs["axis"] == "col"
    dtype = site.tile("dst").numpy

    def run(src: TileValue, indices: None, value: None, dst: TileValue, counts: None) -> None:
        data = src.read()
        taken = data[first::step] if by_rows else data[:, first::step]
        if taken.shape != dst.valid:
            raise PtoError(f"'pto.tgather': the pattern takes {taken.shape} elements, 'dst' has {dst.valid}")
        _check_gaps(dst)
        dst.write(np.ascontiguousarray(taken).view(dtype))

    return run


declare(
    "tgather",
    "src indices? kValue?:scalar ~tmp? -> dst cdst?",
    pipe="V",
    attrs="maskPattern?:mask_pattern axis?:str cmpMode:cmp=eq offset:int=0",
    checks=(vec("src", "indices", "tmp", "dst", "cdst"), row_major("src", "dst"), _one_form),
    bind=_gather,
    cost=vector_cost(8),
    doc="dst[i, j] = src at position indices[i, j] of its buffer, row after row; or the elements a pattern takes, "
    "their bits unchanged; or, row by row, offset plus the columns of src that are equal to or greater than kValue, "
    "their number in cdst: a row of dst has room for them.",
)


_BLOCK = 32
"""Bytes of the blocks `tgatherb` moves."""


def _block_shape(site: Site) -> None:
    """Each offset names a block: ``dst`` is a block wide for every column of ``offsets``."""
    offsets, dst = site.tile("offsets"), site.tile("dst")
    want = None if offsets.v_col is None else offsets.v_col * (_BLOCK // dst.item)
    if want is not None and dst.v_col is not None and dst.v_col != want:
        raise PtoError(f"'pto.tgatherb': {offsets.v_col} blocks fill {want} valid columns, 'dst' has {dst.v_col}")


def _gather_blocks(site: Site) -> Run:
    item = site.tile("src").item
    block = _BLOCK // item

    def run(src: TileValue, offsets: TileValue, dst: TileValue) -> None:
        rows, cols = offsets.valid
        if dst.valid != (rows, cols * block):
            raise PtoError(f"'pto.tgatherb': {rows}x{cols} blocks do not fill the {dst.valid} valid elements of 'dst'")
        offset = offsets.read().astype(np.int64)
        if (offset % _BLOCK).any():
            raise PtoError(f"'pto.tgatherb': offsets must be multiples of {_BLOCK} bytes")
        places = (offset[..., None] // item + np.arange(block)).reshape(rows, -1)
        dst.write(_pick(site, src, places))

    return run


declare(
    "tgatherb",
    "src offsets -> dst",
    pipe="V",
    checks=(
        vec("src", "offsets", "dst"),
        same_dtype("dst", "src"),
        item_size("dst", bytes=(1, 2, 4)),
        dtypes("offsets", "i32 ui32"),
        row_major("src", "offsets", "dst"),
        valid_axis("dst", "offsets", 0),
        _block_shape,
    ),
    bind=_gather_blocks,
    cost=vector_cost(8),
    doc="Blocks of 32 bytes at byte offsets into src's buffer, side by side.",
)

_SCATTERED = "i8 i16 i32 ui8 ui16 ui32 f16 bf16 f32"


def _one_scatter(site: Site) -> None:
    if site.has("indexes") == (site.attrs["maskPattern"] is not None):
        raise PtoError("'pto.tscatter' takes either indexes or a maskPattern")
    for check in _SCATTER_CHECKS if site.has("indexes") else (row_major("src", "dst"),):
        check(site)


def _index_width(site: Site) -> None:
    size, index = site.tile("dst").item, site.tile("indexes").item
    if index != max(2, size):
        raise PtoError(f"'pto.tscatter': {size}-byte elements take {max(2, size)}-byte indexes, not {index}-byte ones")


_SCATTER_CHECKS = (
    dtypes("dst", "i8 i16 i32 f16 bf16 f32"),
    dtypes("indexes", "i16 i32"),
    same_valid("src", "indexes"),
    _index_width,
)


def _scatter(site: Site) -> Run:
    if site.attrs["maskPattern"] is not None:
        return _scatter_pattern(site)
    kind = site.tile("dst")
    width = kind.cols
    limit = kind.rows * width

    def run(src: TileValue, indexes: TileValue, dst: TileValue) -> None:
        if indexes.valid != src.valid:
            raise PtoError(f"'pto.tscatter': {indexes.valid} indexes for {src.valid} valid elements of 'src'")
        places = indexes.read().astype(np.int64).ravel()
        bad = (places < 0) | (places >= limit)
        if bad.any():
            raise PtoError(f"'pto.tscatter': index {places[bad][0]} is outside 'dst', which has {limit} elements")
        whole = np.zeros(limit, kind.numpy)
        data = src.read().ravel()
        for place, element in zip(places.tolist(), data, strict=True):
            whole[place] = element
        dst.write_at(0, 0, whole.reshape(kind.rows, width))

    return run


def _scatter_pattern(site: Site) -> Run:
    step, first = PATTERNS[site.attrs["maskPattern"]]
    by_rows = site.attrs["axis"] == "col"
    kind = site.tile("dst")

    def run(src: TileValue, indexes: None, dst: TileValue) -> None:
        rows, cols = src.valid
        want = (rows * step, cols) if by_rows else (rows, cols * step)
        if dst.valid != want:
            raise PtoError(f"'pto.tscatter': {src.valid} elements spread to {want}, 'dst' has {dst.valid}")
        whole = np.zeros((kind.rows, kind.cols), kind.numpy)
        part = whole[: want[0], : want[1]]
        if by_rows:
            part[first::step] = src.read()
        else:
            part[:, first::step] = src.read()
        dst.write_at(0, 0, whole)

    return run


declare(
    "tscatter",
    "src indexes? -> dst",
    pipe="V",
    attrs="maskPattern?:mask_pattern axis?:str",
    checks=(vec("src", "indexes", "dst"), same_dtype("dst", "src"), dtypes("dst", _SCATTERED), _one_scatter),
    bind=_scatter,
    cost=vector_cost(8),
    doc="src's elements at linear positions of dst's buffer, zeros elsewhere; or spread along columns (axis row) or "
    "rows (axis col) where a pattern takes them, zeros elsewhere.",
)
