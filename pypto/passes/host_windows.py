"""The communication windows of a host function, and what the passes on them share."""

from __future__ import annotations

from typing import Final

from ..errors import user_error
from ..ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ..ir.program import Function
from ..ir.stmt import AssignStmt
from .bodies import FlowVisitor
from .return_lineage import ReturnLineage

ALLOC: Final = "pld.tensor.alloc_window_buffer"
WINDOW: Final = "pld.tensor.window"
ALLREDUCE: Final = "pld.tensor.allreduce"
DATA_OF: Final = {
    ALLREDUCE: "src", "pld.tensor.broadcast": "target", "pld.tensor.reduce_scatter": "target",
    "pld.tensor.allgather": "target", "pld.tensor.all_to_all": "target", "pld.tensor.all_to_all_v": "target",
    "pld.tensor.barrier": "signal",
}  # fmt: skip
"""The collectives, each with the argument that is its result."""


def check_mode(mode: str, span: object) -> None:
    """Raise KernelValueError for an allreduce that is neither over a mesh nor around a ring."""
    if mode not in ("mesh", "ring"):
        raise user_error(ValueError, f'{ALLREDUCE} mode must be "ring" or "mesh", got "{mode}"', span)


class WindowLineage(FlowVisitor):
    """Which allocation each variable of a host function lies in, followed through aliases, calls, loops and branches.

    ``allocations`` are the assignments that make them, in order; ``of`` maps a variable to the allocation's pointer.
    """

    def __init__(self, function: Function, lineage: ReturnLineage) -> None:
        super().__init__()
        self.allocations: dict[Var, AssignStmt] = {}
        self.of: dict[Var, Var] = {}
        self._lineage = lineage
        self._tuples: dict[Var, Expr] = {}
        self.visit(function)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.visit(op.value)
        if isinstance(op.value, Call) and op.value.op.name == ALLOC:
            self.allocations[op.var] = op
            return
        if isinstance(op.value, (Call, Submit)) and isinstance(op.value.op, GlobalVar):
            self._tuples[op.var] = op.value
        self.flow(op.value, op.var)

    def flow(self, value: Expr, var: Var) -> None:
        found = self.buffer_of(value)
        if found is not None:
            self.of.setdefault(var, found)

    def buffer_of(self, value: Expr | None) -> Var | None:
        """The pointer of the allocation ``value`` lies in."""
        if isinstance(value, Var):
            return self.of.get(value)
        if isinstance(value, TupleGetItemExpr):
            source = self._tuples.get(value.tuple) if isinstance(value.tuple, Var) else value.tuple
            if not isinstance(source, (Call, Submit)) or not isinstance(source.op, GlobalVar):
                return None
            return self.buffer_of(self._lineage.returned_arg(source, value.index))
        if not isinstance(value, Call):
            return None
        if isinstance(value.op, GlobalVar):
            return self.buffer_of(self._lineage.returned_arg(value, 0))
        if value.op.name == WINDOW:
            pointer = value.args[0]
            return pointer if isinstance(pointer, Var) and pointer in self.allocations else None
        decl = value.op.decl
        same = (decl.reuses or decl.inherits) if decl is not None else None
        return self.buffer_of(value.args[decl.arg_index(same)]) if decl is not None and same is not None else None
