"""FlattenCallExpr: one call per statement.

A call inside an expression, a condition, a loop's range, a return or a yield becomes a statement of its own just
before, and a temporary stands in its place. What a region evaluates stays inside the region, and what the right side of
`and` and `or` evaluates inside a branch. The predicate of a launch stays as it is: it is not evaluated here, but when
the task is dispatched.
"""

from __future__ import annotations

from typing import Any

from ..errors import user_error
from ..ir.expr import And, BinaryExpr, Call, ConstBool, Expr, Or, Submit, Var
from ..ir.program import Function, summarize
from ..ir.stmt import AssignStmt, IfStmt, SpmdScopeStmt, Stmt, WhileStmt, YieldStmt, seq
from ..ir.visitor import find_all
from .base import P, Pass, function_pass
from .hoisting import Hoister
from .predicates import calls_in_predicate

_KEPT = {P.SSAForm, P.NormalizedStmtStructure}


def flatten_call_expr() -> Pass:
    """The pass; see the module."""
    return function_pass("FlattenCallExpr", _flatten, _KEPT, {*_KEPT, P.NoNestedCalls}, looks_for=(Call, Submit))


def _flatten(function: Function) -> Function:
    return _Flattener(function).rewrite(function)


def _in_predicates(function: Function) -> set[Call]:
    """The calls that predicates of launches consist of."""
    if summarize(function).kinds.isdisjoint((Submit, SpmdScopeStmt)):
        return set()
    launches = find_all(function, (Submit, SpmdScopeStmt))
    return {call for launch in launches for call in calls_in_predicate(launch)}


class _Flattener(Hoister):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self._count = 0
        self._kept = _in_predicates(function)

    def visit_call(self, op: Call | Submit) -> Expr:
        """A call where none may be: the temporary that stands for it."""
        made = self.generic(op)
        if op in self._kept:
            return made
        var = Var(f"t__tmp_v{self._count}", made.type, op.span)
        self._count += 1
        self.pending.append(AssignStmt(var, made, op.span))
        return var

    visit_submit = visit_call

    def visit_binary_expr(self, op: BinaryExpr) -> Expr:
        if not isinstance(op, (And, Or)):
            return self.generic(op)
        left = self.rewrite(op.left)
        outer, self.pending = self.pending, []
        right = self.rewrite(op.right)
        hoisted, self.pending = self.pending, outer
        if not hoisted:
            return op.replace(left=left, right=right)
        decided: Expr = ConstBool(isinstance(op, Or), op.span)
        computed = seq([*hoisted, YieldStmt([right], op.span)], op.span)
        known = YieldStmt([decided], op.span)
        then_body, else_body = (computed, known) if isinstance(op, And) else (known, computed)
        var = Var(f"t__tmp_v{self._count}", op.type, op.span)
        self._count += 1
        self.pending.append(IfStmt(left, then_body, else_body, [var], op.span))
        return var

    def whole(self, value: Expr) -> Any:
        return self.generic(value) if isinstance(value, (Call, Submit)) else self.rewrite(value)

    def hoisted_from_condition(self, loop: WhileStmt, hoisted: list[Stmt]) -> None:
        """A call moved out of a condition is evaluated once, so nothing it reads may change in the loop."""
        carried = set(loop.iter_args)
        for stmt in hoisted:
            for node in find_all(stmt, Var):
                if node in carried:
                    raise user_error(
                        NotImplementedError,
                        f"the loop's condition calls an operation on '{node.name_hint}', which the loop changes",
                        stmt.span,
                        "compute the condition into a variable before the loop and again at the end of its body",
                    )
