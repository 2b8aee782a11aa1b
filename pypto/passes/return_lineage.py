"""Which parameter each result of a function is: functions hand back the tensors they wrote through a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from ..ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ..ir.program import Function, Program, summarize
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, ScopeStmt, Stmt, WhileStmt, YieldStmt, flatten_to_stmts
from ..ir.types import TensorType, TupleType
from ..ops.registry import ArgEffect, arg_effect, decl_of


def returned_params(function: Function) -> list[int | None]:
    """For each returned value, the index of the parameter whose buffer it is; None when it is no parameter's.

    Calls of other functions are not looked into; `ReturnLineage` does.
    """
    found = _returned.get(function)
    if found is None:
        found = _returned[function] = _traced(function, ReturnLineage({}))
    return found


_returned: WeakKeyDictionary[Function, list[int | None]] = WeakKeyDictionary()


class ReturnLineage:
    """`returned_params` of every function of a program, followed through the functions they call.

    Each function is traced once, on demand. What a cycle of calls returns is no parameter's.
    """

    def __init__(self, functions: Program | Mapping[str, Function]) -> None:
        if isinstance(functions, Program):
            functions = {f.name: f for f in functions.functions.values()}
        self._functions = functions
        self._known: dict[str, list[int | None]] = {}

    def of(self, name: str) -> list[int | None]:
        """For each value the function returns, the index of the parameter whose buffer it is."""
        found = self._known.get(name)
        if found is not None:
            return found
        function = self._functions.get(name)
        if function is None:
            return []
        self._known[name] = []
        calls = not summarize(function).callees.isdisjoint(self._functions)
        made = self._known[name] = _traced(function, self) if calls else returned_params(function)
        return made

    def returned_arg(self, call: Call | Submit, result: int) -> Expr | None:
        """The argument that result ``result`` of a called function is."""
        found = self.of(call.op.name)
        position = found[result] if result < len(found) else None
        return call.args[position] if position is not None and position < len(call.args) else None


def _traced(function: Function, lineage: ReturnLineage) -> list[int | None]:
    index = {p: i for i, p in enumerate(function.params)}
    tracer = _Tracer(function, lineage)
    tracer.block(function.body)
    return [index.get(root) if root is not None else None for root in tracer.returned]


def written_arg(call: Expr) -> Expr | None:
    """The tensor argument whose buffer an operator writes and returns, as a store does its target."""
    if not isinstance(call, Call) or call.op.decl is None or not isinstance(call.type, TensorType):
        return None
    for i, arg in enumerate(call.args):
        if isinstance(arg.type, TensorType) and arg_effect(call, i) is not ArgEffect.Read:
            return arg
    return None


def viewed_arg(call: Expr) -> Expr | None:
    """The tensor argument whose memory an operator's tensor result is a view of."""
    decl = decl_of(call)
    if decl is None or decl.inherits is None or not isinstance(call, Call) or not isinstance(call.type, TensorType):
        return None
    return call.args[decl.arg_index(decl.inherits)]


def origin_of(function: Function) -> dict[Var, Var]:
    """For each tensor, the parameter or the view that it is, written or not."""
    tracer = _Tracer(function, ReturnLineage({function.name: function}), views=True)
    tracer.block(function.body)
    return tracer.roots


class _Tracer:
    """Follows buffers through aliases, in-place operators, calls, loops and branches."""

    def __init__(self, function: Function, lineage: ReturnLineage, views: bool = False) -> None:
        self.roots: dict[Var, Var] = {p: p for p in function.params}
        self.returned: list[Var | None] = []
        self._lineage, self._views = lineage, views
        self._tuples: dict[Var, Expr] = {}
        self._flat = not any(isinstance(t, TupleType) for t in function.return_types)

    def block(self, body: Stmt | None) -> list[Expr]:
        """Trace a body; what it yields."""
        for stmt in flatten_to_stmts(body):
            if isinstance(stmt, AssignStmt):
                self._assign(stmt.var, stmt.value)
            elif isinstance(stmt, (ForStmt, WhileStmt)):
                self._loop(stmt)
            elif isinstance(stmt, IfStmt):
                self._branch(stmt)
            elif isinstance(stmt, ScopeStmt):
                yielded = self.block(stmt.body)
                if yielded:
                    return yielded
            elif isinstance(stmt, ReturnStmt):
                self._return(stmt)
            elif isinstance(stmt, YieldStmt):
                return list(stmt.values)
        return []

    def _assign(self, var: Var, value: Expr) -> None:
        if isinstance(value.type, TupleType):
            self._tuples[var] = self._tuples.get(value, value) if isinstance(value, Var) else value
        else:
            is_view = self._views and viewed_arg(value) is not None
            self._bind(var, var if is_view else self._root(value))

    def _return(self, stmt: ReturnStmt) -> None:
        """A tuple that stands for several declared results counts as its elements."""
        for value in stmt.values:
            if self._flat and isinstance(value.type, TupleType):
                self.returned.extend(self._element(value, i) for i in range(len(value.type.types)))
            else:
                self.returned.append(self._root(value))

    def _bind(self, var: Var, root: Var | None) -> None:
        if root is not None:
            self.roots[var] = root
        else:
            self.roots.pop(var, None)

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

    def _element(self, value: Expr, index: int) -> Var | None:
        """The root of an element of a tuple."""
        source = self._tuples.get(value) if isinstance(value, Var) else value
        if isinstance(source, MakeTuple):
            return self._root(source.elements[index])
        if isinstance(source, (Call, Submit)) and isinstance(source.op, GlobalVar):
            return self._root(self._lineage.returned_arg(source, index))
        return None

    def _root(self, value: Expr | None) -> Var | None:
        if isinstance(value, Var):
            return self.roots.get(value)
        if isinstance(value, TupleGetItemExpr):
            return self._element(value.tuple, value.index)
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            return self._root(self._lineage.returned_arg(value, 0)) if isinstance(value.type, TensorType) else None
        return self._root(written_arg(value)) if value is not None else None
