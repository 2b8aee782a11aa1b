"""Rules about what operators do with the memories and element types of their operands."""

from __future__ import annotations

from ...backend import TARGETS
from ...errors import Diagnostic
from ...ir.enums import AtomicType, MemorySpace
from ...ir.expr import Call, Expr
from ...ir.program import Function, Program, is_incore_type, summarize
from ...ir.stmt import AssignStmt, EvalStmt
from ...ir.types import TensorType, TileType
from ...ops.registry import ArgEffect, decl_of, rebind
from ..context import current_or_default
from ..core_affinity import space_of
from .driver import Rule


class TileMemoryInferred(Rule):
    """Every tile that is assigned has a memory, and every tile operand is in one its operator takes."""

    name = "TileMemoryInferred"

    def enter_function(self, function: Function) -> bool:
        return is_incore_type(function.func_type)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        type = op.var.type
        if isinstance(type, TileType) and type.memory_space is None:
            self.report(f"Tile '{op.var.name_hint}' has no memory space", op.span)
        self._check_operands(op.value)

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        self._check_operands(op.expr)

    def _check_operands(self, value: Expr) -> None:
        decl = decl_of(value)
        if decl is None or not decl.spaces or not isinstance(value, Call):
            return
        for param, arg in zip(decl.args, value.args):
            allowed = decl.spaces.get(param.name)
            space = space_of(arg)
            if allowed and space is not None and space not in allowed:
                names = ", ".join(s.name for s in allowed)
                self.report(f"{decl.name}: operand '{param.name}' is in {space.name}, must be in {names}", value.span)


class _StoreRule(Rule):
    """Looks at what calls write to global memory, on the target compiled for."""

    expressions = True

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        super().__init__(program, found)
        self._target = current_or_default().target


class AtomicAddDtypeValid(_StoreRule):
    """Atomic additions have an element type the target's stores can add."""

    name = "AtomicAddDtypeValid"

    def visit_call(self, op: Call) -> None:
        if op.kwargs.get("atomic") is not AtomicType.Add or op.op.decl is None:
            return
        written = _written_tensor(op)
        if written is not None and written.dtype not in self._target.atomic_add_dtypes:
            names = ", ".join(sorted(d.name.lower() for d in self._target.atomic_add_dtypes))
            able = [t.name for t in TARGETS if written.dtype in t.atomic_add_dtypes]
            elsewhere = f"; {', '.join(able)} can" if able else ""
            target = f"{self._target.name} ({self._target.pto_arch})"
            message = f"{op.op.name}: {target} cannot add {written.dtype.name.lower()} atomically{elsewhere}"
            self.report(message, op.span, hint=f"it adds {names}")


class AccToGmStoreValid(_StoreRule):
    """What a store from the accumulator writes has an element type the target converts to on the way."""

    name = "AccToGmStoreValid"

    def enter_function(self, function: Function) -> bool:
        return "tile.store" in summarize(function).ops

    def visit_call(self, op: Call) -> None:
        if op.op.name != "tile.store":
            return
        source, written = op.args[0].type, _written_tensor(op)
        if not isinstance(source, TileType) or source.memory_space is not MemorySpace.Acc or written is None:
            return
        if written.dtype not in self._target.acc_store_dtypes:
            names = ", ".join(sorted(d.name for d in self._target.acc_store_dtypes))
            message = f"tile.store from Acc cannot write {written.dtype.name}"
            self.report(message, op.span, hint=f"{self._target.name} stores {names} from Acc")


def _written_tensor(op: Call) -> TensorType | None:
    """The type of the tensor a store-like operator writes."""
    bound = rebind(op)
    for param in bound.decl.args:
        value = bound[param.name]
        if param.effect is not ArgEffect.Read and value is not None and isinstance(value.type, TensorType):
            return value.type
    return None
