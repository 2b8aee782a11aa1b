"""Gives the slot of every popped tile back, after the last statement that reads it.

The free stands in the block of the pop, so that both happen equally often. A tile that leaves its block is copied
first: its slot may be overwritten once it is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.expr import Call, Expr, Var, tile_type_of
from ...ir.node import NodeList, same_objects
from ...ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt, YieldStmt, call_of, flatten_to_stmts, seq
from ...ir.types import TileType
from ...ir.visitor import find_all
from ...ops.registry import call, decl_of
from ..bodies import BodyRewriter, FlowVisitor
from ..core_affinity import FREE_OF


def pop_of(stmt: Stmt) -> Call | None:
    """The pop a statement is."""
    return call_of(stmt, *FREE_OF) if isinstance(stmt, AssignStmt) else None


def with_frees(body: Stmt) -> Stmt:
    """``body`` with a free for every pop that has none; frees that come before the tile's last use go after it."""
    return _Freer(_Flow(body)).body(body)


class _Freer(BodyRewriter):
    def __init__(self, flow: _Flow) -> None:
        super().__init__()
        self._flow = flow

    def body(self, body: Any) -> Any:
        made = super().body(body)
        before = stmts = flatten_to_stmts(made)
        for stmt in before:
            pop = pop_of(stmt)
            if pop is not None and isinstance(stmt, AssignStmt):
                stmts = _freed(stmts, stmt, pop, self._flow.aliases(stmt.var))
        return made if stmts is before else seq(stmts, made.span)


def _freed(stmts: list[Stmt], stmt: AssignStmt, pop: Call, names: set[Var]) -> list[Stmt]:
    """``stmts`` with the tile ``stmt`` pops freed."""
    start = next(i for i, s in enumerate(stmts) if s is stmt)
    free = _free_of(stmts[start + 1 :], names, pop)
    rest = [s for s in stmts if s is not free]
    last = start
    for i, s in enumerate(rest[start + 1 :], start + 1):
        if _reads(s, names):
            last = i
    made = call(FREE_OF[pop.op.name], stmt.var, span=stmt.span)
    if isinstance(free, EvalStmt) and isinstance(free.expr, Call):
        old = free.expr
        made = old if old.args[0] is stmt.var else old.replace(args=NodeList([stmt.var, *old.args[1:]]))
    elif "id" in pop.kwargs:
        made = made.replace(kwargs={**made.kwargs, "id": pop.kwargs["id"]})
    freeing = EvalStmt(made, stmt.span) if not isinstance(free, EvalStmt) else free.replace(expr=made)
    leaving = rest[last]
    if isinstance(leaving, (YieldStmt, ReturnStmt)):
        return [*rest[:last], *_leaving(leaving, names, freeing), *rest[last + 1 :]]
    made_stmts = [*rest[: last + 1], freeing, *rest[last + 1 :]]
    return stmts if same_objects(stmts, made_stmts) else made_stmts


def _leaving(leaving: YieldStmt | ReturnStmt, names: set[Var], free: EvalStmt) -> list[Stmt]:
    """A popped tile that its block hands on: the copy goes, the tile is freed."""
    copies: dict[Var, Var] = {}
    made: list[Stmt] = []
    for value in leaving.values:
        if isinstance(value, Var) and value in names and value not in copies:
            copy = call("tile.move", value, target_memory=tile_type_of(value).memory_space, span=leaving.span)
            copies[value] = Var(f"{value.name_hint}_copy", copy.type, value.span)
            made.append(AssignStmt(copies[value], copy, leaving.span))
    values = NodeList(copies.get(v, v) if isinstance(v, Var) else v for v in leaving.values)
    field = "values" if isinstance(leaving, YieldStmt) else "value"
    return [*made, free, leaving.replace(**{field: values})]


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


def _free_of(stmts: Sequence[Stmt], names: set[Var], pop: Call) -> Stmt | None:
    for stmt in stmts:
        free = call_of(stmt, FREE_OF[pop.op.name])
        if free is not None and free.args[0] in names:
            return stmt
    return None
