"""Comparisons, minima, maxima and logic, on top of sums.

Comparisons and minima are decided, or freed of what both sides share, through the difference of their sides; that
needs both sides to be computed without wrapping, which `ConstIntBoundAnalyzer.exact` says.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, ClassVar, Final

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import ConstBool, ConstInt, Expr, is_integer
from .bounds import NEG_INF, POS_INF, Recover
from .canonical import CanonicalSimplifier
from .linear import Sum, cost, identical, is_index_like, key_of, linear, same_dtype, same_value

_OPPOSITE: Final[dict[type, type]] = {E.Min: E.Max, E.Max: E.Min}
_NEGATION: Final[dict[type, tuple[type, bool]]] = {
    E.Lt: (E.Le, True),
    E.Le: (E.Lt, True),
    E.Gt: (E.Le, False),
    E.Ge: (E.Lt, False),
    E.Eq: (E.Ne, False),
    E.Ne: (E.Eq, False),
}
"""The comparison that holds when one does not, and whether its sides are exchanged."""

Intervals = tuple[tuple[int, int], ...]
_INF: Final = 1 << 70
_TRUTH: Final[dict[type, Intervals]] = {
    E.Lt: ((-_INF, -1),),
    E.Le: ((-_INF, 0),),
    E.Gt: ((1, _INF),),
    E.Ge: ((0, _INF),),
    E.Eq: ((0, 0),),
    E.Ne: ((-_INF, -1), (1, _INF)),
}
"""The differences of its sides for which a comparison holds."""


class RewriteSimplifier(CanonicalSimplifier):
    """Simplifies without growing: products of sums stay products. See `CanonicalSimplifier`."""

    distribute: ClassVar[bool] = False

    def enter_constraint(self, condition: Expr) -> Recover:
        return super().enter_constraint(condition) or (lambda: None)

    def _join_min_max(self, s: Sum, atom: Any, c: int) -> bool:
        """``min(a, b) + max(a, b)`` is ``a + b``."""
        other = (_OPPOSITE[atom.__class__], frozenset((key_of(atom.left), key_of(atom.right))))
        if s.coefficient(other) != c or not is_integer(atom):
            return False
        s.add_term(atom, -c)
        s.add_term(atom, -c, other)
        s.add(linear(atom.left, self.distribute), c).add(linear(atom.right, self.distribute), c)
        return True

    def _enter_min_max(self, s: Sum, atom: Any, c: int) -> bool:
        """``min(a, b) + t`` is ``min(a + t, b + t)``, where ``t`` cancels enough to make that shorter."""
        if c != 1 or len(s) < 2 or not self._exact_sides(atom):
            return False
        rest = s.copy()
        rest.add_term(atom, -1)
        sides = [linear(side, self.distribute).add(rest) for side in (atom.left, atom.right)]
        before, built = s.build(atom.dtype, atom.span), [x.build(atom.dtype, atom.span) for x in sides]
        if before is None or built[0] is None or built[1] is None:
            return False
        left, right = built[0], built[1]
        if 1 + cost(left) + cost(right) >= cost(before):
            return False
        if not is_index_like(atom) and not all(map(self.bounds.exact, (before, left, right))):
            return False
        made = linear(self.make(atom.__class__, left, right, atom.dtype, atom.span), self.distribute)
        s.terms, s.const = made.terms, made.const
        return True

    def _exact_sides(self, e: Any) -> bool:
        return is_integer(e.left) and self.bounds.exact(e.left) and self.bounds.exact(e.right)

    def mul(self, e: Any) -> Expr:
        a, b = e.left, e.right
        pair = _OPPOSITE.get(a.__class__)
        if is_integer(e) and pair is b.__class__ and _same_pair(a, b):
            return self.make(E.Mul, a.left, a.right, e.dtype, e.span)
        return self.sum(e)

    # Minima and maxima

    def min_max(self, e: Any) -> Expr:
        a, b, cls = e.left, e.right, e.__class__
        if not is_integer(e):
            return e
        if same_value(a, b):
            return a if same_dtype(a, e) else e
        difference = self.bounds.difference(a, b)
        smaller, larger = (a, b) if cls is E.Min else (b, a)
        for side, decided in ((smaller, difference.max_value <= 0), (larger, difference.min_value >= 0)):
            if decided and same_dtype(side, e):
                return side
        return self._absorbed(e) or self._factored(e) or e

    def _absorbed(self, e: Any) -> Expr | None:
        """One operand is a minimum or maximum that already holds the other."""
        cls, opposite = e.__class__, _OPPOSITE[e.__class__]
        for a, b in ((e.left, e.right), (e.right, e.left)):
            if a.__class__ not in (cls, opposite):
                continue
            if same_value(a.left, b) or same_value(a.right, b):
                return a if a.__class__ is cls else b
            if a.__class__ is cls and isinstance(b, ConstInt) and isinstance(a.right, ConstInt):
                return self.make(cls, a.left, self.make(cls, a.right, b, e.dtype, e.span), e.dtype, e.span)
        a, b = e.left, e.right
        if a.__class__ is opposite and b.__class__ is opposite:
            return self._distributed(e, opposite)
        return None

    def _distributed(self, e: Any, opposite: type) -> Expr | None:
        """``min(max(x, y), max(x, z))`` is ``max(min(y, z), x)``."""
        for x, y in ((e.left.left, e.left.right), (e.left.right, e.left.left)):
            for u, z in ((e.right.left, e.right.right), (e.right.right, e.right.left)):
                if same_value(x, u):
                    inner = self.make(e.__class__, y, z, e.dtype, e.span)
                    return self.make(opposite, inner, x, e.dtype, e.span)
        return None

    def _factored(self, e: Any) -> Expr | None:
        """What both sides add, or multiply, goes outside."""
        if not self._exact_sides(e):
            return None
        a, b = linear(e.left, self.distribute), linear(e.right, self.distribute)
        common = self._shared(a, b)
        factor = math.gcd(a.const, b.const, *(c for _, c in a), *(c for _, c in b))
        if factor > 1:
            a, b = _divided(a, factor), _divided(b, factor)
        elif not common.terms and not common.const:
            return None
        left, right = a.build(e.dtype, e.span), b.build(e.dtype, e.span)
        if left is None or right is None or not (self.bounds.exact(left) and self.bounds.exact(right)):
            return None
        inner = self.make(e.__class__, left, right, e.dtype, e.span)
        made = common.add(linear(inner, self.distribute), factor if factor > 1 else 1)
        built = self._build(made, e)
        return None if built is None or cost(built) >= cost(e) or identical(built, e) else built

    @staticmethod
    def _shared(a: Sum, b: Sum) -> Sum:
        """The terms both sums have, taken out of both."""
        common = Sum()
        for key, (atom, c) in list(a.terms.items()):
            if b.coefficient(key) == c:
                common.add_term(atom, c, key)
                del a.terms[key], b.terms[key]
        if a.const == b.const and (a.terms or b.terms):
            common.const, a.const, b.const = a.const, 0, 0
        return common

    # Comparisons

    def compare(self, e: Any) -> Expr:
        a, b, cls = e.left, e.right, e.__class__
        if not (is_integer(a) and is_integer(b)):
            if cls in (E.Eq, E.Le, E.Ge) and a is b and _is_bool(a):
                return ConstBool(True, e.span)
            return e
        difference = self.bounds.difference(a, b)
        decided = _decide(cls, difference.min_value, difference.max_value)
        if decided is None and same_value(a, b):
            decided = cls in (E.Eq, E.Le, E.Ge)
        if decided is not None:
            return ConstBool(decided, e.span)
        if not self._exact_sides(e):
            return e
        return self._cancelled(e) or self._without_division(e) or self._split_minimum(e) or e

    def _cancelled(self, e: Any) -> Expr | None:
        """The comparison without what both sides have; constants meet on one side, common factors go."""
        left, right = linear(e.left, self.distribute), linear(e.right, self.distribute)
        shared = any(right.coefficient(k) * c > 0 for k, (_, c) in left.terms.items())
        both_const = left.const != 0 and right.const != 0 and bool(left.terms or right.terms)
        s = left.add(right, -1)
        coefficients = [abs(c) for _, c in s]
        factor = math.gcd(s.const, *coefficients)
        if not (shared or both_const or factor > 1) or not coefficients:
            return None
        s = _divided(s, factor) if factor > 1 else s
        a, b = Sum(max(s.const, 0)), Sum(max(-s.const, 0))
        for key, (atom, c) in s.terms.items():
            (a if c > 0 else b).add_term(atom, abs(c), key)
        x, y = a.build(e.left.dtype, e.span), b.build(e.left.dtype, e.span)
        if x is None or y is None or not (self.bounds.exact(x) and self.bounds.exact(y)):
            return None
        if cost(x) + cost(y) + 1 >= cost(e):
            return None
        cls = e.__class__
        if cls in (E.Gt, E.Ge):
            cls, x, y = (E.Lt if cls is E.Gt else E.Le), y, x
        return self.make(cls, x, y, DataType.BOOL, e.span)

    def _without_division(self, e: Any) -> Expr | None:
        """``u // d < n`` is ``u < d * n``."""
        a, b = e.left, e.right
        if not (isinstance(e, E.Lt) and isinstance(a, E.FloorDiv) and isinstance(b, ConstInt)):
            return None
        divisor = a.right
        if not isinstance(divisor, ConstInt) or divisor.value <= 0:
            return None
        limit, (low, high) = divisor.value * b.value, b.dtype.int_range()
        if not low <= limit <= high:
            return None
        bound = ConstInt(limit, b.dtype, b.span)
        return self.make(E.Lt, a.left, bound, DataType.BOOL, e.span)

    def _split_minimum(self, e: Any) -> Expr | None:
        """``min(x, y) < z`` is ``x < z or y < z``; with ``max``, ``and``."""
        a = e.left
        if not isinstance(e, E.Lt) or a.__class__ not in _OPPOSITE:
            return None
        parts = [self.make(E.Lt, x, e.right, DataType.BOOL, e.span) for x in (a.left, a.right)]
        return self.make(E.Or if isinstance(a, E.Min) else E.And, parts[0], parts[1], DataType.BOOL, e.span)

    # Logic

    def not_(self, e: Any) -> Expr:
        a = e.operand
        if isinstance(a, E.Not):
            return a.operand
        # A float comparison and its reverse are both false for NaN.
        if a.__class__ in _NEGATION and not a.left.dtype.is_float():
            cls, exchanged = _NEGATION[a.__class__]
            left, right = (a.right, a.left) if exchanged else (a.left, a.right)
            return self.make(cls, left, right, DataType.BOOL, e.span)
        return e

    def logic(self, e: Any) -> Expr:
        a, b, is_and = e.left, e.right, isinstance(e, E.And)
        for x, y in ((a, b), (b, a)):
            if isinstance(x, ConstBool):
                return y if x.value is is_and else x
        if same_value(a, b):
            return a
        for x, y in ((a, b), (b, a)):
            if isinstance(x, E.Not) and same_value(x.operand, y):
                return ConstBool(not is_and, e.span)
        return self._joined(e, a, b, is_and) or e

    def _joined(self, e: Any, a: Any, b: Any, is_and: bool) -> Expr | None:
        """Two comparisons of one difference with constants are a set of its values."""
        first, second = self._values(a), self._values(b)
        if first is None or second is None or first[0] != second[0]:
            return None
        _, sign, offset, x = first
        y = second[3]
        joined = _intersection(x, y) if is_and else _union(x, y)
        if not joined:
            return ConstBool(False, e.span)
        if joined == ((-_INF, _INF),):
            return ConstBool(True, e.span)
        if joined in (x, y):
            return a if joined == x else b
        # Back to the difference of the first comparison's own sides.
        own = _shifted(joined, offset) if sign > 0 else _shifted(_mirrored(joined), offset)
        cls = next((c for c, truth in _TRUTH.items() if truth == own), None)
        if cls is None:
            return None
        left, right = a.left, a.right
        if cls in (E.Gt, E.Ge):
            cls, left, right = (E.Lt if cls is E.Gt else E.Le), right, left
        return self.make(cls, left, right, DataType.BOOL, e.span)

    def _values(self, e: Any) -> tuple[Hashable, int, int, Intervals] | None:
        """A comparison as (difference without its constant, its sign, the constant, the values that make it true)."""
        if e.__class__ not in _TRUTH or not self._exact_sides(e):
            return None
        s = linear(e.left).add(linear(e.right), -1)
        if not s.terms:
            return None
        leader = min(s.terms, key=hash)
        sign = 1 if s.coefficient(leader) > 0 else -1
        key = frozenset((k, c * sign) for k, (_, c) in s.terms.items())
        values = _shifted(_TRUTH[e.__class__], -s.const)
        return key, sign, s.const, values if sign > 0 else _mirrored(values)


def _same_pair(a: Any, b: Any) -> bool:
    return {key_of(a.left), key_of(a.right)} == {key_of(b.left), key_of(b.right)}


def _is_bool(e: Expr) -> bool:
    return getattr(e.type, "dtype", None) is DataType.BOOL


def _divided(s: Sum, factor: int) -> Sum:
    made = Sum(s.const // factor)
    for key, (atom, c) in s.terms.items():
        made.add_term(atom, c // factor, key)
    return made


def _decide(cls: type, low: int, high: int) -> bool | None:
    """A comparison of two values whose difference is from ``low`` to ``high``."""
    low, high = (-_INF if low == NEG_INF else low), (_INF if high == POS_INF else high)
    overlap = _intersection(_TRUTH[cls], ((low, high),))
    if not overlap:
        return False
    return True if overlap == ((low, high),) else None


def _shifted(values: Intervals, by: int) -> Intervals:
    return tuple((a if a == -_INF else a + by, b if b == _INF else b + by) for a, b in values)


def _mirrored(values: Intervals) -> Intervals:
    return tuple((-b, -a) for a, b in reversed(values))


def _intersection(x: Intervals, y: Intervals) -> Intervals:
    pairs = ((max(a, c), min(b, d)) for a, b in x for c, d in y)
    return tuple(sorted(p for p in pairs if p[0] <= p[1]))


def _union(x: Intervals, y: Intervals) -> Intervals:
    made: list[tuple[int, int]] = []
    for a, b in sorted((*x, *y)):
        if made and a <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(b, made[-1][1]))
        else:
            made.append((a, b))
    return tuple(made)


_MIN_MAX_TERM = (RewriteSimplifier._join_min_max, RewriteSimplifier._enter_min_max)
RewriteSimplifier.term_rules = {
    **CanonicalSimplifier.term_rules,
    E.Min: _MIN_MAX_TERM,
    E.Max: _MIN_MAX_TERM,
}
RewriteSimplifier.rules = {
    **CanonicalSimplifier.rules,
    E.Mul: RewriteSimplifier.mul,
    E.Min: RewriteSimplifier.min_max,
    E.Max: RewriteSimplifier.min_max,
    E.And: RewriteSimplifier.logic,
    E.Or: RewriteSimplifier.logic,
    E.Not: RewriteSimplifier.not_,
    **dict.fromkeys(E.COMPARISONS, RewriteSimplifier.compare),
}


class FullSimplifier(RewriteSimplifier):
    """Every rule, with constants distributed over sums."""

    distribute: ClassVar[bool] = True
