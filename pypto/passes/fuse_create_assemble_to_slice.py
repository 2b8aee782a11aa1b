"""FuseCreateAssembleToSlice: a tensor that is made to be assembled into another becomes a window of that other.

In an orchestration function, ``t = create(..); t = kernel(x, t); out = assemble(out, t, at)`` becomes
``t = slice(out, .., at); t = kernel(x, t)``: the kernel writes where the copy would have gone. That is done when
``t`` is all of a created tensor, is assembled once, in the block that creates it, and is not used afterwards; and when
nothing touches ``out`` in between but assembles into other parts of it. Loops no longer carry a tensor they now only
hand on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arith.analyzer import Analyzer
from ..ir.enums import FunctionType
from ..ir.expr import Call, Expr, MakeTuple, Var, const_value, index_const, tensor_type_of
from ..ir.functor import get_last_yield_stmt
from ..ir.node import IRNode, NodeList, same_objects
from ..ir.program import Function, Program, summarize
from ..ir.stmt import AssignStmt, ForStmt, SeqStmts, Stmt, WhileStmt, call_of, seq
from ..ir.types import TensorType
from ..ir.visitor import Rewriter, Visitor, find_all, find_calls, splice, substitute
from .base import P, Pass, program_pass
from .bodies import keep_yields
from .buffer_roots import BufferRoots
from .emitting import build
from .return_lineage import ReturnLineage


def fuse_create_assemble_to_slice() -> Pass:
    """The pass; see the module."""
    return program_pass(
        "FuseCreateAssembleToSlice",
        _fuse,
        requires={P.SplitIncoreOrch},
        looks_for=("tensor.assemble",),
        only=(FunctionType.Orchestration,),
    )


def _fuse(program: Program) -> Program:
    lineage = ReturnLineage(program)

    def change(function: Function) -> Function:
        if function.func_type is not FunctionType.Orchestration:
            return function
        if not {"tensor.create", "tensor.assemble"} <= summarize(function).ops:
            return function
        plan = _Planner(function, lineage)
        return _Fuser(plan).rewrite(function) if plan.removed else function

    return program.map_functions(change)


def _creates(stmt: AssignStmt) -> bool:
    """Whether ``stmt`` makes a tensor that holds nothing yet."""
    call = call_of(stmt, "tensor.create")
    return call is not None and call.kwargs.get("init_value") is None


def _assemble_of(stmt: Stmt) -> Call | None:
    return call_of(stmt, "tensor.assemble") if isinstance(stmt, AssignStmt) else None


class _Block:
    """The statements of one block: the buffers each touches, and where its variables are defined."""

    def __init__(self, stmts: Sequence[Stmt], roots: BufferRoots) -> None:
        self.stmts = stmts
        self.defined: dict[Var, int] = {}
        self.touched: list[set[Var]] = []
        for i, stmt in enumerate(stmts):
            uses = _Variables(stmt)
            self.defined.update((var, i) for var in uses.defined)
            self.touched.append({root for var in uses.used for root in roots.of(var)})

    def available(self, expr: IRNode, position: int) -> bool:
        """Whether all that ``expr`` reads is defined before statement ``position``."""
        return all(self.defined.get(v, -1) < position for v in find_all(expr, Var))


class _Variables(Visitor):
    """The variables a statement reads and defines, inner statements included."""

    def __init__(self, stmt: Stmt) -> None:
        self.used: set[Var] = set()
        self.defined: set[Var] = set()
        self.visit(stmt)

    def visit_var(self, op: Var) -> None:
        self.used.add(op)

    def define(self, var: Any) -> None:
        super().define(var)
        self.defined.add(var)


class _Planner(Visitor):
    """Decides which creates become slices (``windows``, by the statement they go before) and what is ``removed``."""

    def __init__(self, function: Function, lineage: ReturnLineage) -> None:
        self._roots = BufferRoots(function, lineage)
        self.windows: dict[Stmt, list[AssignStmt]] = {}
        self.removed: dict[Stmt, Expr | None] = {}
        """Statements that go; for an assemble, the target that its result stands for."""
        self._assembled: dict[Var, int] = {}
        self._analyzer = Analyzer()
        for call in find_calls(function.body, "tensor.assemble"):
            for root in self._roots.of(call.args[1]):
                self._assembled[root] = self._assembled.get(root, 0) + 1
        self.visit(function.body)

    def visit_seq_stmts(self, op: SeqStmts) -> None:
        creates = {s.var: s for s in op.stmts if isinstance(s, AssignStmt) and _creates(s)}
        if creates:
            block = _Block(op.stmts, self._roots)
            for i, stmt in enumerate(op.stmts):
                call = _assemble_of(stmt)
                if call is not None:
                    self._consider(block, i, stmt, call, creates)
        self.generic(op)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        """Holds no statements."""

    visit_eval_stmt = visit_assign_stmt

    def _consider(self, block: _Block, end: int, stmt: Stmt, call: Call, creates: dict[Var, AssignStmt]) -> None:
        target, source, offset = call.args[:3]
        roots = self._roots.of(source)
        made = next(iter(roots), None)
        create = creates.get(made) if made is not None and len(roots) == 1 else None
        if create is None or made is None or self._assembled[made] != 1 or call.kwargs.get("atomic"):
            return
        begin = block.defined[made]
        if any(made in touched for touched in block.touched[end + 1 :]) or not _same_tensor(made, source):
            return
        if not self._untouched(block, begin, end, self._roots.of(target), offset, made):
            return
        first = next(k for k in range(begin + 1, end + 1) if made in block.touched[k])
        for position in (begin, first):
            name = self._name_at(block, target, position)
            if name is not None and isinstance(offset, MakeTuple) and block.available(offset, position):
                window = _window(made, name, offset, create)
                self.windows.setdefault(block.stmts[position], []).append(window)
                self.removed[create], self.removed[stmt] = None, target
                return

    def _untouched(
        self, block: _Block, begin: int, end: int, buffers: frozenset[Var], offset: Expr, made: Var
    ) -> bool:
        """Whether nothing between ``begin`` and ``end`` meets the part of ``buffers`` that ``made`` is copied to."""
        for k in range(begin + 1, end):
            if buffers.isdisjoint(block.touched[k]):
                continue
            other = _assemble_of(block.stmts[k])
            if other is None:
                return False
            _, source, at = other.args[:3]
            if not buffers.isdisjoint(self._roots.of(source)) or not self._apart(offset, made, at, source):
                return False
        return True

    def _apart(self, a: Expr, first: Expr, b: Expr, second: Expr) -> bool:
        """Whether two windows of one tensor share no element."""
        if not isinstance(a, MakeTuple) or not isinstance(b, MakeTuple):
            return False
        sizes = [_padded(v, len(a.elements)) for v in (first, second)]
        for x, y, m, n in zip(a.elements, b.elements, *sizes):
            distance: Any = const_value(self._analyzer.simplify(y - x))
            if all(isinstance(v, int) for v in (distance, m, n)) and (distance >= m or -distance >= n):
                return True
        return False

    def _name_at(self, block: _Block, target: Expr, position: int) -> Var | None:
        """A name of ``target`` that is there before statement ``position``."""
        while isinstance(target, Var):
            defined = block.defined.get(target, -1)
            if defined < position:
                return target
            assemble = _assemble_of(block.stmts[defined])
            if assemble is None:
                return None
            target = assemble.args[0]
        return None


def _same_tensor(made: Var, source: Expr) -> bool:
    """Whether ``source`` is all of the tensor that was created, in the same order."""
    a, b = made.type, source.type
    return isinstance(a, TensorType) and a == b and a.tensor_view is None


def _padded(value: Expr, rank: int) -> list[Any]:
    """The extents of a tensor with ones in front, as numbers where they are."""
    shape = tensor_type_of(value).shape
    return [*([1] * (rank - len(shape))), *map(const_value, shape)]


def _window(made: Var, target: Var, offset: MakeTuple, create: AssignStmt) -> AssignStmt:
    """The slice that stands for what ``create`` made."""
    rank, shape = len(tensor_type_of(target).shape), tensor_type_of(made).shape
    full = [*(index_const(1) for _ in range(rank - len(shape))), *shape]
    dropped = {"drop_dims": list(range(rank - len(shape)))} if rank > len(shape) else {}
    call = build("tensor.slice", target, full, list(offset.elements), span=create.span, **dropped)
    return AssignStmt(made, call, create.span, create.leading_comments)


class _Fuser(Rewriter):
    def __init__(self, plan: _Planner) -> None:
        super().__init__()
        self._plan = plan

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        made: list[Any] = []
        for stmt in op.stmts:
            for window in self._plan.windows.get(stmt, ()):
                made.append(self._placed(window))
            if stmt not in self._plan.removed:
                made.append(self.rewrite(stmt))
                continue
            target = self._plan.removed[stmt]
            if target is not None and isinstance(stmt, AssignStmt):
                self.vars[stmt.var] = self.rewrite(target)
        return op if same_objects(made, op.stmts) else seq(splice(made), op.span)

    def _placed(self, window: AssignStmt) -> Stmt:
        value, var = self.rewrite(window.value), window.var
        if value.type != var.type:
            var = self.vars[window.var] = Var(var.name_hint, value.type, var.span)
        return window.replace(value=value, var=var)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> Stmt:
        made = self.generic(op)
        before, after = get_last_yield_stmt(op.body), get_last_yield_stmt(made.body)
        if made is op or before is None or after is None:
            return made
        handed_on = {
            i for i, (arg, old, new) in enumerate(zip(made.iter_args, before.values, after.values))
            if new is arg and old is not op.iter_args[i]
        }  # fmt: skip
        if not handed_on:
            return made
        inits = {made.iter_args[i]: made.iter_args[i].init_value for i in handed_on}
        for i in handed_on:
            self.vars[op.return_vars[i]] = inits[made.iter_args[i]]
        kept = [i for i in range(len(made.iter_args)) if i not in handed_on]
        made = made.replace(
            iter_args=NodeList(made.iter_args[i] for i in kept),
            return_vars=NodeList(made.return_vars[i] for i in kept),
            body=keep_yields(made.body, kept),
        )
        return substitute(made, inits)

    visit_while_stmt = visit_for_stmt
