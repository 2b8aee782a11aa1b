"""Solving an expression for the one symbol in it that has no value yet."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import expr as E
from ..ir.expr import Expr, Var

Steps = list[tuple[str, int]]
"""``less``, ``plus`` or ``over`` a number, or ``from`` it: from the value of an expression to that of its symbol."""


def solve(expr: Expr, known: Callable[[Expr], int | None]) -> tuple[Var, Steps] | None:
    """The symbol of ``expr`` that ``known`` gives no value, and the steps to its value from that of ``expr``.

    None when there is no such symbol, more than one, or when many values would do.
    """
    steps: Steps = []
    while not isinstance(expr, Var):
        if not isinstance(expr, (E.Add, E.Sub, E.Mul)):
            return None
        left, right = known(expr.left), known(expr.right)
        if left is not None and right is None:
            number, step, expr = left, "from" if isinstance(expr, E.Sub) else _BACK[type(expr)], expr.right
        elif right is not None and left is None:
            number, step, expr = right, _BACK[type(expr)], expr.left
        else:
            return None
        if step == "over" and number == 0:
            return None
        steps.append((step, number))
    return expr, steps


_BACK: dict[type, str] = {E.Add: "less", E.Sub: "plus", E.Mul: "over"}
