"""The import path of `ir.compile` that existing tools use."""

from __future__ import annotations

from ..runtime.ir_compile import Lowered, compile, run_pass_pipeline as _run_pass_pipeline

__all__ = ["Lowered", "_run_pass_pipeline", "compile"]
