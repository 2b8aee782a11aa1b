"""Running what a host function launches: kernels on the cores of their blocks, groups of kernels side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backend.target import Target
from ..codegen.kernel import dynamic_dims, lane_parameters
from ..errors import InternalError
from ..ir.enums import FunctionType
from ..ir.expr import Var
from ..ir.program import Function, is_incore_type, summarize
from ..ir.types import CommCtxType, DistributedTensorType, ScalarType, TensorType
from ..passes.pipe_workspace import buffer_of, ring_offsets
from ..passes.return_lineage import returned_params
from ..passes.vector_lanes import vector_lanes
from .arrays import PackedArg, check_array, needs_packing
from .host import Host

if TYPE_CHECKING:
    from ..simulator import SimKernel, SimReport
    from ..simulator.grid import Group
    from ..simulator.scheduler import Scheduler, Steps, Task
    from ..simulator.trace import Strand


_PREFETCH_BYTES = 4096


class Place(NamedTuple):
    """Where a called function runs: a block of a launch. ``running`` are kernels its caller does not wait for yet.

    ``strand`` is what the block does, in a run that is recorded, ``strands`` what those kernels do.
    """

    group: Group
    running: list[Task] | None = None
    strand: Strand | None = None
    strands: list[Strand] | None = None


class Launcher:
    """Launches the functions of one program. ``kernel`` gives the PTO of one, ``report`` takes what each did.

    With a ``strand``, of what launches them, the run is sanitized.
    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        target: Target,
        kernel: Callable[[str], SimKernel],
        report: Callable[[str, SimReport], None],
        scheduler: Scheduler,
        strand: Strand | None = None,
        who: str = "",
    ) -> None:
        """``who`` stands before the names of tasks: the rank, where there are several."""
        self.functions, self.target, self.kernel, self.who = functions, target, kernel, who
        self.report, self.scheduler, self.strand = report, scheduler, strand
        self._cores: dict[str, tuple[int, int]] = {}

    def launch(
        self,
        function: Function,
        values: Sequence[Any],
        blocks: int | None = None,
        strand: Strand | None = None,
        place: Place | None = None,
    ) -> Steps:
        """Run a called function; gives its results. The blocks of a launch run side by side.

        ``blocks`` launches it on so many blocks; without, it is part of the block ``place``, or a block of its own.
        ``strand`` is what launches it, where that is not the launcher's own.
        """
        strand = strand or self.strand
        dims: dict[Var, int] = {}
        for param, value in zip(function.params, values):
            if isinstance(param.type, TensorType):
                check_array(param, value, dims, window=True)
        packs = is_incore_type(function.func_type) or function.func_type is FunctionType.Group
        packed = {id(v): PackedArg(v, v) for p, v in zip(function.params, values)
                  if packs and isinstance(p.type, TensorType) and needs_packing(p, v)}  # fmt: skip
        arrays = [packed[id(v)].array if id(v) in packed else v for v in values]
        run = partial(self._in_place, function, arrays, dims)
        if blocks is None:
            place = place or Place(self._groups(function, 1)[0])
            results = yield from run(place._replace(strand=strand))
        else:
            groups = self._groups(function, blocks)
            names = [f"{self.who}block {group.index} of {function.name}" for group in groups]
            strands = [strand.fork(name) for name in names] if strand is not None and blocks > 1 else []
            tasks = [self.scheduler.spawn(name, run(Place(group, strand=own)))
                     for name, group, own in zip(names, groups, strands or [strand] * blocks)]  # fmt: skip
            results = (yield from self.scheduler.join(tasks))[-1] if tasks else _returned(function, arrays)
            if strand is not None:
                strand.join(strands)
        for argument in packed.values():
            argument.write_back()
        given = {id(p.array): p.given for p in packed.values()}
        return [given.get(id(r), r) for r in results]

    def _in_place(self, function: Function, arrays: Sequence[Any], dims: Mapping[Var, int], place: Place) -> Steps:
        """Run one block of a function on arguments that are checked."""
        if is_incore_type(function.func_type):
            yield from self._kernel(function, arrays, dims, place)
            return _returned(function, arrays)
        inner = place
        if function.func_type is FunctionType.Group:
            inner = place._replace(running=[], strands=[])
        launch = partial(self.launch, place=inner)
        results = yield from Host(self.functions, launch, dims, self.target, place.strand).run(function, arrays)
        if inner is not place:
            yield from self.scheduler.join(inner.running or ())
            if place.strand is not None:
                place.strand.join(inner.strands or ())
        return results

    def _kernel(self, function: Function, arrays: Sequence[Any], dims: Mapping[Var, int], place: Place) -> Steps:
        """Run a kernel on its cores of a block; in a group, start it only: the group waits for all it started."""
        from ..simulator.cores import core_name

        kernel = self.kernel(function.name)
        lanes = range(vector_lanes(function, self.target) if kernel.kind == "vector" else 1)
        on_core, own = partial(self._on_core, function, kernel, arrays, dims, place.group), place.strand
        if place.running is None and len(lanes) == 1:
            yield from on_core(0, own)
            return
        names = [f"{self.who}{core_name(kernel.kind, place.group.index, lane)}, {function.name!r}" for lane in lanes]
        strands = [] if own is None else [own.fork(name, (function.name, place.group)) for name in names]
        tasks = [self.scheduler.spawn(f"{name},", on_core(lane, strand))
                 for lane, name, strand in zip(lanes, names, strands or [None] * len(lanes))]  # fmt: skip
        if place.running is not None:
            place.running.extend(tasks)
            if place.strands is not None:
                place.strands.extend(strands)
            return
        yield from self.scheduler.join(tasks)
        if own is not None:
            own.join(strands)

    def _on_core(
        self,
        function: Function,
        kernel: SimKernel,
        arrays: Sequence[Any],
        dims: Mapping[Var, int],
        group: Group,
        lane: int,
        strand: Strand | None,
    ) -> Steps:
        """One kernel on one core."""
        tensors = [group.workspace(ring_offsets(function)[1]) if p is buffer_of(function) else a
                   for p, a in zip(function.params, arrays) if isinstance(p.type, TensorType)]  # fmt: skip
        scalars = [a for p, a in zip(function.params, arrays) if isinstance(p.type, ScalarType)]
        known = {
            "tile.get_block_idx": group.index,
            "tile.get_block_num": group.grid.blocks,
            "tile.get_subblock_idx": lane,
        }
        extra = [*(dims[d] for d in dynamic_dims(function)), *_workspaces(function)]
        extra += [known[op] for op in lane_parameters(function)]
        contexts = _contexts(function, arrays)
        report = yield from kernel.start([*tensors, *scalars, *contexts, *extra], group.core(kernel.kind, lane, strand))
        self.report(function.name, report)

    def _groups(self, function: Function, blocks: int) -> list[Group]:
        """The groups of cores a launch of ``function`` takes."""
        from ..simulator.grid import Grid, Group

        cubes, lanes = self._cores_of(function)
        grid = Grid(self.target, blocks, cubes, lanes, sanitize=self.strand is not None)
        return [Group(grid, index) for index in range(blocks)]

    def _cores_of(self, function: Function) -> tuple[int, int]:
        """How many cube cores and vector lanes each block of a function takes."""
        found = self._cores.get(function.name)
        if found is None:
            if is_incore_type(function.func_type):
                cube = self.kernel(function.name).kind == "cube"
                found = (1, 0) if cube else (0, vector_lanes(function, self.target))
            else:
                inside = [self._cores_of(self.functions[name]) for name in sorted(summarize(function).callees)]
                found = max((c for c, _ in inside), default=0), max((v for _, v in inside), default=0)
            self._cores[function.name] = found
        return found


def _contexts(function: Function, arrays: Sequence[Any]) -> list[Any]:
    """The communication contexts a kernel is given: its parameters, then those of the other windows."""
    from ..simulator.ranks import context_of

    given = [a for p, a in zip(function.params, arrays) if isinstance(p.type, CommCtxType)]
    windows = [a for p, a in zip(function.params, arrays) if isinstance(p.type, DistributedTensorType)]
    return [*given, *(context_of(w) for w in windows[len(given) :])]


def _workspaces(function: Function) -> list[Any]:
    """The workspace of a kernel's asynchronous prefetches."""
    if "prefetch.make_context" not in summarize(function).ops:
        return []
    import numpy as np

    return [np.zeros(_PREFETCH_BYTES, np.int8)]


def _returned(function: Function, values: Sequence[Any]) -> list[Any]:
    """What a function that ran on ``values`` hands back: tensors it was given. InternalError for anything else."""
    found: list[Any] = []
    for index in returned_params(function):
        if index is None:
            raise InternalError(f"{function.name!r} returns a value that is not a parameter", function.span)
        found.append(values[index])
    return found
