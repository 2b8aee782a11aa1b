"""Lowered IR to text."""

from __future__ import annotations

from .module import PTOCodegen, generate_pto, kernel_kind, selected_target
from .orchestration import OrchestrationResult, generate_orchestration
from .tensors import collect_vars_from_shape_expr

__all__ = [
    "OrchestrationResult",
    "PTOCodegen",
    "collect_vars_from_shape_expr",
    "generate_orchestration",
    "generate_pto",
    "kernel_kind",
    "selected_target",
]
