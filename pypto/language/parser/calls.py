"""Calls: operators, functions of the program, inline functions, constructs, compile-time Python."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ...dtypes import DataType
from ...errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from ...ir import scalar as S
from ...ir.enums import ArgDirection, ParamDirection
from ...ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, Var
from ...ir.program import Function
from ...ir.types import CommCtxType, ScalarType, Type
from .. import forms
from .base import OP_ERRORS, Evaluated, ParserBase, type_text
from .signatures import Signature, conflicting_binding, deduce_call_type
from .type_consistency import difference


class CallsMixin(ParserBase):
    """Parses calls."""

    value: Callable[[ast.expr], Any]
    is_namespace: Callable[[Any], bool]
    constant: Callable[[ast.expr, str], Any]
    expand_inline: Callable[..., Any]

    def call_value(self, node: ast.Call) -> Any:
        """The value of a call: an expression, or a Python value when it runs at compile time."""
        method = self.own_method(node.func)
        if method is not None:
            return self.call_program_function(method, node)
        callee = self.callee(node.func)
        if isinstance(callee, forms.Form):
            return self._call_form(callee, node)
        if isinstance(callee, Function):
            return self.call_function(callee, node)
        if hasattr(callee, "specialize_call"):
            return self.call_function(*self.specialize(callee, node))
        if hasattr(callee, "build"):
            return self.call_operator(callee, node)
        if hasattr(callee, "is_inline_function"):
            return self.expand_inline(callee, node)
        return self._call_python(callee, node)

    def callee(self, func: ast.expr) -> Any:
        """The Python object a call names."""
        if not isinstance(func, (ast.Name, ast.Attribute)):
            self.fail(UnsupportedFeatureError, "Unsupported function call: only named functions can be called", func)
        if isinstance(func, ast.Name) and func.id == "print":
            self.fail(
                UnsupportedFeatureError,
                "Unsupported function call: print has no meaning in a kernel",
                func,
                "pl.static_print(..) prints while parsing",
            )
        return self.value(func)

    def own_method(self, func: ast.expr) -> str | None:
        """``foo`` for ``self.foo`` in a method of a program."""
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
            return func.attr if not self.scopes.is_defined("self") else None
        return None

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """Argument values of a call."""
        args = [self.value(a) for a in node.args]
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.fail(
                    UnsupportedFeatureError,
                    "Unsupported function call: `**` arguments are not part of the language",
                    keyword.value,
                )
            kwargs[keyword.arg] = self.value(keyword.value)
        return args, kwargs

    # -- operators

    def call_operator(self, op: Any, node: ast.Call) -> Any:
        hook = OP_HOOKS.get(getattr(op, "__name__", ""))
        if hook is not None:
            return hook(self, op, node)
        return self.apply_operator(op, node)

    def apply_operator(self, op: Any, node: ast.Call) -> Any:
        """An operator on the call's arguments."""
        noted = next((k for k in node.keywords if k.arg == "attrs" and isinstance(k.value, ast.Dict)), None)
        if noted is not None:
            return self._noted(op, noted, node)
        args, kwargs = self.arguments(node)
        for value, arg in zip(args, node.args):
            if isinstance(value, str) and isinstance(arg, ast.Name):
                self.as_expr(value, arg)
            self._check_operand(value, arg)
        return self._build(op, args, kwargs, node, node.func)

    def _noted(self, op: Any, attrs: ast.keyword, node: ast.Call) -> Any:
        """A call with ``attrs={..}``, what passes noted on it, as it is printed."""
        plain = ast.copy_location(ast.Call(node.func, node.args, [k for k in node.keywords if k is not attrs]), node)
        made = self.call_operator(op, plain)
        found = self.attr_dict(attrs.value)
        for key in ("manual_dep_edges", "dummy_task"):
            if key in found:
                hint = "dependencies are deps= of pl.submit and pl.system.task_dummy"
                self.fail(ParserSyntaxError, f"an operator has no attribute '{key}'", attrs.value, hint)
        return made.replace(attrs=found) if isinstance(made, Call) else made

    def _check_operand(self, value: Any, node: ast.expr) -> None:
        if callable(value) and not isinstance(value, (type, Expr)):
            self.as_expr(value, node)

    def _build(self, op: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST, label: str | ast.expr) -> Any:
        """``op`` applied; ``label`` names it in errors, as text or as the expression that called it."""
        try:
            return op.build(args, kwargs, self.span(node))
        except ParserError:
            raise
        except OP_ERRORS as error:
            text = label if isinstance(label, str) else self._label(label)
            raise self.wrap_op_error(text, error, node) from error

    def _label(self, func: ast.expr) -> str:
        owner, _, name = ast.unparse(func).rpartition(".")
        return f"{owner} operation '{name}'" if owner else f"operation '{name}'"

    def unified(self, name: str, args: list[Any], node: ast.AST) -> Expr:
        """``pl.<name>(*args)``, dispatched on the arguments' types."""
        from ...ops.functions import unified

        op = unified.get(name)
        if op is None:
            kinds = ", ".join(type_text(a.type) if isinstance(a, Expr) else type(a).__name__ for a in args)
            self.fail(InvalidOperationError, f"no operator '{name}' applies to {kinds}", node)
        return self._build(op, args, {}, node, f"pl operation '{name}'")

    # -- functions of the program

    def call_program_function(self, name: str, node: ast.Call) -> Call:
        """``self.name(..)``."""
        return self._invoke(self.program_signature(name, node.func), node)

    def _invoke(self, signature: Signature, node: ast.Call) -> Call:
        attrs_node = next((k.value for k in node.keywords if k.arg == "attrs"), None)
        self._refuse_launch_keywords(signature, node)
        reserved = frozenset({"attrs", "device"} if signature.takes_device else {"attrs"})
        args, overrides = self.launch_arguments(signature, node, reserved=reserved)
        attrs = self.call_attrs(attrs_node, len(args))
        device = next((k.value for k in node.keywords if k.arg == "device" and k.arg in reserved), None)
        if device is not None:
            attrs["device"] = self._device(device)
        if overrides:
            attrs["arg_direction_overrides"] = overrides
        dumped = [a for a in args if isinstance(a, Var) and a in self.dump_tags]
        if dumped:
            attrs["dump_vars"] = list(dict.fromkeys(dumped))
        self.check_bindings(signature, args, node)
        return Call(signature.global_var, args, {}, attrs, self.call_type(signature, args, node), self.span(node))

    def _device(self, node: ast.expr) -> Expr:
        made = self.as_expr(self.value(node), node)
        if not isinstance(made.type, ScalarType) or not made.type.dtype.is_int():
            self.fail(ParserTypeError, f"'device' must be an integer, got {type_text(made.type)}", node)
        return made

    def check_bindings(self, signature: Signature, args: list[Expr], node: ast.Call) -> None:
        """ParserSyntaxError when two arguments give one dimension of the callee different extents."""
        clash = conflicting_binding(signature, args)
        if clash is not None:
            name, first, second = clash
            self.fail(
                ParserSyntaxError,
                f"conflicting bindings of dimension '{name}' of '{signature.name}': {first} and {second}",
                node,
                "pass arguments that agree on it",
            )

    def _refuse_launch_keywords(self, signature: Signature, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg in ("deps", "dumps") and all(p.name_hint != keyword.arg for p, _ in signature.params):
                self.fail(
                    ParserTypeError,
                    f"a plain call of '{signature.name}' does not accept keyword argument '{keyword.arg}'",
                    keyword.value,
                    f"launch it: out, tid = pl.submit(self.{signature.name}, .., {keyword.arg}=[..])",
                )

    def call_attrs(self, node: ast.expr | None, count: int) -> dict[str, Any]:
        """``attrs={..}`` of a call."""
        if node is None:
            return {}
        made = self.attr_dict(node)
        if "manual_dep_edges" in made:
            self.fail(
                ParserTypeError, "'manual_dep_edges' is no attribute of a call", node, "write pl.submit(.., deps=[..])"
            )
        if "core_num" in made:
            made["core_num"] = self.as_expr(made["core_num"], node)
        directions = made.get("arg_directions")
        if directions is not None:
            for direction in directions:
                if not isinstance(direction, ArgDirection):
                    self.fail(
                        ParserTypeError, f"arg_directions holds {direction!r}, which is no argument direction", node
                    )
            if len(directions) != count:
                self.fail(
                    ParserTypeError,
                    f"arg_directions has length {len(directions)}, which does not match {count} arguments",
                    node,
                )
        return made

    attr_dict: Callable[[ast.expr], dict[str, Any]]

    def launch_arguments(
        self, signature: Signature, node: ast.Call, skip: int = 0, reserved: frozenset[str] = frozenset()
    ) -> tuple[list[Expr], list[int]]:
        """Arguments in parameter order, and the positions of those wrapped in ``pl.no_dep``.

        A launch (``skip`` is 1: its first argument names the kernel) may leave out trailing outputs, which the
        runtime then allocates.
        """
        overrides: list[int] = []
        plain: list[ast.expr] = []
        for arg in node.args:
            unwrapped = self._without_no_dep(arg)
            if unwrapped is not arg:
                overrides.append(len(plain) - skip)
            plain.append(unwrapped)
        keywords = []
        for keyword in node.keywords:
            inner = self._without_no_dep(keyword.value)
            if inner is not keyword.value:
                overrides.extend(i for i, (p, _) in enumerate(signature.params) if p.name_hint == keyword.arg)
            keywords.append(ast.keyword(keyword.arg, inner))
        call = ast.copy_location(ast.Call(node.func, plain, keywords), node) if overrides else node
        return self.match_arguments(signature, call, skip, reserved), sorted(overrides)

    def _without_no_dep(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Call) or self.own_method(node.func) is not None:
            return node
        if not isinstance(node.func, (ast.Name, ast.Attribute)) or self.callee(node.func) is not forms.no_dep:
            return node
        if len(node.args) != 1 or node.keywords:
            self.fail(ParserSyntaxError, "pl.no_dep() takes one argument", node)
        return node.args[0]

    def program_signature(self, name: str, node: ast.expr) -> Signature:
        """The signature of a function of the program. UndefinedVariableError when there is none."""
        if self.program is None:
            self.fail(
                InvalidOperationError, f"'self.{name}' can be called only in a method of a @pl.program class", node
            )
        found = self.program.signature(name)
        if found is None:
            from difflib import get_close_matches

            close = get_close_matches(name, self.program.names(), 2)
            hint = f"did you mean {' or '.join(f'self.{c}' for c in close)}?" if close else None
            self.fail(UndefinedVariableError, f"Function '{name}' is not defined in the program", node, hint)
        return found

    def call_function(self, function: Function, node: ast.Call) -> Call:
        """A call of a function defined with @pl.function outside the program."""
        return self._invoke(self.external(function, node.func), node)

    def specialize(
        self, callee: Any, node: ast.Call, skip: int = 0, reserved: frozenset[str] = frozenset()
    ) -> tuple[Function, ast.Call]:
        """A function compiled for its arguments (`pypto.jit`), for those of this call; and the call on their values.

        Positional arguments count after ``skip``, keywords when not ``reserved``.
        """
        positional = [*node.args[:skip], *(self._evaluated(a) for a in node.args[skip:])]
        keywords = [
            k if k.arg in reserved else ast.copy_location(ast.keyword(k.arg, self._evaluated(k.value)), k)
            for k in node.keywords
        ]
        values = [self.value(self._without_no_dep(a)) for a in positional[skip:]]
        passed = [k for k in keywords if k.arg is not None and k.arg not in reserved]
        named = {str(k.arg): self.value(self._without_no_dep(k.value)) for k in passed}
        function = callee.specialize_call(self, values, named, node)
        return function, ast.copy_location(ast.Call(node.func, positional, keywords), node)

    def _evaluated(self, node: ast.expr) -> ast.expr:
        inner = self._without_no_dep(node)
        if inner is not node and isinstance(node, ast.Call):
            return ast.copy_location(ast.Call(node.func, [self._evaluated(inner)], []), node)
        return node if isinstance(node, (ast.Name, ast.Constant)) else Evaluated(node, self.value(node))

    def external(self, function: Function, node: ast.expr) -> Signature:
        """The signature of a function defined elsewhere, which becomes part of the program."""
        known = self.externals.get(function.name)
        if known is not None and known is not function:
            self.fail(
                ParserSyntaxError,
                f"Conflicting external functions named '{function.name}' are called",
                node,
                "rename one of them",
            )
        if self.program is not None:
            signature = self.program.external(function)
            if signature is None:
                taken = "conflicts with program function of the same name"
                if function.name not in self.program.names():
                    taken = "Conflicting external functions have that name"
                self.fail(ParserSyntaxError, f"Function '{function.name}': {taken}", node, "rename one of them")
        else:
            signature = Signature.of_function(function)
        self.externals[function.name] = function
        return signature

    def match_arguments(
        self, signature: Signature, node: ast.Call, skip: int = 0, reserved: frozenset[str] = frozenset()
    ) -> list[Expr]:
        """Arguments in parameter order; positional ones after ``skip``, keywords not ``reserved``."""
        name, params, allocated = signature.name, tuple(signature.params), ()
        positional = node.args[skip:]
        count = len(positional) + sum(k.arg not in reserved for k in node.keywords)
        if len(positional) > len(params):
            self._wrong_count(signature, count, node)
        if skip:
            params, allocated = _allocated_by_runtime(params, count)
        slots: dict[str, tuple[Expr, ast.expr]] = {}
        for (param, _), arg in zip(params, positional):
            slots[param.name_hint] = (self.as_expr(self.value(arg), arg), arg)
        for keyword in node.keywords:
            if keyword.arg in reserved:
                continue
            if keyword.arg is None or all(p.name_hint != keyword.arg for p, _ in signature.params):
                hint = f"it takes {', '.join(p.name_hint for p, _ in signature.params)}"
                if keyword.arg == "device":
                    hint = "only calls of orchestrators say which device runs them"
                self.fail(
                    ParserTypeError, f"Function '{name}' has no parameter '{keyword.arg or '**'}'", keyword.value, hint
                )
            if keyword.arg in slots:
                self.fail(ParserTypeError, f"Function '{name}' got '{keyword.arg}' twice", keyword.value)
            slots[keyword.arg] = (self.as_expr(self.value(keyword.value), keyword.value), keyword.value)
        if any(p.name_hint not in slots for p, _ in params) or any(d is not ParamDirection.Out for _, d in allocated):
            self._wrong_count(signature, count, node)
        return [self._fit(signature, p.name_hint, p.type, *slots[p.name_hint]) for p, _ in params]

    def _wrong_count(self, signature: Signature, count: int, node: ast.AST) -> None:
        names = ", ".join(p.name_hint for p, _ in signature.params)
        self.fail(
            ParserTypeError,
            f"Function '{signature.name}' expects {len(signature.params)} argument(s), got {count}",
            node,
            f"call {signature.name}({names})",
        )

    def _fit(self, signature: Signature, name: str, wanted: Type, value: Expr, node: ast.expr) -> Expr:
        """An argument for a parameter of type ``wanted``; bare constants take its dtype, integers stand for truth.

        An index, as a loop counts, is converted to the integer the parameter is.
        """
        if isinstance(wanted, ScalarType):
            value = self.retype_constant(value, wanted.dtype)
            if _is_index_for(wanted.dtype, value):
                value = S.cast_scalar(value, wanted.dtype, self.span(node))
            if wanted.dtype is DataType.BOOL and isinstance(value.type, ScalarType) and value.dtype.is_int():
                value = S.build_scalar("Ne", [value, S.scalar_const(0, value.dtype, value.span)], self.span(node))
        found = difference(wanted, value.type)
        if found is not None:
            found = found.replace("the annotation", "the parameter").replace("the value", "the argument")
            self.fail(ParserTypeError, f"Argument '{name}' of '{signature.name}' does not fit: {found}", node)
        return value

    def retype_constant(self, value: Expr, dtype: DataType) -> Expr:
        """A bare number in ``dtype``; anything else, and a number beside an INT64, unchanged."""
        if isinstance(value, ConstInt) and value.dtype is DataType.INDEX and dtype is not DataType.INT64:
            if dtype.is_float():
                return ConstFloat(float(value.value), dtype, value.span)
            if dtype.is_int():
                return S.scalar_const(value.value, dtype, value.span)
        if isinstance(value, ConstFloat) and value.dtype is DataType.FP32 and dtype.is_float():
            return ConstFloat(value.value, dtype, value.span)
        return value

    def call_type(self, signature: Signature, args: list[Expr], node: ast.AST) -> Type:
        try:
            return deduce_call_type(signature, args)
        except OP_ERRORS as error:
            raise self.wrap_op_error(f"call of '{signature.name}'", error, node) from error

    # -- constructs with a value

    def _call_form(self, form: forms.Form, node: ast.Call) -> Any:
        handler = _FORMS.get(form)
        if handler is not None:
            return handler(self, node)
        where = "a statement of its own"
        if isinstance(form, forms.LoopForm) or form is forms.while_:
            where = f"a for loop: for i in pl.{form.name}(..):"
        elif form in (forms.at, forms.cluster, forms.scope, forms.manual_scope, forms.spmd, forms.split_aiv):
            where = f"a with statement: with pl.{form.name}(..):"
        self.fail(ParserSyntaxError, f"pl.{form.name}() cannot be used in an expression", node, f"write it in {where}")

    def _const(self, node: ast.Call) -> Expr:
        if len(node.args) != 2 or node.keywords:
            self.fail(ParserSyntaxError, "pl.const() takes a value and a dtype", node, "write pl.const(1, pl.INT32)")
        value, dtype = self.constant(node.args[0], "the value of pl.const()"), self.value(node.args[1])
        if not isinstance(dtype, DataType):
            self.fail(
                ParserTypeError,
                "the second argument of pl.const() must be a dtype",
                node.args[1],
                "write pl.const(1, pl.INT32)",
            )
        span = self.span(node)
        if isinstance(value, bool) and dtype is DataType.BOOL:
            return ConstBool(value, span)
        if dtype is DataType.BOOL and value in (0, 1) and isinstance(value, int):
            return ConstInt(value, dtype, span)
        if isinstance(value, (int, float)) and dtype.is_float():
            return ConstFloat(float(value), dtype, span)
        if isinstance(value, int) and not isinstance(value, bool) and dtype.is_int():
            low, high = dtype.int_range()
            if not low <= value <= high:
                self.fail(ParserTypeError, f"{value} does not fit {dtype}: it holds {low} to {high}", node.args[0])
            return ConstInt(value, dtype, span)
        self.fail(ParserTypeError, f"pl.const() cannot make {value!r} a {dtype}", node.args[0])

    def scalar_call(self, name: str, args: list[Any], node: ast.AST) -> Any:
        """A scalar expression class applied to numbers; folded when all are known."""
        if not any(isinstance(a, Expr) for a in args):
            args = [self.as_expr(args[0], node), *args[1:]]
        try:
            return S.computed_scalar(name, args, self.span(node))
        except OP_ERRORS as error:
            raise self.wrap_op_error(f"'{name.lower()}'", error, node) from error

    # -- Python

    def _call_python(self, callee: Any, node: ast.Call) -> Any:
        args, kwargs = self.arguments(node)
        known = not any(_mentions_expr(a) for a in [*args, *kwargs.values()])
        if callee in (min, max, abs) and not known:
            return self._scalar_builtin(callee.__name__, args, node)
        name = ast.unparse(node.func)
        if callee is range:
            self.fail(
                ParserSyntaxError, "For loop must use pl.range(), not range()", node, "write for i in pl.range(..):"
            )
        if not callable(callee):
            self.fail(InvalidOperationError, f"'{name}' is a {type(callee).__name__}: it cannot be called", node)
        if not known and self._of_operators(node.func):
            return self._guarded(callee, args, kwargs, node)
        if not known:
            hint = (
                "convert with pl.cast(x, dtype)"
                if callee in (int, float, bool)
                else "decorate it with @pl.function or @pl.inline"
            )
            if callee is len:
                hint = "read x.shape[i]"
            self.fail(
                UnsupportedFeatureError,
                f"Unsupported function call: '{name}' is a Python function and cannot take kernel values",
                node,
                hint,
            )
        return self.closure_value(self._guarded(callee, args, kwargs, node))

    def _of_operators(self, func: ast.expr) -> bool:
        """Whether a function stands among the operators of ``pl``, where anything takes kernel values."""
        return isinstance(func, ast.Attribute) and self.is_namespace(self.value(func.value))

    def _guarded(self, callee: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        try:
            return callee(*args, **kwargs)
        except ParserError:
            raise
        except (*OP_ERRORS, ArithmeticError, AttributeError, LookupError) as error:
            raise self.wrap_op_error(self._label(node.func), error, node) from error

    def _scalar_builtin(self, name: str, args: list[Any], node: ast.Call) -> Any:
        wanted = 1 if name == "abs" else 2
        if len(args) < wanted or (name == "abs" and len(args) > 1):
            self.fail(ParserTypeError, f"{name}() takes {wanted} scalars here, got {len(args)}", node)
        if not all(_is_number(a) for a in args):
            self.fail(
                InvalidOperationError,
                f"{name}() takes scalars",
                node,
                f"pl.{'abs' if name == 'abs' else name + 'imum'}(..) takes tensors and tiles",
            )
        made = args[0]
        if name == "abs":
            return self.scalar_call("Abs", [made], node)
        for other in args[1:]:
            made = self.scalar_call(name.capitalize(), [made, other], node)
        return made


def _is_number(value: Any) -> bool:
    if isinstance(value, Expr):
        return isinstance(value.type, ScalarType)
    return isinstance(value, (bool, int, float))


def _is_index_for(wanted: DataType, value: Expr) -> bool:
    """Whether an index stands where a function takes an integer."""
    return wanted.is_int() and isinstance(value.type, ScalarType) and value.dtype is DataType.INDEX


def _mentions_expr(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_mentions_expr(v) for v in value)
    return isinstance(value, Expr)


_FORMS: Final[dict[forms.Form, Callable[[Any, ast.Call], Any]]] = {
    forms.const: CallsMixin._const,
}


OP_HOOKS: Final[dict[str, Callable[[Any, Any, ast.Call], Any]]] = {}
"""Operators, by name, whose call means more than its arguments say."""


def form_value(form: forms.Form) -> Callable[[Any], Any]:
    """Register the handler of a construct that has a value."""

    def register(handler: Any) -> Any:
        _FORMS[form] = handler
        return handler

    return register


_Params = tuple[tuple[Var, ParamDirection], ...]


def _allocated_by_runtime(params: _Params, count: int) -> tuple[_Params, _Params]:
    """The parameters that ``count`` arguments of a submission are for, and the last ones, which it leaves out.

    Contexts of distributed tensors come after those.
    """
    contexts = sum(isinstance(p.type, CommCtxType) for p, _ in params)
    own, rest = params[: len(params) - contexts], params[len(params) - contexts :]
    kept = max(0, min(len(own), count - contexts))
    return (*own[:kept], *rest), own[kept:]
