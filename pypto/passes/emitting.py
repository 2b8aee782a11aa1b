"""Rewriting that puts statements ahead of the one at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..errors import message_of, user_error
from ..ir.expr import Call, Expr, Var
from ..ir.span import UNKNOWN_SPAN, Span
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, ReturnStmt, Stmt, WhileStmt, YieldStmt, seq
from ..ir.visitor import Rewriter
from ..ops import registry

F = TypeVar("F", bound=Callable[..., Any])


def kind_of(value: Expr) -> Any:
    """The type of a tensor or tile: it has a shape, a dtype and a memory, which `Type` does not promise."""
    return value.type


def build(name: str, /, *args: Any, span: Span, **kwargs: Any) -> Call:
    """A call of operator ``name``. What its type rule refuses becomes a KernelValueError at ``span``."""
    try:
        return registry.call(name, *args, span=span, **kwargs)
    except (registry.OpError, registry.OpTypeError) as error:
        raise refused(error, span) from error


def reinfer(call: Call, args: Iterable[Expr]) -> Call:
    """``call`` on other arguments; see `build`."""
    try:
        return registry.reinfer(call, list(args))
    except (registry.OpError, registry.OpTypeError) as error:
        raise refused(error, call.span) from error


def refused(error: Exception, span: Span) -> Exception:
    """The user's error for what a type rule refused."""
    message, _, hint = message_of(error).partition("\n  hint: ")
    return user_error(ValueError, message, span, hint or None)


def registering(table: dict[str, F]) -> Callable[..., Callable[[F], F]]:
    """A decorator that takes names of operators and enters its function in ``table`` under each."""

    def rule(*names: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            table.update(dict.fromkeys(names, function))
            return function

        return register

    return rule


class EmittingRewriter(Rewriter):
    """A rewriter whose ``rewrite_<statement>`` methods may `emit` statements that go before the one they rewrite."""

    def __init__(self) -> None:
        super().__init__()
        self.span: Span = UNKNOWN_SPAN
        """Where the statement at hand is."""
        self._emitted: list[Stmt] = []

    def emit(self, name: str, value: Expr, span: Span | None = None) -> Var:
        """Bind ``value`` to a new variable, ahead of the statement at hand."""
        var = Var(name, value.type, value.span)
        self._emitted.append(AssignStmt(var, value, span or self.span))
        return var

    def emit_stmt(self, stmt: Stmt) -> None:
        self._emitted.append(stmt)

    def collect(self, action: Callable[[], Any]) -> tuple[list[Stmt], Any]:
        """What ``action`` emits, and its result."""
        outer, self._emitted = self._emitted, []
        result = action()
        emitted, self._emitted = self._emitted, outer
        return emitted, result

    def _around(self, op: Stmt, change: Callable[[Any], Stmt | None]) -> Any:
        outer, self.span = self.span, op.span
        emitted, made = self.collect(lambda: change(op))
        self.span = outer
        if not emitted:
            return made
        return seq([*emitted, made] if made is not None else emitted)

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        return self._around(op, self.rewrite_assign)

    def visit_eval_stmt(self, op: EvalStmt) -> Any:
        return self._around(op, self.rewrite_eval)

    def visit_return_stmt(self, op: ReturnStmt) -> Any:
        return self._around(op, self.rewrite_return)

    def visit_yield_stmt(self, op: YieldStmt) -> Any:
        return self._around(op, self.rewrite_yield)

    def visit_for_stmt(self, op: ForStmt) -> Any:
        return self._around(op, self.rewrite_for)

    def visit_while_stmt(self, op: WhileStmt) -> Any:
        return self._around(op, self.rewrite_while)

    def visit_if_stmt(self, op: IfStmt) -> Any:
        return self._around(op, self.rewrite_if)

    def rewrite_assign(self, op: AssignStmt) -> Stmt | None:
        return self.generic(op)

    def rewrite_eval(self, op: EvalStmt) -> Stmt | None:
        return self.generic(op)

    def rewrite_return(self, op: ReturnStmt) -> Stmt:
        return self.generic(op)

    def rewrite_yield(self, op: YieldStmt) -> Stmt:
        return self.generic(op)

    def rewrite_for(self, op: ForStmt) -> Stmt:
        return self.generic(op)

    def rewrite_while(self, op: WhileStmt) -> Stmt:
        return self.generic(op)

    def rewrite_if(self, op: IfStmt) -> Stmt:
        return self.generic(op)
