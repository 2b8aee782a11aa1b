"""Compiling and running programs."""

from __future__ import annotations

from .compiled_program import CompiledProgram
from .compiler import compile
from .runner import RunConfig, run

__all__ = ["CompiledProgram", "RunConfig", "compile", "run"]
