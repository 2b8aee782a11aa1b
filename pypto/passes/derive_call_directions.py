"""DeriveCallDirections: how the runtime is told of each argument of each task.

First the signatures of Group and Spmd functions take over what the kernels they call do. Then every call and launch
of a function gets ``attrs["arg_directions"]``. What a callee reads is Input, what it updates InOut, and what is no
tensor Scalar. What it only writes is OutputExisting, or InOut when the write must come after another one: in a
sequential loop, after an earlier write of the same buffer, or into an InOut parameter of the caller. Arguments under
``pl.no_dep`` are NoDep. Calls that have directions keep them.
"""

from __future__ import annotations

from typing import Any

from ..ir.enums import ArgDirection, ForKind, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, Var
from ..ir.program import Function, Program, summarize
from ..ir.stmt import ForStmt, IfStmt, Stmt, WhileStmt
from ..ir.types import TensorType
from ..ir.visitor import Rewriter
from .base import ON_HOST, P, Pass, program_pass
from .buffer_roots import BufferRoots
from .return_lineage import ReturnLineage
from .wrapper_directions import with_wrapper_directions


def derive_call_directions() -> Pass:
    """The pass; see the module."""
    return program_pass(
        "DeriveCallDirections",
        _derive,
        requires={P.SplitIncoreOrch},
        produces={P.CallDirectionsResolved},
        looks_for=(GlobalVar,),
        only=ON_HOST,
    )


def _derive(program: Program) -> Program:
    lineage = ReturnLineage(program)
    program = with_wrapper_directions(program, lineage)
    callees = {f.name: f for f in program.functions.values()}

    def change(function: Function) -> Function:
        if function.is_incore or summarize(function).callees.isdisjoint(callees):
            return function
        return _Deriver(function, callees, lineage).rewrite(function)

    return program.map_functions(change)


class _Deriver(Rewriter):
    """Walks a function in order, with the buffers written so far."""

    def __init__(self, function: Function, callees: dict[str, Function], lineage: ReturnLineage) -> None:
        super().__init__()
        self._callees = callees
        self._roots = BufferRoots(function, lineage)
        self._updated = {p for p, d in function.directed_params() if d is ParamDirection.InOut}
        self._written: set[Var] = set()
        self._log: list[Var] = []
        self._sequential = 0

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        """Neither branch comes after the other; what follows comes after both."""
        condition, mark = self.rewrite(op.condition), len(self._log)
        then_body = self.rewrite(op.then_body)
        else_body = op.else_body
        if else_body is not None:
            here = self._log[mark:]
            self._written.difference_update(here)
            del self._log[mark:]
            else_body = self.rewrite(else_body)
            self._note(here)
        return op.replace(condition=condition, then_body=then_body, else_body=else_body)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> Stmt:
        ordered = not (isinstance(op, ForStmt) and op.kind is ForKind.Parallel)
        self._sequential += ordered
        made = self.generic(op)
        self._sequential -= ordered
        return made

    visit_while_stmt = visit_for_stmt

    def visit_call(self, op: Call | Submit) -> Expr:
        made = self.generic(op)
        callee = self._callees.get(op.op.name) if isinstance(op.op, GlobalVar) else None
        if callee is None:
            return made
        attrs: dict[str, Any] = op.attrs
        if op.args and not attrs.get("arg_directions"):
            skipped = attrs.get("arg_direction_overrides", ())
            directions = [
                ArgDirection.NoDep if i in skipped else self._direction(arg, direction)
                for i, (arg, direction) in enumerate(zip(op.args, callee.param_directions))
            ]
            made = made.replace(attrs={**made.attrs, "arg_directions": directions})
        for arg, direction in zip(op.args, callee.param_directions):
            if direction is not ParamDirection.In:
                self._note(self._roots.of(arg))
        return made

    visit_submit = visit_call

    def _direction(self, arg: Expr, param: ParamDirection) -> ArgDirection:
        if not isinstance(arg.type, TensorType):
            return ArgDirection.Scalar
        if param is not ParamDirection.Out:
            return ArgDirection.Input if param is ParamDirection.In else ArgDirection.InOut
        roots = self._roots.of(arg)
        ordered = self._sequential or not roots.isdisjoint(self._written) or not roots.isdisjoint(self._updated)
        return ArgDirection.InOut if ordered else ArgDirection.OutputExisting

    def _note(self, roots: Any) -> None:
        fresh = [root for root in roots if root not in self._written]
        self._written.update(fresh)
        self._log.extend(fresh)
