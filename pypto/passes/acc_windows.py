"""Products that are made where they are assembled: in a window of a larger accumulator.

No instruction copies from Acc to Acc. But a product that is only assembled into an accumulator created in Acc can be
written there by the cube at once, where the window is a whole number of block columns with all rows, whole itself, and
none of its neighbours' in the accumulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..ir.enums import MemorySpace
from ..ir.expr import Call, Var, tile_type_of
from ..ir.program import Function, summarize
from ..ir.stmt import AssignStmt, Stmt, flatten_to_stmts
from ..ir.types import TileType, implicit_layout, same_dims, static_dims
from ..ir.visitor import walk
from ..ops.registry import Core, decl_of, rebind
from ..ops.rules import value
from .core_affinity import bodies

_ASSEMBLE = "tile.assemble"
_BLOCK = 16
"""Columns of a block of an accumulator."""


class AccWindow(NamedTuple):
    """``call`` assembles a product into ``target``, which lies where ``created`` does."""

    target: Var
    created: Var
    call: Call


def acc_windows(function: Function) -> dict[Var, AccWindow]:
    """The window each such product of a kernel is made in, in the order they are assembled."""
    if _ASSEMBLE not in summarize(function).ops:
        return {}
    uses = Counter(node for node in walk(function.body) if type(node) is Var)
    found: dict[Var, AccWindow] = {}
    for block in _blocks(function.body):
        found.update(_Block(block, uses).windows)
    return found


def _blocks(body: Stmt) -> Iterator[list[Stmt]]:
    stmts = list(flatten_to_stmts(body))
    yield stmts
    for stmt in stmts:
        for inner in bodies(stmt):
            yield from _blocks(inner)


class _Block:
    """The windows among the statements of one block."""

    def __init__(self, stmts: list[Stmt], uses: Mapping[Var, int]) -> None:
        self.windows: dict[Var, AccWindow] = {}
        self._uses = uses
        self._calls: dict[Var, Call] = {}
        self._taken: dict[Var, tuple[Var, list[tuple[int, int]]]] = {}
        """What each accumulator was created as, and its columns that products are made in."""
        for stmt in stmts:
            if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call):
                self._calls[stmt.var] = stmt.value
                self._scan(stmt.var, stmt.value)

    def _scan(self, made: Var, call: Call) -> None:
        if call.op.name == "tile.create" and call.kwargs.get("target_memory") is MemorySpace.Acc:
            self._taken[made] = made, []
        elif call.op.name == _ASSEMBLE and isinstance(call.args[0], Var) and isinstance(call.args[1], Var):
            target, product = call.args[0], call.args[1]
            columns = self._columns(target, product, call)
            created, taken = self._taken.get(target, (None, []))
            if created is not None and columns is not None and not any(_meet(columns, other) for other in taken):
                self._taken[made] = created, [*taken, columns]
                self.windows[product] = AccWindow(target, created, call)

    def _columns(self, target: Var, product: Var, call: Call) -> tuple[int, int] | None:
        """The columns ``product`` may be made in."""
        whole, part = tile_type_of(target), tile_type_of(product)
        sizes, extents = static_dims(part.shape), static_dims(whole.shape)
        row, column = (value(o) for o in rebind(call).dims("offset"))
        alone = self._uses[target] == 1 and self._uses[product] == 1 and _is_product(self._calls.get(product))
        if not alone or sizes is None or extents is None or row != 0 or column is None or column % _BLOCK:
            return None
        if sizes[0] != extents[0] or sizes[1] % _BLOCK or part.dtype is not whole.dtype or not _is_whole(part):
            return None
        return column, column + sizes[1]


def _is_product(call: Call | None) -> bool:
    decl = decl_of(call) if call is not None else None
    return decl is not None and (decl.core, decl.result_space, decl.reuses) == (Core.CUBE, MemorySpace.Acc, None)


def _is_whole(part: TileType) -> bool:
    view = part.get_effective_tile_view()
    return same_dims(part.valid_shape, part.shape) and (view.blayout, view.slayout, view.fractal) == implicit_layout(
        part.shape, MemorySpace.Acc
    )


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]
