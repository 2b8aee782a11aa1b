"""Rewriting the types of definitions, calls and launches, with the place and name a message can give."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Call, Expr, Submit, Var
from ..ir.naming import written_name
from ..ir.span import UNKNOWN_SPAN, Span
from ..ir.visitor import Rewriter


class TypeRewriter(Rewriter):
    """Base of passes that override ``rewrite_type``.

    ``span`` is that of the node whose type is at hand, ``name`` what the user calls it. A variable nothing defines, a
    dimension say, is rewritten where it is first met.
    """

    def __init__(self, span: Span = UNKNOWN_SPAN, name: str = "") -> None:
        super().__init__()
        self.span, self.name = span, name

    def define(self, var: Any) -> Any:
        outer = self.span, self.name
        self.span, self.name = var.span, f"'{written_name(var.name_hint)}'"
        made = super().define(var)
        self.span, self.name = outer
        return made

    def visit_var(self, op: Var) -> Any:
        return self.vars[op] if op in self.vars else self.define(op)

    def visit_call(self, op: Call) -> Expr:
        outer, self.span = self.span, op.span
        made = self.rewrite_call(op)
        self.span = outer
        return made

    def rewrite_call(self, op: Call) -> Expr:
        """The call for ``op``."""
        return self.generic(op)

    def visit_submit(self, op: Submit) -> Expr:
        outer, self.span = self.span, op.span
        made = self.generic(op)
        self.span = outer
        return made
