"""LowerCompositeOps: operators no instruction computes become steps that instructions do.

Sine and cosine become arithmetic. Rows replaced in a tile (``tile.scatter_update``) are scattered by position, as those
of a tensor are. Collectives on a core become signals, waits and transfers between ranks; those of a host or of
orchestration are left to the passes that lower them there.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.expr import Call, Expr
from ...ir.naming import written_name
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt
from ..base import Pass, function_pass
from ..convert_tensor_to_tile_ops.rules_index import Steps, replace_rows
from ..emitting import EmittingRewriter
from .exchanges import all_to_all, all_to_all_v, allgather, barrier, broadcast
from .parts import Parts
from .reductions import allreduce, reduce_scatter
from .trigonometry import cosine, sine


def _rows_replaced(parts: Parts) -> Call:
    bound = parts.arguments()
    target, index, source = parts.argument(0), bound["index"], bound["src"]
    return replace_rows(Steps(parts.rewriter, parts.call, parts.name), target, source, index)


Rule = Callable[[Parts], Expr]
_TILE_RULES: dict[str, Rule] = {"tile.sin": sine, "tile.cos": cosine, "tile.scatter_update": _rows_replaced}
"""Operators of which only the value counts."""
_COLLECTIVES: dict[str, Rule] = {
    f"pld.tensor.{rule.__name__}": rule
    for rule in (allreduce, barrier, broadcast, reduce_scatter, allgather, all_to_all, all_to_all_v)
}
_ON_CORE = _TILE_RULES | _COLLECTIVES
"""How an operator is written out; the result is its value."""


def lower_composite_ops() -> Pass:
    """The pass."""
    return function_pass("LowerCompositeOps", _lower, looks_for=tuple(_ON_CORE))


def _lower(function: Function) -> Function:
    return _Lowering(_ON_CORE if function.is_incore else _TILE_RULES).rewrite(function)


class _Lowering(EmittingRewriter):
    def __init__(self, rules: dict[str, Rule]) -> None:
        super().__init__()
        self._rules = rules

    def _rule(self, value: Expr) -> Rule | None:
        return self._rules.get(value.op.name) if isinstance(value, Call) else None

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        rule = self._rule(op.value)
        if rule is None or not isinstance(op.value, Call):
            return self.generic(op)
        made = rule(Parts(self, written_name(op.var.name_hint), op.value))
        return op.replace(value=made, var=self.define(op.var))

    def rewrite_eval(self, op: EvalStmt) -> Stmt | None:
        rule = self._rule(op.expr)
        if rule is None or not isinstance(op.expr, Call):
            return self.generic(op)
        if op.expr.op.name in _COLLECTIVES:
            rule(Parts(self, "all", op.expr))
        return None

    def rewrite_return(self, op: ReturnStmt) -> Stmt:
        return op.replace(value=self.rewrite_list(op.value, self._value))

    def _value(self, value: Expr) -> Expr:
        """A returned value, a composite one bound to a name first."""
        rule = self._rule(value)
        if rule is None or not isinstance(value, Call):
            return self.rewrite(value)
        made = rule(Parts(self, "result", value))
        return self.emit("result", made) if isinstance(made, Call) else made
