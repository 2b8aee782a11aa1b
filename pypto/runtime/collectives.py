"""The runtime's own collectives, as a host function launches them on each device.

Each device has a task that waits until the others are there; the last one moves the data. Signals are counters that a
collective leaves as they were: they say here which tasks belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import Location
from ..ir.enums import ReduceOp
from ..simulator.ranks import Window
from ..simulator.scheduler import Event, Wait

if TYPE_CHECKING:
    from ..simulator.scheduler import Steps
    from ..simulator.trace import Point, Strand

BUILTIN: Final = "builtin.tensor."
Slices = Sequence[np.ndarray]
"""A window's slice on each rank."""
_COMBINE: Final[dict[ReduceOp, np.ufunc]] = {
    ReduceOp.Sum: np.add, ReduceOp.Max: np.maximum, ReduceOp.Min: np.minimum, ReduceOp.Prod: np.multiply,
}  # fmt: skip


class Meeting:
    """One collective, of ranks that come to it in any order."""

    def __init__(self, name: str, ranks: int, run: Callable[[], None]) -> None:
        self.name, self.missing, self._run = name, set(range(ranks)), run
        self._over = Event()
        self._points: list[Point] = []

    def attend(self, rank: int, loc: Location | None, strand: Strand | None) -> Steps:
        """Steps of one rank: they end when every rank has come, and the last one has run the collective.

        ``strand`` is what the rank does, in a sanitized run.
        """
        if strand is not None:
            self._points.append(strand.mark())
        self.missing.discard(rank)
        if not self.missing:
            self._run()
            self._over.wake()
        while self.missing:
            yield Wait(self._over, self._awaited, loc)
        if strand is not None:
            strand.after(self._points)

    def _awaited(self) -> str:
        ranks = ", ".join(map(str, sorted(self.missing)))
        return f"rank{'s' if len(self.missing) > 1 else ''} {ranks} to come to {self.name}"


def collective(name: str, windows: Mapping[str, Window], settings: Mapping[str, Any]) -> Callable[[], None]:
    """What runs the builtin ``name`` on windows, by parameter, of all ranks."""
    move = _MOVES[name.removeprefix(BUILTIN)]

    def run() -> None:
        move({parameter: window.slices for parameter, window in windows.items()}, settings)
        for window in windows.values():
            window.memory.changed.wake()

    return run


def _barrier(of: Mapping[str, Slices], settings: Mapping[str, Any]) -> None:
    """Every rank is here: nothing is moved."""


def _allreduce(of: Mapping[str, Slices], settings: Mapping[str, Any]) -> None:
    combine = _COMBINE[settings["op"]]
    total = np.array(of["src"][0])
    for own in of["src"][1:]:
        total = combine(total, np.asarray(own))
    for own in of["src"]:
        own[...] = total


def _broadcast(of: Mapping[str, Slices], settings: Mapping[str, Any]) -> None:
    for own in of["target"]:
        own[...] = of["target"][settings["root"]]


def _reduce_scatter(of: Mapping[str, Slices], settings: Mapping[str, Any]) -> None:
    for rank, own in enumerate(of["target"]):
        total = np.array(of["target"][0][rank])
        for other in of["target"][1:]:
            total = total + np.asarray(other[rank])
        own[rank] = total


def _allgather(of: Mapping[str, Slices], settings: Mapping[str, Any]) -> None:
    for own in of["target"]:
        for rank, row in enumerate(of["local_data"]):
            own[rank] = row[0]


def _all_to_all(of: Mapping[str, Slices], settings: Mapping[str, Any]) -> None:
    _exchange(of["input"], of["target"], 1)


def _all_to_all_v(of: Mapping[str, Slices], settings: Mapping[str, Any]) -> None:
    ranks = len(of["target"])
    rows = of["target"][0].shape[0] // ranks
    _exchange(of["input"], of["target"], rows)
    for sender, counts in enumerate(of["send_counts"]):
        for receiver in range(ranks):
            of["recv_counts"][receiver][sender, 0] = min(int(counts.flat[receiver]), rows)


def _exchange(inputs: Slices, targets: Slices, rows: int) -> None:
    """Block ``d`` of each rank's input, of so many rows, becomes that rank's block of rank ``d``'s target."""
    for receiver, target in enumerate(targets):
        for sender, given in enumerate(inputs):
            target[sender * rows : (sender + 1) * rows] = given[receiver * rows : (receiver + 1) * rows]


_MOVES: Final[dict[str, Callable[[Mapping[str, Slices], Mapping[str, Any]], None]]] = {
    "allreduce": _allreduce,
    "allreduce_ring": _allreduce,
    "barrier": _barrier,
    "broadcast": _broadcast,
    "reduce_scatter": _reduce_scatter,
    "allgather": _allgather,
    "all_to_all": _all_to_all,
    "all_to_all_v": _all_to_all_v,
}
BUILTINS: Final = tuple(BUILTIN + name for name in _MOVES)
