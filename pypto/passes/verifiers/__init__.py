"""Checking properties of programs. `RULES` says which rule checks which property."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...errors import Diagnostic, DiagnosticSeverity, VerificationError
from ...ir.program import Program
from ..base import Pass
from ..context import PassContext
from ..properties import DEFAULT_VERIFY, IRProperty, IRPropertySet

if TYPE_CHECKING:
    from .driver import Rule

P = IRProperty

RULES: dict[IRProperty, tuple[str, str]] = {
    getattr(P, name): (module, name)
    for module, names in {
        "ssa": ("SSAForm", "UseAfterDef"),
        "structure": (
            "BreakContinueValid",
            "InlineFunctionsEliminated",
            "NoNestedCalls",
            "NoNestedInCore",
            "NoRedundantBlocks",
            "NormalizedStmtStructure",
            "PipelineLoopValid",
            "PipelineResolved",
            "StructuredCtrlFlow",
            "UnrollResolved",
        ),
        "type_rules": ("AssignTypeSymmetry", "TileOps2D", "TileTypeCoherence", "TypeChecked"),
        "functions": (
            "ArrayNotEscaped",
            "ClusterOutlined",
            "DistTensorCtxMaterialized",
            "HierarchyOutlined",
            "InOutUseValid",
            "IncoreTileOps",
            "ManualDepsOnSubmitOnly",
            "OrchestrationReferencesResolved",
            "OutParamNotShadowed",
            "SplitIncoreOrch",
        ),
        "operands": ("AccToGmStoreValid", "AtomicAddDtypeValid", "TileMemoryInferred"),
        "lanes": ("AivSplitValid",),
        "syncall": ("HardSyncallOccupancyValid",),
        "mixed": ("MixedKernelExpanded",),
        "places": ("AllocatedMemoryAddr", "HasMemRefs"),
        "orchestration": (
            "CallDirectionsResolved",
            "IterArgCarryClassified",
            "ReturnParamsExplicit",
            "RuntimeScopesMaterialized",
        ),
        "tensor_view": ("TensorViewCanonical",),
        "windows": ("CommDomainScopesMaterialized",),
    }.items()
    for name in names
}
"""The module and class of each property's rule. A property without one is taken on trust."""


def rule_of(prop: IRProperty) -> type[Rule] | None:
    """The class that checks ``prop``."""
    entry = RULES.get(prop)
    return getattr(importlib.import_module(f".{entry[0]}", __name__), entry[1]) if entry else None


def verify(props: Iterable[IRProperty], program: Program) -> list[Diagnostic]:
    """What is wrong with ``program``, all rules checked in one traversal."""
    rules = [rule for rule in map(rule_of, IRPropertySet(props)) if rule is not None]
    if not rules:
        return []
    from .driver import run

    return run(rules, program)


def verify_or_raise(props: Iterable[IRProperty], program: Program, message: str) -> None:
    """Raises VerificationError, led by ``message``, when a property does not hold."""
    errors = [d for d in verify(props, program) if d.severity is DiagnosticSeverity.Error]
    if errors:
        raise VerificationError(message, errors)


def verify_properties(properties: Iterable[IRProperty], program: Program, pass_name: str) -> None:
    """Check what ``pass_name`` should have established. Raises VerificationError."""
    verify_or_raise(properties, program, f"Verification failed after pass {pass_name!r}")


class PropertyVerifierRegistry:
    """The rules by property, as a namespace."""

    @staticmethod
    def verify(properties: Iterable[IRProperty], program: Program) -> list[Diagnostic]:
        return verify(properties, program)

    @staticmethod
    def verify_or_throw(properties: Iterable[IRProperty], program: Program) -> None:
        """Raises VerificationError with a report when a property does not hold."""
        verify_or_raise(properties, program, _heading())

    @staticmethod
    def generate_report(diagnostics: Sequence[Diagnostic]) -> str:
        """The diagnostics as text for a person."""
        lines = [_heading(), f"{len(diagnostics)} finding{'s' if len(diagnostics) != 1 else ''}"]
        lines += [f"[{d.rule_name}] {d.render()}" for d in diagnostics]
        return "\n".join(lines)


def _heading() -> str:
    return "IR Verification Report"


def run_verifier(properties: IRPropertySet | None = None) -> Pass:
    """A pass that changes nothing and raises VerificationError unless ``properties`` hold."""
    due = frozenset(DEFAULT_VERIFY if properties is None else properties)

    def check(program: Program, _context: PassContext) -> Program:
        verify_or_raise(due, program, _heading())
        return program

    return Pass("RunVerifier", check)
