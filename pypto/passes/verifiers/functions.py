"""Rules about functions: which kind holds what, and how parameters are used."""

from __future__ import annotations

from ...errors import Diagnostic
from ...ir.enums import FunctionType, Level, ParamDirection
from ...ir.expr import Call, GlobalVar, Submit, Var
from ...ir.node import IRNode
from ...ir.program import Function, Program, is_incore_type, summarize
from ...ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    SpmdScopeStmt,
    WhileStmt,
)
from ...ir.types import ArrayType, TupleType, Type
from .driver import Rule

_CREATE = frozenset({"tensor.create", "tensor.full"})
_IN_PLACE_ON_CORE = frozenset(
    {"tensor.read", "tensor.write", "tensor.dim", "tensor.view", "tensor.slice", "tensor.reinterpret_view"}
)
"""Tensor operators an InCore function keeps: they compute no tile."""


_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)
"""Functions that hand their parameters on to kernels, and return them as they are."""


class ClusterOutlined(Rule):
    """No cluster and no `pl.spmd` region is left."""

    name = "ClusterOutlined"

    def enter_function(self, function: Function) -> None:
        self._function = function.name

    def visit_cluster_scope_stmt(self, op: ClusterScopeStmt | SpmdScopeStmt) -> None:
        self.report(f"{op.scope_kind.name} ScopeStmt remains in function '{self._function}'", op.span)

    visit_spmd_scope_stmt = visit_cluster_scope_stmt


class HierarchyOutlined(Rule):
    """No region of a machine level is left in an Opaque function."""

    name = "HierarchyOutlined"

    def enter_function(self, function: Function) -> None:
        self._function = function

    def visit_hierarchy_scope_stmt(self, op: HierarchyScopeStmt) -> None:
        if self._function.func_type is FunctionType.Opaque:
            self.report(f"Hierarchy ScopeStmt remains in function '{self._function.name}'", op.span)


class SplitIncoreOrch(Rule):
    """No core-group region is left outside InCore functions."""

    name = "SplitIncoreOrch"

    def enter_function(self, function: Function) -> None:
        self._function = function

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> None:
        if not is_incore_type(self._function.func_type):
            self.report(f"InCore ScopeStmt remains in function '{self._function.name}'", op.span)


class IncoreTileOps(Rule):
    """InCore functions compute on tiles."""

    name = "IncoreTileOps"
    expressions = True

    def enter_function(self, function: Function) -> bool:
        return is_incore_type(function.func_type)

    def visit_call(self, op: Call) -> None:
        name = op.op.name
        if name.startswith("tensor.") and name not in _IN_PLACE_ON_CORE:
            self.report(f"Tensor operator '{name}' remains in an InCore function", op.span)


class OrchestrationReferencesResolved(Rule):
    """Orchestration calls functions the program has; a dotted name is an operator's."""

    name = "OrchestrationReferencesResolved"
    expressions = True

    def enter_function(self, function: Function) -> bool:
        return function.func_type is FunctionType.Orchestration

    def visit_call(self, op: Call | Submit) -> None:
        name = op.op.name
        known = not isinstance(op.op, GlobalVar) or "." in name or self.program.get_function(name) is not None
        if not known:
            self.report(f"Call of the undefined function '{name}'", op.span)

    visit_submit = visit_call


class DistTensorCtxMaterialized(Rule):
    """Communication contexts are parameters: only a host function asks for one."""

    name = "DistTensorCtxMaterialized"
    expressions = True

    def enter_function(self, function: Function) -> bool:
        self._function = function
        return function.level is not Level.HOST and "pld.system.get_comm_ctx" in summarize(function).ops

    def visit_call(self, op: Call) -> None:
        if op.op.name == "pld.system.get_comm_ctx":
            self.report(f"{op.op.name} remains in '{self._function.name}', which runs on a device", op.span)


class ManualDepsOnSubmitOnly(Rule):
    """Dependencies of a task are stated on its launch, in its own field."""

    name = "ManualDepsOnSubmitOnly"
    expressions = True

    def visit_call(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar) and "manual_dep_edges" in op.attrs:
            message = f"Call of '{op.op.name}' carries 'manual_dep_edges': only a pl.submit has dependencies"
            self.report(message, op.span)

    def visit_submit(self, op: Submit) -> None:
        if "manual_dep_edges" in op.attrs:
            message = f"Submit of '{op.op.name}' carries 'manual_dep_edges' beside its deps_"
            self.report(message, op.span, hint="dependencies of a Submit are its field deps_")


class OutParamNotShadowed(Rule):
    """An Out or InOut parameter is not given a new tensor."""

    name = "OutParamNotShadowed"

    def enter_function(self, function: Function) -> None:
        self._outs = {p: d for p, d in function.directed_params() if d is not ParamDirection.In}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        direction = self._outs.get(op.var)
        if direction is not None and isinstance(op.value, Call) and op.value.op.name in _CREATE:
            self.report(
                f"{direction.name} parameter '{op.var.name_hint}' is reassigned by '{op.value.op.name}': "
                "what is written to it is lost",
                op.span,
                hint="write into the parameter with store or assemble, or use another name",
            )


class ArrayNotEscaped(Rule):
    """Arrays, which live on a core's stack, do not cross functions."""

    name = "ArrayNotEscaped"

    def enter_function(self, function: Function) -> None:
        for param in function.params:
            if _has_array(param.type):
                self.report(
                    f"Function '{function.name}' has parameter '{param.name_hint}' of ArrayType", param.span
                )
        for type in function.return_types:
            if _has_array(type):
                self.report(f"Function '{function.name}' has the return type ArrayType", function.span)


def _has_array(type: Type) -> bool:
    return isinstance(type, ArrayType) or (isinstance(type, TupleType) and any(map(_has_array, type.types)))


class InOutUseValid(Rule):
    """A variable passed as Out or InOut is not read after the call: the call's result has the new contents.

    A read earlier in a loop counts as later when an iteration before it made the call. A launched task writes in its
    own time, ordered by its dependencies, and is not looked at.
    """

    name = "InOutUseDiscipline"
    expressions = True

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        super().__init__(program, found)
        self._directions = {f.name: f.param_directions for f in program.functions.values()}

    def enter_function(self, function: Function) -> None:
        self._active = function.func_type not in _WRAPPERS
        self._dead: dict[Var, str] = {}
        self._saved: list[dict[Var, str]] = []
        self._reads: list[dict[Var, Var]] = []
        self._renewed: list[set[Var]] = []
        """What the body of each loop around defines anew in every iteration."""
        self._exits: dict[IRNode, dict[Var, str]] = {}
        self._handed: set[int] = set()

    def visit_call(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar):
            for _, arg in self._handed_over(op):
                self._handed.add(id(arg))

    def leave_call(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar) and self._active:
            for _, arg in self._handed_over(op):
                self._handed.discard(id(arg))
                self._dead[arg] = op.op.name

    def _handed_over(self, op: Call) -> list[tuple[int, Var]]:
        directions = self._directions.get(op.op.name, ())
        return [
            (i, a)
            for i, (a, d) in enumerate(zip(op.args, directions))
            if d is not ParamDirection.In and isinstance(a, Var)
        ]

    def use(self, var: Var) -> None:
        callee = self._dead.get(var)
        if callee is not None:
            self._report(var, callee)
        elif self._reads and id(var) not in self._handed:
            self._reads[-1].setdefault(var, var)

    def _report(self, var: Var, callee: str) -> None:
        self.report(
            f"InOutUseDiscipline: '{var.name_hint}' is read after the call of '{callee}' that writes it",
            var.span,
            hint=f"read the call's result instead: '{var.name_hint} = self.{callee}(...)'",
        )

    def define(self, var: Var) -> None:
        self._dead.pop(var, None)
        if self._renewed:
            self._renewed[-1].add(var)

    def enter_scope(self, owner: IRNode) -> None:
        self._saved.append(dict(self._dead))
        if isinstance(owner, (ForStmt, WhileStmt)):
            self._reads.append({})
            self._renewed.append(set())

    def exit_scope(self, owner: IRNode) -> None:
        before = self._saved.pop()
        if isinstance(owner, IfStmt):
            # What one branch hands over is alive in the other, and dead after both.
            here = self._exits.pop(owner, None)
            if here is None and owner.else_body is not None:
                self._exits[owner] = self._dead
                self._dead = before
            elif here is not None:
                self._dead = {**here, **self._dead}
            return
        reads, renewed = self._reads.pop(), self._renewed.pop()
        for var in reads:
            if var in self._dead and var not in before and var not in renewed:
                self._report(var, self._dead[var])
        if self._reads:
            self._reads[-1].update(reads)
