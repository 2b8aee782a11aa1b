"""Rules about what orchestration code generation relies on."""

from __future__ import annotations

from ...errors import Diagnostic
from ...ir.enums import ArgDirection, FunctionType, ParamDirection
from ...ir.expr import Call, GlobalVar, Submit
from ...ir.program import Function, Program, summarize
from ...ir.stmt import ForStmt, ReturnStmt
from ...ir.types import TensorType
from ..classify_iter_arg_carry import REBIND
from ..normalize_return_order import has_explicit_returns
from ..return_lineage import ReturnLineage
from ..wrapper_directions import wrapper_directions
from .driver import Rule

_D, _A = ParamDirection, ArgDirection
_LEGAL = {
    _D.In: (_A.Input, _A.NoDep),
    _D.Out: (_A.Output, _A.OutputExisting, _A.InOut, _A.NoDep),
    _D.InOut: (_A.InOut, _A.OutputExisting, _A.NoDep),
}
"""How a launch may use an argument, by what the callee does to it."""


class CallDirectionsResolved(Rule):
    """Every call of a function says how it uses each argument, in agreement with the callee's signature."""

    name = "CallDirectionsResolved"
    expressions = True

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        super().__init__(program, found)
        self._callees = {f.name: f for f in program.functions.values()}
        self._wrappers = wrapper_directions(program, ReturnLineage(program))

    def enter_function(self, function: Function) -> bool:
        effective = self._wrappers.get(function.name, function.param_directions)
        for param, declared, found in zip(function.params, function.param_directions, effective):
            if declared is not found:
                self.report(
                    f"Function '{function.name}' has stale param_directions_: '{param.name_hint}' is declared "
                    f"{declared.name}, its calls make it {found.name}",
                    function.span,
                )
        return bool(summarize(function).callees)

    def visit_call(self, op: Call | Submit) -> None:
        callee = self._callees.get(op.op.name) if isinstance(op.op, GlobalVar) else None
        if callee is None or not op.args:
            return
        directions = op.attrs.get("arg_directions")
        if not directions:
            self.report(f"The call of '{callee.name}' has no arg_directions", op.span)
            return
        for i, (arg, param, used) in enumerate(zip(op.args, callee.param_directions, directions)):
            legal = _LEGAL[param] if isinstance(arg.type, TensorType) else (_A.Scalar,)
            if used not in legal:
                self.report(
                    f"arg_directions[{i}] of the call of '{callee.name}' is {used.name}, where its parameter "
                    f"({param.name}) takes {' or '.join(d.name for d in legal)}",
                    op.span,
                )

    visit_submit = visit_call


class RuntimeScopesMaterialized(Rule):
    """Orchestration functions place every runtime scope themselves."""

    name = "RuntimeScopesMaterialized"

    def enter_function(self, function: Function) -> bool:
        if function.func_type is FunctionType.Orchestration and function.attrs.get("auto_scope", True):
            self.report(
                f"Function '{function.name}' has no runtime scopes yet: its auto_scope is not False", function.span
            )
        return False


class IterArgCarryClassified(Rule):
    """Every loop of an orchestration function says how it carries each of its values."""

    name = "IterArgCarryClassified"

    def enter_function(self, function: Function) -> bool:
        self._function = function
        return function.func_type is FunctionType.Orchestration and ForStmt in summarize(function).kinds

    def visit_for_stmt(self, op: ForStmt) -> None:
        for i, arg in enumerate(op.iter_args):
            if f"{REBIND}{i}" not in op.attrs:
                self.report(
                    f"A loop of '{self._function.name}' carries '{arg.name_hint}' and has no {REBIND}{i}", op.span
                )


class ReturnParamsExplicit(Rule):
    """Kernels and wrappers return the tensors they wrote as the parameters themselves."""

    name = "ReturnParamsExplicit"

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        super().__init__(program, found)
        self._lineage = ReturnLineage(program)

    def enter_function(self, function: Function) -> bool:
        self._function = function
        return has_explicit_returns(function)

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        function = self._function
        if len(op.values) != len(function.return_types):
            return
        for i, (value, param) in enumerate(zip(op.values, self._lineage.of(function.name))):
            if param is not None and value is not function.params[param]:
                self.report(
                    f"Result {i} of '{function.name}' is its parameter '{function.params[param].name_hint}' under "
                    "another name",
                    op.span,
                )
