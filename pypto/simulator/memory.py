"""Byte-addressed memories of a core, and the layouts in which tiles lie in them."""

from __future__ import annotations

from functools import cache

import numpy as np

from pypto.pto.errors import PtoError
from pypto.pto.shapes import Tile


class Memory:
    """One memory of one core: ``data`` is its bytes, ``shadow`` one flag a byte for written ones, or None.

    ``alignment`` is the multiple an operand's address must be, in bytes; ``high`` is one past the highest byte any tile
    has covered. ``lost`` says of ranges of bytes why their contents are gone.
    """

    __slots__ = ("name", "data", "shadow", "alignment", "poison", "high", "lost")

    def __init__(
        self, name: str, capacity: int, *, alignment: int = 32, poison: int = 0, sanitize: bool = False
    ) -> None:
        self.name, self.alignment, self.poison = name, alignment, poison
        self.data = np.empty(capacity, np.uint8)
        self.data.fill(poison)
        self.shadow = np.zeros(capacity, np.uint8) if sanitize else None
        self.high = 0
        self.lost: list[tuple[int, int, str]] = []

    def lost_at(self, start: int, end: int) -> str | None:
        """Why the contents of some bytes are lost, the last reason given; None when they never were there."""
        return next((why for first, last, why in reversed(self.lost) if first < end and start < last), None)

    def __len__(self) -> int:
        return len(self.data)


class Layout:
    """Where the elements of a tile buffer lie, in bytes from its address.

    A boxed layout is four-dimensional: rows of boxes, rows in a box, columns of boxes, columns in a
    box; flattened two by two these are the tile's rows and columns. A plain one is two-dimensional.
    """

    __slots__ = ("shape", "strides", "box")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], box: tuple[int, int] | None) -> None:
        self.shape, self.strides, self.box = shape, strides, box


@cache
def layout_of(tile: Tile, rows: int, cols: int) -> Layout:
    """Layout of a buffer of ``tile``'s kind with ``rows`` x ``cols`` elements, whole boxes when boxed."""
    item = tile.item
    if not tile.boxed:
        strides = (cols * item, item) if tile.blayout == "row_major" else (item, rows * item)
        return Layout((rows, cols), strides, None)
    box_rows, box_cols = tile.box
    down, across = rows // box_rows, cols // box_cols
    size = box_rows * box_cols * item
    inner = (box_cols * item, item) if tile.slayout == "row_major" else (item, box_rows * item)
    outer = (across * size, size) if tile.blayout == "row_major" else (size, down * size)
    return Layout((down, box_rows, across, box_cols), (outer[0], inner[0], outer[1], inner[1]), (box_rows, box_cols))


def check_range(memory: Memory, tile: Tile, addr: int) -> None:
    """A tile at ``addr`` lies inside the memory at a legal address. Raises PtoError."""
    if addr < 0 or addr + tile.nbytes > len(memory):
        raise PtoError(
            f"a tile of {tile.nbytes} bytes at {addr} ends outside {memory.name}, which has {len(memory)} bytes"
        )
    if addr % memory.alignment:
        raise PtoError(f"address {addr} in {memory.name} is not a multiple of {memory.alignment} bytes")


def view(data: np.ndarray, addr: int, layout: Layout, dtype: np.dtype) -> np.ndarray:
    """Elements of a layout at ``addr``, sharing the bytes of ``data``."""
    return np.ndarray(layout.shape, dtype, data, addr, layout.strides)
