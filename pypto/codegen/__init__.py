"""Lowered IR to text."""

from __future__ import annotations

from .module import PTOCodegen, generate_pto, kernel_kind, selected_target

__all__ = ["PTOCodegen", "generate_pto", "kernel_kind", "selected_target"]
