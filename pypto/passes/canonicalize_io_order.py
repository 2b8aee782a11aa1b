"""CanonicalizeIOOrder: inside a pipelined loop, loads go ahead and stores wait.

The statements of a body are put in an order in which scalars come first, then loads, then, stage by stage, what
computes and what stores; dependencies are kept, and equals keep their order. So the loads of all stages are under way
before the first stage computes, and each stage's results leave as soon as they are made. Operands that are taken from
Mat after an inner loop stay after it. Afterwards the loop is a plain one.

A loop whose stages share one accumulator (``pipeline_overlap_stores`` is False) computes and stores in the order
written. One with two accumulators (``pipeline_double_buffer_c``) takes its stages in pairs: both compute, then both
store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from ..errors import InternalError
from ..ir.enums import ForKind, MemorySpace
from ..ir.expr import Call, Expr, GlobalVar, Var
from ..ir.program import Function, Program
from ..ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from ..ir.types import ScalarType
from ..ir.visitor import Rewriter, Visitor
from .base import P, Pass, program_pass
from .lower_pipeline_loops import DOUBLE_BUFFER_C, MEMBERSHIP, OVERLAP_STORES, is_accumulator
from .stmt_dependency_analysis import Sharing, build_stmt_dependency_graph, inout_use_diagnostics

_PROPERTIES = frozenset(
    {P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure}
)
_LOADS = frozenset({"tile.load", "tile.read"})
_STORES = frozenset({"tile.store", "tile.write"})
_OPERANDS = (MemorySpace.Left, MemorySpace.Right)
_MARKS = frozenset({"pipeline_stages", OVERLAP_STORES, DOUBLE_BUFFER_C})
_ENDS = (YieldStmt, ReturnStmt, BreakStmt, ContinueStmt)


def canonicalize_io_order() -> Pass:
    """The pass; see the module."""
    return program_pass(
        "CanonicalizeIOOrder",
        _run,
        requires=_PROPERTIES,
        produces=_PROPERTIES | {P.PipelineResolved},
        looks_for=(ForStmt,),
    )


def _run(program: Program) -> Program:
    return program.map_functions(lambda f: _ordered(f, program))


def _ordered(function: Function, program: Program) -> Function:
    finder = _Finder()
    finder.visit(function)
    if not finder.pipelines or (finder.calls and inout_use_diagnostics(function.body, program)):
        return function
    return _Orderer(Sharing(function)).rewrite(function)


class _Finder(Visitor):
    """Whether a function has pipelined loops, and calls of functions."""

    pipelines = calls = False

    def visit_for_stmt(self, op: ForStmt) -> None:
        self.pipelines |= op.kind is ForKind.Pipeline
        self.generic(op)

    def visit_call(self, op: Call) -> None:
        self.calls |= isinstance(op.op, GlobalVar)


class _Key(NamedTuple):
    """Sorts statements that are free to go: what they are, their pipeline stage, stores last, then as written."""

    tier: int
    stage: tuple[tuple[int, int], ...]
    stores: bool
    position: int


class _Orderer(Rewriter):
    def __init__(self, sharing: Sharing) -> None:
        super().__init__()
        self._sharing = sharing
        self._depth = 0
        self._keys: Callable[[list[Stmt]], list[_Key]] = _keys

    def visit_for_stmt(self, op: ForStmt) -> ForStmt:
        pipelined = op.kind is ForKind.Pipeline
        outer = self._keys
        self._depth += pipelined
        self._keys = _keys_for(op.attrs) if pipelined else outer
        body = self.rewrite(op.body)
        self._depth -= pipelined
        self._keys = outer
        if not pipelined:
            return op.replace(body=body)
        if op.attrs.get(DOUBLE_BUFFER_C):
            body = _Alternated().rewrite(body)
        attrs = {k: v for k, v in op.attrs.items() if k not in _MARKS}
        return op.replace(body=body, kind=ForKind.Sequential, attrs=attrs)

    def visit_assign_stmt(self, op: Stmt) -> Stmt:
        """Holds no loops."""
        return op

    visit_eval_stmt = visit_yield_stmt = visit_return_stmt = visit_assign_stmt

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        made = super().visit_seq_stmts(op)
        return self._reorder(made) if self._depth and isinstance(made, SeqStmts) else made

    def _reorder(self, body: SeqStmts) -> Stmt:
        stmts = flatten_to_stmts(body)
        end = [stmts.pop()] if stmts and isinstance(stmts[-1], _ENDS) else []
        if len(stmts) < 2:
            return body
        before = build_stmt_dependency_graph(SeqStmts(type(body.stmts)(stmts), body.span), None, self._sharing).before
        _keep_behind_loops(stmts, before)
        keys = self._keys(stmts)
        order = _sorted(before, keys.__getitem__)
        if len(order) < len(stmts):
            raise InternalError("statements of a pipelined body depend on each other in a circle", body.span)
        if order == list(range(len(stmts))):
            return body
        return seq([*(stmts[i] for i in order), *end], body.span)


def _keep_behind_loops(stmts: list[Stmt], before: list[set[int]]) -> None:
    """Operands of the cube stay behind the loops they are behind: L0 has no room for them while those run."""
    loops: set[int] = set()
    for position, stmt in enumerate(stmts):
        call = _call(stmt)
        if isinstance(stmt, (ForStmt, WhileStmt)):
            loops.add(position)
        elif loops and call is not None and _fills_operand(call):
            before[position] |= loops


class _Alternated(Rewriter):
    """Gives the accumulators of a loop's stages to two stages in turn: more are never in use at once."""

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        call = op.value
        if not isinstance(call, Call) or not is_accumulator(call) or MEMBERSHIP not in call.attrs:
            return op
        place = ",".join(f"{group}:{stage % 2}" for group, stage in _membership(call))
        return op.replace(value=call.replace(attrs={**call.attrs, MEMBERSHIP: place}))


def _sorted(before: list[set[int]], key: Callable[[int], _Key]) -> list[int]:
    """Positions in order: always the least by ``key`` among those that nothing left must precede."""
    waiting = [len(b) for b in before]
    after: list[list[int]] = [[] for _ in before]
    for position, earlier in enumerate(before):
        for e in earlier:
            after[e].append(position)
    ready: list[_Key] = []
    for position, count in enumerate(waiting):
        if count == 0:
            heappush(ready, key(position))
    order: list[int] = []
    while ready:
        position = heappop(ready).position
        order.append(position)
        for later in after[position]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heappush(ready, key(later))
    return order


def _keys_for(attrs: Mapping[str, Any]) -> Callable[[list[Stmt]], list[_Key]]:
    """How the statements of a loop with these attributes are sorted."""
    if attrs.get(DOUBLE_BUFFER_C):
        return _paired_keys
    return _keys if attrs.get(OVERLAP_STORES, True) else _plain_keys


def _plain_keys(stmts: list[Stmt]) -> list[_Key]:
    """Scalars and loads first; what computes and stores as written."""
    return [_Key(_tier(stmt, _call(stmt)), (), False, position) for position, stmt in enumerate(stmts)]


def _paired_keys(stmts: list[Stmt]) -> list[_Key]:
    """What computes and stores in pairs of stages: stages are those of the accumulators."""
    groups = {pair[0] for s in stmts if (c := _call(s)) is not None and is_accumulator(c) for pair in _membership(c)}
    stages: dict[Var, int] = {}
    drained: set[Var] = set()
    keys: list[_Key] = []
    for position, stmt in enumerate(stmts):
        call = _call(stmt)
        found = [stage for group, stage in _membership(call) if group in groups]
        reads = [a for a in call.args if isinstance(a, Var)] if call is not None else []
        stage = found[0] if found else max((stages.get(a, 0) for a in reads), default=0)
        drains = any(a in drained for a in reads)
        if isinstance(stmt, AssignStmt):
            stages[stmt.var] = stage
            if call is not None and is_accumulator(call):
                drained.add(stmt.var)
        tier = _tier(stmt, call)
        keys.append(_Key(tier, ((0, stage // 2),) if tier == 2 else (), drains, position))
    return keys


def _keys(stmts: list[Stmt]) -> list[_Key]:
    stages: dict[Var, tuple[tuple[int, int], ...]] = {}
    keys: list[_Key] = []
    for position, stmt in enumerate(stmts):
        call = _call(stmt)
        name = call.op.name if call is not None else ""
        stage = _membership(call)
        if name in _STORES and call is not None and not stage:
            # A store leaves with the stage that made its tile.
            source = call.args[0]
            stage = stages.get(source, ()) if isinstance(source, Var) else ()
        elif call is not None and not stage and is_accumulator(call):
            # A product is of the stage that brought its operands: it drains before the next one fills L0C.
            stage = max((stages.get(a, ()) for a in call.args if isinstance(a, Var)), key=len, default=())
        if isinstance(stmt, AssignStmt):
            stages[stmt.var] = stage
        keys.append(_Key(_tier(stmt, call), stage, name in _STORES, position))
    return keys


def _call(stmt: Stmt) -> Call | None:
    value: Expr | None = None
    if isinstance(stmt, AssignStmt):
        value = stmt.value
    elif isinstance(stmt, EvalStmt):
        value = stmt.expr
    return value if isinstance(value, Call) else None


def _tier(stmt: Stmt, call: Call | None) -> int:
    """0 for scalars, 1 for loads, 2 for what computes and stores."""
    if call is not None and isinstance(stmt, AssignStmt):
        if call.op.name in _LOADS or _fills_operand(call):
            return 1
        if call.op.name in _STORES:
            return 2
    return 0 if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, ScalarType) else 2


def _fills_operand(call: Call) -> bool:
    """Whether a call extracts an operand of the cube from Mat."""
    if call.op.name != "tile.extract":
        return False
    source, made = (getattr(t, "memory_space", None) for t in (call.args[0].type, call.type))
    return source is MemorySpace.Mat and made in _OPERANDS


def _membership(call: Call | None) -> tuple[tuple[int, int], ...]:
    places = call.attrs.get(MEMBERSHIP) if call is not None else None
    if not places:
        return ()
    pairs = (place.split(":") for place in places.split(","))
    return tuple(sorted((int(group), int(stage)) for group, stage in pairs))
