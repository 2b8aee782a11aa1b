"""`compile`: from a kernel to a `CompiledProgram`."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ..backend import BackendType, get_target
from ..backend.target import Target
from ..compile_profiling import CompileProfiler, get_active_profiler, profiled, stages_of
from ..errors import user_error
from ..ir.enums import FunctionType
from ..ir.expr import Call
from ..ir.program import Function, Program, is_incore_type, is_orchestration_like, summarize
from ..ir.stmt import InCoreScopeStmt, ScopeStmt
from ..ir.visitor import Visitor
from ..ops.registry import Core
from ..passes.host_windows import DATA_OF
from ..passes.pipeline import PassDumpLevel, PassPipeline, default_passes
from .compiled_program import Artifacts, CompiledProgram
from .distributed_config import DistributedConfig
from .host import HOST_OPS


def compile(
    kernel: Function | Program,
    *,
    target: str | BackendType | Target = "Ascend910B",
    output_dir: str | Path | None = None,
    dump_passes: bool | PassDumpLevel = True,
    skip_ptoas: bool = False,
    emit_source_loc: bool = True,
    verification_level: Any = None,
    profiling: bool = False,
    distributed_config: DistributedConfig | None = None,
    analyze_auto_scopes_for_deps: bool = False,
) -> CompiledProgram:
    """Compile an ``@pl.function``, a ``@pl.program``, a ``@pl.jit`` whose annotations have all types, or IR.

    ``target`` names the chip (``"Ascend910B"``, ``"Ascend950"`` and their aliases). ``output_dir`` is written at
    once when given, else ``<name>_<time>`` under ``PYPTO_PROG_BUILD_DIR`` or ``build_output`` when first asked for.
    ``dump_passes`` keeps the program after each pass for ``passes_dump/``; `PassDumpLevel.EXPLICIT` spells out implied
    layouts there. With PTOAS (>= 0.61) on the machine and not ``skip_ptoas``, kernels are also assembled to C++.
    ``emit_source_loc`` puts the user's lines into the PTO. The time of each stage goes to an active
    `pypto.compile_profiling.CompileProfiler`; ``profiling`` writes it to ``report/pipeline_profile.txt`` and ``.json``.
    ``distributed_config`` has the devices that a host function launches on; one unless given.
    ``analyze_auto_scopes_for_deps`` makes tasks wait for one another by id where the runtime would look them up.

    Raises the user's error at the user's line for a wrong kernel, TypeError for anything that is no kernel or config,
    and `pypto.toolchain.PtoasError` when PTOAS rejects a kernel.
    """
    source, chip = as_program(kernel), as_target(target)
    if distributed_config is not None and not isinstance(distributed_config, DistributedConfig):
        raise TypeError(f"distributed_config must be a DistributedConfig, got {type(distributed_config).__name__}")
    level = PassDumpLevel(int(dump_passes)) if isinstance(dump_passes, bool) else dump_passes
    artifacts = Artifacts({}, explicit_dumps=level is PassDumpLevel.EXPLICIT)
    folder = Path(output_dir) if output_dir is not None else None
    active = get_active_profiler()
    profiler = CompileProfiler() if profiling and active is None else None
    with profiler or nullcontext():
        pipeline = PassPipeline(default_passes(analyze_auto_scopes_for_deps))
        dump = level is not PassDumpLevel.NONE
        lowered = _lower(prepare(source), pipeline, artifacts, dump, verification_level, chip)
        with profiled("codegen"):
            compiled = _emit(source, lowered, artifacts, chip, folder, emit_source_loc)
        compiled.distributed_config = distributed_config or compiled.distributed_config
    if folder is not None:
        compiled.write()
    if profiler is None and active is not None and active.of_environment:
        profiler = active
    if profiler is not None:
        profiler.write_report(compiled.output_dir / "report")
    if not skip_ptoas:
        _assemble(compiled)
    return compiled


def _emit(
    source: Program, lowered: Program, artifacts: Artifacts, target: Target, folder: Path | None, emit_source_loc: bool
) -> CompiledProgram:
    from ..codegen import generate_pto

    start = time.perf_counter()
    for function in lowered.functions.values():
        _refuse_mixed(function)
    artifacts.pto.update(generate_pto(lowered, target, emit_source_loc))
    artifacts.times["codegen"] = time.perf_counter() - start
    return CompiledProgram(source, lowered, artifacts, target, folder)


def as_target(target: str | BackendType | Target) -> Target:
    """The target a caller names. Raises ValueError for an unknown name."""
    if isinstance(target, BackendType):
        return target.target
    return target if isinstance(target, Target) else get_target(target)


def as_program(kernel: Any) -> Program:
    """A function as a program of its own. Raises TypeError for anything but a function or program."""
    if isinstance(kernel, Program):
        return kernel
    if isinstance(kernel, Function):
        return Program([kernel], kernel.name, kernel.span)
    if hasattr(kernel, "specialize_call"):
        return kernel.specialize()
    raise TypeError(
        f"compile takes a function under @pl.function, a class under @pl.program, or IR, not {type(kernel).__name__}"
    )


def prepare(program: Program) -> Program:
    """Functions that are written at tile level without a scope become kernels; misplaced tensor work is refused."""
    return program.map_functions(_as_kernel)


def _as_kernel(function: Function) -> Function:
    if function.func_type is not FunctionType.Opaque:
        if is_orchestration_like(function.func_type):
            _Misplaced(function).visit(function)
        return function
    found = summarize(function)
    if not any(issubclass(k, ScopeStmt) for k in found.kinds) and any(op.startswith("tile.") for op in found.ops):
        return Function(
            function.name, function.directed_params(), function.return_types, function.body, function.span,
            FunctionType.InCore, attrs=function.attrs,
        )  # fmt: skip
    _Misplaced(function).visit(function)
    return function


def _refuse_mixed(function: Function) -> None:
    """A kernel runs on a cube core or on a vector core. Raises a user error for one that needs both."""
    if not is_incore_type(function.func_type):
        return
    found = _FirstUse()
    found.visit(function)
    if {Core.CUBE, Core.VECTOR} <= found.calls.keys():
        cube, vector = found.calls[Core.CUBE], found.calls[Core.VECTOR]
        raise user_error(
            ValueError,
            f"kernel {function.name!r} needs the cube for {cube.op.name} (line {cube.span.begin_line}) and a vector "
            f"core for {vector.op.name} (line {vector.span.begin_line}); a kernel runs on one of them",
            vector.span,
            hint="give each its own `with pl.at(level=pl.Level.CORE_GROUP):` and hand the product over as a tensor",
        )


class _FirstUse(Visitor):
    """The first call of each kind of core."""

    def __init__(self) -> None:
        self.calls: dict[Core, Call] = {}

    def visit_call(self, op: Call) -> None:
        self.generic(op)
        if op.op.decl is not None:
            self.calls.setdefault(op.op.decl.core, op)


class _Misplaced(Visitor):
    """Refuses operators that compute on tensors outside a region that runs on a core."""

    def __init__(self, function: Function) -> None:
        self.function = function

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> None:
        """What is inside runs on a core."""

    def visit_call(self, op: Call) -> None:
        self.generic(op)
        name = op.op.name
        computes = op.op.decl is not None and name.startswith(("tile.", "tensor.")) and name not in HOST_OPS
        if computes or (name in DATA_OF and not self.function.is_host_orchestrator):
            written = name if name.startswith("pld.") else f"pl.{name}"
            raise user_error(
                ValueError,
                f"{name} needs a core, but is outside any InCore scope of {self.function.name!r}",
                op.span,
                hint=f"put {written}(...) inside `with pl.at(level=pl.Level.CORE_GROUP):`",
            )


def _lower(
    program: Program, pipeline: PassPipeline, artifacts: Artifacts, dump: bool, level: Any, target: Target
) -> Program:
    from ..passes.context import current_or_default

    last = time.perf_counter()

    def note(name: str, made: Program) -> None:
        nonlocal last
        now = time.perf_counter()
        artifacts.times[name] = artifacts.times.get(name, 0.0) + now - last
        if dump:
            artifacts.passes.append((name, made))
        last = time.perf_counter()

    outer = current_or_default()
    artifacts.runtime = outer.runtime
    settings = {"target": target, "hint_sink": artifacts.hints}
    if level is not None:
        settings["verification_level"] = level
    with outer.replace(**settings), profiled("passes") as stage:
        made = pipeline.run(program, note)
    if stage is not None:
        stage.children = stages_of(artifacts.times, stage.start)
    return made


def _assemble(compiled: CompiledProgram) -> None:
    """C++ for every kernel, when PTOAS is on the machine."""
    from ..toolchain import find_ptoas
    from .files import write_kernels

    ptoas = find_ptoas()
    if ptoas is None:
        return
    paths = ptoas.assemble(compiled.pto, compiled.output_dir / "ptoas", compiled.target.pto_arch)
    compiled.cpp.update({name: path.read_text(encoding="utf-8") for name, path in paths.items()})
    write_kernels(compiled, compiled.output_dir)
