"""Constant bounds of integer expressions.

A bound is what the value can be in its dtype: where narrow arithmetic could wrap, the bound is the dtype's range.
64-bit signed arithmetic (INT64, INDEX: sizes, positions) is taken not to overflow, and an INDEX variable nothing is
known about not to be negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Final

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr, Var, is_integer
from ..ir.types import ScalarType
from .integers import INT64_MAX, INT64_MIN
from .linear import Sum, is_index_like, key_of, linear

NEG_INF: Final = INT64_MIN
POS_INF: Final = INT64_MAX

Recover = Callable[[], None]


Saved = list[tuple[dict[Any, Any], Any, Any]]
"""Entries of tables as they were before a constraint: table, key, value or None."""


def restoring(saved: Saved) -> Recover | None:
    """The function that puts ``saved`` entries back; None when there are none."""
    if not saved:
        return None

    def recover() -> None:
        for table, key, old in reversed(saved):
            if old is None:
                table.pop(key, None)
            else:
                table[key] = old

    return recover


class ConstIntBound:
    """``min_value <= value <= max_value``; the outermost 64-bit values mean unbounded."""

    __slots__ = ("min_value", "max_value")
    kNegInf: ClassVar[int] = NEG_INF
    kPosInf: ClassVar[int] = POS_INF

    def __init__(self, min_value: int, max_value: int) -> None:
        self.min_value = min_value
        self.max_value = max_value

    def is_const(self) -> bool:
        """Whether one value is possible."""
        return self.min_value == self.max_value and NEG_INF < self.min_value < POS_INF

    def is_everything(self) -> bool:
        return self.min_value == NEG_INF and self.max_value == POS_INF

    def within(self, low: int, high: int) -> bool:
        return low <= self.min_value and self.max_value <= high

    def intersect(self, other: ConstIntBound) -> ConstIntBound:
        """What both say. Facts that contradict each other (dead code) leave the first as it is."""
        low, high = max(self.min_value, other.min_value), min(self.max_value, other.max_value)
        return ConstIntBound(low, high) if low <= high else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstIntBound):
            return NotImplemented
        return self.min_value == other.min_value and self.max_value == other.max_value

    def __hash__(self) -> int:
        return hash((self.min_value, self.max_value))

    def __repr__(self) -> str:
        low = "-inf" if self.min_value == NEG_INF else str(self.min_value)
        high = "+inf" if self.max_value == POS_INF else str(self.max_value)
        return f"ConstIntBound[{low}, {high}]"


EVERYTHING: Final = ConstIntBound(NEG_INF, POS_INF)
_BOOL: Final = ConstIntBound(0, 1)


def clamp(value: int) -> int:
    """A value outside 64 bits as infinity."""
    return NEG_INF if value <= NEG_INF else min(value, POS_INF)


def _add(a: int, b: int) -> int:
    if a in (NEG_INF, POS_INF):
        return a
    return b if b in (NEG_INF, POS_INF) else clamp(a + b)


def _neg(a: int) -> int:
    return POS_INF if a == NEG_INF else NEG_INF if a == POS_INF else -a


def _mul(a: int, b: int) -> int:
    if a == 0 or b == 0:
        return 0
    if a in (NEG_INF, POS_INF) or b in (NEG_INF, POS_INF):
        return POS_INF if (a > 0) == (b > 0) else NEG_INF
    return clamp(a * b)


def _div(a: int, b: int) -> int:
    if a in (NEG_INF, POS_INF):
        return a if b > 0 else _neg(a)
    if b in (NEG_INF, POS_INF):
        return 0 if a == 0 or (a > 0) == (b > 0) else -1
    return clamp(a // b)


def _corners(f: Callable[[int, int], int], a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    values = [f(x, y) for x in (a.min_value, a.max_value) for y in (b.min_value, b.max_value)]
    return ConstIntBound(min(values), max(values))


def _bound_add(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(_add(a.min_value, b.min_value), _add(a.max_value, b.max_value))


def _bound_neg(a: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(_neg(a.max_value), _neg(a.min_value))


def _bound_sub(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return _bound_add(a, _bound_neg(b))


def _bound_floordiv(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if b.min_value > 0 or b.max_value < 0:
        return _corners(_div, a, b)
    if b.min_value == b.max_value == 0:
        return EVERYTHING
    # A divisor of unknown sign can be 1 or -1: the quotient is no larger than the dividend.
    largest = max(abs(a.min_value), abs(a.max_value))
    return ConstIntBound(NEG_INF if largest >= POS_INF else -largest, clamp(largest))


def _bound_floormod(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if b.min_value > 0:
        top = b.max_value if b.max_value == POS_INF else b.max_value - 1
        return ConstIntBound(0, min(a.max_value, top) if a.min_value >= 0 else top)
    if b.max_value < 0:
        return ConstIntBound(b.min_value if b.min_value == NEG_INF else b.min_value + 1, 0)
    return EVERYTHING


def _bound_pow(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if not b.is_const() or b.min_value < 0:
        return EVERYTHING
    exponent = b.min_value
    low, high = _power(a.min_value, exponent), _power(a.max_value, exponent)
    if exponent % 2 == 0 and a.min_value < 0:
        return ConstIntBound(0 if a.max_value >= 0 else high, max(low, high))
    return ConstIntBound(low, high)


def _power(base: int, exponent: int) -> int:
    if exponent == 0:
        return 1
    if base in (NEG_INF, POS_INF):
        return POS_INF if base > 0 or exponent % 2 == 0 else NEG_INF
    if -1 <= base <= 1:
        return 1 if base < 0 and exponent % 2 == 0 else base
    if exponent >= 64:
        return POS_INF if base > 0 or exponent % 2 == 0 else NEG_INF
    return clamp(base**exponent)


def _bound_min(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(min(a.min_value, b.min_value), min(a.max_value, b.max_value))


def _bound_max(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    return ConstIntBound(max(a.min_value, b.min_value), max(a.max_value, b.max_value))


def _bound_bitand(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    tops = [x.max_value for x in (a, b) if x.min_value >= 0]
    return ConstIntBound(0, min(tops)) if tops else EVERYTHING


def _bound_bitor(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if a.min_value < 0 or b.min_value < 0:
        return EVERYTHING
    top = max(a.max_value, b.max_value)
    return ConstIntBound(0, POS_INF if top == POS_INF else (1 << top.bit_length()) - 1)


def _bound_shift_left(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if not b.within(0, 62):
        return EVERYTHING
    return _corners(_mul, a, ConstIntBound(1 << b.min_value, 1 << b.max_value))


def _bound_shift_right(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    if not b.within(0, 63):
        return ConstIntBound(0, a.max_value) if a.min_value >= 0 and b.min_value >= 0 else EVERYTHING
    return _corners(lambda x, y: x if x in (NEG_INF, POS_INF) else x >> y, a, b)


_BINARY: Final[dict[type, Callable[[ConstIntBound, ConstIntBound], ConstIntBound]]] = {
    E.Add: _bound_add,
    E.Sub: _bound_sub,
    E.Mul: lambda a, b: _corners(_mul, a, b),
    E.FloorDiv: _bound_floordiv,
    E.FloorMod: _bound_floormod,
    E.Min: _bound_min,
    E.Max: _bound_max,
    E.Pow: _bound_pow,
    E.BitAnd: _bound_bitand,
    E.BitOr: _bound_bitor,
    E.BitXor: _bound_bitor,
    E.BitShiftLeft: _bound_shift_left,
    E.BitShiftRight: _bound_shift_right,
}


def _bound_abs(a: ConstIntBound) -> ConstIntBound:
    if a.min_value >= 0:
        return a
    negative = _bound_neg(a)
    return negative if a.max_value <= 0 else ConstIntBound(0, max(a.max_value, negative.max_value))


def _bound_bitnot(a: ConstIntBound) -> ConstIntBound:
    return _bound_add(_bound_neg(a), ConstIntBound(-1, -1))


_UNARY: Final[dict[type, Callable[[ConstIntBound], ConstIntBound]]] = {
    E.Neg: _bound_neg,
    E.Abs: _bound_abs,
    E.BitNot: _bound_bitnot,
}


def dtype_bound(dtype: DataType) -> ConstIntBound:
    """Every value of ``dtype``; 64-bit signed integers count as unbounded."""
    if dtype is DataType.BOOL:
        return _BOOL
    if not dtype.is_int():
        return EVERYTHING
    low, high = dtype.int_range()
    return ConstIntBound(clamp(low), clamp(high))


def _fits(bound: ConstIntBound, dtype: DataType) -> bool:
    """Whether every value of a finite bound is one of ``dtype``."""
    return bound.within(*dtype.int_range()) and bound.within(NEG_INF + 1, POS_INF - 1)


class ConstIntBoundAnalyzer:
    """Bounds of expressions from bounds of variables and of what constraints mention."""

    def __init__(self) -> None:
        self._vars: dict[Var, ConstIntBound] = {}
        self._exprs: dict[Hashable, ConstIntBound] = {}

    def __call__(self, expr: Expr) -> ConstIntBound:
        return self.bound(expr)

    def bind(self, var: Var, min_value: int, max_value: int) -> None:
        """``min_value <= var < max_value``. Raises ValueError for an empty range."""
        if min_value >= max_value:
            raise ValueError(f"the range [{min_value}, {max_value}) of {var.name_hint} is empty")
        self._vars[var] = ConstIntBound(min_value, max_value - 1)

    def update(self, var: Var, bound: ConstIntBound) -> None:
        self._vars[var] = bound

    def unbind(self, var: Var) -> None:
        self._vars.pop(var, None)

    def bound(self, e: Any) -> ConstIntBound:
        cls = e.__class__
        if cls is ConstInt:
            value = clamp(e.value)
            return ConstIntBound(value, value)
        if isinstance(e, Var):
            return self._vars.get(e) or self._default(e)
        made = self._compute(e, cls)
        if self._exprs:
            known = self._exprs.get(key_of(e))
            if known is not None:
                made = made.intersect(known)
        return made

    def _default(self, var: Var) -> ConstIntBound:
        if not isinstance(var.type, ScalarType):
            return EVERYTHING
        if var.type.dtype is DataType.INDEX:
            return ConstIntBound(0, POS_INF)
        return dtype_bound(var.type.dtype)

    def _compute(self, e: Any, cls: type) -> ConstIntBound:
        if cls in _BINARY or cls in _UNARY:
            if not is_integer(e):
                return EVERYTHING
            made = self._unwrapped(e, cls)
            if is_index_like(e):
                return made
            return made if _fits(made, e.dtype) else dtype_bound(e.dtype)
        if cls in E.COMPARISONS or cls in E.LOGICAL:
            return _BOOL
        if cls is ConstBool:
            return ConstIntBound(int(e.value), int(e.value))
        if cls is ConstFloat:
            if not math.isfinite(e.value):
                return EVERYTHING
            return ConstIntBound(clamp(math.floor(e.value)), clamp(math.ceil(e.value)))
        if cls is E.Cast and is_integer(e.operand):
            made, limits = self.bound(e.operand), dtype_bound(e.dtype)
            return made if made.within(limits.min_value, limits.max_value) else limits
        return dtype_bound(e.type.dtype) if isinstance(e.type, ScalarType) else EVERYTHING

    def _unwrapped(self, e: Any, cls: type) -> ConstIntBound:
        """The bound of an operation on integers of any size."""
        if cls in _UNARY:
            return _UNARY[cls](self.bound(e.operand))
        return _BINARY[cls](self.bound(e.left), self.bound(e.right))

    def exact(self, e: Any) -> bool:
        """Whether the sums and products in ``e`` give the integers they would without wrapping."""
        if is_index_like(e):
            return True
        cls = e.__class__
        if cls in (E.Add, E.Sub, E.Mul):
            return self.exact(e.left) and self.exact(e.right) and _fits(self._unwrapped(e, cls), e.dtype)
        if cls is E.Neg:
            return self.exact(e.operand) and _fits(self._unwrapped(e, cls), e.dtype)
        return True

    def of_sum(self, s: Sum) -> ConstIntBound:
        """The bound of a sum of integers of any size."""
        low = high = s.const
        for atom, c in s:
            b = self.bound(atom)
            lo, hi = (b.min_value, b.max_value) if c > 0 else (b.max_value, b.min_value)
            low, high = _add(low, _mul(lo, c)), _add(high, _mul(hi, c))
        return ConstIntBound(clamp(low), clamp(high))

    def difference(self, a: Expr, b: Expr) -> ConstIntBound:
        """The bound of ``a - b``, as integers of any size."""
        made = _bound_sub(self.bound(a), self.bound(b))
        if self.exact(a) and self.exact(b):
            made = made.intersect(self.of_sum(linear(a).add(linear(b), -1)))
        return made

    def enter_constraint(self, condition: Expr) -> Recover | None:
        """Take ``condition`` as true until the returned function is called; None when it says nothing."""
        saved: Saved = []
        self._assume(condition, saved)
        return restoring(saved)

    def _assume(self, e: Any, saved: Saved) -> None:
        for cls, left, right in facts(e):
            if not (is_integer(left) and is_integer(right) and self.exact(left) and self.exact(right)):
                continue
            s = linear(left).add(linear(right), -1)
            if cls is E.Ne:
                self._assume_differs(s, saved)
                continue
            self._assume_at_most(s, -1 if cls is E.Lt else 0, saved)
            if cls is E.Eq:
                self._assume_at_most(Sum().add(s, -1), 0, saved)

    def _assume_at_most(self, s: Sum, limit: int, saved: Saved) -> None:
        """Tighten each term of ``s <= limit`` by what the others leave it."""
        for key, (atom, c) in list(s.terms.items()):
            rest = s.copy()
            del rest.terms[key]
            least = self.of_sum(rest).min_value
            if least == NEG_INF:
                continue
            room = limit - least
            known = ConstIntBound(NEG_INF, clamp(room // c)) if c > 0 else ConstIntBound(clamp(-(room // -c)), POS_INF)
            self._tighten(atom, known, saved)

    def _assume_differs(self, s: Sum, saved: Saved) -> None:
        """A value that one variable does not have shortens its range when it is an end of it."""
        if len(s) != 1:
            return
        ((atom, c),) = s
        if s.const % c:
            return
        bound, value = self.bound(atom), -s.const // c
        if value == bound.min_value:
            self._tighten(atom, ConstIntBound(value + 1, POS_INF), saved)
        elif value == bound.max_value:
            self._tighten(atom, ConstIntBound(NEG_INF, value - 1), saved)

    def _tighten(self, atom: Expr, known: ConstIntBound, saved: Saved) -> None:
        current = self.bound(atom)
        made = current.intersect(known)
        if made == current:
            return
        table: dict[Any, ConstIntBound] = self._vars if isinstance(atom, Var) else self._exprs
        key = atom if isinstance(atom, Var) else key_of(atom)
        saved.append((table, key, table.get(key)))
        table[key] = made


_NEGATED: Final[dict[type, type]] = {E.Lt: E.Ge, E.Le: E.Gt, E.Gt: E.Le, E.Ge: E.Lt, E.Eq: E.Ne, E.Ne: E.Eq}


def facts(condition: Any, holds: bool = True) -> list[tuple[type, Expr, Expr]]:
    """The comparisons (Lt, Le, Eq, Ne) that hold when ``condition`` is ``holds``."""
    cls = condition.__class__
    if cls is E.Not:
        return facts(condition.operand, not holds)
    if cls is (E.And if holds else E.Or):
        return [*facts(condition.left, holds), *facts(condition.right, holds)]
    if cls not in E.COMPARISONS:
        return []
    if not holds:
        cls = _NEGATED[cls]
    left, right = condition.left, condition.right
    if cls in (E.Gt, E.Ge):
        return [(E.Lt if cls is E.Gt else E.Le, right, left)]
    return [(cls, left, right)]


def loop_bound(bounds: ConstIntBoundAnalyzer, start: Expr, stop: Expr, step: Expr) -> ConstIntBound:
    """What the variable of a counted loop may be; steps known to be constant end at the last one taken."""
    first, end, by = bounds(start), bounds(stop), bounds(step)
    if not by.is_const() or by.min_value == 0:
        return EVERYTHING
    if first.is_const() and end.is_const():
        last = range(first.min_value, end.min_value, by.min_value)[-1:] or [first.min_value]
        return ConstIntBound(min(first.min_value, last[0]), max(first.min_value, last[0]))
    if by.min_value > 0:
        return ConstIntBound(first.min_value, max(end.max_value - (end.max_value < POS_INF), first.max_value))
    return ConstIntBound(min(end.min_value + (end.min_value > NEG_INF), first.min_value), first.max_value)
