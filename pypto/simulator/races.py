"""Finds races in what the strands of a run did: accesses to one element of which no order is sure.

An order is sure when it holds in every run, however the strands take turns. A wait for a signal comes after those
notifications without which it could not have ended: each is left out in turn, with all that comes after it, and the
values the others may give the cell are compared with what was waited for. That depends on the orders known so far, so
it is repeated until no more follow; where a race is left, what can happen at all without the one left out is followed
step by step. Orders found are sure. For signals that are added to, all are found; for those that are set, a wait that
several settings may end has none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pypto.pto.errors import PtoError

from .trace import READ, WRITE, Access, Await, Event, Point, Signal, reach

Clocks = np.ndarray
"""For each strand, the clock up to which what it did is before something."""
AnyEvent = Event | Access | Signal | Await


def find_race(events: Sequence[AnyEvent], strands: int, initial: Mapping[int, int]) -> PtoError | None:
    """The first race among the events, which are in the order in which they happened; None without one."""
    accesses = [e for e in events if isinstance(e, Access)]
    groups = [group for group in _regions(accesses) if _may_race(group)]
    if not groups:
        return None
    order = _Order(events, strands, initial)
    race = _first_race(groups, accesses, order.solve())
    if race is None or not order.refine():
        return race
    return _first_race(groups, accesses, order.solve())


def _first_race(
    groups: Sequence[Sequence[_Span]], accesses: Sequence[Access], clocks: Sequence[Clocks]
) -> PtoError | None:
    before = {id(a): clock for a, clock in zip(accesses, clocks)}
    found = (_Region(group, before).race() for group in groups)
    return next((race for race in found if race is not None), None)


# Orders


class _Cell(NamedTuple):
    """What is signalled to one cell: from where, which values, and whether they are added; one row a signal."""

    events: list[int]
    strands: np.ndarray
    clocks: np.ndarray
    values: np.ndarray
    adds: np.ndarray


class _Order:
    """What is before what. ``sure`` are the signals each wait must come after, by the wait's place among the events."""

    def __init__(self, events: Sequence[AnyEvent], strands: int, initial: Mapping[int, int]) -> None:
        self.events, self.strands, self.initial = events, strands, initial
        self.waits = [(i, e) for i, e in enumerate(events) if isinstance(e, Await)]
        self.cells = self._signals({cell for _, wait in self.waits for cell in wait.cells})
        self.sure: dict[int, set[int]] = defaultdict(set)
        self.at: dict[int, Clocks] = {}
        """What is before each signal and wait."""

    def _signals(self, awaited: set[int]) -> dict[int, _Cell]:
        found: dict[int, list[tuple[int, Point, int, bool]]] = defaultdict(list)
        for i, event in enumerate(self.events):
            if isinstance(event, Signal):
                for cell, value in zip(event.cells, event.values):
                    if cell in awaited:
                        found[cell].append((i, event.point, value, event.adds))
        made = {}
        for cell, rows in found.items():
            columns = [np.array(c) for c in zip(*((p.strand, p.clock, value, adds) for _, p, value, adds in rows))]
            made[cell] = _Cell([i for i, *_ in rows], *columns)
        return made

    def solve(self) -> list[Clocks]:
        """For each access, what is before it."""
        while True:
            clocks = self._pass()
            known = sum(map(len, self.sure.values()))
            for i, wait in self.waits:
                for cell in wait.cells:
                    self._implied(i, wait, cell)
            if sum(map(len, self.sure.values())) == known:
                return clocks

    def _pass(self) -> list[Clocks]:
        """Carry what is before what along the strands, signals and points."""
        now = [np.full(self.strands, -1, np.int64) for _ in range(self.strands)]
        reached: dict[Point, Clocks] = {}
        found: list[Clocks] = []
        for i, event in enumerate(self.events):
            strand, clock = event.point
            if isinstance(event, Access):
                found.append(now[strand])
                continue
            points: Iterable[Clocks] = ()
            if isinstance(event, Event):
                points = [reached[p] for p in event.points if p in reached]
            elif isinstance(event, Await):
                points = [self.at[s] for s in self.sure[i]]
            here = now[strand].copy()
            for other in points:
                np.maximum(here, other, out=here)
            here[strand] = clock
            now[strand] = here
            if isinstance(event, Event):
                reached[event.point] = here
            else:
                self.at[i] = here
        return found

    def refine(self) -> bool:
        """Add the signals without which a wait is never reached, or never ends; whether there were any."""
        known = sum(map(len, self.sure.values()))
        for left_out in sorted({i for cell in self.cells.values() for i in cell.events}):
            happens = self._without(left_out)
            for i, _ in self.waits:
                if i > left_out and not happens[i]:
                    self.sure[i].add(left_out)
        return sum(map(len, self.sure.values())) > known

    def _without(self, left_out: int) -> np.ndarray:
        """Which events can happen without one of them; accesses do not count."""
        happens = np.zeros(len(self.events), np.bool_)
        points = {e.point: i for i, e in enumerate(self.events) if isinstance(e, Event)}
        more = True
        while more:
            more = False
            stuck: set[int] = set()
            for i, event in enumerate(self.events):
                strand = event.point.strand
                if isinstance(event, Access) or happens[i] or strand in stuck:
                    continue
                if i == left_out or not self._can_happen(i, event, happens, points):
                    stuck.add(strand)
                else:
                    happens[i] = more = True
        return happens

    def _can_happen(self, i: int, event: AnyEvent, happens: np.ndarray, points: Mapping[Point, int]) -> bool:
        if isinstance(event, Event):
            return all(happens[points[p]] for p in event.points if p in points)
        if not isinstance(event, Await):
            return True
        for cell in event.cells:
            signals = self.cells.get(cell)
            if signals is None:
                continue
            there = happens[signals.events]
            if there[[place < i for place in signals.events]].all():
                continue
            clocks = np.stack([self.at[place] for place in signals.events])
            forced = there & (signals.clocks <= self.at[i][signals.strands])
            if not _could_end(event, signals, forced, there & ~forced, clocks, self.initial.get(cell, 0)):
                return False
        return True

    def _implied(self, place: int, wait: Await, cell: int) -> None:
        """Add the signals without which ``wait`` could not have ended."""
        signals = self.cells.get(cell)
        if signals is None:
            return
        before = self.at[place]
        forced = signals.clocks <= before[signals.strands]
        clocks = np.stack([self.at[i] for i in signals.events])
        later = clocks[:, wait.point.strand] >= wait.point.clock
        for strand in np.unique(signals.strands).tolist():
            # Without an earlier one the later ones of a strand are missing, too: those that are sure come first.
            rows = np.flatnonzero(signals.strands == strand).tolist()
            for row in rows:
                if forced[row]:
                    continue
                if signals.events[row] > place:
                    break
                gone = later | (clocks[:, strand] >= signals.clocks[row])
                if _could_end(wait, signals, forced, ~gone & ~forced, clocks, self.initial.get(cell, 0)):
                    break
                self.sure[place].add(signals.events[row])


def _could_end(
    wait: Await, signals: _Cell, forced: np.ndarray, open: np.ndarray, clocks: np.ndarray, initial: int
) -> bool:
    """Whether the cell may hold what is waited for after the ``forced`` signals and any of the ``open`` ones."""
    values, adds = signals.values, signals.adds
    sets = np.flatnonzero((forced | open) & ~adds)
    settled = np.flatnonzero(forced & ~adds).tolist()
    starts = [(-1, initial)] if not settled else []
    for row in sets.tolist():
        # One that another is sure to have overwritten is not seen.
        if not any(other != row and _before(signals, clocks, row, other) for other in settled):
            starts.append((row, int(values[row])))
    for row, start in starts:
        certain = forced & adds
        if row >= 0:
            certain = certain & (clocks[:, signals.strands[row]] >= signals.clocks[row])
        maybe = (open | forced) & adds & ~certain
        if row >= 0:
            maybe &= ~np.array([_before(signals, clocks, other, row) for other in range(len(values))])
        base = start + int(values[certain].sum())
        least, most = base + int(values[maybe & (values < 0)].sum()), base + int(values[maybe & (values > 0)].sum())
        if _between(wait.sign, wait.expected, least, most):
            return True
    return False


def _before(signals: _Cell, clocks: np.ndarray, first: int, second: int) -> bool:
    return bool(clocks[second, signals.strands[first]] >= signals.clocks[first]) and first != second


def _between(sign: str, expected: int, least: int, most: int) -> bool:
    """Whether a value from ``least`` to ``most`` may compare so with ``expected``."""
    return {
        "==": least <= expected <= most,
        "!=": not least == expected == most,
        ">=": most >= expected,
        ">": most > expected,
        "<=": least <= expected,
        "<": least < expected,
    }[sign]


# Memory


class _Span(NamedTuple):
    """The bytes an access reaches, from the first to one past the last."""

    start: int
    end: int
    access: Access


def _span(access: Access) -> _Span:
    return _Span(*reach(access.array), access)


def _regions(accesses: Sequence[Access]) -> list[list[_Span]]:
    """Accesses by the memory they reach, parts that touch each other together; each in the order they happened."""
    spans = [_span(a) for a in accesses]
    groups: list[list[int]] = []
    end = -1
    for i in sorted(range(len(spans)), key=lambda i: spans[i].start):
        if spans[i].start >= end:
            groups.append([])
        groups[-1].append(i)
        end = max(end, spans[i].end)
    return [[spans[i] for i in sorted(group)] for group in groups]


def _may_race(spans: Sequence[_Span]) -> bool:
    strands = {s.access.point.strand for s in spans}
    return len(strands) > 1 and any(s.access.kind != READ for s in spans)


class _State(NamedTuple):
    """The accesses to an element that are not before all later ones, by place: a write, what came after it."""

    write: int | None
    reads: frozenset[int]
    atomics: frozenset[int]


class _Region:
    """Accesses to memory that overlap, and the state of each of its units, as a number."""

    def __init__(self, spans: Sequence[_Span], before: Mapping[int, Clocks]) -> None:
        self.accesses = [s.access for s in spans]
        self.before = [before[id(a)] for a in self.accesses]
        self.start = min(s.start for s in spans)
        size = max(s.end for s in spans) - self.start
        steps = {n for s in spans for n in (s.start - self.start, s.access.array.itemsize, *s.access.array.strides)}
        self.unit = math.gcd(size, *steps)
        self.units = np.zeros(size // self.unit, np.int32)
        self.states = [_State(None, frozenset(), frozenset())]
        self.numbers = {self.states[0]: 0}

    def race(self) -> PtoError | None:
        """Go through the accesses; the first that is in a race."""
        for place, access in enumerate(self.accesses):
            units = self._units(access)
            held = units if access.where is None else units[access.where]
            known = np.unique(held).tolist() if held.size and (held != held.flat[0]).any() else held.flat[:1].tolist()
            for number in known:
                other = self._conflict(place, self.states[number])
                if other is not None:
                    return self._report(access, self.accesses[other], held == number)
            after = np.zeros(len(self.states), np.int32)
            for number in known:
                made = self._next(place, self.states[number])
                after[number] = self.numbers.setdefault(made, len(self.states))
                if after[number] == len(self.states):
                    self.states.append(made)
            units[... if access.where is None else access.where] = after[held]
        return None

    def _units(self, access: Access) -> np.ndarray:
        """The state of each unit of the elements of an access: one more axis where elements have several."""
        array, unit = access.array, self.unit
        inside = array.itemsize // unit
        offset = array.__array_interface__["data"][0] - self.start
        strides = [s // unit * self.units.itemsize for s in array.strides]
        return np.ndarray(
            (*array.shape, inside), np.int32, self.units, offset // unit * self.units.itemsize,
            (*strides, self.units.itemsize),
        )  # fmt: skip

    def _sure(self, first: int, second: int) -> bool:
        """Whether one access is before another, in every run."""
        strand, clock = self.accesses[first].point
        return strand == self.accesses[second].point.strand or bool(self.before[second][strand] >= clock)

    def _conflict(self, place: int, state: _State) -> int | None:
        """An access to an element in ``state`` that has no sure order with the one at ``place``."""
        kind = self.accesses[place].kind
        others = [] if state.write is None else [state.write]
        others += [] if kind == READ else state.reads
        others += [o for o in state.atomics if self.accesses[o].kind != kind]
        if kind not in (READ, WRITE):
            others = [o for o in others if self.accesses[o].kind != kind]
        return next((o for o in sorted(others) if not self._sure(o, place) and not self._alike(o, place)), None)

    def _alike(self, first: int, second: int) -> bool:
        """Whether two lanes write the same, as they do where nothing is split between them."""
        one, other = self.accesses[first], self.accesses[second]
        return one.kind == other.kind == WRITE and one.twin is not None and one.twin == other.twin

    def _next(self, place: int, state: _State) -> _State:
        kind = self.accesses[place].kind
        if kind == WRITE:
            return _State(place, frozenset(), frozenset())
        if kind == READ:
            return state._replace(reads=self._latest(state.reads, place))
        return state._replace(atomics=self._latest(state.atomics, place))

    def _latest(self, some: frozenset[int], place: int) -> frozenset[int]:
        """``some`` with one more; those that are before it need not be looked at again."""
        return frozenset([place, *(o for o in some if not self._sure(o, place))])

    def _report(self, access: Access, other: Access, where: np.ndarray) -> PtoError:
        first = np.argwhere(where)[0][: access.array.ndim].tolist()
        if access.where is not None:
            first = [int(axis[tuple(np.argwhere(where)[0][: axis.ndim])]) for axis in access.where]
        count = int(where.any(axis=-1).sum())
        return PtoError(
            f"a race: {access.who} {access.kind} {count} elements of {access.name} that {other.who} {other.kind} "
            f"at {other.loc}, and nothing says which comes first",
            access.loc,
            hint="give each elements of its own, add with atomic=pl.AtomicType.Add, or order them: ranks by "
            "pld.system.notify and wait or a barrier, blocks by a launch of their own",
            note=f"the first such element is {first} of those it {access.kind} here; {other.who} {other.kind} it "
            f"as part of {other.name}",
        )
