"""MaterializeDistTensorCtx: the communication context of every distributed parameter is a parameter too.

A function gets a context for each distributed tensor it takes, after its other parameters and in their order, and
calls of it pass the contexts on. On a device a context comes from a parameter: `get_comm_ctx` becomes the parameter
it stands for. The host, which has no such parameter for the windows it makes, asks for a window's context just
before a launch.
"""

from __future__ import annotations

from typing import Any

from ..errors import user_error
from ..ir.enums import ArgDirection, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, Var
from ..ir.naming import free_name, written_name
from ..ir.node import NodeList
from ..ir.program import Function, Program
from ..ir.types import CommCtxType, DistributedTensorType
from .base import P, Pass, program_pass
from .emitting import EmittingRewriter, build
from .host_windows import WindowLineage, names_in
from .return_lineage import ReturnLineage

_QUERY = "pld.system.get_comm_ctx"


def materialize_dist_tensor_ctx() -> Pass:
    """The pass."""
    return program_pass(
        "MaterializeDistTensorCtx",
        _materialize,
        requires={P.CommDomainScopesMaterialized, P.ReturnParamsExplicit},
        produces={P.CommDomainScopesMaterialized, P.DistTensorCtxMaterialized},
        looks_for=(DistributedTensorType,),
    )


def _materialize(program: Program) -> Program:
    lineage = ReturnLineage(program)
    growing = {f.name for f in program.functions.values() if _lacks_contexts(f)}
    callees = {f.name: f for f in program.functions.values() if f.name in growing}
    return program.map_functions(lambda f: _with_contexts(f, callees, lineage))


def _distributed(function: Function) -> list[Var]:
    return [p for p in function.params if isinstance(p.type, DistributedTensorType)]


def _contexts(function: Function) -> list[Var]:
    return [p for p in function.params if isinstance(p.type, CommCtxType)]


def _lacks_contexts(function: Function) -> bool:
    return len(_contexts(function)) < len(_distributed(function))


def _with_contexts(function: Function, callees: dict[str, Function], lineage: ReturnLineage) -> Function:
    names = names_in(function)
    if function.name in callees:
        added = [Var(_fresh(p, names), CommCtxType.get(), p.span) for p in _distributed(function)]
    else:
        added = []
    known = dict(zip(_distributed(function), added or _contexts(function)))
    rewriter = _Contexts(function, known, callees, names, WindowLineage(function, lineage))
    made = rewriter.rewrite(function)
    if not added:
        return made
    return made.with_params([*made.directed_params(), *((context, ParamDirection.In) for context in added)])


def _fresh(tensor: Var, names: set[str]) -> str:
    """A name for the context of ``tensor`` that the function does not use; it is used from here on."""
    name = free_name(f"{written_name(tensor.name_hint)}_ctx", names)
    names.add(name)
    return name


class _Contexts(EmittingRewriter):
    def __init__(
        self,
        function: Function,
        known: dict[Var, Var],
        callees: dict[str, Function],
        names: set[str],
        windows: WindowLineage,
    ) -> None:
        super().__init__()
        self._function, self._known, self._callees, self._names = function, known, callees, names
        self._windows = windows

    def visit_call(self, op: Call) -> Expr:
        if op.op.name == _QUERY and not self._function.is_host_orchestrator:
            return self._context(op.args[0], op)
        return self._passed_on(op)

    def visit_submit(self, op: Submit) -> Expr:
        return self._passed_on(op)

    def _passed_on(self, op: Any) -> Expr:
        """A call, with the contexts its callee now takes."""
        callee = self._callees.get(op.op.name) if isinstance(op.op, GlobalVar) else None
        made = self.generic(op)
        if callee is None:
            return made
        given = [
            (arg, before) for arg, before, param in zip(made.args, op.args, callee.params)
            if isinstance(param.type, DistributedTensorType)
        ]  # fmt: skip
        contexts = [self._context(before, op, arg) for arg, before in given]
        attrs = dict(made.attrs)
        if attrs.get("arg_directions"):
            attrs["arg_directions"] = [*attrs["arg_directions"], *(ArgDirection.Scalar for _ in contexts)]
        return made.replace(args=NodeList([*made.args, *contexts]), attrs=attrs)

    def _context(self, tensor: Expr, at: Call | Submit, now: Expr | None = None) -> Var:
        """The context of ``tensor``, which is ``now`` in the rewritten program."""
        root = self._windows.window_of(tensor)
        found = self._known.get(root) if root is not None else None
        if found is not None:
            return found
        if self._function.is_host_orchestrator and isinstance(now, Var):
            return self.emit(_fresh(now, self._names), build(_QUERY, now, span=at.span))
        name = written_name(tensor.name_hint) if isinstance(tensor, Var) else "an expression"
        raise user_error(
            ValueError,
            f"Cannot determine the communication context of '{name}' in '{self._function.name}': it is no parameter's "
            "window",
            at.span,
            "make it a parameter: windows are allocated on the host",
        )
