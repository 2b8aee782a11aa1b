"""Pipes between the cores of a group: rings of slots that fill and empty, in global memory or on chip."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import NamedTuple

import numpy as np

from pypto.errors import Location
from pypto.pto.cross_rules import C2V, ODD_SPLITS
from pypto.pto.errors import PtoError
from pypto.pto.shapes import Tile

from .cores import Core
from .memory import Memory
from .scheduler import Event, Steps, Wait
from .tile import CheckedPoppedTile, CheckedTile, PoppedTile, SimTile
from .trace import Point
from .window import Pointer

_BY_COLUMNS = (2, 4)


_Held = tuple[PoppedTile | CheckedPoppedTile, Location | None]


class End(NamedTuple):
    """What one end says of a pipe, the same at both: bytes a slot, and slots."""

    slot_size: int
    slots: int


class Place(NamedTuple):
    """Where the tiles a core pops lie: a memory, the address of the first slot, and how many there are."""

    memory: Memory
    base: int
    slots: int


class Entry:
    """One slot while it is in use: a matrix made of what the producers pushed.

    ``pitch`` is its row length; ``covered`` says which elements were pushed, ``unwritten`` which of them nothing had
    written, in a sanitized run: a box crosses whole, with what is not valid in it. ``taken`` are the rows and columns
    popped, by lane; ``points`` what those who pushed had reached.
    """

    __slots__ = ("split", "dtype", "data", "covered", "unwritten", "pitch", "taken", "frees", "points")

    def __init__(self, split: int, dtype: str, data: np.ndarray, pitch: int) -> None:
        self.split, self.dtype, self.data, self.pitch = split, dtype, data, pitch
        self.covered = np.zeros(data.shape, np.bool_)
        self.unwritten: np.ndarray | None = None
        self.taken: dict[int, tuple[int, int]] = {}
        self.frees = 0
        self.points: list[Point] = []


class Ring:
    """One direction of a pipe of a group.

    A slot is full when every producer has pushed its share, and free again when every consumer has freed it. In global
    memory (``gm``) it holds the valid elements without gaps between rows.
    """

    def __init__(self, number: int, direction: str, end: End, producers: int, consumers: int) -> None:
        self.number, self.direction, self.end = number, direction, end
        self.gm: Pointer | None = None
        self.sides: set[str] = set()
        self.pushed, self.popped, self.freed = [0] * producers, [0] * consumers, [0] * consumers
        self.places: dict[int, Place] = {}
        self.held: list[deque[_Held]] = [deque() for _ in range(consumers)]
        self.entries: dict[int, Entry] = {}
        self.filled, self.emptied = Event(), Event()
        self._freed_at: defaultdict[int, list[Point]] = defaultdict(list)

    @property
    def name(self) -> str:
        way = "from the cube to the vectors" if self.direction == C2V else "from the vectors to the cube"
        return f"pipe {self.number} {way}"

    def _no_slot(self) -> str:
        held = sum(map(len, self.held))
        why = f"the other side holds {held} popped tiles it has not freed" if held else "the other side pops none"
        return f"a free slot of the {self.end.slots} of {self.name}: {self._alone() or why}"

    def _no_tile(self) -> str:
        return f"a tile from {self.name}: {self._alone() or 'the other side pushes none'}"

    def _alone(self) -> str:
        """What to say when only one side set the pipe up."""
        return f"only one side sets up pipe {self.number}" if len(self.sides) < 2 else ""

    # Pushing

    def push(self, core: Core, tile: SimTile, split: int, loc: Location | None) -> Steps:
        """Put a tile, or a lane's share, into the next slot."""
        lane = core.subblock_idx if len(self.pushed) > 1 else 0
        if not self.freed:
            raise PtoError(f"nothing pops from {self.name} in this launch")
        while self.pushed[lane] - min(self.freed) >= self.end.slots:
            yield Wait(self.emptied, self._no_slot, loc)
        turn = self.pushed[lane]
        core.after(self._freed_at.get(turn - self.end.slots, ()))
        share = SimTile.read(tile)
        entry = self.entries.get(turn)
        if entry is None or not entry.data.size:
            before = entry.points if entry is not None else []
            entry = self.entries[turn] = self._fill(turn, tile, split, core.poison)
            entry.points += before
        self._check_same(entry, split, tile.type.dtype, share)
        self._put(entry, share, self._share_start(entry, tile, lane), tile)
        entry.points += core.mark()
        self.pushed[lane] += 1
        self.filled.wake()

    def _fill(self, turn: int, tile: SimTile, split: int, poison: int) -> Entry:
        """A slot that begins to fill: its matrix, over the bytes of global memory or apart from them."""
        own = tile.type
        across = 2 if split in _BY_COLUMNS and self.direction != C2V else 1
        down = 2 if split and not across > 1 and self.direction != C2V else 1
        if self.gm is None:
            rows, cols = own.rows * down, own.cols * across
        else:
            rows, cols = own.rows * down, tile.valid[1] * across
        size = rows * cols * own.item
        if own.rows * own.cols * own.item * down * across > self.end.slot_size:
            raise PtoError(
                f"a tile of {own.rows * down}x{own.cols * across} {own.dtype} does not fit the slots of {self.name}, "
                f"of {self.end.slot_size} bytes"
            )
        if self.gm is None:
            data = np.full(size, poison, np.uint8).view(own.numpy).reshape(rows, cols)
            for place in self.places.values():
                _spoil(place, turn, self.end.slot_size)
        else:
            start = self.gm.offset * self.gm.buffer.dtype.itemsize + turn % self.end.slots * self.end.slot_size
            room = self.gm.buffer.bytes
            if not 0 <= start <= len(room) - self.end.slot_size:
                raise PtoError(f"the slots of {self.name} end outside {self.gm.buffer.name}, of {len(room)} bytes")
            data = room[start : start + size].view(own.numpy).reshape(rows, cols)
        return Entry(split, own.dtype, data, cols)

    def _check_same(self, entry: Entry, split: int, dtype: str, share: np.ndarray) -> None:
        if (entry.split, entry.dtype) != (split, dtype):
            raise PtoError(
                f"the lanes push {entry.dtype} with split {entry.split} and {dtype} with split {split} into one slot "
                f"of {self.name}"
            )
        width = share.shape[1] * (2 if split in _BY_COLUMNS and self.direction != C2V else 1)
        if self.gm is not None and share.size and width != entry.pitch:
            raise PtoError(f"the lanes push {entry.pitch} and {width} columns into one slot of {self.name}")

    def _share_start(self, entry: Entry, tile: SimTile, lane: int) -> tuple[int, int]:
        """Row and column of a slot at which what a lane pushes begins."""
        if not entry.split or self.direction == C2V or not lane:
            return 0, 0
        rows, cols = tile.valid if self.gm is not None else (tile.type.rows, tile.type.cols)
        return (0, cols) if entry.split in _BY_COLUMNS else (rows, 0)

    def _put(self, entry: Entry, share: np.ndarray, start: tuple[int, int], tile: SimTile) -> None:
        rows, cols = share.shape
        where = (slice(start[0], start[0] + rows), slice(start[1], start[1] + cols))
        again = entry.covered[where]
        if again.any() and entry.data[where][again].tobytes() != share[again].tobytes():
            raise PtoError(f"both lanes push to the same elements of a slot of {self.name}, and not the same values")
        entry.data[where] = share
        entry.covered[where] = True
        if isinstance(tile, CheckedTile):
            if entry.unwritten is None:
                entry.unwritten = np.zeros(entry.data.shape, np.bool_)
            entry.unwritten[where] = ~tile.written()

    # Popping

    def pop(self, core: Core, type: Tile, valid: tuple[int, int], split: int, loc: Location | None) -> Steps:
        """Take the next tile, or this lane's share of it; the tile lies in a slot of the core."""
        lane = core.subblock_idx if len(self.popped) > 1 else 0
        if not self.pushed:
            raise PtoError(f"nothing pushes to {self.name} in this launch")
        place = self.places[lane]
        while min(self.pushed) <= self.popped[lane]:
            yield Wait(self.filled, self._no_tile, loc)
        if len(self.held[lane]) >= place.slots:
            raise PtoError(f"pops a tile from {self.name} while all its {place.slots} slots here hold popped tiles")
        turn = self.popped[lane]
        entry = self.entries[turn]
        core.after(entry.points)
        part = self._take(entry, lane, type, valid, split)
        tile = core.popped(type, place.base + turn % place.slots * self.end.slot_size, valid)
        tile.write(entry.data[part])
        if isinstance(tile, CheckedTile) and entry.unwritten is not None:
            tile.lose(entry.unwritten[part])
        self.popped[lane] += 1
        self.held[lane].append((tile, loc))
        return tile

    def _take(self, entry: Entry, lane: int, type: Tile, valid: tuple[int, int], split: int) -> tuple[slice, slice]:
        """The part of a slot that a pop gets, after checking that it is what the other side means."""
        if (entry.split, entry.dtype) != (split, type.dtype):
            raise PtoError(
                f"pops {type.dtype} with split {split} where {entry.dtype} was pushed with split {entry.split}"
            )
        if type.nbytes > self.end.slot_size:
            raise PtoError(f"a tile of {type.nbytes} bytes does not fit a slot of {self.name}, of {self.end.slot_size}")
        rows, cols = valid
        if not rows or not cols:
            entry.taken[lane] = valid
            return slice(0, rows), slice(0, cols)
        self._check_pitch(entry, split, lane, cols)
        top, left = self._band(entry, lane, valid)
        part = (slice(top, top + rows), slice(left, left + cols))
        covered = entry.covered[part]
        if covered.shape != valid or not covered.all():
            raise PtoError(
                f"pops {rows}x{cols} elements at ({top}, {left}) of a slot of {self.name} into which "
                f"{int(entry.covered.sum())} were pushed, not all of these"
            )
        entry.taken[lane] = valid
        return part

    def _check_pitch(self, entry: Entry, split: int, lane: int, cols: int) -> None:
        """In global memory rows lie without gaps, so that both sides must mean rows of one length."""
        if self.gm is None:
            return
        width = cols
        if self.direction == C2V and split in _BY_COLUMNS:
            width = 2 * cols + ((1 if lane else -1) if split in ODD_SPLITS else 0)
        if width != entry.pitch:
            raise PtoError(f"pops rows of {width} columns where rows of {entry.pitch} were pushed to {self.name}")

    def _band(self, entry: Entry, lane: int, valid: tuple[int, int]) -> tuple[int, int]:
        """Row and column of a slot at which what a lane pops begins: after as much as it pops itself.

        Raises PtoError when the other lane took another number, which would move this one's share.
        """
        if not entry.split or self.direction != C2V or not lane:
            return 0, 0
        axis = 1 if entry.split in _BY_COLUMNS else 0
        start = valid[axis] + (1 if entry.split in ODD_SPLITS else 0)
        if self.gm is None:
            start = -(-int(entry.covered.any(axis=1 - axis).sum()) // 2)
        other = entry.taken.get(0)
        if other is not None and other[axis] != start and self.gm is not None:
            shares = f"{other[axis]} and {valid[axis]} {'columns' if axis else 'rows'}"
            raise PtoError(f"with split {entry.split}, the lanes pop {shares} of one slot")
        return (0, start) if axis else (start, 0)

    # Freeing

    def free(self, core: Core) -> None:
        """Give back the slot popped first."""
        lane = core.subblock_idx if len(self.popped) > 1 else 0
        if not self.held[lane]:
            raise PtoError(f"frees a slot of {self.name}, but holds none")
        tile, _ = self.held[lane].popleft()
        tile.lease.ended = True
        if isinstance(tile, CheckedTile):
            tile.forget("of a popped tile whose slot was freed")
        turn = self.freed[lane]
        self.freed[lane] += 1
        self._freed_at[turn] += core.mark()
        entry = self.entries[turn]
        entry.frees += 1
        if entry.frees == len(self.freed):
            del self.entries[turn]
            self.emptied.wake()


def _spoil(place: Place, turn: int, size: int) -> None:
    """A push overwrites the slot it goes to, whatever else lies there."""
    start = place.base + turn % place.slots * size
    place.memory.data[start : start + size] = place.memory.poison
    if place.memory.shadow is not None:
        place.memory.shadow[start : start + size] = 0
