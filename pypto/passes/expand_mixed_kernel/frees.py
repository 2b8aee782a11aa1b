"""Gives the slot of every popped tile back, after the last statement that reads it.

A free gives back the slot popped first, whatever tile it names. So slots are freed in the order of the pops, in the
block of the pop, and before a loop or branch that pops, too. A tile that is needed for longer than that, or leaves its
block, or stands in the way of a pop for want of slots, is copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...errors import InternalError, user_error
from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.node import NodeList, same_objects
from ...ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt, YieldStmt, call_of, flatten_to_stmts, seq
from ...ir.types import TileType
from ...ir.visitor import find_all, find_calls
from ...ops.registry import call, decl_of
from ..bodies import BodyRewriter, FlowVisitor
from ..core_affinity import FREE_OF


def pop_of(stmt: Stmt) -> Call | None:
    """The pop a statement is."""
    return call_of(stmt, *FREE_OF) if isinstance(stmt, AssignStmt) else None


def with_frees(body: Stmt, slots: int) -> Stmt:
    """``body`` with a free for every pop that has none; frees that come before the tile's last use go after it.

    Raises KernelValueError for a tile that has to be copied and cannot be.
    """
    return _Freer(_Flow(body), slots).body(body)


class _Held(NamedTuple):
    """A popped tile: the statement that pops it, the names by which it is read, and the free of it."""

    stmt: AssignStmt
    pop: Call
    names: set[Var]
    free: EvalStmt

    @property
    def ring(self) -> tuple[str, int]:
        return self.pop.op.name, self.pop.kwargs.get("id", 0)


class _Freer(BodyRewriter):
    def __init__(self, flow: _Flow, slots: int) -> None:
        super().__init__()
        self._flow, self._slots = flow, slots

    def body(self, body: Any) -> Any:
        made = super().body(body)
        before = stmts = flatten_to_stmts(made)
        held: list[_Held] = []
        for stmt in before:
            pop = pop_of(stmt)
            if pop is not None and isinstance(stmt, AssignStmt):
                stmts, one = _taken(stmts, stmt, pop, self._flow.aliases(stmt.var))
                held.append(one)
        for ring in dict.fromkeys(h.ring for h in held):
            stmts = _in_order(stmts, [h for h in held if h.ring == ring], self._slots)
        return made if same_objects(stmts, before) else seq(stmts, made.span)


def _in_order(stmts: list[Stmt], held: list[_Held], slots: int) -> list[Stmt]:
    """``stmts`` with the tiles of one ring freed, first popped first freed."""
    copied = _copied(stmts, held, slots)
    while copied is not None:
        stmts, held = copied
        copied = _copied(stmts, held, slots)
    ends = _ends(stmts, held)
    made: list[Stmt] = []
    for i, stmt in enumerate(stmts):
        done = [h for h, end in zip(held, ends) if end == i]
        if isinstance(stmt, (YieldStmt, ReturnStmt)):
            for one in done:
                copies, stmt = _leaving(stmt, one.names)
                made += [*copies, one.free]
            made.append(stmt)
        else:
            made += [stmt, *(h.free for h in done)]
    return made


def _ends(stmts: Sequence[Stmt], held: Sequence[_Held]) -> list[int]:
    """After which statement the slot of each tile is freed."""
    ends: list[int] = []
    for one in held:
        last = max(i for i, s in enumerate(stmts) if s is one.stmt or _reads(s, one.names))
        ends.append(max([last, *ends[-1:]]))
    return ends


def _copied(stmts: list[Stmt], held: list[_Held], slots: int) -> tuple[list[Stmt], list[_Held]] | None:
    """``stmts`` with one more tile copied, and the tiles as they are read then; None when frees can be in order."""
    ends = _ends(stmts, held)
    starts = [_position(stmts, h.stmt) for h in held]
    for i, stmt in enumerate(stmts):
        direct = i in starts
        if direct or _pops(stmt, held[0].ring):
            until = i + 1 if direct else i
            waiting = [h for h, start, end in zip(held, starts, ends) if start < i and end >= until]
            if len(waiting) >= (slots if direct else 1):
                return _copy(stmts, held, waiting[0])
    return None


def _position(stmts: Sequence[Stmt], stmt: Stmt) -> int:
    return next(i for i, s in enumerate(stmts) if s is stmt)


def _pops(stmt: Stmt, ring: tuple[str, int]) -> bool:
    return any(c.kwargs.get("id", 0) == ring[1] for c in find_calls(stmt, ring[0]))


def _copy(stmts: list[Stmt], held: list[_Held], one: _Held) -> tuple[list[Stmt], list[_Held]]:
    """A copy of what is valid of a popped tile takes its place from the pop on."""
    shown = _shown(stmts, one)
    var, kind = shown.var, tile_type_of(shown.var)
    if kind.memory_space is not MemorySpace.Vec:
        raise user_error(
            ValueError,
            f"{written_name(var.name_hint)!r} comes from the vector cores and is needed after later ones come: slots "
            "of a pipe are given back in the order of their tiles, and nothing copies a tile within Mat",
            var.span if var.span.is_valid() else one.stmt.span,
            "use it before the next tile crosses, or store it to a tensor and load it",
        )
    slot = Var(f"{var.name_hint}_popped", kind, var.span)
    move = call("tile.move", slot, target_memory=kind.memory_space, span=one.stmt.span)
    at = _position(stmts, shown)
    named = shown.replace(var=slot)
    made = [*stmts[:at], named, AssignStmt(var, move.replace(type=kind), one.stmt.span), *stmts[at + 1 :]]
    if shown is one.stmt:
        again = _Held(named, one.pop, {slot}, one.free.replace(expr=_freeing(one.free, slot)))
    else:
        again = one._replace(names={one.stmt.var, slot})
    return made, [again if h is one else h for h in held]


def _shown(stmts: Sequence[Stmt], one: _Held) -> AssignStmt:
    """The pop, or what says of which region the tile is seen, when that is all that is used of it."""
    uses = [s for s in stmts if s is not one.stmt and _reads(s, {one.stmt.var})]
    last = uses[0] if len(uses) == 1 else None
    return last if isinstance(last, AssignStmt) and call_of(last, "tile.set_validshape") is not None else one.stmt


def _leaving(leaving: YieldStmt | ReturnStmt, names: set[Var]) -> tuple[list[Stmt], YieldStmt | ReturnStmt]:
    """Copies of a popped tile that its block hands on, and the statement that hands on the copies."""
    copies: dict[Var, Var] = {}
    made: list[Stmt] = []
    for value in leaving.values:
        if isinstance(value, Var) and value in names and value not in copies:
            copy = call("tile.move", value, target_memory=tile_type_of(value).memory_space, span=leaving.span)
            copies[value] = Var(f"{value.name_hint}_copy", copy.type, value.span)
            made.append(AssignStmt(copies[value], copy, leaving.span))
    values = NodeList(copies.get(v, v) if isinstance(v, Var) else v for v in leaving.values)
    field = "values" if isinstance(leaving, YieldStmt) else "value"
    return made, leaving.replace(**{field: values})


class _Flow(FlowVisitor):
    """Which variables show the buffer of which: other names, views, what branches and loops hand on."""

    def __init__(self, body: Stmt) -> None:
        super().__init__()
        self.shown_by: dict[Var, list[Var]] = {}
        self.visit(body)

    def flow(self, value: Expr, var: Var) -> None:
        if isinstance(value, Var) and isinstance(value.type, TileType):
            self.shown_by.setdefault(value, []).append(var)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value, decl = op.value, decl_of(op.value)
        if decl is None or not isinstance(value, Call):
            self.flow(value, op.var)
            return
        shared = decl.inherits or decl.reuses
        if shared is not None:
            self.flow(value.args[decl.arg_index(shared)], op.var)

    def aliases(self, var: Var) -> set[Var]:
        found, pending = {var}, [var]
        while pending:
            for shown in self.shown_by.get(pending.pop(), ()):
                if shown not in found:
                    found.add(shown)
                    pending.append(shown)
        return found


def _reads(stmt: Stmt, names: set[Var]) -> bool:
    return not names.isdisjoint(find_all(stmt, Var))


def _taken(stmts: list[Stmt], stmt: AssignStmt, pop: Call, names: set[Var]) -> tuple[list[Stmt], _Held]:
    """A popped tile, and ``stmts`` without the free that its author wrote."""
    for old in stmts:
        free = call_of(old, FREE_OF[pop.op.name])
        if free is not None and isinstance(old, EvalStmt) and free.args[0] in names:
            made = old if free.args[0] is stmt.var else old.replace(expr=_freeing(old, stmt.var))
            return [s for s in stmts if s is not old], _Held(stmt, pop, names, made)
    made = call(FREE_OF[pop.op.name], stmt.var, span=stmt.span)
    if "id" in pop.kwargs:
        made = made.replace(kwargs={**made.kwargs, "id": pop.kwargs["id"]})
    return stmts, _Held(stmt, pop, names, EvalStmt(made, stmt.span))


def _freeing(free: EvalStmt, var: Var) -> Call:
    call = free.expr
    if not isinstance(call, Call):
        raise InternalError("a free that is no call", free.span)
    return call.replace(args=NodeList([var, *call.args[1:]]))
