"""The import path of the pass manager that existing tools use."""

from __future__ import annotations

from .. import passes
from ..passes.pipeline import OptimizationStrategy, PassDumpLevel, PassManager

__all__ = ["OptimizationStrategy", "PassDumpLevel", "PassManager", "passes"]
