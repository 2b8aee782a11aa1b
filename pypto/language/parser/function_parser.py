"""From the definition of a function to `ir.Function`."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from ...errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ...ir.enums import FunctionType, Level, ParamDirection, Role
from ...ir.expr import Expr, Var
from ...ir.program import Function
from ...ir.stmt import InlineStmt, ReturnStmt
from ...ir.types import ScalarType, ShapedType, TensorType, TupleType, Type
from .. import forms
from . import external_kernels
from .body import Body
from .directives import DirectivesMixin
from .inline import InlineMixin
from .source import SourceFile
from .statements import merge_types
from .submits import SubmitsMixin
from .subscripts import SubscriptsMixin
from .type_consistency import difference
from .type_resolver import TypeResolver
from .windows import WindowsMixin

if TYPE_CHECKING:
    from ..decorators import InlineFunction
    from .program_parser import ProgramContext


class FunctionOptions:
    """What the decorator of a function says."""

    __slots__ = ("type", "strict_ssa", "level", "role", "attrs", "auto_scope", "external_source")

    def __init__(
        self,
        type: FunctionType = FunctionType.Opaque,
        strict_ssa: bool = False,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Mapping[str, Any] | None = None,
        auto_scope: bool = True,
        external_source: str | os.PathLike[str] | None = None,
    ) -> None:
        self.type, self.strict_ssa, self.level, self.role = type, strict_ssa, level, role
        self.attrs: dict[str, Any] = dict(attrs or {})
        self.auto_scope, self.external_source = auto_scope, external_source


class FunctionParser(SubmitsMixin, DirectivesMixin, InlineMixin, SubscriptsMixin, WindowsMixin):
    """Parses one function definition."""

    infers_results = False
    """Whether a kernel written in C++ returns what it writes where no annotation says so."""

    def __init__(
        self,
        source: SourceFile,
        node: ast.FunctionDef,
        closure: Mapping[str, Any],
        options: FunctionOptions,
        *,
        program: ProgramContext | None = None,
    ) -> None:
        super().__init__(
            source,
            closure,
            func_type=options.type,
            strict_ssa=options.strict_ssa,
            auto_scope=options.auto_scope,
            program=program,
        )
        self.node = node
        self.options = options
        self.loops = []
        self.jumps = set()
        self.regions = []
        self.inline_stack: list[str] = []
        self.inlined: list[list[Expr]] | None = None
        self.assigned = {}
        self.windows = program.windows if program is not None else {}
        self.attrs: dict[str, Any] = {}
        self.body = Body("function")
        self.types = TypeResolver(
            self.evaluator, self.scopes.lookup_var, self.spans, self.value, source_lines=source.lines
        )
        if program is not None:
            self.types.share_bases(program.bases)
        self.scopes.enter_scope("function")
        self.params: list[tuple[Var, ParamDirection]] = []
        self.return_types: list[Type] = []
        self.comments = {}

    def nested_parser(self, function: InlineFunction) -> FunctionParser:
        child = FunctionParser(function.source, function.node, function.closure, self.options, program=self.program)
        child.inlined, child.inline_stack = [], [*self.inline_stack, function.name]
        child.externals, child.producers, child.dump_tags = self.externals, self.producers, self.dump_tags
        child.specialized = self.specialized
        child.temporaries, child.dimensions, child.windows = self.temporaries, self.dimensions, self.windows
        child.loops, child.regions, child.split_mode = list(self.loops), self.regions, self.split_mode
        return child

    # -- signature

    def parse_signature(self) -> None:
        """Parameters and declared results."""
        args = self.node.args
        for bad, what in ((args.vararg, "*"), (args.kwarg, "**")):
            if bad is not None:
                self.fail(
                    UnsupportedFeatureError, f"Unsupported parameter: {what}{bad.arg}", bad, "declare each parameter"
                )
        if args.posonlyargs or args.kwonlyargs:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported parameters: `/` and `*` markers",
                (args.posonlyargs or args.kwonlyargs)[0],
                "declare plain parameters",
            )
        if args.defaults:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported parameter: default values",
                args.defaults[0],
                "pass the value where the function is called",
            )
        params = args.args[1:] if self.program is not None and args.args and args.args[0].arg == "self" else args.args
        for param in params:
            self._param(param)
        if self.node.returns is not None:
            made = self.types.resolve_type(self.node.returns)
            self.return_types = made if isinstance(made, list) else [made]

    def _param(self, param: ast.arg) -> None:
        name = param.arg
        if param.annotation is None:
            hint = f"write {name}: pl.Tensor[[..], pl.FP32], or {name}: pl.Scalar[pl.INT32]"
            self.fail(ParserTypeError, f"Parameter '{name}' is missing type annotation", param, hint)
        made, direction = self.types.resolve_param_type(param.annotation)
        if isinstance(made, ScalarType) and any(_mentions(p.type, name) for p, _ in self.params):
            self.fail(
                ParserTypeError,
                f"parameter '{name}' follows an annotation that reads the symbol '{name}'",
                param,
                "make it an earlier parameter than the one whose annotation names it, or rename it",
            )
        var = Var(name, made, self.span(param))
        self.params.append((var, direction))
        self.scopes.define_var(name, var, span=self.span(param))

    # -- body

    def parse(self) -> Function:
        """The whole function."""
        if not self.params and not self.return_types:
            self.parse_signature()
        node = self.node
        for key, value in self.options.attrs.items():
            if not isinstance(key, str):
                self.fail(ParserSyntaxError, f"attribute keys must be strings, got {key!r}", node)
            self.set_attr(key, value, node, from_decorator=True)
        is_empty = self._is_abstract()
        if self.options.external_source is not None:
            self.attrs["external_source"] = external_kernels.declare(self, self.options.external_source, is_empty)
            return self._function()
        if is_empty:
            return self._function(abstract=self.options.role is Role.SubWorker)
        if self._runs_on_host():
            self._capture_body()
            return self._function()
        first, last = node.body[0], node.body[-1]
        limit = self._tail_limit(last.end_lineno or last.lineno, first.col_offset)
        self.comments = self.source.comments_in(_header_line(node) + 1, limit - 1)
        self.parse_statements(node.body, limit)
        self._check_result_missing()
        return self._function()

    def _tail_limit(self, end: int, column: int) -> int:
        """The line where the function's text ends: comments indented like its body belong to it."""
        lines = self.source.lines
        while end < len(lines):
            text = lines[end]
            stripped = text.lstrip()
            if stripped and not (stripped.startswith("#") and len(text) - len(stripped) >= column):
                break
            end += 1
        return end + 1

    def _is_abstract(self) -> bool:
        """Whether the body is ``...``: an external kernel, or a sub-worker whose code is bound at run time."""
        rest = [s for s in self.node.body if not self._is_prologue(s)]
        ellipsis = (
            len(rest) == 1 and isinstance(rest[0], ast.Expr) and getattr(rest[0].value, "value", None) is Ellipsis
        )
        bound_later = self.options.role is Role.SubWorker and self.options.level is not None
        if not ellipsis or not (bound_later or self.options.external_source is not None):
            return False
        for stmt in self.node.body:
            if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
                self.eval_form(forms.func_attr, stmt.value)
        return True

    def _runs_on_host(self) -> bool:
        """Whether the body is Python of the host, which the compiler hands on as it stands."""
        level = self.options.level
        return self.options.role is Role.SubWorker and level is not None and level.value >= Level.HOST.value

    def _capture_body(self) -> None:
        """The body's text as one statement; its annotations remain those of the language."""
        body: list[ast.stmt] = []
        for stmt in self.node.body:
            call = stmt.value if isinstance(stmt, ast.Expr) else None
            if isinstance(call, ast.Call) and self._is_form(call, forms.func_attr):
                self.eval_form(forms.func_attr, call)
            else:
                body.append(stmt)
        text = ""
        if body:
            first, last = body[0], body[-1]
            lines = list(self.source.lines[first.lineno - 1 : last.end_lineno])
            if first.lineno == self.node.lineno or self.node.returns and first.lineno == self.node.returns.end_lineno:
                lines = [ast.get_source_segment("\n".join(self.source.lines), s) or "" for s in body]
            text = dedent("\n".join(line.rstrip() for line in lines))
        self.emit(InlineStmt(text or "pass", span=self.span(self.node)))

    def _is_prologue(self, stmt: ast.stmt) -> bool:
        if not isinstance(stmt, ast.Expr):
            return False
        return isinstance(getattr(stmt.value, "value", None), str) or self._is_form(stmt.value, forms.func_attr)

    def _function(self, abstract: bool = False) -> Function:
        options, span = self.options, self.span(self.node)
        attrs = dict(self.attrs)
        if not options.auto_scope:
            attrs["auto_scope"] = False
        try:
            return Function(
                self.node.name,
                self.params,
                self.return_types,
                self.stmt_of(self.body, self.node),
                span,
                type=options.type,
                level=options.level,
                role=options.role,
                attrs=attrs,
                requires_runtime_binding=abstract,
            )
        except ValueError as error:
            self.fail(ParserSyntaxError, str(error), self.node)

    @property
    def results(self) -> list[Type]:
        """The values a return states: the members of ``pl.Tuple[..]``, which is one declared type."""
        declared = self.return_types
        return list(declared[0].types) if len(declared) == 1 and isinstance(declared[0], TupleType) else declared

    def finish_return(self, values: list[Expr], node: ast.Return) -> None:
        """Check returned values against the declared results. An inline function hands them to its caller."""
        if self.inlined is not None:
            self.inlined.append(values)
            return
        declared = self.results
        if self.node.returns is not None:
            if len(values) == 1 and len(declared) > 1 and isinstance(values[0].type, TupleType):
                self._check_tuple(values[0].type, node)
            elif len(values) != len(declared):
                self.fail(
                    ParserTypeError,
                    f"'{self.node.name}' declares {len(declared)} result(s) but returns {len(values)}",
                    node,
                    "make the return annotation and the return statement agree",
                )
            else:
                values = [self._result(i, v, node) for i, v in enumerate(values)]
        self.emit(ReturnStmt(values, self.span(node)))

    def _result(self, i: int, value: Expr, node: ast.Return) -> Expr:
        wanted = self.results[i]
        if isinstance(wanted, (ScalarType, ShapedType)):
            value = self.retype_constant(value, wanted.dtype)
        self._check_result(i, value.type, node)
        return value

    def _check_tuple(self, made: TupleType, node: ast.Return) -> None:
        """One value of a tuple type stands for all the results."""
        if len(made.types) != len(self.results):
            self.fail(
                ParserTypeError,
                f"'{self.node.name}' declares {len(self.results)} results, not {len(made.types)}",
                node.value or node,
                "make the return annotation and the return statement agree",
            )
        for i, member in enumerate(made.types):
            self._check_result(i, member, node)

    def _check_result(self, i: int, made: Type, node: ast.Return) -> None:
        found = difference(self.results[i], made)
        if found is not None:
            which = f"result {i} of " if len(self.results) > 1 else ""
            found = found.replace("the annotation", "the return annotation")
            self.fail(
                ParserTypeError,
                f"Return type mismatch: {which}'{self.node.name}': {found}",
                node.value or node,
                "correct the return annotation or the value",
            )

    def _check_result_missing(self) -> None:
        if self.return_types and self.body.ends != "return":
            if self.options.type is FunctionType.Group:
                return
            self.fail(
                ParserSyntaxError,
                f"'{self.node.name}' declares a result but does not end with return",
                self.node.returns or self.node,
                "return the value at the end of the function, or remove the annotation",
            )


def _header_line(node: ast.FunctionDef) -> int:
    """The last line of the signature."""
    ends = [a.end_lineno or 0 for a in node.args.args]
    if node.returns is not None:
        ends.append(node.returns.end_lineno or 0)
    return min(max([node.lineno, *ends]), node.body[0].lineno - 1)


def _mentions(made: Type, name: str) -> bool:
    """Whether a dimension of a type is a symbol of this name."""
    if not isinstance(made, ShapedType):
        return False
    view = made.tensor_view if isinstance(made, TensorType) else None
    dims = [*made.shape, *(view.valid_shape if view is not None else ())]
    return any(isinstance(d, Var) and d.name_hint == name for d in dims)


__all__ = ["FunctionOptions", "FunctionParser", "merge_types"]
