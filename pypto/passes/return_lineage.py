"""Which parameter each result of a function is: functions hand back the tensors they wrote through a parameter."""

from __future__ import annotations

from ..ir.expr import Call, Expr, Var
from ..ir.program import Function
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, ScopeStmt, Stmt, WhileStmt, YieldStmt, flatten_to_stmts
from ..ops.registry import decl_of


def returned_params(function: Function) -> list[int | None]:
    """For each returned value, the index of the parameter whose buffer it is; None when it is no parameter's."""
    index = {p: i for i, p in enumerate(function.params)}
    tracer = _Tracer(function)
    tracer.block(function.body)
    return [index.get(root) if root is not None else None for root in tracer.returned]


class _Tracer:
    """Follows buffers through aliases, in-place operators, loops and branches."""

    def __init__(self, function: Function) -> None:
        self.roots: dict[Var, Var] = {p: p for p in function.params}
        self.returned: list[Var | None] = []

    def block(self, body: Stmt | None) -> list[Expr]:
        """Trace a body; what it yields."""
        for stmt in flatten_to_stmts(body):
            if isinstance(stmt, AssignStmt):
                self._bind(stmt.var, self._root(stmt.value))
            elif isinstance(stmt, (ForStmt, WhileStmt)):
                self._loop(stmt)
            elif isinstance(stmt, IfStmt):
                self._branch(stmt)
            elif isinstance(stmt, ScopeStmt):
                self.block(stmt.body)
            elif isinstance(stmt, ReturnStmt):
                self.returned.extend(self._root(v) for v in stmt.values)
            elif isinstance(stmt, YieldStmt):
                return list(stmt.values)
        return []

    def _bind(self, var: Var, root: Var | None) -> None:
        if root is not None:
            self.roots[var] = root

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        for arg in stmt.iter_args:
            self._bind(arg, self._root(arg.init_value))
        yielded = self.block(stmt.body)
        for arg, value, result in zip(stmt.iter_args, yielded, stmt.return_vars):
            self._bind(result, self._same(arg, value))

    def _branch(self, stmt: IfStmt) -> None:
        here, there = self.block(stmt.then_body), self.block(stmt.else_body)
        for a, b, result in zip(here, there, stmt.return_vars):
            self._bind(result, self._same(a, b))

    def _same(self, a: Expr, b: Expr) -> Var | None:
        root = self._root(a)
        return root if root is not None and root is self._root(b) else None

    def _root(self, value: Expr) -> Var | None:
        if isinstance(value, Var):
            return self.roots.get(value)
        decl = decl_of(value)
        if decl is None or not isinstance(value, Call):
            return None
        for param, arg in zip(decl.args, value.args):
            if param.effect is not None and param.effect.value and type(arg.type) is type(value.type):
                return self._root(arg)
        return None
