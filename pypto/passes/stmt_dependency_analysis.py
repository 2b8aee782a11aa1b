"""Which statements of a region must keep their order.

A statement depends on the definitions it reads. It also depends on what touched the same buffer before it, where either
writes: a store without a name for its result is read back through the tensor it wrote. Variables that may share a
buffer count as one. Operators of the system, and effects without an operand, keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import Diagnostic, VerificationError
from ..ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ..ir.memref import MemRef
from ..ir.node import IRNode
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt
from ..ir.types import ShapedType
from ..ir.visitor import Visitor
from ..ops.registry import ArgEffect, arg_effect, decl_of
from .outlining import yielded


class StmtDependencyGraph:
    """The statements of a region and, for each, those that must come before it."""

    def __init__(self, stmts: list[Stmt], before: list[set[int]]) -> None:
        self.stmts = stmts
        self.before = before
        """For each statement, by position, the positions of those it directly depends on."""
        self._position = {id(s): i for i, s in enumerate(stmts)}

    def get_predecessors(self, stmt: Stmt) -> list[Stmt]:
        """What ``stmt`` directly depends on, in order."""
        return [self.stmts[i] for i in sorted(self.before[self._position[id(stmt)]])]


def build_stmt_dependency_graph(
    region: Stmt, program: Program | None = None, sharing: Sharing | None = None
) -> StmtDependencyGraph:
    """The dependencies among the statements of ``region``.

    With ``program``, raises VerificationError where a variable is read after a call it was handed to for writing.
    ``sharing`` knows the buffers of the whole function, by default those of the region.
    """
    if program is not None:
        check_inout_use_discipline(region, program)
    stmts = list(region.stmts) if isinstance(region, SeqStmts) else [region]
    return StmtDependencyGraph(stmts, _dependencies(stmts, sharing or Sharing(region)))


def check_inout_use_discipline(region: Stmt, program: Program) -> None:
    """Raises VerificationError when a variable passed as Out or InOut to a function is read after the call."""
    found = inout_use_diagnostics(region, program)
    if found:
        raise VerificationError("a variable is read after a call that writes it", found)


def inout_use_diagnostics(region: Stmt, program: Program) -> list[Diagnostic]:
    """What violates the rule that `check_inout_use_discipline` checks."""
    from .verifiers.driver import run
    from .verifiers.functions import InOutUseValid

    return run((InOutUseValid,), program, [Function("region", [], [], region, region.span)])


class Sharing(Visitor):
    """Which variables of tensors, tiles and arrays may share a buffer: one representative for all that may."""

    def __init__(self, root: IRNode) -> None:
        self._parent: dict[Var, Var] = {}
        self.visit(root)

    def find(self, var: Var) -> Var:
        """The representative of the buffer ``var`` may be in."""
        parent = self._parent
        top = var
        while top in parent:
            top = parent[top]
        while var is not top:
            parent[var], var = top, parent[var]
        return top

    def _join(self, a: Expr, b: Expr) -> None:
        if isinstance(a, Var) and isinstance(b, Var):
            x, y = self.find(a), self.find(b)
            if x is not y:
                self._parent[x] = y

    def define(self, var: Any) -> None:
        super().define(var)
        memref = declared(var)
        if memref is not None:
            self._join(var, memref.base)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.define(op.var)
        value = op.value
        if isinstance(value, TupleGetItemExpr):
            value = value.tuple
        if isinstance(value, (Var, Call, Submit)):
            for source in [value] if isinstance(value, Var) else _may_return(value):
                self._join(op.var, source)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        for var in (*op.iter_args, *op.return_vars):
            self.define(var)
        self.visit(op.body)
        for arg, value, result in zip(op.iter_args, yielded(op.body), op.return_vars):
            for other in (arg.init_value, value, result):
                self._join(arg, other)

    visit_while_stmt = visit_for_stmt

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.generic(op)
        for body in (op.then_body, op.else_body):
            for value, result in zip(yielded(body), op.return_vars):
                self._join(result, value)


def declared(var: Var) -> MemRef | None:
    """The allocation the author gave a variable: others may be in it too."""
    return var.type.memref if isinstance(var.type, ShapedType) else None


def _may_return(call: Call | Submit) -> Iterable[Expr]:
    """The arguments whose buffer the value of a call may be."""
    decl = decl_of(call)
    if decl is None or not isinstance(call, Call):
        return [a for a in call.args if isinstance(a.type, ShapedType)]
    if decl.inherits is not None:
        return [call.args[decl.arg_index(decl.inherits)]]
    return [a for i, a in enumerate(call.args) if arg_effect(call, i) is not ArgEffect.Read]


class _Footprint(Visitor):
    """What a statement reads, defines and touches."""

    def __init__(self, stmt: Stmt, sharing: Sharing) -> None:
        self.uses: set[Var] = set()
        self.defines: set[Var] = set()
        self.reads: set[Var] = set()
        self.writes: set[Var] = set()
        self.in_order = self.barrier = False
        self._sharing = sharing
        self.visit(stmt)

    def visit_var(self, op: Var) -> None:
        self.uses.add(op)

    def define(self, var: Any) -> None:
        super().define(var)
        self.defines.add(var)
        if declared(var) is not None:
            self.writes.add(self._sharing.find(var))

    def visit_call(self, op: Call | Submit) -> None:
        self.generic(op)
        decl = op.op.decl
        wrote = False
        for i, arg in enumerate(op.args):
            effect = arg_effect(op, i) if isinstance(op, Call) and decl is not None else ArgEffect.ReadWrite
            for buffer in self._buffers(arg):
                if effect is not ArgEffect.Read:
                    self.writes.add(buffer)
                    wrote = True
                if effect is not ArgEffect.Write:
                    self.reads.add(buffer)
        self.barrier |= op.op.name.startswith("system.")
        self.in_order |= isinstance(op.op, GlobalVar) or (decl is not None and not decl.pure and not wrote)

    visit_submit = visit_call

    def _buffers(self, arg: Expr) -> Iterable[Var]:
        if isinstance(arg, MakeTuple):
            return [b for element in arg.elements for b in self._buffers(element)]
        return [self._sharing.find(arg)] if isinstance(arg, Var) and isinstance(arg.type, ShapedType) else []


def _dependencies(stmts: list[Stmt], sharing: Sharing) -> list[set[int]]:
    defined: dict[Var, int] = {}
    written: dict[Var, int] = {}
    read_since: dict[Var, list[int]] = {}
    last_in_order = last_barrier = -1
    made: list[set[int]] = []
    for position, stmt in enumerate(stmts):
        found = _Footprint(stmt, sharing)
        before = {defined[v] for v in found.uses if v in defined}
        before.update(written[b] for b in found.reads | found.writes if b in written)
        for buffer in found.writes:
            before.update(read_since.pop(buffer, ()))
            written[buffer] = position
        for buffer in found.reads - found.writes:
            read_since.setdefault(buffer, []).append(position)
        if found.barrier:
            before.update(range(position))
        elif last_barrier >= 0:
            before.add(last_barrier)
        if found.in_order and last_in_order >= 0:
            before.add(last_in_order)
        last_in_order = position if found.in_order else last_in_order
        last_barrier = position if found.barrier else last_barrier
        defined.update((v, position) for v in found.defines)
        before.discard(position)
        made.append(before)
    return made
