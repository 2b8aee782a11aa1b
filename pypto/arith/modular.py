"""Which residue class an integer expression is in."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from ..ir import expr as E
from ..ir.expr import ConstBool, ConstInt, Expr, Var, is_integer
from ..ir.types import ScalarType
from .bounds import Recover, Saved, facts, restoring
from .linear import is_index_like, linear


class ModularSet:
    """Values ``coeff * k + base``: coefficient 0 is the one value ``base``, 1 says nothing.

    Otherwise ``0 <= base < coeff``.
    """

    __slots__ = ("coeff", "base")

    def __init__(self, coeff: int, base: int) -> None:
        self.coeff = coeff
        self.base = base % coeff if coeff > 0 else base

    def is_exact(self) -> bool:
        return self.coeff == 0

    def is_everything(self) -> bool:
        return self.coeff == 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ModularSet):
            return NotImplemented
        return self.coeff == other.coeff and self.base == other.base

    def __hash__(self) -> int:
        return hash((self.coeff, self.base))

    def __repr__(self) -> str:
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


EVERYTHING: Final = ModularSet(1, 0)


def _mul(a: ModularSet, b: ModularSet) -> ModularSet:
    return ModularSet(math.gcd(a.coeff * b.coeff, a.coeff * b.base, b.coeff * a.base), a.base * b.base)


def _floordiv(a: ModularSet, divisor: int) -> ModularSet:
    if divisor == 0 or a.coeff % divisor:
        return EVERYTHING
    return ModularSet(abs(a.coeff // divisor), a.base // divisor)


def _floormod(a: ModularSet, divisor: int) -> ModularSet:
    if divisor == 0:
        return EVERYTHING
    if a.is_exact():
        return ModularSet(0, a.base % divisor)
    return ModularSet(math.gcd(a.coeff, divisor), a.base)


def _union(a: ModularSet, b: ModularSet) -> ModularSet:
    return ModularSet(math.gcd(a.coeff, b.coeff, a.base - b.base), a.base)


def _const(b: ModularSet) -> int | None:
    return b.base if b.is_exact() else None


def _bitand(a: ModularSet, b: ModularSet) -> ModularSet:
    for value, mask in ((a, _const(b)), (b, _const(a))):
        if mask is not None and mask > 0 and mask & (mask + 1) == 0:
            return _floormod(value, mask + 1)
    return EVERYTHING


def _by_power(f: Callable[[ModularSet, int], ModularSet]) -> Callable[[ModularSet, ModularSet], ModularSet]:
    def run(a: ModularSet, b: ModularSet) -> ModularSet:
        shift = _const(b)
        return f(a, 1 << shift) if shift is not None and 0 <= shift < 64 else EVERYTHING

    return run


_BINARY: Final[dict[type, Callable[[ModularSet, ModularSet], ModularSet]]] = {
    E.Add: lambda a, b: ModularSet(math.gcd(a.coeff, b.coeff), a.base + b.base),
    E.Sub: lambda a, b: ModularSet(math.gcd(a.coeff, b.coeff), a.base - b.base),
    E.Mul: _mul,
    E.FloorDiv: lambda a, b: EVERYTHING if _const(b) is None else _floordiv(a, b.base),
    E.FloorMod: lambda a, b: EVERYTHING if _const(b) is None else _floormod(a, b.base),
    E.Min: _union,
    E.Max: _union,
    E.BitAnd: _bitand,
    E.BitShiftLeft: _by_power(lambda a, factor: ModularSet(a.coeff * factor, a.base * factor)),
    E.BitShiftRight: _by_power(_floordiv),
}


class ModularSetAnalyzer:
    """Residue classes of expressions from those of variables."""

    def __init__(self) -> None:
        self._vars: dict[Var, ModularSet] = {}

    def __call__(self, expr: Expr) -> ModularSet:
        return self.of(expr)

    def update(self, var: Var, known: ModularSet) -> None:
        """Set what is known of ``var``. Raises ValueError for a negative coefficient."""
        if known.coeff < 0:
            raise ValueError(f"a modular set's coefficient must be non-negative, got {known.coeff}")
        self._vars[var] = known

    def bind(self, var: Var, expr: Expr) -> None:
        self.update(var, self.of(expr))

    def unbind(self, var: Var) -> None:
        self._vars.pop(var, None)

    def of(self, e: Any) -> ModularSet:
        cls = e.__class__
        if cls is ConstInt or cls is ConstBool:
            return ModularSet(0, int(e.value))
        if isinstance(e, Var):
            return self._vars.get(e, EVERYTHING)
        if cls is E.Cast:
            return self._wrapped(self.of(e.operand), e) if is_integer(e.operand) else EVERYTHING
        if not isinstance(e.type, ScalarType) or not is_integer(e):
            return EVERYTHING
        if cls is E.Neg:
            a = self.of(e.operand)
            return self._wrapped(ModularSet(a.coeff, -a.base), e)
        rule = _BINARY.get(cls)
        return EVERYTHING if rule is None else self._wrapped(rule(self.of(e.left), self.of(e.right)), e)

    @staticmethod
    def _wrapped(made: ModularSet, e: Expr) -> ModularSet:
        """Wrapping changes a value by a multiple of two to the width: what divides that is still known."""
        if is_index_like(e) or not is_integer(e):
            return made
        if made.is_exact():
            low, high = e.dtype.int_range()
            if low <= made.base <= high:
                return made
        return ModularSet(math.gcd(made.coeff, 1 << e.dtype.bits), made.base)

    def enter_constraint(self, condition: Expr) -> Recover | None:
        """Take ``condition`` as true until the returned function is called; None when it says nothing."""
        saved: Saved = []
        for cls, left, right in facts(condition):
            for value, known in ((left, right), (right, left)):
                if cls is E.Eq and is_integer(value):
                    self._assume_equal(value, self.of(known), saved)
        return restoring(saved)

    def _assume_equal(self, e: Any, known: ModularSet, saved: Saved) -> None:
        """``e`` is in ``known``: a variable, or a variable plus a constant modulo a constant."""
        if known.is_everything():
            return
        if isinstance(e, Var):
            self._intersect(e, known, saved)
        elif isinstance(e, E.FloorMod) and isinstance(e.right, ConstInt) and known.is_exact() and e.right.value > 0:
            s = linear(e.left)
            if len(s) == 1 and is_index_like(e):
                ((atom, c),) = s
                if isinstance(atom, Var) and c == 1:
                    self._intersect(atom, ModularSet(e.right.value, known.base - s.const), saved)

    def _intersect(self, var: Var, known: ModularSet, saved: Saved) -> None:
        current = self._vars.get(var, EVERYTHING)
        finer = current if current.is_exact() or 0 < known.coeff <= current.coeff else known
        if finer != current:
            saved.append((self._vars, var, self._vars.get(var)))
            self._vars[var] = finer
