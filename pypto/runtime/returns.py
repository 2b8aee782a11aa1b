"""Which parameter each result of a kernel is: kernels return tensors they wrote through a parameter."""

from __future__ import annotations

from ..errors import InternalError
from ..ir.expr import Call, Expr, IterArg, Var
from ..ir.program import Function
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, Stmt, WhileStmt, YieldStmt, flatten_to_stmts
from ..ops.registry import decl_of


def returned_params(function: Function) -> list[int]:
    """For each returned value, the index of the parameter whose buffer it is.

    Raises InternalError for a kernel that returns anything else.
    """
    roots: dict[Var, Var] = {p: p for p in function.params}
    found: list[int] = []
    index = {p: i for i, p in enumerate(function.params)}
    _collect(function.body, roots, lambda values: found.extend(_index(function, index, roots, v) for v in values))
    return found


def _index(function: Function, index: dict[Var, int], roots: dict[Var, Var], value: Expr) -> int:
    root = roots.get(value) if isinstance(value, Var) else None
    if root is None or root not in index:
        raise InternalError(f"kernel {function.name!r} returns a value that is not a parameter", value.span)
    return index[root]


def _collect(body: Stmt | None, roots: dict[Var, Var], on_return) -> None:
    for stmt in flatten_to_stmts(body):
        if isinstance(stmt, AssignStmt):
            root = _root(stmt.value, roots)
            if root is not None:
                roots[stmt.var] = root
        elif isinstance(stmt, (ForStmt, WhileStmt)):
            for arg, result in zip(stmt.iter_args, stmt.return_vars):
                _carry(arg, result, roots)
            _collect(stmt.body, roots, on_return)
        elif isinstance(stmt, IfStmt):
            _collect(stmt.then_body, roots, on_return)
            _collect(stmt.else_body, roots, on_return)
            last = flatten_to_stmts(stmt.then_body)[-1:]
            if last and isinstance(last[0], YieldStmt):
                for value, result in zip(last[0].values, stmt.return_vars):
                    root = _root(value, roots)
                    if root is not None:
                        roots[result] = root
        elif isinstance(stmt, ReturnStmt):
            on_return(stmt.values)


def _carry(arg: IterArg, result: Var, roots: dict[Var, Var]) -> None:
    root = _root(arg.init_value, roots)
    if root is not None:
        roots[arg] = roots[result] = root


def _root(value: Expr, roots: dict[Var, Var]) -> Var | None:
    """The parameter a value is the buffer of: through aliases and operators that write an argument in place."""
    if isinstance(value, Var):
        return roots.get(value)
    decl = decl_of(value)
    if decl is None or not isinstance(value, Call):
        return None
    for param, arg in zip(decl.args, value.args):
        if param.effect is not None and param.effect.value and type(arg.type) is type(value.type):
            return _root(arg, roots)
    return None
