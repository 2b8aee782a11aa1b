"""Memory that ranks share: windows with a slice for each rank, and what tells a kernel where the slices are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto.ir.comm_layout import (
    COMM_CTX_SIZE,
    MAX_RANKS,
    RANK_ID_OFFSET,
    RANK_NUM_OFFSET,
    WINDOW_SLOT_STRIDE,
    WINDOWS_IN_OFFSET,
)

from .scheduler import Event
from .window import Buffer, Pointer

_ALIGNMENT = 512
"""Bytes whose multiple each rank's slice starts at."""
_BASE = 1 << 40
"""Where the first slice seems to be: a kernel only takes differences of addresses."""


class Window:
    """One window: a slice of memory for each rank, all alike. ``slices`` are the ranks' arrays."""

    def __init__(self, name: str, arrays: Sequence[np.ndarray]) -> None:
        """A window whose slices start as copies of ``arrays``, one a rank and all of one shape and dtype."""
        if not 1 <= len(arrays) <= MAX_RANKS:
            raise ValueError(f"a window has 1 to {MAX_RANKS} ranks, got {len(arrays)}")
        first = arrays[0]
        if any(a.shape != first.shape or a.dtype != first.dtype for a in arrays):
            found = ", ".join(f"{a.dtype} {list(a.shape)}" for a in arrays)
            raise ValueError(f"the slices of window {name!r} must have one shape and dtype on all ranks, got {found}")
        item = first.dtype.itemsize
        self.stride = -(-max(1, first.nbytes) // _ALIGNMENT) * _ALIGNMENT // item
        elements = np.zeros(self.stride * len(arrays), first.dtype)
        self.buffer = Buffer(f"window {name!r}", elements, Event())
        self.slices: list[Slice] = []
        for rank, array in enumerate(arrays):
            start = rank * self.stride
            own = self.buffer.elements[start : start + first.size].reshape(first.shape).view(Slice)
            own[...] = array
            own.window, own.rank = self, rank
            self.slices.append(own)

    @property
    def ranks(self) -> int:
        return len(self.slices)

    def context(self, rank: int) -> np.ndarray:
        """The communication context of the window on one rank, as a kernel reads it."""
        words = np.zeros(COMM_CTX_SIZE // WINDOW_SLOT_STRIDE, np.int64)
        halves = words.view(np.int32)
        halves[RANK_ID_OFFSET // 4], halves[RANK_NUM_OFFSET // 4] = rank, self.ranks
        size = self.stride * self.buffer.dtype.itemsize
        first = WINDOWS_IN_OFFSET // WINDOW_SLOT_STRIDE
        words[first : first + self.ranks] = _BASE + size * np.arange(self.ranks)
        return words


class Slice(np.ndarray):
    """A rank's slice of a window, or a part of it."""

    window: Window | None = None
    rank: int = 0

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, Slice):
            self.window, self.rank = obj.window, obj.rank

    @property
    def pointer(self) -> Pointer | None:
        """Where in the window the slice starts; None for an array that has left it, as a copy does."""
        if self.window is None:
            return None
        elements = self.window.buffer.elements
        offset = self.__array_interface__["data"][0] - elements.__array_interface__["data"][0]
        if not 0 <= offset < elements.nbytes:
            return None
        return Pointer(self.window.buffer, offset // elements.itemsize)


def context_of(array: Any) -> np.ndarray:
    """The communication context that goes with a slice. Raises TypeError for an array that is none."""
    if not isinstance(array, Slice) or array.window is None:
        raise TypeError("a communication context belongs to a rank's slice of a window, not to any array")
    return array.window.context(array.rank)
