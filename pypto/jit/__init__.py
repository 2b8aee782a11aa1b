"""`pl.jit`: kernels that take their shapes from the arguments of a call."""

from __future__ import annotations

from .decorator import JITFunction, jit

__all__ = ["JITFunction", "jit"]
