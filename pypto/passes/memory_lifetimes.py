"""When each tile variable of a function holds a value that is still needed.

Statements are numbered in execution order, the branches of an ``if`` one after the other. Each number stands for two
instants: operands are read at ``p``, results are written at ``p + 1``; so a result may take the place of an operand
that dies with it, unless the operator writes before it has read everything. A lifetime is a set of disjoint
half-open ranges: a value needed in one branch only is dead throughout the other, and what a loop body reads from
outside lives to the loop's end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from math import prod
from typing import Any

from ..ir.expr import Call, Expr, Op, TupleGetItemExpr, Var, const_value, tile_type_of
from ..ir.program import Function
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..ir.types import TileType, TupleType, same_dims, static_dims
from ..ops.registry import OpDecl
from .contracts import in_place
from .memory_model import on_chip, tile_vars

Range = tuple[int, int]
STEP = 4
"""Each statement also owns an earlier instant pair, for a copy inserted before it."""


class RangeSet:
    """Disjoint half-open ranges in ascending order."""

    __slots__ = ("_starts", "_ends")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __iter__(self):
        return iter(zip(self._starts, self._ends))

    def __len__(self) -> int:
        return len(self._starts)

    def meets(self, other: RangeSet) -> bool:
        """Whether any instant is in both."""
        if len(self) < len(other):
            return other.meets(self)
        starts, ends = self._starts, self._ends
        for start, end in other:
            i = bisect_right(ends, start)
            if i < len(starts) and starts[i] < end:
                return True
        return False

    def joined(self, other: RangeSet) -> RangeSet:
        return RangeSet([*self, *other])

    def add(self, other: RangeSet) -> None:
        """Take in the ranges of ``other``, which must not meet these."""
        for start, end in other:
            i = bisect_right(self._ends, start)
            self._starts.insert(i, start)
            self._ends.insert(i, end)


class Lifetimes:
    """Lifetimes of the tile variables of ``function``, and the number of each of its statements."""

    def __init__(self, function: Function) -> None:
        self.ranges: dict[Var, list[Range]] = {}
        self.order: list[Var] = []
        """Variables by the instant they are written."""
        self.positions: dict[int, int] = {}
        """Statement number by the id of the statement object; of loops and branches, that of their header."""
        self._live: dict[Var, int] = {}
        self._opened: list[Var] = []
        self._elements: dict[Var, list[Var]] = {}
        self._next = 0
        self._block(function.body)
        entry = self._take()
        for var in function.params:
            if isinstance(var.type, TileType):
                self._close(var, entry)
        self.order.reverse()

    def of(self, var: Var) -> RangeSet:
        return RangeSet(self.ranges.get(var, ()))

    def _take(self, pairs: int = 1) -> int:
        self._next -= STEP * pairs
        return self._next

    def _open(self, var: Var, end: int) -> None:
        known = self._live.get(var)
        if known is None:
            self._live[var] = end
            self._opened.append(var)
        elif end > known:
            self._live[var] = end

    def _open_all(self, expr: Any, end: int) -> None:
        for var in tile_vars(expr):
            self._open(var, end)

    def _close(self, var: Var, start: int) -> None:
        self.ranges.setdefault(var, []).append((start, max(self._live.pop(var, start), start + 1)))
        self.order.append(var)

    def _define(self, var: Var, start: int) -> None:
        if isinstance(var.type, TileType):
            self._close(var, start)
        elif isinstance(var.type, TupleType):
            for element in self._elements.pop(var, ()):
                self._close(element, start)

    def _block(self, stmt: Stmt | None) -> None:
        for s in reversed(flatten_to_stmts(stmt)):
            handler = _HANDLERS.get(s.__class__)
            if handler is not None:
                handler(self, s)
            elif isinstance(s, ScopeStmt):
                self._block(s.body)

    def _assign(self, stmt: AssignStmt) -> None:
        p = self.positions[id(stmt)] = self._take()
        value, var = stmt.value, stmt.var
        if isinstance(value, TupleGetItemExpr) and isinstance(value.tuple, Var) and isinstance(var.type, TileType):
            # The element is written by the statement that makes the tuple.
            self._elements.setdefault(value.tuple, []).append(var)
            self._open(var, p + 1)
            return
        self._define(var, p + 1)
        self._read(value, var, p)

    def _eval(self, stmt: EvalStmt) -> None:
        p = self.positions[id(stmt)] = self._take()
        self._read(stmt.expr, None, p)

    def _read(self, value: Expr, result: Var | None, p: int) -> None:
        if not isinstance(value, Call):
            self._open_all(value, p + 1)
            return
        outlives = hazards(value, result)
        for i, arg in enumerate(value.args):
            self._open_all(arg, p + 2 if i in outlives else p + 1)

    def _yield(self, stmt: YieldStmt) -> None:
        p = self.positions[id(stmt)] = self._take()
        for value in stmt.values:
            self._open_all(value, p + 1)
        self._take(2 * len(stmt.values))

    def _return(self, stmt: ReturnStmt) -> None:
        p = self.positions[id(stmt)] = self._take()
        for value in stmt.value:
            self._open_all(value, p + 1)

    def _if(self, stmt: IfStmt) -> None:
        end = self._take()
        for var in stmt.return_vars:
            self._define(var, end + 1)
        outer = self._opened
        needed: list[Var] = []
        for body in (stmt.else_body, stmt.then_body):
            if body is not None:
                needed += self._branch(body)
        self._opened = outer
        p = self.positions[id(stmt)] = self._take()
        for var in needed:
            self._open(var, p + STEP)
        self._open_all(stmt.condition, p + 1)

    def _branch(self, body: Stmt) -> list[Var]:
        """Number a branch; the outside variables it reads, each closed where the branch begins."""
        self._opened = []
        self._block(body)
        start = self._take()
        needed = [var for var in self._opened if var in self._live]
        for var in needed:
            self.ranges.setdefault(var, []).append((start, self._live.pop(var)))
        return needed

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        end = self._take()
        for var in stmt.return_vars:
            self._define(var, end + 1)
        outer, self._opened = self._opened, []
        self._block(stmt.body)
        if isinstance(stmt, WhileStmt):
            self._open_all(stmt.condition, self._take() + 1)
        p = self.positions[id(stmt)] = self._take()
        for arg in stmt.iter_args:
            self._define(arg, p + 1)
        inner, self._opened = self._opened, outer
        for var in inner:
            if var in self._live:
                self._live[var] = end
                outer.append(var)
        for arg in stmt.iter_args:
            self._open_all(arg.init_value, p + 1)
        self._take(len(stmt.iter_args))


_HANDLERS: dict[type, Any] = {
    AssignStmt: Lifetimes._assign,
    EvalStmt: Lifetimes._eval,
    YieldStmt: Lifetimes._yield,
    ReturnStmt: Lifetimes._return,
    IfStmt: Lifetimes._if,
    ForStmt: Lifetimes._loop,
    WhileStmt: Lifetimes._loop,
    SeqStmts: Lifetimes._block,
}


_NONE: frozenset[int] = frozenset()


def hazards(made: Call, result: Var | None) -> frozenset[int]:
    """Arguments that are still read, or written, while the result is being written.

    Those are the arguments whose place the result must not take (`contracts.in_place`), and operands whose elements do
    not stand where the result's do: another width (wider ones in one row stand), another shape, a window of a tile.
    """
    type = made.type if result is None else result.type
    results = [t for t in (type.types if isinstance(type, TupleType) else (type,)) if isinstance(t, TileType)]
    if not results:
        return _NONE
    apart, kept = _facts(made.op)
    found = (i for i, arg in enumerate(made.args) if i not in kept and (i in apart or _misaligned(arg, results)))
    return frozenset(found)


@cache
def _facts(op: Op) -> tuple[frozenset[int], frozenset[int]]:
    """The arguments of an operator whose place its result must not take, and those it lies in anyway."""
    decl: OpDecl | None = op.decl
    if decl is None:
        return _NONE, _NONE
    shared = in_place(op)
    apart = frozenset(i for i, p in enumerate(decl.args) if "tile" in p.kinds and p.name not in shared)
    kept = frozenset(i for i, p in enumerate(decl.args) if p.name in (decl.reuses, decl.inherits))
    return apart, kept


def _misaligned(operand: Expr, results: list[TileType]) -> bool:
    """Whether a result's elements, in the operand's buffer, would fall on elements not read yet."""
    for type in map(tile_type_of, tile_vars(operand)):
        for result in results:
            if type is result or type.memory_space is not result.memory_space:
                continue
            wider = type.dtype.bits - result.dtype.bits
            if wider < 0 or (wider and const_value(type.shape[0]) != 1):
                return True
            if not same_dims(type.shape, result.shape) or _is_window(type):
                return True
    return False


def _is_window(type: TileType) -> bool:
    """Whether a tile is placed past the start of its buffer or has gaps between its rows."""
    memref, dims = on_chip(type), static_dims(type.shape)
    if memref is None or dims is None:
        return False
    return const_value(memref.byte_offset) != 0 or memref.size > type.dtype.storage_bytes(prod(dims))
