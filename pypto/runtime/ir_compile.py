"""`ir.compile`: `pypto.runtime.compile` with the keywords of the public API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import backend
from ..backend import BackendType, Target, get_target
from ..compile_profiling import profiled
from ..errors import UnsupportedError
from ..ir.program import Program
from ..passes import (
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    PassInstrument,
    RuntimeKind,
    VerificationLevel,
)
from ..passes.pipeline import OptimizationStrategy, PassDumpLevel, PassManager
from .compiled_program import CompiledProgram
from .compiler import compile as compile_program
from .distributed_config import DistributedConfig


def compile(
    program: Program,
    output_dir: str | Path | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = True,
    backend_type: BackendType | None = None,
    *,
    platform: str | None = None,
    skip_ptoas: bool = False,
    verification_level: VerificationLevel | None = None,
    memory_planner: MemoryPlanner | None = None,
    runtime: RuntimeKind | None = None,
    diagnostic_phase: DiagnosticPhase | None = None,
    disabled_diagnostics: DiagnosticCheckSet | None = None,
    profiling: bool = False,
    distributed_config: DistributedConfig | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    enable_pypto_l0c_double_buffer: bool | None = None,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
) -> CompiledProgram:
    """Compile ``program``; see `pypto.runtime.compile` for what is made.

    The target is that of ``platform`` (``a2a3``, ``a5``, or one of these with ``sim``), else of ``backend_type``, else
    the backend selected, else ``Ascend910B``. Settings of passes (levels, planner, runtime, diagnostics) come from the
    active `PassContext`; given here while there is one, they raise RuntimeError. ``analyze_auto_scopes_for_deps`` adds
    dependencies between tasks (AutoDeriveTaskDependencies). ``distributed_config`` has the devices that a host function
    launches on.

    Raises ValueError for an unknown platform, one of another target than ``backend_type``, or an unknown strategy, and
    NotImplementedError for ``dump_ptoas_passes`` where PTOAS runs.
    """
    if not isinstance(strategy, OptimizationStrategy):
        raise ValueError(f"Unsupported optimization strategy: {strategy!r}")
    target = _target(platform, backend_type)
    if dump_ptoas_passes and not skip_ptoas:
        raise UnsupportedError("dump_ptoas_passes: PTOAS is run as a whole", hint="run the .pto through ptoas itself")
    settings = {
        "verification_level": verification_level,
        "memory_planner": memory_planner,
        "runtime": runtime,
        "diagnostic_phase": diagnostic_phase,
        "disabled_diagnostics": disabled_diagnostics,
        "enable_pypto_l0c_double_buffer": enable_pypto_l0c_double_buffer,
    }
    with _context("compile", settings):
        return compile_program(
            program,
            target=target,
            output_dir=output_dir,
            dump_passes=dump_passes,
            skip_ptoas=skip_ptoas,
            emit_source_loc=emit_source_loc is not False,
            profiling=profiling,
            distributed_config=distributed_config,
            analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        )


def _target(platform: str | None, backend_type: BackendType | None) -> Target:
    if platform is None:
        return backend_type.target if backend_type is not None else backend.current_target()
    target = target_of_platform(platform)
    if backend_type is not None and backend_type.target is not target:
        raise ValueError(f"platform {platform!r} is of {target.name}, backend_type of {backend_type.target.name}")
    return target


def target_of_platform(platform: str) -> Target:
    """The chip a platform is of. ValueError for an unknown platform."""
    known = [name for t in backend.TARGETS for name in (t.platform, t.sim_platform)]
    if platform not in known:
        raise ValueError(f"Invalid platform {platform!r}: it is one of {', '.join(known)}")
    return get_target(platform)


def _context(operation: str, settings: dict[str, Any]) -> PassContext:
    """The context of an operation: the active one's settings, or those given. RuntimeError when both speak."""
    given = {name: value for name, value in settings.items() if value is not None}
    active = PassContext.current()
    if active is not None and given:
        names = ", ".join(given)
        raise RuntimeError(
            f"{operation}() was given {names} while a PassContext is already active: set it on the context instead"
        )
    return active or PassContext(**given)


@dataclass(frozen=True)
class Lowered:
    """What the pass pipeline made of a program."""

    transformed_program: Program


def run_pass_pipeline(
    program: Program,
    *,
    operation: str = "lower",
    extra_instruments: Sequence[PassInstrument] = (),
    target: Target | None = None,
    **settings: Any,
) -> Lowered:
    """Run the default passes and emit nothing. ``settings`` are as of `compile`; ``extra_instruments`` watch last."""
    context = _context(operation, settings)
    if target is not None:
        context = context.replace(target=target)
    with context.replace(instruments=[*context.instruments, *extra_instruments]), profiled("passes"):
        return Lowered(PassManager.get_strategy().run_passes(program))
