"""What surrounds a pass run: settings, and instruments that watch it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from .diagnostics import DISABLED_BY_DEFAULT, DiagnosticCheckSet, DiagnosticPhase, get_default_diagnostic_phase
from .properties import STRUCTURAL, IRProperty

if TYPE_CHECKING:
    from ..backend.target import Target
    from ..ir.program import Program
    from .base import Pass


class VerificationLevel(Enum):
    """How much the pipeline checks on its own; ``ROUNDTRIP`` also prints and parses back after every pass."""

    NONE = 0
    BASIC = 1
    ROUNDTRIP = 2


class VerificationMode(Enum):
    """When a `VerificationInstrument` looks."""

    BEFORE = 0
    AFTER = 1
    BEFORE_AND_AFTER = 2


class MemoryPlanner(Enum):
    """Who assigns on-chip addresses: this compiler (``PYPTO``, ``DSA_RP``) or PTOAS."""

    PYPTO = 0
    PTOAS = 1
    DSA_RP = 2


class RuntimeKind(Enum):
    """Which device runtime executes orchestration."""

    TENSORMAP_AND_RINGBUFFER = 0
    HOST_BUILD_GRAPH = 1


def runtime_kind_to_name(kind: RuntimeKind) -> str:
    return kind.name.lower()


def runtime_kind_from_name(name: str) -> RuntimeKind:
    """Raises ValueError for a name that is no runtime's."""
    for kind in RuntimeKind:
        if runtime_kind_to_name(kind) == name:
            return kind
    known = ", ".join(runtime_kind_to_name(k) for k in RuntimeKind)
    raise ValueError(f"Unknown runtime {name!r}; known are {known}")


def get_default_verification_level() -> VerificationLevel:
    """The level ``PYPTO_VERIFY_LEVEL`` (none, basic, roundtrip) names; BASIC when it is unset or names none."""
    name = os.environ.get("PYPTO_VERIFY_LEVEL", "basic").strip().upper()
    return VerificationLevel.__members__.get(name, VerificationLevel.BASIC)


class PassInstrument:
    """Base of what watches passes run. Subclasses override the callbacks they need."""

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        """Called with the program a pass is about to get."""

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Called with the program a pass has made."""

    def get_name(self) -> str:
        return type(self).__name__


Callback = Callable[[Any, Any], None]


class CallbackInstrument(PassInstrument):
    """Calls functions of ``(pass, program)``."""

    def __init__(
        self,
        before_pass: Callback | None = None,
        after_pass: Callback | None = None,
        name: str = "CallbackInstrument",
    ) -> None:
        self._before, self._after, self._name = before_pass, after_pass, name

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        if self._before is not None:
            self._before(pass_, program)

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        if self._after is not None:
            self._after(pass_, program)

    def get_name(self) -> str:
        return self._name


class VerificationInstrument(PassInstrument):
    """Checks what a pass requires before it and what it produces after it, with the structural properties each time."""

    def __init__(self, mode: VerificationMode = VerificationMode.BEFORE_AND_AFTER) -> None:
        self.mode = mode

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        if self.mode is not VerificationMode.AFTER:
            self._check(pass_.requires, program, f"Pre-verification failed before pass {pass_.name!r}")

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        if self.mode is not VerificationMode.BEFORE:
            self._check(pass_.produces, program, f"Post-verification failed after pass {pass_.name!r}")

    @staticmethod
    def _check(props: Iterable[IRProperty], program: Program, message: str) -> None:
        from .verifiers import verify_or_raise

        verify_or_raise(STRUCTURAL.union(props), program, message)


class ReportInstrument(PassInstrument):
    """Names the directory that reports go to; watches nothing."""

    def __init__(self, output_dir: str) -> None:
        self.output_dir = str(output_dir)

    def get_output_dir(self) -> str:
        return self.output_dir


_active = threading.local()


class PassContext:
    """Settings and instruments for the passes run inside a ``with`` block. An inner context replaces the outer one.

    ``verification_level`` and ``diagnostic_phase`` default to what the environment chooses. Performance hints are
    appended to ``hint_sink`` when there is one, and told on the console otherwise.
    """

    def __init__(
        self,
        instruments: Sequence[PassInstrument] = (),
        verification_level: VerificationLevel | None = None,
        diagnostic_phase: DiagnosticPhase | None = None,
        disabled_diagnostics: DiagnosticCheckSet | None = None,
        memory_planner: MemoryPlanner = MemoryPlanner.PYPTO,
        enable_pypto_l0c_double_buffer: bool = False,
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
        target: Target | None = None,
        hint_sink: list[str] | None = None,
    ) -> None:
        self.instruments = list(instruments)
        self.verification_level = (
            get_default_verification_level() if verification_level is None else verification_level
        )
        self.diagnostic_phase = get_default_diagnostic_phase() if diagnostic_phase is None else diagnostic_phase
        self.disabled_diagnostics = (
            DiagnosticCheckSet(DISABLED_BY_DEFAULT) if disabled_diagnostics is None else disabled_diagnostics
        )
        self.memory_planner = memory_planner
        self.enable_pypto_l0c_double_buffer = enable_pypto_l0c_double_buffer
        self.runtime = runtime
        self._target = target
        self.hint_sink = hint_sink

    @staticmethod
    def current() -> PassContext | None:
        """The innermost active context of this thread."""
        stack = getattr(_active, "stack", None)
        return stack[-1] if stack else None

    def __enter__(self) -> PassContext:
        if not hasattr(_active, "stack"):
            _active.stack = []
        _active.stack.append(self)
        return self

    def __exit__(self, *_exc: object) -> None:
        _active.stack.pop()

    @property
    def target(self) -> Target:
        """The target compiled for: the one given, else the selected backend's, else the 910B's."""
        if self._target is not None:
            return self._target
        from ..backend import current_target

        return current_target()

    @property
    def has_target(self) -> bool:
        """Whether a target was chosen, for this context or as the backend, rather than defaulted to."""
        from .. import backend

        return self._target is not None or backend.is_backend_configured()

    def get_verification_level(self) -> VerificationLevel:
        return self.verification_level

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        return self.diagnostic_phase

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        return self.disabled_diagnostics

    def get_memory_planner(self) -> MemoryPlanner:
        return self.memory_planner

    def get_runtime(self) -> RuntimeKind:
        return self.runtime

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        return self.enable_pypto_l0c_double_buffer

    def get_instruments(self) -> list[PassInstrument]:
        return list(self.instruments)

    def replace(self, **changes: Any) -> PassContext:
        """A context with the given settings changed."""
        settings = {
            "instruments": self.instruments,
            "verification_level": self.verification_level,
            "diagnostic_phase": self.diagnostic_phase,
            "disabled_diagnostics": self.disabled_diagnostics,
            "memory_planner": self.memory_planner,
            "enable_pypto_l0c_double_buffer": self.enable_pypto_l0c_double_buffer,
            "runtime": self.runtime,
            "target": self._target,
            "hint_sink": self.hint_sink,
        }
        return PassContext(**{**settings, **changes})


def current_or_default() -> PassContext:
    """The active context, or one with default settings and no instruments."""
    return PassContext.current() or PassContext()
