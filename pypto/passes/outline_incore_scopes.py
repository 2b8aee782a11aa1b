"""OutlineIncoreScopes: every core-group region becomes an InCore function.

What a region reads from outside becomes a parameter, in order of first use; what is read after it becomes a result.
A tensor the region writes is Out, or InOut when the region also reads it; a result that is such a tensor is returned
as the parameter itself. The Opaque function that held a region becomes Orchestration, and reads there of a
parameter's dynamic extent become the symbol the signature names.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import FunctionType, Level, SplitMode
from ..ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var, const_value
from ..ir.program import Function, Program, is_orchestration_like
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    InCoreScopeStmt,
    ReturnStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    Stmt,
    flatten_to_stmts,
    seq,
)
from ..ir.types import ScalarType, TensorType, TupleType, Type, UnknownType
from ..ir.visitor import Rewriter, Visitor
from .base import P, Pass, program_pass
from .convert_to_ssa import restore_ssa
from .hoisting import Hoister
from .outlining import BindStores, Buffers, Uses, holds_call


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
        outliner = _Outliner(program, _prepared(function), names)
        functions[gvar] = outliner.run()
        functions.update(outliner.made)
    return Program(functions, program.name, program.span)


def _holds_regions(function: Function) -> bool:
    from ..ir.program import summarize

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
    bound = _BindInRegions().rewrite(function)
    if bound is not function or Uses(function).redefined:
        return restore_ssa(bound)
    return function


class _BindInRegions(Rewriter):
    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> Stmt:
        return op.replace(body=BindStores().rewrite(op.body))


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


class _Outliner(Hoister):
    """Outlines the regions of one function."""

    def __init__(self, program: Program, function: Function, names: set[str]) -> None:
        super().__init__()
        self.made: dict[GlobalVar, Function] = {}
        self._program = program
        self._function = function
        self._names = names
        self._own_names: set[str] = set()
        self._counter = 0
        self._uses = Uses(function)
        self._placeholders: set[Var] = set()

    def run(self) -> Function:
        function = self._function
        self._find_task_ids(function)
        return self.rewrite(function)

    def _find_task_ids(self, function: Function) -> None:
        """Task ids that regions bind: the parser's placeholder definitions go."""
        for region in _Find(function.body, InCoreScopeStmt).found:
            if region.attrs and "task_id_var" in region.attrs:
                self._placeholders.add(region.attrs["task_id_var"])

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt | None:
        return None if op.var in self._placeholders else op

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        """Holds no regions."""
        return op

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> list[Stmt]:
        inner = Uses(op.body)
        captured = list(inner.free)
        results = [v for v in inner.defined if self._uses.count[v] > inner.count[v]]
        shared = _shared_scalars(op.body, captured, results)
        results = [v for v in results if v not in shared]
        gvar = GlobalVar(self._name(op))
        buffers = Buffers(op.body, captured, self._program)
        self.made[gvar] = _region_function(gvar.name, op, captured, results, buffers)
        return [*shared.values(), *self._launch(op, gvar, captured, results)]

    def _name(self, op: InCoreScopeStmt) -> str:
        number = self._counter
        self._counter += 1
        name = op.name_hint or f"{self._function.name}_incore_{number}"
        if name in self._names and name not in self._own_names:
            name = f"{self._function.name}_{name}"
        base, suffix = name, 0
        while name in self._names:
            name = f"{base}_{suffix}"
            suffix += 1
        self._names.add(name)
        self._own_names.add(name)
        return name

    def _launch(self, op: InCoreScopeStmt, gvar: GlobalVar, args: list[Var], results: list[Var]) -> list[Stmt]:
        """The statements that stand for the region: the call, and what takes its result apart."""
        scope = dict(op.attrs or {})
        attrs = _call_attrs(scope, args)
        task_id = scope.get("task_id_var")
        deps = scope.get("manual_dep_edges") or ()
        early = bool(scope.get("allow_early_resolve", False))
        types: list[Type] = [v.type for v in results]
        if task_id is None and not deps and not early:
            return self._bind_results(Call(gvar, args, None, attrs, _result_type(types), op.span), results, op)
        types.append(ScalarType(DataType.TASK_ID))
        launch = Submit(gvar, args, deps, None, attrs, TupleType(types), op.span, allow_early_resolve=early)
        targets = [*results, task_id] if task_id is not None else results
        return self._unpack(launch, targets, op)

    def _bind_results(self, call: Call, results: list[Var], op: InCoreScopeStmt) -> list[Stmt]:
        if not results:
            return [EvalStmt(call, op.span, op.leading_comments)]
        if len(results) == 1:
            return [AssignStmt(results[0], call, op.span, op.leading_comments)]
        return self._unpack(call, results, op)

    def _unpack(self, call: Expr, targets: list[Var], op: InCoreScopeStmt) -> list[Stmt]:
        whole = Var("ret", call.type, op.span)
        parts = [AssignStmt(v, TupleGetItemExpr(whole, i, op.span), op.span) for i, v in enumerate(targets)]
        return [AssignStmt(whole, call, op.span, op.leading_comments), *parts]


def _shared_scalars(body: Stmt, captured: list[Var], results: list[Var]) -> dict[Var, AssignStmt]:
    """Scalars computed from captured ones alone, that are read after the region: the caller computes them too.

    A task hands back tensors, not scalars.
    """
    known = set(captured)
    computed: dict[Var, AssignStmt] = {}
    for stmt in flatten_to_stmts(body):
        if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, ScalarType):
            value = Uses(stmt.value)
            if known.issuperset(value.free) and not holds_call(stmt.value):
                known.add(stmt.var)
                computed[stmt.var] = stmt
    wanted = {v for v in results if v in computed}
    for var in reversed(computed):
        if var in wanted:
            wanted.update(v for v in Uses(computed[var].value).free if v in computed)
    return {v: stmt for v, stmt in computed.items() if v in wanted}


class _Find(Visitor):
    """The regions of one kind below a statement."""

    def __init__(self, body: Stmt, kind: type[ScopeStmt]) -> None:
        self.found: list[Any] = []
        self._kind = kind
        self.visit(body)

    def visit_scope_stmt(self, op: ScopeStmt) -> None:
        if isinstance(op, self._kind):
            self.found.append(op)
        self.generic(op)

    def visit_assign_stmt(self, op: Stmt) -> None:
        """Holds no regions."""

    visit_eval_stmt = visit_assign_stmt


def _result_type(types: list[Type]) -> Type:
    if not types:
        return UnknownType()
    return types[0] if len(types) == 1 else TupleType(types)


_CONSUMED = ("task_id_var", "manual_dep_edges", "allow_early_resolve", "slot_num", "split_aiv")


def _call_attrs(scope: dict[str, Any], args: list[Var]) -> dict[str, Any]:
    """A region's attributes as attributes of the call: variables it names become argument positions."""
    attrs = {k: v for k, v in scope.items() if k not in _CONSUMED}
    skipped = attrs.pop("arg_direction_overrides_vars", ())
    if skipped:
        attrs["arg_direction_overrides"] = [i for i, a in enumerate(args) if any(a is v for v in skipped)]
    if "dump_vars" in attrs:
        dumped = [a for a in args if any(a is v for v in attrs["dump_vars"])]
        attrs.pop("dump_vars")
        if dumped:
            attrs["dump_vars"] = dumped
    return attrs


def _region_function(
    name: str, op: InCoreScopeStmt, captured: list[Var], results: list[Var], buffers: Buffers
) -> Function:
    """The InCore function of a region, with variables of its own for what it shares with the caller."""
    inside = Rewriter()
    for symbolic in (False, True):
        for var in captured:
            if var.type.symbolic is symbolic:
                inside.vars[var] = Var(var.name_hint, inside.rewrite_type(var.type), var.span)
    for var in results:
        inside.vars[var] = Var(var.name_hint, inside.rewrite_type(var.type), var.span)
    body = inside.rewrite(op.body)
    returned = [inside.vars[buffers.root.get(v, v)] for v in results]
    stmts = [body, ReturnStmt(returned, op.span)] if returned else [body]
    return Function(
        name,
        [(inside.vars[v], buffers.direction(v)) for v in captured],  # pyright: ignore[reportArgumentType]
        [v.type for v in returned],
        seq(stmts, op.span),
        op.span,
        FunctionType.InCore,
        attrs=_function_attrs(op),
    )


def _function_attrs(op: InCoreScopeStmt) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    modes = [region.split for region in _Find(op.body, SplitAivScopeStmt).found]
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
