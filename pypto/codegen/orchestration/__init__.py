"""An Orchestration function to the C++ that submits its tasks to the device runtime."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...backend.target import Target
from ...errors import VerificationError
from ...ir.enums import CoreType
from ...ir.program import Function, Program, is_orchestration_like
from ...passes.properties import VERIFIED, IRProperty
from ...passes.verifiers import verify_or_raise
from ..module import selected_target
from .builder import OrchestrationBuilder
from .cpp import render
from .kernels import signature

REQUIRED = frozenset(
    {
        IRProperty.CallDirectionsResolved,
        IRProperty.RuntimeScopesMaterialized,
        IRProperty.IterArgCarryClassified,
        IRProperty.ReturnParamsExplicit,
    }
)
"""What holds of a program whose orchestration can be written."""


@dataclass(frozen=True)
class OrchestrationResult:
    """An orchestration's C++, and the numbers, cores and tensor arguments of the kernels it launches."""

    code: str
    func_name_to_id: dict[str, int] = field(default_factory=dict)
    func_name_to_core_type: dict[str, CoreType] = field(default_factory=dict)
    func_name_to_signature: dict[str, list[str]] = field(default_factory=dict)
    orchestration_signature: list[str] = field(default_factory=list)


def generate_orchestration(program: Program, func: Function, target: Target | None = None) -> OrchestrationResult:
    """The C++ of ``func``, an Orchestration function of ``program``, for the selected backend where no target is given.

    Raises ValueError when it is none, VerificationError when it is as it was before a pass, or when the program has not
    been lowered, and the user's error at what the runtime cannot do.
    """
    known = program.get_function(func.name)
    if known is None:
        raise ValueError(f"function {func.name!r} is not present in the supplied program")
    if known is not func:
        raise VerificationError(f"{func.name!r} is a stale function handle: take it from the supplied program")
    if not is_orchestration_like(func.func_type):
        raise ValueError(f"{func.name!r} is a function of type {func.func_type.name}, not an orchestration")
    verify_or_raise(REQUIRED & VERIFIED, program, f"{func.name!r} cannot be written as an orchestration")
    builder = OrchestrationBuilder(program, func, target or selected_target())
    code = render(builder.build())
    kernels = builder.kernels
    return OrchestrationResult(code, kernels.ids, kernels.core_types, kernels.signatures, signature(func))
