"""The cores of one launch: its blocks, each a group of a cube core and vector lanes, and what they share."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from pypto.backend.target import Target
from pypto.errors import Location
from pypto.pto.cross_rules import C2V
from pypto.pto.errors import PtoError

from .cores import Core
from .rings import End, Ring
from .scheduler import Event, Steps, Wait
from .trace import Point, Strand

CUBE, VECTOR = "cube", "vector"


Key = tuple[str, int, int]
"""A core of a launch: its kind, block and lane."""

_MOST = 15


class Meeting:
    """Where cores wait for each other: `rounds` counts the times all have met, ``arrived`` who is there this time."""

    __slots__ = ("rounds", "arrived", "event", "points", "_coming")

    def __init__(self) -> None:
        self.rounds = 0
        self.arrived: set[Key] = set()
        self.event = Event()
        self.points: list[list[Point]] = []
        """For each round, what the cores had reached when they came."""
        self._coming: list[Point] = []

    def arrive(self, core: Core, count: int) -> bool:
        """Note who came; whether ``count`` have, which begins the next round."""
        self.arrived.add(core.key)
        self._coming += core.mark()
        if len(self.arrived) < count:
            return False
        self.arrived.clear()
        self.points.append(self._coming)
        self._coming = []
        self.rounds += 1
        self.event.wake()
        return True


class Group:
    """One block of a launch. It does not hold its cores, so that their memories go as soon as they have ended."""

    __slots__ = ("grid", "index", "rings", "_workspace")

    def __init__(self, grid: Grid, index: int) -> None:
        self.grid, self.index = grid, index
        self.rings: dict[tuple[int, str], Ring] = {}
        self._workspace: np.ndarray | None = None

    def core(self, kind: str, lane: int = 0, strand: Strand | None = None) -> Core:
        """The cube core, or a vector lane, with nothing in its memories."""
        grid = self.grid
        return Core(
            grid.target,
            poison=grid.poison,
            sanitize=grid.sanitize,
            block_idx=self.index,
            block_num=grid.blocks,
            subblock_idx=lane,
            kind=kind,
            group=self,
            strand=strand,
        )

    def workspace(self, size: int) -> np.ndarray:
        """The bytes in global memory that the pipes of the group go through, as f32; the same ones each time."""
        if self._workspace is None:
            self._workspace = np.zeros(-(-size // 4), np.float32)
        return self._workspace

    def ring(self, number: int, direction: str, end: End) -> Ring:
        """One direction of a pipe, made when its first end is set up. Raises PtoError when the ends disagree."""
        found = self.rings.get((number, direction))
        if found is None:
            sides = self.grid.cubes, self.grid.lanes
            producers, consumers = sides if direction == C2V else sides[::-1]
            found = self.rings[number, direction] = Ring(number, direction, end, producers, consumers)
        elif found.end != end:
            raise PtoError(
                f"one side sets {found.name} up with {found.end.slots} slots of {found.end.slot_size} bytes, the other "
                f"with {end.slots} of {end.slot_size}"
            )
        return found


class Grid:
    """The cores of one launch: ``blocks`` groups, in each ``cubes`` cube cores (one or none) and ``lanes`` vectors."""

    __slots__ = (
        "target", "blocks", "cubes", "lanes", "sanitize", "poison", "_meetings", "_raised", "_signals", "_woken"
    )  # fmt: skip

    def __init__(
        self, target: Target, blocks: int, cubes: int, lanes: int, *, sanitize: bool = False, poison: int = 0xFF
    ) -> None:
        self.target, self.blocks, self.cubes, self.lanes = target, blocks, cubes, lanes
        self.sanitize, self.poison = sanitize, poison
        self._meetings: defaultdict[str, Meeting] = defaultdict(Meeting)
        self._raised: defaultdict[object, defaultdict[Key, deque[list[Point]]]] = defaultdict(_queues)
        self._signals: defaultdict[tuple[Key, int], deque[list[Point]]] = defaultdict(deque)
        self._woken: defaultdict[Key, Event] = defaultdict(Event)

    def keys(self, kind: str, block: int | None = None) -> list[Key]:
        """The cores of one kind, of one block or of all."""
        lanes = range(self.cubes if kind == CUBE else self.lanes)
        return [(kind, b, lane) for b in (range(self.blocks) if block is None else (block,)) for lane in lanes]

    def meeting(self, name: str) -> Meeting:
        """The meeting place of that name."""
        return self._meetings[name]

    # Events between cores: counters. They come from all of the cores that raise them, together.

    def raise_event(self, core: Core, event: int, mode: int) -> None:
        """Raise an event: 0 for all cores of the same kind, 1 for those of the group, 2 for the other kind in it."""
        block = None if mode == 0 else core.block_idx
        senders = self.keys(core.kind, block)
        receivers = senders if mode != 2 else self.keys(VECTOR if core.kind == CUBE else CUBE, block)
        raised = self._raised[mode, block, core.kind, event]
        raised[core.key].append(core.mark())
        if any(not raised[sender] for sender in senders):
            return
        points = [point for sender in senders for point in raised[sender].popleft()]
        for receiver in receivers:
            self._signals[receiver, event].append(points)
            if len(self._signals[receiver, event]) > _MOST:
                raise PtoError(f"event {event} is raised {_MOST + 1} times and never waited for")
            self._woken[receiver].wake()

    def await_event(self, core: Core, event: int, loc: Location | None) -> Steps:
        """Wait for an event, and take it."""
        while not self._signals[core.key, event]:
            yield Wait(self._woken[core.key], f"event {event}, which the cores it comes from have not all raised", loc)
        core.after(self._signals[core.key, event].popleft())


def _queues() -> defaultdict[Key, deque[list[Point]]]:
    return defaultdict(deque)
