"""Compiling and running programs."""

from __future__ import annotations

from .compiled_program import CompiledProgram
from .compiler import compile
from .distributed_config import DistributedConfig
from .runner import RunConfig, run
from .tensor_spec import TensorSpec
from .worker import DistributedWorker

__all__ = ["CompiledProgram", "DistributedConfig", "DistributedWorker", "RunConfig", "TensorSpec", "compile", "run"]
