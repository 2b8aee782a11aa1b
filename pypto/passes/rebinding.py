"""Variables as the parser makes them: straight-line code gets a new one for each assignment.

Passes that run before SSA conversion and put bodies after one another leave one variable assigned several times in
a row. The language has the same variable assigned twice only across bodies: a loop or branch assigns one of the
body around it.
"""

from __future__ import annotations

from typing import Any

from ..ir.expr import Var
from ..ir.program import Function
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt
from ..ir.visitor import Rewriter
from .hoisting import scope_fields


def rebind(function: Function) -> Function:
    """``function`` with a new variable for each assignment after the first in the same body."""
    return _Rebinder().rewrite(function)


class _Rebinder(Rewriter):
    """``vars`` maps a variable to the one that holds its value now."""

    def __init__(self) -> None:
        super().__init__()
        self._defined: set[Var] = set()
        """What the body at hand is first to define."""
        self._outer: set[Var] = set()
        """What the bodies around it define."""
        self._renews = True
        self._inner: set[Var] = set()
        """What the body left last was first to define."""

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = self.rewrite(op.value)
        again = op.var in self._defined and self._renews
        if op.var not in self._outer:
            self._defined.add(op.var)
        if not again:
            return op.replace(value=value, var=self.define(op.var))
        var = Var(op.var.name_hint, self.rewrite_type(op.var.type), op.var.span)
        self.vars[op.var] = var
        return op.replace(value=value, var=var)

    def _body(self, body: Stmt | None, renews: bool, *defined: Any) -> Stmt | None:
        if body is None:
            return None
        state = self._defined, self._outer, self._renews
        self._outer = self._outer | self._defined
        self._defined, self._renews = set(defined), renews
        made = self.rewrite(body)
        self._inner = self._defined - {*defined}
        self._defined, self._outer, self._renews = state
        return made

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        condition = self.rewrite(op.condition)
        then_body, inner = self._body(op.then_body, False), self._inner
        else_body = self._body(op.else_body, False)
        self._defined |= inner & self._inner if op.else_body is not None else set()
        results = self.rewrite_list(op.return_vars, self.define)
        self._defined.update(op.return_vars)
        return op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        bounds = {"start": self.rewrite(op.start), "stop": self.rewrite(op.stop), "step": self.rewrite(op.step)}
        attrs = self.rewrite_mapping(op.attrs) if op.attrs else op.attrs
        return self._loop(op, {**bounds, "attrs": attrs}, op.loop_var)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._loop(op, {})

    def _loop(self, op: ForStmt | WhileStmt, changes: dict[str, Any], *own: Var) -> Stmt:
        iter_args = self.rewrite_list(op.iter_args, self.define)
        if isinstance(op, WhileStmt):
            changes["condition"] = self.rewrite(op.condition)
        body = self._body(op.body, True, *op.iter_args, *own)
        if not op.return_vars:
            self._defined |= self._inner
        results = self.rewrite_list(op.return_vars, self.define)
        self._defined.update(op.return_vars)
        return op.replace(**changes, iter_args=iter_args, body=body, return_vars=results)

    def visit_scope_stmt(self, op: ScopeStmt) -> Stmt:
        fields = scope_fields(self, op)
        body = self._body(op.body, True)
        self._defined |= self._inner
        return op.replace(**fields, body=body)

    def visit_function(self, op: Function) -> Function:
        return op.replace(body=self._body(op.body, True, *op.params))
