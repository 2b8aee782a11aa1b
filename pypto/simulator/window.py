"""Global memory while a kernel runs: pointers into the arrays given, views of them, windows of views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pypto.pto.errors import PtoError

from .scheduler import Event
from .trace import Strand


class Buffer:
    """One array given to a kernel: its elements in order, sharing the array's memory."""

    __slots__ = ("name", "elements", "bytes", "dtype", "size", "changed", "strand")

    def __init__(
        self, name: str, elements: np.ndarray, changed: Event | None = None, strand: Strand | None = None
    ) -> None:
        """``changed`` is woken by each write, of memory that others wait for; ``strand`` is told of each access."""
        self.name, self.elements, self.changed, self.strand = name, elements, changed, strand
        self.bytes = elements.view(np.uint8)
        self.dtype, self.size = elements.dtype, elements.size

    def seen_by(self, strand: Strand) -> Buffer:
        """The same memory as a strand reads and writes it."""
        return Buffer(self.name, self.elements, self.changed, strand)

    def load(self, position: int) -> Any:
        """One element."""
        if self.strand is not None:
            self.strand.read(self.elements[position : position + 1], self.name)
        return self.elements[position]

    def store(self, position: int, value: Any) -> None:
        """Set one element. Raises PtoError in memory that is read-only."""
        Window(self.elements[position : position + 1], "nd", self).write(np.full((1, 1), value, self.dtype), None)


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


def unwritten(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An array nothing was written to: NaN, -1 or the greatest number, as memory on a core starts."""
    made = np.empty(shape, dtype)
    # A boolean is 0 or 1, and of an element of less than a byte only the low bits count.
    made.view(np.uint8)[...] = {"bool": 1, "float4_e2m1fn": 0x0F, "int4": 0x0F, "uint4": 0x0F}.get(dtype.name, 0xFF)
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
        """All elements, as rows and columns."""
        if self.buffer.strand is not None:
            self.buffer.strand.read(self.array, self.buffer.name)
        return self._matrix()

    def lines(self, places: np.ndarray, rows: bool) -> np.ndarray:
        """The rows, or else the elements counted row by row, at ``places``."""
        if self.buffer.strand is not None:
            self.buffer.strand.read(self.array, self.buffer.name, self._where(places, rows))
        matrix = self._matrix()
        return np.array(matrix[places] if rows else matrix.reshape(-1, 1)[places])

    def put_lines(self, places: np.ndarray, data: np.ndarray, rows: bool, combine: Combine | None) -> None:
        """Set rows, or the elements counted row by row, one after the other, or combine what is there with them.

        Of rows only as many elements as ``data`` has.
        """
        self._check_writeable()
        if self.buffer.strand is not None:
            where = self._where(places, rows, data.shape[1])
            self.buffer.strand.write(self.array, self.buffer.name, where, _ATOMIC.get(combine))
        table = np.array(self._matrix())
        lines = table if rows else table.reshape(-1, 1)
        for place, line in zip(places.tolist(), data, strict=True):
            held = lines[place, : len(line)]
            lines[place, : len(line)] = line if combine is None else combine(held, line)
        self._set_matrix(table)

    def _where(self, places: np.ndarray, rows: bool, cols: int | None = None) -> tuple[np.ndarray, ...]:
        """The indices in the array of rows, of their first ``cols`` elements, or of single elements."""
        numbers = self._numbers()
        return np.unravel_index(numbers[places][:, :cols] if rows else numbers.reshape(-1)[places], self.shape)

    def _numbers(self) -> np.ndarray:
        """The number of each element in the array, as rows and columns."""
        return Window(np.arange(self.array.size).reshape(self.shape), self.layout, self.buffer)._matrix()

    def _matrix(self) -> np.ndarray:
        array = self.array
        axes = _BLOCKED.get(self.layout)
        if axes is not None:
            shape = self.matrix_shape()
            return array.transpose(*axes[0], *axes[1]).reshape(shape)
        return array if array.ndim == 2 else array.reshape(self.matrix_shape())

    def is_same(self, other: Window) -> bool:
        """Whether both are the same elements in the same order."""
        one, two = self.array, other.array
        places = [(a.__array_interface__["data"][0], a.strides, a.dtype) for a in (one, two)]
        return self.layout == other.layout and self.shape == other.shape and places[0] == places[1]

    def _check_writeable(self) -> None:
        if not self.array.flags.writeable:
            raise PtoError(f"{self.buffer.name} is read-only")
        if self.buffer.changed is not None:
            self.buffer.changed.wake()

    def _tell_write(self, data: np.ndarray, combine: Combine | None, kind: str | None) -> None:
        """Tell the strand of a write; ``kind`` is what one is called that comes as it may, besides others of it."""
        strand, array = self.buffer.strand, self.array
        if strand is None:
            return
        kind = kind or _ATOMIC.get(combine)
        if data.shape == self.matrix_shape():
            strand.write(array, self.buffer.name, None, kind, data)
        else:
            rows, cols = data.shape
            where = np.unravel_index(self._numbers()[:rows, :cols], self.shape)
            strand.write(array, self.buffer.name, where, kind, data)
        if self.buffer.changed is not None and self.dtype == np.int32 and data.shape == self.matrix_shape():
            # Who hears of the value comes after the write of it.
            strand.signal(array, data.ravel().tolist(), combine is np.add)

    def write(self, data: np.ndarray, combine: Combine | None, kind: str | None = None) -> None:
        """Set the leading rows and columns from ``data``, or combine what is there with it."""
        array = self.array
        self._check_writeable()
        self._tell_write(data, combine, kind)
        rows, cols = data.shape
        axes = _BLOCKED.get(self.layout)
        if array.ndim == 2 and axes is None:
            target = array[:rows, :cols]
            target[...] = data if combine is None else combine(target, data)
            return
        whole = np.array(self._matrix())
        part = whole[:rows, :cols]
        whole[:rows, :cols] = data if combine is None else combine(part, data)
        self._set_matrix(whole)

    def _set_matrix(self, whole: np.ndarray) -> None:
        array, axes = self.array, _BLOCKED.get(self.layout)
        if axes is None:
            array[...] = whole.reshape(array.shape)
            return
        order = (*axes[0], *axes[1])
        array[...] = whole.reshape([array.shape[a] for a in order]).transpose(np.argsort(order))


Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
_ATOMIC: Mapping[Combine | None, str] = {np.add: "adds to", np.maximum: "raises", np.minimum: "lowers"}
"""What combining writes do to elements: of one kind, they may come in any order."""
_BLOCKED = {
    "nz": ((2, 3), (0, 1, 4)),
    "mx_a_zz": ((0, 1, 3), (2, 4)),
    "mx_b_nn": ((2, 4), (0, 1, 3)),
}
"""The axes rows run over, and those columns do: ``[B, C/c0, R/16, 16, c0]``, ``[1, M/16, G/2, 16, 2]`` and
``[1, N/16, G/2, 16, 2]``."""
