"""Targets as data, and the public objects that present them."""

from .api import (
    Backend,
    Backend910B,
    Backend950,
    BackendHandler,
    BackendType,
    backend_type_of,
    current_target,
    get_backend,
    get_backend_instance,
    get_backend_type,
    get_handler,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
)
from .soc import Cluster, Core, Die, Mem, SoC
from .target import L0Costs, Memory, Quirks, Target, TileFormat
from .targets import ASCEND910B, ASCEND950, TARGETS, get_target

__all__ = [
    "ASCEND910B",
    "ASCEND950",
    "TARGETS",
    "Backend",
    "Backend910B",
    "Backend950",
    "BackendHandler",
    "BackendType",
    "Cluster",
    "Core",
    "Die",
    "L0Costs",
    "Mem",
    "Memory",
    "Quirks",
    "SoC",
    "Target",
    "TileFormat",
    "backend_type_of",
    "current_target",
    "get_backend",
    "get_backend_instance",
    "get_backend_type",
    "get_handler",
    "get_target",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
]
