"""SynthesizeAllReduceSignals: every allreduce of a host function has the window its ranks count in.

Where the author left it out, a window [ranks, cores] is allocated just before. One that is returned gets a variable
first, so that what follows finds allreduces only as statements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import DataType
from ..errors import Diagnosed, user_error
from ..ir import expr as E
from ..ir.expr import Call, Expr, Var, index_const
from ..ir.node import same_objects
from ..ir.program import Program
from ..ir.scalar import binary
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, Stmt, WhileStmt
from ..ops.registry import rebind
from .base import Pass, program_pass
from .emitting import EmittingRewriter, build, reinfer
from .host_windows import ALLOC, ALLREDUCE, names_in

_NAMES = ("__allreduce_signal_world_size_", "__allreduce_signal_buf_", "__allreduce_signal_")
_RESULT = "__allreduce_result_"


def synthesize_allreduce_signals() -> Pass:
    """The pass."""
    return program_pass("SynthesizeAllReduceSignals", _synthesize, looks_for=(ALLREDUCE,))


def _synthesize(program: Program) -> Program:
    taken = names_in(program)
    return program.map_functions(lambda f: _Signals(taken).rewrite(f) if f.is_host_orchestrator else f)


class _Signals(EmittingRewriter):
    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self._taken = taken
        self._loops = 0

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        return op.replace(value=self._value(op.value), var=self.define(op.var))

    def rewrite_eval(self, op: EvalStmt) -> Stmt:
        return op.replace(expr=self._value(op.expr))

    def rewrite_return(self, op: ReturnStmt) -> Stmt:
        return op.replace(value=self.rewrite_list(op.value, self._returned))

    def rewrite_for(self, op: ForStmt) -> Stmt:
        return self._loop(op)

    def rewrite_while(self, op: WhileStmt) -> Stmt:
        return self._loop(op)

    def _loop(self, op: Any) -> Stmt:
        self._loops += 1
        made = self.generic(op)
        self._loops -= 1
        return made

    def visit_call(self, op: Call) -> Call:
        """A call inside another expression."""
        if op.op.name == ALLREDUCE:
            raise _refusal(op, "must be a direct assignment, statement or return value",
                           "data = pld.tensor.allreduce(data, signal)")  # fmt: skip
        return self.generic(op)

    def _returned(self, value: Expr) -> Expr:
        made = self._value(value)
        is_call = isinstance(made, Call) and made.op.name == ALLREDUCE
        return self.emit(self._fresh(_RESULT), made) if is_call else made

    def _value(self, value: Expr) -> Expr:
        """What a statement evaluates, with a signal if it is an allreduce."""
        if not isinstance(value, Call) or value.op.name != ALLREDUCE:
            return self.rewrite(value)
        bound = rebind(value)
        args = [self.rewrite(a) for a in value.args]
        if bound["signal"] is not None:
            return value if same_objects(args, value.args) else reinfer(value, args)
        if self._loops:
            raise _refusal(
                value,
                "without an explicit signal is not supported inside a for/while loop: every round would need a "
                "window of its own",
                "allocate one before the loop and pass it: pld.tensor.allreduce(data, signal)",
            )
        if bound["mode"] == "ring":
            raise _refusal(
                value, 'with mode="ring" requires an explicit signal', "its window is [2 * (ranks - 1) + 1, ranks]"
            )
        return reinfer(value, [args[0], self._signal(value, bound["core_num"])])

    def _signal(self, call: Call, lanes: int) -> Var:
        span, (size_name, buffer_name, name) = call.span, self._fresh_names()
        ranks = self.emit(size_name, build("pld.system.world_size", span=span))
        cells = ranks if lanes == 1 else binary(E.Mul, ranks, index_const(lanes))
        size = binary(E.Mul, cells, index_const(DataType.INT32.get_byte()))
        buffer = self.emit(buffer_name, build(ALLOC, size, buffer_name, span=span))
        return self.emit(name, build("pld.tensor.window", buffer, [ranks, index_const(lanes)], dtype=DataType.INT32,
                                     span=span))  # fmt: skip

    def _fresh_names(self) -> list[str]:
        number = self._unused(lambda n: [prefix + n for prefix in _NAMES])
        return [prefix + number for prefix in _NAMES]

    def _fresh(self, prefix: str) -> str:
        return prefix + self._unused(lambda n: [prefix + n])

    def _unused(self, names: Callable[[str], list[str]]) -> str:
        number = 0
        while not self._taken.isdisjoint(names(str(number))):
            number += 1
        self._taken.update(names(str(number)))
        return str(number)


def _refusal(call: Call, message: str, hint: str) -> Diagnosed:
    return user_error(ValueError, f"{ALLREDUCE} {message}", call.span, hint)
