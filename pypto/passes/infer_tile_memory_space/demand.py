"""What the consumers of each tile want of its memory."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt
from ...ir.types import TileType
from ...ir.visitor import Visitor
from ...ops.registry import OpDecl, decl_of, rebind

Allowed = tuple[MemorySpace, ...]
_TRANSFERS = frozenset({"tile.move", "tile.extract"})
"""Operators that want their operand wherever a move to their own target starts."""


def is_tile(value: Expr) -> bool:
    return isinstance(value.type, TileType)


def beside(decl: OpDecl) -> str | None:
    """The argument whose memory the result shares: what it is a view of, or is written beside."""
    if decl.inherits is not None:
        return decl.inherits
    space = decl.result_space
    return space if isinstance(space, str) and not decl.param(space).is_attr else None


class Demands(Visitor):
    """For each tile variable, the lists of memories its consumers accept, views and copies of it included."""

    def __init__(self, function: Function) -> None:
        self._wants: dict[Var, set[Allowed]] = {}
        self._edges: list[tuple[Var, Var]] = []
        self._targets: list[list[Sequence[Var]]] = []
        self._made_in: dict[Var, MemorySpace] = {}
        self.visit(function.body)
        changed = True
        while changed:
            changed = False
            for source, target in reversed(self._edges):
                wants = self._wants.get(target)
                if wants and not wants <= self._wants.setdefault(source, set()):
                    self._wants[source] |= wants
                    changed = True

    def of(self, var: Var) -> list[Allowed]:
        return sorted(self._wants.get(var, ()), key=lambda allowed: [s.value for s in allowed])

    def _edge(self, source: Expr, target: Var) -> None:
        if isinstance(source, Var) and is_tile(source):
            self._edges.append((source, target))

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, Var):
            self._edge(value, op.var)
        elif isinstance(value, Call):
            decl = decl_of(value)
            shared = beside(decl) if decl is not None and is_tile(op.var) else None
            if decl is not None and shared is not None and decl.arg_index(shared) < len(value.args):
                self._edge(value.args[decl.arg_index(shared)], op.var)
            if decl is not None and isinstance(decl.result_space, MemorySpace):
                self._made_in[op.var] = decl.result_space
            self.visit(value)
        else:
            self.visit(value)

    def visit_call(self, op: Call) -> None:
        decl = decl_of(op)
        if op.op.name in _TRANSFERS and decl is not None:
            self._want(op.args[0], (rebind(op)["target_memory"],))
        for i, arg in enumerate(op.args):
            if is_tile(arg) and decl is not None and i < len(decl.args):
                allowed = decl.spaces.get(decl.args[i].name)
                if allowed:
                    self._want(arg, tuple(allowed))
            if not isinstance(arg, Var):
                self.visit(arg)

    def _want(self, value: Expr, allowed: Allowed) -> None:
        """``value`` is wanted in ``allowed``, and so is what a nested view of it shows."""
        if isinstance(value, Var):
            self._wants.setdefault(value, set()).add(allowed)
            return
        decl = decl_of(value)
        shared = beside(decl) if decl is not None else None
        if isinstance(value, Call) and decl is not None and shared is not None:
            self._want(value.args[decl.arg_index(shared)], allowed)

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self.visit(op.condition)
        self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> None:
        for arg, result in zip(op.iter_args, op.return_vars):
            self._edge(arg.init_value, arg)
            self._edge(arg, result)
        self._scoped([op.iter_args, op.return_vars], op.body)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit(op.condition)
        for body in (op.then_body, op.else_body):
            if body is not None:
                self._scoped([op.return_vars], body)

    def _scoped(self, targets: list[Sequence[Var]], body: Stmt) -> None:
        self._targets.append(targets)
        self.visit(body)
        self._targets.pop()

    def visit_yield_stmt(self, op: YieldStmt) -> None:
        for value in op.values:
            self.visit(value)
        for group in self._targets[-1] if self._targets else ():
            for value, target in zip(op.values, group):
                self._edge(value, target)
                made = self._made_in.get(value) if isinstance(value, Var) else None
                if made is not None:
                    self._wants.setdefault(target, set()).add((made,))
