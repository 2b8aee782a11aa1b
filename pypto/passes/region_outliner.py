"""Outlining regions: each becomes a function of its own, and a call stands in its place.

What a region reads from outside becomes a parameter, in order of first use; what is read after it becomes a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import FunctionType
from ..ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ..ir.naming import written_name
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, ReturnStmt, ScopeStmt, Stmt, flatten_to_stmts, seq
from ..ir.types import ScalarType, TupleType, Type, UnknownType
from ..ir.visitor import Rewriter, Visitor
from .hoisting import Hoister
from .outlining import Buffers, Uses, holds_call

_CONSUMED = ("task_id_var", "manual_dep_edges", "allow_early_resolve", "predicate", "slot_num", "split_aiv")
"""Attributes of a region that the launch or the function takes over."""


class RegionOutliner(Hoister):
    """Outlines the regions of one function. A subclass names their ``kind`` and visits them with `outline`."""

    kind: ClassVar[type[ScopeStmt]]
    suffix: ClassVar[str] = ""
    """What the names of outlined functions end in, before a number."""
    func_type: ClassVar[FunctionType]

    def __init__(self, program: Program, function: Function, names: set[str]) -> None:
        super().__init__()
        self.made: dict[GlobalVar, Function] = {}
        self._program, self._function, self._names = program, function, names
        self._own_names: set[str] = set()
        self._counter = 0
        self._uses = Uses(function)
        self._placeholders: set[Var] = set()

    def run(self) -> Function:
        """The function with a launch in the place of each region."""
        for region in find_regions(self._function.body, self.kind):
            if region.attrs and "task_id_var" in region.attrs:
                # The parser's placeholder definition of a task id goes.
                self._placeholders.add(region.attrs["task_id_var"])
        return self.rewrite(self._function)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt | None:
        return None if op.var in self._placeholders else op

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        """Holds no regions."""
        return op

    def outline(
        self, op: ScopeStmt, attrs: dict[str, Any], body: Stmt | None = None, spec: Mapping[str, Any] | None = None
    ) -> list[Stmt]:
        """The launch of a new function with ``attrs`` that runs ``body``, by default the region's.

        ``spec`` says on how many blocks: ``core_num``, an expression of the launching function, and ``sync_start``.
        """
        inner = Uses(op.body)
        captured = list(inner.free)
        results = [v for v in inner.defined if self._uses.count[v] > inner.count[v]]
        shared = _shared_scalars(op.body, captured, results)
        results = [v for v in results if v not in shared]
        if self.func_type is FunctionType.InCore:
            _check_results(results)
        gvar = GlobalVar(self._name(op))
        buffers = Buffers(op.body, captured, self._program)
        self.made[gvar] = self._region_function(gvar.name, op, captured, results, buffers, attrs, body or op.body)
        return [*shared.values(), *self._launch(op, gvar, captured, results, spec or {})]

    def suffix_of(self, op: ScopeStmt) -> str:
        """What the name of this region's function ends in."""
        return self.suffix

    def _name(self, op: ScopeStmt) -> str:
        number = self._counter
        self._counter += 1
        name = op.name_hint or f"{self._function.name}_{self.suffix_of(op)}_{number}"
        if name in self._names and name not in self._own_names:
            name = f"{self._function.name}_{name}"
        base, count = name, 0
        while name in self._names:
            name = f"{base}_{count}"
            count += 1
        self._names.add(name)
        self._own_names.add(name)
        return name

    def _region_function(
        self,
        name: str,
        op: ScopeStmt,
        captured: list[Var],
        results: list[Var],
        buffers: Buffers,
        attrs: dict[str, Any],
        body: Stmt,
    ) -> Function:
        """The function of a region, with variables of its own for what it shares with the caller."""
        inside = Rewriter()
        own: dict[Var, Var] = {}
        # Symbolic types mention captured scalars, which therefore come first.
        for var in (*sorted(captured, key=lambda v: v.type.symbolic), *results):
            own[var] = inside.vars[var] = Var(var.name_hint, inside.rewrite_type(var.type), var.span)
        stmts = [inside.rewrite(body)]
        returned = [inside.vars[buffers.root.get(v, v)] for v in results]
        if returned:
            stmts.append(ReturnStmt(returned, op.span))
        return Function(
            name,
            [(own[v], buffers.direction(v)) for v in captured],
            [v.type for v in returned],
            seq(stmts, op.span),
            op.span,
            self.func_type,
            attrs=attrs,
        )

    def _launch(
        self, op: ScopeStmt, gvar: GlobalVar, args: list[Var], results: list[Var], spec: Mapping[str, Any]
    ) -> list[Stmt]:
        """The statements that stand for the region: the call, and what takes its result apart."""
        scope = dict(op.attrs or {})
        attrs = _call_attrs(scope, args)
        task_id = scope.get("task_id_var")
        deps = scope.get("manual_dep_edges") or ()
        early, predicate = bool(scope.get("allow_early_resolve", False)), scope.get("predicate")
        types: list[Type] = [v.type for v in results]
        if task_id is None and not deps and not early and predicate is None:
            call = Call(gvar, args, None, {**attrs, **spec}, _result_type(types), op.span)
            return self._bind_results(call, results, op)
        types.append(ScalarType(DataType.TASK_ID))
        options = {"allow_early_resolve": early, "predicate": predicate, **spec}
        launch = Submit(gvar, args, deps, None, attrs, TupleType(types), op.span, **options)
        targets = [*results, task_id] if task_id is not None else results
        return self._unpack(launch, targets, op)

    def _bind_results(self, call: Call, results: list[Var], op: ScopeStmt) -> list[Stmt]:
        if not results:
            return [EvalStmt(call, op.span, op.leading_comments)]
        if len(results) == 1:
            return [AssignStmt(results[0], call, op.span, op.leading_comments)]
        return self._unpack(call, results, op)

    def _unpack(self, call: Expr, targets: list[Var], op: ScopeStmt) -> list[Stmt]:
        whole = Var("ret", call.type, op.span)
        parts = [AssignStmt(v, TupleGetItemExpr(whole, i, op.span), op.span) for i, v in enumerate(targets)]
        return [AssignStmt(whole, call, op.span, op.leading_comments), *parts]


def _check_results(results: list[Var]) -> None:
    for var in results:
        if isinstance(var.type, ScalarType):
            name = written_name(var.name_hint)
            raise user_error(
                ValueError,
                f"{name!r} is computed in the region and read after it, and a task hands back tensors, not scalars",
                var.span,
                f"compute {name!r} outside the region, from what is known there, or write it to a tensor",
            )


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


def find_regions(body: Stmt, kind: type[ScopeStmt]) -> list[Any]:
    """The regions of one kind below a statement, in order."""
    finder = _Find(kind)
    finder.visit(body)
    return finder.found


class _Find(Visitor):
    def __init__(self, kind: type[ScopeStmt]) -> None:
        self.found: list[Any] = []
        self._kind = kind

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
