"""Writes the variants of functions: parameters with strides, what follows from them, and calls."""

from __future__ import annotations

from typing import Any

from ...errors import InternalError
from ...ir.enums import ParamDirection, TensorLayout
from ...ir.expr import Call, Expr, GlobalVar, IterArg, Submit, Var, const_value
from ...ir.functor import deep_clone, get_last_yield_stmt
from ...ir.node import NodeList
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from ...ir.tensor_view_semantics import materialized
from ...ir.types import TensorType, TensorView, Type
from ...ir.visitor import Rewriter
from ...ops.registry import reinfer
from ..wrapper_directions import with_leading_args
from .variants import Variant, Variants


def rewritten(program: Program, found: Variants) -> Program:
    """``program`` with the variants of its functions."""
    functions: list[Function] = []
    for function in program.functions.values():
        for variant in found.of[function.name]:
            made = _Writer(variant).write() if variant.changed else function
            functions.append(made if made.name == function.name else _copy(made))
    return Program(functions, program.name, program.span)


def _copy(function: Function) -> Function:
    """``function`` with variables of its own."""
    made, _ = deep_clone(function)
    if not isinstance(made, Function):
        raise InternalError("a copy of a function is none", function.span)
    return made.replace(summary_cell=[])


class _Writer(Rewriter):
    """One variant of a function."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self._variant = variant

    def write(self) -> Function:
        variant = self._variant
        function = variant.function
        for param, strides in variant.strides.items():
            self.vars[param] = Var(param.name_hint, _strided(param.type, strides), param.span)
        made: Function = self.rewrite(function)
        changes: dict[str, Any] = {"name": variant.name} if variant.name != made.name else {}
        if variant.leading:
            ins = [ParamDirection.In for _ in variant.leading]
            changes["params"] = NodeList([*variant.leading, *made.params])
            changes["param_directions"] = NodeList([*ins, *made.param_directions])
        return made.replace(**changes) if changes else made

    # Types: what an operator makes of a tensor keeps the strides it has then.

    def visit_call(self, op: Call) -> Expr:
        entry = self._variant.calls.get(op)
        if entry is not None:
            return self._called(op, *entry)
        args = self.rewrite_list(op.args, self.rewrite)
        made: Any = self.generic(op)
        peer = op.kwargs.get("peer_func")
        if peer in self._variant.peers:
            return made.replace(kwargs={**made.kwargs, "peer_func": self._variant.peers[peer]})
        if args is op.args or op.op.decl is None or all(_view(a) == _view(b) for a, b in zip(op.args, args)):
            return made
        inferred = reinfer(op, args).type
        if not isinstance(inferred, TensorType) or _view(inferred) == _view(reinfer(op, op.args).type):
            return made
        return made.replace(type=_with_view(made.type, inferred))

    def visit_submit(self, op: Submit) -> Expr:
        entry = self._variant.calls.get(op)
        return self._called(op, *entry) if entry is not None else self.generic(op)

    def _called(self, op: Call | Submit, callee: Variant, first: list[Expr]) -> Expr:
        made: Any = self.generic(op)
        if callee.name != op.op.name:
            made = made.replace(op=GlobalVar(callee.name))
        return with_leading_args(made, [self.rewrite(e) for e in first]) if first else made

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        value = self.rewrite(op.value)
        return op.replace(value=value, var=self._following(op.var, op.value, value))

    def rebuild_var(self, var: Var) -> Var:
        made = super().rebuild_var(var)
        if not isinstance(var, IterArg) or not isinstance(made, IterArg):
            return made
        type = _followed(made.type, var.init_value.type, made.init_value.type)
        return made if type is made.type else IterArg(made.name_hint, type, made.init_value, made.span)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> Any:
        for carried, result in zip(op.iter_args, op.return_vars):
            self._following(result, carried, self.define(carried))
        return self.generic(op)

    visit_while_stmt = visit_for_stmt

    def visit_if_stmt(self, op: IfStmt) -> Any:
        body = self.rewrite(op.then_body)
        before, after = get_last_yield_stmt(op.then_body), get_last_yield_stmt(body)
        if before is not None and after is not None:
            for result, old, new in zip(op.return_vars, before.values, after.values):
                self._following(result, old, new)
        return self.generic(op)

    def _following(self, var: Var, before: Expr, after: Expr) -> Any:
        """``var`` at its definition, which is now by ``after`` and was by ``before``."""
        made: Any = self.define(var)
        type = _followed(made.type, before.type, after.type)
        if type is not made.type:
            made = self.vars[var] = Var(made.name_hint, type, made.span)
        return made


def _view(value: Expr | Type) -> TensorView | None:
    type = value.type if isinstance(value, Expr) else value
    return type.tensor_view if isinstance(type, TensorType) else None


def _followed(type: Type, before: Type, after: Type) -> Type:
    """``type`` with the strides of ``after`` where they are others than those of ``before``."""
    if not isinstance(type, TensorType) or not isinstance(after, TensorType) or _view(before) == _view(after):
        return type
    return _with_view(type, after)


def _with_view(type: TensorType, source: TensorType) -> TensorType:
    view = source.tensor_view
    return type.replace(tensor_view=materialized(view, type.shape) if view is not None else None)


def _strided(type: Type, strides: tuple[Expr, ...]) -> Type:
    if not isinstance(type, TensorType):
        raise InternalError("strides of a value that is no tensor")
    view = type.tensor_view or TensorView()
    if len(strides) > 1 and const_value(type.shape[-1]) == 1 and const_value(strides[-2]) == 1:
        # Columns are loaded from DN views, and are stated as such where nothing else is said.
        return type.replace(
            tensor_view=view.replace(stride=NodeList([*strides[:-1], type.shape[-2]]), layout=TensorLayout.DN)
        )
    return type.replace(tensor_view=view.replace(stride=NodeList(strides)))
