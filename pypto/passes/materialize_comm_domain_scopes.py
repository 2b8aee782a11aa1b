"""MaterializeCommDomainScopes: the windows of a host function are grouped by the devices that share them.

For each allocation the pass finds the views of it, the launches that get one, and on which devices those run; a
collective's signal is shared by those that share its data. Views get the `WindowBuffer` of their allocation in
their type, and the function's body is wrapped in a `CommDomainScopeStmt` for each set of devices, in the order of
their first allocation.
"""

from __future__ import annotations

from typing import Final

from ..errors import Diagnosed, user_error
from ..ir.expr import Call, ConstInt, Expr, GlobalVar, Submit, Var
from ..ir.memref import WindowBuffer
from ..ir.program import Function, Program, summarize
from ..ir.stmt import AssignStmt, CommDomainScopeStmt, EvalStmt, ForStmt, Stmt, WhileStmt
from ..ir.types import DistributedTensorType
from ..ir.visitor import Rewriter, Visitor
from ..ops.registry import rebind
from .base import P, Pass, program_pass
from .host_windows import ALLOC, DATA_OF, WINDOW, WindowLineage
from .return_lineage import ReturnLineage

_SHARED_WITH_DATA: Final = ("signal", "recv_counts")
Devices = frozenset[int] | None
"""The devices that share something; None for all there are."""


def materialize_comm_domain_scopes() -> Pass:
    """The pass."""
    return program_pass(
        "MaterializeCommDomainScopes", _materialize, produces={P.CommDomainScopesMaterialized}, looks_for=(ALLOC,)
    )


def _materialize(program: Program) -> Program:
    lineage = ReturnLineage(program)
    return program.map_functions(lambda f: _grouped(f, lineage) if f.is_host_orchestrator else f)


def _grouped(function: Function, lineage: ReturnLineage) -> Function:
    if CommDomainScopeStmt in summarize(function).kinds:
        return function
    windows = WindowLineage(function, lineage)
    if not windows.allocations:
        return function
    use = _Use(windows)
    use.visit(function)
    buffers = {pointer: WindowBuffer(pointer, _size(op), span=op.span) for pointer, op in windows.allocations.items()}
    groups: dict[Devices, list[WindowBuffer]] = {}
    for pointer, op in windows.allocations.items():
        slots = groups.setdefault(use.devices_of(pointer, op), [])
        if any(s.name_hint == pointer.name_hint for s in slots):
            raise user_error(ValueError, f"two windows of one domain are named '{pointer.name_hint}'", op.span)
        slots.append(buffers[pointer])
    body: Stmt = _Bound(windows, buffers).rewrite(function.body)
    for number, (devices, slots) in reversed(list(enumerate(groups.items()))):
        body = CommDomainScopeStmt(sorted(devices or ()), slots, f"comm_d{number}", body=body, span=function.span)
    return function.replace(body=body)


def _size(op: AssignStmt) -> Expr:
    return op.value.args[0]  # pyright: ignore[reportAttributeAccessIssue]


class _Use(Visitor):
    """On which devices each allocation is used."""

    def __init__(self, windows: WindowLineage) -> None:
        self._windows = windows
        self._values: dict[Var, Expr] = {}
        self._loops: list[ForStmt | WhileStmt] = []
        self._devices: dict[Var, Devices] = {}
        self._seen: set[Var] = set()
        self._data: dict[Var, list[Var]] = {}
        """For the windows of signals, those of the data they go with."""

    def devices_of(self, pointer: Var, op: AssignStmt) -> Devices:
        """The devices that share an allocation. Raises KernelValueError when none does."""
        if pointer not in self._seen:
            raise user_error(
                ValueError,
                f"window '{pointer.name_hint}' has no pld.tensor.window materialisation: nothing can use it",
                op.span,
                f"view = pld.window({pointer.name_hint}, [64], dtype=pl.FP32)",
            )
        found = [p for p in (pointer, *self._data.get(pointer, ())) if p in self._devices]
        if not found:
            raise user_error(
                ValueError,
                f"window '{pointer.name_hint}' is not consumed by any chip_orch dispatch, so that no device shares it",
                op.span,
                "pass its view to a function with device=..",
            )
        known = [self._devices[p] for p in found]
        return None if None in known else frozenset().union(*(k for k in known if k is not None))

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self._values.setdefault(op.var, op.value)
        self.visit(op.value)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        self._loops.append(op)
        self.generic(op)
        self._loops.pop()

    visit_while_stmt = visit_for_stmt

    def visit_call(self, op: Call | Submit) -> None:
        self.generic(op)
        if isinstance(op.op, GlobalVar):
            self._launch(op)
        elif op.op.name == WINDOW and isinstance(op.args[0], Var):
            self._seen.add(op.args[0])
        elif op.op.name in DATA_OF and isinstance(op, Call):
            self._collective(op)

    visit_submit = visit_call

    def _launch(self, op: Call | Submit) -> None:
        device = op.attrs.get("device")
        if device is None:
            return
        found = map(self._windows.window_of, op.args)
        used = {pointer for pointer in found if pointer is not None and pointer in self._windows.allocations}
        devices = self._resolve(device, op) if used else None
        for pointer in used:
            before: Devices = self._devices.get(pointer, frozenset())
            self._devices[pointer] = None if before is None or devices is None else before | devices

    def _collective(self, op: Call) -> None:
        if self._loops and op.op.name == "pld.tensor.all_to_all_v":
            raise user_error(
                ValueError,
                f"{op.op.name} is not supported inside a for/while loop of a host function: its signal counts once",
                op.span,
                "call it from a kernel, where its signal can be used again",
            )
        bound = rebind(op)
        data = self._windows.window_of(bound[DATA_OF[op.op.name]])
        for name in _SHARED_WITH_DATA:
            pointer = self._windows.window_of(bound.values.get(name))
            if data is not None and pointer is not None:
                self._data.setdefault(pointer, []).append(data)

    def _resolve(self, device: Expr, at: Call | Submit) -> Devices:
        """The devices an expression stands for. Raises KernelValueError when that is not known."""
        value = self._value(device)
        if isinstance(value, ConstInt):
            return frozenset({value.value})
        loop = next((s for s in self._loops if isinstance(s, ForStmt) and s.loop_var is value), None)
        if loop is None:
            raise _unknown_device("it is neither a constant nor the variable of a pl.range loop", at)
        start, stop, step = self._value(loop.start), self._value(loop.stop), self._value(loop.step)
        if not isinstance(step, ConstInt) or step.value != 1:
            raise _unknown_device("a non-unit-step loop is not supported", at)
        if isinstance(start, ConstInt) and isinstance(stop, ConstInt):
            return frozenset(range(start.value, stop.value))
        every = isinstance(stop, Call) and stop.op.name == "pld.system.world_size"
        if not every or not isinstance(start, ConstInt) or start.value != 0:
            raise _unknown_device("its loop must go from 0 to pld.world_size(), or between constants", at)
        return None

    def _value(self, value: Expr) -> Expr:
        while isinstance(value, Var) and value in self._values:
            value = self._values[value]
        return value


def _unknown_device(why: str, at: Call | Submit) -> Diagnosed:
    return user_error(
        ValueError, f"device= of '{at.op.name}' does not say which devices share its windows: {why}", at.span,
        "for r in pl.range(pld.world_size()): .. device=r",
    )  # fmt: skip


class _Bound(Rewriter):
    """Writes the window of each view into its type."""

    def __init__(self, windows: WindowLineage, buffers: dict[Var, WindowBuffer]) -> None:
        super().__init__()
        self._windows, self._buffers = windows, buffers

    def rebuild_var(self, var: Var) -> Var:
        made = super().rebuild_var(var)
        pointer = self._windows.of.get(var)
        buffer = self._buffers.get(pointer) if pointer is not None else None
        if buffer is None or not isinstance(made.type, DistributedTensorType):
            return made
        return made.replace(type=_in_window(made.type, buffer))

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value, var = self.rewrite(op.value), self.define(op.var)
        if isinstance(value, Call) and value.op.name in (WINDOW, *DATA_OF):
            value = value.replace(type=var.type)
        return op.replace(value=value, var=var)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        value = self.rewrite(op.expr)
        if value is not op.expr and isinstance(value, Call) and value.op.name in DATA_OF:
            value = value.replace(type=rebind(value)[DATA_OF[value.op.name]].type)
        return op.replace(expr=value)


def _in_window(t: DistributedTensorType, window: WindowBuffer) -> DistributedTensorType:
    return DistributedTensorType(t.shape, t.dtype, t.memref, t.tensor_view, window)
