"""Where the bytes of tile buffers lie, as far as the text of a kernel says, and which buffers share some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Lines of ``width`` bytes, ``pitch`` apart, from ``start`` in a memory or in an allocation without an address.

    ``start`` is None where only the run tells.
    """

    owner: str
    start: int | None
    lines: int
    width: int
    pitch: int

    @property
    def size(self) -> int:
        return (self.lines - 1) * self.pitch + self.width


def place_of(tile: Any, name: str, address: int | None) -> Place:
    """Where buffer ``name`` of type ``tile`` is: one run of bytes at ``address``, or anywhere apart from the others."""
    owner, start = (name, 0) if address is None else (tile.loc, address)
    lines, elements = _lines(tile)
    return Place(owner, start, lines, elements * tile.item, elements * tile.item)


def place_in(source: Place, tile: Any, window: Any, offsets: Sequence[int | None]) -> Place:
    """Where a ``window`` at ``offsets`` of a ``tile`` at ``source`` is.

    Of a boxed tile, or at an offset that only the run tells, it may be anywhere in the tile.
    """
    line, element = offsets if tile.blayout == "row_major" else reversed(offsets)
    if tile.boxed or line is None or element is None:
        return source
    lines, elements = _lines(window)
    start = None if source.start is None else source.start + line * source.pitch + element * tile.item
    return Place(source.owner, start, lines, elements * tile.item, source.pitch)


def _lines(tile: Any) -> tuple[int, int]:
    """Lines of a tile and elements in each, in the order of memory."""
    if tile.boxed:
        return 1, tile.rows * tile.cols
    return (tile.rows, tile.cols) if tile.blayout == "row_major" else (tile.cols, tile.rows)


def share_bytes(left: Place, right: Place) -> bool:
    """Whether two places have a byte in common, or may have."""
    if left.owner != right.owner:
        return False
    if left.start is None or right.start is None:
        return True
    apart = right.start - left.start
    if apart < 0:
        left, right, apart = right, left, -apart
    if left.pitch != right.pitch or left.lines == 1 or right.lines == 1:
        return apart < left.size
    line, beside = divmod(apart, left.pitch)
    return (line < left.lines and beside < left.width) or (line + 1 < left.lines and beside + right.width > left.pitch)
