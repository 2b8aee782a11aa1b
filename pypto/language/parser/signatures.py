"""What calling a function needs of it: parameters, results, and the type of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.enums import FunctionType, ParamDirection, Role
from ...ir.expr import ConstInt, Expr, GlobalVar, Var
from ...ir.node import NodeList
from ...ir.program import Function
from ...ir.stmt import ReturnStmt, ScopeStmt, flatten_to_stmts
from ...ir.types import ShapedType, TensorType, TupleType, Type, UnknownType
from ...ir.visitor import Rewriter


class Signature:
    """A function seen from its callers. Without annotation, ``results`` is None until the body is known."""

    __slots__ = ("name", "global_var", "params", "results", "declared", "func_type", "role")

    def __init__(
        self,
        name: str,
        global_var: GlobalVar,
        params: Sequence[tuple[Var, ParamDirection]],
        results: Sequence[Type] | None,
        func_type: FunctionType,
        role: Role | None = None,
    ) -> None:
        self.name = name
        self.global_var = global_var
        self.params = list(params)
        self.results = results
        self.declared = results
        self.func_type = func_type
        self.role = role

    @property
    def takes_device(self) -> bool:
        """Whether calls say which device runs the function: it orchestrates one."""
        orchestrates = self.role is Role.Orchestrator or self.func_type is FunctionType.Orchestration
        return orchestrates and all(p.name_hint != "device" for p, _ in self.params)

    @staticmethod
    def of_function(function: Function) -> Signature:
        """What callers know of a function that is parsed, or was built otherwise."""
        made = Signature(
            function.name,
            GlobalVar(function.name),
            function.directed_params(),
            list(function.return_types),
            function.func_type,
            function.role,
        )
        if not made.results:
            made.results = returned_types(function)
        return made


def returned_types(function: Function) -> list[Type]:
    """Types of what the last statement of the body returns, as callers see them: they know where their tensors are."""
    stmts = flatten_to_stmts(function.body)
    last = stmts[-1] if stmts else None
    while isinstance(last, ScopeStmt):
        stmts = flatten_to_stmts(last.body)
        last = stmts[-1] if stmts else None
    return [_anywhere(v.type) for v in last.value] if isinstance(last, ReturnStmt) else []


def _anywhere(made: Type) -> Type:
    if isinstance(made, TupleType):
        return TupleType([_anywhere(t) for t in made.types])
    return made.replace(memref=None) if isinstance(made, TensorType) and made.memref is not None else made


def deduce_call_type(signature: Signature, args: Sequence[Expr]) -> Type:
    """The type of a call: the declared results with the dimensions the arguments decide."""
    results = signature.results
    if not results:
        return UnknownType()
    made = substitute_types(results, signature, args)
    return made[0] if len(made) == 1 else TupleType(made)


def substitute_types(types: Sequence[Type], signature: Signature, args: Sequence[Expr]) -> list[Type]:
    """``types`` of the callee in terms of the caller's dimensions."""
    if not any(t.symbolic for t in types):
        return list(types)
    known: dict[Var, Expr] = {}
    for (param, _), arg in zip(signature.params, args):
        known.setdefault(param, arg)
        _match_types(param.type, arg.type, known)
    closed = {v: _Substitution(known).rewrite(e) for v, e in known.items()}
    mapping = _Substitution({v: e for v, e in closed.items() if e is not v})
    return [mapping.rewrite_type(t) for t in types]


def conflicting_binding(signature: Signature, args: Sequence[Expr]) -> tuple[str, int, int] | None:
    """A dimension of the callee that two arguments give different constant extents: its name and both."""
    known: dict[Var, int] = {}
    for (param, _), arg in zip(signature.params, args):
        if not isinstance(param.type, ShapedType) or not isinstance(arg.type, ShapedType):
            continue
        for formal, actual in zip(param.type.shape, arg.type.shape):
            if isinstance(formal, Var) and isinstance(actual, ConstInt):
                first = known.setdefault(formal, actual.value)
                if first != actual.value:
                    return formal.name_hint, first, actual.value
    return None


class _Substitution(Rewriter):
    """Replaces variables; `MemRef` bases belong to the callee and stay."""


def _match_types(formal: Type, actual: Type, known: dict[Var, Expr]) -> None:
    if isinstance(formal, ShapedType) and isinstance(actual, ShapedType):
        for a, b in zip(formal.shape, actual.shape):
            _match_dims(a, b, known)
        for part in ("tensor_view", "tile_view"):
            x, y = getattr(formal, part, None), getattr(actual, part, None)
            if x is not None and y is not None:
                for a, b in zip(x.valid_shape, y.valid_shape):
                    _match_dims(a, b, known)
    elif isinstance(formal, TupleType) and isinstance(actual, TupleType):
        for a, b in zip(formal.types, actual.types):
            _match_types(a, b, known)


def _match_dims(formal: Expr, actual: Expr, known: dict[Var, Expr]) -> None:
    """Bind the variables of ``formal`` so that it becomes ``actual``, as far as both have the same form."""
    found: dict[Var, Expr] = {}
    if _unify(formal, actual, found):
        for var, expr in found.items():
            if var not in known or (known[var] is var and expr is not var):
                known[var] = expr


def _unify(formal: Any, actual: Any, found: dict[Var, Expr]) -> bool:
    if isinstance(formal, Var):
        found.setdefault(formal, actual)
        return True
    if isinstance(formal, ConstInt):
        return isinstance(actual, ConstInt) and formal.value == actual.value
    if type(formal) is not type(actual):
        return False
    parts = [f.name for f in type(formal).fields if isinstance(getattr(formal, f.name), (Expr, NodeList))]
    return bool(parts) and all(_unify_part(getattr(formal, p), getattr(actual, p), found) for p in parts)


def _unify_part(formal: Any, actual: Any, found: dict[Var, Expr]) -> bool:
    if isinstance(formal, NodeList):
        return len(formal) == len(actual) and all(_unify(a, b, found) for a, b in zip(formal, actual))
    return _unify(formal, actual, found)
