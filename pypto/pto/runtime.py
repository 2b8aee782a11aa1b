"""What an instruction's meaning sees of a tile or window when it runs, and helpers to write meanings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from .errors import PtoError
from .shapes import Tile
from .spec import Bind, Run, Site

Array = np.ndarray


class TileValue(Protocol):
    """A tile at run time. Arrays are two-dimensional, in the tile's element type."""

    type: Tile
    valid: tuple[int, int]
    """Valid rows and columns."""
    base: Any
    """Identity of the memory the tile is in."""
    addr: int
    """Byte address."""

    def read(self) -> Array:
        """The valid region; do not write to it."""
        ...

    def read_rows(self) -> tuple[Array, Array | None]:
        """The valid region, and the rows of it that nothing wrote where that is recorded and holds of some only."""
        ...

    def lose_rows(self, lost: Array | None) -> None:
        """Record that nothing wrote these rows."""
        ...

    def write(self, data: Array) -> None:
        """Set the valid region; ``data`` has its shape or broadcasts to it."""
        ...

    def read_at(self, row: int, col: int, rows: int, cols: int) -> Array:
        """A window of the whole buffer."""
        ...

    def write_at(self, row: int, col: int, data: Array) -> None:
        """Set a window of the whole buffer."""
        ...


class WindowValue(Protocol):
    """A window of a tensor in global memory at run time, with as many axes as the tensor."""

    dtype: np.dtype
    layout: str
    shape: tuple[int, ...]

    def matrix_shape(self) -> tuple[int, int]:
        """Rows and columns of the window seen as a tile: see `read`."""
        ...

    def read(self) -> Array:
        """Elements as rows and columns: leading axes are rows for nd and dn, fractals are put in order for nz."""
        ...

    def lines(self, places: Array, rows: bool) -> Array:
        """The rows, or else the elements counted row by row, at ``places``, one line each."""
        ...

    def put_lines(
        self, places: Array, data: Array, rows: bool, combine: Callable[[Array, Array], Array] | None
    ) -> None:
        """Set or combine what `lines` gives; of rows only as many elements as ``data`` has."""
        ...

    def write(self, data: Array, combine: Callable[[Array, Array], Array] | None) -> None:
        """Set all elements from rows and columns, or combine what is there with ``data``."""
        ...


def same_valid(site: Site, first: str, want: tuple[int, int], other: str, got: tuple[int, int]) -> None:
    """Error saying that two tiles disagree on valid extents at run time."""
    raise PtoError(
        f"'pto.{site.spec.mnemonic}': '{other}' has {got[0]}x{got[1]} valid elements but '{first}' {want[0]}x{want[1]}"
    )


def to_scalar(value: Any, dtype: np.dtype) -> Any:
    """A scalar of ``dtype``; integers wrap to its width, floats round to it."""
    if dtype.kind in "iu":
        bits = dtype.itemsize * 8
        value = int(value) & ((1 << bits) - 1)
        if dtype.kind == "i" and value >> (bits - 1):
            value -= 1 << bits
    return dtype.type(value)


def elementwise(function: Callable[..., Array]) -> Bind:
    """Meaning of an instruction that computes each element of its result from the same elements of its inputs.

    ``function`` takes arrays and scalars of one element type and gives an array; the result is
    converted to the element type of ``dst`` when it differs. Valid extents must agree when it runs.
    """

    def bind(site: Site) -> Run:
        ins = [operand.name for operand in site.spec.ins if not operand.scratch and site.has(operand.name)]
        tiles = [isinstance(site.types[name], Tile) for name in ins]
        dtype = site.tile(ins[tiles.index(True)] if any(tiles) else "dst").numpy
        out = site.tile("dst").numpy

        def checked(value: TileValue, name: str, want: tuple[int, int]) -> Array:
            if value.valid != want:
                same_valid(site, "dst", want, name, value.valid)
            return value.read()

        def unary(src: TileValue, dst: TileValue) -> None:
            dst.write(function(checked(src, ins[0], dst.valid)))

        def binary(src0: TileValue, src1: TileValue, dst: TileValue) -> None:
            want = dst.valid
            if src0.valid != want or src1.valid != want:
                bad = (ins[0], src0) if src0.valid != want else (ins[1], src1)
                same_valid(site, "dst", want, bad[0], bad[1].valid)
            dst.write(function(src0.read(), src1.read()))

        def scalar(src: TileValue, value: Any, dst: TileValue) -> None:
            dst.write(function(checked(src, ins[0], dst.valid), to_scalar(value, dtype)))

        def general(*values: Any) -> None:
            *given, dst = values
            arrays = [
                checked(value, name, dst.valid) if is_tile else to_scalar(value, dtype)
                for value, name, is_tile in zip(given, ins, tiles, strict=True)
            ]
            result = function(*arrays)
            dst.write(result if result.dtype == out else result.astype(out))

        if dtype == out:
            fast = {(True,): unary, (True, True): binary, (True, False): scalar}.get(tuple(tiles))
            if fast is not None:
                return fast
        return general

    return bind


def vector_cost(passes: float = 1.0, of: str = "dst") -> Callable[[Site, int, int], float]:
    """Cycles of a vector instruction: one repeat handles 256 bytes of a row in a cycle, ``passes`` times over.

    256 bytes is the documented repeat of the vector unit; no start-up is counted.
    """

    def cost(site: Site, rows: int, cols: int) -> float:
        item = site.tile(of).item
        return passes * rows * -(-cols * item // 256)

    return cost
