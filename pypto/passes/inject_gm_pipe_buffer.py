"""InjectGMPipeBuffer: pipes that go through global memory get it as a parameter.

On targets whose pipes do, every function that sets one up takes a tensor ``__gm_pipe_buffer``, and so does every
function that calls it, up to the one that launches tasks: there each launch creates a buffer of its own. How large it
has to be follows from the pipes, so the tensor of one element only stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dtypes import DataType
from ..ir.enums import FunctionType, ParamDirection, TensorLayout
from ..ir.expr import Call, Expr, GlobalVar, Submit, Var
from ..ir.node import NodeList
from ..ir.program import Function, Program, is_orchestration_like, summarize
from ..ir.types import TensorType
from .base import P, Pass
from .context import PassContext
from .core_affinity import SETUPS
from .emitting import EmittingRewriter, build
from .pipe_workspace import BUFFER, buffer_of

_KEPT = {P.SSAForm, P.MixedKernelExpanded, P.NormalizedStmtStructure}


def inject_gm_pipe_buffer() -> Pass:
    """The pass; see the module."""
    return Pass("InjectGMPipeBuffer", _run, requires=_KEPT, produces=_KEPT, looks_for=SETUPS.values())


def _run(program: Program, context: PassContext) -> Program:
    if not context.target.quirks.gm_pipe_buffer:
        return program
    buffers = _takers(program)
    if not buffers:
        return program
    return program.map_functions(lambda f: _changed(f, buffers))


def _takers(program: Program) -> dict[str, Var]:
    """The new parameter of each function that needs one, by the function's name."""
    callers: dict[str, list[Function]] = {}
    for function in program.functions.values():
        for callee in summarize(function).callees:
            callers.setdefault(callee, []).append(function)
    pending = [f for f in program.functions.values() if not summarize(f).ops.isdisjoint(SETUPS.values())]
    found: dict[str, Var] = {}
    while pending:
        function = pending.pop()
        if function.name in found or buffer_of(function) is not None or _launches(function):
            continue
        found[function.name] = Var(BUFFER, TensorType([1], DataType.FP32), function.span)
        pending.extend(callers.get(function.name, ()))
    return found


def _launches(function: Function) -> bool:
    return is_orchestration_like(function.func_type) or function.func_type is FunctionType.Opaque


def _changed(function: Function, buffers: Mapping[str, Var]) -> Function:
    own = buffers.get(function.name)
    if not summarize(function).callees.isdisjoint(buffers):
        function = _Forwarder(buffers, own).rewrite(function)
    if own is None:
        return function
    return function.with_params([*function.directed_params(), (own, ParamDirection.Out)])


class _Forwarder(EmittingRewriter):
    """Calls pass the buffer on: the function's own, or a fresh one each."""

    def __init__(self, buffers: Mapping[str, Var], own: Var | None) -> None:
        super().__init__()
        self._buffers, self._own = buffers, own
        self._count = 0

    def visit_call(self, op: Call | Submit) -> Expr:
        made: Any = self.generic(op)
        if not isinstance(op.op, GlobalVar) or op.op.name not in self._buffers:
            return made
        return made.replace(args=NodeList([*made.args, self._own or self._created()]))

    visit_submit = visit_call

    def _created(self) -> Var:
        call = build(
            "tensor.create", [1], span=self.span, dtype=DataType.FP32, layout=TensorLayout.ND, manual_dep=True
        )
        name = f"gm_pipe_buffer_{self._count}"
        self._count += 1
        return self.emit(name, call)
