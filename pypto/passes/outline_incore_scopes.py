"""OutlineIncoreScopes: every core-group region becomes an InCore function.

What a region reads from outside becomes a parameter, in order of first use; what is read after it becomes a result.
A tensor the region writes is Out, or InOut when the region also reads it; a result that is such a tensor is returned
as the parameter itself. The Opaque function that held a region becomes Orchestration, and reads there of a
parameter's dynamic extent become the symbol the signature names.
"""

from __future__ import annotations

from typing import Any

from ..errors import user_error
from ..ir.enums import FunctionType, Level, SplitMode
from ..ir.expr import Call, GlobalVar, Var, const_value
from ..ir.program import Function, Program, is_orchestration_like, summarize
from ..ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
)
from ..ir.types import TensorType
from .base import P, Pass, program_pass
from .deferred_waits import REGISTER, WAITER, check_region, check_waiter, registers
from .hoisting import Hoister
from .outlining import with_stores_bound
from .region_outliner import RegionOutliner, find_regions


def outline_incore_scopes() -> Pass:
    """The pass; see the module."""
    return program_pass(
        "OutlineIncoreScopes",
        _outline,
        requires={P.SSAForm},
        produces={P.SSAForm, P.SplitIncoreOrch, P.AivSplitValid},
        looks_for=(InCoreScopeStmt,),
    )


def _outline(program: Program) -> Program:
    functions: dict[GlobalVar, Function] = {}
    names = {f.name for f in program.functions.values()}
    for gvar, function in program.functions.items():
        if not _holds_regions(function):
            functions[gvar] = function
            continue
        outliner = _IncoreOutliner(program, _prepared(function), names)
        functions[gvar] = outliner.run()
        functions.update(outliner.made)
    return Program(functions, program.name, program.span)


def _holds_regions(function: Function) -> bool:
    hosts = function.func_type is FunctionType.Opaque or is_orchestration_like(function.func_type)
    return hosts and InCoreScopeStmt in summarize(function).kinds


def _prepared(function: Function) -> Function:
    """The function promoted, with stores in its regions bound to variables."""
    if function.func_type is FunctionType.Opaque and function.level in (None, Level.CHIP):
        function = Function(
            function.name,
            function.directed_params(),
            function.return_types,
            function.body,
            function.span,
            FunctionType.Orchestration,
            attrs=function.attrs,
            requires_runtime_binding=function.requires_runtime_binding,
        )
        function = _FoldExtents(function).rewrite(function)
    return with_stores_bound(function, InCoreScopeStmt)


class _FoldExtents(Hoister):
    """Replaces reads of a parameter's dynamic extent by the symbol of the signature."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._symbols = {
            d for p in function.params if isinstance(p.type, TensorType) for d in p.type.shape if isinstance(d, Var)
        }

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt | None:
        made = self.generic(op)
        call = made.value
        if self._symbols and isinstance(call, Call) and call.op.name == "tensor.dim":
            axis = const_value(call.args[1])
            source = call.args[0].type
            if isinstance(axis, int) and isinstance(source, TensorType):
                extent = source.shape[axis]
                if isinstance(extent, Var) and extent in self._symbols:
                    self.vars[op.var] = extent
                    return None
        return made


class _IncoreOutliner(RegionOutliner):
    kind, suffix, func_type = InCoreScopeStmt, "incore", FunctionType.InCore

    _launched = False
    """Whether a region around launches what is in it."""

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> list[Stmt]:
        if REGISTER not in summarize(self._function).ops or not registers(op.body):
            return self.outline(op, _function_attrs(op))
        check_region(op, self._launched)
        made = self.outline(op, {**_function_attrs(op), WAITER: True})
        check_waiter(next(reversed(self.made.values())))
        return made

    def visit_scope_stmt(self, op: ScopeStmt) -> Any:
        outer = self._launched
        self._launched |= isinstance(op, (ClusterScopeStmt, SpmdScopeStmt))
        made = super().visit_scope_stmt(op)
        self._launched = outer
        return made


def _function_attrs(op: InCoreScopeStmt) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    modes = [region.split for region in find_regions(op.body, SplitAivScopeStmt)]
    split = op.split if op.split is not SplitMode.NONE else None
    if modes and split is not None:
        raise user_error(
            ValueError,
            "pl.split on a region and pl.split_aiv inside it are mutually exclusive",
            op.span,
            "let the compiler split with optimizations=[pl.split(...)], or split by hand with pl.split_aiv",
        )
    if modes:
        attrs["split_aiv"] = True
        split = modes[0] if modes[0] is not SplitMode.NONE and all(m is modes[0] for m in modes) else None
    if split is not None:
        attrs["split"] = split.value
    if op.attrs and "slot_num" in op.attrs:
        attrs["slot_num"] = op.attrs["slot_num"]
    return attrs
