"""SupplyScratch: a tile of scratch for sequences and conversions whose instructions want it named.

Only where the target's library does (`Quirks.explicit_scratch`), and where the call states none. It is made right
before its use, so that memory planning sees how short it lives.
"""

from __future__ import annotations

from collections.abc import Callable

from ..backend.scratch import narrowing_bytes, sequence_bytes
from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import Call
from ..ir.node import NodeList
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, Stmt
from ..ops.registry import Bound, rebind
from ..ops.rules import valid_of, value
from .base import P, Pass
from .context import PassContext
from .emitting import EmittingRewriter, build


def supply_scratch() -> Pass:
    """The pass."""
    properties = {P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D}
    return Pass(
        "SupplyScratch",
        _run,
        requires=properties,
        produces=properties | {P.NormalizedStmtStructure},
        looks_for=tuple(_NEEDS),
    )


def _run(program: Program, context: PassContext) -> Program:
    needed = context.has_target and context.target.quirks.explicit_scratch
    return program.map_functions(_supplied) if needed else program


def _supplied(function: Function) -> Function:
    return _Supplier().rewrite(function) if function.is_incore else function


def _sequence(b: Bound) -> int:
    return sequence_bytes(b["dtype"])


def _conversion(b: Bound) -> int:
    tile = b.type("tile")
    room = [value(dim) for dim in tile.shape]
    valid = [value(dim) for dim in valid_of(b, "tile")]
    if len(room) != 2 or room[0] is None or room[1] is None:
        return 0
    rows = room[0] if valid[0] is None else valid[0]
    return 0 if b["saturate"] else narrowing_bytes(tile.dtype, b["target_type"], rows, valid[1], room[1])


_NEEDS: dict[str, Callable[[Bound], int]] = {"tile.ci": _sequence, "tile.cast": _conversion}


class _Supplier(EmittingRewriter):
    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        call = op.value
        need = _NEEDS.get(call.op.name) if isinstance(call, Call) else None
        if need is None or not isinstance(call, Call):
            return self.generic(op)
        bound = rebind(call)
        size = need(bound) if bound["tmp"] is None else 0
        if not size:
            return self.generic(op)
        words = [1, size // DataType.INT32.get_byte()]
        scratch = build("tile.create", words, DataType.INT32, target_memory=MemorySpace.Vec, span=call.span)
        tmp = self.emit(f"{call.op.name.removeprefix('tile.')}_tmp", scratch)
        return self.generic(op.replace(value=call.replace(args=NodeList([*call.args, tmp]))))
