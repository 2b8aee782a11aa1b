"""Constructs that work while parsing: prints, assertions, function attributes, dump tags."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ...errors import InternalError, ParserError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ...ir.enums import ArgDirection, FunctionType, SplitMode
from ...ir.expr import ConstBool, Expr, Var
from ...ir.visitor import walk
from .. import forms
from ..annotations import _Annotation
from .control_flow import ControlFlowMixin


class DirectivesMixin(ControlFlowMixin):
    """Parses compile-time statements."""

    attrs: dict[str, Any]

    def eval_form(self, form: forms.Form, node: ast.Call) -> bool:
        """Parse a construct that stands as a statement; False when it is none of these."""
        handler = _STATEMENTS.get(form)
        if handler is not None:
            handler(self, node)
        return handler is not None

    def _static_print(self, node: ast.Call) -> None:
        if not node.args or node.keywords:
            self.fail(ParserSyntaxError, "pl.static_print() requires at least 1 argument and takes no keywords", node)
        text = " ".join(self._shown(a) for a in node.args)
        span = self.span(node)
        print(f"static_print [{span.filename}:{span.begin_line}]: {text}")

    def _shown(self, node: ast.expr) -> str:
        if isinstance(node, ast.JoinedStr):
            return "".join(self._shown_part(p) for p in node.values)
        value = self.value(node)
        if isinstance(value, Var):
            return f"{value.name_hint}: {value.type}"
        if isinstance(value, (bool, int, float)):
            value = self.as_expr(value, node)
        if isinstance(value, Expr):
            from ...ir.printer import python_print

            return f"{python_print(value)}: {value.type}"
        return str(value)

    def _shown_part(self, part: ast.expr) -> str:
        if isinstance(part, ast.Constant):
            return str(part.value)
        if not isinstance(part, ast.FormattedValue):
            raise InternalError(f"an f-string holds a {type(part).__name__}")
        hint = "write a plain placeholder: {x}"
        if part.conversion != -1:
            self.fail(
                UnsupportedFeatureError, "an f-string conversion such as !r is not part of the language", part, hint
            )
        if part.format_spec is not None:
            self.fail(UnsupportedFeatureError, "an f-string format spec is not part of the language", part, hint)
        return self._shown(part.value)

    def _static_assert(self, node: ast.Call) -> None:
        if not 1 <= len(node.args) <= 2 or node.keywords and (len(node.args) == 2 or node.keywords[0].arg != "msg"):
            self.fail(ParserSyntaxError, "pl.static_assert() takes 1 or 2 arguments: a condition and a message", node)
        message_node = node.args[1] if len(node.args) == 2 else node.keywords[0].value if node.keywords else None
        message = ""
        if message_node is not None:
            if not isinstance(message_node, ast.Constant) or not isinstance(message_node.value, str):
                self.fail(ParserSyntaxError, "the message of pl.static_assert() must be a string literal", message_node)
            message = message_node.value
        value = self.value(node.args[0])
        if isinstance(value, ConstBool):
            value = value.value
        if isinstance(value, Expr):
            known = getattr(value, "value", None)
            if known is None:
                self.fail(
                    ParserSyntaxError,
                    "the condition of pl.static_assert() must be compile-time evaluable",
                    node.args[0],
                )
            value = known
        if not value:
            self.fail(ParserError, f"static_assert failed: {message or ast.unparse(node.args[0])}", node)

    def _func_attr(self, node: ast.Call) -> None:
        if len(node.args) != 1 or node.keywords:
            self.fail(
                ParserSyntaxError,
                "pl.func_attr() takes exactly one positional dict argument",
                node,
                'write pl.func_attr({"key": value})',
            )
        if self.body.stmts or self.body.kind != "function":
            self.fail(
                ParserSyntaxError, "pl.func_attr() must appear before every other statement of the function", node
            )
        for key, value in self.attr_dict(node.args[0]).items():
            if key in ("auto_scope", "external_source"):
                self.fail(
                    ParserSyntaxError,
                    f"'{key}' cannot be set with pl.func_attr()",
                    node.args[0],
                    f"write @pl.function({key}=..)",
                )
            if key in self.attrs:
                self.fail(
                    ParserSyntaxError,
                    f"duplicate function attribute '{key}'. Each attribute may be declared only once.",
                    node.args[0],
                )
            self.set_attr(key, value, node.args[0])

    def set_attr(self, key: str, value: Any, node: ast.AST, from_decorator: bool = False) -> None:
        """Note an attribute of the function."""
        value = self.closure_value(value)
        if isinstance(value, _Annotation):
            self.fail(
                ParserSyntaxError, f"attribute '{key}' is an annotation-only {value.kind}, which holds no value", node
            )
        if isinstance(value, SplitMode) and key == "split":
            if value is SplitMode.NONE:
                return
            value = value.value
        if isinstance(value, (list, tuple)):
            kinds = (int,) if key in ("arg_direction_overrides", "tuple_arity") else ()
            if not all(isinstance(v, (Var, ArgDirection, *kinds)) for v in value):
                self.fail(
                    ParserSyntaxError,
                    f"Unsupported list element type for key: {key}. Lists hold Var or ArgDirection elements; "
                    "integers only under arg_direction_overrides",
                    node,
                )
        if from_decorator and isinstance(value, Expr) and any(isinstance(n, Var) for n in walk(value)):
            self.fail(
                ParserSyntaxError,
                f"the decorator attribute '{key}' references a variable, which does not exist there",
                node,
                f'write pl.func_attr({{"{key}": ..}}) as the first statement of the body',
            )
        self.attrs[key] = value

    def _dump_tag(self, node: ast.Call) -> None:
        if self.func_type not in (FunctionType.Orchestration, FunctionType.Inline):
            self.fail(ParserSyntaxError, "pl.dump_tag() is only valid inside an Orchestration or Inline function", node)
        if len(node.args) != 1 or node.keywords:
            self.fail(ParserSyntaxError, "pl.dump_tag() takes exactly one positional argument, a tensor variable", node)
        if not isinstance(node.args[0], ast.Name):
            self.fail(
                ParserSyntaxError,
                "pl.dump_tag() takes a bare variable name",
                node.args[0],
                "bind the tensor to a name first",
            )
        value = self.value(node.args[0])
        if not isinstance(value, Var):
            self.fail(ParserTypeError, "pl.dump_tag() takes a tensor variable", node.args[0])
        self.dump_tags[value] = None

    def _cond(self, node: ast.Call) -> None:
        self.fail(ParserSyntaxError, "pl.cond() must be the first statement of a pl.while_ loop", node)


_STATEMENTS: Final[dict[forms.Form, Callable[[Any, ast.Call], None]]] = {
    forms.static_print: DirectivesMixin._static_print,
    forms.static_assert: DirectivesMixin._static_assert,
    forms.func_attr: DirectivesMixin._func_attr,
    forms.dump_tag: DirectivesMixin._dump_tag,
    forms.cond: DirectivesMixin._cond,
}
