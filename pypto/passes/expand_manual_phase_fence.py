"""ExpandManualPhaseFence: one task stands for an array of tasks that many others wait for.

In a manual scope, M launches in a loop that each wait for all N tasks of an array make N * M dependencies. A dummy task
that waits for the N, and that the M wait for, makes N + M. It is launched before the outermost loop for which that is
fewer, and in which the array is neither defined nor updated. Carried arrays share the storage of their initial value.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import ForKind, FunctionType
from ..ir.expr import Call, IterArg, Submit, Var, const_value
from ..ir.node import NodeList
from ..ir.program import Function
from ..ir.stmt import AssignStmt, ForStmt, RuntimeScopeStmt, Stmt
from ..ir.types import ArrayType, ScalarType
from ..ir.visitor import Rewriter, Visitor
from ..ops import registry
from .base import P, Pass, function_pass
from .bodies import trip_count
from .hoisting import scope_fields


def expand_manual_phase_fence() -> Pass:
    """The pass; see the module."""
    return function_pass(
        "ExpandManualPhaseFence",
        _expand,
        requires={P.CallDirectionsResolved},
        produces={P.CallDirectionsResolved},
        looks_for=(Submit,),
        only=(FunctionType.Orchestration,),
    )


def _expand(function: Function) -> Function:
    found = _Consumers(function)
    return _Expander(found).rewrite(function) if found.waited_for else function


def _is_task_array(var: object) -> bool:
    return isinstance(var, Var) and isinstance(var.type, ArrayType) and var.type.dtype is DataType.TASK_ID


def _only_array(op: Submit) -> Var | None:
    """The array of tasks a launch waits for, when it waits for nothing else."""
    dep = op.deps[0] if len(op.deps) == 1 else None
    return dep if isinstance(dep, Var) and _is_task_array(dep) else None


class _Loop:
    """What one iteration of a loop does, inner loops included."""

    __slots__ = ("launches", "updated", "defined")

    def __init__(self) -> None:
        self.launches: dict[Var, int] = {}
        """How many launches wait for each array and nothing else."""
        self.updated: set[Var] = set()
        self.defined: set[Var] = set()


class _Consumers(Visitor):
    """Learns every loop of a function."""

    def __init__(self, function: Function) -> None:
        self.loops: dict[ForStmt, _Loop] = {}
        self.waited_for = False
        self._storage: dict[Var, Var] = {}
        self._inside: list[_Loop] = [_Loop()]
        self.visit(function.body)

    def storage(self, var: Var) -> Var:
        """The variable that stands for the storage of an array."""
        while var in self._storage:
            var = self._storage[var]
        return var

    def _shares(self, var: Var, other: Any) -> None:
        if _is_task_array(var) and isinstance(other, Var):
            a, b = self.storage(var), self.storage(other)
            if a is not b:
                self._storage[a] = b

    def define(self, var: Any) -> None:
        super().define(var)
        self._inside[-1].defined.add(var)
        if isinstance(var, IterArg):
            self._shares(var, var.init_value)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.define(op.var)
        value = op.value
        if isinstance(value, Call) and value.op.name == "array.update_element":
            self._shares(op.var, value.args[0])
            self._inside[-1].updated.add(op.var)
        elif isinstance(value, Submit):
            self.visit_submit(value)

    def visit_submit(self, op: Submit) -> None:
        array = _only_array(op)
        if array is not None:
            launches = self._inside[-1].launches
            launches[array] = launches.get(array, 0) + 1
            self.waited_for = True

    def visit_for_stmt(self, op: ForStmt) -> None:
        for arg, result in zip(op.iter_args, op.return_vars):
            self._shares(result, arg)
        inner = self.loops[op] = _Loop()
        self._inside.append(inner)
        self.generic(op)
        self._inside.pop()
        outer, trips = self._inside[-1], trip_count(op)
        outer.defined |= inner.defined
        outer.updated |= inner.updated
        for array, count in inner.launches.items():
            outer.launches[array] = outer.launches.get(array, 0) + count * (1 if trips is None else trips)


class _Expander(Rewriter):
    """Places the dummy tasks; ``_fences`` maps an array to the one that stands for it here."""

    def __init__(self, found: _Consumers) -> None:
        super().__init__()
        self._found = found
        self._fences: dict[Var, Var] = {}
        self._manual = 0
        self._count = 0

    def visit_runtime_scope_stmt(self, op: RuntimeScopeStmt) -> Stmt:
        self._manual += op.manual
        made = op.replace(**scope_fields(self, op), body=self.rewrite(op.body))
        self._manual -= op.manual
        return made

    def visit_for_stmt(self, op: ForStmt) -> Any:
        arrays = [a for a in self._found.loops[op].launches if self._pays_off(op, a)] if self._manual else []
        barriers = [self._barrier(a, op) for a in arrays]
        made = self.generic(op)
        for array in arrays:
            del self._fences[array]
        return [*barriers, made] if barriers else made

    def _pays_off(self, op: ForStmt, array: Var) -> bool:
        loop, trips = self._found.loops[op], trip_count(op)
        if array in self._fences or array in loop.defined or trips == 0:
            return False
        if trips is None and op.kind is ForKind.Parallel:
            return False
        storage = self._found.storage(array)
        if any(self._found.storage(v) is storage for v in loop.updated):
            return False
        producers = const_value(array.type.extent) if isinstance(array.type, ArrayType) else None
        consumers = loop.launches[array] * (1 if trips is None else trips)
        return isinstance(producers, int) and producers * consumers > producers + consumers

    def _barrier(self, array: Var, loop: ForStmt) -> Stmt:
        attrs = {"dummy_task": True, "manual_dep_edges": [array]}
        value = registry.call("system.task_dummy", span=loop.span).replace(attrs=attrs)
        name = f"phase_fence_barrier_{self._count}_tid"
        self._count += 1
        fence = self._fences[array] = Var(name, ScalarType(DataType.TASK_ID), loop.span)
        return AssignStmt(fence, value, loop.span)

    def visit_submit(self, op: Submit) -> Submit:
        array = _only_array(op)
        fence = self._fences.get(array) if array is not None else None
        return op if fence is None else op.replace(deps=NodeList([fence]))
