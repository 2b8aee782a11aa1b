"""Sums, divisions and remainders in one form.

Like terms are collected, constants distributed over sums, divisions and remainders reduced by what divides evenly
and by what bounds decide. `CanonicalSimplifier` does that alone; `rewrite` adds comparisons, minima and logic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import BinaryExpr, ConstInt, Expr, UnaryExpr, Var, const_value, is_integer
from ..ir.span import Span
from .bounds import NEG_INF, POS_INF, ConstIntBoundAnalyzer, Recover
from .const_fold import fold_binary, fold_identity, fold_unary
from .linear import Sum, cost, discardable, identical, key_of, linear, same_dtype, same_value
from .modular import ModularSetAnalyzer

Rule = Callable[[Any, Any], Expr]
TermRule = Callable[[Any, Sum, Any, int], bool]


class CanonicalSimplifier:
    """Simplifies an expression bottom-up. Calls and other values that are no arithmetic are left as they are.

    Every result has the value of its input for all values of the variables within their bounds, in the wrapping
    arithmetic of its dtype (64-bit signed arithmetic is taken not to overflow).
    """

    distribute: ClassVar[bool] = True
    rules: ClassVar[dict[type, Rule]] = {}
    term_rules: ClassVar[dict[type, tuple[TermRule, ...]]] = {}
    """What may be done about a term of a sum, by the atom's class; each says whether it did something."""

    def __init__(self, bounds: ConstIntBoundAnalyzer | None = None, modular: ModularSetAnalyzer | None = None) -> None:
        self.bounds = bounds or ConstIntBoundAnalyzer()
        self.modular = modular or ModularSetAnalyzer()
        self.replacements: dict[Var, Expr] = {}
        self._done: dict[int, tuple[Expr, Expr]] = {}
        self._effects = False

    def __call__(self, expr: Expr) -> Expr:
        self._done = {}
        self._effects = False
        return self.visit(expr)

    def update(self, var: Var, value: Expr | None) -> None:
        """Replace ``var`` by ``value`` from now on, or no longer with None."""
        if value is None:
            self.replacements.pop(var, None)
        else:
            self.replacements[var] = value

    def enter_constraint(self, condition: Expr) -> Recover | None:
        """Constraints act through the analyzers behind; nothing to do here."""
        return None

    def visit(self, e: Any) -> Expr:
        if isinstance(e, Var):
            return self.replacements.get(e, e)
        if not isinstance(e, (BinaryExpr, UnaryExpr)):
            self._effects = self._effects or not discardable(e)
            return e
        known = self._done.get(id(e))
        if known is not None:
            return known[1]
        if isinstance(e, BinaryExpr):
            left, right = self.visit(e.left), self.visit(e.right)
            made = e if left is e.left and right is e.right else e.replace(left=left, right=right)
        else:
            operand = self.visit(e.operand)
            made = e if operand is e.operand else e.replace(operand=operand)
        result = self.apply(made)
        # The input is kept beside its result: an id names an object only while the object lives.
        self._done[id(e)] = (e, result)
        return result

    def make(self, cls: Any, left: Expr, right: Expr, dtype: DataType, span: Span) -> Expr:
        """A simplified binary operation on simplified operands."""
        return self.apply(cls(left, right, dtype, span))

    def apply(self, e: Any) -> Expr:
        """Simplify an operation whose operands are simplified."""
        if isinstance(e, UnaryExpr):
            folded = fold_unary(e)
        else:
            folded = fold_binary(e) or fold_identity(e)
        if folded is not None:
            return folded
        rule = self.rules.get(e.__class__)
        # Rules drop and merge operands, which is only right for operands without effects.
        return e if rule is None or self._effects else rule(self, e)

    # Sums

    def sum(self, e: Any) -> Expr:
        if not is_integer(e):
            return e
        collected = linear(e, self.distribute)
        self._combine(collected)
        return self._rebuilt(collected, e)

    def _rebuilt(self, s: Sum, e: Any) -> Expr:
        """``s`` in place of ``e``, unless it says the same or nothing shorter."""
        made = self._build(s, e)
        if made is None or identical(made, e) or (not self.distribute and cost(made) > cost(e)):
            return e
        return made

    @staticmethod
    def _build(s: Sum, e: Any) -> Expr | None:
        if len(s) == 1 and not s.const:
            ((atom, c),) = s
            if c == 1:
                return atom if same_dtype(atom, e) else None
        return s.build(e.dtype, e.span)

    def _combine(self, s: Sum) -> None:
        """Rules that take several terms of a sum together, until none applies."""
        rules = self.term_rules
        if not any(atom.__class__ in rules for atom, _ in s):
            return
        while any(rule(self, s, atom, c) for atom, c in list(s) for rule in rules.get(atom.__class__, ())):
            pass

    def _join_div_mod(self, s: Sum, atom: Any, c: int) -> bool:
        """``(u // d) * d + u % d`` is ``u``."""
        divisor = atom.right
        if not isinstance(divisor, ConstInt) or divisor.value == 0:
            return False
        quotient = (E.FloorDiv, key_of(atom.left), key_of(divisor))
        if s.coefficient(quotient) != c * divisor.value:
            return False
        s.add_term(atom, -c)
        s.add_term(atom, -c * divisor.value, quotient)
        s.add(linear(atom.left, self.distribute), c)
        return True

    def _extract_mod(self, s: Sum, atom: Any, c: int) -> bool:
        """``u - (u // d) * d`` is ``u % d``, where enough of ``u`` cancels."""
        divisor = atom.right
        if not isinstance(divisor, ConstInt) or divisor.value == 0 or c % divisor.value:
            return False
        factor = -(c // divisor.value)
        dividend = linear(atom.left, self.distribute)
        if not any(s.coefficient(k) == factor * d for k, (_, d) in dividend.terms.items()):
            return False
        remainder = E.FloorMod(atom.left, divisor, atom.dtype, atom.span)
        made = Sum()
        for other, d in s:
            made.add_term(*((other, d) if other is not atom else (remainder, factor)))
        made.const = s.const
        made.add(dividend, -factor)
        if len(made) > len(s) or (len(made) == len(s) and abs(made.const) > abs(s.const)):
            return False
        s.terms, s.const = made.terms, made.const
        return True

    def floordiv(self, e: Any) -> Expr:
        if not is_integer(e):
            return e
        a, b = e.left, e.right
        decided = self.bounds(e)
        if decided.is_const() and self._nonzero(b):
            return ConstInt(decided.min_value, e.dtype, e.span)
        if not isinstance(b, ConstInt):
            return self._floordiv_by_value(e)
        if b.value <= 0 or not self.bounds.exact(a):
            return e
        whole, rest, divisor = self._divide(linear(a), b.value)
        if not rest.terms:
            whole.const += rest.const // divisor
            return self._build(whole, e) or e
        low, high = self._quotient_range(rest, divisor)
        if low == high and low is not None:
            whole.const += low
            return self._build(whole, e) or e
        return self._quotient(e, whole, rest, divisor)

    @staticmethod
    def _divide(s: Sum, divisor: int) -> tuple[Sum, Sum, int]:
        """``s // divisor`` as ``whole + rest // divisor``, with a common factor of the rest cancelled."""
        whole, rest = Sum(), Sum()
        for key, (atom, c) in s.terms.items():
            if c % divisor:
                rest.add_term(atom, c, key)
            else:
                whole.add_term(atom, c // divisor, key)
        if s.const % divisor:
            rest.const = s.const
        else:
            whole.const = s.const // divisor
        factor = math.gcd(divisor, *(c for _, c in rest)) if rest.terms else 1
        if factor > 1:
            reduced = Sum(rest.const // factor)
            for key, (atom, c) in rest.terms.items():
                reduced.add_term(atom, c // factor, key)
            rest, divisor = reduced, divisor // factor
        return whole, rest, divisor

    def _quotient_range(self, s: Sum, divisor: int) -> tuple[int | None, int | None]:
        bound = self.bounds.of_sum(s)
        if bound.min_value == NEG_INF or bound.max_value == POS_INF:
            return None, None
        return bound.min_value // divisor, bound.max_value // divisor

    def _quotient(self, e: Any, whole: Sum, rest: Sum, divisor: int) -> Expr:
        """``whole + rest // divisor`` in place of ``e``, nested divisions joined."""
        if len(rest) == 1:
            ((atom, c),) = rest
            inner = _const_divisor(atom, E.FloorDiv)
            if c == 1 and inner > 0 and self.bounds.exact(atom.left):
                # (u // d + k) // n is (u + k * d) // (d * n).
                const, divisor = rest.const * inner, divisor * inner
                rest = linear(atom.left)
                rest.const += const
                extra, rest, divisor = self._divide(rest, divisor)
                whole.add(extra)
        rest = self._without_own_remainder(rest, divisor)
        quotient = self._division(E.FloorDiv, rest, divisor, e)
        if quotient is None:
            return e
        whole.add_term(quotient, 1)
        made = self._build(whole, e)
        return e if made is None or identical(made, e) else made

    @staticmethod
    def _without_own_remainder(s: Sum, divisor: int) -> Sum:
        """``u - u % d`` divides by ``d`` like ``u`` does."""
        for key, (atom, c) in s.terms.items():
            if c == -1 and isinstance(atom, E.FloorMod) and const_value(atom.right) == divisor:
                others = s.copy()
                del others.terms[key]
                if others.same_as(linear(atom.left)):
                    return others
        return s

    def _division(self, cls: Any, s: Sum, divisor: int, e: Any) -> Expr | None:
        """``s // divisor`` or ``s % divisor`` as an atom; None when writing it so could wrap."""
        dividend = s.build(e.dtype, e.span)
        if dividend is None or divisor > e.dtype.int_range()[1] or not self.bounds.exact(dividend):
            return None
        return cls(dividend, ConstInt(divisor, e.dtype, e.span), e.dtype, e.span)

    def _nonzero(self, e: Expr) -> bool:
        bound = self.bounds(e)
        return bound.min_value > 0 or bound.max_value < 0

    def _floordiv_by_value(self, e: Any) -> Expr:
        """Division by a variable: of itself, of its multiple."""
        a, b = e.left, e.right
        if not self._nonzero(b) or not self.bounds.exact(a):
            return e
        s = linear(a)
        if len(s) == 1 and not s.const:
            ((atom, c),) = s
            if same_value(atom, b):
                return ConstInt(c, e.dtype, e.span)
        if isinstance(a, E.Mul):
            for factor, other in ((a.left, a.right), (a.right, a.left)):
                if same_value(factor, b) and same_dtype(other, e):
                    return other
        return e

    def floormod(self, e: Any) -> Expr:
        if not is_integer(e):
            return e
        a, b = e.left, e.right
        if not isinstance(b, ConstInt):
            return self._floormod_by_value(e)
        if b.value <= 0:
            return e
        if self.bounds(a).within(0, b.value - 1):
            return a if same_dtype(a, e) else e
        if not self.bounds.exact(a):
            return e
        return self._remainder(e, a, b.value)

    def _remainder(self, e: Any, a: Expr, divisor: int) -> Expr:
        dividend, reduced = linear(a), Sum()
        for atom, c in dividend:
            c = c % divisor if c > 0 else -(-c % divisor)
            inner = _const_divisor(atom, E.FloorMod)
            if c and inner and inner % divisor == 0 and self.bounds.exact(atom.left):
                # The inner remainder differs from its dividend by a multiple of the outer divisor.
                reduced.add(linear(atom.left), c)
            elif c:
                reduced.add_term(atom, c)
        reduced.const = (reduced.const + dividend.const) % divisor
        if not reduced.terms:
            return ConstInt(reduced.const, e.dtype, e.span)
        low, high = self._quotient_range(reduced, divisor)
        if low == high and low is not None:
            reduced.const -= low * divisor
            return self._build(reduced, e) or e
        residue = self._residue(reduced, divisor)
        if residue is not None:
            return ConstInt(residue, e.dtype, e.span)
        made = self._division(E.FloorMod, reduced, divisor, e)
        return e if made is None or identical(made, e) else made

    def _residue(self, s: Sum, divisor: int) -> int | None:
        """What ``s`` leaves when every term's residue is known."""
        total = s.const
        for atom, c in s:
            known = self.modular(atom)
            if known.coeff * c % divisor:
                return None
            total += known.base * c
        return total % divisor

    def _floormod_by_value(self, e: Any) -> Expr:
        """The remainder of a variable's multiple by the variable."""
        a, b = e.left, e.right
        if not self._nonzero(b) or not self.bounds.exact(a):
            return e
        if self.bounds(a).min_value >= 0 and self.bounds.difference(a, b).max_value < 0:
            return a if same_dtype(a, e) else e
        factors = (a.left, a.right) if isinstance(a, E.Mul) else (a,)
        return ConstInt(0, e.dtype, e.span) if any(same_value(f, b) for f in factors) else e


def _const_divisor(atom: Any, cls: type) -> int:
    """The constant ``atom`` divides by as a ``cls``; 0 when it does not."""
    return atom.right.value if isinstance(atom, cls) and isinstance(atom.right, ConstInt) else 0


CanonicalSimplifier.term_rules = {
    E.FloorMod: (CanonicalSimplifier._join_div_mod,),
    E.FloorDiv: (CanonicalSimplifier._extract_mod,),
}
CanonicalSimplifier.rules = {
    E.Add: CanonicalSimplifier.sum,
    E.Sub: CanonicalSimplifier.sum,
    E.Neg: CanonicalSimplifier.sum,
    E.Mul: CanonicalSimplifier.sum,
    E.FloorDiv: CanonicalSimplifier.floordiv,
    E.FloorMod: CanonicalSimplifier.floormod,
}
