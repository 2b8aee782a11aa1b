"""Allreduce around a ring: every rank reads only its left neighbour.

The row of data is cut into a segment for each rank. In ``ranks - 1`` rounds each rank adds its neighbour's partial sum
of one segment to its own, so that every rank ends with one finished segment; in as many more rounds the finished ones
go around. Each round has its own row of signal cells, and every piece of a round two barriers: the neighbour has
stored what is to be read, and everyone has read what is to be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir import expr as E
from ...ir.enums import ReduceOp
from ...ir.expr import Expr, Var, index_const
from ...ir.scalar import binary
from ...ops.rules import least, minus, plus, times
from ..emitting import kind_of
from .arithmetic import in_blocks, quotient, remainder, round_up
from .parts import Parts
from .signals import Ranks
from .streams import Piece, Stream, block_of, combine, one_row, stream_of

_ZERO, _ONE, _TWO = index_const(0), index_const(1), index_const(2)


def ring_allreduce(parts: Parts, target: Expr, signal: Expr, op: ReduceOp) -> None:
    """Every rank's slice of ``target`` becomes the combination of all."""
    view, size = one_row(parts, target)
    _Ring(parts, Ranks(parts, signal, rounds=True), view, size).run(op)


class _Ring:
    def __init__(self, parts: Parts, ranks: Ranks, view: Expr, size: Expr) -> None:
        self.parts, self.ranks, self.size = parts, ranks, size
        self.count = kind_of(ranks.signal).shape[1]
        self.padded = kind_of(view).dtype.get_byte() == 2
        self.block = block_of(kind_of(view).dtype)
        self.longest = self._longest()
        self.stream: Stream = stream_of(view, size, self.longest)
        self.left = parts.keep("left", remainder(plus(ranks.mine, minus(self.count, _ONE)), self.count))

    def _longest(self) -> Expr:
        """No segment has more elements than this."""
        share = quotient(plus(self.size, minus(self.count, _ONE)), self.count)
        return least(self.size, plus(share, index_const(self.block - 1))) if self.padded else share

    def _bound(self, segment: Expr) -> Expr:
        """Where a segment starts. Two-byte elements are cut at whole blocks, where transfers may start."""
        cut = quotient(times(segment, self.size), self.count)
        return least(self.size, round_up(cut, self.block)) if self.padded else cut

    def run(self, op: ReduceOp) -> None:
        rounds = minus(self.count, _ONE)
        parts = self.parts

        def reduced(piece: Piece) -> Expr:
            other = piece.load_from(parts, "peer", self.left)
            return combine(parts, op, piece.load(parts, "own"), other)

        self._phase("rs", rounds, rounds, _ZERO, reduced)
        self._phase("ag", rounds, self.count, rounds, lambda piece: piece.load_from(parts, "peer", self.left))
        pieces = in_blocks(self.longest, self.stream.width)
        self.ranks.reset(times(pieces, _TWO))

    def _phase(self, role: str, rounds: Expr, ahead: Expr, row: Expr, value: Callable[[Piece], Expr]) -> None:
        """In round ``i`` the segment ``ahead - i`` after this rank's own becomes ``value``."""

        def one_round(i: Var) -> None:
            parts = self.parts
            segment = parts.keep(f"{role}_segment", remainder(minus(plus(self.ranks.mine, ahead), i), self.count))
            start = parts.keep(f"{role}_start", self._bound(segment))
            length = parts.keep(f"{role}_length", minus(self._bound(plus(segment, _ONE)), start))
            at = plus(row, i)
            parts.loop(
                f"{role}_col",
                self.longest,
                lambda column: self._piece(role, at, column, start, length, value),
                self.stream.width,
            )

        self.parts.loop(f"{role}_round", rounds, one_round)

    def _piece(
        self, role: str, row: Expr, column: Var, start: Var, length: Var, value: Callable[[Piece], Expr]
    ) -> None:
        parts, width = self.parts, index_const(self.stream.width)
        piece = Piece(self.stream, _ZERO, plus(start, column), least(width, minus(length, column)))
        done = times(quotient(column, width), _TWO)
        active = binary(E.Lt, column, length)
        self.ranks.barrier(plus(done, _ONE), row)
        tile = parts.choose(f"{role}_tile", active, lambda: value(piece), self._anything)
        self.ranks.barrier(plus(done, _TWO), row)
        parts.when(active, lambda: piece.store(parts, role, tile))

    def _anything(self) -> Expr:
        """A tile for ranks whose segment is at its end; it is not stored."""
        return Piece(self.stream, _ZERO, _ZERO, _ONE).load(self.parts, "unused")
