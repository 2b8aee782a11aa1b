"""Writing out one composite operator: its steps, loops and branches, ahead of the statement it stands in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...dtypes import DataType
from ...errors import Diagnosed, user_error
from ...ir.expr import Call, Expr, IterArg, Var, index_const
from ...ir.stmt import EvalStmt, ForStmt, IfStmt, Stmt, YieldStmt, seq
from ...ir.types import ScalarType, Type
from ...ops.registry import Bound, rebind
from ..emitting import EmittingRewriter, build


class Parts:
    """The steps of one call, named after its result."""

    def __init__(self, rewriter: EmittingRewriter, name: str, call: Call) -> None:
        self.rewriter, self.name, self.call = rewriter, name, call
        self._count = 0

    def arguments(self) -> Bound:
        """The call's arguments as they are at this place."""
        bound = rebind(self.call)
        for param in bound.decl.args:
            if bound[param.name] is not None:
                bound.values[param.name] = self.rewriter.rewrite(bound[param.name])
        return bound

    def argument(self, position: int) -> Expr:
        return self.rewriter.rewrite(self.call.args[position])

    def refuse(self, message: str, hint: str | None = None) -> Diagnosed:
        """The user's error for a call that cannot be written out."""
        return user_error(ValueError, f"{self.call.op.name} {message}", self.call.span, hint)

    def hint(self, role: str) -> str:
        self._count += 1
        return f"{self.name}__{role}_tmp_v{self._count - 1}"

    def keep(self, role: str, value: Expr) -> Var:
        """A variable that holds ``value``."""
        return self.rewriter.emit(self.hint(role), value)

    def apply(self, role: str, op: str, /, *args: Any, **kwargs: Any) -> Var:
        """The value of operator ``op``."""
        return self.keep(role, build(op, *args, span=self.call.span, **kwargs))

    def bind(self, role: str, op: str, /, *args: Any, **kwargs: Any) -> Var:
        """The value of tile operator ``op``."""
        return self.apply(role, f"tile.{op}", *args, **kwargs)

    def last(self, op: str, /, *args: Any) -> Call:
        """The call whose value is the result."""
        return build(f"tile.{op}", *args, span=self.call.span)

    def do(self, op: str, /, *args: Any, **kwargs: Any) -> None:
        """Operator ``op`` for its effect."""
        self.rewriter.emit_stmt(EvalStmt(build(op, *args, span=self.call.span, **kwargs), self.call.span))

    def loop(self, role: str, stop: Expr, body: Callable[[Var], None], step: int = 1) -> None:
        """``body`` for each multiple of ``step`` below ``stop``."""
        var = self._loop_var(role)
        stmts, _ = self.rewriter.collect(lambda: body(var))
        self.rewriter.emit_stmt(self._for(var, stop, step, (), seq(stmts, self.call.span), ()))

    def fold(self, role: str, stop: Expr, init: Expr, body: Callable[[Var, Expr], Expr]) -> Var:
        """``init`` after ``body`` has changed it for each number below ``stop``."""
        var = self._loop_var(role)
        carried = IterArg(self.hint(f"{role}_acc"), init.type, init, self.call.span)
        stmts, _ = self._yielding(lambda: body(var, carried))
        result = Var(self.hint(f"{role}_all"), init.type, self.call.span)
        self.rewriter.emit_stmt(self._for(var, stop, 1, (carried,), stmts, (result,)))
        return result

    def when(self, condition: Expr, body: Callable[[], None]) -> None:
        """``body`` if ``condition`` holds."""
        stmts, _ = self.rewriter.collect(body)
        self.rewriter.emit_stmt(IfStmt(condition, seq(stmts, self.call.span), None, (), self.call.span))

    def choose(self, role: str, condition: Expr, then: Callable[[], Expr], otherwise: Callable[[], Expr]) -> Var:
        """The value of ``then`` if ``condition`` holds, else that of ``otherwise``, of the same type."""
        (first, kind), (second, _) = self._yielding(then), self._yielding(otherwise)
        result = Var(self.hint(role), kind, self.call.span)
        self.rewriter.emit_stmt(IfStmt(condition, first, second, (result,), self.call.span))
        return result

    def _loop_var(self, role: str) -> Var:
        return Var(self.hint(role), ScalarType(DataType.INDEX), self.call.span)

    def _for(self, var: Var, stop: Expr, step: int, carried: tuple[IterArg, ...], body: Stmt, results: Any) -> ForStmt:
        return ForStmt(var, index_const(0), stop, index_const(step), carried, body, results, self.call.span)

    def _yielding(self, body: Callable[[], Expr]) -> tuple[Stmt, Type]:
        """What ``body`` emits, handing its value on, and that value's type."""
        stmts, value = self.rewriter.collect(body)
        return seq([*stmts, YieldStmt([value], self.call.span)], self.call.span), value.type
