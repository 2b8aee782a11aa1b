"""What a sanitized run remembers of global memory: who read and wrote what, after what, and what nothing has written.

A strand is one line of execution: a rank, a block of a launch, a core. It says what orders it: a `Point` it has reached
is before what follows an ``after`` of that point, in this strand or another. Signals order only as far as the values
waited for imply it, which `races` works out once the strands have met.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pypto.errors import Location
from pypto.pto.errors import PtoError

READ, WRITE = "reads", "writes"
Index = tuple[np.ndarray, ...]


class Point(NamedTuple):
    """A place in a strand: everything the strand did with a clock up to this one."""

    strand: int
    clock: int


class Event(NamedTuple):
    """Something in a strand that others may be ordered by: a `Point` reached, or what follows ``points``."""

    point: Point
    points: tuple[Point, ...] = ()


class Access(NamedTuple):
    """Elements of an array that a strand read or wrote, all or those at ``where``.

    ``kind`` is `READ`, `WRITE`, or what an atomic access does; atomic ones of a kind do not mind each other.
    ``twin`` tells what both lanes of a block write alike from what they do not; None where it does not matter.
    """

    point: Point
    kind: str
    array: np.ndarray
    where: Index | None
    name: str
    who: str
    loc: Location | None
    twin: Hashable


class Signal(NamedTuple):
    """Values added to, or put in, signal cells, which begin at these addresses."""

    point: Point
    cells: tuple[int, ...]
    values: tuple[int, ...]
    adds: bool


class Await(NamedTuple):
    """A wait that has ended: the cells compare so with ``expected``; ``initial`` is what they held at first."""

    point: Point
    cells: tuple[int, ...]
    sign: str
    expected: int


class Fresh(NamedTuple):
    """Memory that starts without contents: which of its bytes were written, and what it is called."""

    array: np.ndarray
    start: int
    flags: np.ndarray
    name: str


def reach(array: np.ndarray) -> tuple[int, int]:
    """The addresses of the first byte of an array that is not empty, and of one past the last."""
    start = end = array.__array_interface__["data"][0]
    for extent, stride in zip(array.shape, array.strides):
        far = (extent - 1) * stride
        start, end = start + min(far, 0), end + max(far, 0)
    return start, end + array.itemsize


class Trace:
    """The record of one run. ``root`` is the strand it begins with; with only that one, nothing needs an order."""

    def __init__(self) -> None:
        self.events: list[Event | Access | Signal | Await] = []
        self.strands = 0
        self.alive = 0
        self.initial: dict[int, int] = {}
        """What a signal cell held when it was first used."""
        self._seen: set[Any] = set()
        self._starts: list[int] = []
        self._fresh: list[Fresh] = []
        self.root = Strand(self, self._number(), "")

    def _number(self) -> int:
        self.alive += 1
        self.strands += 1
        return self.strands - 1

    @property
    def concurrent(self) -> bool:
        return self.alive > 1

    def once(self, key: Any) -> bool:
        """Whether this is new."""
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def settle(self) -> None:
        """One strand is left: find races among what the others did, and forget it. Raises PtoError for one."""
        from .races import find_race

        events, self.events = self.events, []
        self._seen.clear()
        found = find_race(events, self.strands, self.initial)
        self.initial.clear()
        if found is not None:
            raise found

    # Memory nothing has written

    def add_fresh(self, array: np.ndarray, name: str) -> None:
        """Note that the elements of ``array`` have no contents yet."""
        if not array.size:
            return
        start, end = reach(array)
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._fresh.insert(at, Fresh(array, start, np.zeros(end - start, np.uint8), name))

    def _flags(self, array: np.ndarray) -> tuple[Fresh, np.ndarray] | None:
        """The flags of an array's elements, when it lies in such memory."""
        if not self._starts:
            return None
        address = array.__array_interface__["data"][0]
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._starts[at] + len(self._fresh[at].flags):
            return None
        fresh = self._fresh[at]
        width = np.dtype(f"u{array.itemsize}")
        return fresh, np.ndarray(array.shape, width, fresh.flags, address - fresh.start, array.strides)

    def written(self, array: np.ndarray, where: Index | None) -> None:
        """Elements of ``array`` now have contents."""
        found = self._flags(array) if array.size else None
        if found is not None:
            flags = found[1]
            flags[... if where is None else where] = np.iinfo(flags.dtype).max

    def require(self, array: np.ndarray, where: Index | None, verb: str, loc: Location | None) -> None:
        """Raise PtoError, at ``loc``, for elements that nothing has written."""
        found = self._flags(array) if array.size else None
        if found is None:
            return
        fresh, flags = found
        missing = flags[... if where is None else where] != np.iinfo(flags.dtype).max
        if missing.any():
            first = np.argwhere(missing)[0].tolist()
            if where is not None:
                first = [int(axis[tuple(first)]) for axis in where]
            raise PtoError(
                f"{verb} {int(missing.sum())} of {missing.size} elements of {fresh.name} that nothing has written, "
                f"the first at {first}",
                loc,
                hint="memory starts with any contents: write it first, or read only what is written (valid_shape)",
            )


class Strand:
    """One line of execution. ``loc`` is the line it is at, ``name`` what it is called in messages.

    ``pair`` is the same for the lanes of a block: without a split, both do the same.
    """

    __slots__ = ("trace", "number", "name", "clock", "loc", "pair", "_free")

    def __init__(self, trace: Trace, number: int, name: str, pair: Hashable = None) -> None:
        self.trace, self.number, self.name, self.pair = trace, number, name, pair
        self.clock = 0
        self.loc: Location | None = None
        self._free: list[tuple[int, int]] = []

    def fork(self, name: str, pair: Hashable = None) -> Strand:
        """A strand that begins here."""
        trace = self.trace
        if self._free:
            number, clock = self._free.pop()
            trace.alive += 1
            made = Strand(trace, number, name, pair)
            made.clock = clock
        else:
            made = Strand(trace, trace._number(), name, pair)
        made.loc = self.loc
        made.after([self.mark()])
        return made

    def join(self, others: Sequence[Strand]) -> None:
        """Go on after the ends of strands that began here. Raises PtoError for a race once this one is alone."""
        self.after([other.mark() for other in others])
        for other in others:
            # What begins here later is after these, so that it may take their numbers.
            self._free += [*other._free, (other.number, other.clock)]
        self.trace.alive -= len(others)
        if others and not self.trace.concurrent:
            self.trace.settle()

    def mark(self) -> Point:
        """Where the strand is."""
        point = Point(self.number, self.clock)
        self.trace.events.append(Event(point))
        self.clock += 1
        return point

    def after(self, points: Iterable[Point]) -> None:
        """What follows comes after these."""
        known = tuple(points)
        if known:
            self.trace.events.append(Event(Point(self.number, self.clock), known))
            self.clock += 1

    # Memory

    def read(self, array: np.ndarray, name: str, where: Index | None = None) -> None:
        """Note a read. Raises PtoError for elements that nothing has written."""
        self.trace.require(array, where, READ, self.loc)
        self._note(READ, array, name, where)

    def write(
        self,
        array: np.ndarray,
        name: str,
        where: Index | None = None,
        atomic: str | None = None,
        data: np.ndarray | None = None,
    ) -> None:
        """Note a write, of ``data`` where that is known, or an atomic access."""
        if atomic is not None:
            self.trace.require(array, where, atomic, self.loc)
        twin = None if data is None or self.pair is None else (self.pair, array.shape, array.strides, data.tobytes())
        self._note(atomic or WRITE, array, name, where, twin)
        self.trace.written(array, where)

    def _note(
        self, kind: str, array: np.ndarray, name: str, where: Index | None, twin: Hashable = None
    ) -> None:
        trace = self.trace
        if not trace.concurrent or not array.size:
            return
        address = array.__array_interface__["data"][0]
        key = self.number, self.clock, kind, address, array.shape, array.strides, self.loc, twin
        if where is not None or trace.once(key):
            point = Point(self.number, self.clock)
            twin = twin if twin is None else (address, twin)
            trace.events.append(Access(point, kind, array, where, name, self.name, self.loc, twin))

    # Signals

    def signal(self, array: np.ndarray, values: Sequence[int], adds: bool) -> None:
        """Note values that are added to signal cells, or put there, before that is done."""
        cells = self._cells(array)
        self.trace.events.append(Signal(Point(self.number, self.clock), cells, tuple(values), adds))
        self.clock += 1

    def awaited(self, array: np.ndarray, sign: str, expected: int) -> None:
        """Note that cells compare so with a value."""
        cells = self._cells(array)
        self.trace.events.append(Await(Point(self.number, self.clock), cells, sign, expected))
        self.clock += 1

    def _cells(self, array: np.ndarray) -> tuple[int, ...]:
        """The addresses of signal cells."""
        start = array.__array_interface__["data"][0]
        offsets = np.zeros(array.shape, np.int64)
        for axis, (extent, stride) in enumerate(zip(array.shape, array.strides)):
            shape = [1] * array.ndim
            shape[axis] = extent
            offsets = offsets + np.arange(extent).reshape(shape) * stride
        cells = tuple((start + offsets).ravel().tolist())
        for cell, value in zip(cells, array.ravel().tolist()):
            self.trace.initial.setdefault(cell, value)
        return cells
