"""SkewCrossCorePipeline: a core that hands tiles over first runs ahead of the core that hands them back.

A `pl.pipeline` loop of one core that pushes a tile and later pops one does nothing between but wait. Here its pushes
run some iterations ahead: a prologue pushes the first tiles, the loop pushes the next and pops the earlier ones, an
epilogue pops the last. What the pipes carry keeps its order, and no more tiles are under way than a ring has slots.
A push stays behind what is done before it; of kernels whose cores share memory ExpandMixedKernel leaves no such loops.
Loops that cannot be pulled apart so, among them those of the other core, become plain loops: their peer running ahead
is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ..errors import InternalError
from ..ir import expr as E
from ..ir.enums import ForKind
from ..ir.expr import Call, Expr, IterArg, Var, index_const
from ..ir.functor import deep_clone
from ..ir.program import Function, summarize
from ..ir.scalar import binary
from ..ir.stmt import AssignStmt, ForStmt, Stmt, YieldStmt, call_of, flatten_to_stmts, seq
from ..ir.types import ScalarType, TensorType
from ..ir.visitor import find_all, find_calls
from ..ops.registry import ArgEffect, arg_effect, decl_of
from ..ops.rules import value as known
from .base import P, Pass, function_pass
from .bodies import BodyRewriter
from .core_affinity import POPS, PUSHES, SETUPS, STAGES, without_stages
from .pipe_workspace import slots_of

_PUSHES: Final = frozenset(PUSHES.values())
_POPS: Final = frozenset(POPS.values())
_KEPT = {P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.TileMemoryInferred, P.NormalizedStmtStructure}


def skew_cross_core_pipeline() -> Pass:
    """The pass; see the module."""
    return function_pass("SkewCrossCorePipeline", _skew, _KEPT, _KEPT, looks_for=tuple(_PUSHES))


def _skew(function: Function) -> Function:
    ops = summarize(function).ops
    if ops.isdisjoint(_PUSHES) or ops.isdisjoint(_POPS):
        return function
    setups = find_calls(function.body, *SETUPS.values())
    return _Skewer(min((slots_of(s) for s in setups), default=None)).rewrite(function)


class _Halves(NamedTuple):
    """What of a body makes and pushes a tile, and what is left; values the rest computes once more are in both."""

    ahead: list[Stmt]
    behind: list[Stmt]


class _Skewer(BodyRewriter):
    def __init__(self, slots: int | None) -> None:
        super().__init__()
        self._slots = slots

    def visit_for_stmt(self, op: ForStmt) -> object:
        op = op.replace(body=self.body(op.body))
        stages = op.attrs.get(STAGES, 1)
        if op.kind is not ForKind.Pipeline or stages < 2 or not _crosses_both_ways(op.body):
            return op
        bounds = [known(e) for e in (op.start, op.stop, op.step)]
        halves = _pulled_apart(op)
        start, stop, step = bounds
        if halves is None or start is None or stop is None or step is None or step < 1:
            return without_stages(op)
        trips = range(start, stop, step)
        depth = self._depth(len(trips), max(2, stages - 1))
        return without_stages(op) if depth == 0 else _skewed(op, halves, trips, depth)

    def _depth(self, trips: int, wanted: int) -> int:
        """How far ahead pushes may run: the loop comes out even, and the tiles under way have slots."""
        most = wanted if self._slots is None else min(wanted, self._slots)
        return next((d for d in range(most, 0, -1) if trips % d == 0 and trips >= 2 * d), 0)


def _names(stmt: Stmt) -> list[str]:
    return [n.op.name for n in find_all(stmt, Call)]


def _crosses_both_ways(body: Stmt) -> bool:
    names = set(_names(body))
    return not names.isdisjoint(_PUSHES) and not names.isdisjoint(_POPS)


def _reads(stmt: Stmt) -> set[Var]:
    return set(find_all(stmt, Var))


def _pulled_apart(op: ForStmt) -> _Halves | None:
    """The halves of a loop that pushes one tile before it pops one, None for any other."""
    stmts = [s for s in flatten_to_stmts(op.body) if not isinstance(s, YieldStmt)]
    every = _names(op.body)
    pushes = [i for i, s in enumerate(stmts) if _leaf_name(s) in _PUSHES]
    pops = [i for i, s in enumerate(stmts) if _leaf_name(s) in _POPS]
    if sum(n in _PUSHES for n in every) != 1 or sum(n in _POPS for n in every) != 1:
        return None
    if len(pushes) != 1 or len(pops) != 1 or pops[0] < pushes[0]:
        return None
    ahead = _slice(stmts, pushes[0])
    if ahead is None:
        return None
    if any(_acts(s) for s in stmts[: pushes[0]] if not any(s is a for a in ahead)):
        return None
    made = {s.var: s for s in ahead if isinstance(s, AssignStmt)}
    rest = [s for s in stmts if not any(s is a for a in ahead)]
    again = _recomputed([*rest, *flatten_to_stmts(op.body)[-1:]], made)
    if again is None or any(a in _reads(s) for s in ahead for a in op.iter_args) or _disturbs(rest, ahead):
        return None
    return _Halves(ahead, [s for s in stmts if any(s is r for r in (*again, *rest))])


def _leaf_name(stmt: Stmt) -> str:
    call = call_of(stmt)
    return call.op.name if call is not None else ""


def _acts(stmt: Stmt) -> bool:
    """Whether a statement does more than give values: a push after it may say that it is done."""
    decls = [decl_of(call) for call in find_all(stmt, Call)]
    return any(decl is None or not (decl.pure or decl.reuses) for decl in decls)


def _slice(stmts: Sequence[Stmt], push: int) -> list[Stmt] | None:
    """The push and the statements it needs, in order; None when one of them has an effect of its own."""
    wanted = _reads(stmts[push])
    found = [stmts[push]]
    for stmt in reversed(stmts[:push]):
        if not isinstance(stmt, AssignStmt) or stmt.var not in wanted:
            if not isinstance(stmt, AssignStmt) and wanted & {n.var for n in find_all(stmt, AssignStmt)}:
                return None
            continue
        decl = decl_of(stmt.value)
        if isinstance(stmt.value, Call) and (decl is None or not (decl.pure or decl.reuses)):
            return None
        found.append(stmt)
        wanted |= _reads(stmt)
    return found[::-1]


def _recomputed(rest: Sequence[Stmt], made: dict[Var, AssignStmt]) -> list[Stmt] | None:
    """Scalars of the first half that the second needs, too; None when it needs a tile."""
    found: list[Stmt] = []
    pending = [v for s in rest for v in _reads(s) if v in made]
    while pending:
        stmt = made[pending.pop()]
        if any(stmt is f for f in found):
            continue
        if not isinstance(stmt.var.type, ScalarType) or isinstance(stmt.value, Call):
            return None
        found.append(stmt)
        pending += [v for v in _reads(stmt) if v in made]
    return found


def _disturbs(rest: Sequence[Stmt], ahead: Sequence[Stmt]) -> bool:
    """Whether the second half writes a tensor that the first reads: it must not be read earlier then."""
    calls = [n for s in rest for n in find_all(s, Call)]
    tensors = [(a, arg_effect(n, i)) for n in calls for i, a in enumerate(n.args) if isinstance(a.type, TensorType)]
    written = {a for a, effect in tensors if effect is not ArgEffect.Read}
    return any(v in written for s in ahead for v in _reads(s))


def _skewed(op: ForStmt, halves: _Halves, trips: range, depth: int) -> list[Stmt]:
    step = trips.step
    made: list[Stmt] = []
    for i in range(depth):
        made += _copy(halves.ahead, op, index_const(trips[i]))[0]
    loop_var = Var(op.loop_var.name_hint, op.loop_var.type, op.loop_var.span)
    carried = [IterArg(a.name_hint, a.type, a.init_value, a.span) for a in op.iter_args]
    body: list[Stmt] = []
    for i in range(depth):
        body += _copy(halves.ahead, op, _shifted(loop_var, i * step))[0]
    values: Sequence[Expr] = carried
    for i in range(depth):
        stmts, values = _copy(halves.behind, op, _shifted(loop_var, (i - depth) * step), values)
        body += stmts
    if carried:
        body.append(YieldStmt(values, op.span))
    results = [Var(v.name_hint, v.type, v.span) for v in op.return_vars]
    first, stride = index_const(trips[depth]), index_const(depth * step)
    made.append(ForStmt(loop_var, first, op.stop, stride, carried, seq(body, op.body.span), results, op.span))
    values = results
    for i in range(depth):
        stmts, values = _copy(halves.behind, op, index_const(trips[len(trips) - depth + i]), values)
        made += stmts
    return [*made, *(AssignStmt(v, value, op.span) for v, value in zip(op.return_vars, values))]


def _shifted(var: Var, by: int) -> Expr:
    if by == 0:
        return var
    return binary(E.Add if by > 0 else E.Sub, var, index_const(abs(by)))


def _copy(stmts: Sequence[Stmt], op: ForStmt, at: Expr, carried: Sequence[Expr] = ()) -> tuple[list[Stmt], list[Expr]]:
    """A half for iteration ``at`` on what was carried to it, and what it carries on."""
    last = flatten_to_stmts(op.body)[-1:] if carried else []
    made, _ = deep_clone(seq([*stmts, *last], op.span), [(op.loop_var, at), *zip(op.iter_args, carried)])
    if not isinstance(made, Stmt):
        raise InternalError("a clone of a body is none", op.span)
    found = flatten_to_stmts(made)
    if not last:
        return found, []
    handed = found[-1]
    if not isinstance(handed, YieldStmt):
        raise InternalError("a loop with carries does not end in a yield", op.span)
    return found[:-1], list(handed.values)


