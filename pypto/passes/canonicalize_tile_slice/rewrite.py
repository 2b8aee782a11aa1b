"""Consumers read the base of a slice, or a copy of the window; slices nothing reads any more are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir.enums import ForKind, MemorySpace
from ...ir.expr import Call, ConstInt, Expr, IterArg, MakeTuple, Var
from ...ir.naming import written_name
from ...ir.node import EMPTY, NodeList, updated
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt, WhileStmt, YieldStmt, last_yield, seq
from ...ir.visitor import Rewriter, Visitor
from ...ops import registry
from .analysis import RECASTS, Slice, SliceTable, add_index
from .edges import SLICE, written_argument
from .facts import ScalarFacts

EXTRACT = "tile.extract"
COL_EXPAND = "tile.col_expand_"

MATMUL_OPERANDS: Mapping[str, Mapping[int, MemorySpace]] = {
    "tile.matmul": {0: MemorySpace.Left, 1: MemorySpace.Right},
    "tile.matmul_acc": {1: MemorySpace.Left, 2: MemorySpace.Right},
    "tile.matmul_bias": {0: MemorySpace.Left, 1: MemorySpace.Right},
}
"""Which arguments of the matmul family take a window of a Mat tile, and the memory they read it from."""

_REWRITTEN = (MemorySpace.Mat, MemorySpace.Vec, None)
"""Where the slices are that the pass redirects and drops; one whose memory is still open is in one of the two."""

_SUFFIX = {MemorySpace.Left: "left", MemorySpace.Right: "right", MemorySpace.Vec: "ext"}


def rewrite_slices(function: Function) -> Function:
    """``function`` with every window it can express as an extraction expressed so."""
    table = SliceTable(function)
    if not table.slices:
        return function
    consumers = _Consumers(table)
    body = consumers.rewrite(function.body)
    body = drop_dead(body, table.slices, consumers.fixed, table.facts)
    return function.replace(body=body)


class _Consumers(Rewriter):
    """Redirects the users of slices. Copies a statement needs stand right before it."""

    def __init__(self, table: SliceTable) -> None:
        super().__init__()
        self._slices = table.slices
        self._before: list[Stmt] = []
        self._copies: dict[tuple[Var, MemorySpace], Var] = {}
        self._handed_on: YieldStmt | None = None
        self.fixed: set[Var] = set()
        """Slices kept for an operator that needs their address at compile time."""

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = op.value
        if isinstance(value, Call):
            return self._finish(op.replace(value=self._call(value), var=self.define(op.var)))
        if isinstance(value, Var) and (found := self._straying(value)) is not None:
            made = self._extraction(found, MemorySpace.Vec)
            return AssignStmt(self._retyped(op.var, made), made, op.span, op.leading_comments)
        if isinstance(value, MakeTuple):
            elements = self._escaping(value.elements)
            if elements is not value.elements:
                return self._finish(op.replace(value=MakeTuple(elements, value.span)))
        return self.generic(op)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        if not isinstance(op.expr, Call):
            return self.generic(op)
        return self._finish(op.replace(expr=self._call(op.expr)))

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        return self._finish(op.replace(values=self._escaping(op.values, op is self._handed_on)))

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> Stmt:
        piped = isinstance(op, ForStmt) and op.kind is ForKind.Pipeline
        if piped:
            self._handed_on = last_yield(op.body)
        for arg in op.iter_args:
            found = self._straying(arg.init_value, piped)
            if found is not None:
                init = self._copy(found, MemorySpace.Vec)
                self.vars[arg] = IterArg(arg.name_hint, arg.type, init, arg.span)
        before = self._taken()
        return seq([*before, self.generic(op)], op.span) if before else self.generic(op)

    visit_while_stmt = visit_for_stmt

    def _call(self, call: Call) -> Call:
        name = call.op.name
        if name == SLICE:
            return self.generic(call)
        if name == EXTRACT:
            return self._folded(call)
        args = list(call.args)
        for index, space in MATMUL_OPERANDS.get(name, {}).items():
            found = self._slices.get(args[index])
            if found is not None and found.space is MemorySpace.Mat:
                args[index] = self._copy(found, space)
        expands, recasts = name.startswith(COL_EXPAND), name in RECASTS
        overwritten = written_argument(call)
        made = [self._operand(a, expands, recasts or i == overwritten) for i, a in enumerate(args)]
        return self.generic(call.replace(args=updated(call.args, made)))

    def _folded(self, call: Call) -> Call:
        """An extraction from a slice as one from its base."""
        found = self._slices.get(call.args[0])
        if found is None or found.space not in _REWRITTEN:
            return self.generic(call)
        _, row, col, *rest = call.args
        args = (found.base, add_index(row, found.row), add_index(col, found.col), *rest)
        return self.generic(call.replace(args=NodeList(args)))

    def _operand(self, arg: Expr, expands: bool, whole: bool) -> Expr:
        """An argument as its operator may have it; ``whole``: a window with gaps is none it may have."""
        if isinstance(arg, MakeTuple):
            elements = self._escaping(arg.elements)
            return arg if elements is arg.elements else MakeTuple(elements, arg.span)
        found = self._slices.get(arg) if isinstance(arg, Var) else None
        if found is None or not found.in_vec:
            return arg
        if whole and not found.solid:
            return self._copy(found, MemorySpace.Vec)
        if found.aligned and not expands:
            return arg
        if found.aligned and found.dense:
            self._fix(found)
            return arg
        return self._copy(found, MemorySpace.Vec)

    def _fix(self, kept: Slice) -> None:
        """Note that a chain of slices stays, and needs its offsets as constants."""
        step: Slice | None = kept
        while step is not None:
            self.fixed.add(step.var)
            source = step.call.args[0]
            step = self._slices.get(source) if isinstance(source, Var) else None

    def _straying(self, value: Expr, piped: bool = False) -> Slice | None:
        """The window ``value`` is, if it must not get out as it lies.

        ``piped``: between iterations of a pipelined loop, which become one another's operands as they are unrolled.
        """
        found = self._slices.get(value) if isinstance(value, Var) else None
        if found is None:
            return None
        return found if found.strays or (piped and found.in_vec and not found.dense) else None

    def _escaping(self, values: NodeList, piped: bool = False) -> NodeList:
        """``values`` with copies in place of the windows that must not get out as they lie."""
        found = [(v, self._straying(v, piped)) for v in values]
        made = [v if window is None else self._copy(window, MemorySpace.Vec) for v, window in found]
        made = [self.rewrite(v) for v in made]
        return updated(values, made)

    def _copy(self, found: Slice, space: MemorySpace) -> Var:
        """A copy of a window, one for each statement and memory."""
        made = self._copies.get((found.var, space))
        if made is None:
            value = self._extraction(found, space)
            made = Var(f"{written_name(found.var.name_hint)}_{_SUFFIX[space]}", value.type, found.call.span)
            self._copies[found.var, space] = made
            self._before.append(AssignStmt(made, value, found.call.span))
        return made

    def _extraction(self, found: Slice, space: MemorySpace) -> Call:
        base, row, col = (self.rewrite(e) for e in (found.base, found.row, found.col))
        return registry.call(EXTRACT, base, row, col, found.shape, target_memory=space, span=found.call.span)

    def _retyped(self, var: Var, value: Expr) -> Var:
        if var.type != value.type:
            made = self.vars[var] = Var(var.name_hint, value.type, var.span)
            return made
        return self.define(var)

    def _taken(self) -> list[Stmt]:
        before, self._before = self._before, []
        self._copies.clear()
        return before

    def _finish(self, made: Stmt) -> Stmt:
        before = self._taken()
        return seq([*before, made], made.span) if before else made


def drop_dead(body: Stmt, slices: Mapping[Var, Slice], fixed: set[Var], facts: ScalarFacts) -> Stmt:
    """``body`` without the slices, and plain aliases of slices, that nothing uses."""
    uses = _Uses(slices)
    uses.visit(body)
    dead: set[Var] = set()
    waiting = [var for var in uses.sources if not uses.counts.get(var)]
    while waiting:
        var = waiting.pop()
        dead.add(var)
        source = uses.sources[var]
        uses.counts[source] -= 1
        if not uses.counts[source] and source in uses.sources:
            waiting.append(source)
    return _Sweep(dead, fixed - dead, facts).rewrite(body)


class _Uses(Visitor):
    """How often each variable is used, and what each droppable slice or alias reads."""

    def __init__(self, slices: Mapping[Var, Slice]) -> None:
        self._slices = slices
        self.counts: dict[Var, int] = {}
        self.sources: dict[Var, Var] = {}

    def visit_var(self, op: Var) -> None:
        self.counts[op] = self.counts.get(op, 0) + 1

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.visit(op.value)
        found = self._slices.get(op.var)
        if found is None or found.space not in _REWRITTEN:
            return
        source = op.value.args[0] if isinstance(op.value, Call) else op.value
        if isinstance(source, Var):
            self.sources[op.var] = source


class _Sweep(Rewriter):
    def __init__(self, dead: set[Var], fixed: set[Var], facts: ScalarFacts) -> None:
        super().__init__()
        self._dead, self._fixed, self._facts = dead, fixed, facts

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if op.var in self._dead:
            return SeqStmts(EMPTY, op.span)
        return self._with_constants(op) if op.var in self._fixed else op

    def visit_eval_stmt(self, op: Any) -> Stmt:
        return op

    visit_yield_stmt = visit_return_stmt = visit_eval_stmt

    def _with_constants(self, op: AssignStmt) -> Stmt:
        """A slice whose offsets are constants by way of variables, with the constants: its address becomes known."""
        call = op.value
        if not isinstance(call, Call) or not isinstance(call.args[2], MakeTuple):
            return op
        offset = call.args[2]
        made = NodeList(map(self._facts.folded, offset.elements))
        if all(isinstance(o, ConstInt) for o in offset.elements):
            return op
        args = NodeList((*call.args[:2], MakeTuple(made, offset.span), *call.args[3:]))
        return op.replace(value=call.replace(args=args))
