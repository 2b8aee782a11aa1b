"""Where variables are used."""

from __future__ import annotations

from ...ir.expr import Call, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt, Stmt
from ...ir.visitor import Visitor
from ...ops.registry import rebind
from .product import MATMULS


class Uses(Visitor):
    """Where each variable is an argument of a call, and whether it is used otherwise."""

    def __init__(self, function: Function) -> None:
        self.calls: dict[Var, list[tuple[Stmt, Call]]] = {}
        self.others: set[Var] = set()
        self._stmt: Stmt = function.body
        self.visit(function.body)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self._stmt = op
        self.visit(op.value)

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        self._stmt = op
        self.visit(op.expr)

    def visit_call(self, op: Call) -> None:
        for arg in op.args:
            if isinstance(arg, Var):
                self.calls.setdefault(arg, []).append((self._stmt, op))
            else:
                self.visit(arg)

    def visit_var(self, op: Var) -> None:
        self.others.add(op)

    def of(self, var: Var) -> list[tuple[Stmt, Call]]:
        """The calls that read ``var``, when nothing else does."""
        return [] if var in self.others else self.calls.get(var, [])

    def multiplied_only(self, var: Var) -> bool:
        """Whether ``var`` is used, and only as an operand of matrix products."""
        found = self.of(var)
        return bool(found) and all(_is_operand(var, call) for _, call in found)


def _is_operand(var: Var, call: Call) -> bool:
    if call.op.name not in MATMULS:
        return False
    bound = rebind(call)
    return var is not bound.values.get("acc") and var is not bound.values.get("bias")
