"""HasMemRefs and AllocatedMemoryAddr: every tile has a place, and the places fit."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.enums import MemorySpace
from ...ir.expr import Call, ConstInt, Var
from ...ir.memref import MemRef
from ...ir.program import Function
from ...ir.stmt import AssignStmt
from ...ir.types import TileType
from ..context import MemoryPlanner, current_or_default
from ..memory_model import on_chip, placed_in
from ..memory_reuse import base_lifetimes
from .driver import Rule


class HasMemRefs(Rule):
    """Every tile an operator makes has a memory reference; a popped tile, and what is a view of one, needs none."""

    name = "HasMemRefs"

    def enter_function(self, function: Function) -> None:
        self._function = function.name

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        type = op.var.type
        if isinstance(type, TileType) and type.memref is None and not _without_place(op.value):
            self.report(f"tile '{op.var.name_hint}' in function '{self._function}' has no MemRef", op.var.span)


def _without_place(value: object) -> bool:
    if isinstance(value, Var):
        return isinstance(value.type, TileType) and value.type.memref is None
    if not isinstance(value, Call):
        return False
    decl = value.op.decl
    source = (decl.inherits or decl.reuses) if decl is not None else None
    if decl is not None and source is not None:
        return _without_place(value.args[decl.arg_index(source)])
    return value.op.name.startswith("tile.tpop")


class _Extent(NamedTuple):
    start: int
    end: int
    base: Var
    var: Var


class AllocatedMemoryAddr(Rule):
    """On-chip tiles are at constant addresses from 0 to the memory's capacity, and no two needed at once overlap."""

    name = "AllocatedMemoryAddr"

    def enter_function(self, function: Function) -> None:
        self._extents: dict[MemorySpace, dict[Var, _Extent]] = {}
        self._planned = current_or_default().memory_planner is not MemoryPlanner.PTOAS

    def define(self, var: Var) -> None:
        memref = on_chip(var.type)
        if memref is None or not self._planned or not isinstance(memref.byte_offset, ConstInt):
            return
        start = memref.byte_offset.value
        if start < 0:
            self.report(f"tile '{var.name_hint}' has no address: its byte offset is {start}", var.span)
            return
        self._widen(memref, var, start)

    def _widen(self, memref: MemRef, var: Var, start: int) -> None:
        extents = self._extents.setdefault(placed_in(var), {})
        end = start + memref.size
        known = extents.get(memref.base)
        if known is not None:
            start, end, var = min(start, known.start), max(end, known.end), var if end > known.end else known.var
        extents[memref.base] = _Extent(start, end, memref.base, var)

    def exit_function(self, function: Function) -> None:
        target = current_or_default().target
        for space, extents in self._extents.items():
            top = max(extents.values(), key=lambda e: e.end)
            capacity = target.capacity(space)
            if space in target.memories and top.end > capacity:
                self.report(
                    f"function '{function.name}': {space.name} buffer usage ({top.end} bytes) exceeds platform limit "
                    f"({capacity} bytes)",
                    top.var.span,
                )
            self._check_overlaps(function, sorted(extents.values(), key=lambda e: e.start))

    def _check_overlaps(self, function: Function, extents: list[_Extent]) -> None:
        touching = [(a, b) for a, b in zip(extents, extents[1:]) if b.start < a.end]
        if not touching:
            return
        needed = base_lifetimes(function)
        for a, b in touching:
            if a.base in needed and b.base in needed and needed[a.base].meets(needed[b.base]):
                self.report(
                    f"tiles '{a.var.name_hint}' and '{b.var.name_hint}' overlap in memory and are needed at once",
                    b.var.span,
                )
