"""The import path of programs of several devices that existing tools use."""

from __future__ import annotations

from ..runtime.compiled_program import CompiledProgram as DistributedCompiledProgram
from ..runtime.distributed_config import DistributedConfig

__all__ = ["DistributedCompiledProgram", "DistributedConfig"]
