"""PyPTO: tile kernels written in Python, compiled to PTO for Ascend NPUs, and run anywhere.

Subpackages load on first use: ``import pypto`` brings only element types, errors and logging.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from .dtypes import *
from .dtypes import DataType
from .errors import Error, InternalError, check, internal_check, internal_check_span, raise_internal_error_with_span
from .logging import (
    LogLevel,
    get_log_level,
    log_debug,
    log_error,
    log_event,
    log_fatal,
    log_info,
    log_warn,
    set_log_level,
)

__version__ = "0.1.0"

_SUBPACKAGES = frozenset({"arith", "backend", "codegen", "ir", "jit", "language", "passes", "pto", "pypto_core",
                          "runtime", "simulator", "testing", "toolchain", "tools"})  # fmt: skip

__all__ = [
    "DataType", "Error", "InternalError", "LogLevel", "check", "get_log_level", "internal_check",
    "internal_check_span", "log_debug", "log_error", "log_event", "log_fatal", "log_info", "log_warn",
    "raise_internal_error_with_span", "set_log_level",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'pypto' has no attribute {name!r}")
