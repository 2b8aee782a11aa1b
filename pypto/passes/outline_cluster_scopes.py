"""OutlineClusterScopes: cluster regions become Group functions, lone `pl.spmd` regions Spmd functions.

On how many blocks a function runs is said at its launch, because the number may be an expression of the launching
function: ``core_num`` and, when set, ``sync_start``, as attributes of a Call or fields of a Submit. A `pl.spmd` inside
a cluster is part of the Group: its launch spec moves to the launch of the Group, which is marked ``spmd_unwrapped``.
"""

from __future__ import annotations

from typing import Any

from ..errors import user_error
from ..ir.enums import FunctionType
from ..ir.expr import GlobalVar
from ..ir.naming import written_name
from ..ir.program import Function, Program, is_orchestration_like, summarize
from ..ir.stmt import ClusterScopeStmt, SpmdScopeStmt, Stmt
from ..ir.visitor import Rewriter
from .base import P, Pass, program_pass
from .outlining import Uses, with_stores_bound
from .region_outliner import RegionOutliner, find_regions


def outline_cluster_scopes() -> Pass:
    """The pass; see the module. Raises KernelValueError for a cluster whose launch has no one block count."""
    return program_pass(
        "OutlineClusterScopes",
        _outline,
        requires={P.SSAForm},
        produces={P.SSAForm, P.ClusterOutlined},
        looks_for=(ClusterScopeStmt, SpmdScopeStmt),
    )


def _outline(program: Program) -> Program:
    for outliner in (_ClusterOutliner, _SpmdOutliner):
        program = _outline_kind(program, outliner)
    return program


def _outline_kind(program: Program, kind: type[_ClusterOutliner] | type[_SpmdOutliner]) -> Program:
    functions: dict[GlobalVar, Function] = {}
    names = {f.name for f in program.functions.values()}
    for gvar, function in program.functions.items():
        hosts = function.func_type is FunctionType.Opaque or is_orchestration_like(function.func_type)
        if not hosts or kind.kind not in summarize(function).kinds:
            functions[gvar] = function
            continue
        outliner = kind(program, with_stores_bound(function, ClusterScopeStmt, SpmdScopeStmt), names)
        functions[gvar] = outliner.run()
        functions.update(outliner.made)
    if all(functions.get(g) is f for g, f in program.functions.items()):
        return program
    return Program(functions, program.name, program.span)


def _launch_spec(op: SpmdScopeStmt) -> dict[str, Any]:
    return {"core_num": op.core_num, **({"sync_start": True} if op.sync_start else {})}


class _SpmdOutliner(RegionOutliner):
    kind, suffix, func_type = SpmdScopeStmt, "spmd", FunctionType.Spmd

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> list[Stmt]:
        return self.outline(op, {}, spec=_launch_spec(op))


class _ClusterOutliner(RegionOutliner):
    kind, suffix, func_type = ClusterScopeStmt, "cluster", FunctionType.Group

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        """A lone one comes next."""
        return op

    def visit_cluster_scope_stmt(self, op: ClusterScopeStmt) -> list[Stmt]:
        inside: list[SpmdScopeStmt] = find_regions(op.body, SpmdScopeStmt)
        if not inside:
            return self.outline(op, {})
        if len(inside) > 1:
            raise user_error(
                ValueError,
                f"a cluster is launched once, but holds {len(inside)} pl.spmd regions",
                inside[1].span,
                "give each pl.spmd a pl.cluster of its own",
            )
        spec = _launch_spec(inside[0])
        local = next((v for v in Uses(spec["core_num"]).free if v in Uses(op.body).defined), None)
        if local is not None:
            raise user_error(
                ValueError,
                f"the number of blocks depends on {written_name(local.name_hint)!r}, which the cluster itself computes",
                inside[0].span,
                "compute it before the cluster: its launch needs it",
            )
        return self.outline(op, {"spmd_unwrapped": True}, _Unwrapper().rewrite(op.body), spec)


class _Unwrapper(Rewriter):
    """Replaces a `pl.spmd` region by what it holds."""

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        return op.body
