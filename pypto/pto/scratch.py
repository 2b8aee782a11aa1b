"""Rules on the scratch operand ``tmp``: the 910B's library works in it and checks little, the 950's does not use it.

Where valid extents are known only at run time, scratch must do for the whole tile.
"""

from __future__ import annotations

from pypto.backend.scratch import narrowing_bytes, sequence_bytes

from .checks import row_major, same_dtype
from .elements import data_type
from .errors import PtoError
from .shapes import Tile
from .spec import Check, Room, Site

_BLOCK = 32
_REPEAT = 256


def on_a2a3(*rules: Check) -> Check:
    """Rules for ``tmp`` where there is one and the 910B's library uses it."""

    def check(site: Site) -> None:
        if site.arch == "a2a3" and site.has("tmp"):
            for rule in rules:
                rule(site)

    return check


def extents(tile: Tile) -> tuple[int, int]:
    """Valid rows and columns, all where they are unknown."""
    return (
        tile.rows if tile.v_row is None else tile.v_row,
        tile.cols if tile.v_col is None else tile.v_col,
    )


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)


def _small(site: Site, need: str) -> PtoError:
    tmp = site.tile("tmp")
    rows, cols = extents(tmp)
    return PtoError(
        f"'pto.{site.spec.mnemonic}': 'tmp' needs {need}, got {tmp.rows}x{tmp.cols} {tmp.dtype} "
        f"with {rows}x{cols} valid",
        hint="make scratch for it with pl.create_tile(shape, dtype)",
    )


def like(name: str) -> Check:
    """``tmp`` has the element type of an operand and its rows one after the other."""
    rules = (same_dtype(name, "tmp"), row_major("tmp"))

    def check(site: Site) -> None:
        for rule in rules:
            rule(site)

    return check


def at_least(rows: int, of: str = "dst") -> Check:
    """``rows`` valid rows, as wide as the valid part of an operand."""

    def check(site: Site) -> None:
        width = extents(site.tile(of))[1]
        have = extents(site.tile("tmp"))
        if have[0] < rows or have[1] < width:
            raise _small(site, f"{rows} valid row{'s' * (rows > 1)} of {width} columns")

    return check


def covers(name: str) -> Check:
    """As many rows and columns as are valid of an operand."""

    def check(site: Site) -> None:
        rows, cols = extents(site.tile(name))
        tmp = site.tile("tmp")
        if tmp.rows < rows or tmp.cols < cols:
            raise _small(site, f"{rows}x{cols} elements, those of '{name}'")

    return check


def _room(site: Site, bytes: int, why: str) -> None:
    if site.tile("tmp").nbytes < bytes:
        raise _small(site, f"{bytes} bytes, {why}")


_MOST_ROWS = 8192


def _row_bytes(rows: int) -> int:
    return min(_ceil(rows, 8) * _REPEAT, 30 * _REPEAT)


def row_copies(site: Site) -> None:
    """`TROWEXPAND*`: the value of each row, spread over a block of 32 bytes; eight rows, 240 at most, a repeat."""
    rows = extents(site.tile("dst"))[0]
    for name in ("src0", "src1"):
        if site.tile(name).blayout == "col_major":
            _room(site, _row_bytes(rows), f"a block for each of {rows} rows")
            return
    raise PtoError(f"'pto.{site.spec.mnemonic}': 'tmp' goes with a column, whose rows it spreads; leave it out")


def _stride(columns: int, item: int) -> int:
    """Elements of a row in which maxima of repeats, and their places, are kept."""
    block, repeats = _BLOCK // item, _ceil(columns, _REPEAT // item)
    return (_ceil(repeats * 2, block) + _ceil(repeats, block)) * block


def _second_stride(columns: int, item: int) -> int:
    """The same for rows of more repeats than a repeat has elements, which are reduced twice."""
    block, repeat = _BLOCK // item, _REPEAT // item
    first = _ceil(columns, repeat)
    second = _ceil(first, repeat)
    end = _ceil(first, block) * block + _ceil(second * 2, block) * block
    return max(_ceil(first * 2, block) * block, end) + 2


def row_places(site: Site) -> None:
    """`TROWARGMAX` and `TROWARGMIN` of one row more than a repeat: the maxima of the repeats of each row."""
    src, tmp = site.tile("src"), site.tile("tmp")
    rows, cols = extents(src)
    repeat = _REPEAT // src.item
    if (tmp.rows, tmp.cols) == (src.rows, src.cols) or cols <= repeat:
        return
    stride = _stride(cols, src.item) if cols <= repeat * repeat else _second_stride(cols, src.item)
    if tmp.rows != src.rows or extents(tmp)[1] < stride:
        raise _small(site, f"the {src.rows} rows of 'src' and {stride} columns, or its shape")


def column_places(site: Site) -> None:
    """`TCOLARGMAX` and `TCOLARGMIN`: the row, and for 16 bits its maxima and their places, a repeat at a time."""
    src, tmp = site.tile("src"), site.tile("tmp")
    if tmp.rows >= src.rows and tmp.cols >= src.cols:
        return
    _, cols = extents(src)
    block, repeat = _BLOCK // src.item, _REPEAT // src.item
    gap = repeat if cols >= repeat else _ceil(cols, block) * block
    need = gap * (3 if src.item == 2 else 1)
    if tmp.rows * tmp.cols < need:
        raise _small(site, f"{need} elements, or the shape of 'src'")


def transposed(site: Site) -> None:
    """`TTRANS` in blocks, where the rows of both tiles are whole ones: a row for each column."""
    src, dst = site.tile("src"), site.tile("dst")
    lines, block = (32 if src.item == 1 else 16), _BLOCK // src.item
    if dst.cols % lines or src.cols % block or src.cols // block > 255:
        return
    rows, cols = extents(src)
    _room(site, cols * _ceil(rows, lines) * lines * src.item, f"the {rows}x{cols} elements of 'src' in whole blocks")


# What an instruction must be given: `Room`s.


def _words(nbytes: int) -> Room | None:
    return Room("", 1, _ceil(nbytes, _BLOCK) * _BLOCK // 4) if nbytes else None


def sequence(site: Site) -> Room | None:
    """`TCI`: parts of the sequence in f32."""
    dtype = data_type(site.tile("dst").dtype)
    return _words(sequence_bytes(dtype)) if site.arch == "a2a3" and dtype is not None else None


def narrowed(site: Site) -> Room | None:
    """`TCVT` that keeps the low bits of what does not fit: the elements as i32."""
    src = site.tile("src")
    source, target = data_type(src.dtype), data_type(site.tile("dst").dtype)
    if site.arch != "a2a3" or source is None or target is None or site.attrs["satmode"] == "ON":
        return None
    return _words(narrowing_bytes(source, target, extents(src)[0], src.v_col, src.cols))


def mask_words(site: Site) -> Room | None:
    """`TSEL`: the mask of a repeat, 128 bits."""
    return Room("ui32", 1, _BLOCK // 4) if site.arch == "a2a3" else None


def one_row(site: Site) -> Room | None:
    """`TSELS`: the scalar, for which the assembler wants a row."""
    src = site.tile("src")
    return Room(src.dtype, 1, src.cols) if site.arch == "a2a3" else None


def like_source(site: Site) -> Room | None:
    """`TQUANT`: the rounded elements."""
    src = site.tile("src")
    return Room(src.dtype, src.rows, src.cols, like_source=True) if site.arch == "a2a3" else None


_MOST_COPIED = 8160
"""A row up to here (elements on the 910B, bytes on the 950) is copied whole to be padded, else its last block."""


def sorted_blocks(site: Site) -> Room | None:
    """`TSORT32` of rows that are not known to be whole blocks of 32: the row. The 910B's assembler wants all rows."""
    src = site.tile("src")
    if src.v_col is not None and src.v_col % 32 == 0 and not (site.has("tmp") and site.arch == "a2a3"):
        return None
    if site.arch == "a2a3":
        return Room(src.dtype, src.rows, src.cols)
    cols = extents(src)[1]
    return Room(src.dtype, 1, _ceil(cols, 32) * 32 if cols * src.item <= _MOST_COPIED else 32)


def merged_lists(site: Site) -> Room | None:
    """`TMRGSORT` of several lists: all of them, one after the other."""
    lists = [site.tile(name) for name in ("src", "src1", "src2", "src3") if site.has(name)]
    if site.has("blockLen"):
        return None
    return Room(lists[0].dtype, 1, max(site.tile("dst").cols, sum(each.cols for each in lists)))


def row_blocks(site: Site) -> Room | None:
    """`TROWEXPAND*` that is given scratch: `row_copies`, where rows are known only at run time all there may be."""
    dst = site.tile("dst")
    if site.arch != "a2a3" or not site.has("tmp"):
        return None
    need = _MOST_ROWS if dst.v_row is None else _row_bytes(dst.v_row)
    return Room(dst.dtype, 1, need // dst.item)


def short_of(site: Site) -> Room | None:
    """The scratch an instruction must be given and is not."""
    wants = site.spec.scratch
    room = None if wants is None else wants(site)
    found = site.types.get("tmp")
    return None if room is None or (isinstance(found, Tile) and room.is_in(found)) else room


def enough(site: Site) -> None:
    """Raise PtoError for scratch that is there and is not what the instruction wants."""
    room = short_of(site) if site.has("tmp") else None
    if room is not None:
        kind = f"{room.rows}x{room.cols} {room.dtype}" if room.dtype else f"{room.nbytes} bytes"
        raise _small(site, kind)
