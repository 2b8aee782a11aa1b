"""NormalizeReturnOrder: kernels return the parameters they wrote, in the order of the parameters.

What a kernel, Group or Spmd function returns that is the buffer of a parameter becomes the parameter itself, and a
tuple forwarded from another call becomes its elements. A kernel that returns all its Out and InOut parameters returns
them first and in order; callers pick the elements of its result by their new positions. A result that some caller
hands on as a whole keeps its order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir.enums import ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ..ir.node import NodeList, updated
from ..ir.program import INCORE_TYPES, Function, Program
from ..ir.stmt import AssignStmt, ReturnStmt, Stmt
from ..ir.types import TensorType, TupleType, Type
from ..ir.visitor import Rewriter, Visitor
from .base import P, Pass, program_pass
from .bodies import BodyRewriter
from .return_lineage import ReturnLineage
from .wrapper_directions import WRAPPERS

Order = list[int]
"""For each new position, the old one."""


def normalize_return_order() -> Pass:
    """The pass; see the module."""
    return program_pass(
        "NormalizeReturnOrder",
        _normalize,
        requires={P.SplitIncoreOrch, P.IncoreTileOps},
        produces={P.ReturnParamsExplicit},
        only=INCORE_TYPES | WRAPPERS,
    )


def has_explicit_returns(function: Function) -> bool:
    """Whether the pass makes what ``function`` returns explicit."""
    return function.is_incore or function.func_type in WRAPPERS


def _normalize(program: Program) -> Program:
    lineage = ReturnLineage(program)
    program = program.map_functions(lambda f: _explicit(f, lineage))
    orders = _orders(program)
    if not orders:
        return program

    def change(function: Function) -> Function:
        order = orders.get(function.name)
        if order is not None:
            function = _Reordered(order).rewrite(function)
            types = NodeList(function.return_types[i] for i in order)
            function = function.replace(return_types=types)
        return _Callers(orders).rewrite(function)

    return program.map_functions(change)


def _explicit(function: Function, lineage: ReturnLineage) -> Function:
    if not has_explicit_returns(function):
        return function
    params = lineage.of(function.name)
    return _Explicit(function, params).rewrite(function) if any(p is not None for p in params) else function


class _Explicit(BodyRewriter):
    """Names parameters in the return statement."""

    def __init__(self, function: Function, params: list[int | None]) -> None:
        super().__init__()
        self._function, self._params = function, params

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        values = list(op.values)
        known, declared = self._params, self._function.return_types
        if len(values) == 1 and len(known) == len(declared) and isinstance(values[0].type, TupleType):
            if isinstance(declared[0], TupleType) or None in known:
                return op
            values *= len(known)
        if len(values) != len(known):
            return op
        params = self._function.params
        made = [value if i is None else params[i] for value, i in zip(values, known)]
        return op.replace(value=updated(op.value, made))


def _orders(program: Program) -> dict[str, Order]:
    """The new order of the results of every function that needs one."""
    found: dict[str, Order] = {}
    for function in program.functions.values():
        order = _order(function) if function.is_incore and len(function.return_types) > 1 else None
        if order is not None:
            found[function.name] = order
    if found:
        whole = _WholeUses()
        whole.visit(program)
        for name in whole.callees:
            found.pop(name, None)
    return found


def _order(function: Function) -> Order | None:
    """The parameters returned, first and in order; None when that is so, or when one is missing or returned twice."""
    returned = _Returned()
    returned.visit(function.body)
    if len(returned.stmts) != 1:
        return None
    values = list(returned.stmts[0].values)
    outs = [p for p, d in function.directed_params() if d is not ParamDirection.In and isinstance(p.type, TensorType)]
    place = {v: i for i, v in enumerate(values) if isinstance(v, Var)}
    if not outs or len(place) != len(values) or not all(p in place for p in outs):
        return None
    order = [place[p] for p in outs]
    first = set(order)
    order += [i for i in range(len(values)) if i not in first]
    return None if order == sorted(order) else order


class _Returned(Visitor):
    def __init__(self) -> None:
        self.stmts: list[ReturnStmt] = []

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        self.stmts.append(op)


class _WholeUses(Visitor):
    """The functions whose result is used otherwise than element by element."""

    def __init__(self) -> None:
        self.callees: set[str] = set()
        self._results: dict[Var, str] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, (Call, Submit)) and isinstance(value.op, GlobalVar):
            self._results[op.var] = value.op.name
            self.generic(value)
        else:
            self.visit(value)

    def visit_tuple_get_item_expr(self, op: TupleGetItemExpr) -> None:
        if not isinstance(op.tuple, Var):
            self.visit(op.tuple)

    def visit_var(self, op: Var) -> None:
        callee = self._results.get(op)
        if callee is not None:
            self.callees.add(callee)

    def visit_call(self, op: Call | Submit) -> None:
        """A call that stands inside an expression hands its result on as a whole."""
        if isinstance(op.op, GlobalVar):
            self.callees.add(op.op.name)
        self.generic(op)

    visit_submit = visit_call

    def visit_eval_stmt(self, op: Any) -> None:
        value = op.expr
        self.generic(value) if isinstance(value, (Call, Submit)) else self.visit(value)


class _Reordered(BodyRewriter):
    def __init__(self, order: Order) -> None:
        super().__init__()
        self._order = order

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        return op.replace(value=NodeList(op.values[i] for i in self._order))


class _Callers(Rewriter):
    """Moves the elements of reordered results."""

    def __init__(self, orders: dict[str, Order]) -> None:
        super().__init__()
        self._orders = orders
        self._moved: dict[Var, Order] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        order = self._order_of(op.value)
        value = self.rewrite(op.value)
        var = op.var
        if order is not None:
            if value.type is not var.type:
                var = self.vars[op.var] = Var(var.name_hint, value.type, var.span)
            self._moved[op.var] = order
        return op.replace(value=value, var=var)

    def _order_of(self, value: Expr) -> Order | None:
        if not isinstance(value, (Call, Submit)) or not isinstance(value.op, GlobalVar):
            return None
        return self._orders.get(value.op.name)

    def visit_call(self, op: Call | Submit) -> Expr:
        made = self.generic(op)
        order = self._order_of(op)
        return made if order is None else made.replace(type=_permuted(op.type, order))

    visit_submit = visit_call

    def visit_tuple_get_item_expr(self, op: TupleGetItemExpr) -> Expr:
        order = self._moved.get(op.tuple) if isinstance(op.tuple, Var) else None
        made = self.rewrite(op.tuple)
        index = order.index(op.index) if order is not None and op.index < len(order) else op.index
        return op if made is op.tuple and index == op.index else TupleGetItemExpr(made, index, op.span)


def _permuted(type: Type, order: Iterable[int]) -> Type:
    """The type of a result in its new order; what follows the results, a task's id, stays."""
    if not isinstance(type, TupleType):
        return type
    moved = [type.types[i] for i in order]
    moved += type.types[len(moved) :]
    return type if list(moved) == list(type.types) else TupleType(moved)
