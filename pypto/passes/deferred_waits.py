"""Waiters: tasks that register conditions (`pld.system.defer_wait`) and end, and are complete when those hold.

The runtime gives such a task what it registers conditions with, so it is a task of one block that does nothing else:
a `pl.at(level=pl.Level.CORE_GROUP)` of its own. OutlineIncoreScopes marks its function, and ExpandMixedKernel, after
which nothing moves between tasks any more, checks every function that registers conditions.
"""

from __future__ import annotations

from typing import Final

from ..errors import user_error
from ..ir.enums import FunctionType
from ..ir.expr import Call, Expr, Submit, Var
from ..ir.program import Function, Program, is_orchestration_like, summarize
from ..ir.span import Span
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..ir.types import ScalarType, TensorType, TileType
from ..ir.visitor import find_all, find_calls, walk
from ..ops.registry import decl_of
from .bodies import trip_count

WAITER: Final = "deferred_completion_waiter"
"""Marks the function of a waiter."""
REGISTER: Final = "pld.system.defer_wait"
_READ: Final = "tensor.read"
_MOST: Final = 64
"""Conditions that one task may register."""
_DEDICATED: Final = "give it a task of its own: with pl.at(level=pl.Level.CORE_GROUP) as waited:"


def registers(root: Stmt) -> bool:
    """Whether ``root`` registers a condition."""
    return bool(find_calls(root, REGISTER))


def check_region(op: InCoreScopeStmt, nested: bool) -> None:
    """Raise KernelValueError where a region that registers conditions is launched as a waiter cannot be."""
    attrs = op.attrs or {}
    if nested:
        raise _error(
            "must be in a task-level pl.at(CORE_GROUP) scope: nesting it in pl.spmd or pl.cluster is unsupported",
            op.span,
            _DEDICATED,
        )
    _check_launch(bool(attrs.get("allow_early_resolve")), attrs.get("predicate") is not None, False, op.span)


def check_waiters(program: Program) -> None:
    """Raise KernelValueError for functions that register conditions and are no waiters, or are not launched as one."""
    for function in program.functions.values():
        if REGISTER in summarize(function).ops and function.is_incore:
            if not function.attrs.get(WAITER):
                raise _error("bypasses the deferred-waiter task contract in a kernel that no pl.at(CORE_GROUP) made",
                             function.span, _DEDICATED)  # fmt: skip
            check_waiter(function)
            _check_callers(function, program)


def check_waiter(function: Function) -> None:
    """Raise KernelValueError where a waiter does more than register conditions."""
    if function.func_type not in (FunctionType.InCore, FunctionType.AIV):
        raise _error("runs on the vector cores only", function.span, _DEDICATED)
    _Body(function).block(function.body, 1)


def _check_callers(waiter: Function, program: Program) -> None:
    launched = False
    for caller in program.functions.values():
        if waiter.name not in summarize(caller).callees:
            continue
        for call in find_all(caller.body, (Call, Submit)):
            if call.op.name != waiter.name:
                continue
            launched |= is_orchestration_like(caller.func_type)
            options = {k: getattr(call, k, None) or call.attrs.get(k) for k in _OPTIONS}
            blocks = options["core_num"] is not None or bool(options["sync_start"])
            blocks |= not is_orchestration_like(caller.func_type)
            _check_launch(bool(options["allow_early_resolve"]), options["predicate"] is not None, blocks, call.span)
    if not launched:
        raise _error(f"has no task-level Orchestration call site: nothing launches {waiter.name!r}", waiter.span,
                     _DEDICATED)  # fmt: skip


_OPTIONS: Final = ("allow_early_resolve", "predicate", "core_num", "sync_start")


def _check_launch(early: bool, predicate: bool, blocks: bool, span: Span) -> None:
    if early:
        raise _error("cannot use allow_early_resolve=True: what depends on it would start before the counter is there",
                     span, "leave allow_early_resolve out")  # fmt: skip
    if predicate:
        raise _error("cannot use a dispatch predicate", span, "branch on the condition inside the waiter")
    if blocks:
        raise _error("is for a single-block task", span, "launch the waiter without pl.spmd, core_num and sync_start")


def _error(what: str, span: Span, hint: str) -> Exception:
    return user_error(ValueError, f"{REGISTER} {what}", span, hint)


class _Body:
    """Reads a waiter in program order."""

    def __init__(self, function: Function) -> None:
        self._params = set(function.params)
        self._count = 0
        """Conditions that may have been registered so far."""

    def block(self, body: Stmt | None, times: int) -> None:
        for stmt in flatten_to_stmts(body):
            self._statement(stmt, times)

    def _statement(self, stmt: Stmt, times: int) -> None:
        if isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Call) and stmt.expr.op.name == REGISTER:
            self._register(stmt.expr, times)
        elif isinstance(stmt, EvalStmt):
            raise _refused(stmt.span)
        elif isinstance(stmt, AssignStmt):
            if isinstance(stmt.var.type, (TensorType, TileType)):
                raise _error("stands in a task that cannot create or update payload tensors", stmt.span, _DEDICATED)
            self._scalar(stmt.value)
        elif isinstance(stmt, IfStmt):
            self._scalar(stmt.condition)
            self.block(stmt.then_body, times)
            self.block(stmt.else_body, times)
        elif isinstance(stmt, (ForStmt, WhileStmt)):
            self._loop(stmt, times)
        elif isinstance(stmt, (YieldStmt, ReturnStmt)):
            for value in stmt.values:
                self._scalar(value)
        else:
            raise _refused(stmt.span)

    def _loop(self, stmt: ForStmt | WhileStmt, times: int) -> None:
        for arg in stmt.iter_args:
            self._scalar(arg.init_value)
        for bound in (stmt.condition,) if isinstance(stmt, WhileStmt) else (stmt.start, stmt.stop, stmt.step):
            self._scalar(bound)
        if not registers(stmt.body):
            self.block(stmt.body, times)
            return
        count = trip_count(stmt)
        if not count:
            raise _error("in a loop needs a statically known positive trip count", stmt.span,
                         "loop over a constant range, and choose with `if` inside it")  # fmt: skip
        if count > 1 and find_calls(stmt.body, _READ):
            raise _error("in a loop may execute tensor reads of a later iteration after registering a condition",
                         stmt.span, "read what the conditions need before the loop")  # fmt: skip
        self.block(stmt.body, times * count)

    def _register(self, call: Expr, times: int) -> None:
        if not isinstance(call, Call):
            raise _refused(call.span)
        signal, *others = call.args
        if signal not in self._params:
            raise _error("takes a signal that is a parameter itself, no view or other name of one", call.span,
                         "give the offsets in the whole signal")  # fmt: skip
        for value in others:
            self._scalar(value)
        self._count += times
        if self._count > _MOST:
            raise _error(f"registers at most {_MOST} conditions a task", call.span, "divide them among several waiters")

    def _scalar(self, value: Expr) -> None:
        """Scalar work is all that a waiter may do besides."""
        for node in walk(value):
            if isinstance(node, Call):
                self._call(node)
            elif isinstance(node, Var) and isinstance(node.type, TileType):
                raise _refused(node.span)

    def _call(self, call: Call) -> None:
        decl = decl_of(call)
        if decl is None or not decl.pure or not isinstance(call.type, ScalarType):
            raise _refused(call.span)
        if decl.name == _READ and self._count:
            raise _error("stands in a task that cannot execute tensor reads after the first registration", call.span,
                         "read what the conditions need first")  # fmt: skip


def _refused(span: Span) -> Exception:
    return _error("supports only a pre-registration tensor.read and scalar work beside it", span, _DEDICATED)
