"""The public backend objects, every answer of which is read from a `Target`."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from pathlib import Path

from ..dtypes import DataType
from ..ir.enums import CoreType, MemorySpace
from .soc import SoC, soc_of
from .target import L0Costs, Target
from .targets import ASCEND910B, ASCEND950


class BackendType(Enum):
    """The target families a program can be compiled for."""

    Ascend910B = 0
    Ascend950 = 1

    @property
    def target(self) -> Target:
        return get_backend_instance(self).target


class BackendHandler:
    """Answers about one target, by the names of the public API. Sizes in bytes."""

    __slots__ = ("target",)

    def __init__(self, target: Target) -> None:
        self.target = target

    def get_pto_target_arch(self) -> str:
        return self.target.module_arch

    def get_launch_spec_core_count_method(self) -> str:
        return self.target.core_count_method

    def get_default_sim_platform(self) -> str:
        return self.target.sim_platform

    def get_extra_ptoas_flags(self) -> list[str]:
        return ["--pto-arch", self.target.pto_arch]

    def requires_gm_pipe_buffer(self) -> bool:
        return self.target.quirks.gm_pipe_buffer

    def requires_split_load_tpop_workaround(self) -> bool:
        return self.target.quirks.split_load_tpop_workaround

    def requires_vto_c_fractal_adapt(self) -> bool:
        return self.target.quirks.vector_to_cube_fractal

    def requires_runtime_subblock_bridge(self) -> bool:
        return self.target.quirks.runtime_subblock_bridge

    def requires_no_split_dual_aiv_dispatch(self) -> bool:
        return self.target.quirks.no_split_dual_aiv_dispatch

    def get_l0a_capacity_bytes(self) -> int:
        return self.target.capacity(MemorySpace.Left)

    def get_l0b_capacity_bytes(self) -> int:
        return self.target.capacity(MemorySpace.Right)

    def get_l0c_capacity_bytes(self) -> int:
        return self.target.capacity(MemorySpace.Acc)

    def get_bias_capacity_bytes(self) -> int:
        return self.target.capacity(MemorySpace.Bias)

    def get_mat_capacity_bytes(self) -> int:
        return self.target.capacity(MemorySpace.Mat)

    def get_l0_fractal_alignment(self) -> int:
        return self.target.fractal_rows

    def get_min_l0_tile_dim(self) -> int:
        return self.target.fractal_rows

    def get_l0c_m_alignment(self, dtype: DataType) -> int:
        return self.target.acc_rows(dtype)

    def get_l0_cost_model(self) -> L0Costs:
        return self.target.costs

    def supports_mat_to_bias_move(self, source: DataType, destination: DataType) -> bool:
        return (source, destination) in self.target.bias_moves

    def supports_acc_to_gm_dtype(self, dtype: DataType) -> bool:
        return dtype in self.target.acc_store_dtypes

    def supports_bf16_atomic_add(self) -> bool:
        return DataType.BF16 in self.target.atomic_add_dtypes

    def get_tcvt_adjacency(self) -> dict[DataType, list[DataType]]:
        return {source: list(destinations) for source, destinations in self.target.casts.items()}

    def get_gm_access_granularity_bytes(self) -> int:
        return self.target.gm_granularity

    def get_l2_cache_line_bytes(self) -> int:
        return self.target.l2_line

    def get_recommended_innermost_dim_bytes(self) -> int:
        return self.target.gm_granularity


_instances: dict[type[Backend], Backend] = {}


class Backend:
    """One target of the public API; get it with `instance` of a subclass or `get_backend_instance`."""

    target: Target

    @classmethod
    def instance(cls) -> Backend:
        """The one instance of the class."""
        made = _instances.get(cls)
        if made is None:
            made = _instances[cls] = cls()
        return made

    @cached_property
    def soc(self) -> SoC:
        return soc_of(self.target)

    @cached_property
    def _handler(self) -> BackendHandler:
        return BackendHandler(self.target)

    def get_handler(self) -> BackendHandler:
        return self._handler

    def get_type_name(self) -> str:
        return self.target.type_name

    def get_mem_size(self, space: MemorySpace) -> int:
        """Usable bytes of ``space`` in one core; 0 for memories outside the cores."""
        return self.target.capacity(space)

    def get_core_count(self, core_type: CoreType) -> int:
        return self.target.core_count(core_type)

    def find_mem_path(self, source: MemorySpace, destination: MemorySpace) -> list[MemorySpace]:
        """Shortest chain of moves from ``source`` to ``destination``, both included; empty when there is none."""
        return self.target.mem_path(source, destination)

    def export_to_file(self, path: str | Path) -> None:
        """Write the target's memories, moves and core counts as JSON."""
        import json

        target = self.target
        description = {
            "type": target.type_name,
            "cores": {core.name: target.core_count(core) for core in CoreType},
            "memories": {
                m.space.name: {"physical": m.physical, "usable": m.usable, "alignment": m.alignment}
                for m in target.memories.values()
            },
            "moves": {source.name: [d.name for d in ends] for source, ends in target.moves.items()},
        }
        Path(path).write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


class Backend910B(Backend):
    """Ascend 910B and 910C."""

    target = ASCEND910B


class Backend950(Backend):
    """Ascend 950."""

    target = ASCEND950


_BACKENDS: dict[BackendType, type[Backend]] = {
    BackendType.Ascend910B: Backend910B,
    BackendType.Ascend950: Backend950,
}
_current: BackendType | None = None


def get_backend_instance(backend_type: BackendType) -> Backend:
    return _BACKENDS[backend_type].instance()


def backend_type_of(target: Target) -> BackendType:
    """The public name of ``target``."""
    return BackendType[target.name]


def set_backend_type(backend_type: BackendType) -> None:
    """Set the process-wide default target. Raises TypeError for anything but a `BackendType`."""
    if not isinstance(backend_type, BackendType):
        raise TypeError(f"expected a BackendType, got {backend_type!r}")
    global _current
    _current = backend_type


def get_backend_type() -> BackendType:
    """The process-wide default target. Raises ValueError when none is set."""
    if _current is None:
        raise ValueError("Backend type not configured; call pypto.backend.set_backend_type first")
    return _current


def is_backend_configured() -> bool:
    return _current is not None


def current_target() -> Target:
    """The target of the selected backend, the 910B's where none is."""
    return ASCEND910B if _current is None else get_backend_type().target


def reset_for_testing() -> None:
    """Forget the process-wide default target."""
    global _current
    _current = None


def get_backend() -> Backend:
    """Backend of the process-wide default target. Raises ValueError when none is set."""
    return get_backend_instance(get_backend_type())


def get_handler() -> BackendHandler:
    """Handler of the process-wide default target. Raises ValueError when none is set."""
    return get_backend().get_handler()
