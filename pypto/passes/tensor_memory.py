"""Which tensors of a function in SSA form are one memory, and which memory its loops write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..ir.enums import ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ..ir.functor import get_last_yield_stmt
from ..ir.node import IRNode
from ..ir.program import Function
from ..ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
)
from ..ir.types import TensorType
from ..ir.visitor import Visitor
from ..ops.registry import ArgEffect, arg_effect
from .operand_roles import computes_tile
from .return_lineage import ReturnLineage, viewed_arg, written_arg

REGIONS = (InCoreScopeStmt, SpmdScopeStmt, ClusterScopeStmt)
"""Regions in which what is computed is a value on chip."""


class Callees:
    """What the functions of a program do to their tensor arguments."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self._functions = {f.name: f for f in functions}
        self._lineage = ReturnLineage(self._functions)
        self._writes: dict[str, set[int]] = {}

    def returned_arg(self, call: Call | Submit, result: int) -> Expr | None:
        return self._lineage.returned_arg(call, result)

    def writes(self, name: str) -> set[int]:
        """The parameters a function writes: those declared so, and those it writes all the same."""
        found = self._writes.get(name)
        if found is None:
            found = self._writes[name] = set()
            function = self._functions.get(name)
            if function is not None:
                found.update(i for i, d in enumerate(function.param_directions) if d is not ParamDirection.In)
                memory = TensorMemory(function, self)
                written = {memory.root(v) for v in memory.written}
                found.update(i for i, p in enumerate(function.params) if p in written)
        return found

    def reads(self, name: str, index: int) -> bool:
        function = self._functions.get(name)
        return function is None or function.param_directions[index] is not ParamDirection.Out


class TensorMemory(Visitor):
    """The memory of each tensor variable of ``function``.

    A tensor that a region computes is a value of its own there: what is written "into" it is another.
    """

    def __init__(self, function: Function, callees: Callees) -> None:
        self._callees = callees
        self._parent: dict[Var, Var] = {}
        self._related: dict[Var, list[Var]] = {}
        """Roots that a tensor may also be: what a branch or loop hands on is one of several."""
        self._home: dict[Var, IRNode | None] = {}
        """The region that computes a tensor."""
        self.region: IRNode | None = function if function.is_incore else None
        self._calls: dict[Var, Call | Submit] = {}
        self.written: dict[Var, AssignStmt | EvalStmt] = {}
        """What is written anywhere, and what writes it first."""
        self.loops: dict[Stmt, dict[Var, AssignStmt | EvalStmt]] = {}
        """What each loop writes."""
        for param in function.params:
            self._home[param] = None
        self.visit(function.body)

    def root(self, var: Var) -> Var:
        """What stands for the memory of ``var``."""
        found = var
        while found in self._parent:
            found = self._parent[found]
        while var in self._parent and self._parent[var] is not found:
            self._parent[var], var = found, self._parent[var]
        return found

    def may_be(self, var: Var) -> Iterator[Var]:
        """The roots of all the memory that ``var`` may be."""
        root = self.root(var)
        yield root
        for other in self._related.get(root, ()):
            yield self.root(other)

    def is_value(self, var: Var, region: IRNode | None) -> bool:
        """Whether ``region`` itself computes ``var``, which then is in no memory that another name has."""
        return region is not None and self._home.get(self.root(var)) is region

    def _relate(self, var: Var, others: Iterable[Expr]) -> None:
        for other in others:
            if isinstance(other, Var):
                root = self.root(other)
                self._related.setdefault(var, []).append(root)
                self._related.setdefault(root, []).append(var)

    def target(self, call: Expr) -> Var | None:
        """The argument in memory whose name a call's result is."""
        if isinstance(call, Call) and isinstance(call.op, GlobalVar):
            found = self._callees.returned_arg(call, 0) if isinstance(call.type, TensorType) else None
        elif isinstance(call, TupleGetItemExpr):
            source = self._calls.get(call.tuple) if isinstance(call.tuple, Var) else None
            found = self._callees.returned_arg(source, call.index) if source is not None else None
        else:
            found = written_arg(call)
            if found is None and isinstance(call, Call) and (self.region is None or not computes_tile(call.op.name)):
                found = viewed_arg(call)
        return found if isinstance(found, Var) else None

    def writes(self, call: Expr) -> Iterator[Var]:
        """The arguments a call writes. A launched task writes in its own time, ordered by its dependencies."""
        if not isinstance(call, Call):
            return
        invoked = self._callees.writes(call.op.name) if isinstance(call.op, GlobalVar) else None
        for i, arg in enumerate(call.args):
            written = i in invoked if invoked is not None else arg_effect(call, i) is not ArgEffect.Read
            if written and isinstance(arg, Var) and isinstance(arg.type, TensorType):
                yield arg

    def visit_scope_stmt(self, op: ScopeStmt) -> None:
        outer = self.region
        if isinstance(op, REGIONS):
            self.region = op
        self.visit(op.body)
        self.region = outer

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, (Call, Submit)) and not isinstance(op.var.type, TensorType):
            self._calls[op.var] = value
        self._note_writes(value, op)
        if not isinstance(op.var.type, TensorType):
            return
        source = value if isinstance(value, Var) else self.target(value)
        if source is None or (source is not value and self.is_value(source, self.region)):
            self._home[op.var] = self.region
        else:
            self._parent[op.var] = source

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        self._note_writes(op.expr, op)

    def visit_return_stmt(self, op: Stmt) -> None:
        """Writes nothing."""

    visit_yield_stmt = visit_return_stmt

    def _note_writes(self, call: Expr, op: AssignStmt | EvalStmt) -> None:
        for var in self.writes(call):
            if not self.is_value(var, self.region):
                self.written.setdefault(var, op)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit(op.then_body)
        if op.else_body is not None:
            self.visit(op.else_body)
        for i, var in enumerate(op.return_vars):
            if isinstance(var.type, TensorType):
                self._meet(var, [v for v in (yielded(op.then_body, i), yielded(op.else_body, i)) if v is not None])

    def _meet(self, var: Var, values: list[Expr]) -> None:
        """``var`` is one of ``values``."""
        roots = {self.root(v) if isinstance(v, Var) else v for v in values}
        root = roots.pop()
        if not roots and isinstance(root, Var):
            self._parent[var] = root
        else:
            self._home[var] = self.region
            self._relate(var, values)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        carried = [(i, a, a.init_value) for i, a in enumerate(op.iter_args) if isinstance(a.type, TensorType)]
        for _, arg, init in carried:
            self._home[arg] = self._home.get(self.root(init)) if isinstance(init, Var) else self.region
        outer, self.written = self.written, {}
        self.visit(op.body)
        ends = [yielded(op.body, i) for i, _, _ in carried]
        moved: list[Any] = []
        for (i, arg, init), end in zip(carried, ends):
            result = op.return_vars[i] if i < len(op.return_vars) else arg
            steady = isinstance(init, Var) and (end is None or (isinstance(end, Var) and self.root(end) is arg))
            if steady:
                self._parent[arg] = init
            else:
                moved.append((arg, init, end, result))
            if result is not arg:
                self._parent[result] = arg
        starts = [init for _, init, _, _ in moved]
        for k, (arg, _, end, _) in enumerate(moved):
            mixed = sum(end is other or (isinstance(end, Var) and isinstance(other, Var)
                        and self.root(end) is self.root(other)) for _, _, other, _ in moved) > 1  # fmt: skip
            self._relate(arg, [*starts, *([a for a, *_ in moved[:k]] if mixed else ()), *([end] if end else ())])
        self.loops[op] = self.written
        for var, write in self.written.items():
            outer.setdefault(var, write)
        self.written = outer

    visit_while_stmt = visit_for_stmt


def yielded(body: Stmt | None, index: int) -> Expr | None:
    """Value ``index`` of those a body yields, regions looked through."""
    last = get_last_yield_stmt(body)
    return last.values[index] if last is not None and index < len(last.values) else None
