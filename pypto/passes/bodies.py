"""Traversals that look at statements and what flows between them, not into expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..ir.expr import Expr, Var, const_value
from ..ir.node import IRNode, NodeList
from ..ir.program import Function
from ..ir.stmt import ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, YieldStmt, flatten_to_stmts, seq
from ..ir.visitor import Rewriter, Visitor, splice


class BodyRewriter(Rewriter):
    """Rewrites the statements of bodies, inner ones first. Subclasses visit the kinds they change."""

    def body(self, body: Any) -> Any:
        """A body, whose one statement may become several; None stays None."""
        if body is None:
            return None
        made = self.rewrite(body)
        return made if made is body else seq(splice([made]), body.span)

    def visit_if_stmt(self, op: IfStmt) -> Any:
        return op.replace(then_body=self.body(op.then_body), else_body=self.body(op.else_body))

    def visit_for_stmt(self, op: ForStmt | WhileStmt | ScopeStmt | Function) -> Any:
        return op.replace(body=self.body(op.body))

    visit_while_stmt = visit_scope_stmt = visit_function = visit_for_stmt

    def visit_assign_stmt(self, op: Stmt) -> Any:
        """Holds no statements."""
        return op

    visit_eval_stmt = visit_yield_stmt = visit_return_stmt = visit_assign_stmt


def trip_count(op: ForStmt | WhileStmt) -> int | None:
    """How often a loop runs, when that is known."""
    if isinstance(op, WhileStmt):
        return None
    start, stop, step = (const_value(bound) for bound in (op.start, op.stop, op.step))
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step:
        return len(range(start, stop, step))
    return None


def defined_in(node: IRNode) -> set[Var]:
    """The variables a body, or a loop with what it carries, defines."""
    definitions = _Definitions()
    definitions.visit(node)
    return definitions.found


class _Definitions(Visitor):
    def __init__(self) -> None:
        self.found: set[Var] = set()

    def define(self, var: Any) -> None:
        self.found.add(var)


class FlowVisitor(Visitor):
    """Reads a function and tells `flow` of every value that loops and branches hand to a variable."""

    flow: Callable[[Expr, Var], None]
    """The variable may be the value: an initial value, what a body yields, a loop's result."""

    def __init__(self) -> None:
        self._targets: list[Sequence[Iterable[Var]]] = []

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        for arg, result in zip(op.iter_args, op.return_vars):
            self.visit(arg.init_value)
            self.flow(arg.init_value, arg)
            self.flow(arg, result)
        if isinstance(op, WhileStmt):
            self.visit(op.condition)
        self._scoped((op.iter_args, op.return_vars), op.body)

    visit_while_stmt = visit_for_stmt

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit(op.condition)
        for body in (op.then_body, op.else_body):
            if body is not None:
                self._scoped((op.return_vars,), body)

    def _scoped(self, targets: Sequence[Iterable[Var]], body: Stmt) -> None:
        self._targets.append(targets)
        self.visit(body)
        self._targets.pop()

    def visit_yield_stmt(self, op: YieldStmt) -> None:
        for value in op.values:
            self.visit(value)
        for value, target in self.handed_on(op):
            self.flow(value, target)

    def handed_on(self, op: YieldStmt) -> Iterator[tuple[Expr, Var]]:
        """Each value of a yield with each variable that receives it."""
        for group in self._targets[-1] if self._targets else ():
            yield from zip(op.values, group)


def keep_yields(body: Stmt | None, kept: Iterable[int]) -> Stmt | None:
    """``body`` with only these of the values it yields at its end; none of them, no yield."""
    if body is None:
        return None
    stmts = flatten_to_stmts(body)
    last = stmts.pop()
    if isinstance(last, ScopeStmt):
        stmts.append(last.replace(body=keep_yields(last.body, kept)))
    elif isinstance(last, YieldStmt):
        values = NodeList(last.values[i] for i in kept)
        stmts += [last.replace(values=values)] if values else []
    return seq(stmts, body.span)
