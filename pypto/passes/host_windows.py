"""The communication windows of a function, and what the passes on them share."""

from __future__ import annotations

from typing import Any, Final

from ..errors import user_error
from ..ir.expr import Call, Expr, GlobalVar, IterArg, Submit, TupleGetItemExpr, Var
from ..ir.naming import written_name
from ..ir.node import IRNode
from ..ir.program import Function
from ..ir.stmt import AssignStmt
from ..ir.types import DistributedTensorType
from ..ir.visitor import Visitor
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


def names_in(root: IRNode) -> set[str]:
    """Names of the variables and windows of a function or program."""
    found = _Names()
    found.visit(root)
    return found.names


class _Names(Visitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def define(self, var: Any) -> None:
        self.names.add(var.name_hint)
        super().define(var)

    def visit_var(self, op: Var) -> None:
        self.names.add(op.name_hint)

    def visit_call(self, op: Call) -> None:
        if op.op.name == ALLOC:
            self.names.add(op.kwargs["name"])
        self.generic(op)


class WindowLineage(FlowVisitor):
    """Which window each variable of a function is, followed through aliases, calls, loops and branches.

    ``allocations`` are the assignments that make windows, in order, by pointer. ``of`` maps a variable to the pointer
    of its allocation, or to the distributed parameter it is. One variable that may be two windows is refused.
    """

    def __init__(self, function: Function, lineage: ReturnLineage) -> None:
        super().__init__()
        self.allocations: dict[Var, AssignStmt] = {}
        self.of: dict[Var, Var] = {p: p for p in function.params if isinstance(p.type, DistributedTensorType)}
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
        found = self.window_of(value)
        if found is None:
            return
        known = self.of.setdefault(var, found)
        if known is not found:
            name, first, second = (f"'{written_name(v.name_hint)}'" for v in (var, known, found))
            loop = f"Rebinding loop-carried DistributedTensor {name} to another window is not supported: it"
            branch = f"Assigning a different DistributedTensor in each branch of an `if` is not supported: {name}"
            raise user_error(
                ValueError,
                f"{loop if isinstance(var, IterArg) else branch} would be {first} at one time and {second} at another",
                var.span,
                "give each window a variable of its own",
            )

    def window_of(self, value: Expr | None) -> Var | None:
        """The window ``value`` is, as in ``of``."""
        if isinstance(value, Var):
            return self.of.get(value)
        if isinstance(value, TupleGetItemExpr):
            source = self._tuples.get(value.tuple) if isinstance(value.tuple, Var) else value.tuple
            if not isinstance(source, (Call, Submit)) or not isinstance(source.op, GlobalVar):
                return None
            return self.window_of(self._lineage.returned_arg(source, value.index))
        if not isinstance(value, Call):
            return None
        if isinstance(value.op, GlobalVar):
            return self.window_of(self._lineage.returned_arg(value, 0))
        if value.op.name == WINDOW:
            pointer = value.args[0]
            return pointer if isinstance(pointer, Var) and pointer in self.allocations else None
        decl = value.op.decl
        same = (decl.reuses or decl.inherits) if decl is not None else None
        return self.window_of(value.args[decl.arg_index(same)]) if decl is not None and same is not None else None
