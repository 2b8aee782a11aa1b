"""LegalizeTileAssemble: tiles assembled where no vector instruction may write are written element by element.

Vector instructions write from multiples of 32 bytes on. An assemble in Vec whose place provably starts at one stays the
copy it is; any other becomes loops over the source's valid region. Late, so that planning sees one copy in place.
"""

from __future__ import annotations

from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import MemorySpace, TileLayout
from ..ir.expr import Call, Expr, Var, index_const
from ..ir.memref import MemRef
from ..ir.node import EMPTY
from ..ir.program import INCORE_TYPES, Function
from ..ir.span import Span
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, Stmt, seq
from ..ir.types import ScalarType, TileType
from ..ops.registry import rebind
from ..ops.rules import layout_of, plus
from .base import P, Pass, function_pass
from .canonicalize_tile_slice.facts import ScalarFacts
from .emitting import EmittingRewriter, build, kind_of

VECTOR_ALIGNMENT = 32
"""Bytes (hardware.md: the base address of a vector instruction's operand)."""


def legalize_tile_assemble() -> Pass:
    """The pass. Raises ValueError where elements cannot be written one by one."""
    return function_pass(
        "LegalizeTileAssemble",
        _run,
        requires={P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D},
        looks_for=("tile.assemble",),
        only=INCORE_TYPES,
    )


def _run(function: Function) -> Function:
    return _Legalizer().rewrite(function)


class _Legalizer(EmittingRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._facts = ScalarFacts()

    def rewrite_for(self, op: ForStmt) -> Stmt:
        self._facts.learn_loop(op)
        return self.generic(op)

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        call = op.value
        if not isinstance(call, Call) or call.op.name != "tile.assemble":
            self._facts.learn(op)
            return self.generic(op)
        if self._aligned(call):
            return self.generic(op)
        target = call.args[0]
        if not isinstance(target, Var) or not _one_buffer(op.var.type, target.type):
            raise _refused(call)
        self.emit_stmt(self._copied(call, target))
        return op.replace(value=target)

    def _aligned(self, call: Call) -> bool:
        """Whether the place starts at a multiple of 32 bytes; rows do, and are that long."""
        kind = kind_of(call.args[0])
        if kind.memory_space is not MemorySpace.Vec:
            return True
        row, column = rebind(call)["offset"].elements
        along = column if layout_of(kind)[0] is TileLayout.row_major else row
        return self._facts.remainder(along, kind.dtype.get_byte(), VECTOR_ALIGNMENT) == 0

    def _copied(self, call: Call, target: Var) -> Stmt:
        """Loops that write each valid element of the source at its place in ``target``."""
        source, span = call.args[1], call.span
        place = rebind(call)["offset"].elements
        index = [Var(name, ScalarType(DataType.INDEX), span) for name in ("row", "column")]
        element = build("tile.read", source, index, span=span)
        read = Var("element", element.type, span)
        written = build("tile.write", target, [plus(o, i) for o, i in zip(place, index)], read, span=span)
        body = seq([AssignStmt(read, element, span), EvalStmt(written, span)])
        for var, extent in zip(reversed(index), reversed(kind_of(source).valid_shape)):
            body = _loop(var, extent, body, span)
        return body


def _loop(var: Var, stop: Expr, body: Stmt, span: Span) -> ForStmt:
    return ForStmt(var, index_const(0), stop, index_const(1), EMPTY, body, EMPTY, span)


def _one_buffer(made: object, target: object) -> bool:
    if not isinstance(made, TileType) or not isinstance(target, TileType):
        return False
    here, there = made.memref, target.memref
    return here is not None and there is not None and MemRef.same_allocation(here, there)


def _refused(call: Call) -> Exception:
    return user_error(
        ValueError,
        "the place assembled into does not provably start at a multiple of 32 bytes, and its tile is written elsewhere",
        call.span,
        "assemble at a column that is a multiple of 32 bytes, or write elements with pl.tile.write",
    )
