"""From a function without shapes to `ir.Function`, for the arguments of one call."""

from __future__ import annotations

import ast
import copy
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ..dtypes import DataType
from ..errors import ParserTypeError, UnsupportedFeatureError
from ..ir.enums import FunctionType, ParamDirection, TensorLayout
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr, Var, index_const
from ..ir.naming import free_name
from ..ir.program import Function, Program
from ..ir.stmt import ReturnStmt
from ..ir.types import DistributedTensorType, ScalarType, TensorType, TensorView, Type
from ..language.dynamic import DynVar
from ..language.parser.function_parser import FunctionParser
from ..language.parser.program_parser import closure_of_calls, record_externals
from ..language.parser.signatures import returned_types
from ..language.parser.type_parts import last_name
from ..language.parser.type_resolver import direction_of

if TYPE_CHECKING:
    from .decorator import JITFunction

_TENSORS: Final = {"Tensor": TensorType, "DistributedTensor": DistributedTensorType}


@dataclass(frozen=True)
class TensorMeta:
    """What a call fixes of a tensor: extents (a `DynVar` where each run decides), dtype, layout if not row-major."""

    shape: tuple[int | DynVar, ...]
    dtype: DataType
    layout: TensorLayout | None = None

    def as_type(self, cls: type = TensorType) -> Type:
        """The tensor type of these extents."""
        dims = [d.var if isinstance(d, DynVar) else index_const(d) for d in self.shape]
        view = None if self.layout is None else TensorView((), self.layout)
        return cls(dims, self.dtype, None, view)


class DynamicDims:
    """Dimensions of a function's parameters that each run decides, by parameter and axis.

    They come from ``x.bind_dynamic(axis, M)``, and from the functions a parameter is handed to unchanged.
    """

    def __init__(self, function: JITFunction) -> None:
        self.by_param: dict[str, dict[int, DynVar]] = {}
        self.names: dict[str, DynVar] = {}
        """``M`` of ``M = pl.dynamic("M")`` in the body."""
        self._function = function
        self.body = _by_name([s for s in function.node.body if not self._is_declaration(s)], function)

    def _is_declaration(self, stmt: ast.stmt) -> bool:
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
            made = self._dynamic(stmt.value)
            if made is not None:
                self.names[stmt.targets[0].id] = made
                return True
        call = stmt.value if isinstance(stmt, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        owner = call.func.value
        if call.func.attr != "bind_dynamic" or not isinstance(owner, ast.Name):
            return False
        self._bind(owner.id, call)
        return True

    def _dynamic(self, value: ast.expr) -> DynVar | None:
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "dynamic":
            return None
        found, made = self._function.evaluate(value)
        return made if found and isinstance(made, DynVar) else None

    def _bind(self, param: str, call: ast.Call) -> None:
        axis = call.args[0] if len(call.args) == 2 else None
        which = call.args[1] if len(call.args) == 2 else None
        dim = self.names.get(which.id) if isinstance(which, ast.Name) else None
        if dim is None and which is not None:
            made = self._function.evaluate(which)[1]
            dim = made if isinstance(made, DynVar) else None
        at = self._function.evaluate(axis)[1] if axis is not None else None
        if dim is None or not isinstance(at, int) or param not in self._function.parameters:
            self._function.fail(
                f"{ast.unparse(call)} names no dimension of a parameter",
                call,
                "write x.bind_dynamic(0, M) with a parameter x, a constant axis and M = pl.dynamic('M')",
            )
        self.by_param.setdefault(param, {})[at] = dim

    def of(self, param: str) -> Mapping[int, DynVar]:
        """The dimensions of ``param``, those its uses declare included."""
        found = dict(self.by_param.get(param, {}))
        for callee, name in self._function.handed_on.get(param, ()):
            for axis, dim in callee.declared_dims(name).items():
                found.setdefault(axis, dim)
        return found


def _by_name(body: list[ast.stmt], function: JITFunction) -> list[ast.stmt]:
    """``body`` with ``kernel`` for ``self.kernel``, as launches of the functions around may be written."""
    own = {a.arg for a in ast.walk(function.node.args) if isinstance(a, ast.arg)}
    if "self" in own or not any(isinstance(n, ast.Name) and n.id == "self" for s in body for n in ast.walk(s)):
        return body
    named = _Named(function.closure)
    return [named.visit(copy.deepcopy(s)) for s in body]


class _Named(ast.NodeTransformer):
    def __init__(self, around: Mapping[str, Any]) -> None:
        self._around = around

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in self._around:
            return ast.copy_location(ast.Name(node.attr, ast.Load()), node)
        return node


class _Names(Mapping[str, Any]):
    """Names of the body, then those around the function."""

    def __init__(self, own: Mapping[str, Any], around: Mapping[str, Any]) -> None:
        self._own, self._around = own, around

    def __getitem__(self, key: str) -> Any:
        return self._own[key] if key in self._own else self._around[key]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._own), **dict.fromkeys(self._around)})

    def __len__(self) -> int:
        return sum(1 for _ in self)


class SpecializingParser(FunctionParser):
    """Parses a `JITFunction` with the parameter types and compile-time values of one call."""

    infers_results = True

    def __init__(self, function: JITFunction, types: Mapping[str, Type], constants: Mapping[str, Any]) -> None:
        dims = function.dims
        node = ast.copy_location(
            ast.FunctionDef(
                name=function.node.name,
                args=function.node.args,
                body=dims.body or [ast.copy_location(ast.Pass(), function.node)],
                decorator_list=[],
                returns=None if is_bare(function.node.returns) else function.node.returns,
                type_comment=None,
            ),
            function.node,
        )
        super().__init__(function.source, node, _Names(dims.names, function.closure), function.options)
        self.jit, self.given, self.constants = function, types, constants

    def parse_signature(self) -> None:
        args = self.node.args
        plain = ast.arguments([], list(args.args), args.vararg, list(args.kwonlyargs), [], args.kwarg, [])
        self.node.args = plain
        super().parse_signature()

    def _param(self, param: ast.arg) -> None:
        name = param.arg
        direction, made = self._declared(param)
        var = Var(name, made, self.span(param))
        self.params.append((var, direction))
        self.scopes.define_var(name, var, span=self.span(param))
        if name in self.constants and name not in self._stored:
            self.scopes.define_var(name, self.constants[name], allow_redef=True)

    def check_reassign(self, name: str, old: Type, new: Type, node: ast.AST, crossing: bool) -> None:
        """Where a name was assigned before in the same block, it may come to stand for a value of another type."""
        if crossing:
            super().check_reassign(name, old, new, node, crossing)

    @cached_property
    def _stored(self) -> set[str]:
        """Names the body assigns to."""
        found = (n for stmt in self.node.body for n in ast.walk(stmt) if isinstance(n, ast.Name))
        return {n.id for n in found if isinstance(n.ctx, ast.Store)}

    def _declared(self, param: ast.arg) -> tuple[ParamDirection, Type]:
        given = self.given[param.arg]
        if param.annotation is None:
            return ParamDirection.In, given
        direction, inner = direction_of(param.annotation)
        if self.options.type is FunctionType.Inline:
            direction = ParamDirection.In
        if is_bare(inner) or not isinstance(given, TensorType):
            return direction, given
        wanted, _ = self.types.resolve_param_type(inner)
        if not isinstance(wanted, TensorType):
            return direction, given
        return direction, self._merged(param, wanted, given)

    def _merged(self, param: ast.arg, wanted: TensorType, given: TensorType) -> Type:
        """The annotation, where it fits the argument; dimensions that each run decides stay open."""
        dims, actual = list(wanted.shape), list(given.shape)
        fits = len(dims) == len(actual) and wanted.dtype is given.dtype
        for i, (dim, got) in enumerate(zip(dims, actual)):
            if isinstance(dim, ConstInt) and isinstance(got, ConstInt):
                fits = fits and dim.value == got.value
            elif isinstance(dim, ConstInt):
                dims[i] = got
        if not fits:
            self.fail(
                ParserTypeError,
                f"argument '{param.arg}' of '{self.node.name}' is {_text(given)}, the parameter {_text(wanted)}",
                param,
                "pass an array of the declared shape and dtype, or write a bare pl.Tensor",
            )
        return type(wanted)(dims, wanted.dtype, None, wanted.tensor_view)


def _text(t: TensorType) -> str:
    return f"[{', '.join(str(getattr(d, 'value', d)) for d in t.shape)}] {t.dtype}"


def is_bare(annotation: ast.expr | None) -> bool:
    """Whether an annotation says that there are tensors, and nothing of them."""
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) in ("tuple", "Tuple"):
        members = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        return any(is_bare(m) for m in members)
    return last_name(annotation) in _TENSORS


def specialize(
    function: JITFunction,
    types: Mapping[str, Type],
    constants: Mapping[str, Any],
    made: dict[Any, Function],
) -> Function:
    """``function`` for these parameter types and compile-time values; ``made`` holds those of the program so far."""
    key = function, key_of(types, constants)
    if key in made:
        found = made[key]
        if found is _BEING_MADE:
            function.fail(f"'{function.name}' calls itself", function.node, "kernels cannot recurse: write a loop",
                          UnsupportedFeatureError)  # fmt: skip
        return found
    made[key] = _BEING_MADE
    parsed, called = function.parsed(types, constants, made)
    taken = {f.name for f in made.values() if f is not _BEING_MADE}
    parsed = parsed.replace(name=free_name(parsed.name, taken))
    record_externals(parsed, called)
    made[key] = parsed
    return parsed


def parse(
    function: JITFunction, types: Mapping[str, Type], constants: Mapping[str, Any], made: dict[Any, Function]
) -> tuple[Function, Iterable[Function]]:
    """The function for these types and values, and those it calls."""
    parser = SpecializingParser(function, types, constants)
    parser.specialized = made
    parsed = parser.parse()
    if parser.node.returns is None:
        parsed = parsed.replace(return_types=returned_types(parsed))
    return parsed, parser.externals.values()


_BEING_MADE: Final = Function("", [], [], ReturnStmt([]))


def key_of(types: Mapping[str, Type], constants: Mapping[str, Any]) -> Hashable:
    """What tells the arguments of one specialization from those of another; 0.0, -0.0 and 0 are three numbers."""
    return tuple((p, _type_key(t)) for p, t in types.items()), tuple((p, repr(v)) for p, v in constants.items())


def _type_key(t: Type) -> Hashable:
    if isinstance(t, TensorType):
        dims = tuple(d.value if isinstance(d, ConstInt) else d for d in t.shape)
        return type(t).__name__, dims, t.dtype, t.layout
    return type(t).__name__, str(t)


def program_of(function: JITFunction, types: Mapping[str, Type], constants: Mapping[str, Any]) -> Program:
    """The program of ``function`` and everything it calls; functions come before those that call them."""
    entry = specialize(function, types, constants, {})
    return Program(closure_of_calls([entry])[::-1], entry.name, entry.span)


def constant_of(value: Any) -> Any:
    """The Python number of a constant argument; None for what only a run decides."""
    if isinstance(value, (ConstInt, ConstFloat, ConstBool)):
        return value.value
    return value if isinstance(value, (bool, int, float)) else None


def parameter_type(name: str, value: Expr, known: set[Var]) -> Type:
    """The type a parameter takes from an argument: its extents, without the window it may be of another tensor.

    ``known`` are the caller's own dimensions, which the callee shares; other extents become dimensions of its own.
    """
    t = value.type
    if not isinstance(t, TensorType):
        return t
    dims: list[Expr] = []
    for axis, dim in enumerate(t.shape):
        if isinstance(dim, ConstInt) or (isinstance(dim, Var) and dim in known):
            dims.append(dim)
        else:
            dims.append(DynVar(dim.name_hint if isinstance(dim, Var) else f"{name}_dim{axis}").var)
    view = None if t.layout is TensorLayout.ND else TensorView((), t.layout)
    return type(t)(dims, t.dtype, None, view)


def number_type(value: Any) -> ScalarType:
    """The type of a number without annotation; one that each run gives is an index."""
    if isinstance(value, bool):
        return ScalarType(DataType.BOOL)
    return ScalarType(DataType.FP32 if isinstance(value, float) else DataType.INDEX)
