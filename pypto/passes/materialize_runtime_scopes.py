"""MaterializeRuntimeScopes: the runtime scopes of orchestration functions become statements.

The function's body, and each loop body and branch in it, becomes a `RuntimeScopeStmt`, except inside a manual scope,
which holds no others. A function declared with ``auto_scope=False`` has the scopes its author placed, and what this
pass placed is marked that way.
"""

from __future__ import annotations

from ..ir.enums import FunctionType
from ..ir.program import Function
from ..ir.stmt import ForStmt, IfStmt, RuntimeScopeStmt, Stmt
from .base import P, Pass, function_pass
from .bodies import BodyRewriter


def materialize_runtime_scopes() -> Pass:
    """The pass; see the module."""
    return function_pass(
        "MaterializeRuntimeScopes",
        _materialize,
        requires={P.SplitIncoreOrch, P.CallDirectionsResolved},
        produces={P.RuntimeScopesMaterialized},
        only=(FunctionType.Orchestration,),
    )


def _materialize(function: Function) -> Function:
    if not function.attrs.get("auto_scope", True):
        return function
    body = _scoped(_Placer().body(function.body))
    return function.replace(body=body, attrs={**function.attrs, "auto_scope": False})


def _scoped(body: Stmt) -> Stmt:
    """``body`` in a scope of its own, unless it is one."""
    if isinstance(body, RuntimeScopeStmt) and not body.manual:
        return body
    return RuntimeScopeStmt(body=body, span=body.span)


class _Placer(BodyRewriter):
    def visit_runtime_scope_stmt(self, op: RuntimeScopeStmt) -> Stmt:
        return op if op.manual else op.replace(body=self.body(op.body))

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return op.replace(body=_scoped(self.body(op.body)))

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        there = op.else_body
        return op.replace(
            then_body=_scoped(self.body(op.then_body)),
            else_body=_scoped(self.body(there)) if there is not None else None,
        )
