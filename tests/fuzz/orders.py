"""Tiny programs of ranks: what a sanitized run says of one order, against a search through all of them.

A rank reads and writes cells of a window, adds to and sets signals, and waits for them. A program has a race when some
order leads to where two ranks are about to access one cell, one of them writing it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pypto.pto.errors import PtoError
from pypto.simulator.trace import Trace

READ, WRITE, ADD, SET, WAIT = "read", "write", "add", "set", "wait"
_CELLS, _SIGNALS, _MOST_STATES = 2, 2, 20_000


class Step(NamedTuple):
    """What a rank does next to a cell, or to a signal with a value."""

    kind: str
    at: int
    value: int = 0


Program = list[list[Step]]
State = tuple[tuple[int, ...], tuple[int, ...]]
"""How far each rank is, and the values of the signals."""


def program(seed: int, sets: bool = False) -> Program:
    """A random program whose signals are added to, or, with ``sets``, some of them set to rising values."""
    choose = random.Random(seed)
    ranks = choose.choice((2, 2, 3))
    set_here = [sets and choose.random() < 0.5 for _ in range(_SIGNALS)]
    made: Program = []
    for _ in range(ranks):
        steps = []
        for _ in range(choose.randint(2, 5)):
            kind = choose.choice((READ, WRITE, ADD, ADD, WAIT, WAIT))
            at = choose.randrange(_SIGNALS if kind in (ADD, WAIT) else _CELLS)
            if kind == ADD:
                kind = SET if set_here[at] else ADD
            steps.append(Step(kind, at, 1 if kind == ADD else choose.randint(1, 2)))
        made.append(steps)
    if sets:
        # One rank sets a signal, so that the order of what is set is known.
        for signal in range(_SIGNALS):
            owner, value = choose.randrange(ranks), 0
            for rank, steps in enumerate(made):
                for i, step in enumerate(steps):
                    if step.kind == SET and step.at == signal:
                        value += 1
                        steps[i] = step._replace(value=value) if rank == owner else Step(READ, signal)
    return made


def moves(steps: Program, state: State) -> Iterator[tuple[int, State]]:
    """The ranks that can go on, and where that leads."""
    places, signals = state
    for rank, place in enumerate(places):
        if place == len(steps[rank]):
            continue
        step, after = steps[rank][place], list(signals)
        if step.kind == WAIT and signals[step.at] < step.value:
            continue
        if step.kind == ADD:
            after[step.at] += step.value
        elif step.kind == SET:
            after[step.at] = step.value
        yield rank, (tuple(p + (r == rank) for r, p in enumerate(places)), tuple(after))


def start(steps: Program) -> State:
    return (0,) * len(steps), (0,) * _SIGNALS


def has_race(steps: Program) -> bool | None:
    """Whether some order leads to a race; None when some order gets stuck, or there are too many."""
    seen, queue = {start(steps)}, [start(steps)]
    race = False
    while queue:
        state = queue.pop()
        coming = [s[p] for s, p in zip(steps, state[0]) if p < len(s)]
        race = race or any(
            a.at == b.at and {a.kind, b.kind} <= {READ, WRITE} and WRITE in (a.kind, b.kind)
            for i, a in enumerate(coming) for b in coming[:i]
        )  # fmt: skip
        found = [after for _, after in moves(steps, state)]
        if not found and coming:
            return None
        new = set(found) - seen
        seen |= new
        queue += new
        if len(seen) > _MOST_STATES:
            return None
    return race


def reported(steps: Program, seed: int) -> bool:
    """Whether the record of one order, chosen by ``seed``, has a race in it. No order gets stuck."""
    choose = random.Random(seed)
    trace = Trace()
    strands = [trace.root.fork(f"rank {rank}") for rank in range(len(steps))]
    cells, signals = np.zeros(_CELLS, np.float32), np.zeros(_SIGNALS, np.int32)
    state = start(steps)
    while options := list(moves(steps, state)):
        rank, after = choose.choice(options)
        step, strand = steps[rank][state[0][rank]], strands[rank]
        here = (cells if step.kind in (READ, WRITE) else signals)[step.at : step.at + 1]
        if step.kind == READ:
            strand.read(here, "the window")
        elif step.kind == WRITE:
            strand.write(here, "the window")
        elif step.kind == WAIT:
            strand.awaited(here, ">=", step.value)
        else:
            strand.signal(here, [step.value], step.kind == ADD)
        state = after
        signals[:] = state[1]
    try:
        trace.root.join(strands)
    except PtoError:
        return True
    return False


def figures(seeds: range, sets: bool = False) -> dict[str, int]:
    """How many programs have races and are said to, have none and are not, and what the others are."""
    counts = dict.fromkeys(("stuck", "races", "none", "missed", "wrongly reported"), 0)
    for seed in seeds:
        steps = program(seed, sets)
        race = has_race(steps)
        if race is None:
            counts["stuck"] += 1
            continue
        said = reported(steps, seed)
        counts[{(True, True): "races", (False, False): "none", (True, False): "missed"}.get(
            (race, said), "wrongly reported")] += 1  # fmt: skip
    return counts
