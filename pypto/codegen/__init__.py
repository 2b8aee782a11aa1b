"""Lowered IR to text."""

from __future__ import annotations

from .module import generate_kernel, generate_pto, kernel_kind

__all__ = ["generate_kernel", "generate_pto", "kernel_kind"]
