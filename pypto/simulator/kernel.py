"""Loading PTO text and running its kernels on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from pypto.backend.target import Target
from pypto.backend.targets import get_target
from pypto.pto.cross_rules import kernel_kind
from pypto.pto.elements import numpy_type
from pypto.pto.errors import PtoError
from pypto.pto.parser import location_of, parse_module
from pypto.pto.scalar_types import scalar_name
from pypto.pto.targets import target_of
from pypto.pto.types import PtrType
from pypto.pto.verify import architecture, verify_module

from .compile import Function
from .cores import Core, core_name
from .cross import check_end
from .grid import CUBE, VECTOR, Grid, Group
from .ranks import Slice
from .report import SimReport
from .scalars import width, wrap
from .scheduler import Scheduler, Steps, run_alone
from .trace import Strand, Trace
from .window import Buffer, Part, Pointer

Argument = np.ndarray | int | float | np.generic


class SimKernel:
    """One function of a module, ready to run. It is compiled on the first run. ``kind`` is ``cube`` or ``vector``."""

    def __init__(self, op: FuncOp, target: Target, siblings: dict[str, SimKernel]) -> None:
        self._op, self.target, self._siblings = op, target, siblings
        self.name = op.sym_name.data
        self.kind = kernel_kind(op)
        self._compiling = False
        self.parameters: tuple[Attribute, ...] = tuple(op.function_type.inputs.data)

    @cached_property
    def function(self) -> Function:
        """The compiled function; reading this does now what the first run would."""
        return self._compile(sanitize=False)

    @cached_property
    def sanitized_function(self) -> Function:
        """The function compiled with the checks of a sanitized run."""
        return self._compile(sanitize=True)

    def _compile(self, sanitize: bool) -> Function:
        if self._compiling:
            raise PtoError(f"{self.name} calls itself", location_of(self._op))
        self._compiling = True
        try:
            return Function(self._op, self.target, lambda name: self._siblings[name].compiled(sanitize), sanitize)
        finally:
            self._compiling = False

    def compiled(self, sanitize: bool) -> Function:
        return self.sanitized_function if sanitize else self.function

    def run(
        self,
        args: Sequence[Argument],
        *,
        block_idx: int = 0,
        block_num: int = 1,
        subblock_idx: int = 0,
        sanitize: bool = False,
        poison: int = 0xFF,
    ) -> SimReport:
        """Run one block on ``args``, the function's parameters in order; arrays are filled in place.

        A ``!pto.ptr<f32>`` takes a C-contiguous f32 array of any shape, a scalar a number. A `Part` of a larger array
        is given as it lies there: the kernel has to state its strides. On-chip
        memories start filled with the byte ``poison``, 0xFF being NaN in every float type and -1 in
        every integer. ``sanitize`` refuses reads of elements nothing wrote, misaligned vector
        operands, results that overwrite a source while it is read, and scratch that overlaps data.

        Raises PtoError for anything illegal, naming the operation's location, ValueError or
        TypeError for arguments that do not fit.
        """
        if not 0 <= poison <= 255:
            raise ValueError(f"poison is one byte, got {poison}")
        if not 0 <= block_idx < block_num:
            raise ValueError(f"there is no block {block_idx} of {block_num}")
        cubes, lanes = (1, 0) if self.kind == CUBE else (0, subblock_idx + 1)
        grid = Grid(self.target, block_num, cubes, lanes, sanitize=sanitize, poison=poison)
        strand = Trace().root if sanitize else None
        return run_alone(self.name, self.start(args, Group(grid, block_idx).core(self.kind, subblock_idx, strand)))

    def start(self, args: Sequence[Argument], core: Core) -> Steps:
        """Run on ``core`` under a scheduler, as `run` does; gives the report."""
        if len(args) != len(self.parameters):
            raise TypeError(f"{self.name} takes {len(self.parameters)} arguments, got {len(args)}")
        values = [
            _argument(f"argument {position} of {self.name}", kind, value, core.strand)
            for position, (kind, value) in enumerate(zip(self.parameters, args, strict=True))
        ]
        function = self.compiled(core.sanitize)
        if function.resumes:
            yield from function.start(core, values)
        else:
            function.call(core, values)
        if core.sanitize:
            check_end(core)
        return _report(core)


def _report(core: Core) -> SimReport:
    instructions: dict[str, int] = {}
    cycles: dict[str, float] = {}
    for (site, (rows, cols)), count in core.executed.items():
        instructions[site.spec.mnemonic] = instructions.get(site.spec.mnemonic, 0) + count
        cycles[site.pipe] = cycles.get(site.pipe, 0.0) + count * site.spec.cost(site, rows, cols)
    return SimReport(instructions, core.high_water(), cycles)


def _argument(what: str, kind: Attribute, value: Argument, strand: Strand | None) -> Any:
    if isinstance(kind, PtrType):
        pointer = _pointer(what, numpy_type(kind.data), value)
        return pointer if strand is None else pointer._replace(buffer=pointer.buffer.seen_by(strand))
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, int | float | np.generic):
        raise TypeError(f"{what} must be a {scalar_name(kind)} number, got {type(value).__name__}")
    dtype = numpy_type(scalar_name(kind))
    if dtype.kind not in "iub":
        return dtype.type(value)
    number = int(value)
    bits = width(kind)
    if number != value or not -(1 << (bits - 1)) <= number < 1 << bits:
        raise ValueError(f"{what} must be a {scalar_name(kind)}, got {value}")
    return wrap(number, bits)


def _pointer(what: str, dtype: np.dtype, value: Argument) -> Pointer:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{what} must be an array of {dtype.name}, got {type(value).__name__}")
    if value.dtype != dtype:
        raise TypeError(f"{what} must be an array of {dtype.name}, got {value.dtype.name}")
    contiguous = value.flags.c_contiguous
    if isinstance(value, Part) and (isinstance(value, Slice) or not contiguous):
        found = value.pointer(what)
        if found is not None:
            return found
    if not contiguous:
        raise ValueError(f"{what} must be C-contiguous")
    return Pointer(Buffer(what, value.reshape(-1)), 0, value.shape if isinstance(value, Part) else None)


class SimModule:
    """A verified module; ``kernels`` by name."""

    def __init__(self, module: ModuleOp, target: Target) -> None:
        self.module, self.target = module, target
        self.kernels: dict[str, SimKernel] = {}
        for op in module.ops:
            if isinstance(op, FuncOp) and not op.is_declaration:
                self.kernels[op.sym_name.data] = SimKernel(op, target, self.kernels)

    def run_group(
        self,
        args: Mapping[str, Sequence[Argument]],
        *,
        blocks: int = 1,
        lanes: int = 2,
        sanitize: bool = False,
        poison: int = 0xFF,
    ) -> list[tuple[str, SimReport]]:
        """Run kernels side by side in each of ``blocks`` groups of cores, a vector kernel on ``lanes`` of them.

        ``args`` are the arguments of each kernel by its name, for all its cores. Gives the kernels' names and reports,
        in the order in which they ended; raises what `SimKernel.run` raises, and PtoError when all that is left waits.
        """
        kernels = {name: self.kernels[name] for name in args}
        count = {kind: sum(kernel.kind == kind for kernel in kernels.values()) for kind in (CUBE, VECTOR)}
        if max(count.values()) > 1:
            raise ValueError(f"a group runs one kernel on the cube and one on the vectors, got {', '.join(kernels)}")
        lanes = lanes * count[VECTOR]
        grid = Grid(self.target, blocks, count[CUBE], lanes, sanitize=sanitize, poison=poison)
        scheduler, reports = Scheduler(), []
        root, strands = Trace().root if sanitize else None, []

        def steps(kernel: SimKernel, core: Core) -> Steps:
            report = yield from kernel.start(args[kernel.name], core)
            reports.append((kernel.name, report))

        for group in (Group(grid, index) for index in range(blocks)):
            for kernel in kernels.values():
                for lane in range(lanes if kernel.kind == VECTOR else 1):
                    name = f"{core_name(kernel.kind, group.index, lane)}, {kernel.name!r},"
                    if root is not None:
                        strands.append(root.fork(name.rstrip(","), group.index))
                    core = group.core(kernel.kind, lane, strands[-1] if strands else None)
                    scheduler.spawn(name, steps(kernel, core))
        scheduler.run()
        if root is not None:
            root.join(strands)
        return reports


def load(text_or_module: str | ModuleOp, target: str | None = None, *, filename: str = "<pto>") -> SimModule:
    """Parse, verify and prepare PTO text, or verify and prepare a parsed module.

    ``target`` is a target's name; by default the module's ``pto.target_arch`` says it. Raises
    PtoError when the text is not legal PTO for that target, ValueError for an unknown target.
    """
    module = parse_module(text_or_module, filename) if isinstance(text_or_module, str) else text_or_module
    stated = architecture(module)
    chosen = get_target(target) if target is not None else target_of(stated)
    if chosen.module_arch != stated:
        raise PtoError(f"module for {stated} loaded for {chosen.name}", location_of(module))
    verify_module(module)
    return SimModule(module, chosen)
