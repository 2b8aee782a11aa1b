"""`IRVisitor` and `IRMutator`: traversal for user code. Override ``visit_<kind>`` and call ``super()`` to descend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import expr as _expr, stmt as _stmt
from .expr import BinaryExpr, Expr, IterArg, UnaryExpr, Var
from .memref import MemRef, WindowBuffer
from .node import IRNode
from .program import Function
from .stmt import ScopeStmt, SeqStmts, Stmt, YieldStmt, flatten_to_stmts
from .types import Type
from .visitor import Rewriter, Visitor, substitute

_GROUPED = (BinaryExpr, UnaryExpr, Var)


class IRVisitor(Visitor):
    """Reads a program. ``visit_binary_expr`` and ``visit_unary_expr`` stand for all scalar operators."""

    def visit_expr(self, op: Expr) -> None:
        self.visit(op)

    def visit_stmt(self, op: Stmt) -> None:
        self.visit(op)


class IRMutator(Rewriter):
    """Rewrites a program copy-on-write: what no override changes stays the same object."""

    def visit_expr(self, op: Expr) -> Any:
        return self.rewrite(op)

    def visit_stmt(self, op: Stmt) -> Any:
        return self.rewrite(op)


def _kinds() -> Iterable[str]:
    classes = [c for module in (_expr, _stmt) for c in vars(module).values() if isinstance(c, type)]
    yield from (c.node_kind for c in (*classes, Function) if issubclass(c, (Expr, Stmt, Function)) and
                not issubclass(c, _GROUPED) and "fields" in c.__dict__)  # fmt: skip
    yield from ("binary_expr", "unary_expr")


for _kind in _kinds():
    for _base in (IRVisitor, IRMutator):
        if not hasattr(_base, f"visit_{_kind}"):
            setattr(_base, f"visit_{_kind}", _base.generic)


def collect_def_vars(stmt: Stmt) -> list[Var]:
    """Variables that assignments below ``stmt`` define, in order."""
    found: list[Var] = []

    class Collector(Visitor):
        def visit_assign_stmt(self, op: _stmt.AssignStmt) -> None:
            found.append(op.var)

    Collector().visit(stmt)
    return found


def find_yield_stmt(stmt: Stmt) -> YieldStmt | None:
    """The first yield of a body, not looking into nested control flow."""
    return next((s for s in flatten_to_stmts(stmt) if isinstance(s, YieldStmt)), None)


def get_last_yield_stmt(stmt: Stmt | None) -> YieldStmt | None:
    """The yield a body ends with, looking through scopes; None when it ends otherwise."""
    flat = flatten_to_stmts(stmt)
    last = flat[-1] if flat else None
    if isinstance(last, ScopeStmt):
        return get_last_yield_stmt(last.body)
    return last if isinstance(last, YieldStmt) else None


def substitute_expr(expr: Expr, pairs: Iterable[tuple[Var, Expr]]) -> Expr:
    """``expr`` with variables replaced."""
    return substitute(expr, _resolved(pairs))


def _resolved(pairs: Iterable[tuple[Var, Expr]]) -> dict[Var, Expr]:
    """The substitution, with replacements whose own type mentions a replaced variable brought up to date."""
    mapping = dict(pairs)
    rewriter = Rewriter(mapping)
    for old, new in pairs:
        if isinstance(new, Var) and new.type.symbolic:
            kind = rewriter.rewrite_type(new.type)
            mapping[old] = new if kind is new.type else Var(new.name_hint, kind, new.span)
    return mapping


def substitute_stmt(stmt: Stmt, pairs: Iterable[tuple[Var, Expr]]) -> Stmt:
    """``stmt`` with variables replaced at their uses and definitions."""
    return substitute(stmt, _resolved(pairs))


class ParentStmtAnalysis:
    """Which statement contains which."""

    def __init__(self) -> None:
        self._parents: dict[Stmt, Stmt] = {}

    def build_map(self, function: Function) -> None:
        """Forget the last function and learn ``function``."""
        self._parents.clear()
        parents = self._parents

        class Collector(Visitor):
            def __init__(self) -> None:
                self.inside: list[Stmt] = []

            def visit(self, op: IRNode) -> None:
                if not isinstance(op, Stmt):
                    return
                if self.inside:
                    parents[op] = self.inside[-1]
                self.inside.append(op)
                op._visit_children(self)
                self.inside.pop()

        if function is not None:
            Collector().visit(function.body)

    def get_parent(self, stmt: Stmt) -> Stmt | None:
        return self._parents.get(stmt)

    def has_parent(self, stmt: Stmt) -> bool:
        return stmt in self._parents

    def clear(self) -> None:
        self._parents.clear()


def deep_clone(
    root: IRNode, var_map: Iterable[tuple[Var, Expr]] = ()
) -> tuple[IRNode, list[tuple[Var, Var]]]:
    """A copy of ``root`` with fresh variables at every definition, and the pairs of old and new.

    ``var_map`` replaces variables that are defined outside.
    """
    given = dict(var_map)
    cloner = _Cloner(given)
    made = cloner.rewrite(root)
    return made, [(old, new) for old, new in cloner.vars.items() if old not in given and isinstance(new, Var)]


class _Cloner(Rewriter):
    def rebuild_var(self, var: Var) -> Var:
        kind = self.rewrite_type(var.type)
        if isinstance(var, IterArg):
            return IterArg(var.name_hint, kind, self.rewrite(var.init_value), var.span)
        if isinstance(var, (MemRef, WindowBuffer)):
            return super().rebuild_var(var)
        return Var(var.name_hint, kind, var.span)

    def rewrite_type(self, type: Type) -> Type:
        return super().rewrite_type(type) if self.vars else type

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        return SeqStmts([self.rewrite(s) for s in op.stmts], op.span)
