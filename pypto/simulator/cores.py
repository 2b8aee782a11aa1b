"""The core a kernel runs on: its memories and its place among the other cores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pypto.backend.formats import round_up
from pypto.backend.target import Target
from pypto.pto.errors import PtoError
from pypto.pto.shapes import Tile
from pypto.pto.spec import Site
from pypto.pto.targets import memories

from .memory import Memory, check_range
from .tile import CheckedPoppedTile, CheckedTile, Lease, PoppedTile, SimTile

if TYPE_CHECKING:
    from .grid import Group
    from .trace import Point, Strand


def core_name(kind: str, block: int, lane: int) -> str:
    """What a core is called in messages."""
    return f"{f'vector lane {lane}' if kind == 'vector' else 'the cube'} of block {block}"


class Core:
    """Memories of one core, made on first use and filled with ``poison``; block and sub-block indices.

    ``kind`` is ``cube`` or ``vector``, ``group`` the block of a launch it belongs to, ``event_workspace`` whether
    it may use events between cores.
    ``strand``, if any, is told of its accesses to global memory.
    ``executed`` counts instructions by site and by the valid extents of the tile they worked on.
    """

    __slots__ = (
        "target",
        "poison",
        "sanitize",
        "kind",
        "group",
        "event_workspace",
        "block_idx",
        "block_num",
        "subblock_idx",
        "subblock_num",
        "strand",
        "executed",
        "_memories",
        "_tile",
        "_next",
    )

    def __init__(
        self,
        target: Target,
        *,
        poison: int = 0xFF,
        sanitize: bool = False,
        block_idx: int = 0,
        block_num: int = 1,
        subblock_idx: int = 0,
        kind: str = "vector",
        group: Group,
        strand: Strand | None = None,
    ) -> None:
        self.kind, self.group = kind, group
        self.event_workspace = not target.quirks.event_workspace
        self.target, self.poison, self.sanitize = target, poison, sanitize
        self.block_idx, self.block_num, self.subblock_idx = block_idx, block_num, subblock_idx
        self.strand = strand
        self.subblock_num = target.vectors_per_group
        self.executed: defaultdict[tuple[Site, tuple[int, int]], int] = defaultdict(int)
        self._memories: dict[str, Memory] = {}
        self._tile: type[SimTile] = CheckedTile if sanitize else SimTile
        self._next: dict[str, int] = {}

    @property
    def key(self) -> tuple[str, int, int]:
        """Which core of its launch it is."""
        return self.kind, self.block_idx, self.subblock_idx

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return core_name(*self.key)

    def mark(self) -> list[Point]:
        """Where the core is, in a run that is recorded."""
        return [] if self.strand is None else [self.strand.mark()]

    def after(self, points: Iterable[Point]) -> None:
        """What the core does from here on comes after ``points``."""
        if self.strand is not None:
            self.strand.after(points)

    def memory(self, loc: str, room: str | None = None) -> Memory:
        """The memory called ``loc``, or the ``room`` of its own under that name. Raises PtoError when there is none."""
        room = room or loc
        found = self._memories.get(room)
        if found is None:
            known = memories(self.target).get(loc)
            if known is None:
                raise PtoError(f"{self.target.module_arch} has no memory '{loc}'")
            found = self._memories[room] = Memory(
                room,
                known.usable,
                alignment=self.target.vector_address_alignment,
                poison=self.poison,
                sanitize=self.sanitize,
            )
        return found

    def place(self, loc: str, size: int, room: str | None = None) -> int:
        """An address in a memory for what the text gives none: after what was placed before it in the same ``room``."""
        alignment, room = memories(self.target)[loc].alignment, room or loc
        start = round_up(self._next.get(room, 0), alignment)
        self._next[room] = start + size
        return start

    def tile(self, tile: Tile, addr: int, valid: tuple[int, int]) -> SimTile:
        """A tile at a byte address. Raises PtoError when it lies outside its memory or is misaligned."""
        return self._tile.at(tile, self._reached(tile, addr), addr, valid)

    def popped(self, tile: Tile, addr: int, valid: tuple[int, int]) -> PoppedTile | CheckedPoppedTile:
        """A tile in a slot at a byte address, with a lease of it."""
        made = (CheckedPoppedTile if self.sanitize else PoppedTile).at(tile, self._reached(tile, addr), addr, valid)
        assert isinstance(made, (PoppedTile, CheckedPoppedTile))
        made.lease = Lease()
        return made

    def _reached(self, tile: Tile, addr: int) -> Memory:
        base = self.memory(tile.loc, tile.place)
        check_range(base, tile, addr)
        base.high = max(base.high, addr + tile.nbytes)
        return base

    def high_water(self) -> dict[str, int]:
        """Bytes used of each memory touched, up to the highest."""
        return {name: memory.high for name, memory in self._memories.items()}
