"""Advice about a program that is correct: warnings of likely mistakes, and performance hints.

Each check has a severity and a phase, and its rule walks with the others that are due then.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ..errors import Diagnostic, DiagnosticSeverity, Location
from ..logging import log_info, log_warn
from .enum_set import EnumSet

if TYPE_CHECKING:
    from ..ir.program import Program
    from ..ir.span import Span
    from .context import PassContext


class DiagnosticPhase(Enum):
    """When checks run; as a setting, NONE turns them off."""

    NONE = 0
    PRE_PIPELINE = 1
    POST_PASS = 2
    POST_PIPELINE = 3


class DiagnosticCheck(Enum):
    """What can be advised about."""

    UnusedVariable = 0
    UnusedControlFlowResult = 1
    TileInnermostDimGranularity = 2
    OutParamWriteDropped = 3


class DiagnosticCheckSet(EnumSet[DiagnosticCheck]):
    """A mutable set of checks."""

    __slots__ = ()


@dataclass(frozen=True)
class _Registration:
    severity: DiagnosticSeverity
    phase: DiagnosticPhase
    rule: str
    hint_code: str = ""


_WARNING, _HINT = DiagnosticSeverity.Warning, DiagnosticSeverity.PerfHint
_PRE, _POST = DiagnosticPhase.PRE_PIPELINE, DiagnosticPhase.POST_PIPELINE
_CHECKS = {
    DiagnosticCheck.UnusedVariable: _Registration(_WARNING, _PRE, "UnusedVariable"),
    DiagnosticCheck.UnusedControlFlowResult: _Registration(_WARNING, _PRE, "UnusedControlFlowResult"),
    DiagnosticCheck.OutParamWriteDropped: _Registration(_WARNING, _PRE, "OutParamWriteDropped"),
    DiagnosticCheck.TileInnermostDimGranularity: _Registration(_HINT, _POST, "TileInnermostDimGranularity", "PH001"),
}
DISABLED_BY_DEFAULT = frozenset({DiagnosticCheck.UnusedControlFlowResult})


def get_default_diagnostic_phase() -> DiagnosticPhase:
    """The setting ``PYPTO_WARNING_LEVEL`` names; PRE_PIPELINE when it is unset or names none."""
    name = os.environ.get("PYPTO_WARNING_LEVEL", "pre_pipeline").strip().upper()
    return DiagnosticPhase.__members__.get(name, DiagnosticPhase.PRE_PIPELINE)


class DiagnosticCheckRegistry:
    """The checks there are, as a namespace."""

    @staticmethod
    def get_all_checks() -> DiagnosticCheckSet:
        return DiagnosticCheckSet(_CHECKS)

    @staticmethod
    def get_warning_checks() -> DiagnosticCheckSet:
        return DiagnosticCheckSet(c for c, r in _CHECKS.items() if r.severity is _WARNING)

    @staticmethod
    def get_perf_hint_checks() -> DiagnosticCheckSet:
        return DiagnosticCheckSet(c for c, r in _CHECKS.items() if r.severity is _HINT)

    @staticmethod
    def run_checks(
        checks: Iterable[DiagnosticCheck], phase: DiagnosticPhase, program: Program
    ) -> list[Diagnostic]:
        """What those of ``checks`` that belong to ``phase`` find."""
        due = [_CHECKS[c] for c in checks if _CHECKS[c].phase is phase]
        if not due:
            return []
        from .verifiers.driver import run

        rules = importlib.import_module(".verifiers.advice", __package__)
        by_name = {getattr(rules, r.rule).name: r for r in due}
        found = run([getattr(rules, r.rule) for r in due], program)
        for diagnostic in found:
            registration = by_name[diagnostic.rule_name]
            diagnostic.severity, diagnostic.hint_code = registration.severity, registration.hint_code
        return found


def advise(context: PassContext, phase: DiagnosticPhase, program: Program) -> None:
    """Run the checks of ``phase`` that ``context`` leaves on, and tell the user."""
    if context.diagnostic_phase is DiagnosticPhase.NONE:
        return
    due = [c for c, r in _CHECKS.items() if r.phase is phase and c not in context.disabled_diagnostics]
    found = DiagnosticCheckRegistry.run_checks(due, phase, program)
    hints = [d for d in found if d.severity is _HINT]
    for diagnostic in found:
        if diagnostic.severity is _WARNING:
            log_warn(f"[warning] {diagnostic.rule_name}: {diagnostic.message}{diagnostic.render_body()}")
    if hints:
        _tell_hints(context, hints)


def perf_hint(context: PassContext, code: str, rule: str, message: str, span: Span) -> None:
    """Tell the user what a pass left undone, and why."""
    if context.diagnostic_phase is not DiagnosticPhase.NONE:
        _tell_hints(context, [Diagnostic(message, span, severity=_HINT, rule_name=rule, hint_code=code)])


def _tell_hints(context: PassContext, hints: list[Diagnostic]) -> None:
    """To the context's sink, or the report directory with a line on the console, or all to the console."""
    from .context import ReportInstrument

    lines = [f"[perf_hint {d.hint_code}] {d.rule_name}: {d.message} at {d.location or 'unknown place'}" for d in hints]
    if context.hint_sink is not None:
        context.hint_sink.extend(lines)
        return
    report = next((i for i in context.instruments if isinstance(i, ReportInstrument)), None)
    if report is None:
        for line in lines:
            log_info(line)
        return
    os.makedirs(report.output_dir, exist_ok=True)
    path = os.path.join(report.output_dir, "perf_hints.log")
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    sites = len({Location.of(d.span) for d in hints})
    log_info(f"[perf_hint] {_count(len(hints), 'hint')} across {_count(sites, 'site')}; see {path}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
