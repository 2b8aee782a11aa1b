"""`RunConfig`: how a kernel is compiled and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..backend import BackendType, Target
from ..passes import DiagnosticCheckSet, DiagnosticPhase, MemoryPlanner, RuntimeKind, VerificationLevel
from ..passes.pipeline import OptimizationStrategy, PassDumpLevel
from .compiled_program import CompiledProgram
from .distributed_config import DistributedConfig
from .ir_compile import compile, target_of_platform

_RINGS: Final = 4
_RING_SIZES: Final = (("ring_task_window", 4, True), ("ring_heap", 1024, True), ("ring_dep_pool", 4, False))
"""Field, least size, whether it is a power of two."""
_FULL_SWIMLANE: Final = 4
_INT32_MAX: Final = 2**31 - 1
_PASS_SETTINGS: Final = (
    "verification_level",
    "memory_planner",
    "runtime",
    "diagnostic_phase",
    "disabled_diagnostics",
    "enable_pypto_l0c_double_buffer",
)


@dataclass
class RunConfig:
    """Settings of one compilation and the runs that follow.

    Read when compiling: ``platform`` (``a2a3``, ``a5``, each with or without ``sim``), from which ``backend_type``
    follows, ``distributed_config`` (the devices of a host function), ``strategy``, ``dump_passes``,
    ``dump_ptoas_passes``, ``compile_profiling``, ``save_kernels_dir`` (the output folder),
    ``analyze_auto_scopes_for_deps``, ``emit_source_loc``, and the settings of a `pypto.passes.PassContext`.

    Read by a device runtime, checked here and without effect in the simulator: ``device_id``, ``aicpu_thread_num``,
    what to record (``enable_chip_swimlane`` 0 to 4, where True is 4; ``enable_dump_args`` 0 to 2; ``enable_pmu`` an
    event number, 0 for none; ``enable_dep_gen``; ``enable_scope_stats``; any of them sets ``save_kernels``), and the
    sizes of the task rings (``ring_task_window`` entries, ``ring_heap`` bytes, ``ring_dep_pool`` entries): one number
    for all, or four, where 0 keeps a ring's default.

    Raises ValueError for an unknown platform and for values out of these ranges, TypeError for a level that is no
    number.
    """

    platform: str = "a2a3sim"
    device_id: int = 0
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    dump_passes: bool | PassDumpLevel = False
    dump_ptoas_passes: bool = False
    compile_profiling: bool = False
    save_kernels: bool = False
    save_kernels_dir: str | None = None
    codegen_only: bool = False
    rtol: float = 1e-5
    atol: float = 1e-5
    golden_data_dir: str | None = None
    analyze_auto_scopes_for_deps: bool = False
    emit_source_loc: bool | None = None
    verification_level: VerificationLevel | None = None
    memory_planner: MemoryPlanner | None = None
    runtime: RuntimeKind | None = None
    diagnostic_phase: DiagnosticPhase | None = None
    disabled_diagnostics: DiagnosticCheckSet | None = None
    enable_pypto_l0c_double_buffer: bool | None = None
    distributed_config: DistributedConfig | None = None
    backend_type: BackendType | None = None
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    aicpu_thread_num: int | None = None
    ring_task_window: int | list[int] | None = None
    ring_heap: int | list[int] | None = None
    ring_dep_pool: int | list[int] | None = None

    def __post_init__(self) -> None:
        chip = next(b for b in BackendType if b.target is self.target)
        if self.backend_type not in (None, chip):
            raise ValueError(f"platform {self.platform!r} is of {chip.name}, backend_type says {self.backend_type}")
        self.backend_type = chip
        self.enable_chip_swimlane = swimlane_level(self.enable_chip_swimlane)
        self.enable_dump_args = int(self.enable_dump_args)
        self.save_kernels = self.save_kernels or self.any_dfx_enabled()
        for name, least, power in _RING_SIZES:
            setattr(self, name, _ring_size(name, getattr(self, name), least, power))

    @property
    def target(self) -> Target:
        """The chip of ``platform``."""
        return target_of_platform(self.platform)

    def any_dfx_enabled(self) -> bool:
        """Whether anything is to be recorded."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args > 0
            or self.enable_pmu > 0
            or self.enable_dep_gen
            or self.enable_scope_stats
        )

    def pass_settings(self) -> dict[str, Any]:
        """What is set of the settings of a `pypto.passes.PassContext`."""
        return {name: value for name in _PASS_SETTINGS if (value := getattr(self, name)) is not None}

    def compile_settings(self) -> dict[str, Any]:
        """The keywords of `pypto.ir.compile` these settings stand for."""
        made = {
            "platform": self.platform,
            "strategy": self.strategy,
            "dump_passes": self.dump_passes,
            "dump_ptoas_passes": self.dump_ptoas_passes,
            "profiling": self.compile_profiling,
            "analyze_auto_scopes_for_deps": self.analyze_auto_scopes_for_deps,
            **self.pass_settings(),
        }
        optional = {
            "output_dir": self.save_kernels_dir,
            "emit_source_loc": self.emit_source_loc,
            "distributed_config": self.distributed_config,
        }
        return made | {name: value for name, value in optional.items() if value is not None}


def run(program: Any, *args: Any, config: RunConfig | None = None) -> CompiledProgram:
    """Compile ``program`` and, when there are ``args``, run it on them; the compiled program, to run again.

    Raises what `pypto.ir.compile` and a call of the compiled program raise.
    """
    compiled = compile(program, **(config or RunConfig()).compile_settings())
    if args:
        compiled(*args)
    return compiled


def swimlane_level(level: Any) -> int:
    """How much of the timeline is recorded, 0 to 4; True is all of it. TypeError or ValueError for anything else."""
    if isinstance(level, bool):
        return _FULL_SWIMLANE if level else 0
    if not isinstance(level, int):
        raise TypeError(f"enable_chip_swimlane must be a bool or an int, got {type(level).__name__}")
    if not 0 <= level <= _FULL_SWIMLANE:
        raise ValueError(f"enable_chip_swimlane must be a collection level in [0, {_FULL_SWIMLANE}], got {level}")
    return level


def _ring_size(name: str, given: int | Sequence[int] | None, least: int, power: bool) -> int | list[int] | None:
    rule = f"be a power of 2 >= {least}" if power else f"be in [{least}, INT32_MAX]"

    def fits(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        return value >= least and (value & (value - 1) == 0 if power else value <= _INT32_MAX)

    if given is None:
        return None
    if isinstance(given, (list, tuple)):
        if len(given) != _RINGS:
            raise ValueError(f"{name} must have exactly {_RINGS} entries, one for each ring, got {len(given)}")
        for value in given:
            if not fits(value) and not (value == 0 and type(value) is int):
                raise ValueError(f"{name} entries must {rule}, or be 0 for the default, got {value!r}")
        return list(given)
    if not fits(given):
        raise ValueError(f"{name} must {rule}, got {given!r}")
    return given  # pyright: ignore[reportReturnType]


__all__ = ["RunConfig", "run", "swimlane_level"]
