"""OutlineHierarchyScopes: regions of a machine level become Opaque functions of that level and role.

A region inside another is outlined from the function the outer one became, and named after it.
"""

from __future__ import annotations

from typing import Any

from ..ir.enums import FunctionType, Role
from ..ir.expr import GlobalVar
from ..ir.program import Function, Program, summarize
from ..ir.stmt import HierarchyScopeStmt, Stmt
from .base import P, Pass, program_pass
from .outlining import with_stores_bound
from .region_outliner import RegionOutliner

_ROLE_SUFFIX = {None: "", Role.Orchestrator: "_orch", Role.SubWorker: "_worker"}


def outline_hierarchy_scopes() -> Pass:
    """The pass; see the module."""
    return program_pass(
        "OutlineHierarchyScopes",
        _outline,
        requires={P.SSAForm},
        produces={P.SSAForm, P.HierarchyOutlined, P.OrchestrationReferencesResolved},
        looks_for=(HierarchyScopeStmt,),
    )


def _outline(program: Program) -> Program:
    functions: dict[GlobalVar, Function] = {}
    names = {f.name for f in program.functions.values()}
    pending = list(program.functions.items())
    while pending:
        gvar, function = pending.pop()
        if function.func_type is FunctionType.Opaque and HierarchyScopeStmt in summarize(function).kinds:
            outliner = _HierarchyOutliner(program, with_stores_bound(function, HierarchyScopeStmt), names)
            function = outliner.run()
            pending.extend(outliner.made.items())
        functions[gvar] = function
    if all(functions[g] is f for g, f in program.functions.items()):
        return program
    return Program(functions, program.name, program.span)


class _HierarchyOutliner(RegionOutliner):
    kind, func_type = HierarchyScopeStmt, FunctionType.Opaque

    def suffix_of(self, op: Any) -> str:
        return op.level.name.lower().replace("cluster_", "cluster") + _ROLE_SUFFIX[op.role]

    def visit_hierarchy_scope_stmt(self, op: HierarchyScopeStmt) -> list[Stmt]:
        known = set(self.made)
        launch = self.outline(op, {})
        (gvar,) = self.made.keys() - known
        self.made[gvar] = self.made[gvar].replace(level=op.level, role=op.role)
        return launch
