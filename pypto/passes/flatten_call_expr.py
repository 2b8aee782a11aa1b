"""FlattenCallExpr: one call per statement.

A call inside an expression, a condition, a loop's range, a return or a yield becomes a statement of its own just
before, and a temporary stands in its place. What a region evaluates stays inside the region.
"""

from __future__ import annotations

from typing import Any

from ..errors import user_error
from ..ir.expr import Call, Expr, Submit, Var
from ..ir.node import NODES
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
from ..ir.visitor import Rewriter, Visitor
from .base import P, Pass, function_pass

_KEPT = {P.SSAForm, P.NormalizedStmtStructure}


def flatten_call_expr() -> Pass:
    """The pass; see the module."""
    return function_pass(
        "FlattenCallExpr", _flatten, _KEPT, {*_KEPT, P.NoNestedCalls}, looks_for=(Call, Submit)
    )


def _flatten(function: Function) -> Function:
    return _Flattener().rewrite(function)


class _Flattener(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self._pending: list[Stmt] = []
        self._count = 0

    # Expressions

    def visit_call(self, op: Call) -> Expr:
        """A call where none may be: the temporary that stands for it."""
        made = self.generic(op)
        var = Var(f"t__tmp_v{self._count}", made.type, op.span)
        self._count += 1
        self._pending.append(AssignStmt(var, made, op.span))
        return var

    visit_submit = visit_call

    def _whole(self, value: Expr) -> Expr:
        """The value of a statement, which may be one call."""
        return self.generic(value) if isinstance(value, (Call, Submit)) else self.rewrite(value)

    # Statements: each returns the calls it hoisted, and itself

    def _after_pending(self, made: Stmt) -> Any:
        if not self._pending:
            return made
        hoisted, self._pending = self._pending, []
        return [*hoisted, made]

    def _body(self, body: Stmt | None) -> Stmt | None:
        """A body keeps what its statements hoist."""
        if body is None:
            return None
        outer, self._pending = self._pending, []
        made = self.rewrite(body)
        self._pending = outer
        return seq(made, body.span) if isinstance(made, list) else made

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        return self._after_pending(op.replace(value=self._whole(op.value)))

    def visit_eval_stmt(self, op: EvalStmt) -> Any:
        return self._after_pending(op.replace(expr=self._whole(op.expr)))

    def visit_return_stmt(self, op: ReturnStmt) -> Any:
        return self._after_pending(op.replace(value=self.rewrite_list(op.value, self.rewrite)))

    def visit_yield_stmt(self, op: YieldStmt) -> Any:
        return self._after_pending(op.replace(values=self.rewrite_list(op.values, self.rewrite)))

    def visit_if_stmt(self, op: IfStmt) -> Any:
        condition = self.rewrite(op.condition)
        then_body, else_body = self._body(op.then_body), self._body(op.else_body)
        return self._after_pending(op.replace(condition=condition, then_body=then_body, else_body=else_body))

    def visit_for_stmt(self, op: ForStmt) -> Any:
        start, stop, step = self.rewrite(op.start), self.rewrite(op.stop), self.rewrite(op.step)
        iter_args = self.rewrite_list(op.iter_args, self.define)
        attrs = self.rewrite_mapping(op.attrs)
        made = op.replace(
            start=start, stop=stop, step=step, iter_args=iter_args, attrs=attrs, body=self._body(op.body)
        )
        return self._after_pending(made)

    def visit_while_stmt(self, op: WhileStmt) -> Any:
        iter_args = self.rewrite_list(op.iter_args, self.define)
        before = len(self._pending)
        condition = self.rewrite(op.condition)
        self._check_invariant(op, self._pending[before:])
        return self._after_pending(op.replace(iter_args=iter_args, condition=condition, body=self._body(op.body)))

    def _check_invariant(self, op: WhileStmt, hoisted: list[Stmt]) -> None:
        """A call moved out of a condition is evaluated once, so nothing it reads may change in the loop."""
        carried = set(op.iter_args)

        class Find(Visitor):
            def visit_var(self, op: Var) -> None:
                if op in carried:
                    raise user_error(
                        NotImplementedError,
                        f"the loop's condition calls an operation on '{op.name_hint}', which the loop changes",
                        hoisted[0].span,
                        "compute the condition into a variable before the loop and again at the end of its body",
                    )

        for stmt in hoisted:
            Find().visit(stmt)

    def visit_scope_stmt(self, op: ScopeStmt) -> Any:
        changes: dict[str, Any] = {"body": self._body(op.body)}
        for field in type(op).fields:
            value = getattr(op, field.name)
            if field.name == "body":
                continue
            if isinstance(value, Expr):
                changes[field.name] = self.rewrite(value)
            elif field.holds == NODES and field.role == "use":
                changes[field.name] = self.rewrite_list(value, self.rewrite)
        if op.attrs:
            changes["attrs"] = self.rewrite_mapping(op.attrs)
        return self._after_pending(op.replace(**changes))

    def visit_function(self, op: Function) -> Function:
        return op.replace(body=self._body(op.body))
