"""Rules about where variables are defined and used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.expr import Var
from ...ir.memref import MemRef
from ...ir.node import IRNode
from ...ir.program import Function
from ...ir.stmt import ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt, YieldStmt
from ...ir.types import Type
from .driver import Rule

MULTIPLE_ASSIGNMENT = 1
MISSING_YIELD = 3
ITER_ARGS_RETURN_VARS_MISMATCH = 4
YIELD_COUNT_MISMATCH = 5
SCOPE_VIOLATION = 6
MISPLACED_YIELD = 7
USE_BEFORE_DEF = 401

MISPLACED = "YieldStmt before the terminating position of its scope"


class _Scopes(Rule):
    """Tracks which variables are visible."""

    expressions = True

    def enter_function(self, function: Function) -> None:
        self.function = function
        self.visible: set[Var] = set()
        self.defined: set[Var] = set()
        self._opened: list[list[Var]] = []
        # The dynamic dimensions of parameters are bound by the shapes the caller passes.
        self.free = _dimensions(*(p.type for p in function.params))

    def define(self, var: Var) -> None:
        if self._opened and var not in self.visible:
            self._opened[-1].append(var)
        self.visible.add(var)
        self.defined.add(var)

    def enter_scope(self, owner: IRNode) -> None:
        self._opened.append([])

    def exit_scope(self, owner: IRNode) -> None:
        self.visible.difference_update(self._opened.pop())


class _Dimensions:
    """Variables in the extents of types; allocations are left out."""

    def __init__(self) -> None:
        self.found: set[Var] = set()

    def visit(self, op: IRNode) -> None:
        if isinstance(op, MemRef):
            return
        if isinstance(op, Var):
            self.found.add(op)
        else:
            op._visit_children(self)

    define = visit

    def visit_type(self, type: Type) -> None:
        if type.symbolic:
            type._visit_children(self)


def _dimensions(*types: Type) -> set[Var]:
    dimensions = _Dimensions()
    for type in types:
        dimensions.visit_type(type)
    return dimensions.found


class SSAForm(_Scopes):
    """Every variable is defined once, before its uses and in their scope; loops and branches yield what they return."""

    name = "SSAVerify"

    def define(self, var: Var) -> None:
        if var in self.defined:
            self.report(
                f"Variable '{var.name_hint}' is assigned more than once in SSA form", var.span, MULTIPLE_ASSIGNMENT
            )
        super().define(var)

    def use(self, var: Var) -> None:
        if var in self.visible or var in self.free:
            return
        if var in self.defined:
            self.report(
                f"Variable '{var.name_hint}' is used outside its defining scope", var.span, SCOPE_VIOLATION
            )
        else:
            self.report(
                f"Variable '{var.name_hint}' is used where no definition of it comes before", var.span, USE_BEFORE_DEF
            )

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._check_loop(op, "ForStmt")

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._check_loop(op, "WhileStmt")

    def _check_loop(self, op: ForStmt | WhileStmt, what: str) -> None:
        carried, returned = len(op.iter_args), len(op.return_vars)
        if carried != returned:
            self.report(
                f"{what} iter_args count ({carried}) != return_vars count ({returned})",
                op.span,
                ITER_ARGS_RETURN_VARS_MISMATCH,
            )
        if carried or returned:
            self._check_yield(op.body, carried, op, f"{what} with iter_args", "iter_args")
        self._check_placement(op.body)

    def visit_if_stmt(self, op: IfStmt) -> None:
        if op.return_vars:
            count = len(op.return_vars)
            if op.else_body is None:
                self.report("IfStmt with return_vars must have else branch", op.span, MISSING_YIELD)
            self._check_yield(op.then_body, count, op, "IfStmt then branch with return_vars", "return_vars")
            if op.else_body is not None:
                self._check_yield(op.else_body, count, op, "IfStmt else branch with return_vars", "return_vars")
        self._check_placement(op.then_body)
        if op.else_body is not None:
            self._check_placement(op.else_body)

    def _check_yield(self, body: Stmt, count: int, owner: Stmt, what: str, of: str) -> None:
        last = last_stmt(body)
        if not isinstance(last, YieldStmt):
            self.report(f"{what} must have YieldStmt as its last statement", owner.span, MISSING_YIELD)
        elif len(last.values) != count:
            self.report(
                f"YieldStmt value count ({len(last.values)}) != {of} count ({count})", last.span, YIELD_COUNT_MISMATCH
            )

    def _check_placement(self, body: Stmt) -> None:
        stmts: Sequence[Stmt] = body.stmts if isinstance(body, SeqStmts) else ()
        for stmt in stmts[:-1]:
            if isinstance(stmt, YieldStmt):
                self.report(MISPLACED, stmt.span, MISPLACED_YIELD)


def last_stmt(body: Stmt) -> Stmt | None:
    """The last statement of a body, sequences and regions opened."""
    while isinstance(body, (SeqStmts, ScopeStmt)):
        if isinstance(body, ScopeStmt):
            body = body.body
        elif body.stmts:
            body = body.stmts[-1]
        else:
            return None
    return body


class UseAfterDef(_Scopes):
    """Every use of a variable comes after its definition, in its scope.

    What a branch or loop without results assigns stays visible after it: only SSA form closes that door.
    """

    name = "UseAfterDefCheck"

    def exit_scope(self, owner: Any) -> None:
        if owner.return_vars:
            super().exit_scope(owner)
            return
        own = {owner.loop_var} if isinstance(owner, ForStmt) else set()
        self.visible -= own
        inner = [v for v in self._opened.pop() if v not in own]
        if self._opened:
            self._opened[-1].extend(inner)

    def define(self, var: Var) -> None:
        if var.type.symbolic:
            for dimension in _dimensions(var.type):
                self.use(dimension)
        super().define(var)

    def use(self, var: Var) -> None:
        if var not in self.visible and var not in self.free:
            self.report(
                f"Variable '{var.name_hint}' is used before definition in function '{self.function.name}'",
                var.span,
                USE_BEFORE_DEF,
            )
