"""Comparisons that follow from other comparisons: from ``x <= y`` and ``y <= z``, ``x <= z``."""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Any, Final

from ..ir import expr as E
from ..ir.expr import Expr, Var, is_integer
from .bounds import ConstIntBoundAnalyzer, Recover, facts
from .linear import Sum, key_of, linear


class CompareResult(Enum):
    """What is known of two values."""

    kInconsistent = 0
    kEQ = 1
    kLT = 2
    kLE = 3
    kGT = 4
    kGE = 5
    kNE = 6
    kUnknown = 7


_ZERO: Final = ("zero",)
_IMPLIED: Final[dict[type, frozenset[CompareResult]]] = {
    E.Eq: frozenset({CompareResult.kEQ}),
    E.Ne: frozenset({CompareResult.kNE, CompareResult.kLT, CompareResult.kGT}),
    E.Lt: frozenset({CompareResult.kLT}),
    E.Le: frozenset({CompareResult.kLT, CompareResult.kLE, CompareResult.kEQ}),
    E.Gt: frozenset({CompareResult.kGT}),
    E.Ge: frozenset({CompareResult.kGT, CompareResult.kGE, CompareResult.kEQ}),
}

Edge = tuple[Hashable, Hashable, int]
Signature = tuple[frozenset[tuple[Hashable, int]], int]
"""Terms with their factors, and the constant, of a linear sum."""


def implies(known: CompareResult, cls: type) -> bool:
    """Whether the comparison class ``cls`` holds of two values of which ``known`` is known."""
    return known in _IMPLIED.get(cls, ())


class TransitiveComparisonAnalyzer:
    """A graph of differences: an edge from u to v of weight c says ``u - v <= c``."""

    def __init__(self, bounds: ConstIntBoundAnalyzer | None = None) -> None:
        self._exact = (bounds or ConstIntBoundAnalyzer()).exact
        self._edges: dict[Hashable, dict[Hashable, int]] = {}
        self._unequal: dict[Signature, bool] = {}
        self._undo: list[tuple[dict[Any, Any], Hashable, Any]] = []
        """Every change of the maps above: the map, the key and what was there before."""

    def bind(self, var: Var, value: Expr | int, max_value: int | None = None) -> None:
        """``var`` equals an expression, or is in ``value <= var < max_value``."""
        if isinstance(value, Expr):
            self._learn(E.Eq, var, value)
        elif max_value is not None:
            self._connect((key_of(var), _ZERO, max_value - 1))
            self._connect((_ZERO, key_of(var), -value))

    def unbind(self, var: Var) -> None:
        """Forget everything about ``var``."""
        key = key_of(var)
        self._set(self._edges, key, None)
        for targets in self._edges.values():
            self._set(targets, key, None)
        for known in [u for u in self._unequal if any(k == key for k, _ in u[0])]:
            self._set(self._unequal, known, None)

    def enter_constraint(self, condition: Expr) -> Recover:
        """Take ``condition`` as true until the returned function is called."""
        before = len(self._undo)
        for cls, left, right in facts(condition):
            self._learn(cls, left, right)

        def recover() -> None:
            while len(self._undo) > before:
                _put(*self._undo.pop())

        return recover

    def _set(self, mapping: dict[Any, Any], key: Hashable, value: Any) -> None:
        """Put ``value`` at ``key``, or remove the key when it is None; `enter_constraint` can take it back."""
        known = mapping.get(key)
        if known != value:
            self._undo.append((mapping, key, known))
            _put(mapping, key, value)

    def _learn(self, cls: type, left: Expr, right: Expr) -> None:
        s = self._difference(left, right)
        if s is None:
            return
        if cls is E.Ne:
            self._set(self._unequal, _signature(s), True)
            self._set(self._unequal, _signature(Sum().add(s, -1)), True)
            return
        ends = _ends(s)
        if ends is None:
            return
        u, v = ends
        limit = -1 if cls is E.Lt else 0
        self._connect((u, v, limit - s.const))
        if cls is E.Eq:
            self._connect((v, u, s.const))

    def _connect(self, edge: Edge) -> None:
        u, v, weight = edge
        targets = self._edges.get(u)
        if targets is None:
            targets = {}
            self._set(self._edges, u, targets)
        self._set(targets, v, min(weight, targets.get(v, weight)))

    def _difference(self, left: Expr, right: Expr) -> Sum | None:
        if not (is_integer(left) and is_integer(right) and self._exact(left) and self._exact(right)):
            return None
        return linear(left).add(linear(right), -1)

    def try_compare(self, lhs: Expr, rhs: Expr, propagate_inequalities: bool = True) -> CompareResult:
        """What is known of ``lhs`` against ``rhs``; without propagation, from single facts only."""
        s = self._difference(lhs, rhs)
        if s is None:
            return CompareResult.kUnknown
        if not s.terms:
            return _result(s.const, s.const)
        ends = _ends(s)
        high = low = None
        if ends is not None:
            u, v = ends
            above = self._distance(u, v, propagate_inequalities)
            below = self._distance(v, u, propagate_inequalities)
            high = None if above is None else above + s.const
            low = None if below is None else s.const - below
        made = _result(low, high)
        if _signature(s) in self._unequal:
            return _NOT_EQUAL.get(made, made)
        return made

    def _distance(self, u: Hashable, v: Hashable, propagate: bool) -> int | None:
        """The least known c with ``u - v <= c``."""
        if not propagate:
            return self._edges.get(u, {}).get(v)
        best: dict[Hashable, int] = {u: 0}
        for _ in range(len(self._edges) + 1):
            changed = False
            for node, so_far in list(best.items()):
                for target, weight in self._edges.get(node, {}).items():
                    if so_far + weight < best.get(target, so_far + weight + 1):
                        best[target] = so_far + weight
                        changed = True
            if not changed:
                break
        return best.get(v)


_NOT_EQUAL: Final = {
    CompareResult.kUnknown: CompareResult.kNE,
    CompareResult.kLE: CompareResult.kLT,
    CompareResult.kGE: CompareResult.kGT,
    CompareResult.kEQ: CompareResult.kInconsistent,
}


def _result(low: int | None, high: int | None) -> CompareResult:
    """The comparison of two values whose difference is from ``low`` to ``high``."""
    if low is not None and high is not None:
        if low > high:
            return CompareResult.kInconsistent
        if low == high == 0:
            return CompareResult.kEQ
    if high is not None and high <= 0:
        return CompareResult.kLT if high < 0 else CompareResult.kLE
    if low is not None and low >= 0:
        return CompareResult.kGT if low > 0 else CompareResult.kGE
    return CompareResult.kUnknown


def _ends(s: Sum) -> tuple[Hashable, Hashable] | None:
    """``(u, v)`` for a sum ``u - v`` plus a constant; a missing side is zero."""
    if len(s) > 2 or any(abs(c) != 1 for _, c in s):
        return None
    added = [k for k, (_, c) in s.terms.items() if c > 0]
    taken = [k for k, (_, c) in s.terms.items() if c < 0]
    if len(added) > 1 or len(taken) > 1:
        return None
    return (added[0] if added else _ZERO), (taken[0] if taken else _ZERO)


def _put(mapping: dict[Any, Any], key: Hashable, value: Any) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def _signature(s: Sum) -> Signature:
    return frozenset((k, c) for k, (_, c) in s.terms.items()), s.const
