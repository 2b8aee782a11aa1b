"""Lowered IR to text."""

from __future__ import annotations

from .module import PTOCodegen, generate_pto, kernel_kind, selected_target
from .orchestration import OrchestrationResult, generate_orchestration

__all__ = [
    "OrchestrationResult",
    "PTOCodegen",
    "generate_orchestration",
    "generate_pto",
    "kernel_kind",
    "selected_target",
]
