"""Rules about the shape of statements and where calls stand."""

from __future__ import annotations

from ...ir.enums import ForKind, FunctionType
from ...ir.expr import BinaryExpr, Call, Expr, GlobalVar, Submit, UnaryExpr
from ...ir.node import IRNode
from ...ir.program import Function, is_orchestration_like
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..predicates import calls_in_predicate
from .driver import Rule
from .ssa import MISPLACED

CALL_IN_CALL_ARGS = 201
CALL_IN_IF_CONDITION = 202
CALL_IN_FOR_RANGE = 203
CALL_IN_BINARY_EXPR = 204
CALL_IN_UNARY_EXPR = 205
CALL_IN_STATEMENT = 206


class NoNestedCalls(Rule):
    """Every call is the whole value of a statement, or part of the predicate of a launch."""

    name = "NoNestedCall"
    expressions = True

    def enter_function(self, function: Function) -> None:
        self._whole: Expr | None = None
        self._within: list[tuple[str, int]] = []
        self._where = ("a statement", CALL_IN_STATEMENT)
        self._predicates: set[Call] = set()

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> None:
        self._predicates |= calls_in_predicate(op)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self._whole, self._where = op.value, ("a statement", CALL_IN_STATEMENT)

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        self._whole, self._where = op.expr, ("a statement", CALL_IN_STATEMENT)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self._whole, self._where = None, ("an if condition", CALL_IN_IF_CONDITION)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._whole, self._where = None, ("a loop condition", CALL_IN_IF_CONDITION)

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._whole, self._where = None, ("a loop range", CALL_IN_FOR_RANGE)

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        self._whole, self._where = None, ("a return", CALL_IN_STATEMENT)

    def visit_yield_stmt(self, op: YieldStmt) -> None:
        self._whole, self._where = None, ("a yield", CALL_IN_STATEMENT)

    def visit_call(self, op: Call) -> None:
        if op is not self._whole and op not in self._predicates:
            where, code = self._within[-1] if self._within else self._where
            self.report(f"Call of '{op.op.name}' is nested in {where}", op.span, code)
        self._within.append(("call arguments", CALL_IN_CALL_ARGS))

    def leave_call(self, op: Call) -> None:
        self._within.pop()

    def visit_submit(self, op: Submit) -> None:
        self._predicates |= calls_in_predicate(op)
        if op is not self._whole:
            self.report(f"Task launch of '{op.op.name}' is nested in an expression", op.span, CALL_IN_STATEMENT)
        self._within.append(("call arguments", CALL_IN_CALL_ARGS))

    def leave_submit(self, op: Submit) -> None:
        self._within.pop()

    def visit_binary_expr(self, op: BinaryExpr) -> None:
        self._within.append(("a binary expression", CALL_IN_BINARY_EXPR))

    def visit_unary_expr(self, op: UnaryExpr) -> None:
        self._within.append(("a unary expression", CALL_IN_UNARY_EXPR))

    def leave_binary_expr(self, op: Expr) -> None:
        self._within.pop()

    leave_unary_expr = leave_binary_expr


class NormalizedStmtStructure(Rule):
    """No sequence holds a sequence or only one statement."""

    name = "NormalizedStmtStructure"

    def visit_seq_stmts(self, op: SeqStmts) -> None:
        if len(op.stmts) == 1:
            self.report("SeqStmts of one statement should be that statement", op.span)
        for stmt in op.stmts:
            if isinstance(stmt, SeqStmts):
                self.report("SeqStmts directly inside SeqStmts", stmt.span)


class NoRedundantBlocks(NormalizedStmtStructure):
    """As `NormalizedStmtStructure`, and nothing follows a yield."""

    name = "NoRedundantBlocks"

    def visit_seq_stmts(self, op: SeqStmts) -> None:
        super().visit_seq_stmts(op)
        for stmt in op.stmts[:-1]:
            if isinstance(stmt, YieldStmt):
                self.report(MISPLACED, stmt.span)


class BreakContinueValid(Rule):
    """break and continue stand in a loop whose iterations run in order."""

    name = "BreakContinueCheck"

    def enter_function(self, function: Function) -> None:
        self._loops: list[Stmt] = []

    def enter_scope(self, owner: IRNode) -> None:
        if isinstance(owner, (ForStmt, WhileStmt)):
            self._loops.append(owner)

    def exit_scope(self, owner: IRNode) -> None:
        if isinstance(owner, (ForStmt, WhileStmt)):
            self._loops.pop()

    def visit_break_stmt(self, op: Stmt) -> None:
        self._check(op, "break")

    def visit_continue_stmt(self, op: Stmt) -> None:
        self._check(op, "continue")

    def _check(self, op: Stmt, what: str) -> None:
        loop = self._loops[-1] if self._loops else None
        if loop is None:
            self.report(f"'{what}' outside a loop", op.span)
        elif isinstance(loop, ForStmt) and loop.kind is not ForKind.Sequential:
            self.report(f"'{what}' in a {loop.kind.name} loop: only sequential loops can be left", op.span)


class StructuredCtrlFlow(Rule):
    """No break or continue is left, but in orchestration."""

    name = "StructuredCtrlFlow"

    def enter_function(self, function: Function) -> None:
        self._allowed = is_orchestration_like(function.func_type)

    def visit_break_stmt(self, op: Stmt) -> None:
        if not self._allowed:
            self.report("BreakStmt remains", op.span)

    def visit_continue_stmt(self, op: Stmt) -> None:
        if not self._allowed:
            self.report("ContinueStmt remains", op.span)


class NoNestedInCore(Rule):
    """No core-group region lies inside another."""

    name = "NoNestedInCore"

    def enter_function(self, function: Function) -> None:
        self._depth = 0

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> None:
        if self._depth:
            self.report("Nested InCore scope (InCore ScopeStmt inside InCore ScopeStmt)", op.span)
        self._depth += 1

    def leave_in_core_scope_stmt(self, op: InCoreScopeStmt) -> None:
        self._depth -= 1


class PipelineLoopValid(Rule):
    """A loop is a pipeline exactly when it says how many stages it has."""

    name = "PipelineLoopValid"

    def visit_for_stmt(self, op: ForStmt) -> None:
        staged = "pipeline_stages" in op.attrs
        if (op.kind is ForKind.Pipeline) != staged:
            what = "has no 'pipeline_stages'" if not staged else "is no pipeline but has 'pipeline_stages'"
            self.report(f"{op.kind.name} loop {what}", op.span)


class _NoLoopOfKind(Rule):
    kind: ForKind

    def visit_for_stmt(self, op: ForStmt) -> None:
        if op.kind is self.kind:
            self.report(f"{op.kind.name} loop remains", op.span)


class PipelineResolved(_NoLoopOfKind):
    """No pipeline loop is left."""

    name = "PipelineResolved"
    kind = ForKind.Pipeline


class UnrollResolved(_NoLoopOfKind):
    """No loop to unroll is left."""

    name = "UnrollResolved"
    kind = ForKind.Unroll


class InlineFunctionsEliminated(Rule):
    """No inline function, and no call of one, is left."""

    name = "InlineFunctionsEliminated"
    expressions = True

    def enter_function(self, function: Function) -> None:
        if function.func_type is FunctionType.Inline:
            self.report(f"Inline function '{function.name}' remains", function.span)

    def visit_call(self, op: Call | Submit) -> None:
        if isinstance(op.op, GlobalVar):
            callee = self.program.get_function(op.op.name)
            if callee is not None and callee.func_type is FunctionType.Inline:
                self.report(f"Call of inline function '{op.op.name}' remains", op.span)

    visit_submit = visit_call
