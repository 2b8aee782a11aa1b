"""Program transformations. A pass's module is loaded when its factory is first used."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from ..errors import Diagnostic, DiagnosticSeverity
from .base import Pass, create_function_pass, create_program_pass
from .context import (
    CallbackInstrument,
    MemoryPlanner,
    PassContext,
    PassInstrument,
    ReportInstrument,
    RuntimeKind,
    VerificationInstrument,
    VerificationLevel,
    VerificationMode,
    get_default_verification_level,
    runtime_kind_from_name,
    runtime_kind_to_name,
)
from .diagnostics import (
    DiagnosticCheck,
    DiagnosticCheckRegistry,
    DiagnosticCheckSet,
    DiagnosticPhase,
    get_default_diagnostic_phase,
)
from .pipeline import PIPELINE, PassPipeline, run_pipeline
from .properties import (
    IRProperty,
    IRPropertySet,
    get_default_verify_properties,
    get_structural_properties,
    get_verified_properties,
)

_LAZY = {
    "PropertyVerifierRegistry": "verifiers",
    "TypeCheckErrorType": "verifiers.type_rules",
    "run_verifier": "verifiers",
    "verify_properties": "verifiers",
    "verify_tensor_view_canonical": "verifiers.tensor_view",
    **{factory: factory for factory in PIPELINE},
}


_MODULES = {"stmt_dependency_analysis": "stmt_dependency_analysis", "l0_tile_chooser": "auto_tile_matmul_l0.chooser"}
"""Modules that are part of the public interface as modules, by their public name."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f".{module}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_MODULES})


class _Package(ModuleType):
    """A pass's module has its factory's name: importing the module must not hide the factory."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _LAZY.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
