"""What Group and Spmd functions do to their parameters, by what the functions they call do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.enums import ArgDirection, FunctionType, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit
from ..ir.node import NodeList
from ..ir.program import Function, Program
from ..ir.visitor import Visitor
from .buffer_roots import BufferRoots
from .return_lineage import ReturnLineage

WRAPPERS = frozenset({FunctionType.Group, FunctionType.Spmd})
"""Functions that hand their parameters on to kernels."""

_RANK = {ParamDirection.In: 0, ParamDirection.Out: 1, ParamDirection.InOut: 2}


class FunctionCalls(Visitor):
    """Tells ``found`` of every call and launch of a function, in order."""

    def __init__(self, found: Callable[[Call | Submit], object]) -> None:
        self._found = found

    def visit_call(self, op: Call | Submit) -> None:
        self.generic(op)
        if isinstance(op.op, GlobalVar):
            self._found(op)

    visit_submit = visit_call


def wrapper_directions(program: Program, lineage: ReturnLineage) -> dict[str, Sequence[ParamDirection]]:
    """The effective directions of every wrapper: the declared ones, raised by each call until nothing changes."""
    wrappers = {f.name: f for f in program.functions.values() if f.func_type in WRAPPERS}
    directions = {f.name: list(f.param_directions) for f in program.functions.values()}
    handed: dict[str, list[tuple[str, int, int]]] = {}
    """By callee, the wrapper that calls it, and which of its parameters is which argument."""
    for name, function in wrappers.items():
        for callee, param, arg in _handed_on(function, lineage):
            handed.setdefault(callee, []).append((name, param, arg))
    pending = list(handed)
    while pending:
        callee = pending.pop()
        known = directions.get(callee, [])
        for name, param, arg in handed.get(callee, ()):
            if arg < len(known) and _RANK[known[arg]] > _RANK[directions[name][param]]:
                directions[name][param] = known[arg]
                pending.append(name)
    return {name: directions[name] for name in wrappers}


def _handed_on(function: Function, lineage: ReturnLineage) -> list[tuple[str, int, int]]:
    """For each argument of a call that is a parameter: the callee, the parameter's and the argument's index."""
    index = {p: i for i, p in enumerate(function.params)}
    roots = BufferRoots(function, lineage)
    found: list[tuple[str, int, int]] = []

    def note(call: Call | Submit) -> None:
        for i, arg in enumerate(call.args):
            found.extend((call.op.name, index[root], i) for root in roots.of(arg) if root in index)

    FunctionCalls(note).visit(function.body)
    return found


def with_leading_args(call: Call | Submit, scalars: Sequence[Expr]) -> Call | Submit:
    """``call`` with ``scalars`` before its arguments; what it says of arguments goes on saying it of the same ones."""
    attrs = dict(call.attrs)
    if attrs.get("arg_directions"):
        attrs["arg_directions"] = [*(ArgDirection.Scalar for _ in scalars), *attrs["arg_directions"]]
    if attrs.get("arg_direction_overrides"):
        attrs["arg_direction_overrides"] = [i + len(scalars) for i in attrs["arg_direction_overrides"]]
    return call.replace(args=NodeList([*scalars, *call.args]), attrs=attrs)


def with_wrapper_directions(program: Program, lineage: ReturnLineage) -> Program:
    """``program`` with the effective directions in its wrappers' signatures."""
    if not any(f.func_type in WRAPPERS for f in program.functions.values()):
        return program
    found = wrapper_directions(program, lineage)

    def change(function: Function) -> Function:
        made = found.get(function.name)
        if made is None or list(function.param_directions) == made:
            return function
        return function.replace(param_directions=NodeList(made))

    return program.map_functions(change)
