"""Rules on the scratch operand ``tmp``: the 910B's library works in it and checks little, the 950's does not use it.

Where valid extents are known only at run time, scratch must do for the whole tile.
"""

from __future__ import annotations

from pypto.backend.scratch import narrowing_bytes, sequence_bytes

from .checks import row_major, same_dtype
from .elements import data_type
from .errors import PtoError
from .shapes import Tile
from .spec import Check, Site

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


def row_copies(site: Site) -> None:
    """`TROWEXPAND*`: the value of each row, spread over a block of 32 bytes; eight rows, 240 at most, a repeat."""
    rows = extents(site.tile("dst"))[0]
    for name in ("src0", "src1"):
        if site.tile(name).blayout == "col_major":
            _room(site, min(_ceil(rows, 8) * _REPEAT, 30 * _REPEAT), f"a block for each of {rows} rows")
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


def sequence(site: Site) -> None:
    """`TCI`: parts of the sequence in f32."""
    dtype = data_type(site.tile("dst").dtype)
    if dtype is not None:
        _room(site, sequence_bytes(dtype), "in which it counts")


def narrowed(site: Site) -> None:
    """`TCVT` that keeps the low bits of what does not fit: the elements as i32."""
    src = site.tile("src")
    source, target = data_type(src.dtype), data_type(site.tile("dst").dtype)
    if source is None or target is None or site.attrs["satmode"] == "ON":
        return
    need = narrowing_bytes(source, target, extents(src)[0], src.v_col, src.cols)
    if need:
        _room(site, need, "elements of 'src' as i32")
