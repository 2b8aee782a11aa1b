"""TensorViewCanonical: strides, shape and layout of every tensor view agree."""

from __future__ import annotations

from ...errors import Diagnostic
from ...ir.program import Function, Program, summarize
from ...ir.tensor_view_semantics import RULE_NAME, check_function_views, check_program_views
from ...ir.types import TensorView
from .driver import Rule


class TensorViewCanonical(Rule):
    """The form `MaterializeTensorStrides` leaves: every view states strides its layout allows."""

    name = RULE_NAME

    def enter_function(self, function: Function) -> None:
        if TensorView in summarize(function).kinds:
            self._found.extend(check_function_views(function, require_materialized=True))


def verify_tensor_view_canonical(program: Program, require_materialized: bool = False) -> list[Diagnostic]:
    """What is wrong with the tensor views of ``program``. Views without strides pass unless these must be explicit."""
    return check_program_views(program, require_materialized)
