"""What the outlining passes share: what a region captures, what it leaves behind, what it does to its captures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import Any

from ..ir.enums import ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ..ir.functor import get_last_yield_stmt
from ..ir.node import IRNode
from ..ir.program import Function, Program
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..ir.types import TensorType, TupleType
from ..ir.visitor import Rewriter, Visitor, find_all
from ..ops.registry import ArgEffect, arg_effect
from .convert_to_ssa import restore_ssa
from .return_lineage import returned_params, written_arg

BOOKKEEPING = ("dump_vars", "arg_direction_overrides_vars")
"""Attributes that name tensors without touching them."""


class _Walk(Visitor):
    """Visits in evaluation order; bookkeeping attributes are left out."""

    def visit_mapping(self, mapping: Any) -> None:
        if mapping:
            super().visit_mapping({k: v for k, v in mapping.items() if k not in BOOKKEEPING})


class Uses(_Walk):
    """Counts the uses of variables, and what is defined, in order."""

    def __init__(self, root: IRNode) -> None:
        self.count: Counter[Var] = Counter()
        self.defined: dict[Var, None] = {}
        self.free: dict[Var, None] = {}
        """What is read before any definition, in order: the live-in variables."""
        self.redefined = False
        self.visit(root)

    def visit_var(self, op: Var) -> None:
        self.count[op] += 1
        if op not in self.defined:
            self.free[op] = None

    def define(self, var: Any) -> None:
        super().define(var)
        if var in self.defined or var in self.free:
            self.redefined = True
        self.defined[var] = None


def holds_call(expr: Expr) -> bool:
    """Whether evaluating ``expr`` calls anything."""
    return bool(find_all(expr, (Call, Submit)))


class _BindStores(Rewriter):
    """Names the result of stores that stand alone: ``store(t, at, out)`` becomes ``out = store(t, at, out)``."""

    def __init__(self, targets: Container[Var] | None = None) -> None:
        super().__init__()
        self._targets = targets

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        target = written_arg(op.expr)
        if not isinstance(target, Var) or (self._targets is not None and target not in self._targets):
            return op
        return AssignStmt(target, op.expr, op.span, op.leading_comments)


def with_stores_bound(function: Function, *regions: type[ScopeStmt]) -> Function:
    """``function`` in SSA form, the stores in its outermost ``regions`` bound to variables; itself when it is so."""
    bound = _BindInRegions(regions).rewrite(function)
    return restore_ssa(bound) if bound is not function or Uses(function).redefined else function


def with_stores_to_bound(function: Function, targets: Container[Var]) -> Function:
    """``function`` in SSA form, stores to ``targets`` bound to variables; itself when there are none."""
    bound = _BindStores(targets).rewrite(function)
    return restore_ssa(bound) if bound is not function else function


class _BindInRegions(Rewriter):
    def __init__(self, regions: tuple[type[ScopeStmt], ...]) -> None:
        super().__init__()
        self._regions = regions

    def visit_scope_stmt(self, op: ScopeStmt) -> Stmt:
        return op.replace(body=_BindStores().rewrite(op.body)) if isinstance(op, self._regions) else self.generic(op)


class Buffers(_Walk):
    """Which captured tensor each tensor variable of a region is, and how the region accesses it.

    A store's result is its target; a loop-carried tensor is its initial value as long as every iteration yields
    that same tensor; a branch's result is the tensor both sides yield.
    """

    def __init__(self, body: Stmt, captured: list[Var], program: Program) -> None:
        self.root: dict[Var, Var] = {v: v for v in captured}
        self.views: dict[Var, Var] = {}
        """Variables that are part of a captured tensor."""
        self.read: set[Var] = set()
        self.written: set[Var] = set()
        self._program = program
        self._results: dict[Var, Call | Submit] = {}
        """Calls with several results, by the variable that holds them."""
        self._returned: dict[str, list[int | None]] = {}
        self.visit(body)

    def direction(self, var: Var) -> ParamDirection:
        """How the region uses captured ``var``: Out when it never reads what was there."""
        if var not in self.written:
            return ParamDirection.In
        return ParamDirection.InOut if var in self.read else ParamDirection.Out

    def _root(self, expr: Expr) -> Var | None:
        if isinstance(expr, Var):
            return self.root.get(expr)
        arg = self._result_arg(expr)
        return self._root(arg) if arg is not None else None

    def visit_var(self, op: Var) -> None:
        root = self.root.get(op) or self.views.get(op)
        if root is not None:
            self.read.add(root)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, Var):
            if self._root(value) is not None:
                self.root[op.var] = self.root[value]
            elif value in self.views:
                self.views[op.var] = self.views[value]
            return
        self.visit(value)
        if isinstance(value, (Call, Submit)) and isinstance(value.type, TupleType):
            self._results[op.var] = value
            return
        if isinstance(value, TupleGetItemExpr):
            self._bind_member(op.var, value)
            return
        arg = self._result_arg(value)
        if arg is not None:
            root = self._root(arg)
            if root is not None:
                self.root[op.var] = root
            elif isinstance(arg, Var) and arg in self.views:
                self.views[op.var] = self.views[arg]
        elif isinstance(value, Call) and value.op.decl is not None and value.op.decl.inherits is not None:
            source = value.args[value.op.decl.arg_index(value.op.decl.inherits)]
            root = self._root(source) or (self.views.get(source) if isinstance(source, Var) else None)
            if root is not None and isinstance(value.type, TensorType):
                self.views[op.var] = root

    def _result_arg(self, value: Expr) -> Expr | None:
        """The argument that a call's one result is."""
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            return self._returned_arg(value, 0)
        return written_arg(value)

    def _bind_member(self, var: Var, member: TupleGetItemExpr) -> None:
        call = self._results.get(member.tuple) if isinstance(member.tuple, Var) else None
        arg = self._returned_arg(call, member.index) if call is not None else None
        root = self._root(arg) if arg is not None else None
        if root is not None:
            self.root[var] = root

    def _returned_arg(self, call: Call | Submit, index: int) -> Expr | None:
        """The argument that result ``index`` of a called function is."""
        name = call.op.name
        if name not in self._returned:
            callee = self._program.get_function(name)
            self._returned[name] = returned_params(callee) if callee is not None else []
        found = self._returned[name]
        position = found[index] if index < len(found) else None
        return call.args[position] if position is not None else None

    def visit_call(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar):
            self._visit_invocation(op)
            return
        for i, arg in enumerate(op.args):
            self._access(arg, arg_effect(op, i))
        self.visit_mapping(op.kwargs)
        self.visit_mapping(op.attrs)

    def visit_submit(self, op: Submit) -> None:
        self._visit_invocation(op)
        for dep in op.deps:
            self.visit(dep)
        if op.core_num is not None:
            self.visit(op.core_num)

    def _visit_invocation(self, op: Call | Submit) -> None:
        callee = self._program.get_function(op.op.name)
        directions = callee.param_directions if callee is not None else ()
        for i, arg in enumerate(op.args):
            direction = directions[i] if i < len(directions) else ParamDirection.InOut
            self._access(arg, _EFFECT_OF[direction])
        self.visit_mapping(op.kwargs)
        self.visit_mapping(op.attrs)

    def _access(self, arg: Expr, effect: ArgEffect) -> None:
        root = self._root(arg)
        part = self.views.get(arg) if isinstance(arg, Var) else None
        touched = root if root is not None else part
        if touched is None or not isinstance(arg, Var):
            self.visit(arg)
        if touched is None:
            return
        if effect is not ArgEffect.Read:
            self.written.add(touched)
        if effect is not ArgEffect.Write:
            self.read.add(touched)

    def visit_yield_stmt(self, op: YieldStmt) -> None:
        """Handing a tensor on reads nothing of it."""
        for value in op.values:
            if not isinstance(value, Var):
                self.visit(value)

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        for value in op.value:
            if not isinstance(value, Var):
                self.visit(value)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit(op.condition)
        self.visit(op.then_body)
        if op.else_body is None:
            return
        self.visit(op.else_body)
        for var, here, there in zip(op.return_vars, yielded(op.then_body), yielded(op.else_body)):
            root = self._root(here)
            if root is not None and root is self._root(there):
                self.root[var] = root
            else:
                self._left_behind(here)
                self._left_behind(there)

    def visit_for_stmt(self, op: ForStmt) -> None:
        for bound in (op.start, op.stop, op.step):
            self.visit(bound)
        self.visit_mapping(op.attrs)
        self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> None:
        for arg in op.iter_args:
            root = self._root(arg.init_value)
            if root is not None:
                self.root[arg] = root
            else:
                self.visit(arg.init_value)
        if isinstance(op, WhileStmt):
            self.visit(op.condition)
        self.visit(op.body)
        for arg, value, var in zip(op.iter_args, yielded(op.body), op.return_vars):
            root = self.root.get(arg)
            if root is not None and self._root(value) is root:
                self.root[var] = root
            else:
                self._left_behind(arg)
                self._left_behind(value)

    def _left_behind(self, value: Expr) -> None:
        """A captured tensor that leaves as another variable: its contents count as read."""
        root = self._root(value)
        if root is not None:
            self.read.add(root)


_EFFECT_OF = {
    ParamDirection.In: ArgEffect.Read,
    ParamDirection.Out: ArgEffect.Write,
    ParamDirection.InOut: ArgEffect.ReadWrite,
}


def yielded(body: Stmt | None) -> list[Expr]:
    """What a body yields, regions looked through."""
    last = get_last_yield_stmt(body)
    return list(last.values) if last is not None else []
