"""A lane's share of a tile: which axis is divided, where each lane's part begins, how much of it is valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ir import expr as E
from ...ir.expr import Expr, Var, index_const
from ...ir.node import NodeList
from ...ir.scalar import binary
from ...ir.types import TileType
from ...ops.rules import value as known


class Share(NamedTuple):
    """A lane's part of a tile: cells ``lane * stride`` and on of ``axis``, ``half`` of them in its buffer."""

    axis: int
    half: int
    stride: int


class Lane:
    """The lane at work, and how much each lane gets of a ragged tile instead of half its buffer."""

    def __init__(self, index: Var, stride: int | None = None) -> None:
        self.index, self.balanced = index, stride

    def share(self, axis: int, size: int) -> Share:
        """The share of a tile of ``size`` cells along ``axis``."""
        half = (size + 1) // 2
        return Share(axis, half, self.balanced or half)

    def begin(self, share: Share) -> Expr:
        """Where the lane's part begins."""
        return binary(E.Mul, self.index, index_const(share.stride))

    def moved(self, offset: Expr, share: Share) -> Expr:
        """``offset`` into a whole tensor or tile, for this lane."""
        return binary(E.Add, offset, self.begin(share))

    def valid(self, extent: Expr, size: Expr, share: Share) -> Expr:
        """How many of ``extent`` valid cells, out of ``size``, are in this lane's part."""
        total = known(size)
        if known(extent) == total and total is not None and total == 2 * share.stride:
            return index_const(share.half)
        begin, stride = self.begin(share), index_const(share.stride)
        return binary(E.Min, binary(E.Sub, binary(E.Max, extent, begin), begin), stride)

    def part(self, kind: TileType, share: Share) -> TileType:
        """The type of this lane's part of a tile."""
        shape = replaced(kind.shape, share.axis, index_const(share.half))
        valid = self.valid(kind.valid_shape[share.axis], kind.shape[share.axis], share)
        view = kind.get_effective_tile_view()
        whole = replaced(view.valid_shape, share.axis, valid)
        return TileType(shape, kind.dtype, None, view.replace(valid_shape=NodeList(whole)), kind.memory_space)


def replaced(items: Sequence[Expr], index: int, value: Expr) -> list[Expr]:
    """``items`` with one changed."""
    return [value if i == index else item for i, item in enumerate(items)]


def extent_of(kind: TileType, axis: int) -> int | None:
    """Cells of a tile along ``axis``; None when they are not constant or there is no such axis."""
    return known(kind.shape[axis]) if axis < len(kind.shape) else None
