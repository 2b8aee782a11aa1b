"""The import path of compiled programs that existing tools use."""

from __future__ import annotations

from ..runtime.compiled_program import CompiledProgram, ParamInfo

__all__ = ["CompiledProgram", "ParamInfo"]
