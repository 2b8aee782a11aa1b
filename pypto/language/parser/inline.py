"""Functions expanded where they are called."""

from __future__ import annotations

import ast
from typing import Any

from ...errors import ParserTypeError, UnsupportedFeatureError
from ...ir.expr import Expr, Var
from ...ir.stmt import AssignStmt
from .calls import CallsMixin
from .scope_manager import ScopeManager
from .statements import Body


class InlineMixin(CallsMixin):
    """Expands inline functions."""

    body: Body
    inline_stack: list[str]

    def expand_inline(self, function: Any, node: ast.Call) -> Any:
        """The statements of ``function`` in place of the call; its value is what the function returns."""
        name = function.name
        active = self.__dict__.setdefault("inline_stack", [])
        if name in active:
            self.fail(UnsupportedFeatureError, f"inline function '{name}' calls itself", node)
        values = self._inline_arguments(function, node)
        child = type(self)(function.source, function.node, function.closure, self.options, program=self.program)  # pyright: ignore
        child.options = self.options  # pyright: ignore[reportAttributeAccessIssue]
        child.scopes = ScopeManager(self.strict_ssa)
        child.scopes.enter_scope("function")
        child.types.scope_lookup = child.scopes.lookup_var
        child.body, child.externals = Body("function"), self.externals
        child.inline_stack = [*active, name]
        child.loops, child.jumps, child.regions = list(self.loops), set(), self.regions  # pyright: ignore
        returned: list[list[Expr]] = []
        child.finish_return = lambda made, _node: returned.append(made)  # pyright: ignore
        for (param, _), value in zip(self._inline_params(function), values):
            child.scopes.define_var(param, value)
        child.parse_statements(function.node.body, (function.node.end_lineno or 0) + 1)  # pyright: ignore
        self.body.stmts.extend(child.body.stmts)
        made = returned[0] if returned else []
        return made[0] if len(made) == 1 else tuple(made) if made else None

    def _inline_params(self, function: Any) -> list[tuple[str, Any]]:
        return [(a.arg, a) for a in function.node.args.args if a.arg != "self"]

    def _inline_arguments(self, function: Any, node: ast.Call) -> list[Expr]:
        params = [p for p, _ in self._inline_params(function)]
        given: dict[str, ast.expr] = dict(zip(params, node.args))
        for keyword in node.keywords:
            if keyword.arg not in params or keyword.arg in given:
                self.fail(
                    ParserTypeError,
                    f"inline function '{function.name}' does not take '{keyword.arg}' here",
                    keyword.value,
                )
            given[keyword.arg] = keyword.value
        count = len(node.args) + len(node.keywords)
        if len(given) != len(params) or len(node.args) > len(params):
            self.fail(
                ParserTypeError,
                f"Inline function '{function.name}' expects {len(params)} argument(s), got {count}",
                node,
                f"call {function.name}({', '.join(params)})",
            )
        return [self._inline_argument(p, given[p], node) for p in params]

    def _inline_argument(self, name: str, arg: ast.expr, node: ast.Call) -> Any:
        """The value a parameter stands for: a variable, or one made for the argument's value."""
        value = self.value(arg)
        if not isinstance(value, Expr):
            return self.as_expr(value, arg)
        if isinstance(value, Var):
            return value
        var = Var(name, value.type, self.span(arg))
        self.body.stmts.append(AssignStmt(var, value, self.span(node)))
        return var
