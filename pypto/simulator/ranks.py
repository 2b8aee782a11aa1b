"""Memory that ranks share: windows with a slice for each rank, and what tells a kernel where the slices are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto.backend.formats import round_up
from pypto.ir.comm_layout import (
    COMM_CTX_SIZE,
    MAX_RANKS,
    RANK_ID_OFFSET,
    RANK_NUM_OFFSET,
    WINDOW_SLOT_STRIDE,
    WINDOWS_IN_OFFSET,
)

from .scheduler import Event
from .window import Buffer, Part

_ALIGNMENT = 512
"""Bytes whose multiple each rank's slice starts at."""
_BASE = 1 << 40
"""Where the first slice seems to be: a kernel only takes differences of addresses."""


class SharedMemory:
    """Zeroed memory of ``size`` bytes on each of ``ranks`` ranks, which all of them reach."""

    def __init__(self, name: str, size: int, ranks: int) -> None:
        if not 1 <= ranks <= MAX_RANKS:
            raise ValueError(f"a window has 1 to {MAX_RANKS} ranks, got {ranks}")
        self.name, self.size, self.ranks = name, size, ranks
        self.stride = round_up(max(1, size), _ALIGNMENT)
        self.bytes = np.zeros(self.stride * ranks, np.uint8)
        self.changed = Event()


class Window:
    """A view of shared memory: a slice for each rank, all alike. ``slices`` are the ranks' arrays."""

    def __init__(self, memory: SharedMemory, shape: Sequence[int], dtype: np.dtype) -> None:
        """Raises ValueError when a slice has more bytes than the memory of a rank."""
        count = math.prod(shape)
        if count * dtype.itemsize > memory.size:
            found = f"{dtype} {list(shape)} takes {count * dtype.itemsize} bytes"
            raise ValueError(f"{found}, window {memory.name!r} has {memory.size} on each rank")
        self.memory = memory
        self.buffer = Buffer(f"window {memory.name!r}", memory.bytes.view(dtype), memory.changed)
        self.slices: list[Slice] = []
        stride = memory.stride // dtype.itemsize
        for rank in range(memory.ranks):
            own = self.buffer.elements[rank * stride : rank * stride + count].reshape(shape).view(Slice)
            own.window, own.rank, own.buffer = self, rank, self.buffer
            self.slices.append(own)

    @classmethod
    def of(cls, name: str, arrays: Sequence[np.ndarray]) -> Window:
        """A window whose slices start as copies of ``arrays``, one a rank and all of one shape and dtype."""
        if not arrays:
            raise ValueError(f"a window has 1 to {MAX_RANKS} ranks, got 0")
        first = arrays[0]
        if any(a.shape != first.shape or a.dtype != first.dtype for a in arrays):
            found = ", ".join(f"{a.dtype} {list(a.shape)}" for a in arrays)
            raise ValueError(f"the slices of window {name!r} must have one shape and dtype on all ranks, got {found}")
        made = cls(SharedMemory(name, first.nbytes, len(arrays)), first.shape, first.dtype)
        for own, array in zip(made.slices, arrays):
            own[...] = array
        return made

    @property
    def ranks(self) -> int:
        return len(self.slices)

    def context(self, rank: int) -> np.ndarray:
        """The communication context of the window on one rank, as a kernel reads it."""
        words = np.zeros(COMM_CTX_SIZE // WINDOW_SLOT_STRIDE, np.int64)
        halves = words.view(np.int32)
        halves[RANK_ID_OFFSET // 4], halves[RANK_NUM_OFFSET // 4] = rank, self.ranks
        first = WINDOWS_IN_OFFSET // WINDOW_SLOT_STRIDE
        words[first : first + self.ranks] = _BASE + self.memory.stride * np.arange(self.ranks)
        return words


class Slice(Part):
    """A rank's slice of a window, or a part of it."""

    window: Window | None = None
    rank: int = 0

    def __array_finalize__(self, obj: Any) -> None:
        super().__array_finalize__(obj)
        if isinstance(obj, Slice):
            self.window, self.rank = obj.window, obj.rank


def context_of(array: Any) -> np.ndarray:
    """The communication context that goes with a slice. Raises TypeError for an array that is none."""
    if not isinstance(array, Slice) or array.window is None:
        raise TypeError("a communication context belongs to a rank's slice of a window, not to any array")
    return array.window.context(array.rank)
