"""AutoDeriveTaskDependencies: tasks wait for one another by id instead of by what the runtime finds out.

Only on request, and never in manual scopes. Where two tasks of an orchestration function touch a common part of a
buffer and one writes it, the later one gets the id of the earlier in ``attrs["compiler_manual_dep_edges"]``, unless
the author's own ``deps=`` say so: the variable of the id, or the result of a plain call, which stands for it. An
argument all of whose dependencies are stated is no longer looked up: Input becomes NoDep, InOut OutputExisting.

A placed scope in which a tensor's buffer is unknown, or a task to wait for has no variable where it is needed, is left
to the runtime as a whole, and then no argument of the function is changed.
"""

from __future__ import annotations

from typing import Any

from ...ir.enums import ArgDirection, FunctionType
from ...ir.expr import Call, GlobalVar, Submit
from ...ir.program import Function, Program
from ...ir.visitor import Rewriter
from ..base import P, Pass, program_pass
from ..return_lineage import ReturnLineage
from .analysis import Analysis, Found, demotable

EDGES = "compiler_manual_dep_edges"
_STATED = {ArgDirection.Input: ArgDirection.NoDep, ArgDirection.InOut: ArgDirection.OutputExisting}


def auto_derive_task_dependencies(analyze_auto_scopes: bool = False) -> Pass:
    """The pass; see the module. It does nothing unless ``analyze_auto_scopes`` is set."""
    return program_pass(
        "AutoDeriveTaskDependencies",
        _derive,
        requires={P.SplitIncoreOrch, P.CallDirectionsResolved},
        produces={P.CallDirectionsResolved},
        looks_for=(GlobalVar,),
        only=(FunctionType.Orchestration,) if analyze_auto_scopes else (),
    )


def _derive(program: Program) -> Program:
    lineage = ReturnLineage(program)

    def change(function: Function) -> Function:
        if function.func_type is not FunctionType.Orchestration:
            return function
        found = Analysis(function, lineage).found
        return _Noter(found).rewrite(function) if found.edges or found.accesses else function

    return program.map_functions(change)


class _Noter(Rewriter):
    """Writes down what was found."""

    def __init__(self, found: Found) -> None:
        super().__init__()
        self._edges = {op: edges for op, (scope, edges) in found.edges.items() if scope.keeps_edges or not scope.failed}
        self._stated = demotable(found)

    def visit_call(self, op: Call | Submit) -> Any:
        changes: dict[str, Any] = {}
        if op in self._edges and list(op.attrs.get(EDGES, ())) != self._edges[op]:
            changes[EDGES] = self._edges[op]
        if op in self._stated:
            directions = [
                _STATED.get(d, d) if i in self._stated[op] else d for i, d in enumerate(op.arg_directions)
            ]
            changes["arg_directions"] = directions
        return op.replace(attrs={**op.attrs, **changes}) if changes else op

    visit_submit = visit_call
