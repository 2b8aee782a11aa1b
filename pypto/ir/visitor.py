"""Traversal and rewriting.

`Visitor` and `Rewriter` dispatch by node class through a table built once per visitor class: define
``visit_<kind>`` (``visit_for_stmt``, ``visit_call`` ...), call ``self.generic(op)`` to descend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any, ClassVar, TypeVar

from .expr import Call, Expr, IterArg, Var
from .node import IRNode, NodeList, mapping_items
from .program import Function, Program
from .stmt import SeqStmts, Stmt, flatten_to_stmts, seq
from .types import Type

N = TypeVar("N", bound=IRNode)


class _Dispatch:
    """Maps a node class to the method that handles it, most specific first."""

    _table: ClassVar[dict[type, Callable[[Any, Any], Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._table = {}

    @classmethod
    def _find(cls, node_class: type) -> Callable[[Any, Any], Any]:
        for base in node_class.__mro__:
            kind = base.__dict__.get("node_kind")
            method = getattr(cls, f"visit_{kind}", None) if kind else None
            if method is not None:
                cls._table[node_class] = method
                return method
        cls._table[node_class] = cls.generic
        return cls.generic

    def generic(self, op: Any) -> Any:
        raise NotImplementedError


class Visitor(_Dispatch):
    """Reads a tree. Subclasses define ``visit_<kind>``; others are descended into. Types are not entered."""

    _table: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}

    def visit(self, op: IRNode) -> None:
        (self._table.get(op.__class__) or self._find(op.__class__))(self, op)

    def define(self, var: IRNode) -> None:
        """A variable at its definition; a loop-carried one brings its initial value."""
        if isinstance(var, IterArg):
            self.visit(var.init_value)

    def visit_type(self, type: Type) -> None:
        """Types hold no statements; override to look inside them."""

    def visit_mapping(self, mapping: Mapping[str, Any]) -> None:
        for item in mapping_items(mapping):
            self.visit(item)

    def generic(self, op: IRNode) -> None:
        op._visit_children(self)

    def visit_var(self, op: Var) -> None:
        """A use of a variable: nothing below it belongs to the tree."""

    def visit_program(self, op: Program) -> None:
        for function in op.functions.values():
            self.visit(function)


class Rewriter(_Dispatch):
    """Rebuilds a tree copy-on-write: a node whose parts stay the same objects is returned as it is.

    ``vars`` maps variables (by object) to what replaces them at their uses, in types too.
    """

    _table: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {}

    def __init__(self, vars: Mapping[Var, Expr] | None = None) -> None:
        self.vars: dict[Var, Expr] = dict(vars or {})

    def rewrite(self, op: Any) -> Any:
        return (self._table.get(op.__class__) or self._find(op.__class__))(self, op)

    def define(self, var: Any) -> Any:
        """A variable at its definition. A changed type or initial value makes a new variable, used from here on."""
        if var in self.vars:
            return self.vars[var]
        made = self.rebuild_var(var)
        if made is not var:
            self.vars[var] = made
        return made

    def rebuild_var(self, var: Var) -> Var:
        """``var`` with its type and initial value rewritten; itself when neither changes."""
        new_type = self.rewrite_type(var.type)
        if isinstance(var, IterArg):
            init = self.rewrite(var.init_value)
            if new_type is var.type and init is var.init_value:
                return var
            return IterArg(var.name_hint, new_type, init, var.span)
        return var if new_type is var.type else Var(var.name_hint, new_type, var.span)

    def rewrite_type(self, type: Type) -> Type:
        if not type.symbolic or not self.vars:
            return type
        made = type._rewrite_children(self)
        return made if made is type else canonical_type(made)

    def rewrite_list(self, items: NodeList, change: Callable[[Any], Any]) -> NodeList:
        made = [change(i) for i in items]
        return items if all(map(is_, made, items)) else NodeList(made)

    def rewrite_mapping(self, mapping: dict[str, Any]) -> dict[str, Any]:
        made = {k: self._rewrite_value(v) for k, v in mapping.items()}
        return mapping if all(made[k] is mapping[k] for k in mapping) else made

    def _rewrite_value(self, value: Any) -> Any:
        if isinstance(value, IRNode):
            return self.rewrite_type(value) if isinstance(value, Type) else self.rewrite(value)
        if isinstance(value, (list, tuple)) and any(isinstance(v, IRNode) for v in value):
            made = [self._rewrite_value(v) for v in value]
            return value if all(map(is_, made, value)) else type(value)(made)
        return value

    def generic(self, op: Any) -> Any:
        return op._rewrite_children(self)

    def visit_var(self, op: Var) -> Any:
        return self.vars.get(op, op)

    def visit_mem_ref(self, op: Any) -> Any:
        return self.vars[op] if op in self.vars else self.generic(op)

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        made = [self.rewrite(s) for s in op.stmts]
        if all(map(is_, made, op.stmts)):
            return op
        return seq(splice(made), op.span)

    def visit_function(self, op: Function) -> Function:
        made = op._rewrite_children(self)
        return made if made is op else made.replace(summary_cell=[])

    def visit_program(self, op: Program) -> Program:
        return op.map_functions(self.rewrite)


def splice(stmts: Iterable[Stmt | list[Stmt] | None]) -> list[Stmt]:
    """Statements a rewrite produced: lists and sequences opened, None dropped."""
    flat: list[Stmt] = []
    for s in stmts:
        if s is None:
            continue
        if isinstance(s, list):
            flat.extend(splice(s))
        elif isinstance(s, SeqStmts):
            flat.extend(flatten_to_stmts(s))
        else:
            flat.append(s)
    return flat


def canonical_type(type: Type) -> Type:
    """Run a rebuilt type through its constructor, which drops what the shape now implies."""
    cls = type.__class__
    if not hasattr(type, "memref"):
        return type
    names = [f.name for f in cls.fields if f.role != "ignore"]
    return cls(**{n: getattr(type, n) for n in names})


def substitute(op: N, mapping: Mapping[Var, Expr]) -> N:
    """``op`` with variables replaced, in types too."""
    return Rewriter(mapping).rewrite(op) if mapping else op


class _Walker(Visitor):
    def __init__(self) -> None:
        self.found: list[IRNode] = []

    def visit(self, op: IRNode) -> None:
        self.found.append(op)
        if type(op) is not Var:
            super().visit(op)


def walk(root: IRNode) -> Iterable[IRNode]:
    """Every node below and including ``root``, in order; types and definitions are not entered."""
    walker = _Walker()
    walker.visit(root)
    return walker.found


def find_all(root: IRNode, kind: type[N] | tuple[type[N], ...]) -> list[N]:
    """The nodes of class ``kind`` among those `walk` finds."""
    return [node for node in walk(root) if isinstance(node, kind)]


def find_calls(root: IRNode, *names: str) -> list[Call]:
    """The calls of operators ``names`` among the nodes that `walk` finds."""
    return [call for call in find_all(root, Call) if call.op.name in names]
