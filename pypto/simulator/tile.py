"""A tile while a kernel runs: a place in a memory, seen through its physical layout."""

from __future__ import annotations

import numpy as np

from pypto.backend.formats import round_up
from pypto.pto.errors import PtoError
from pypto.pto.shapes import Tile

from .memory import Layout, Memory, layout_of, view


class SimTile:
    """A tile: `read` and `write` its valid region, or windows of its whole buffer.

    Plain layouts are strided views of the bytes. Boxed ones are four-dimensional views of whole
    boxes, read by flattening and written box by box.
    """

    __slots__ = ("type", "base", "addr", "valid", "_layout", "_view", "_window")

    def __init__(
        self,
        tile: Tile,
        base: Memory,
        addr: int,
        valid: tuple[int, int],
        elements: np.ndarray,
        layout: Layout,
    ) -> None:
        self.type, self.base, self.addr = tile, base, addr
        self._view, self._layout = elements, layout
        self.set_valid(*valid)

    @classmethod
    def at(cls, tile: Tile, base: Memory, addr: int, valid: tuple[int, int]) -> SimTile:
        """The tile at a byte address of a memory."""
        layout = layout_of(tile, tile.rows, tile.cols)
        return cls(tile, base, addr, valid, view(base.data, addr, layout, tile.numpy), layout)

    def sub(self, tile: Tile, row: int, col: int, valid: tuple[int, int]) -> SimTile:
        """A window of the buffer as a tile of type ``tile``, keeping the buffer's strides.

        Raises PtoError when it leaves the buffer, or does not start on a box.
        """
        own = self.type
        if row < 0 or col < 0 or row + tile.rows > own.rows or col + tile.cols > own.cols:
            raise PtoError(
                f"a view of {tile.rows}x{tile.cols} at ({row}, {col}) leaves a tile of {own.rows}x{own.cols}"
            )
        strides = self._layout.strides
        shape = layout_of(tile, tile.rows, tile.cols).shape
        if own.boxed:
            box_rows, box_cols = own.box
            if row % box_rows or col % box_cols:
                raise PtoError(f"a view at ({row}, {col}) does not start on a {box_rows}x{box_cols} box")
            addr = self.addr + row // box_rows * strides[0] + col // box_cols * strides[2]
        else:
            addr = self.addr + row * strides[0] + col * strides[1]
        layout = Layout(shape, strides, self._layout.box)
        return type(self)(tile, self.base, addr, valid, view(self.base.data, addr, layout, tile.numpy), layout)

    def recast(self, tile: Tile, valid: tuple[int, int]) -> SimTile:
        """The same bytes as another tile type. Raises PtoError for a window with gaps between its rows."""
        own = self._layout
        dense = layout_of(self.type, self.type.rows, self.type.cols)
        if any(a != b for a, b, extent in zip(own.strides, dense.strides, own.shape, strict=True) if extent > 1):
            raise PtoError("a view with gaps between its rows cannot be reshaped")
        return type(self).at(tile, self.base, self.addr, valid)

    @property
    def elements(self) -> np.ndarray:
        """The valid region in place, or the whole buffer of a boxed tile."""
        return self._view if self._window is None else self._window

    @property
    def strides(self) -> tuple[int, ...]:
        return self._layout.strides

    def set_valid(self, rows: int, cols: int) -> None:
        """Change the valid extents. Raises PtoError when they exceed the buffer."""
        tile = self.type
        if not (0 <= rows <= tile.rows and 0 <= cols <= tile.cols):
            raise PtoError(f"{rows}x{cols} valid elements in a tile of {tile.rows}x{tile.cols}")
        self.valid = (rows, cols)
        if tile.boxed:
            self._window = None
            if tile.compact:
                self._pack(rows, cols)
        else:
            self._window = self._view[:rows, :cols]

    def _pack(self, rows: int, cols: int) -> None:
        """A compact tile has the boxes of its valid extents only, without gaps."""
        box_rows, box_cols = self.type.box
        packed = layout_of(self.type, round_up(rows, box_rows), round_up(cols, box_cols))
        self._layout = packed
        self._view = view(self.base.data, self.addr, packed, self.type.numpy)

    def read(self) -> np.ndarray:
        if self._window is not None:
            return self._window
        return self._boxed(0, 0, *self.valid)

    def read_rows(self) -> tuple[np.ndarray, np.ndarray | None]:
        return self.read(), None

    def lose_rows(self, lost: np.ndarray | None) -> None:
        """Nothing is recorded."""

    def write(self, data: np.ndarray) -> None:
        if self._window is not None:
            self._window[...] = data
        else:
            self._set_boxed(0, 0, np.broadcast_to(data, self.valid))

    def read_at(self, row: int, col: int, rows: int, cols: int) -> np.ndarray:
        if self._window is not None:
            return self._view[row : row + rows, col : col + cols]
        return self._boxed(row, col, rows, cols)

    def write_at(self, row: int, col: int, data: np.ndarray) -> None:
        rows, cols = data.shape
        if self._window is not None:
            self._view[row : row + rows, col : col + cols] = data
        else:
            self._set_boxed(row, col, data)

    def _boxes(self, row: int, col: int, rows: int, cols: int) -> tuple[np.ndarray, int, int]:
        """The boxes a window touches, and where in them it starts."""
        box_rows, box_cols = self.type.box
        top, left = row // box_rows, col // box_cols
        bottom, right = -(-(row + rows) // box_rows), -(-(col + cols) // box_cols)
        return self._view[top:bottom, :, left:right], row - top * box_rows, col - left * box_cols

    def _boxed(self, row: int, col: int, rows: int, cols: int) -> np.ndarray:
        boxes, skip_rows, skip_cols = self._boxes(row, col, rows, cols)
        down, box_rows, across, box_cols = boxes.shape
        whole = boxes.reshape(down * box_rows, across * box_cols)
        return whole[skip_rows : skip_rows + rows, skip_cols : skip_cols + cols]

    def _set_boxed(self, row: int, col: int, data: np.ndarray) -> None:
        rows, cols = data.shape
        boxes, skip_rows, skip_cols = self._boxes(row, col, rows, cols)
        down, box_rows, across, box_cols = boxes.shape
        shape = (down * box_rows, across * box_cols)
        if shape != data.shape:
            whole = boxes.reshape(shape)
            if np.shares_memory(whole, boxes):
                whole = whole.copy()
            whole[skip_rows : skip_rows + rows, skip_cols : skip_cols + cols] = data
            data = whole
        boxes[...] = data.reshape(boxes.shape)


class CheckedTile(SimTile):
    """A tile that remembers which bytes were written, and refuses to read others."""

    __slots__ = ()

    def _flags(self) -> SimTile:
        """The written flags, laid out as the elements are: a tile of integers as wide as an element."""
        if self.base.shadow is None:
            raise PtoError("this memory keeps no record of writes")
        flags = view(self.base.shadow, self.addr, self._layout, np.dtype(f"u{self.type.numpy.itemsize}"))
        twin = SimTile.__new__(SimTile)
        twin.type, twin.base, twin.addr, twin.valid = self.type, self.base, self.addr, self.valid
        twin._view, twin._layout = flags, self._layout
        twin._window = None if self.type.boxed else flags[: self.valid[0], : self.valid[1]]
        return twin

    def _require(self, row: int, col: int, rows: int, cols: int) -> None:
        flags = self._flags().read_at(row, col, rows, cols)
        written = flags == np.iinfo(flags.dtype).max
        if not written.all():
            where = np.argwhere(~written)[0]
            what = self.base.lost_at(self.addr, self.addr + self.type.nbytes) or "that were never written"
            raise PtoError(
                f"reads {written.size - int(written.sum())} elements {what}, the first at "
                f"({row + int(where[0])}, {col + int(where[1])}) of a tile of {self.type.rows}x{self.type.cols} "
                f"at {self.addr} in {self.base.name}"
            )

    def forget(self, why: str | None = None) -> None:
        """Lose the contents, as scratch does: poison the elements and forget that they were written.

        ``why`` continues "reads elements .." in the message about one who reads them then.
        """
        if why is not None:
            self.base.lost.append((self.addr, self.addr + self.type.nbytes, why))
        if self.base.shadow is not None:
            poisoned = np.full((), self.base.poison, np.uint8).repeat(self.type.numpy.itemsize).view(self.type.numpy)
            self._view[...] = poisoned[0]
            self._flags()._view[...] = 0

    def written(self) -> np.ndarray:
        """Which valid elements were written."""
        flags = self._flags().read_at(0, 0, *self.valid)
        return flags == np.iinfo(flags.dtype).max

    def lose(self, lost: np.ndarray) -> None:
        """Forget that the valid elements in a mask were written."""
        flags = self._flags()
        flags.write_at(0, 0, np.where(lost, 0, flags.read_at(0, 0, *self.valid)))

    def _mark(self, row: int, col: int, rows: int, cols: int) -> None:
        flags = self._flags()
        full = np.iinfo(f"u{self.type.numpy.itemsize}").max
        flags.write_at(row, col, np.full((rows, cols), full, f"u{self.type.numpy.itemsize}"))

    def read(self) -> np.ndarray:
        self._require(0, 0, *self.valid)
        return super().read()

    def read_rows(self) -> tuple[np.ndarray, np.ndarray | None]:
        lost = np.logical_not(self.written().all(axis=1))
        if not lost.any() or lost.all():
            return self.read(), None
        return super().read(), np.asarray(lost)

    def lose_rows(self, lost: np.ndarray | None) -> None:
        if lost is not None:
            self.lose(np.broadcast_to(lost[:, None], self.valid))

    def read_at(self, row: int, col: int, rows: int, cols: int) -> np.ndarray:
        self._require(row, col, rows, cols)
        return super().read_at(row, col, rows, cols)

    def write(self, data: np.ndarray) -> None:
        super().write(data)
        self._mark(0, 0, *self.valid)

    def write_at(self, row: int, col: int, data: np.ndarray) -> None:
        super().write_at(row, col, data)
        self._mark(row, col, *data.shape)


class Lease:
    """Whether a popped tile still has its slot."""

    __slots__ = ("ended",)

    def __init__(self) -> None:
        self.ended = False


class _Popped(SimTile):
    """A tile in the slot it was popped to, and views of it: unreadable once the slot is given back."""

    __slots__ = ()
    lease: Lease

    def sub(self, tile: Tile, row: int, col: int, valid: tuple[int, int]) -> SimTile:
        return self._leased(super().sub(tile, row, col, valid))

    def recast(self, tile: Tile, valid: tuple[int, int]) -> SimTile:
        return self._leased(super().recast(tile, valid))

    def _leased(self, made: SimTile) -> SimTile:
        if isinstance(made, _Popped):
            made.lease = self.lease
        return made

    def _check(self) -> None:
        if self.lease.ended:
            raise PtoError("reads a popped tile whose slot was freed: the next tile is put there")

    @property
    def elements(self) -> np.ndarray:
        self._check()
        return super().elements

    def read(self) -> np.ndarray:
        self._check()
        return super().read()

    def read_at(self, row: int, col: int, rows: int, cols: int) -> np.ndarray:
        self._check()
        return super().read_at(row, col, rows, cols)


class PoppedTile(_Popped):
    __slots__ = ("lease",)


class CheckedPoppedTile(_Popped, CheckedTile):
    __slots__ = ("lease",)
