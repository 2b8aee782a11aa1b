"""Products of some valid rows that lanes divide by rows become products of all rows.

The cube packs an accumulator by its valid rows, and lanes take halves of the tile. Multiplying the rows that are not
valid, too, leaves the others as they are: what uses an accumulator is shown the valid rows of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...ir.enums import CompactMode, MemorySpace
from ...ir.expr import Call, Expr, Var, tile_type_of
from ...ir.node import NodeList
from ...ir.program import Function
from ...ir.types import TileType, Type
from ...ir.visitor import find_calls
from ...ops.registry import decl_of
from ..core_affinity import space_of
from ..emitting import EmittingRewriter, build
from ..packed_products import is_packed, lies_as


def unpacked(function: Function) -> Function:
    """``function`` without packed accumulators, when lanes are to divide one by rows and cannot."""
    if any(_is_in_the_way(call) for call in find_calls(function.body, "tile.move")):
        return function.replace(body=_Unpacker().rewrite(function.body))
    return function


def _is_in_the_way(move: Call) -> bool:
    source = move.args[0].type
    crosses = tile_type_of(move).memory_space is MemorySpace.Vec
    return crosses and isinstance(source, TileType) and not lies_as(source, source.shape[0])


def _whole(kind: TileType) -> TileType:
    view = kind.get_effective_tile_view()
    valid = NodeList([kind.shape[0], kind.valid_shape[1]])
    return kind.replace(tile_view=view.replace(valid_shape=valid, compact=CompactMode.null))


class _Unpacker(EmittingRewriter):
    def rewrite_type(self, type: Type) -> Type:
        made = super().rewrite_type(type)
        return _whole(made) if isinstance(made, TileType) and is_packed(made) else made

    def visit_call(self, op: Call) -> Expr:
        made, decl = self.generic(op), decl_of(op)
        if decl is None or made is op:
            return made
        if op.op.name == "tile.set_validshape" and is_packed(op.type):
            return made.replace(args=NodeList([made.args[0], tile_type_of(op).shape[0], *made.args[2:]]))
        if space_of(op) is MemorySpace.Acc:
            at = [i for i, param in enumerate(decl.args) if param.name == "lhs"]
            return self._with(made, ((i, self._all_rows(made.args[i])) for i in at))
        if op.op.name == "tile.move" and space_of(op) is MemorySpace.Vec:
            return made
        packed = (i for i, arg in enumerate(op.args) if is_packed(arg.type))
        return self._with(made, ((i, self._valid_rows(made.args[i], tile_type_of(op.args[i]))) for i in packed))

    def _with(self, call: Call, changes: Iterable[tuple[int, Expr]]) -> Call:
        changed = dict(changes)
        return call.replace(args=NodeList(changed.get(i, arg) for i, arg in enumerate(call.args)))

    def _all_rows(self, left: Expr) -> Expr:
        kind = tile_type_of(left)
        return self._shown(left, build("tile.set_validshape", left, kind.shape[0], kind.valid_shape[1], span=self.span))

    def _valid_rows(self, product: Expr, before: TileType) -> Expr:
        """The product as it was, its boxes those of all rows."""
        rows, cols = before.valid_shape
        return self._shown(product, build("tile.set_validshape", product, self.rewrite(rows), cols, span=self.span))

    def _shown(self, tile: Expr, call: Call) -> Var:
        return self.emit(tile.name_hint if isinstance(tile, Var) else "tile", call)
