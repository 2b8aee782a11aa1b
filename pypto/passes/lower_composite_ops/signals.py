"""How ranks wait for each other inside a collective.

A signal window has a cell for each rank. In a barrier a rank adds 1 to its cell on every peer and waits until its own
cells, one for each peer, have reached the number of barriers of this call so far. At the end each rank takes from its
own cells what the call added, which leaves them zero once every rank is done: additions commute, so a peer that is
already in the next call does no harm, and counts start at 1 in every call. A cell may be past the count waited for,
hence at least, not equal.
"""

from __future__ import annotations

from collections.abc import Callable

from ...dtypes import DataType
from ...ir import expr as E
from ...ir.enums import NotifyOp, WaitCmp
from ...ir.expr import Cast, Expr, Neg, Var, index_const
from ...ir.scalar import binary
from ...ops.rules import shaped, value
from ..emitting import kind_of
from .parts import Parts

_ZERO, _ONE = index_const(0), index_const(1)


class Ranks:
    """The ranks that share a window, and their barrier in ``signal``: [ranks, 1], or a row [ranks] for each round."""

    def __init__(self, parts: Parts, signal: Expr, rounds: bool = False) -> None:
        self.parts, self.signal = parts, signal
        self._rounds = rounds
        _check_signal(parts, signal, rounds)
        context = parts.apply("ctx", "pld.system.get_comm_ctx", signal)
        self.count = self._number("nranks", context)
        self.mine = self._number("rank", context)

    def _number(self, role: str, context: Var) -> Var:
        found = self.parts.apply(role, f"pld.system.{role}", context)
        return self.parts.keep(f"{role}_idx", Cast(found, DataType.INDEX, self.parts.call.span))

    def _cell(self, rank: Expr, row: Expr | None) -> list[Expr]:
        return [rank, _ZERO] if row is None else [row, rank]

    def is_other(self, rank: Expr) -> Expr:
        return binary(E.Ne, rank, self.mine)

    def others(self, role: str, body: Callable[[Var], None]) -> None:
        """``body`` for every rank but this one."""
        parts = self.parts
        parts.loop(role, self.count, lambda peer: parts.when(self.is_other(peer), lambda: body(peer)))

    def barrier(self, count: int | Expr, row: Expr | None = None) -> None:
        """Go on when every rank is at its ``count``-th barrier of this call (of this row)."""
        expected = index_const(count) if isinstance(count, int) else count
        self.others("notify_peer", lambda peer: self._add(peer, self._cell(self.mine, row), _ONE))
        self.others(
            "wait_peer",
            lambda peer: self.parts.do(
                "pld.system.wait", self.signal, self._cell(peer, row), expected, cmp=WaitCmp.Ge
            ),
        )

    def reset(self, count: int | Expr) -> None:
        """Take back what the call's ``count`` barriers added to this rank's cells."""
        total = index_const(count) if isinstance(count, int) else count
        known = value(total)
        back = Neg(total, DataType.INDEX) if known is None else index_const(-known)
        if self._rounds:
            rows = kind_of(self.signal).shape[0]
            self.parts.loop("reset_row", rows, lambda row: self._reset(back, row))
        else:
            self._reset(back, None)

    def _reset(self, back: Expr, row: Expr | None) -> None:
        self.others("reset_peer", lambda peer: self._add(self.mine, self._cell(peer, row), back))

    def _add(self, rank: Expr, cell: list[Expr], amount: Expr) -> None:
        self.parts.do("pld.system.notify", self.signal, rank, cell, amount, op=NotifyOp.AtomicAdd)


def _check_signal(parts: Parts, signal: Expr, rounds: bool) -> None:
    """Raise KernelValueError unless ``signal`` has the cells this protocol counts in."""
    shape = kind_of(signal).shape
    if rounds:
        rows, ranks = (value(d) for d in shape) if len(shape) == 2 else (0, 0)
        if len(shape) != 2 or (rows is not None and ranks is not None and rows != 2 * (ranks - 1)):
            raise parts.refuse(
                f"in ring mode needs signal [2 * (ranks - 1), ranks], one row for each round, got "
                f"{shaped(kind_of(signal))}",
                "for 4 ranks, pld.window(buffer, [6, 4], dtype=pl.INT32)",
            )
    elif len(shape) != 2 or value(shape[1]) != 1:
        raise parts.refuse(
            f"needs one cell for each rank: signal shape[1] must be 1, got {shaped(kind_of(signal))}",
            "pld.window(buffer, [ranks, 1], dtype=pl.INT32), and a window of its own for a ring",
        )
