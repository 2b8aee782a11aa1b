"""Symbolic intervals: bounds of an expression that are expressions themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..ir import expr as E
from ..ir.expr import ConstInt, Expr, Var, is_integer
from .bounds import Recover, Saved, facts, restoring
from .linear import is_index_like, same_value
from .rewrite import FullSimplifier


class IntSet:
    """``min_value <= value <= max_value``; None where there is no bound."""

    __slots__ = ("min_value", "max_value")

    def __init__(self, min_value: Expr | None, max_value: Expr | None) -> None:
        self.min_value = min_value
        self.max_value = max_value

    @staticmethod
    def everything() -> IntSet:
        return IntSet(None, None)

    @staticmethod
    def single_point(value: Expr) -> IntSet:
        return IntSet(value, value)

    @staticmethod
    def interval(min_value: Expr, max_value: Expr) -> IntSet:
        return IntSet(min_value, max_value)

    def is_everything(self) -> bool:
        return self.min_value is None and self.max_value is None

    def is_single_point(self) -> bool:
        low, high = self.min_value, self.max_value
        return low is not None and high is not None and same_value(low, high)

    def is_nothing(self) -> bool:
        low, high = self.constants()
        return low is not None and high is not None and low > high

    def constants(self) -> tuple[int | None, int | None]:
        """The ends that are constants."""
        low, high = self.min_value, self.max_value
        return (low.value if isinstance(low, ConstInt) else None), (high.value if isinstance(high, ConstInt) else None)

    def __repr__(self) -> str:
        return f"IntSet[{self.min_value}, {self.max_value}]"


class IntSetAnalyzer:
    """Intervals of 64-bit expressions from intervals of variables; a variable without one stands for itself."""

    def __init__(self, simplify: Callable[[Expr], Expr] | None = None) -> None:
        self._vars: dict[Var, IntSet] = {}
        self._simplify = simplify or FullSimplifier()

    def __call__(self, expr: Expr) -> IntSet:
        return self.of(expr)

    def bind(self, var: Var, min_value: Expr, max_value: Expr) -> None:
        """``min_value <= var < max_value``."""
        self._vars[var] = IntSet(min_value, self._op(E.Sub, max_value, _const(1, max_value)))

    def update(self, var: Var, known: IntSet) -> None:
        self._vars[var] = known

    def unbind(self, var: Var) -> None:
        self._vars.pop(var, None)

    def known(self, e: Expr) -> IntSet | None:
        """What was said about a variable itself."""
        return self._vars.get(e) if isinstance(e, Var) else None

    def of(self, e: Any) -> IntSet:
        if isinstance(e, Var):
            return self._vars.get(e) or IntSet.single_point(e)
        cls = e.__class__
        if cls is E.Neg and is_index_like(e):
            a = self.of(e.operand)
            return IntSet(self._neg(a.max_value), self._neg(a.min_value))
        rule = _RULES.get(cls)
        if rule is None or not is_integer(e) or not is_index_like(e):
            return IntSet.single_point(e)
        a, b = self.of(e.left), self.of(e.right)
        x, y = a.min_value, b.min_value
        if x is not None and y is not None and a.is_single_point() and b.is_single_point():
            return IntSet.single_point(self._op(cls, x, y))
        return rule(self, a, b)

    def _op(self, cls: Any, a: Expr, b: Expr) -> Expr:
        return self._simplify(cls(a, b, a.dtype))

    def _pair(self, cls: Any, a: Expr | None, b: Expr | None) -> Expr | None:
        return None if a is None or b is None else self._op(cls, a, b)

    def _neg(self, a: Expr | None) -> Expr | None:
        return None if a is None else self._simplify(E.Neg(a, a.dtype))

    def _add(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(self._pair(E.Add, a.min_value, b.min_value), self._pair(E.Add, a.max_value, b.max_value))

    def _sub(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(self._pair(E.Sub, a.min_value, b.max_value), self._pair(E.Sub, a.max_value, b.min_value))

    def _mul(self, a: IntSet, b: IntSet) -> IntSet:
        for x, y in ((a, b), (b, a)):
            low, high = x.constants()
            if low is not None and low == high:
                factor = x.min_value
                ends = [self._pair(E.Mul, y.min_value, factor), self._pair(E.Mul, y.max_value, factor)]
                return IntSet(*(ends if low >= 0 else reversed(ends)))
        ends = [*a.constants(), *b.constants()]
        if None in ends or a.min_value is None:
            return IntSet.everything()
        products = [x * y for x in a.constants() for y in b.constants() if x is not None and y is not None]
        return IntSet(_const(min(products), a.min_value), _const(max(products), a.min_value))

    def _div(self, a: IntSet, b: IntSet) -> IntSet:
        low, high = b.constants()
        if low is None or low != high or low <= 0:
            return IntSet.everything()
        divisor = b.min_value
        return IntSet(self._pair(E.FloorDiv, a.min_value, divisor), self._pair(E.FloorDiv, a.max_value, divisor))

    def _mod(self, a: IntSet, b: IntSet) -> IntSet:
        low, high = b.constants()
        if low is None or low != high or low <= 0 or b.min_value is None:
            return IntSet.everything()
        least, most = a.constants()
        if least is not None and most is not None and least // low == most // low:
            return IntSet(_const(least % low, b.min_value), _const(most % low, b.min_value))
        return IntSet(_const(0, b.min_value), _const(low - 1, b.min_value))

    def _min(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(self._pair(E.Min, a.min_value, b.min_value), self._either(E.Min, a.max_value, b.max_value))

    def _max(self, a: IntSet, b: IntSet) -> IntSet:
        return IntSet(self._either(E.Max, a.min_value, b.min_value), self._pair(E.Max, a.max_value, b.max_value))

    def _either(self, cls: Any, a: Expr | None, b: Expr | None) -> Expr | None:
        return b if a is None else a if b is None else self._op(cls, a, b)

    def enter_constraint(self, condition: Expr) -> Recover | None:
        """Take ``condition`` as true until the returned function is called; None when it says nothing."""
        saved: Saved = []
        for cls, left, right in facts(condition):
            if cls is E.Ne or not (is_integer(left) and is_index_like(left)):
                continue
            one = _const(1, right)
            if isinstance(left, Var):
                high = self._op(E.Sub, right, one) if cls is E.Lt else right
                self._tighten(left, IntSet(right if cls is E.Eq else None, high), saved)
            if isinstance(right, Var):
                low = self._op(E.Add, left, one) if cls is E.Lt else left
                self._tighten(right, IntSet(low, left if cls is E.Eq else None), saved)
        return restoring(saved)

    def _tighten(self, var: Var, known: IntSet, saved: Saved) -> None:
        old = self._vars.get(var)
        saved.append((self._vars, var, old))
        if old is not None:
            low = self._either(E.Max, old.min_value, known.min_value)
            known = IntSet(low, self._either(E.Min, old.max_value, known.max_value))
        self._vars[var] = known


def _const(value: int, like: Expr) -> ConstInt:
    return ConstInt(value, like.dtype)


_RULES: Final[dict[type, Callable[[IntSetAnalyzer, IntSet, IntSet], IntSet]]] = {
    E.Add: IntSetAnalyzer._add,
    E.Sub: IntSetAnalyzer._sub,
    E.Mul: IntSetAnalyzer._mul,
    E.FloorDiv: IntSetAnalyzer._div,
    E.FloorMod: IntSetAnalyzer._mod,
    E.Min: IntSetAnalyzer._min,
    E.Max: IntSetAnalyzer._max,
}
