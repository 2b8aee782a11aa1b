"""Compiling and running programs."""

from __future__ import annotations

from .compiled_program import CompiledProgram
from .compiler import compile

__all__ = ["CompiledProgram", "compile"]
