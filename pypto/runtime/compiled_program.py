"""A compiled program: its PTO, its files, and running it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backend.target import Target
from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import FunctionType, ParamDirection
from ..ir.expr import ConstInt, Var
from ..ir.naming import written_name
from ..ir.program import Function, Program, is_incore_type, is_orchestration_like, summarize
from ..ir.types import TensorType
from ..passes.context import RuntimeKind
from ..passes.pipe_workspace import without_buffer
from .distributed_config import DistributedConfig

if TYPE_CHECKING:
    from ..simulator import SimKernel, SimReport
    from ..simulator.scheduler import Scheduler, Steps
    from ..simulator.trace import Strand
    from .rank_arguments import RankArguments
    from .runner import RunConfig
    from .sub_workers import Callback
    from .worker import DistributedWorker


@dataclass
class Artifacts:
    """What compilation made: PTO text by kernel, programs after each pass, times in seconds by stage, hints.

    ``explicit_dumps`` has the programs written with layouts that are implied spelled out. ``runtime`` is the device's.
    """

    pto: dict[str, str]
    passes: list[tuple[str, Program]] = field(default_factory=list)
    explicit_dumps: bool = False
    times: dict[str, float] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER


@dataclass(frozen=True)
class ParamInfo:
    """A parameter of the entry function. ``shape`` holds None for a dimension only a call knows; scalars have none."""

    name: str
    direction: ParamDirection
    dtype: DataType
    shape: list[int | None] | None

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None

    @classmethod
    def of(cls, param: Var, direction: ParamDirection) -> ParamInfo:
        dims = param.type.shape if isinstance(param.type, TensorType) else None
        shape = None if dims is None else [d.value if isinstance(d, ConstInt) else None for d in dims]
        return cls(written_name(param.name_hint), direction, param.dtype, shape)


class CompiledProgram:
    """A program ready to run. Call it with the entry function's arguments; ``Out`` arrays are filled in place.

    ``Out`` arrays may be left out, all of them, of an entry function that returns: they are made then.

    - ``pto``: PTO text by module, a kernel or a group of them; ``cpp``: C++ likewise when PTOAS ran.
    - ``output_dir``: the folder with ``passes_dump/``, ``ptoas/``, ``report/``, and what a device runtime builds from,
      ``orchestration/``, ``kernels/`` (with PTOAS) and ``kernel_config.py``; written when first asked for.
    - ``hints``: what would make it faster, one line each; also in ``report/perf_hints.log``.
    - ``distributed_config``: the devices it runs on, when its entry is a host function: one unless given.
    - ``sanitize``: set it, and a call refuses reads of what nothing wrote, and the rest that docs/simulator.md lists.
    - ``reports``: a `pypto.simulator.SimReport` for each kernel launch of the last run, one a block.
    """

    def __init__(
        self, source: Program, lowered: Program, artifacts: Artifacts, target: Target, output_dir: Path | None
    ) -> None:
        self.program, self.lowered, self.target = source, lowered, target
        self.pto: Mapping[str, str] = artifacts.pto
        self.cpp: dict[str, str] = {}
        self.times = artifacts.times
        self.hints = artifacts.hints
        self.reports: list[tuple[str, SimReport]] = []
        self.sanitize = False
        self.distributed_config = DistributedConfig()
        self._passes = artifacts.passes
        self._explicit_dumps = artifacts.explicit_dumps
        self._runtime = artifacts.runtime
        self._chosen_dir = output_dir
        self._written: Path | None = None
        self._simulated: dict[str, SimKernel] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled and copied: all but the kernels as the simulator prepared them."""
        return {**vars(self), "_simulated": {}}

    # What it is

    @property
    def platform(self) -> str:
        """Where a call runs: the simulator of the target."""
        return self.target.sim_platform

    @property
    def entry(self) -> Function:
        """The function a call runs: the one host function that no other calls, or the only kernel.

        Raises ValueError when there is no such one function.
        """
        functions = [f for f in self.lowered.functions.values() if not f.is_host_worker]
        called = set().union(*(summarize(f).callees for f in functions))
        roots = [f for f in functions if not is_incore_type(f.func_type) and f.name not in called]
        roots = roots or [f for f in functions if f.name not in called]
        if len(roots) != 1:
            names = ", ".join(f.name for f in roots) or "none"
            raise ValueError(f"a program is called through one entry function, this one has: {names}. "
                             f"Call a kernel through .kernel(name)")  # fmt: skip
        return roots[0]

    @property
    def params(self) -> list[ParamInfo]:
        """The entry function's parameters."""
        return [ParamInfo.of(p, d) for p, d in without_buffer(self.entry).caller_params()]

    @property
    def param_names(self) -> list[str]:
        """Names of the entry function's parameters, as written."""
        return [p.name for p in self.params]

    @property
    def output_indices(self) -> list[int]:
        """Which parameters of the entry function a call only writes: those it may leave out."""
        return [i for i, p in enumerate(self.params) if p.direction is ParamDirection.Out]

    @property
    def has_return(self) -> bool:
        return bool(self.entry.return_types)

    # Files

    @property
    def output_dir(self) -> Path:
        """The folder with everything compilation made. Written once, on first use."""
        return self.write()

    def write(self) -> Path:
        """Write what compilation made, unless that was done; the folder."""
        if self._written is None:
            from .files import write_files

            self._written = write_files(self, self._chosen_dir, self._passes, self._explicit_dumps, self._runtime)
        return self._written

    def __fspath__(self) -> str:
        """The folder, so that the program can stand where a path is wanted."""
        return str(self.output_dir)

    @classmethod
    def from_dir(cls, path: str | os.PathLike[str]) -> CompiledProgram:
        """The program whose ``output_dir`` was ``path``, ready to run; nothing is compiled.

        Raises FileNotFoundError when no compilation was written there, ValueError when its files are damaged.
        """
        from .files import read_files

        return read_files(Path(path))

    # Running

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """Run the entry function on arrays and numbers; what it returns.

        ``config`` may say what a device records; ValueError when it is for another chip or other devices.
        Raises TypeError or ValueError for arguments of another count, shape or dtype, naming the parameter.
        """
        return self.call(args, config, {})

    def prepare(
        self, *, extra_compiled: Sequence[CompiledProgram] = (), callbacks: Mapping[str, Callback] | None = None
    ) -> DistributedWorker:
        """The program, and others, ready to run many times: ``with compiled.prepare() as worker: worker(*args)``.

        ``callbacks`` has the code of sub-workers whose body is ``...``; each gets its arguments as one sequence. Raises
        ValueError when one is missing.
        """
        from .worker import DistributedWorker

        return DistributedWorker(self, extra_compiled=extra_compiled, callbacks=callbacks)

    def call(self, args: Sequence[Any], config: RunConfig | None, callbacks: Mapping[str, Callback]) -> Any:
        """A call, with the code of sub-workers that is bound at run time."""
        if config is not None and config.target is not self.target:
            raise ValueError(f"compiled for {self.target.name}, but config.platform is {config.platform!r}")
        if config is not None and config.distributed_config not in (None, self.distributed_config):
            raise ValueError(f"compiled for {self.distributed_config}, but config has {config.distributed_config}")
        return self._run_ranks(self.entry, [args], callbacks=callbacks)[0]

    def kernel(self, name: str) -> Callable[..., Any]:
        """One function of the program, callable on its own. Raises KeyError for an unknown name."""
        function = self.lowered.get_function(name)
        if function is None:
            known = ", ".join(f.name for f in self.lowered.functions.values())
            raise KeyError(f"no function {name!r}; there are {known}")
        return lambda *args: self._run_ranks(function, [args])[0]

    def run_ranks(
        self, args: Sequence[Sequence[Any]], order: Sequence[int] | None = None, *, sanitize: bool | None = None
    ) -> list[Any]:
        """Run the entry function on several ranks at once, each with arguments of its own; what each returns.

        An argument for a `DistributedTensor` is the rank's slice of a window: ranks reach each other's through it, and
        find in their arrays afterwards what is then in it. ``order`` is the order in which ranks begin, 0, 1, .. unless
        given; one runs until it waits for another. Results of a program that synchronises right do not depend on it:
        ``sanitize``, as the program says unless given, refuses one that does not, at the two lines that are in a race.

        Raises PtoError naming the lines at which ranks wait when none can go on, ValueError for slices that differ in
        shape, for an ``order`` that is none, and for a host function, which launches on all devices in one call.
        """
        if self.entry.is_host_orchestrator:
            raise ValueError(f"{self.entry.name} is a host function: call the program once, it launches on the devices "
                             "of its distributed_config")  # fmt: skip
        return self._run_ranks(self.entry, args, order, sanitize=sanitize)

    def _run_ranks(
        self,
        function: Function,
        args: Sequence[Sequence[Any]],
        order: Sequence[int] | None = None,
        callbacks: Mapping[str, Callback] | None = None,
        sanitize: bool | None = None,
    ) -> list[Any]:
        from ..simulator.scheduler import Scheduler
        from ..simulator.trace import Trace
        from .rank_arguments import RankArguments, check_apart, share_windows

        order = range(len(args)) if order is None else order
        if sorted(order) != list(range(len(args))):
            raise ValueError(f"order must name each of the ranks 0 to {len(args) - 1} once, got {list(order)}")
        ranks = [RankArguments(function, given) for given in args]
        check_apart(function, ranks)
        share_windows(function, ranks)
        self.reports = []
        scheduler = Scheduler()
        trace = Trace() if (self.sanitize if sanitize is None else sanitize) else None
        tasks, strands = {}, {}
        for number in order:
            rank, name = ranks[number], f"rank {number}" if len(ranks) > 1 else function.name
            who = f"{name}, " if len(ranks) > 1 else ""
            if trace is not None:
                strands[number] = trace.root.fork(name) if len(ranks) > 1 else trace.root
                rank.watch(trace)
            steps = self._steps(function, rank, scheduler, who, callbacks or {}, strands.get(number))
            tasks[number] = scheduler.spawn(name, steps)
        scheduler.run()
        if trace is not None:
            trace.root.join([s for s in strands.values() if s is not trace.root])
            for number, rank in enumerate(ranks):
                rank.check_results(tasks[number].result, trace)
        return [rank.results(tasks[number].result) for number, rank in enumerate(ranks)]

    def _steps(
        self,
        function: Function,
        rank: RankArguments,
        scheduler: Scheduler,
        who: str,
        callbacks: Mapping[str, Callback],
        strand: Strand | None,
    ) -> Steps:
        """A run of ``function`` on the arguments of one rank."""
        from .devices import DeviceHost
        from .host import Host
        from .launch import Launcher
        from .sub_workers import SubWorkers

        functions = {f.name: f for f in self.lowered.functions.values()}

        def launcher(who: str, strand: Strand | None) -> Launcher:
            return Launcher(functions, self.target, self._kernel, self._report, scheduler, strand, who)

        if function.is_host_orchestrator or function.is_host_worker:
            numbers = range(self.distributed_config.world_size)
            strands = [None if strand is None else strand.fork(f"rank {r}") for r in numbers]
            devices = [launcher(f"rank {r}, ", own) for r, own in zip(numbers, strands)]
            workers = SubWorkers(callbacks, rank.torch)
            host = DeviceHost(functions, devices, scheduler, rank.dims, self.target, workers, strand)
            return host.run_all(function, rank.values)
        if is_orchestration_like(function.func_type) or function.func_type is FunctionType.Opaque:
            launch = launcher(who, strand).launch
            return Host(functions, launch, rank.dims, self.target, strand).run(function, rank.values)
        return launcher(who, strand).launch(function, rank.values)

    def _report(self, name: str, report: SimReport) -> None:
        self.reports.append((name, report))

    def _kernel(self, name: str) -> SimKernel:
        found = self._simulated.get(name)
        if found is None:
            from ..simulator import load

            start = time.perf_counter()
            module = self._module(name)
            self._simulated.update(load(self.pto[module], self.target.name, filename=f"{module}.pto").kernels)
            found = self._simulated[name]
            self.times["load"] = self.times.get("load", 0.0) + time.perf_counter() - start
        return found

    def _module(self, kernel: str) -> str:
        """The module ``kernel`` is in. Raises the user's error for one that is written in C++."""
        function = self.lowered.get_function(kernel)
        if function is not None and function.external_source is not None:
            raise user_error(
                ValueError,
                f"kernel {written_name(kernel)!r} is written in C++, which only a device runs: "
                f"{function.external_source}",
                function.span,
                hint="to run the program here, write the kernel in the language",
            )
        return self._module_of[kernel]

    @cached_property
    def _module_of(self) -> dict[str, str]:
        """The module each kernel is in."""
        from ..codegen.module import kernel_modules

        return {kernel.name: name for name, kernels in kernel_modules(self.lowered).items() for kernel in kernels}

    def memory_use(self) -> dict[str, dict[str, tuple[int, int]]]:
        """For each kernel and memory, bytes used and bytes a kernel may use."""
        from .files import memory_use

        return {f.name: memory_use(f, self.target) for f in self.lowered.functions.values()
                if is_incore_type(f.func_type)}  # fmt: skip

    def instruction_count(self) -> int:
        """PTO instructions (``pto.t..``) in the text of all kernels."""
        return sum(len(re.findall(r"^\s*pto\.t\w+", text, re.MULTILINE)) for text in self.pto.values())

    def __repr__(self) -> str:
        return f"CompiledProgram({self.program.name!r}, kernels={sorted(self.pto)}, target={self.target.name})"
