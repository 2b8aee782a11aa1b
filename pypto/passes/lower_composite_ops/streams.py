"""The data of a reduction as rows of elements, and moving a piece of it into a tile.

A target whose elements are packed is read as one row, piece by piece; a partially valid one as the rectangle or the
start of that row that it is. A piece's tile is at most 16 KiB, so three of them fit any vector memory, and whole
blocks of 32 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...dtypes import DataType
from ...ir.enums import ReduceOp, TensorLayout
from ...ir.expr import Expr, Var, index_const
from ...ops.rules import all_same, dims_text, least, minus, product, same, value
from ...ops.tensor_memory import packed_strides
from ..emitting import kind_of
from .arithmetic import in_blocks, round_up
from .parts import Parts

PIECE_BYTES: Final = 16 * 1024
_BLOCK_BYTES: Final = 32
_ZERO, _ONE = index_const(0), index_const(1)
_COMBINE: Final = {
    ReduceOp.Sum: "add", ReduceOp.Max: "maximum", ReduceOp.Min: "minimum", ReduceOp.Prod: "mul",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stream:
    """``size`` elements in each row of ``view`` [rows, n], moved ``width`` at a time."""

    view: Expr
    size: Expr
    width: int

    @property
    def dtype(self) -> DataType:
        return kind_of(self.view).dtype

    @property
    def pieces(self) -> Expr:
        """How many pieces a row is moved in."""
        return in_blocks(self.size, self.width)


def stream_of(view: Expr, size: Expr, longest: Expr | None = None) -> Stream:
    """``view`` in pieces no wider than it takes for ``longest`` elements, by default the whole row."""
    block = block_of(kind_of(view).dtype)
    most, known = PIECE_BYTES // kind_of(view).dtype.get_byte(), value(longest or size)
    return Stream(view, size, most if known is None else min(most, -(-known // block) * block))


def block_of(dtype: DataType) -> int:
    """Elements of a transfer block."""
    return _BLOCK_BYTES // dtype.get_byte()


@dataclass(frozen=True, slots=True)
class Piece:
    """``valid`` elements of row ``row`` from ``start`` on."""

    stream: Stream
    row: Expr
    start: Expr
    valid: Expr

    @property
    def _offsets(self) -> list[Expr]:
        return [self.row, self.start]

    @property
    def _shape(self) -> list[Expr]:
        return [_ONE, index_const(self.stream.width)]

    def load(self, parts: Parts, role: str) -> Var:
        """This rank's piece, zeros after its end."""
        found = parts.bind(role, "load", self.stream.view, self._offsets, self._shape, [_ONE, self.valid])
        return _filled(parts, role, found)

    def load_from(self, parts: Parts, role: str, peer: Expr) -> Var:
        """Rank ``peer``'s piece, zeros after its end. Two-byte elements are read to the end of the last block."""
        padded = self.stream.dtype.get_byte() == 2
        read = round_up(self.valid, block_of(self.stream.dtype)) if padded else self.valid
        found = parts.apply(
            role, "pld.tile.remote_load", self.stream.view, peer, self._offsets, self._shape, [_ONE, read],
            allow_physical_tail_padding=padded,
        )  # fmt: skip
        if padded:
            found = parts.bind(f"{role}_exact", "set_validshape", found, _ONE, self.valid)
        return _filled(parts, role, found)

    def store(self, parts: Parts, role: str, tile: Expr) -> None:
        """Overwrite this rank's piece with the start of ``tile``."""
        valid = self.valid
        if is_partial(self.stream.view):
            valid = least(valid, minus(self.stream.size, self.start))  # says that the valid part does not grow
        exact = parts.bind(f"{role}_exact", "set_validshape", tile, _ONE, valid)
        parts.bind(role, "store", exact, self._offsets, self.stream.view)


def _filled(parts: Parts, role: str, tile: Expr) -> Var:
    return parts.bind(f"{role}_full", "fillpad_inplace", tile)


def piece_at(stream: Stream, column: Expr, row: Expr = _ZERO) -> Piece:
    """The piece of a row that begins at ``column``."""
    return Piece(stream, row, column, least(index_const(stream.width), minus(stream.size, column)))


def combine(parts: Parts, op: ReduceOp, a: Expr, b: Expr) -> Var:
    """Two tiles, element by element."""
    return parts.bind("reduced", _COMBINE[op], a, b)


# Targets.


def check_packed(parts: Parts, target: Expr) -> None:
    """Raise KernelValueError unless ``target`` is row major without gaps."""
    t = kind_of(target)
    if t.layout is not TensorLayout.ND:
        raise parts.refuse(f"only supports ND layout, got {t.layout.name}")
    stride = t.tensor_view.stride if t.tensor_view is not None else ()
    if stride and not all_same(stride, packed_strides(t.shape, TensorLayout.ND)):
        raise parts.refuse(
            f"requires a packed source, got strides {dims_text(stride)} for {dims_text(t.shape)}",
            "reduce the window itself, not a view of part of it",
        )


def is_partial(target: Expr) -> bool:
    t = kind_of(target)
    return not all_same(t.valid_shape, t.shape)


def one_row(parts: Parts, target: Expr) -> tuple[Expr, Expr]:
    """``target`` as a row, and how many of its elements count. Raises KernelValueError when those have gaps."""
    t = kind_of(target)
    if is_partial(target) and _leading(t.shape, t.valid_shape) is None:
        raise parts.refuse(
            f"needs the valid part of its target to be a contiguous row-major prefix, got {dims_text(t.valid_shape)} "
            f"of {dims_text(t.shape)}",
            "mode='mesh' takes a rectangle of rows",
        )
    size = product(t.valid_shape)
    return _viewed(parts, target, [_ONE, product(t.shape)], [_ONE, size]), size


def rectangle(parts: Parts, target: Expr) -> tuple[Expr, list[Expr]]:
    """A partially valid ``target`` as rows and columns, and the extents of its valid part."""
    t = kind_of(target)
    rows = _leading(t.shape[:-1], t.valid_shape[:-1])
    if rows is None:
        raise parts.refuse(
            f"valid_shape cannot be represented by a single 2D view: {dims_text(t.valid_shape)} of "
            f"{dims_text(t.shape)}",
            "whole rows, or the first columns of rows that follow each other",
        )
    valid = [rows, t.valid_shape[-1]]
    return _viewed(parts, target, [product(t.shape[:-1]), t.shape[-1]], valid), valid


def _viewed(parts: Parts, target: Expr, shape: list[Expr], valid: list[Expr]) -> Expr:
    # One element is a column, too, and would be loaded as one: a view of it says that it is a row.
    if all_same(shape, kind_of(target).shape) and value(shape[1]) != 1:
        return target
    return parts.apply("flat", "tensor.view", target, shape, valid if not all_same(shape, valid) else None)


def _leading(shape: list[Expr], valid: list[Expr]) -> Expr | None:
    """How many leading elements of ``shape`` the box ``valid`` is; None when they have gaps."""
    first = next((i for i, v in enumerate(valid) if value(v) != 1), len(valid))
    if not all(map(same, valid[first + 1 :], shape[first + 1 :])):
        return None
    return product(valid)
