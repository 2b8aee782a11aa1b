"""One place to ask about integer expressions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import ConstBool, ConstInt, Expr, Var, is_integer
from .bounds import ConstIntBound, ConstIntBoundAnalyzer, Recover
from .canonical import CanonicalSimplifier
from .int_set import IntSet, IntSetAnalyzer
from .linear import Sum, linear
from .modular import ModularSet, ModularSetAnalyzer
from .rewrite import FullSimplifier, RewriteSimplifier
from .transitive import TransitiveComparisonAnalyzer, implies

_SYMBOLIC_ROUNDS: Final = 3
"""How many variables of a comparison are replaced by their symbolic bounds."""


class Analyzer:
    """Bounds, residues, simplification and proofs over one set of facts about variables.

    ``bind`` states what a variable is; ``constraint_context`` what holds for a while. Reasoning about 64-bit signed
    values (INT64, INDEX) takes their arithmetic not to overflow; narrower arithmetic wraps.
    """

    def __init__(self) -> None:
        self.const_int_bound = ConstIntBoundAnalyzer()
        self.modular_set = ModularSetAnalyzer()
        self.rewrite_simplify = RewriteSimplifier(self.const_int_bound, self.modular_set)
        self.canonical_simplify = CanonicalSimplifier(self.const_int_bound, self.modular_set)
        self._simplify = FullSimplifier(self.const_int_bound, self.modular_set)
        self.int_set = IntSetAnalyzer(FullSimplifier(self.const_int_bound, self.modular_set))
        self.transitive_cmp = TransitiveComparisonAnalyzer(self.const_int_bound)

    def bind(self, var: Var, value: Expr | int, max_value: int | None = None) -> None:
        """``var`` equals the expression ``value``, or is in ``value <= var < max_value``.

        A variable with one possible value is replaced by it. Raises ValueError for an empty range.
        """
        if isinstance(value, Expr):
            self._bind_expr(var, self.simplify(value))
            return
        if max_value is None:
            raise ValueError(f"a range of {var.name_hint} needs its end")
        self.const_int_bound.bind(var, value, max_value)
        low, high = ConstInt(value, var.dtype), ConstInt(max_value - 1, var.dtype)
        self.int_set.update(var, IntSet(low, high))
        self.transitive_cmp.bind(var, value, max_value)
        self._replace(var, low if value == max_value - 1 else None)

    def _bind_expr(self, var: Var, value: Expr) -> None:
        if is_integer(value):
            self.const_int_bound.update(var, self.const_int_bound(value))
            self.modular_set.bind(var, value)
            self.int_set.update(var, self.int_set(value))
            self.transitive_cmp.bind(var, value)
        self._replace(var, value)

    def bind_bound(self, var: Var, bound: ConstIntBound, residue: ModularSet | None = None) -> None:
        """``var`` is within ``bound`` (and has ``residue``), without being replaced by anything."""
        self.const_int_bound.update(var, bound)
        if residue is not None:
            self.modular_set.update(var, residue)

    def _replace(self, var: Var, value: Expr | None) -> None:
        for simplifier in (self.rewrite_simplify, self.canonical_simplify, self._simplify):
            simplifier.update(var, value)

    def unbind(self, var: Var) -> None:
        """Forget what ``bind`` and constraints said about ``var``."""
        for analyzer in (self.const_int_bound, self.modular_set, self.int_set, self.transitive_cmp):
            analyzer.unbind(var)
        self._replace(var, None)

    def simplify(self, expr: Expr, steps: int = 2) -> Expr:
        """``expr`` simplified, at most ``steps`` times over; the same object when nothing changes."""
        for _ in range(steps):
            made = self._simplify(expr)
            if made is expr:
                break
            expr = made
        return expr

    # Proofs

    def can_prove(self, condition: Expr) -> bool:
        """Whether ``condition`` is true whatever the variables are; False means no more than "not proven"."""
        made: Any = self.simplify(condition)
        if isinstance(made, ConstBool):
            return made.value
        return self._proven(made) or (made is not condition and self._proven(condition))

    def _proven(self, condition: Any) -> bool:
        if isinstance(condition, E.And):
            return self.can_prove(condition.left) and self.can_prove(condition.right)
        if isinstance(condition, E.Or):
            return self.can_prove(condition.left) or self.can_prove(condition.right)
        if condition.__class__ not in E.COMPARISONS or not is_integer(condition.left):
            return False
        left, right, cls = condition.left, condition.right, condition.__class__
        if implies(self.transitive_cmp.try_compare(left, right), cls):
            return True
        return self._proven_symbolically(cls, left, right)

    def _proven_symbolically(self, cls: type, left: Expr, right: Expr) -> bool:
        """Replace variables by the symbolic bounds that make the comparison hardest."""
        if cls in (E.Gt, E.Ge):
            cls, left, right = (E.Lt if cls is E.Gt else E.Le), right, left
        exact = self.const_int_bound.exact
        if cls not in (E.Lt, E.Le) or not (is_integer(right) and exact(left) and exact(right)):
            return False
        return self._at_most(linear(left).add(linear(right), -1), -1 if cls is E.Lt else 0, _SYMBOLIC_ROUNDS)

    def _at_most(self, s: Sum, limit: int, rounds: int) -> bool:
        """Whether ``s <= limit`` once a variable stands at its upper end (its lower where it is subtracted)."""
        for key, (atom, c) in list(s.terms.items()) if rounds else ():
            known = self.int_set.known(atom)
            end = None if known is None else known.max_value if c > 0 else known.min_value
            if end is None or not self.const_int_bound.exact(end):
                continue
            made = s.copy()
            del made.terms[key]
            made.add(linear(end), c)
            if self.const_int_bound.of_sum(made).max_value <= limit or self._at_most(made, limit, rounds - 1):
                return True
        return False

    def can_prove_equal(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether the two always have the same value."""
        if lhs is rhs:
            return True
        if not (is_integer(lhs) and is_integer(rhs)):
            return False
        s = linear(self.simplify(lhs)).add(linear(self.simplify(rhs)), -1)
        if not s.terms and s.const == 0:
            return True
        return self.can_prove(E.Eq(lhs, rhs, DataType.BOOL))

    def can_prove_greater_equal(self, expr: Expr, value: int) -> bool:
        """Whether ``expr >= value`` always."""
        return self.const_int_bound(self.simplify(expr)).min_value >= value or self.can_prove(
            E.Ge(expr, ConstInt(value, expr.dtype), DataType.BOOL)
        )

    def can_prove_less(self, expr: Expr, value: int) -> bool:
        """Whether ``expr < value`` always."""
        return self.const_int_bound(self.simplify(expr)).max_value < value or self.can_prove(
            E.Lt(expr, ConstInt(value, expr.dtype), DataType.BOOL)
        )

    def is_non_negative(self, expr: Expr) -> bool:
        """Whether ``expr >= 0`` always."""
        return self.can_prove_greater_equal(expr, 0)

    def is_multiple_of(self, expr: Expr, factor: int) -> bool:
        """Whether ``factor`` (positive) always divides ``expr``."""
        for e in (expr, self.simplify(expr)):
            known = self.modular_set(e)
            if known.coeff % factor == 0 and known.base % factor == 0:
                return True
        return False

    # Constraints

    def enter_constraint(self, condition: Expr) -> Recover:
        """Take ``condition`` as true until the returned function is called; use `constraint_context` where possible."""
        parts = (self.const_int_bound, self.modular_set, self.int_set, self.transitive_cmp)
        undo = [f for f in (part.enter_constraint(condition) for part in parts) if f is not None]

        def recover() -> None:
            for f in reversed(undo):
                f()

        return recover

    @contextmanager
    def constraint_context(self, condition: Expr) -> Iterator[None]:
        """Take ``condition`` as true inside the ``with``."""
        recover = self.enter_constraint(condition)
        try:
            yield
        finally:
            recover()
