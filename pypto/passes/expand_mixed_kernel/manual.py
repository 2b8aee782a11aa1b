"""Pipes that authors wrote themselves: what the target wants of them is added."""

from __future__ import annotations

from collections.abc import Iterable

from ...backend.target import Target
from ...ir.enums import FunctionType
from ...ir.expr import Call, Var
from ...ir.node import NodeList
from ...ir.program import Function, summarize
from ...ir.stmt import EvalStmt
from ...ir.visitor import find_calls
from ..bodies import BodyRewriter
from ..core_affinity import POPS, PUSHES, SETUPS, Affinity
from .crossings import arranged

_TO_CUBE = PUSHES[Affinity.VECTOR]


def arrange_pushes(function: Function, target: Target) -> Function:
    """``function`` with the tiles its vector core pushes laid out as the cube reads them."""
    if function.func_type is not FunctionType.AIV or not target.quirks.vector_to_cube_fractal:
        return function
    return _Arranger(target).rewrite(function) if _TO_CUBE in summarize(function).ops else function


class _Arranger(BodyRewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target

    def visit_eval_stmt(self, op: EvalStmt) -> object:
        call = op.expr
        if not isinstance(call, Call) or call.op.name != _TO_CUBE or not isinstance(call.args[0], Var):
            return op
        stmts, made = arranged(call.args[0], self._target, op.span)
        return [*stmts, op.replace(expr=call.replace(args=NodeList([made, *call.args[1:]])))] if stmts else op


def dispatch_both(functions: Iterable[Function], target: Target) -> list[Function]:
    """``functions`` with the vector parts of Groups marked to run on both lanes, where the target does so anyway.

    Parts whose lanes tell each other apart are their author's: they are left as they are.
    """
    made = list(functions)
    if not target.quirks.no_split_dual_aiv_dispatch:
        return made
    grouped = {name for f in made if f.func_type is FunctionType.Group for name in summarize(f).callees}
    return [f.replace(attrs={**f.attrs, "dual_aiv_dispatch": True}) if _runs_twice(f, grouped) else f for f in made]


def _runs_twice(function: Function, grouped: set[str]) -> bool:
    if function.func_type is not FunctionType.AIV or function.name not in grouped or function.split is not None:
        return False
    ops = summarize(function).ops
    if SETUPS[Affinity.VECTOR] not in ops or "tile.get_subblock_idx" in ops:
        return False
    if function.attrs.get("split_aiv") or function.attrs.get("dual_aiv_dispatch"):
        return False
    calls = find_calls(function.body, PUSHES[Affinity.VECTOR], POPS[Affinity.VECTOR])
    return bool(calls) and all(c.kwargs.get("split", 0) == 0 for c in calls)
