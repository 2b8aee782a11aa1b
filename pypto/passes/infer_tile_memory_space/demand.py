"""What the consumers of each tile want of its memory."""

from __future__ import annotations

from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, YieldStmt
from ...ir.types import TileType
from ...ops.registry import OpDecl, decl_of
from ..bodies import FlowVisitor

Allowed = tuple[MemorySpace, ...]


def is_tile(value: Expr) -> bool:
    return isinstance(value.type, TileType)


def beside(decl: OpDecl) -> str | None:
    """The argument whose memory the result shares: what it is a view of, or is written beside."""
    if decl.inherits is not None:
        return decl.inherits
    space = decl.result_space
    return space if isinstance(space, str) and not decl.param(space).is_attr else None


def wanted(decl: OpDecl, index: int) -> Allowed:
    """The memories to put an argument in: not Acc to be assembled into, which takes what `acc_windows` finds."""
    allowed = decl.spaces.get(decl.args[index].name, ())
    return tuple(s for s in allowed if decl.name != "tile.assemble" or s is not MemorySpace.Acc)


class Demands(FlowVisitor):
    """For each tile variable, the lists of memories its consumers accept, views and copies of it included."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._wants: dict[Var, set[Allowed]] = {}
        self._edges: list[tuple[Var, Var]] = []
        self._made_in: dict[Var, MemorySpace] = {}
        self.turned: set[Expr] = set()
        """Tiles that rows are gathered into as columns, and what they come of."""
        self.visit(function.body)
        changed = True
        while changed:
            changed = False
            for source, target in reversed(self._edges):
                wants = self._wants.get(target)
                if wants and not wants <= self._wants.setdefault(source, set()):
                    self._wants[source] |= wants
                    changed = True
                if target in self.turned and source not in self.turned:
                    self.turned.add(source)
                    changed = True

    def of(self, var: Var) -> list[Allowed]:
        return sorted(self._wants.get(var, ()), key=lambda allowed: [s.value for s in allowed])

    def flow(self, value: Expr, var: Var) -> None:
        if isinstance(value, Var) and is_tile(value):
            self._edges.append((value, var))

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, Var):
            self.flow(value, op.var)
        elif isinstance(value, Call):
            decl = decl_of(value)
            shared = beside(decl) if decl is not None and is_tile(op.var) else None
            if decl is not None and shared is not None and decl.arg_index(shared) < len(value.args):
                self.flow(value.args[decl.arg_index(shared)], op.var)
            if decl is not None and isinstance(decl.result_space, MemorySpace):
                self._made_in[op.var] = decl.result_space
            self.visit(value)
        else:
            self.visit(value)

    def visit_call(self, op: Call) -> None:
        decl = decl_of(op)
        if op.op.name == "tile.gather_row" and op.kwargs.get("transpose"):
            self.turned.add(op.args[0])
        for i, arg in enumerate(op.args):
            if is_tile(arg) and decl is not None and i < len(decl.args):
                allowed = wanted(decl, i)
                if allowed:
                    self._want(arg, allowed)
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

    def visit_yield_stmt(self, op: YieldStmt) -> None:
        super().visit_yield_stmt(op)
        for value, target in self.handed_on(op):
            made = self._made_in.get(value) if isinstance(value, Var) else None
            if made is not None:
                self._wants.setdefault(target, set()).add((made,))
