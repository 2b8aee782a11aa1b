"""What is known of scalar SSA values: constants, and remainders through sums, products and loop variables."""

from __future__ import annotations

from math import gcd

from ...arith import CanonicalSimplifier, ModularSet, ModularSetAnalyzer
from ...ir.expr import Add, ConstInt, Expr, Var, index_const, is_integer
from ...ir.stmt import AssignStmt, ForStmt
from ...ir.structural import structural_equal


class ScalarFacts:
    """Facts of integer scalars, learnt definition by definition in program order."""

    __slots__ = ("_sets", "_collect", "_aliases")

    def __init__(self) -> None:
        self._sets = ModularSetAnalyzer()
        self._collect = CanonicalSimplifier()
        self._aliases: dict[Var, Expr] = {}

    def learn(self, stmt: AssignStmt) -> None:
        """Take in ``var = value``."""
        if not (is_integer(stmt.var) and is_integer(stmt.value)):
            return
        self._sets.update(stmt.var, self._sets(stmt.value))
        if isinstance(stmt.value, (Var, ConstInt)):
            self._aliases[stmt.var] = self._source(stmt.value)

    def learn_loop(self, loop: ForStmt) -> None:
        """Take in the values of a loop variable: ``start`` plus multiples of ``step``."""
        start, step = self._sets(loop.start), self._sets(loop.step)
        coeff = gcd(start.coeff, step.coeff, step.base)
        if coeff > 1:
            self._sets.update(loop.loop_var, ModularSet(coeff, start.base % coeff))

    def exact(self, value: Expr) -> int | None:
        """The value, when it is a constant."""
        if isinstance(value, ConstInt):
            return value.value
        if not is_integer(value):
            return None
        found = self._sets(value)
        return found.base if found.coeff == 0 else None

    def folded(self, value: Expr) -> Expr:
        """``value``, or the constant it is known to be."""
        known = self.exact(value)
        return value if known is None or isinstance(value, ConstInt) else index_const(known, value.span)

    def remainder(self, value: Expr, factor: int, modulus: int) -> int | None:
        """``value * factor`` modulo ``modulus``, when it is the same for every value."""
        if isinstance(value, ConstInt):
            return value.value * factor % modulus
        found = self._sets(value)
        if found.coeff * factor % modulus and isinstance(value, Add):
            # Terms that are a multiple only together: i * 4 + i * 4.
            found = self._sets(self._collect(value))
        return None if found.coeff * factor % modulus else found.base * factor % modulus

    def same(self, a: Expr, b: Expr) -> bool:
        """Whether two values are provably equal."""
        x, y = self.exact(a), self.exact(b)
        if x is not None or y is not None:
            return x == y
        return structural_equal(self._source(a), self._source(b))

    def _source(self, value: Expr) -> Expr:
        """The value that ``value`` is a plain alias of; itself when it is none."""
        return self._aliases.get(value, value) if isinstance(value, Var) else value
