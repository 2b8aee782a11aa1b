"""Where tiles live before InferTileMemorySpace has said so everywhere.

A tile whose type names no memory is in that of the tile it is a view of. A producer that leaves the choice open is
placed in Vec, unless something that uses it, or a view of it, asks for another memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, WhileStmt, last_yield
from ...ir.types import TileType
from ...ir.visitor import Visitor
from ...ops.registry import decl_of
from .edges import SLICE, landing

_TRANSFERS = frozenset({"tile.extract", "tile.move"})


class TileSpaces(Visitor):
    """The memory of every tile of a function."""

    def __init__(self, function: Function) -> None:
        self._roots: dict[Var, Var] = {}
        self._elsewhere: set[Var] = set()
        self.visit(function.body)

    def of(self, tile: Var) -> MemorySpace | None:
        """The memory of ``tile``; None when it is open and not every use agrees on Vec."""
        root = self._root(tile)
        for type in (tile.type, root.type):
            if isinstance(type, TileType) and type.memory_space is not None:
                return type.memory_space
        return None if root in self._elsewhere else MemorySpace.Vec

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, Call):
            self._demand(value)
            value = value.args[0] if value.op.name == SLICE else landing(value)
        if isinstance(value, Var):
            self._roots[op.var] = self._root(value)

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        if isinstance(op.expr, Call):
            self._demand(op.expr)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        inits = [arg.init_value for arg in op.iter_args]
        self._join(op.iter_args, inits)
        self.visit(op.body)
        made = last_yield(op.body)
        for init, carried in zip(inits, made.values if made is not None else ()):
            self._claim(init, carried)
        self._join(op.return_vars, inits)

    visit_while_stmt = visit_for_stmt

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.generic(op)
        made = last_yield(op.then_body)
        if made is not None:
            self._join(op.return_vars, made.values)

    def _root(self, tile: Var) -> Var:
        return self._roots.get(tile, tile)

    def _join(self, tiles: Iterable[Var], sources: Iterable[Expr]) -> None:
        for tile, source in zip(tiles, sources):
            if isinstance(source, Var):
                self._roots[tile] = self._root(source)

    def _claim(self, init: Expr, carried: Expr) -> None:
        """A loop-carried tile is where the body puts it."""
        space = getattr(carried.type, "memory_space", None)
        if isinstance(init, Var) and space not in (None, MemorySpace.Vec):
            self._elsewhere.add(self._root(init))

    def _demand(self, call: Call) -> None:
        decl = decl_of(call)
        if decl is None:
            return
        if call.op.name in _TRANSFERS:
            wanted = call.kwargs.get("target_memory", decl.param("target_memory").default)
            if wanted is not MemorySpace.Vec:
                self._away(call.args[0])
            return
        for param, arg in zip(decl.args, call.args):
            spaces = decl.spaces.get(param.name)
            if spaces and spaces[0] is not MemorySpace.Vec:
                self._away(arg)

    def _away(self, tile: Expr) -> None:
        if isinstance(tile, Var):
            self._elsewhere.add(self._root(tile))
