"""Loops of kernels that count down count up instead: PTO has no others."""

from __future__ import annotations

from ...ir.expr import Sub, Var, const_value
from ...ir.naming import versioned, written_name
from ...ir.program import Function
from ...ir.scalar import cast_scalar, scalar_const
from ...ir.stmt import AssignStmt, ForStmt, Stmt, seq
from ..bodies import BodyRewriter


def count_up(function: Function) -> Function:
    """``function`` with ``for i in range(a, b, -s)`` as ``for d in range(0, a - b, s)``, where ``i`` is ``a - d``."""
    return _CountUp().rewrite(function)


class _CountUp(BodyRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._made = 0

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        op = op.replace(body=self.body(op.body))
        step = const_value(op.step)
        if not isinstance(step, int) or step >= 0:
            return op
        index, dtype = op.loop_var, op.loop_var.dtype
        down = Var(versioned(f"{written_name(index.name_hint)}_down", "idx", self._made), index.type, index.span)
        self._made += 1
        start, stop = (cast_scalar(e, dtype, e.span) for e in (op.start, op.stop))
        value = AssignStmt(index, Sub(start, down, dtype, index.span), index.span)
        return op.replace(
            loop_var=down,
            start=scalar_const(0, dtype, op.start.span),
            stop=Sub(start, stop, dtype, op.stop.span),
            step=scalar_const(-step, dtype, op.step.span),
            body=seq([value, op.body], op.body.span),
        )
