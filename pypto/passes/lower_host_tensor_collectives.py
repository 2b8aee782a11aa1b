"""LowerHostTensorCollectives: a host function's collectives become the runtime's own, launched on each device.

The devices are those of the communication domain the windows lie in: one launch for each where they are known, a loop
over all ranks otherwise. The result of a collective is the window it worked on.
"""

from __future__ import annotations

from typing import Any, Final

from ..dtypes import DataType
from ..errors import Diagnosed, user_error
from ..ir.enums import ArgDirection, CoreType, ReduceOp
from ..ir.expr import Call, Expr, Var, index_const
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, CommDomainScopeStmt, EvalStmt, ForStmt, Stmt, seq
from ..ir.types import DistributedTensorType, ScalarType
from ..ops.registry import ArgEffect, Bound, get_decl, rebind
from ..ops.rules import product, shaped, value
from .base import P, Pass
from .context import PassContext
from .emitting import EmittingRewriter, build, kind_of
from .host_windows import DATA_OF, check_mode

_MOST_RING_RANKS: Final = 16


def lower_host_tensor_collectives() -> Pass:
    """The pass."""
    return Pass(
        "LowerHostTensorCollectives",
        _lower,
        requires={P.CommDomainScopesMaterialized},
        produces={P.CommDomainScopesMaterialized},
        looks_for=tuple(DATA_OF),
    )


def _lower(program: Program, context: PassContext) -> Program:
    cores = context.target.core_count(CoreType.VECTOR)

    def change(function: Function) -> Function:
        return _Lowering(cores).rewrite(function) if function.is_host_orchestrator else function

    return program.map_functions(change)


class _Lowering(EmittingRewriter):
    def __init__(self, cores: int) -> None:
        super().__init__()
        self._cores = cores
        self._domains: list[CommDomainScopeStmt] = []

    def visit_comm_domain_scope_stmt(self, op: CommDomainScopeStmt) -> Stmt:
        self._domains.append(op)
        made = self.generic(op)
        self._domains.pop()
        return made

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        if not _is_collective(op.value):
            return self.generic(op)
        return op.replace(value=self._launched(op.value), var=self.define(op.var))

    def rewrite_eval(self, op: EvalStmt) -> Stmt | None:
        if not _is_collective(op.expr):
            return self.generic(op)
        self._launched(op.expr)
        return None

    def _launched(self, call: Any) -> Expr:
        """Emits the launches of ``call``; its result."""
        checked = _Checked(call, self._domains, self._cores)
        name, kwargs = checked.builtin()
        made = build(name, *checked.windows, span=call.span, **kwargs)
        decl = made.op.decl
        reads = [p.effect is ArgEffect.Read for p in decl.args]
        attrs = {"arg_directions": [ArgDirection.Input if r else ArgDirection.InOut for r in reads], **made.kwargs}

        def launch(device: Expr) -> Stmt:
            return EvalStmt(made.replace(attrs={"device": device, **attrs}), call.span)

        if checked.devices:
            for device in checked.devices:
                self.emit_stmt(launch(index_const(device)))
        else:
            rank = Var("r", ScalarType(DataType.INDEX), call.span)
            every = build("pld.system.world_size", span=call.span)
            body = seq([launch(rank)], call.span)
            self.emit_stmt(ForStmt(rank, index_const(0), every, index_const(1), (), body, (), call.span))
        return checked.result


def _is_collective(e: Expr) -> bool:
    return isinstance(e, Call) and e.op.name in DATA_OF


class _Checked:
    """A collective whose windows are sound: ``windows`` in order, ``devices`` that take part, none meaning all."""

    def __init__(self, call: Call, domains: list[CommDomainScopeStmt], cores: int) -> None:
        self._call, self._cores = call, cores
        bound = self._bound = rebind(call)
        self._short = call.op.name.rpartition(".")[2]
        self._names = [p.name for p in bound.decl.args]
        if bound.values.get("signal") is None:
            raise self._refuse("has no signal: SynthesizeAllReduceSignals has not run")
        self.windows = [bound[n] for n in self._names]
        self.result: Expr = bound[DATA_OF[call.op.name]]
        buffers = [self._buffer(n) for n in self._names]
        for i, first in enumerate(buffers):
            for j in range(i + 1, len(buffers)):
                if first is buffers[j]:
                    raise self._refuse(
                        f"{self._shown(i)} and {self._shown(j)} must be different window allocations: peers write one "
                        "while the other is read",
                        "allocate a window for each",
                    )
        domain = next((d for d in domains if all(b in d.slots for b in buffers)), None)
        if domain is None:
            raise self._refuse("has windows that different devices share", "launch on one set of devices with all")
        self.devices: list[int] = list(domain.devices)
        self._check(bound)

    def _shown(self, i: int) -> str:
        return "input" if self._names[i] == "local_data" else self._names[i]

    def _refuse(self, message: str, hint: str | None = None) -> Diagnosed:
        return user_error(ValueError, f"{self._call.op.name} {message}", self._call.span, hint)

    def _buffer(self, name: str) -> Expr:
        t = self._bound.type(name)
        if not isinstance(t, DistributedTensorType) or t.window_buffer is None:
            shown = self._shown(self._names.index(name))
            raise self._refuse(
                f"{shown} must be a window-bound DistributedTensor on the host, got {t}",
                f"{shown} = pld.window(buffer, shape, dtype=..)",
            )
        return t.window_buffer

    def builtin(self) -> tuple[str, dict[str, Any]]:
        """The runtime's operator and its keywords."""
        ring = self._short == "allreduce" and self._bound["mode"] == "ring"
        name = f"builtin.tensor.{self._short}{'_ring' if ring else ''}"
        decl = get_decl(name)
        given = {**self._bound.values, "dtype": kind_of(self.result).dtype}
        return name, {p.name: given[p.name] for p in (decl.attrs if decl is not None else ())}

    def _check(self, bound: Bound) -> None:
        if self._short == "allreduce":
            check_mode(bound["mode"], self._call.span)
            if bound["mode"] == "ring":
                self._check_ring(bound)
                return
        self._check_lanes(bound.values.get("core_num") or 1)
        if self._short == "broadcast" and self.devices and bound["root"] >= len(self.devices):
            raise self._refuse(f"root ({bound['root']}) must be a valid rank in [0, {len(self.devices)})")

    def _check_lanes(self, lanes: int) -> None:
        """The signal has a counter for each rank and core."""
        signal = kind_of(self._bound["signal"])
        if lanes > self._cores:
            raise self._refuse(f"core_num={lanes} exceeds the backend AIV core count of {self._cores}")
        if len(signal.shape) == 1 and lanes > 1:
            raise self._refuse(
                f"rank-1 signal is valid only when one signal lane is required, got core_num={lanes}",
                f"pld.window(buffer, [pld.world_size(), {lanes}], dtype=pl.INT32)",
            )
        if len(signal.shape) not in (1, 2):
            raise self._refuse(f"needs a signal [ranks] or [ranks, cores], got {shaped(signal)}")
        if len(signal.shape) == 2 and self._short == "allreduce":
            stride = value(signal.shape[1])
            if stride is None:
                raise self._refuse("rank-2 signal shape[1] must be constant: it is the distance of two ranks' counters")
            if stride < lanes:
                raise self._refuse(f"signal shape[1] ({stride}) must be at least the required lane count ({lanes})")
        ranks, count = value(signal.shape[0]), len(self.devices)
        exact = self._short == "all_to_all_v"
        if ranks is not None and count and (ranks < count or (exact and ranks != count)):
            must = "equal" if exact else "be at least"
            raise self._refuse(f"signal shape[0] ({ranks}) must {must} the participating device count ({count})")

    def _check_ring(self, bound: Bound) -> None:
        signal, source = kind_of(bound["signal"]), kind_of(bound["src"])
        if bound["core_num"] > 1:
            raise self._refuse('mode="ring" does not support core_num > 1', "mode='mesh' shares the work")
        if bound["op"] is not ReduceOp.Sum or source.dtype is not DataType.FP32:
            raise self._refuse(
                f'mode="ring" supports ReduceOp.Sum of FP32 on the host, got {bound["op"].name} of {source.dtype}'
            )
        if len(signal.shape) != 2:
            raise self._refuse(f'mode="ring" needs a signal [2*(NR-1)+1, NR], got {shaped(signal)}')
        rows, columns = (value(d) for d in signal.shape)
        ranks = len(self.devices) or columns
        if ranks is not None and ranks > _MOST_RING_RANKS:
            raise self._refuse(f'mode="ring" runs on {_MOST_RING_RANKS} or fewer devices, got {ranks}')
        if columns is not None and len(self.devices) > columns:
            raise self._refuse(f"signal shape[1] ({columns}) must be at least the device count ({len(self.devices)})")
        needed = 2 * ((columns or ranks or 1) - 1) + 1
        if rows is not None and (rows < needed or (columns is not None and rows != needed)):
            raise self._refuse(f"signal shape[0] ({rows}) must be at least 2*(NR-1)+1 = {needed}, and with NR known it")
        self._check_shares(value(product(source.shape)), ranks)

    def _check_shares(self, size: int | None, ranks: int | None) -> None:
        if size is None:
            raise self._refuse('mode="ring" needs a constant shape: each rank reduces an equal share')
        if ranks is not None and size % ranks:
            raise self._refuse(f'mode="ring" needs {size} elements to be an exact multiple of the rank count {ranks}')
