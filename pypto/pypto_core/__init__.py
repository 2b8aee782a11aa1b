"""Import-compatibility names of the public API; nothing is implemented here."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..dtypes import *
from ..dtypes import DataType
from ..errors import InternalError
from ..logging import LogLevel, _clear_thread_log_level, _set_thread_log_level, get_log_level, set_log_level

__all__ = [
    "DataType", "InternalError", "LogLevel", "_clear_thread_log_level", "_set_thread_log_level", "get_log_level",
    "set_log_level",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name in ("arith", "backend", "codegen", "ir", "logging", "passes", "testing"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
