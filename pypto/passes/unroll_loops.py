"""UnrollLoops: a ``pl.unroll`` loop becomes its iterations, one after another, the loop variable a constant in each."""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer, fold_const
from ..errors import user_error
from ..ir.enums import ForKind
from ..ir.expr import And, BinaryExpr, ConstBool, Expr, IterArg, Or, UnaryExpr, Var, const_value
from ..ir.program import Function
from ..ir.scalar import scalar_const
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt
from ..ir.visitor import Rewriter
from .base import P, Pass, function_pass
from .bodies import BodyRewriter, defined_in
from .rebinding import rebind

LIMIT = 1024
"""Most iterations a loop is unrolled to."""


def unroll_loops() -> Pass:
    """The pass; see the module. Raises ValueError for bounds that are no constants and for more than `LIMIT` copies."""
    return function_pass("UnrollLoops", _unroll, produces={P.UnrollResolved}, looks_for=(ForStmt,))


def _unroll(function: Function) -> Function:
    made = _Unroller().rewrite(function)
    return function if made is function else rebind(made)


class _Unroller(BodyRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._assigned: set[Var] = set()
        """What is defined so far; loops assign these on."""

    def _constant(self, bound: Expr, what: str, loop: ForStmt) -> int:
        value = const_value(bound)
        if value is None:
            value = const_value(Analyzer().simplify(bound))
        if not isinstance(value, int):
            raise user_error(
                ValueError, f"the {what} of an unrolled loop must be a constant", bound.span,
                "use pl.range for a bound known only at run time",
            )  # fmt: skip
        return value

    def visit_for_stmt(self, op: ForStmt) -> Any:
        self._assigned.update(op.iter_args)
        before = set(self._assigned)
        body = self.body(op.body)
        self._assigned.update(op.return_vars)
        if op.kind is not ForKind.Unroll:
            return op.replace(body=body)
        if op.iter_args:
            raise user_error(ValueError, "an unrolled loop has no init_values", op.span)
        start, stop, step = (self._constant(b, w, op) for b, w in
                             ((op.start, "start"), (op.stop, "stop"), (op.step, "step")))  # fmt: skip
        if step == 0:
            raise user_error(ValueError, "the step of an unrolled loop must not be 0", op.span)
        values = range(start, stop, step)
        if len(values) > LIMIT:
            message = f"unrolling {len(values)} iterations exceeds maximum allowed {LIMIT}"
            raise user_error(ValueError, message, op.span, "use pl.range, or unroll an inner loop only")
        dtype, span = op.loop_var.dtype, op.loop_var.span
        own = defined_in(body) - before
        constants = [{op.loop_var: scalar_const(v, dtype, span)} for v in values]
        made = [_Iteration(constant, own).rewrite(body) for constant in constants[:-1]]
        return made + [_Iteration(constant, set()).rewrite(body) for constant in constants[-1:]]

    def visit_while_stmt(self, op: WhileStmt) -> Any:
        self._assigned.update(op.iter_args)
        made = op.replace(body=self.body(op.body))
        self._assigned.update(op.return_vars)
        return made

    def visit_if_stmt(self, op: IfStmt) -> Any:
        made = super().visit_if_stmt(op)
        self._assigned.update(op.return_vars)
        return made

    def visit_function(self, op: Function) -> Function:
        self._assigned.update(op.params)
        return op.replace(body=self.body(op.body))

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        self._assigned.add(op.var)
        return op


class _Iteration(Rewriter):
    """Puts a constant for the loop variable and does the arithmetic that decides, as if it had been written so.

    ``own`` are variables of this iteration alone, which it makes anew; the last keeps them, for what follows the loop.
    """

    def __init__(self, constant: dict[Var, Expr], own: set[Var]) -> None:
        super().__init__(constant)
        self._own = own

    def define(self, var: Any) -> Any:
        if var in self._own and var not in self.vars:
            made = self.rebuild_var(var)
            if made is var:
                fresh = (var.name_hint, var.type)
                made = IterArg(*fresh, var.init_value, var.span) if isinstance(var, IterArg) else Var(*fresh, var.span)
            self.vars[var] = made
        return super().define(var)

    def visit_binary_expr(self, op: BinaryExpr | UnaryExpr) -> Expr:
        if isinstance(op, (And, Or)):
            left = self.rewrite(op.left)
            if isinstance(left, ConstBool) and left.value is isinstance(op, Or):
                return left
        made = self.generic(op)
        if made is op:
            return op
        try:
            return fold_const(made) or made
        except ValueError as error:
            raise user_error(ValueError, str(error), op.span) from error

    visit_unary_expr = visit_binary_expr
