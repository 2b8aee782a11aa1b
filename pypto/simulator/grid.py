"""The cores of one launch: its blocks, each a group of a cube core and vector lanes, and what they share."""

from __future__ import annotations

from typing import Any

from pypto.backend.target import Target

from .cores import Core
from .scheduler import Event

CUBE = "cube"


class Meeting:
    """Where cores wait for each other: `rounds` counts the times all have met, ``arrived`` who is there this time."""

    __slots__ = ("rounds", "arrived", "event")

    def __init__(self) -> None:
        self.rounds = 0
        self.arrived: set[str] = set()
        self.event = Event()


class Group:
    """One block of a launch. It does not hold its cores, so that their memories go as soon as they have ended."""

    __slots__ = ("grid", "index")

    def __init__(self, grid: Grid, index: int) -> None:
        self.grid, self.index = grid, index

    def core(self, kind: str, lane: int = 0) -> Core:
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
        )


class Grid:
    """The cores of one launch: ``blocks`` groups, in each ``cubes`` cube cores (one or none) and ``lanes`` vectors."""

    __slots__ = ("target", "blocks", "cubes", "lanes", "sanitize", "poison", "meetings")

    def __init__(
        self, target: Target, blocks: int, cubes: int, lanes: int, *, sanitize: bool = False, poison: int = 0xFF
    ) -> None:
        self.target, self.blocks, self.cubes, self.lanes = target, blocks, cubes, lanes
        self.sanitize, self.poison = sanitize, poison
        self.meetings: dict[Any, Meeting] = {}

    def meeting(self, key: Any) -> Meeting:
        """The meeting place called ``key``."""
        return self.meetings.setdefault(key, Meeting())
