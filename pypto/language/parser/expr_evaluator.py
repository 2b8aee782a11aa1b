"""Compile-time values: names of the enclosing Python scopes and the expressions Python can evaluate on them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from typing import Any, Final

from ...errors import BUG_CLASS_EXCEPTIONS, ParserError, ParserTypeError, message_of
from ...ir.span import UNKNOWN_SPAN, Span
from .span_tracker import SpanTracker

_BUILTIN_NAMES = "abs bool dict divmod float int len list max min pow range round sorted str sum tuple zip enumerate"
BUILTINS: Final[dict[str, Any]] = {name: getattr(builtins, name) for name in _BUILTIN_NAMES.split()}
"""The Python built-ins a kernel may use on compile-time values."""

MISSING: Final = object()


class ExprEvaluator:
    """Evaluates syntax trees on closure variables and a few harmless built-ins."""

    def __init__(self, closure_vars: Mapping[str, Any] | None = None, span_tracker: SpanTracker | None = None) -> None:
        self.closure_vars = closure_vars if closure_vars is not None else {}
        self.span_tracker = span_tracker

    def lookup(self, name: str) -> Any:
        """The closure variable or built-in called ``name``; `MISSING` when there is none."""
        value = self.closure_vars.get(name, MISSING)
        return BUILTINS.get(name, MISSING) if value is MISSING else value

    def eval_expr(self, node: ast.expr) -> Any:
        """The value of ``node``. ParserTypeError when a name is unknown or Python refuses to evaluate it."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        bound = {name: self.lookup(name) for name in names}
        unknown = sorted(n for n, v in bound.items() if v is MISSING and n not in _comprehension_names(node))
        if unknown:
            raise ParserTypeError(
                f"Cannot resolve expression '{ast.unparse(node)}': name '{unknown[0]}' is not defined",
                self._span(node),
                hint="only variables of the enclosing Python scopes and simple built-ins can be used here",
            )
        scope = {n: v for n, v in bound.items() if v is not MISSING} | {"__builtins__": {}}
        try:
            code = compile(ast.fix_missing_locations(ast.Expression(node)), "<expression>", "eval")
            return eval(code, scope)
        except BUG_CLASS_EXCEPTIONS:
            raise
        except ParserError:
            raise
        except (ArithmeticError, AttributeError, LookupError, NameError, RuntimeError, TypeError, ValueError) as error:
            raise ParserTypeError(
                f"Failed to evaluate expression '{ast.unparse(node)}': {message_of(error)}", self._span(node)
            ) from error

    def try_eval_expr(self, node: ast.expr) -> tuple[bool, Any]:
        """Whether ``node`` evaluates, and its value."""
        try:
            return True, self.eval_expr(node)
        except ParserTypeError:
            return False, None

    def _span(self, node: ast.AST) -> Span:
        return self.span_tracker.get_span(node) if self.span_tracker is not None else UNKNOWN_SPAN


def _comprehension_names(node: ast.expr) -> set[str]:
    targets = [g.target for n in ast.walk(node) for g in getattr(n, "generators", ())]
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
