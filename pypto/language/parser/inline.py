"""Functions expanded where they are called."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import ParserTypeError, UnsupportedFeatureError
from ...ir.expr import Expr, Var
from ...ir.stmt import AssignStmt
from .control_flow import ControlFlowMixin, stored_in_blocks
from .type_consistency import difference

if TYPE_CHECKING:
    from ..decorators import InlineFunction
    from .function_parser import FunctionParser


class InlineMixin(ControlFlowMixin):
    """Expands inline functions."""

    inline_stack: list[str]
    inlined: list[list[Expr]] | None
    """What the function being expanded returned; None in a function of its own."""
    nested_parser: Callable[[InlineFunction], FunctionParser]
    """Makes a parser of a function that shares everything but names with this one."""

    def expand_inline(self, function: InlineFunction, node: ast.Call) -> Any:
        """The statements of ``function`` in place of the call; its value is what the function returns."""
        if function.name in self.inline_stack:
            self.fail(UnsupportedFeatureError, f"inline function '{function.name}' calls itself", node)
        arguments = self._inline_arguments(function, node)
        child = self.nested_parser(function)
        stored = stored_in_blocks(function.node.body)
        for param, arg in arguments.items():
            value = self.value(arg)
            self._check_inline_type(child, function, param, value, arg)
            child.scopes.define_var(param, self._inline_value(param, value, arg, node, copy=param in stored))
        child.parse_statements(function.node.body, (function.node.end_lineno or 0) + 1)
        self.body.stmts.extend(child.body.stmts)
        made = child.inlined[0] if child.inlined else []
        return made[0] if len(made) == 1 else tuple(made) if made else None

    def _inline_arguments(self, function: InlineFunction, node: ast.Call) -> dict[str, ast.expr]:
        params = [a.arg for a in function.node.args.args if a.arg != "self"]
        given: dict[str, ast.expr] = dict(zip(params, node.args))
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in params or keyword.arg in given:
                message = f"inline function '{function.name}' does not take '{keyword.arg}' here"
                self.fail(ParserTypeError, message, keyword.value)
            given[keyword.arg] = keyword.value
        count = len(node.args) + len(node.keywords)
        if len(given) != len(params) or len(node.args) > len(params):
            self.fail(
                ParserTypeError,
                f"Inline function '{function.name}' expects {len(params)} argument(s), got {count}",
                node,
                f"call {function.name}({', '.join(params)})",
            )
        return {p: given[p] for p in params}

    def _check_inline_type(
        self, child: FunctionParser, function: InlineFunction, param: str, value: Any, arg: ast.expr
    ) -> None:
        annotation = next(a.annotation for a in function.node.args.args if a.arg == param)
        if annotation is None or not isinstance(value, Expr):
            return
        wanted, _ = child.types.resolve_param_type(annotation)
        found = difference(wanted, value.type)
        if found is not None:
            found = found.replace("the annotation", "the parameter").replace("the value", "the argument")
            self.fail(ParserTypeError, f"Argument '{param}' of '{function.name}' does not fit: {found}", arg)

    def _inline_value(self, name: str, value: Any, arg: ast.expr, node: ast.Call, copy: bool) -> Any:
        """What a parameter stands for: the argument's variable, or one made for its value.

        A parameter that loops or branches assign to has a variable of its own, so that the caller's stays as it is.
        """
        expr = self.as_expr(value, arg)
        if not isinstance(value, Expr) and not copy:
            return expr
        if isinstance(expr, Var) and not copy:
            return expr
        var = Var(name, expr.type, self.span(arg))
        self.emit(AssignStmt(var, expr, self.span(node)))
        return var
