"""CtrlFlowTransform: loops without ``break`` and ``continue``.

What follows an if of which one branch leaves the iteration moves into its other branch; where an if leaves only on
some paths through it, a flag guards what follows. A loop with ``break`` becomes a while loop that a flag ends. An
iteration left early carries on what it began with: its yield is not reached. Orchestration keeps its loops as they
are, the host language has both statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..errors import user_error
from ..ir.expr import Add, And, ConstBool, Expr, Gt, Lt, Not, Var, const_value
from ..ir.node import NodeList
from ..ir.program import Function, is_orchestration_like
from ..ir.scalar import cast_scalar
from ..ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from ..ir.types import ScalarType
from ..ir.visitor import Visitor, walk
from .base import P, Pass, function_pass
from .bodies import BodyRewriter

_BOOL = ScalarType(DataType.BOOL)


def ctrl_flow_transform() -> Pass:
    """The pass; see the module."""
    return function_pass(
        "CtrlFlowTransform",
        _transform,
        produces={P.StructuredCtrlFlow},
        looks_for=(BreakStmt, ContinueStmt),
    )


def _transform(function: Function) -> Function:
    return function if is_orchestration_like(function.func_type) else _Structurer().rewrite(function)


class _Exits(Visitor):
    """Which of break and continue a statement holds for the loop around it."""

    def __init__(self, *stmts: Stmt) -> None:
        self.breaks = self.continues = False
        for stmt in stmts:
            self.visit(stmt)

    def __bool__(self) -> bool:
        return self.breaks or self.continues

    def visit_break_stmt(self, op: Stmt) -> None:
        self.breaks = True

    def visit_continue_stmt(self, op: Stmt) -> None:
        self.continues = True

    def visit_for_stmt(self, op: Stmt) -> None:
        """An inner loop's exits are its own."""

    visit_while_stmt = visit_assign_stmt = visit_eval_stmt = visit_for_stmt


class _Assigned(Visitor):
    """The variables a body assigns."""

    def __init__(self, body: Stmt) -> None:
        self.found: set[Any] = set()
        self.visit(body)

    def define(self, var: Any) -> None:
        self.found.add(var)


def _always_leaves(stmts: Sequence[Stmt]) -> bool:
    """Whether no path through ``stmts`` reaches their end."""
    for stmt in stmts:
        if isinstance(stmt, (BreakStmt, ContinueStmt)):
            return True
        bodies = (stmt.then_body, stmt.else_body) if isinstance(stmt, IfStmt) else ()
        if bodies and all(_always_leaves(flatten_to_stmts(body)) for body in bodies):
            return True
    return False


class _Structurer(BodyRewriter):
    """Rewrites loops, inner ones first."""

    def visit_for_stmt(self, op: ForStmt) -> Any:
        op = op.replace(body=self.body(op.body))
        exits = _Exits(op.body)
        if not exits:
            return op
        iteration = _Iteration(op, exits)
        if not exits.breaks:
            return op.replace(body=iteration.body())
        return self._as_while(op, iteration)

    def visit_while_stmt(self, op: WhileStmt) -> Any:
        op = op.replace(body=self.body(op.body))
        exits = _Exits(op.body)
        if not exits:
            return op
        iteration = _Iteration(op, exits)
        if not exits.breaks:
            return op.replace(body=iteration.body())
        condition = And(op.condition, iteration.unbroken(), DataType.BOOL, op.condition.span)
        return [iteration.reset_break(), op.replace(condition=condition, body=iteration.body())]

    def _as_while(self, op: ForStmt, iteration: _Iteration) -> list[Stmt]:
        step = const_value(op.step)
        if not isinstance(step, int) or step == 0:
            raise user_error(
                NotImplementedError, "a loop with break needs a constant step", op.step.span,
                "give the step as a number, or count in a while loop",
            )  # fmt: skip
        compare: Any = Lt if step > 0 else Gt
        dtype = op.loop_var.dtype
        start = [AssignStmt(op.loop_var, cast_scalar(op.start, dtype, op.span), op.span)]
        stop = cast_scalar(op.stop, dtype, op.span)
        if not _Assigned(op.body).found.isdisjoint(walk(stop)):
            kept = Var("stop__tmp_v0", ScalarType(dtype), op.span)
            start.append(AssignStmt(kept, stop, op.span))
            stop = kept
        within = compare(op.loop_var, stop, DataType.BOOL, op.span)
        condition = And(within, iteration.unbroken(), DataType.BOOL, op.span)
        advanced = Add(op.loop_var, op.step, dtype, op.span)
        advance = IfStmt(iteration.unbroken(), AssignStmt(op.loop_var, advanced, op.span), None, [], op.span)
        body = iteration.body(advance)
        loop = WhileStmt(condition, op.iter_args, body, op.return_vars, op.span, op.leading_comments)
        return [*start, iteration.reset_break(), loop]


class _Iteration:
    """One loop's body without its exits."""

    def __init__(self, loop: ForStmt | WhileStmt, exits: _Exits) -> None:
        self._loop = loop
        self._broken = Var("break__tmp_v0", _BOOL, loop.span)
        self._left = Var("continue__tmp_v0", _BOOL, loop.span)
        self._flagged = False

    def unbroken(self) -> Expr:
        return Not(self._broken, DataType.BOOL, self._loop.span)

    def reset_break(self) -> Stmt:
        return AssignStmt(self._broken, ConstBool(False, self._loop.span), self._loop.span)

    def body(self, *closing: Stmt) -> Stmt:
        """The body, ``closing`` before its yield."""
        loop = self._loop
        stmts, carried = self._lower(flatten_to_stmts(loop.body), flagged=False)
        if self._flagged:
            stmts = [AssignStmt(self._left, ConstBool(False, loop.span), loop.span), *stmts]
        stmts += closing
        if loop.iter_args:
            stmts.append(YieldStmt(NodeList(carried), loop.span))
        return seq(stmts, loop.body.span)

    def _lower(self, stmts: list[Stmt], flagged: bool) -> tuple[list[Stmt], Sequence[Expr]]:
        """``stmts`` without exits, and what the iteration carries on when it ends with them.

        ``flagged``: something after ``stmts`` asks whether the iteration was left.
        """
        out: list[Stmt] = []
        for i, stmt in enumerate(stmts):
            if isinstance(stmt, (BreakStmt, ContinueStmt)):
                if isinstance(stmt, BreakStmt):
                    out.append(AssignStmt(self._broken, ConstBool(True, stmt.span), stmt.span))
                elif flagged:
                    self._flagged = True
                    out.append(AssignStmt(self._left, ConstBool(True, stmt.span), stmt.span))
                return out, self._loop.iter_args
            if isinstance(stmt, YieldStmt):
                return out, stmt.values
            if _Exits(stmt):
                made, carried = self._lower_exit(stmt, stmts[i + 1 :], flagged)
                return [*out, *made], carried
            out.append(stmt)
        return out, self._loop.iter_args

    def _lower_exit(self, stmt: Stmt, rest: list[Stmt], flagged: bool) -> tuple[list[Stmt], Sequence[Expr]]:
        if not isinstance(stmt, IfStmt):
            raise user_error(
                NotImplementedError, "break and continue cannot leave a region inside the loop", stmt.span,
                "put the loop inside the region, or decide in a variable and test it after the region",
            )  # fmt: skip
        then, other = flatten_to_stmts(stmt.then_body), flatten_to_stmts(stmt.else_body)
        if _always_leaves(then):
            return self._branch(stmt, then, [*other, *rest], flagged)
        if _always_leaves(other):
            return self._branch(stmt, [*then, *rest], other, flagged)
        if not rest or (len(rest) == 1 and isinstance(rest[0], YieldStmt)):
            return self._branch(stmt, [*then, *rest], [*other, *rest], flagged)
        return self._guarded(stmt, then, other, rest, flagged)

    def _branch(
        self, stmt: IfStmt, then: list[Stmt], other: list[Stmt], flagged: bool
    ) -> tuple[list[Stmt], Sequence[Expr]]:
        then_stmts, then_values = self._lower(then, flagged)
        other_stmts, other_values = self._lower(other, flagged)
        return self._join(stmt.condition, then_stmts, then_values, other_stmts, other_values, stmt)

    def _guarded(
        self, stmt: IfStmt, then: list[Stmt], other: list[Stmt], rest: list[Stmt], flagged: bool
    ) -> tuple[list[Stmt], Sequence[Expr]]:
        """The if, which sets flags, and the rest where none is set."""
        exits = _Exits(stmt)
        then_stmts, _ = self._lower(then, flagged=True)
        other_stmts, _ = self._lower(other, flagged=True)
        other_body = seq(other_stmts, stmt.span) if stmt.else_body is not None else None
        first = stmt.replace(then_body=seq(then_stmts, stmt.span), else_body=other_body)
        guards = [f for f, on in ((self._broken, exits.breaks), (self._left, exits.continues)) if on]
        stay: Expr = Not(guards[0], DataType.BOOL, stmt.span)
        for flag in guards[1:]:
            stay = And(stay, Not(flag, DataType.BOOL, stmt.span), DataType.BOOL, stmt.span)
        rest_stmts, rest_values = self._lower(rest, flagged)
        made, carried = self._join(stay, rest_stmts, rest_values, [], self._loop.iter_args, stmt)
        return [first, *made], carried

    def _join(
        self,
        condition: Expr,
        then: list[Stmt],
        then_values: Sequence[Expr],
        other: list[Stmt],
        other_values: Sequence[Expr],
        origin: Stmt,
    ) -> tuple[list[Stmt], Sequence[Expr]]:
        """An if whose branches hand on what the iteration carries."""
        carried = self._loop.iter_args
        span = origin.span
        if not carried:
            else_body = seq(other, span) if other else None
            return [IfStmt(condition, seq(then, span), else_body, [], span, origin.leading_comments)], ()
        phis = [Var(f"{a.name_hint}_phi", a.type, a.span) for a in carried]
        then_body = seq([*then, YieldStmt(NodeList(then_values), span)], span)
        else_body = seq([*other, YieldStmt(NodeList(other_values), span)], span)
        return [IfStmt(condition, then_body, else_body, phis, span, origin.leading_comments)], phis
