"""Runs a program of several devices: what its host function launches on each, and the windows they share.

Launches are tasks that run side by side. One begins when the launches before it on its device have ended, and those it
takes data from: the ones that write what it reads or writes, or read what it writes, of the caller's memory. Windows
make no such order between devices; that is what signals are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..backend import Target
from ..errors import Diagnosed, Location, user_error
from ..ir.enums import ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, Var
from ..ir.memref import WindowBuffer
from ..ir.naming import written_name
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import AssignStmt, CommDomainScopeStmt
from ..ops.registry import Bound
from ..passes.host_windows import ALLOC, WINDOW
from ..passes.return_lineage import ReturnLineage
from ..simulator.ranks import SharedMemory, Slice, Window, context_of
from ..simulator.scheduler import Wait
from .collectives import BUILTINS, Meeting, collective
from .host import Host
from .sub_workers import SubWorkers

if TYPE_CHECKING:
    from ..simulator.scheduler import Scheduler, Steps, Task
    from ..simulator.trace import Point, Strand
    from .launch import Launcher


class WindowMemory(NamedTuple):
    """An allocated window: its memory, a part for each of ``devices``, in the order of their ranks in it."""

    memory: SharedMemory
    devices: Sequence[int]


class WindowView(NamedTuple):
    """A tensor that is another slice on each of ``devices``."""

    window: Window
    devices: Sequence[int]

    def on(self, device: int) -> Slice:
        return self.window.slices[self.devices.index(device)]


class WindowContext(NamedTuple):
    """The communication context of a window, another on each device."""

    view: WindowView

    def on(self, device: int) -> np.ndarray:
        return context_of(self.view.on(device))


class _Recorded(NamedTuple):
    """A launch in a sanitized run: what it is part of, where it was launched, and the point it reached at its end."""

    strand: Strand
    start: Point
    end: list[Point]


class _Running(NamedTuple):
    """A launch that may not have ended, with the caller's memory it uses."""

    task: Task
    reads: list[np.ndarray]
    writes: list[np.ndarray]
    recorded: _Recorded | None

    def conflicts(self, reads: Iterable[np.ndarray], writes: Iterable[np.ndarray]) -> bool:
        """Whether what uses these arrays must wait for it."""
        return _overlap(self.writes, (*reads, *writes)) or _overlap(self.reads, writes)


def _ends(launches: Iterable[_Running]) -> list[Point]:
    """The points that launches reached at their ends."""
    return [point for r in launches if r.recorded is not None for point in r.recorded.end]


def _overlap(some: Iterable[np.ndarray], others: Iterable[np.ndarray]) -> bool:
    others = list(others)
    return any(np.may_share_memory(a, b) and np.shares_memory(a, b) for a in some for b in others)


class DeviceHost(Host):
    """One run of a host function on several devices. ``launchers`` has one for each; the last index is not the card."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        launchers: Sequence[Launcher],
        scheduler: Scheduler,
        dims: Mapping[Var, int],
        target: Target,
        workers: SubWorkers,
        strand: Strand | None = None,
    ) -> None:
        super().__init__(functions, launchers[0].launch, dims, target, strand)
        self.launchers, self.scheduler, self.workers = launchers, scheduler, workers
        self.lineage = ReturnLineage(functions)
        self._running: list[_Running] = []
        self._on_host_strands: list[Strand] = []
        self._last: dict[int, Task] = {}
        self._devices_of: dict[Var, Sequence[int]] = {}
        self._meetings: dict[tuple[SharedMemory, int], Meeting] = {}
        self._attended: dict[tuple[SharedMemory, int], int] = {}
        """How many collectives counted in a window each device has been sent to."""

    @property
    def world_size(self) -> int:
        return len(self.launchers)

    def run_all(self, function: Function, args: Sequence[Any]) -> Steps:
        """Run ``function`` and wait for all it launched; gives its returned values."""
        if function.is_host_worker:
            return self.workers.run(function, args)
        results = yield from self.run(function, args)
        yield from self.scheduler.join([r.task for r in self._running])
        if self.strand is not None:
            own = [launcher.strand for launcher in self.launchers if launcher.strand is not None]
            self.strand.join([*own, *self._on_host_strands])
        return results

    # Windows

    def _domain(self, stmt: CommDomainScopeStmt) -> Steps:
        devices = [int(d) for d in stmt.devices] or range(self.world_size)
        for slot in stmt.slots:
            if isinstance(slot, WindowBuffer):
                self._check_devices(devices, f"window '{written_name(slot.name_hint)}' is shared by", slot.base.span)
                self._devices_of[slot.base] = devices
        return (yield from self._block(stmt.body))

    def _check_devices(self, devices: Iterable[int], what: str, span: Span) -> None:
        missing = next((d for d in devices if not 0 <= d < self.world_size), None)
        if missing is not None:
            count = f"{self.world_size} device{'s' if self.world_size != 1 else ''}"
            raise user_error(
                ValueError,
                f"{what} device {missing}, but the program runs on {count}, 0 to {self.world_size - 1}",
                span,
                hint="give a card for each rank: distributed_config=DistributedConfig(device_ids=[0, 1])",
            )

    def _assign(self, stmt: AssignStmt) -> Steps:
        call = stmt.value
        if isinstance(call, Call) and call.op.name == ALLOC:
            devices = self._devices_of.get(stmt.var, range(self.world_size))
            name, size = written_name(stmt.var.name_hint), int(self._value(call.args[0]))
            memory = _made(SharedMemory, call.span, name, size, len(devices))
            self.env[stmt.var] = WindowMemory(memory, devices)
            return
        yield from super()._assign(stmt)

    # Launches

    def _result(self, expr: Expr) -> Steps:
        if isinstance(expr, Call) and not isinstance(expr.op, GlobalVar):
            yield from self._wait_for_memory(expr)
        return (yield from super()._result(expr))

    def _invoke(self, call: Call | Submit, core_num: Expr | None, retired: bool = False) -> Steps:
        function = self.functions[call.op.name]
        if function.is_host_orchestrator:
            return (yield from self.run(function, [self._value(a) for a in call.args]))
        task, results = self._launched(call, core_num, retired)
        return results if results is not None else (yield from self.scheduler.join([task]))[0]

    def _launched(self, call: Call | Submit, core_num: Expr | None, retired: bool) -> tuple[Task, list[Any] | None]:
        """Launch a function on its device; the task, and its results where they are arguments."""
        function = self.functions[call.op.name]
        given = [self._value(a) for a in call.args]
        if function.is_host_worker:
            return self._on_host(function, given, call), None if function.return_types else []
        device = self._device(call)
        values = [v.on(device) if isinstance(v, (WindowView, WindowContext)) else v for v in given]
        blocks = 0 if retired else self._blocks(function, call, core_num)
        steps = self.launchers[device].launch(function, values, blocks)
        reads, writes = _memory_of(function, values)
        task = self.start(f"rank {device}, {function.name!r},", device, steps, reads, writes, call.span)
        returned = self.lineage.of(function.name)
        known = [given[i] for i in returned if i is not None]
        return task, known if len(known) == len(returned) else None

    def _on_host(self, function: Function, values: list[Any], call: Call | Submit) -> Task:
        """Launch a sub-worker. It may write all memory that it gets."""
        for arg, value in zip(call.args, values):
            if isinstance(value, WindowView):
                raise _on_one_device(call, arg)

        def steps() -> Steps:
            yield from ()
            return self.workers.run(function, values)

        memory = [v for v in values if isinstance(v, np.ndarray)]
        return self.start(f"sub-worker {function.name!r}", None, steps(), [], memory, call.span)

    def start(
        self,
        name: str,
        device: int | None,
        steps: Steps,
        reads: list[np.ndarray],
        writes: list[np.ndarray],
        span: Span,
    ) -> Task:
        """Add a task of ``device``, after those before it there and those whose memory it uses.

        A task of the host has no device, and no order but that.
        """
        if self.strand is None:
            self._running = [r for r in self._running if not r.task.done]
        sharing = [r for r in self._running if r.conflicts(reads, writes)]
        before = [self._last[device]] if device is not None and device in self._last else []
        recorded = self._recorded(name, device)
        task = self.scheduler.spawn(name, self._after(before, sharing, steps, Location.of(span), recorded))
        if device is not None:
            self._last[device] = task
        self._running.append(_Running(task, reads, writes, recorded))
        return task

    def _recorded(self, name: str, device: int | None) -> _Recorded | None:
        if self.strand is None:
            return None
        strand = None if device is None else self.launchers[device].strand
        if strand is None:
            strand = self.strand.fork(name)
            self._on_host_strands.append(strand)
        return _Recorded(strand, self.strand.mark(), [])

    def _after(
        self,
        before: list[Task],
        sharing: list[_Running],
        steps: Steps,
        loc: Location | None,
        recorded: _Recorded | None,
    ) -> Steps:
        """Run a launch when others have ended."""
        yield from self.scheduler.join(before)
        for task, *_ in sharing:
            while not task.done:
                what = f"the end of {task.name.rstrip(',')}, which uses the same memory of the caller"
                yield Wait(task.finished, what, loc)
        if recorded is not None:
            recorded.strand.after([recorded.start, *_ends(sharing)])
        results = yield from steps
        if recorded is not None:
            recorded.end.append(recorded.strand.mark())
        return results

    def attend(self, bound: Bound, call: Call) -> Task:
        """Launch a device's part of a collective."""
        device, name = self._device(call), call.op.name
        views: dict[str, WindowView] = {p.name: self._value(bound[p.name]) for p in bound.decl.args}
        signal = views["signal"]
        memory = signal.window.memory
        number = self._attended.get((memory, device), 0)
        self._attended[memory, device] = number + 1
        meeting = self._meetings.get((memory, number))
        if meeting is None:
            windows = {parameter: view.window for parameter, view in views.items()}
            settings = {p.name: bound[p.name] for p in bound.decl.attrs}
            meeting = Meeting(name, len(signal.devices), collective(name, windows, settings))
            self._meetings[memory, number] = meeting
        strand = self.launchers[device].strand
        steps = meeting.attend(signal.devices.index(device), Location.of(call.span), strand)
        return self.start(f"rank {device}, {name!r},", device, steps, [], [], call.span)

    def _device(self, call: Call | Submit) -> int:
        """Where a launch runs: on ``device=``, else on the first."""
        device = call.attrs.get("device")
        number = 0 if device is None else int(self._value(device))
        self._check_devices([number], f"'{call.op.name}' is launched on", call.span)
        return number

    def _wait_for_memory(self, call: Call) -> Steps:
        """Wait for the launches that use memory which an operator of the host reads or writes."""
        if call.op.name in _TOUCHING:
            arrays = [v for a in call.args if isinstance(a, Var) and isinstance(v := self.env.get(a), np.ndarray)]
            sharing = [r for r in self._running if r.conflicts((), arrays)]
            yield from self.scheduler.join([r.task for r in sharing])
            if self.strand is not None:
                self.strand.after(_ends(sharing))

    def _call(self, call: Call) -> Any:
        if call.op.name not in _ON_WINDOWS:
            for arg in call.args:
                if isinstance(arg, Var) and isinstance(self.env.get(arg), WindowView):
                    raise _on_one_device(call, arg)
        return super()._call(call)


def _on_one_device(call: Call | Submit, arg: Expr) -> Diagnosed:
    name = f"'{written_name(arg.name_hint)}' is" if isinstance(arg, Var) else "it gets"
    return user_error(
        ValueError,
        f"{call.op.name} takes the memory of one device or of the host, {name} a window of all devices",
        call.span,
        hint="do it in the function that is launched on each device",
    )


def _memory_of(function: Function, values: Sequence[Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The caller's memory that a launch reads, and writes."""
    reads: list[np.ndarray] = []
    writes: list[np.ndarray] = []
    for direction, value in zip(function.param_directions, values):
        if isinstance(value, np.ndarray) and not isinstance(value, Slice):
            (reads if direction is ParamDirection.In else writes).append(value)
    return reads, writes


def _made(make: Callable[..., Any], span: Span, *args: Any) -> Any:
    """What ``make`` gives; its ValueError at the user's line."""
    try:
        return make(*args)
    except ValueError as error:
        raise user_error(ValueError, str(error), span) from None


def _window(host: DeviceHost, bound: Bound, call: Call) -> WindowView:
    memory, devices = host._value(bound["buf"])
    shape = host._ints(bound.dims("shape"))
    return WindowView(_made(Window, call.span, memory, shape, np.dtype(bound["dtype"].numpy)), devices)


def _context(host: DeviceHost, bound: Bound, call: Call) -> WindowContext:
    return WindowContext(host._value(bound["dist_tensor"]))


_TOUCHING = frozenset({"tensor.read", "tensor.write", "tensor.assemble"})
"""Operators of the host that look into memory; the others only say which."""
_CONTEXT = "pld.system.get_comm_ctx"
_ON_WINDOWS = frozenset({WINDOW, _CONTEXT, *BUILTINS})

DeviceHost.ops = {
    **Host.ops,
    "pld.system.world_size": lambda host, bound, call: host.world_size,
    WINDOW: _window,
    _CONTEXT: _context,
    **dict.fromkeys(BUILTINS, DeviceHost.attend),
}
DeviceHost.handlers = {
    **Host.handlers,
    AssignStmt: DeviceHost._assign,
    CommDomainScopeStmt: DeviceHost._domain,
}
