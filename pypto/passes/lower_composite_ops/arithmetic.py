"""Index arithmetic that folds constants."""

from __future__ import annotations

from ...ir import expr as E
from ...ir.expr import Expr, index_const
from ...ir.scalar import binary
from ...ops.rules import index, plus, times, value


def quotient(a: Expr, b: Expr) -> Expr:
    """``a // b``, of numbers that are not negative."""
    x, y = value(a), value(b)
    return index_const(x // y) if x is not None and y else binary(E.FloorDiv, index(a), index(b))


def remainder(a: Expr, b: Expr) -> Expr:
    """``a % b``, of numbers that are not negative."""
    x, y = value(a), value(b)
    return index_const(x % y) if x is not None and y else binary(E.FloorMod, index(a), index(b))


def in_blocks(a: Expr, block: int) -> Expr:
    """How many blocks hold ``a`` elements."""
    return quotient(plus(a, index_const(block - 1)), index_const(block))


def round_up(a: Expr, block: int) -> Expr:
    """``a`` up to whole blocks."""
    return times(in_blocks(a, block), index_const(block))
