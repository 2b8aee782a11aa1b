"""ClassifyIterArgCarry: which values that loops of orchestration functions carry need a variable.

A loop carries a buffer under the name it had before when every iteration yields that very buffer; otherwise it needs
a variable that the yield assigns, a rebind. For carry ``i`` the loop gets ``attrs["iter_arg_rebind_i"]``. In a manual
scope, a task id carried around a parallel loop stands for the ids of all its iterations, which an array of
``attrs["iter_arg_array_size_i"]`` elements holds; a loop around it that carries the same array has the same size.

Where tasks wait for what a loop hands on because a pass derived it, they wait for the task of every iteration:
``attrs["iter_arg_task_ids_i"]`` is how many those are, 0 when only the run decides.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import ForKind, FunctionType
from ..ir.expr import Call, Expr, IterArg, Submit, Var
from ..ir.functor import get_last_yield_stmt
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, ForStmt, RuntimeScopeStmt, Stmt
from ..ir.types import ArrayType, ScalarType
from ..ir.visitor import find_all
from .auto_derive_task_dependencies import EDGES
from .base import P, Pass, program_pass
from .bodies import BodyRewriter, trip_count
from .buffer_roots import ValueSources
from .return_lineage import ReturnLineage

REBIND, ARRAY_SIZE, TASK_IDS = "iter_arg_rebind_", "iter_arg_array_size_", "iter_arg_task_ids_"


def iter_arg_is_rebind(loop: ForStmt, index: int) -> bool:
    """Whether carry ``index`` of a classified loop needs a variable."""
    return loop.attrs[f"{REBIND}{index}"]


def iter_arg_array_size(loop: ForStmt, index: int) -> int:
    """How many task ids carry ``index`` of a classified loop stands for; 0 when it is no array of them."""
    return loop.attrs.get(f"{ARRAY_SIZE}{index}", 0)


def iter_arg_task_ids(loop: ForStmt, index: int) -> int | None:
    """How many tasks of a classified loop carry ``index`` stands for, 0 for an unknown number; None for no tasks."""
    return loop.attrs.get(f"{TASK_IDS}{index}")


def classify_iter_arg_carry() -> Pass:
    """The pass; see the module."""
    return program_pass(
        "ClassifyIterArgCarry",
        _classify,
        requires={P.CallDirectionsResolved, P.RuntimeScopesMaterialized},
        produces={P.IterArgCarryClassified, P.RuntimeScopesMaterialized},
        looks_for=(IterArg,),
        only=(FunctionType.Orchestration,),
    )


def _classify(program: Program) -> Program:
    lineage = ReturnLineage(program)

    def change(function: Function) -> Function:
        if function.func_type is not FunctionType.Orchestration:
            return function
        return _Classifier(lineage, _derived_edges(function)).rewrite(function)

    return program.map_functions(change)


def _derived_edges(function: Function) -> set[Var]:
    """What tasks wait for because a pass derived it."""
    calls = find_all(function.body, (Call, Submit))
    return {edge for call in calls for edge in call.attrs.get(EDGES, ())}


class _Classifier(BodyRewriter):
    """Follows each variable to the oldest name of its buffer, a carried one being a name of its own."""

    def __init__(self, lineage: ReturnLineage, edges: set[Var]) -> None:
        super().__init__()
        self._edges = edges
        self._sources = ValueSources(lineage)
        self._origin: dict[Var, Var] = {}
        self._sizes: dict[Var, int] = {}
        self._manual = 0

    def visit_runtime_scope_stmt(self, op: RuntimeScopeStmt) -> Stmt:
        self._manual += op.manual
        made = op.replace(body=self.body(op.body))
        self._manual -= op.manual
        return made

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        self._sources.note(op)
        self._alias(op.var, op.value)
        return op

    def _alias(self, var: Var, value: Expr) -> None:
        origin = self._origin_of(value)
        if origin is not None:
            self._origin[var] = origin

    def _origin_of(self, value: Expr) -> Var | None:
        source = self._sources.of(value)
        return None if source is None else self._origin.get(source, source)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        body = self.body(op.body)
        if not op.iter_args:
            return op.replace(body=body)
        plan: dict[str, Any] = {}
        ending = get_last_yield_stmt(body)
        yielded = ending.values if ending is not None else op.iter_args
        for i, (arg, value, result) in enumerate(zip(op.iter_args, yielded, op.return_vars)):
            rebind = _is_task_id(arg) or self._origin_of(value) is not arg
            plan[f"{REBIND}{i}"] = rebind
            size = self._array_size(op, arg, value) if rebind else 0
            if size > 0:
                plan[f"{ARRAY_SIZE}{i}"] = self._sizes[result] = size
            if result in self._edges and not size:
                plan[f"{TASK_IDS}{i}"] = trip_count(op) or 0
            if not rebind and not isinstance(arg.type, ArrayType):
                self._alias(result, arg.init_value)
        kept = {k: v for k, v in op.attrs.items() if not k.startswith((REBIND, ARRAY_SIZE, TASK_IDS))}
        attrs = {**kept, **plan}
        return op.replace(body=body, attrs=op.attrs if attrs == op.attrs else attrs)

    def _array_size(self, op: ForStmt, arg: IterArg, value: Expr) -> int:
        if not self._manual or not _is_task_id(arg):
            return 0
        if op.kind is not ForKind.Parallel:
            return self._sizes.get(value, 0) if isinstance(value, Var) else 0
        trips = trip_count(op)
        if trips is None:
            raise user_error(
                ValueError,
                "manual_scope: pl.parallel loops carrying a manual_scope dep (via ``deps=[...]``) must have a "
                "statically-known trip count: the ids of its tasks are kept in an array",
                op.span,
                "give pl.parallel a Python int, or collect the ids in a pl.array.create(n, pl.TASK_ID)",
            )
        return trips


def _is_task_id(var: Var) -> bool:
    return isinstance(var.type, ScalarType) and var.type.dtype is DataType.TASK_ID
