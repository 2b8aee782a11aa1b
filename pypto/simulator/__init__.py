"""Runs PTO modules on arrays: the target's memories, layouts and arithmetic, on the CPU."""

from __future__ import annotations

from .kernel import SimKernel, SimModule, load
from .report import SimReport

__all__ = ["SimKernel", "SimModule", "SimReport", "load"]
