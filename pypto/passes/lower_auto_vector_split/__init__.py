"""LowerAutoVectorSplit: the vector work of a mixed kernel is divided between the two vector lanes.

A kernel with `pl.split` becomes what its author could have written by hand: tiles that go from the cube to the lanes
cross as `aiv_shard`, tiles that come back as `aic_gather`, and everything between works on half a tile, at an offset
that depends on the lane. The cube's work stays whole. `pl.split_aiv` regions are divided the same way, unless their
author has done so, and then are gone.
"""

from __future__ import annotations

from ...backend.target import Target
from ...ir.enums import FunctionType, MemorySpace, SplitMode
from ...ir.expr import Call, Var
from ...ir.program import Function, Program, summarize
from ...ir.stmt import AssignStmt, ScopeStmt, SplitAivScopeStmt, flatten_to_stmts, seq
from ...ir.types import TileType
from ...ir.visitor import find_all, walk
from ...ops.rules import value as known
from ..base import P, Pass
from ..context import PassContext
from ..core_affinity import Affinity, body_affinity, call_affinity, space_of
from ..emitting import build
from .divide import Divider
from .halves import Lane, extent_of
from .operators import GENERATORS
from .regions import LANE, lower_regions
from .unpack import unpacked

_KEPT = {P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure}


def lower_auto_vector_split() -> Pass:
    """The pass; see the module. Raises KernelValueError for work that cannot be divided."""
    return Pass(
        "LowerAutoVectorSplit",
        _run,
        requires=_KEPT | {P.AivSplitValid},
        produces=_KEPT,
        invalidates={P.AivSplitValid},
    )


def _run(program: Program, context: PassContext) -> Program:
    return program.map_functions(lambda f: _lower(f, context.target))


def _lower(function: Function, target: Target) -> Function:
    if function.func_type is not FunctionType.InCore:
        return function
    if SplitAivScopeStmt in summarize(function).kinds:
        return lower_regions(unpacked(function) if _divides_rows(function) else function, target)
    mode = function.split
    if mode is None or function.attrs.get("split_aiv") or body_affinity(function.body) is not Affinity.MIXED:
        return function
    if mode is SplitMode.UP_DOWN:
        function = unpacked(function)
    lane = build(LANE, span=function.span)
    index = Var("subblock_idx", lane.type, function.span)
    made = Divider(mode, Lane(index, _balance(function, mode.value - 1)), target).body(function.body)
    body = seq([AssignStmt(index, lane, function.span), *flatten_to_stmts(made)], function.body.span)
    return function.replace(body=body, attrs={**function.attrs, "split_aiv": True})


def _divides_rows(function: Function) -> bool:
    return any(s.split is SplitMode.UP_DOWN for s in find_all(function.body, SplitAivScopeStmt))


def _balance(function: Function, axis: int) -> int | None:
    """What each lane gets of a ragged tile the cube hands over, when all the lanes divide is that tile.

    Half the buffer would leave lane 1 with the rest, and pipes serve lanes that differ by at most one.
    """
    found: set[tuple[int, int]] = set()
    for node in walk(function.body):
        if isinstance(node, ScopeStmt):
            return None
        if not isinstance(node, AssignStmt) or not isinstance(node.value, Call):
            continue
        call, kind = node.value, node.var.type
        if not isinstance(kind, TileType) or extent_of(kind, axis) == 1:
            continue
        affinity = call_affinity(call)
        if affinity is Affinity.MIXED:
            source = call.args[0].type
            if space_of(call.args[0]) in (MemorySpace.Vec, MemorySpace.Acc) or not isinstance(source, TileType):
                return None
            size, valid = extent_of(source, axis), known(source.valid_shape[axis])
            if size is None or valid is None:
                return None
            found.add((size, valid))
        elif call.op.name == "tile.load" and affinity is Affinity.VECTOR or call.op.name in GENERATORS:
            return None
    if len(found) != 1:
        return None
    (size, valid) = found.pop()
    share = (valid + 1) // 2
    return share if 0 < share < (size + 1) // 2 else None

