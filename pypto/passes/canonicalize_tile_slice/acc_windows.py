"""Windows of Acc tiles that a matmul accumulates into.

L0C stores a tile as columns of 16 x 16 blocks: block (r, c) of an [M, N] tile is number c * M/16 + r. A matmul writes
its destination compactly, from one address, without a stride. A window is therefore a possible destination only when
it spans all rows of its parent or lies inside one column of blocks; any other would be written into the wrong rows.

The accumulator is rarely the slice itself, so windows are followed along the edges that keep identity: aliases, views
and in-place results of the same extent, loop-carried values, merges of branches that agree. What cannot be proven is
not recorded, and stays silent.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import Diagnosed, user_error
from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, IterArg, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.program import Function, summarize
from ...ir.span import Span
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, WhileStmt, last_yield
from ...ir.types import TileType, Type, implicit_layout, static_dims
from ...ir.visitor import Visitor
from ...ops.registry import Core, OpDecl, decl_of, get_decl, python_name, rebind
from ...ops.rules import dims_text, layout_of
from .analysis import add_index
from .edges import SLICE, landing, same_extent
from .facts import ScalarFacts

BLOCK = 16
"""Columns of an L0C block; its elements have 4 bytes."""


def check_accumulators(function: Function) -> None:
    """Raises ValueError, at the call that writes it, for an accumulator that is a strided window of an Acc tile."""
    if any(is_accumulation(get_decl(name)) for name in summarize(function).ops):
        _AccWindows().visit(function.body)


def is_accumulation(decl: OpDecl | None) -> bool:
    """Whether an operator adds a matrix product to the tile it overwrites."""
    return decl is not None and decl.reuses is not None and decl.core is Core.CUBE


@dataclass(frozen=True, slots=True)
class Window:
    """A part of ``parent`` at (``row``, ``col``), cut out at ``span``."""

    parent: Var
    row: Expr
    col: Expr
    span: Span


class _AccWindows(Visitor):
    """One walk in program order: records which window each variable denotes, and checks accumulators against it."""

    def __init__(self) -> None:
        self._facts = ScalarFacts()
        self._windows: dict[Var, Window] = {}
        self._carriers: dict[Var, frozenset[IterArg]] = {}
        """Loop-carried values whose bytes a variable is."""
        self._accumulated: set[IterArg] = set()

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if not isinstance(value, Call):
            self._facts.learn(op)
            self._link(op.var, value)
            return
        self._check_call(value)
        if value.op.name == SLICE:
            self._seed(op.var, value)
        else:
            self._link(op.var, landing(value))

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        if isinstance(op.expr, Call):
            self._check_call(op.expr)

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._facts.learn_loop(op)
        self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._loop(op)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.generic(op)
        then, other = last_yield(op.then_body), last_yield(op.else_body)
        if then is not None and other is not None:
            for var, a, b in zip(op.return_vars, then.values, other.values):
                self._merge(var, a, b)

    def _loop(self, op: ForStmt | WhileStmt) -> None:
        for arg in op.iter_args:
            self._link(arg, arg.init_value)
            self._carriers[arg] = self._carriers.get(arg, frozenset()) | {arg}
        self.visit(op.body)
        made = last_yield(op.body)
        if made is None:
            return
        repeats = isinstance(op, ForStmt) and self._repeats(op)
        for arg, carried in zip(op.iter_args, made.values):
            if repeats and arg in self._accumulated and isinstance(carried, Var):
                self._require_contiguous(carried, arg.type, made.span, "the next iteration of the loop")
        for var, arg, carried in zip(op.return_vars, op.iter_args, made.values):
            self._merge(var, arg.init_value, carried)

    def _repeats(self, loop: ForStmt) -> bool:
        start, stop, step = map(self._facts.exact, (loop.start, loop.stop, loop.step))
        return start is not None and stop is not None and step is not None and step > 0 and start + step < stop

    def _seed(self, var: Var, call: Call) -> None:
        bound = rebind(call)
        source, offset = bound["tile"], bound.dims("offset")
        if not isinstance(source, Var) or len(offset) != 2:
            return
        row, col = map(self._facts.folded, offset)
        outer = self._windows.get(source)
        if outer is not None:
            source, row, col = outer.parent, add_index(outer.row, row), add_index(outer.col, col)
        self._windows[var] = Window(source, row, col, call.span)

    def _link(self, var: Var, source: Expr | None) -> None:
        """``var`` is ``source`` under another name."""
        if not isinstance(source, Var) or not same_extent(var.type, source.type):
            return
        if source in self._windows:
            self._windows[var] = self._windows[source]
        if source in self._carriers:
            self._carriers[var] = self._carriers[source]

    def _merge(self, var: Var, a: Expr, b: Expr) -> None:
        """``var`` is ``a`` or ``b``: it denotes a window only when both denote that one."""
        if not (isinstance(a, Var) and isinstance(b, Var)):
            return
        if not (same_extent(var.type, a.type) and same_extent(var.type, b.type)):
            return
        first, second = self._windows.get(a), self._windows.get(b)
        if first is not None and second is not None and self._same(first, second):
            self._windows[var] = first
        carried = self._carriers.get(a, frozenset()) & self._carriers.get(b, frozenset())
        if carried:
            self._carriers[var] = carried

    def _same(self, a: Window, b: Window) -> bool:
        return a.parent is b.parent and self._facts.same(a.row, b.row) and self._facts.same(a.col, b.col)

    def _check_call(self, call: Call) -> None:
        decl = decl_of(call)
        if decl is None or not is_accumulation(decl):
            return
        operand = call.args[decl.arg_index(decl.reuses or "")]
        if isinstance(operand, Var):
            self._accumulated |= self._carriers.get(operand, frozenset())
            self._require_contiguous(operand, operand.type, call.span, f"pl.tile.{python_name(decl.name)}")

    def _require_contiguous(self, tile: Var, type: Type, span: Span, writer: str) -> None:
        """Refuse the window ``tile`` denotes, if any, as an accumulator of the extent ``type`` states."""
        window = self._windows.get(tile)
        if window is None or not isinstance(type, TileType):
            return
        size, whole = static_dims(type.shape), static_dims(tile_type_of(window.parent).shape)
        if size is None or whole is None or len(size) != 2 or len(whole) != 2 or not _in_blocks(window.parent.type):
            return
        if size[0] == whole[0] or self._in_one_block(window.col, size[1]) is not False:
            return
        raise _strided(window, (size[0], size[1]), (whole[0], whole[1]), span, writer)

    def _in_one_block(self, col: Expr, cols: int) -> bool | None:
        """Whether ``cols`` columns from ``col`` lie in one block column; None when unknown."""
        if cols > BLOCK:
            return False
        start = self._facts.remainder(col, 1, BLOCK)
        return None if start is None else start + cols <= BLOCK


def _in_blocks(type: Type) -> bool:
    """Whether a tile is stored as L0C stores it. A tile not placed yet that is accumulated into will be."""
    if not isinstance(type, TileType) or type.dtype.bits != 32:
        return False
    if type.memory_space is None:
        return type.tile_view is None
    return type.memory_space is MemorySpace.Acc and layout_of(type) == implicit_layout(type.shape, MemorySpace.Acc)


def _strided(window: Window, size: tuple[int, int], whole: tuple[int, int], span: Span, writer: str) -> Diagnosed:
    rows, cols = size
    tiles = -(-whole[0] // rows) * -(-whole[1] // cols)
    at, parent = dims_text((window.row, window.col)), written_name(window.parent.name_hint)
    message = (
        f"{writer} accumulates into the [{rows}, {cols}] window at {at} of the [{whole[0]}, {whole[1]}] Acc tile "
        f"{parent!r}, which is not contiguous in L0C's block layout: a matmul writes its destination compactly, "
        f"so whatever lies beyond the first {BLOCK}-column block would land in the wrong rows"
    )
    hint = (
        f"pack the tiles in columns: allocate the accumulator as [rows, N * tiles], here [{rows}, {cols * tiles}], and "
        f"slice columns, pl.tile.slice(acc, [{rows}, {cols}], [0, i * {cols}])"
    )
    note = (
        f"the window is cut at {window.span}; where the kernel has no slice, the compiler cut it from an accumulator "
        "that stacks its tiles in rows"
    )
    return user_error(ValueError, message, span, hint, note)
