"""What a function's tile slices denote: base and total offset, and where their bytes lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...ir.enums import MemorySpace, TileLayout
from ...ir.expr import Add, Call, ConstInt, Expr, MakeTuple, Var, index_const
from ...ir.program import Function
from ...ir.scalar import binary
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt, last_yield
from ...ir.types import TileType, static_dims
from ...ir.visitor import Visitor
from ...ops.registry import rebind
from .edges import SLICE, landing, same_extent, written_argument
from .facts import ScalarFacts
from .spaces import TileSpaces

RECASTS = frozenset({"tile.reshape", "tile.reinterpret_view"})
"""Operators whose result is the bytes of a buffer, one after another, as another tile."""

ALIGNMENT_BITS = 256
"""PTO vector instructions address their tiles in multiples of 32 bytes."""

Strides = tuple[int, int]
"""Elements from one row, and from one column, to the next."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tile lies: its address in bits modulo 256, and every row and column stride it may have.

    ``bits`` is None when unknown; no ``strides`` stand for a boxed layout, whose views keep whole boxes.
    """

    bits: int | None
    strides: tuple[Strides, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """A plain window, through ``var``, of ``base`` at the accumulated offset (``row``, ``col``)."""

    var: Var
    call: Call
    base: Var
    row: Expr
    col: Expr
    shape: MakeTuple
    space: MemorySpace | None
    aligned: bool
    """Whether its address is provably a multiple of 32 bytes."""
    solid: bool
    """Whether its elements provably lie side by side."""
    fixed: bool
    """Whether it starts at a position known at compile time."""

    @property
    def dense(self) -> bool:
        """Whether its elements provably lie side by side, in a place known at compile time."""
        return self.solid and self.fixed

    @property
    def in_vec(self) -> bool:
        return self.space is MemorySpace.Vec

    @property
    def scattered(self) -> bool:
        """Whether an operator that takes it for a whole buffer, to overwrite or to see as another tile, must not."""
        return self.in_vec and not self.solid

    @property
    def strays(self) -> bool:
        """Whether a vector instruction must not be handed these bytes as they lie."""
        return self.in_vec and not self.aligned


def add_index(index: Expr, offset: Expr) -> Expr:
    """``index + offset``, folded where it can be."""
    if isinstance(offset, ConstInt):
        if offset.value == 0:
            return index
        if isinstance(index, ConstInt):
            return index_const(index.value + offset.value, index.span)
    if isinstance(index, ConstInt) and index.value == 0:
        return offset
    return binary(Add, index, offset, index.span)


def is_plain(call: Call) -> bool:
    """Whether a slice states a source, a shape and an offset and nothing else that has an effect.

    Padding has none without a valid region.
    """
    return len(call.args) == 3


class SliceTable(Visitor):
    """The slices of a function, found in one walk in program order.

    ``slices`` maps each variable that denotes a plain window, by a slice or a plain alias of one, to that window.
    """

    def __init__(self, function: Function) -> None:
        self.slices: dict[Var, Slice] = {}
        self.facts = ScalarFacts()
        self._places: dict[Var, Place] = {}
        self._spaces = TileSpaces(function)
        self.visit(function.body)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        var, value = op.var, op.value
        if not isinstance(var.type, TileType):
            self.facts.learn(op)
        elif isinstance(value, Call):
            if value.op.name == SLICE:
                self._slice(var, value)
            else:
                self._land(var, landing(value), value.op.name in RECASTS or written_argument(value) is not None)
        elif isinstance(value, Var):
            self._alias(var, value)

    def visit_for_stmt(self, op: ForStmt) -> None:
        self.facts.learn_loop(op)
        self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> None:
        inits = [arg.init_value for arg in op.iter_args]
        for arg, init in zip(op.iter_args, inits):
            self._join(arg, (init,))
        self.visit(op.body)
        made = last_yield(op.body)
        if made is not None:
            for var, init, carried in zip(op.return_vars, inits, made.values):
                self._join(var, (init, carried))

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.generic(op)
        yields = [y.values for y in map(last_yield, (op.then_body, op.else_body)) if y is not None]
        for i, var in enumerate(op.return_vars):
            self._join(var, [values[i] for values in yields])

    def _slice(self, var: Var, call: Call) -> None:
        bound = rebind(call)
        source, offset, shape = bound["tile"], bound.dims("offset"), bound.dims("shape")
        if not isinstance(source, Var) or not isinstance(source.type, TileType):
            return
        if len(offset) != 2 or len(source.type.shape) != 2:
            return
        here, width = self._place(source), storage_bits(source.type)
        self._places[var] = Place(self._moved(here, offset, width), here.strides)
        dims = static_dims(shape)
        if not is_plain(call) or dims is None or len(dims) != 2:
            return
        outer = self.slices.get(source)
        row, col = map(self.facts.folded, offset)
        base = source
        if outer is not None:
            base, row, col = outer.base, add_index(outer.row, row), add_index(outer.col, col)
            self._places[var] = Place(self._moved(self._place(base), (row, col), width), here.strides)
        fixed = isinstance(row, ConstInt) and isinstance(col, ConstInt)
        solid = all(is_dense(dims, strides) for strides in here.strides)
        aligned = self._places[var].bits == 0 or not here.strides
        space = self._spaces.of(var)
        self.slices[var] = Slice(var, call, base, row, col, bound["shape"], space, aligned, solid, fixed)

    def _alias(self, var: Var, source: Var) -> None:
        found = self.slices.get(source)
        if found is not None and found.strays:
            return
        if found is not None:
            self.slices[var] = found
        if source in self._places:
            self._places[var] = self._places[source]

    def _land(self, var: Var, source: Expr | None, whole: bool) -> None:
        """``var`` is the bytes of ``source``, unless that is a slice its operator will not be handed."""
        if not isinstance(source, Var) or source not in self._places:
            return
        found = self.slices.get(source)
        if found is not None and (found.strays or (whole and found.scattered)):
            return
        place = self._places[source]
        kept = same_extent(var.type, source.type)
        self._places[var] = place if kept else Place(place.bits, root_place(var.type).strides)

    def _join(self, var: Var, sources: Iterable[Expr]) -> None:
        """``var`` is one of ``sources`` or a buffer with its contents; slices that stray are copied first."""
        if not isinstance(var.type, TileType):
            return
        own = root_place(var.type)
        bits, strides = {own.bits}, dict.fromkeys(own.strides)
        for source in sources:
            found = self.slices.get(source) if isinstance(source, Var) else None
            if isinstance(source, Var) and source in self._places and not (found is not None and found.strays):
                bits.add(self._places[source].bits)
                strides.update(dict.fromkeys(self._places[source].strides))
        if len(bits) > 1 or len(strides) > 1:
            self._places[var] = Place(bits.pop() if len(bits) == 1 else None, tuple(strides))

    def _place(self, tile: Var) -> Place:
        return self._places.get(tile) or root_place(tile.type)

    def _moved(self, place: Place, offset: Sequence[Expr], width: int) -> int | None:
        """The address of the window of ``place`` at ``offset``, when every possible stride gives the same."""
        if place.bits is None:
            return None
        found: set[int | None] = set()
        for strides in place.strides or ((0, 0),):
            moved: int | None = place.bits
            for o, s in zip(offset, strides):
                part = self.facts.remainder(o, s * width, ALIGNMENT_BITS)
                moved = None if moved is None or part is None else (moved + part) % ALIGNMENT_BITS
            found.add(moved)
        return found.pop() if len(found) == 1 else None


def storage_bits(type: TileType) -> int:
    """Bits from one element to the next: 4-bit elements pack two a byte, a bool takes a byte."""
    return type.dtype.storage_bytes(2) * 4


def root_place(type: Any) -> Place:
    """The place of a tile that is no window: its allocation is aligned, an offset into it counts."""
    bits: int | None = 0
    if type.memref is not None:
        # Before AllocateMemoryAddr an allocation without an address has a negative one.
        at = getattr(type.memref.byte_offset, "value", None)
        bits = None if at is None else 0 if at < 0 else at * 8 % ALIGNMENT_BITS
    return Place(bits, _strides(type))


def _strides(type: TileType) -> tuple[Strides, ...]:
    dims, view = static_dims(type.shape), type.get_effective_tile_view()
    if dims is None or len(dims) != 2 or view.slayout is not TileLayout.none_box:
        return ()
    stated = static_dims(view.stride) if view.stride else None
    if stated is not None and len(stated) == 2:
        return (stated,)
    return ((dims[1], 1),) if view.blayout is TileLayout.row_major else ((1, dims[0]),)


def is_dense(dims: Sequence[int], strides: Strides) -> bool:
    """Whether a window of ``dims`` elements in a buffer of ``strides`` is one run of elements."""
    rows, cols = dims
    by_row, by_col = strides
    if by_col == 1 and (rows == 1 or cols == by_row):
        return True
    return by_row == 1 and (cols == 1 or rows == by_col)
