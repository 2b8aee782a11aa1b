"""FoldNoOpReshape: a reshape of a tile to what it is already, in its own place, becomes another name of it."""

from __future__ import annotations

from ..ir.expr import Call, Var
from ..ir.memref import MemRef
from ..ir.program import INCORE_TYPES
from ..ir.stmt import AssignStmt, Stmt
from ..ir.types import TileType, Type
from .base import P, Pass, function_pass
from .bodies import BodyRewriter


def fold_no_op_reshape() -> Pass:
    """The pass; see the module."""
    return function_pass(
        "FoldNoOpReshape",
        lambda function: _Folder().rewrite(function),
        requires={P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D},
        only=INCORE_TYPES,
    )


class _Folder(BodyRewriter):
    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        call = op.value
        if not isinstance(call, Call) or call.op.name != "tile.reshape":
            return op
        source = call.args[0]
        return op.replace(value=source) if isinstance(source, Var) and _same(op.var.type, source.type) else op


def _same(made: Type, source: Type) -> bool:
    """Whether two tiles are one buffer seen the same way."""
    if not isinstance(made, TileType) or not isinstance(source, TileType):
        return False
    here, there = made.memref, source.memref
    if here is None or there is None or not MemRef.same_allocation(here, there):
        return False
    return made.replace(memref=None) == source.replace(memref=None)
