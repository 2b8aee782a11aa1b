"""MaterializeTensorStrides: every tensor view states its strides.

A view without strides means the packed strides of its layout; this pass writes them, so that what follows reads
them in one form. Tensors without a view are packed ND and stay as they are. NZ is only accepted in blocked form:
that is checked here, not left to the verifier, which can be off.
"""

from __future__ import annotations

from typing import Any

from ..errors import InternalError
from ..ir.enums import TensorLayout
from ..ir.expr import Call, IterArg, Var
from ..ir.node import NodeList
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, ForStmt, WhileStmt
from ..ir.tensor_view_semantics import is_blocked_nz_shape, materialized
from ..ir.types import TensorType, TensorView, TupleType, Type
from ..ops.registry import reinfer
from .base import P, Pass, program_pass
from .type_rewriter import TypeRewriter

_NEEDS = {
    P.SSAForm,
    P.SplitIncoreOrch,
    P.IncoreTileOps,
    P.TileOps2D,
    P.TileMemoryInferred,
    P.NormalizedStmtStructure,
}


def materialize_tensor_strides() -> Pass:
    """The pass; see the module. Raises InternalError for a tensor in an NZ layout whose shape is not blocked."""
    return program_pass(
        "MaterializeTensorStrides",
        _run,
        requires=_NEEDS,
        produces={*_NEEDS, P.TensorViewCanonical},
        looks_for=(TensorView,),
    )


def _run(program: Program) -> Program:
    return program.map_functions(lambda f: _Materializer().rewrite(f))


class _Materializer(TypeRewriter):
    """Rewrites the type of every definition and call."""

    def rewrite_type(self, type: Type) -> Type:
        return self._materialize(super().rewrite_type(type))

    def _materialize(self, type: Type) -> Type:
        if isinstance(type, TensorType):
            return self._tensor(type)
        if isinstance(type, TupleType):
            members = [self._materialize(t) for t in type.types]
            return type if all(a is b for a, b in zip(members, type.types)) else TupleType(members)
        return type

    def _tensor(self, tensor: TensorType) -> TensorType:
        view = tensor.tensor_view
        if view is None:
            return tensor
        if view.layout is TensorLayout.NZ and not is_blocked_nz_shape(tensor.shape, tensor.dtype):
            raise InternalError(
                "NZ layout on a tensor whose shape is not blocked as [B, C/c0, R/16, 16, c0]: "
                "BlockNzTensorViews has not run, or has missed this slot",
                self.span,
            )
        if view.stride:
            return tensor
        try:
            full = materialized(view, tensor.shape)
        except ValueError as error:
            raise InternalError(str(error), self.span) from error
        return _with_view(tensor, full)

    def rebuild_var(self, var: Var) -> Var:
        made = super().rebuild_var(var)
        if isinstance(made, IterArg):
            carried = _adopt(var.type, made.type, made.init_value.type)
            if carried is not made.type:
                return IterArg(made.name_hint, carried, made.init_value, made.span)
        return made

    def rewrite_call(self, op: Call) -> Call:
        args = self.rewrite_list(op.args, self.rewrite)
        if args is not op.args and op.op.decl is not None and isinstance(op.type, TensorType):
            # A view of a strided tensor inherits its strides: the operator's own rule knows them.
            inferred = self._materialize(reinfer(op, args).type)
            made: Call = self.generic(op)
            return made.replace(type=_adopt(op.type, made.type, inferred))
        return self.generic(op)

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        value = self.rewrite(op.value)
        var = self.define(op.var)
        synced = _adopt(op.var.type, var.type, value.type)
        if synced is not var.type:
            var = self.vars[op.var] = Var(var.name_hint, synced, var.span)
        return op.replace(value=value, var=var)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> Any:
        for carried, result in zip(op.iter_args, op.return_vars):
            argument, made = self.define(carried), self.define(result)
            synced = _adopt(result.type, made.type, argument.type)
            if synced is not made.type:
                self.vars[result] = Var(result.name_hint, synced, result.span)
        return self.generic(op)

    visit_while_stmt = visit_for_stmt

    def visit_function(self, op: Function) -> Function:
        self.span = op.span
        return super().visit_function(op)


def _with_view(tensor: TensorType, view: TensorView) -> TensorType:
    return tensor.replace(tensor_view=view)


def _adopt(before: Type, after: Type, source: Type) -> Type:
    """``after``, the materialized form of ``before``, with the strides of the value it is given.

    Only strides this pass filled in give way to the value's: those it found are the author's.
    """
    if isinstance(before, TupleType) and isinstance(after, TupleType) and isinstance(source, TupleType):
        members = NodeList(_adopt(b, a, s) for b, a, s in zip(before.types, after.types, source.types))
        return after if all(x is y for x, y in zip(members, after.types)) else TupleType(members)
    if not (isinstance(before, TensorType) and isinstance(after, TensorType) and isinstance(source, TensorType)):
        return after
    old, filled, given = before.tensor_view, after.tensor_view, source.tensor_view
    if old is None or filled is None or given is None or old.stride or not given.stride:
        return after
    if given.layout is not filled.layout or len(given.stride) != len(filled.stride):
        return after
    view = filled.replace(stride=given.stride)
    return after if view == filled else _with_view(after, view)
