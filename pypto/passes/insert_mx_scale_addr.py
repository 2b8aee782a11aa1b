"""InsertMxScaleAddr: the scales of a block-scaled product, bound to where the cube reads those of its data.

The cube finds the scales of an operand at an address that follows from the operand's own. Each product binds anew:
binding changes the scale buffer in place, so that another name for it says nothing of where it points. A second run
therefore binds again, with the same effect.
"""

from __future__ import annotations

from ..ir.enums import MemorySpace
from ..ir.expr import Call, Expr, Var
from ..ir.naming import written_name
from ..ir.program import Function
from ..ir.stmt import AssignStmt, EvalStmt, Stmt
from .base import P, Pass, function_pass
from .emitting import EmittingRewriter, build, kind_of, reinfer

_FORMS = {"": 0, "_bias": 0, "_acc": 1}
_PRODUCTS = {f"tile.{kind}_mx{form}": first for kind in ("matmul", "gemv") for form, first in _FORMS.items()}
"""Where the left operand stands; its scales, the right operand and that one's scales follow."""
_SIDES = {(MemorySpace.LeftScale, MemorySpace.Left), (MemorySpace.RightScale, MemorySpace.Right)}


def insert_mx_scale_addr() -> Pass:
    """The pass."""
    kept = {P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.NormalizedStmtStructure, P.TileMemoryInferred}
    return function_pass("InsertMxScaleAddr", _bind, requires=kept, produces=kept, looks_for=tuple(_PRODUCTS))


def _bind(function: Function) -> Function:
    return _Binder().rewrite(function) if function.is_incore else function


class _Binder(EmittingRewriter):
    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        call = op.value
        if not isinstance(call, Call) or call.op.name not in _PRODUCTS:
            return self.generic(op)
        return op.replace(value=self._bound(call), var=self.define(op.var))

    def rewrite_eval(self, op: EvalStmt) -> Stmt:
        call = op.expr
        if not isinstance(call, Call) or call.op.name not in _PRODUCTS:
            return self.generic(op)
        return op.replace(expr=self._bound(call))

    def _bound(self, call: Call) -> Call:
        """``call`` on scales bound just before it."""
        args = [self.rewrite(a) for a in call.args]
        first = _PRODUCTS[call.op.name]
        for data in (first, first + 2):
            args[data + 1] = self._scale(args[data], args[data + 1], call)
        return reinfer(call, args)

    def _scale(self, data: Expr, scale: Expr, call: Call) -> Expr:
        if not isinstance(scale, Var) or (kind_of(scale).memory_space, kind_of(data).memory_space) not in _SIDES:
            return scale
        made = build("tile.tget_scale_addr", scale, data, span=call.span)
        return self.emit(f"{written_name(scale.name_hint)}_bound", made)
