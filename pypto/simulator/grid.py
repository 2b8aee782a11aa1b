"""The cores of one launch: its blocks, each a group of a cube core and vector lanes, and what they share."""

from __future__ import annotations

from typing import Any

from pypto.backend.target import Target

from .cores import Core
from .scheduler import Event

CUBE, VECTOR = "cube", "vector"


class Meeting:
    """Where cores wait for each other: `rounds` counts the times all have met, ``arrived`` who is there this time."""

    __slots__ = ("rounds", "arrived", "event")

    def __init__(self) -> None:
        self.rounds = 0
        self.arrived: set[Core] = set()
        self.event = Event()


class Group:
    """One block of a launch: the cores that run it."""

    __slots__ = ("grid", "index", "pipes", "_cores")

    def __init__(self, grid: Grid, index: int) -> None:
        self.grid, self.index = grid, index
        self.pipes: dict[Any, Any] = {}
        self._cores: dict[tuple[str, int], Core] = {}

    def core(self, kind: str, lane: int = 0) -> Core:
        """The cube core, or a vector lane; the same one each time."""
        found = self._cores.get((kind, lane))
        if found is None:
            grid = self.grid
            found = self._cores[kind, lane] = Core(
                grid.target,
                poison=grid.poison,
                sanitize=grid.sanitize,
                block_idx=self.index,
                block_num=grid.blocks,
                subblock_idx=lane,
                kind=kind,
                group=self,
            )
        return found

    def cores(self, kind: str) -> list[Core]:
        """All cores of one kind."""
        return [self.core(kind, lane) for lane in range(self.grid.lanes if kind == VECTOR else self.grid.cubes)]


class Grid:
    """The cores of one launch: ``blocks`` groups, in each ``cubes`` cube cores (one or none) and ``lanes`` vectors."""

    __slots__ = ("target", "blocks", "cubes", "lanes", "sanitize", "poison", "groups", "meetings")

    def __init__(
        self, target: Target, blocks: int, cubes: int, lanes: int, *, sanitize: bool = False, poison: int = 0xFF
    ) -> None:
        self.target, self.blocks, self.cubes, self.lanes = target, blocks, cubes, lanes
        self.sanitize, self.poison = sanitize, poison
        self.groups = [Group(self, index) for index in range(blocks)]
        self.meetings: dict[Any, Meeting] = {}

    def cores(self, kind: str) -> list[Core]:
        """All cores of one kind."""
        return [core for group in self.groups for core in group.cores(kind)]

    def meeting(self, key: Any) -> Meeting:
        """The meeting place called ``key``."""
        return self.meetings.setdefault(key, Meeting())
