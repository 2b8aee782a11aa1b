"""Global memory while a kernel runs: pointers into the arrays given, views of them, windows of views."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pypto.pto.errors import PtoError

from .scheduler import Event


class Buffer:
    """One array given to a kernel: its elements in order, sharing the array's memory."""

    __slots__ = ("name", "elements", "bytes", "dtype", "size", "changed")

    def __init__(self, name: str, elements: np.ndarray, changed: Event | None = None) -> None:
        """``changed`` is woken by each write, of memory that others wait for."""
        self.name, self.elements, self.changed = name, elements, changed
        self.bytes = elements.view(np.uint8)
        self.dtype, self.size = elements.dtype, elements.size


class Pointer(NamedTuple):
    """A position in a buffer, in elements. ``limits`` are the extents of a part of a tensor that begins there."""

    buffer: Buffer
    offset: int
    limits: tuple[int, ...] | None = None

    def at(self, index: int) -> int:
        """Position of an element from here. Raises PtoError outside the buffer."""
        position = self.offset + index
        if not 0 <= position < self.buffer.size:
            raise PtoError(f"element {position} is outside {self.buffer.name}, which has {self.buffer.size}")
        return position


class Part(np.ndarray):
    """An array whose elements lie in a larger one, ``buffer``, and need not follow each other."""

    buffer: Buffer | None = None

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, Part):
            self.buffer = obj.buffer

    def pointer(self, name: str) -> Pointer | None:
        """Where the part begins in memory that errors call ``name``; None for an array that has left it, as a copy."""
        if self.buffer is None:
            return None
        memory, item = self.buffer.bytes, self.itemsize
        offset = self.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
        if not 0 <= offset < max(1, memory.nbytes):
            return None
        buffer = self.buffer
        if buffer.changed is None or buffer.dtype != self.dtype:
            buffer = Buffer(name, memory[: memory.nbytes // item * item].view(self.dtype), buffer.changed)
        return Pointer(buffer, offset // item, self.shape)


def part_of(array: np.ndarray, elements: np.ndarray | None = None) -> Part:
    """``array`` as a part of its memory, of which ``elements`` are all: those of a contiguous array, unless given."""
    if isinstance(array, Part) and array.buffer is not None:
        return array
    made = array.view(Part)
    made.buffer = Buffer("a tensor", array.reshape(-1) if elements is None else elements)
    return made


class View(NamedTuple):
    """A tensor in a buffer: extents, strides in elements, and the layout its author stated."""

    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    layout: str

    def window(self, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> Window:
        """A window of this view. Raises PtoError when it leaves the view or the array behind it."""
        buffer, start, limits = self.pointer
        low = high = 0
        if limits is not None and limits != self.shape and 0 not in sizes:
            self._check_limits(offsets, sizes, limits)
        for axis, (offset, size, extent, stride) in enumerate(
            zip(offsets, sizes, self.shape, self.strides, strict=True)
        ):
            if offset < 0 or size < 0 or offset + size > extent:
                raise PtoError(
                    f"window of {buffer.name} takes elements {offset}..{offset + size} "
                    f"of axis {axis}, which has {extent}"
                )
            start += offset * stride
            reach = (size - 1) * stride
            low, high = min(low, low + reach), max(high, high + reach)
        if 0 not in sizes and not 0 <= start + low <= start + high < buffer.size:
            reached = start + low if start + low < 0 else start + high
            peer = "the peer named may be no rank of this run" if buffer.changed is not None else None
            raise PtoError(
                f"window of {buffer.name} reaches element {reached}, but the array has {buffer.size}", hint=peer
            )
        item = buffer.dtype.itemsize
        strides = tuple(stride * item for stride in self.strides)
        if 0 in sizes:
            return Window(np.empty(sizes, buffer.dtype), self.layout, buffer)
        return Window(np.ndarray(sizes, buffer.dtype, buffer.bytes, start * item, strides), self.layout, buffer)

    def _check_limits(self, offsets: tuple[int, ...], sizes: tuple[int, ...], limits: tuple[int, ...]) -> None:
        """Refuse what lies past the tensor a slice is of; a view of the slice in another shape has its elements."""
        if len(limits) != len(sizes) or prod(limits) == prod(self.shape):
            return
        for axis, (offset, size, limit) in enumerate(zip(offsets, sizes, limits)):
            if offset + size > limit:
                name = self.pointer.buffer.name
                raise PtoError(
                    f"window of {name} takes elements {offset}..{offset + size} of axis {axis}, but the tensor it is "
                    f"a slice of ends after {limit}",
                    hint="read only what is there: valid_shape, or clamp=True in the slice",
                )


class Window:
    """A window of a tensor: a strided array, and the layout that says how it becomes rows and columns.

    A blocked one has five axes, and its rows and columns run over some of them each (`_BLOCKED`).
    """

    __slots__ = ("array", "layout", "buffer", "dtype", "shape")

    def __init__(self, array: np.ndarray, layout: str, buffer: Buffer) -> None:
        self.array, self.layout, self.buffer = array, layout, buffer
        self.dtype, self.shape = array.dtype, array.shape

    def matrix_shape(self) -> tuple[int, int]:
        """Rows and columns: leading axes count as rows, but for blocked layouts."""
        shape = self.shape
        axes = _BLOCKED.get(self.layout)
        if axes is not None:
            if len(shape) != 5:
                raise PtoError(f"a view in {self.layout} has the five extents of its boxes, got {list(shape)}")
            return prod(shape[a] for a in axes[0]), prod(shape[a] for a in axes[1])
        return (prod(shape[:-1]), shape[-1]) if shape else (1, 1)

    def read(self) -> np.ndarray:
        array = self.array
        axes = _BLOCKED.get(self.layout)
        if axes is not None:
            shape = self.matrix_shape()
            return array.transpose(*axes[0], *axes[1]).reshape(shape)
        return array if array.ndim == 2 else array.reshape(self.matrix_shape())

    def write(self, data: np.ndarray, combine: Callable[[np.ndarray, np.ndarray], np.ndarray] | None) -> None:
        """Set the leading rows and columns from ``data``, or combine what is there with it."""
        array = self.array
        if not array.flags.writeable:
            raise PtoError(f"{self.buffer.name} is read-only")
        if self.buffer.changed is not None:
            self.buffer.changed.wake()
        rows, cols = data.shape
        axes = _BLOCKED.get(self.layout)
        if array.ndim == 2 and axes is None:
            target = array[:rows, :cols]
            target[...] = data if combine is None else combine(target, data)
            return
        whole = np.array(self.read())
        part = whole[:rows, :cols]
        whole[:rows, :cols] = data if combine is None else combine(part, data)
        if axes is None:
            array[...] = whole.reshape(array.shape)
            return
        order = (*axes[0], *axes[1])
        array[...] = whole.reshape([array.shape[a] for a in order]).transpose(np.argsort(order))


_BLOCKED = {
    "nz": ((2, 3), (0, 1, 4)),
    "mx_a_zz": ((0, 1, 3), (2, 4)),
    "mx_b_nn": ((2, 4), (0, 1, 3)),
}
"""The axes rows run over, and those columns do: ``[B, C/c0, R/16, 16, c0]``, ``[1, M/16, G/2, 16, 2]`` and
``[1, N/16, G/2, 16, 2]``."""
