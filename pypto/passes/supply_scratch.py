"""SupplyScratch: the scratch tile an instruction must be given, where a call states none or one that will not do.

What it must be is in the instruction's declaration (`scratch` in `pypto.pto.spec`). The tile is made right before its
use, so that memory planning sees how short it lives. Without a target nothing is known of instructions, and nothing
changes.
"""

from __future__ import annotations

from ..backend.target import Target
from ..ir.enums import MemorySpace
from ..ir.expr import Call, Expr, Var
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, Stmt
from ..ir.types import TileType
from ..ops.registry import call_of, rebind
from ..ops.rules import all_same
from .base import P, Pass
from .context import PassContext
from .contracts import instruction_of, site_of
from .emitting import EmittingRewriter, build, kind_of


def supply_scratch() -> Pass:
    """The pass."""
    properties = {P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D}
    return Pass(
        "SupplyScratch",
        _run,
        requires=properties,
        produces=properties | {P.NormalizedStmtStructure},
        looks_for=(TileType,),
    )


def _run(program: Program, context: PassContext) -> Program:
    if not context.has_target:
        return program
    target = context.target
    return program.map_functions(lambda function: _supplied(function, target))


def _supplied(function: Function, target: Target) -> Function:
    return _Supplier(target).rewrite(function) if function.is_incore else function


class _Supplier(EmittingRewriter):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        made = self._with_scratch(op.value) if isinstance(op.value, Call) else None
        return self.generic(op) if made is None else op.replace(value=made)

    def rewrite_eval(self, op: EvalStmt) -> Stmt:
        made = self._with_scratch(op.expr) if isinstance(op.expr, Call) else None
        return self.generic(op) if made is None else op.replace(expr=made)

    def _with_scratch(self, call: Call) -> Call | None:
        """The call with scratch that will do; None where it has it, or needs none."""
        from ..pto.elements import data_type
        from ..pto.scratch import short_of

        decl = call.op.decl
        spec = None if decl is None or "tmp" not in decl.by_name else instruction_of(decl)
        if spec is None or spec.scratch is None:
            return None
        site = site_of(call, self.target)
        room = None if site is None else short_of(site)
        if room is None:
            return None
        dtype = data_type(room.dtype or "i32")
        assert dtype is not None
        shape = [room.rows, room.cols]
        scratch = build("tile.create", shape, dtype, target_memory=MemorySpace.Vec, span=call.span)
        tmp = self.emit(f"{call.op.name.removeprefix('tile.')}_tmp", scratch)
        bound = rebind(call)
        bound.values["tmp"] = self._as_valid(tmp, bound.arg(0)) if room.like_source else tmp
        made = call_of(bound, call.type)
        return made.replace(attrs=call.attrs) if call.attrs else made

    def _as_valid(self, tmp: Var, source: Expr) -> Var:
        """Scratch that is valid where the source is."""
        region = kind_of(source).valid_shape
        if all_same(region, kind_of(source).shape):
            return tmp
        return self.emit("tmp_valid", build("tile.set_validshape", tmp, *region, span=source.span))
