"""Simplify: fold arithmetic, spread scalar constants, drop what can never run or matter.

Expressions and the extents inside types are folded with what is known of their variables: a loop variable's range,
a branch's condition, the range of a scalar assigned once. A scalar that is a constant at the top of the function
replaces its uses. A branch whose condition is decided goes, a sequential loop of no or one iteration is opened, and
scalars and branch results nobody reads are dropped. Calls always stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..arith import Analyzer
from ..arith.bounds import EVERYTHING, loop_bound
from ..dtypes import DataType
from ..ir.enums import ForKind
from ..ir.expr import (
    BinaryExpr,
    Call,
    Expr,
    Not,
    Submit,
    UnaryExpr,
    Var,
    const_value,
)
from ..ir.node import NodeList
from ..ir.program import Function, summarize
from ..ir.scalar import scalar_const
from ..ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    last_yield,
    seq,
)
from ..ir.types import ScalarType, TensorType, TileType, Type
from ..ir.visitor import Rewriter, Visitor, canonical_type, splice
from ..ops.registry import rebind
from .base import Pass, function_pass
from .bodies import BodyRewriter, keep_yields
from .hoisting import scope_fields


def simplify() -> Pass:
    """The pass; see the module."""
    return function_pass("Simplify", _simplify)


def _simplify(function: Function) -> Function:
    found = summarize(function)
    if "tile.alloc" in found.ops and found.kinds.isdisjoint(_DECIDED):
        return function  # simplified before it was lowered, and lowering leaves nothing in straight-line code
    return _drop_dead(_Simplifier(function).rewrite(function))


_DECIDED = frozenset({ForStmt, IfStmt, WhileStmt})


class _Facts(Visitor):
    """Variables assigned more than once, and whether a body can be left early."""

    def __init__(self, root: Any) -> None:
        self.definitions: Counter[Var] = Counter()
        self.leaves = False
        self.calls = False
        self.visit(root)

    def define(self, var: Any) -> None:
        super().define(var)
        self.definitions[var] += 1

    def visit_break_stmt(self, op: BreakStmt | ContinueStmt) -> None:
        self.leaves = True

    visit_continue_stmt = visit_break_stmt

    def visit_call(self, op: Call | Submit) -> None:
        self.calls = True
        self.generic(op)

    visit_submit = visit_call


class _Mentions(Visitor):
    """Variables in an expression or type."""

    def __init__(self) -> None:
        self.found: list[Var] = []

    def visit_var(self, op: Var) -> None:
        self.found.append(op)

    def visit_type(self, type: Type) -> None:
        if type.symbolic:
            type._visit_children(self)


def _mentioned(expr: Expr) -> list[Var]:
    mentions = _Mentions()
    mentions.visit(expr)
    return mentions.found


class _Simplifier(Rewriter):
    """Rewrites one function. ``vars`` holds constants, and what opened loops and branches returned."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._analyzer = Analyzer()
        self._context_free = Analyzer()
        self._definitions = _Facts(function).definitions
        self._depth = 0
        self._in_scalar = False
        self._in_type = False
        self._types: dict[int, tuple[Type, Type]] = {}
        for var, count in self._definitions.items():
            if count > 1:
                self._may_be_negative(var)

    def _may_be_negative(self, var: Var) -> None:
        """Take back what is assumed of an INDEX variable: this one is computed, it is no size or position given."""
        if isinstance(var.type, ScalarType) and var.type.dtype is DataType.INDEX:
            self._analyzer.bind_bound(var, EVERYTHING)
            self._context_free.bind_bound(var, EVERYTHING)

    def define(self, var: Any) -> Any:
        made = super().define(var)
        if self._definitions[var] > 1 and made is not var and isinstance(made, Var):
            self._may_be_negative(made)
        return made

    def _define_carried(self, var: Any) -> Any:
        made = self.define(var)
        self._may_be_negative(made)
        return made

    def _stable(self, expr: Expr) -> bool:
        """Whether an expression means the same wherever its variables are visible."""
        return all(self._definitions[v] <= 1 for v in _mentioned(expr))

    def _stands_for(self, value: Expr, var: Expr) -> bool:
        """Whether ``value`` may be read wherever ``var`` is."""
        return self._stable(value) and _is_placed_as(value, var)

    # Expressions and types

    def visit_binary_expr(self, op: BinaryExpr | UnaryExpr) -> Expr:
        if self._in_scalar:
            return self.generic(op)
        self._in_scalar = True
        made = self.generic(op)
        self._in_scalar = False
        analyzer = self._context_free if self._in_type else self._analyzer
        folded = analyzer.simplify(made)
        return op if _same(folded, op) else folded

    visit_unary_expr = visit_binary_expr

    def visit_call(self, op: Call | Submit) -> Any:
        outer, self._in_scalar = self._in_scalar, False
        made = self.generic(op)
        self._in_scalar = outer
        decl = op.op.decl
        if made is not op and op.type.symbolic and decl is not None and _is_inferred(op):
            made = made.replace(type=decl.infer(rebind(made)))
        return made

    visit_submit = visit_call

    def rewrite_type(self, type: Type) -> Type:
        """A type's extents, folded without the facts of the place, so that one type stays one type."""
        if not type.symbolic:
            return type
        known = self._types.get(id(type))
        if known is None or known[0] is not type:
            state, self._in_scalar, self._in_type = (self._in_scalar, self._in_type), False, True
            made = type._rewrite_children(self)
            self._in_scalar, self._in_type = state
            known = self._types[id(type)] = (type, made if made is type else canonical_type(made))
        return known[1]

    # Statements

    def visit_function(self, op: Function) -> Function:
        params = self.rewrite_list(op.params, self.define)
        body = self._body(op.body, 0)
        returns = self.rewrite_list(op.return_types, self.rewrite_type)
        return op.replace(params=params, body=body, return_types=returns)

    def _body(self, body: Stmt, deeper: int = 1) -> Stmt:
        self._depth += deeper
        made = self.rewrite(body)
        self._depth -= deeper
        return seq(splice(made), body.span) if isinstance(made, list) else made

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = self.rewrite(op.value)
        if isinstance(value, Call) and _is_identity_view(value):
            value = value.args[0]
        var = self._assigned(op, value)
        made = op.replace(var=var, value=value)
        if isinstance(var.type, ScalarType) and self._definitions[op.var] <= 1:
            self._learn(op.var, var, value)
        return made

    def _assigned(self, op: AssignStmt, value: Expr) -> Var:
        """The variable; its type follows the value's where it did before."""
        old, new = op.value.type, value.type
        if op.var in self.vars:
            return self.define(op.var)
        if old is not new and new.symbolic and type(new) is type(op.var.type) and op.var.type == old:
            made = Var(op.var.name_hint, new, op.var.span)
            self.vars[op.var] = made
            return made
        return self.define(op.var)

    def _learn(self, source: Var, var: Var, value: Expr) -> None:
        constant = const_value(value)
        dtype = var.dtype
        if constant is not None and self._depth == 0:
            same = isinstance(value.type, ScalarType) and value.type.dtype is dtype
            self.vars[source] = value if same else scalar_const(constant, dtype, value.span)
        if not dtype.is_int() or not self._stable(value):
            return
        if isinstance(value.type, ScalarType) and value.type.dtype.is_int():
            a = self._analyzer
            a.bind_bound(var, a.const_int_bound(value), a.modular_set(value))

    def visit_scope_stmt(self, op: ScopeStmt) -> Stmt:
        return op.replace(**scope_fields(self, op), body=self._body(op.body, 0))

    def visit_if_stmt(self, op: IfStmt) -> Any:
        condition = self.rewrite(op.condition)
        decided = self._decide(condition)
        if decided is not None:
            opened = self._open(op.then_body if decided else op.else_body, op.return_vars)
            if opened is not None:
                return opened
        with self._assuming(condition):
            then_body = self._body(op.then_body)
        else_body = op.else_body
        if else_body is not None:
            with self._assuming(Not(condition, DataType.BOOL, condition.span)):
                else_body = self._body(else_body)
        results = self.rewrite_list(op.return_vars, self._define_carried)
        return op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)

    def _decide(self, condition: Expr) -> bool | None:
        value = const_value(condition)
        if value is not None:
            return bool(value)
        if self._analyzer.can_prove(condition):
            return True
        if self._analyzer.can_prove(Not(condition, DataType.BOOL, condition.span)):
            return False
        return None

    @contextmanager
    def _assuming(self, condition: Expr) -> Iterator[None]:
        if not self._stable(condition):
            yield
            return
        with self._analyzer.constraint_context(condition):
            yield

    def _open(self, body: Stmt | None, results: NodeList) -> list[Stmt] | None:
        """A body that runs exactly once, without its braces; None when its results cannot be handed on."""
        if not results:
            return flatten_to_stmts(self._body(body, 0)) if body is not None else []
        handed_on = last_yield(body)
        if handed_on is None or not all(map(self._stands_for, handed_on.values, results)):
            return None
        stmts = flatten_to_stmts(self._body(body, 0)) if body is not None else []
        tail = stmts.pop()
        if not isinstance(tail, YieldStmt):
            return None
        self.vars.update(zip(results, tail.values))
        return stmts

    def visit_for_stmt(self, op: ForStmt) -> Any:
        start, stop, step = self.rewrite(op.start), self.rewrite(op.stop), self.rewrite(op.step)
        trips = self._trips(op, start, stop, step)
        if trips == 0:
            inits = [self.rewrite(a.init_value) for a in op.iter_args]
            placed = all(_is_placed_as(a.init_value, r) for a, r in zip(op.iter_args, op.return_vars))
            if placed and all(map(self._stable, inits)):
                self.vars.update(zip(op.return_vars, inits))
                return []
        if trips == 1:
            opened = self._open_loop(op, start)
            if opened is not None:
                return opened
        iter_args = self.rewrite_list(op.iter_args, self._define_carried)
        attrs = self.rewrite_mapping(op.attrs) if op.attrs else op.attrs
        loop_var = self.define(op.loop_var)
        with self._in_range(loop_var, start, stop, step):
            body = self._body(op.body)
        results = self.rewrite_list(op.return_vars, self._define_carried)
        return op.replace(
            start=start, stop=stop, step=step, iter_args=iter_args, attrs=attrs, loop_var=loop_var, body=body,
            return_vars=results,
        )  # fmt: skip

    def _trips(self, op: ForStmt, start: Expr, stop: Expr, step: Expr) -> int | None:
        """0 or 1 when a loop whose order nobody else depends on certainly runs that often."""
        if op.kind is not ForKind.Sequential or op.attrs:
            return None
        first, last, by = const_value(start), const_value(stop), const_value(step)
        if first is None or last is None or by is None or by <= 0:
            return None
        if last <= first:
            return 0
        return 1 if last <= first + by and not _Facts(op.body).leaves else None

    def _open_loop(self, op: ForStmt, start: Expr) -> list[Stmt] | None:
        inits = [self.rewrite(a.init_value) for a in op.iter_args]
        if not all(map(self._stable, inits)) or self._definitions[op.loop_var] > 1:
            return None
        if not all(_is_placed_as(a.init_value, a) for a in op.iter_args):
            return None
        dtype = op.loop_var.dtype
        value = const_value(start)
        first = start if start.dtype is dtype or value is None else scalar_const(value, dtype, start.span)
        known = dict(self.vars)
        self.vars.update(zip(op.iter_args, inits))
        self.vars[op.loop_var] = first
        self._types.clear()
        opened = self._open(op.body, op.return_vars)
        if opened is None:
            self.vars = known
            self._types.clear()
        return opened

    @contextmanager
    def _in_range(self, var: Var, start: Expr, stop: Expr, step: Expr) -> Iterator[None]:
        first, last, by = const_value(start), const_value(stop), const_value(step)
        if isinstance(first, int) and isinstance(last, int) and isinstance(by, int) and by > 0 and first < last:
            self._analyzer.bind(var, first, last)
        elif self._definitions[var] <= 1 and self._stable(start) and self._stable(stop):
            self._analyzer.bind_bound(var, loop_bound(self._analyzer.const_int_bound, start, stop, step))
        yield
        self._analyzer.unbind(var)
        self._may_be_negative(var)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        iter_args = self.rewrite_list(op.iter_args, self._define_carried)
        condition = self.rewrite(op.condition)
        body = self._body(op.body)
        results = self.rewrite_list(op.return_vars, self._define_carried)
        return op.replace(iter_args=iter_args, condition=condition, body=body, return_vars=results)


def _is_inferred(call: Any) -> bool:
    """Whether a call's type is what its operands say, and no pass has settled more."""
    return call.type == call.op.decl.infer(rebind(call))


def _is_placed_as(value: Expr, var: Expr) -> bool:
    """Whether a tile is where another is, valid in the same region, once they have places."""
    type = var.type
    return not isinstance(type, TileType) or type.memref is None or type == value.type


def _same(a: Expr, b: Expr) -> bool:
    from ..ir.structural import structural_equal

    return structural_equal(a, b)


def _is_identity_view(call: Call) -> bool:
    """A view that only restates its operand's layout."""
    if call.op.name != "tensor.view" or len(call.args) != 1 or set(call.kwargs) - {"layout"}:
        return False
    source, result = call.args[0].type, call.type
    if not isinstance(source, TensorType) or not isinstance(result, TensorType):
        return False
    return source.layout is result.layout and len(source.shape) == len(result.shape)


def _drop_dead(function: Function) -> Function:
    """Without scalars and branch results that nothing reads, chains of them included."""
    dead = _Dead(function)
    return dead.strip(function) if dead.assigned or dead.results else function


class _Dead(_Mentions):
    """Finds what nothing reads."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._scalars: dict[Var, list[AssignStmt]] = {}
        self._branches: dict[Var, tuple[IfStmt, int, list[Var]]] = {}
        """Results of branches: which of the results it is, and what either side reads for it."""
        self.assigned: set[Var] = set()
        self.results: dict[IfStmt, set[int]] = {}
        self._in_expr: dict[Var, list[Var]] = {}
        self.visit(function)
        for type in function.return_types:
            self.visit_type(type)
        self._uses = Counter(self.found)
        for vars in self._in_expr.values():
            self._uses.update(vars)
        self._sweep()

    def define(self, var: Any) -> None:
        super().define(var)
        self.visit_type(var.type)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        var = op.var
        if isinstance(var.type, ScalarType) and not _Facts(op.value).calls:
            self._scalars.setdefault(var, []).append(op)
            self._in_expr.setdefault(var, []).extend(_mentioned(op.value))
        else:
            self.generic(op)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.generic(op)
        here, there = last_yield(op.then_body), last_yield(op.else_body)
        if here is not None and there is not None and len(here.values) == len(there.values) == len(op.return_vars):
            for i, var in enumerate(op.return_vars):
                self._branches[var] = (op, i, [*_mentioned(here.values[i]), *_mentioned(there.values[i])])

    def _sweep(self) -> None:
        pending = [v for v in (*self._scalars, *self._branches) if not self._uses[v]]
        while pending:
            var = pending.pop()
            if var in self._scalars:
                self.assigned.add(var)
                freed = self._in_expr[var]
            else:
                op, i, freed = self._branches[var]
                self.results.setdefault(op, set()).add(i)
            for v in freed:
                self._uses[v] -= 1
                if not self._uses[v] and (v in self._scalars or v in self._branches):
                    pending.append(v)

    def strip(self, function: Function) -> Function:
        return _Strip(self.assigned, self.results).rewrite(function)


class _Strip(BodyRewriter):
    """Removes dead assignments and branch results."""

    def __init__(self, assigned: set[Var], results: dict[IfStmt, set[int]]) -> None:
        super().__init__()
        self._assigned, self._results = assigned, results

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        return [] if op.var in self._assigned and isinstance(op.var.type, ScalarType) else op

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        then_body, else_body, results = self.body(op.then_body), self.body(op.else_body), op.return_vars
        dead = self._results.get(op)
        if dead:
            kept = [i for i in range(len(results)) if i not in dead]
            results = NodeList(results[i] for i in kept)
            then_body, else_body = keep_yields(then_body, kept), keep_yields(else_body, kept)
        if else_body is not None and dead and not results and not flatten_to_stmts(else_body):
            else_body = None
        return op.replace(then_body=then_body, else_body=else_body, return_vars=results)
