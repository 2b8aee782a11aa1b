"""A rewriter that moves parts of expressions into statements just before."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr
from ..ir.node import DEF, NODES
from ..ir.program import Function
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    seq,
)
from ..ir.visitor import Rewriter, splice


def scope_fields(rewriter: Rewriter, op: ScopeStmt) -> dict[str, Any]:
    """The fields of a region, its body apart, as ``rewriter`` leaves them."""
    changes: dict[str, Any] = {}
    for field in type(op).fields:
        value = getattr(op, field.name)
        if isinstance(value, Expr):
            changes[field.name] = rewriter.rewrite(value)
        elif field.holds == NODES:
            changes[field.name] = rewriter.rewrite_list(
                value, rewriter.define if field.role == DEF else rewriter.rewrite
            )
    if op.attrs:
        changes["attrs"] = rewriter.rewrite_mapping(op.attrs)
    return changes


class Hoister(Rewriter):
    """Statements that an expression's rewrite appends to ``pending`` go before the statement that holds it.

    What a body or region evaluates stays inside it. `hoisted_from_condition` is told of what leaves a loop's condition.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[Stmt] = []

    def whole(self, value: Expr) -> Any:
        """The rewrite of an expression that is all a statement evaluates."""
        return self.rewrite(value)

    def hoisted_from_condition(self, loop: WhileStmt, hoisted: list[Stmt]) -> None:
        """``hoisted`` stood in the condition of ``loop``, and is now evaluated once."""

    def after_pending(self, made: Stmt) -> Any:
        if not self.pending:
            return made
        hoisted, self.pending = self.pending, []
        return [*hoisted, made]

    def body(self, body: Stmt | None) -> Stmt | None:
        """A body, keeping what its statements hoist."""
        if body is None:
            return None
        outer, self.pending = self.pending, []
        made = self.rewrite(body)
        self.pending = outer
        return made if isinstance(made, Stmt) else seq(splice([made]), body.span)

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        return self.after_pending(op.replace(value=self.whole(op.value), var=self.define(op.var)))

    def visit_eval_stmt(self, op: EvalStmt) -> Any:
        return self.after_pending(op.replace(expr=self.whole(op.expr)))

    def visit_return_stmt(self, op: ReturnStmt) -> Any:
        return self.after_pending(op.replace(value=self.rewrite_list(op.value, self.rewrite)))

    def visit_yield_stmt(self, op: YieldStmt) -> Any:
        return self.after_pending(op.replace(values=self.rewrite_list(op.values, self.rewrite)))

    def visit_if_stmt(self, op: IfStmt) -> Any:
        condition = self.rewrite(op.condition)
        then_body, else_body = self.body(op.then_body), self.body(op.else_body)
        results = self.rewrite_list(op.return_vars, self.define)
        made = op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)
        return self.after_pending(made)

    def visit_for_stmt(self, op: ForStmt) -> Any:
        bounds = {"start": self.rewrite(op.start), "stop": self.rewrite(op.stop), "step": self.rewrite(op.step)}
        iter_args = self.rewrite_list(op.iter_args, self.define)
        attrs = self.rewrite_mapping(op.attrs) if op.attrs else op.attrs
        loop_var = self.define(op.loop_var)
        body = self.body(op.body)
        results = self.rewrite_list(op.return_vars, self.define)
        made = op.replace(
            **bounds, iter_args=iter_args, attrs=attrs, loop_var=loop_var, body=body, return_vars=results
        )
        return self.after_pending(made)

    def visit_while_stmt(self, op: WhileStmt) -> Any:
        iter_args = self.rewrite_list(op.iter_args, self.define)
        before = len(self.pending)
        condition = self.rewrite(op.condition)
        if len(self.pending) > before:
            self.hoisted_from_condition(op, self.pending[before:])
        body = self.body(op.body)
        results = self.rewrite_list(op.return_vars, self.define)
        made = op.replace(iter_args=iter_args, condition=condition, body=body, return_vars=results)
        return self.after_pending(made)

    def visit_scope_stmt(self, op: ScopeStmt) -> Any:
        changes = scope_fields(self, op)
        changes["body"] = self.body(op.body)
        return self.after_pending(op.replace(**changes))

    def visit_function(self, op: Function) -> Function:
        return op.replace(body=self.body(op.body))
