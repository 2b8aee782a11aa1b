"""What is known of a scalar: which power of two divides it, and that it is not negative.

Both are needed before an offset may be divided into blocks. An offset of -16 is a multiple of 16, and codegen would
clamp its block, -1, to 0: the load would read other data without a word.

Facts come from definitions: assignments, loop variables, the numbers of blocks. A loop-carried value has no one
definition and is known nothing of, nor is a parameter. Divisibility survives arithmetic that wraps, because
a power of two divides the modulus too.
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import internal_check_span
from ...ir.expr import Add, BinaryExpr, Call, ConstInt, Expr, FloorDiv, IterArg, Mul, Sub, Var
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import AssignStmt, ForStmt
from ...ir.types import ScalarType
from ...ir.visitor import Visitor

_LANES = frozenset({"tile.get_block_idx", "tile.get_block_num"})
_ANY_POWER = 1 << 64
"""What divides 0: more than any divisor asked for."""


class Fact(NamedTuple):
    """``power``: the largest power of two known to divide the value."""

    power: int
    non_negative: bool


_NOTHING = Fact(1, False)


class Facts(Visitor):
    """The facts of a function's scalars, collected in one reading."""

    def __init__(self, function: Function) -> None:
        self._known: dict[Var, Fact] = {}
        self.visit(function)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if isinstance(op.var.type, ScalarType):
            self._known[op.var] = self.of(op.value)

    def visit_for_stmt(self, op: ForStmt) -> None:
        start, step = self.of(op.start), self.of(op.step)
        self._known[op.loop_var] = Fact(min(start.power, step.power), start.non_negative and step.non_negative)
        self.visit(op.body)

    def of(self, value: Expr) -> Fact:
        """What is known of an expression."""
        if isinstance(value, ConstInt):
            return Fact(value.value & -value.value or _ANY_POWER, value.value >= 0)
        if isinstance(value, Var):
            return _NOTHING if isinstance(value, IterArg) else self._known.get(value, _NOTHING)
        if isinstance(value, (Add, Sub, Mul)):
            left, right = self.of(value.left), self.of(value.right)
            if isinstance(value, Mul):
                return Fact(max(left.power, right.power), left.non_negative and right.non_negative)
            sign = left.non_negative and right.non_negative and isinstance(value, Add)
            return Fact(min(left.power, right.power), sign)
        if isinstance(value, FloorDiv):
            return self._quotient(value)
        if isinstance(value, Call) and value.op.name in _LANES:
            return Fact(1, True)
        return _NOTHING

    def _quotient(self, value: BinaryExpr) -> Fact:
        """A quotient by a constant power of two keeps what of the dividend's power is left, and its sign."""
        by = value.right.value if isinstance(value.right, ConstInt) else 0
        if by <= 0 or by & (by - 1):
            return _NOTHING
        dividend = self.of(value.left)
        return Fact(max(dividend.power // by, 1), dividend.non_negative)

    def is_multiple(self, value: Expr, divisor: int, span: Span) -> bool:
        """Whether ``divisor`` provably divides ``value``.

        Raises InternalError at ``span`` for a divisor that is no power of two: the proof would not survive wrapping.
        """
        power = divisor > 0 and divisor & (divisor - 1) == 0
        internal_check_span(power, f"blocks of {divisor}: a divisor must be a power of two", span)
        return self.of(value).power >= divisor
