"""Which buffers a tensor variable of a host function may be.

A buffer is named by the variable it begins as: a parameter, or what an operator or an unknown function made. A slice
is a buffer of its own, unless views are asked to be followed. Loops and branches may hand on one of several, so the
answer is a set.
"""

from __future__ import annotations

from ..ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ..ir.program import Function
from ..ir.stmt import AssignStmt, Stmt
from ..ir.types import TensorType, TupleType
from ..ir.visitor import find_all
from ..ops.registry import ArgEffect, arg_effect
from .bodies import FlowVisitor
from .return_lineage import ReturnLineage, viewed_arg, written_arg


class ValueSources:
    """What values are other names of. Assignments are told to `note` in order."""

    def __init__(self, lineage: ReturnLineage, views: bool = False) -> None:
        self._lineage, self._views = lineage, views
        self._tuples: dict[Var, Expr] = {}

    def note(self, op: AssignStmt) -> None:
        """``op`` was passed."""
        if isinstance(op.value.type, TupleType):
            self._tuples[op.var] = self._tuples.get(op.value, op.value) if isinstance(op.value, Var) else op.value

    def of(self, value: Expr | None) -> Var | None:
        """The variable whose buffer ``value`` is: itself, or what a call or operator hands back."""
        while value is not None and not isinstance(value, Var):
            value = self._step(value)
        return value

    def _step(self, value: Expr) -> Expr | None:
        if isinstance(value, TupleGetItemExpr):
            whole = self._tuples.get(value.tuple) if isinstance(value.tuple, Var) else value.tuple
            if isinstance(whole, MakeTuple):
                return whole.elements[value.index]
            if isinstance(whole, (Call, Submit)) and isinstance(whole.op, GlobalVar):
                return self._lineage.returned_arg(whole, value.index)
            return None
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            return self._lineage.returned_arg(value, 0)
        written = written_arg(value)
        return viewed_arg(value) if written is None and self._views else written


class BufferRoots(FlowVisitor):
    """The buffers of every tensor variable of ``function``; `of` answers. ``views`` follows views to what they show."""

    def __init__(self, function: Function, lineage: ReturnLineage, views: bool = False) -> None:
        super().__init__()
        self._sources = ValueSources(lineage, views)
        self._targets_of: dict[Var, list[Var]] = {}
        self._roots: dict[Var, set[Var]] = {p: {p} for p in function.params if isinstance(p.type, TensorType)}
        self.visit(function.body)
        self._spread()

    def of(self, value: Expr) -> frozenset[Var]:
        """The buffers ``value`` may be, none when it is no tensor."""
        source = self._sources.of(value)
        if source is None or not isinstance(source.type, TensorType):
            return frozenset()
        return frozenset(self._roots.get(source) or {source})

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self._sources.note(op)
        self.flow(op.value, op.var)

    def flow(self, value: Expr, var: Var) -> None:
        if not isinstance(var.type, TensorType):
            return
        source = self._sources.of(value)
        if source is None:
            self._roots.setdefault(var, set()).add(var)
        else:
            self._targets_of.setdefault(source, []).append(var)

    def _spread(self) -> None:
        """Hand roots on until nothing is new; a set only grows, by the few roots that reach it."""
        received = {target for targets in self._targets_of.values() for target in targets}
        for source in self._targets_of:
            if source not in self._roots and source not in received:
                self._roots[source] = {source}
        pending = list(self._roots)
        while pending:
            source = pending.pop()
            roots = self._roots[source]
            for target in self._targets_of.get(source, ()):
                known = self._roots.setdefault(target, set())
                if not roots <= known:
                    known |= roots
                    pending.append(target)


def written_buffers(body: Stmt, roots: BufferRoots) -> frozenset[Var]:
    """The buffers that operators in ``body`` write to."""
    calls = find_all(body, Call)
    written = (a for c in calls for i, a in enumerate(c.args) if arg_effect(c, i) is not ArgEffect.Read)
    return frozenset(root for arg in written for root in roots.of(arg))
