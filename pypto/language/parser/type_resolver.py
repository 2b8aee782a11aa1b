"""Annotations to types."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from ...dtypes import DataType
from ...errors import ParserError, ParserTypeError
from ...ir import types as T
from ...ir.enums import MemorySpace, ParamDirection, TensorLayout
from ...ir.expr import ConstInt, Expr, index_const, is_integer
from ...ir.memref import MemRef
from ...ir.span import UNKNOWN_SPAN, Span
from ...ir.types import ScalarType, TensorType, TensorView, TileType, TupleType, Type
from .. import annotations as A
from ..dynamic import DynVar
from .expr_evaluator import MISSING, ExprEvaluator
from .type_consistency import check_consistent
from .type_parts import PartsMixin, StatedTileView, last_name

Dim = int | Expr

_OPAQUE: Final[dict[str, Callable[[], Type]]] = {
    "Ptr": T.PtrType,
    "PrefetchAsyncContext": T.PrefetchAsyncContextType,
    "PrefetchAsyncContextType": T.PrefetchAsyncContextType,
    "AsyncEvent": T.AsyncEventType,
    "AsyncEventType": T.AsyncEventType,
    "AsyncSession": T.AsyncSessionType,
    "AsyncSessionType": T.AsyncSessionType,
    "CommCtx": T.CommCtxType,
    "CommCtxType": T.CommCtxType,
    "WindowBuffer": T.WindowBufferType,
    "WindowBufferType": T.WindowBufferType,
    "TaskId": lambda: ScalarType(DataType.TASK_ID),
}
_SHAPED: Final = ("Tensor", "DistributedTensor", "Tile")
_DIRECTIONS: Final = {"Out": ParamDirection.Out, "InOut": ParamDirection.InOut}


class TypeResolver(PartsMixin):
    """Resolves annotation syntax trees.

    ``scope_lookup`` finds kernel variables; ``parse_expression`` parses dimensions that are more than a name.
    """

    def __init__(
        self,
        expr_evaluator: ExprEvaluator | None = None,
        scope_lookup: Callable[[str], Any | None] | None = None,
        span_tracker: Any = None,
        parse_expression: Callable[[ast.expr], Any] | None = None,
        source_lines: Sequence[str] | None = None,
    ) -> None:
        self.evaluator = expr_evaluator or ExprEvaluator({})
        self.scope_lookup = scope_lookup
        self.spans = span_tracker
        self.parse_expression = parse_expression
        self.source_lines = source_lines
        self.bases, self.declarations = {}, {}

    def share_bases(self, bases: dict[str, Any]) -> None:
        """Use ``bases`` for allocations by name, so that all functions of a program mean the same ones."""
        self.bases = bases

    # -- types

    def resolve_type(self, node: ast.expr) -> Any:
        """The type an annotation denotes: a Type, or a list of them for ``tuple[..]``.

        ParserTypeError when it denotes none.
        """
        if isinstance(node, ast.Constant):
            if node.value is None:
                return []
            if isinstance(node.value, str):
                return self.resolve_type(self._from_string(node))
        name = last_name(node.value if isinstance(node, ast.Subscript) else node)
        if isinstance(node, ast.Subscript):
            if name in ("tuple", "Tuple"):
                return self._tuple(node, name)
            if name in _DIRECTIONS:
                return self.resolve_type(node.slice)
            if name in _SHAPED:
                return self._shaped(name, _elements(node.slice), node)
            if name == "Scalar":
                return ScalarType(self.resolve_dtype(node.slice))
            if name == "Array":
                return self._array(_elements(node.slice), node)
        elif isinstance(node, ast.Call) and (called := last_name(node.func)) in (*_SHAPED, "Scalar"):
            if called == "Scalar":
                return ScalarType(self.resolve_dtype(self._sole_argument(node)))
            return self._shaped(called, [*node.args, *(k.value for k in node.keywords)], node)
        elif name in _OPAQUE:
            return _OPAQUE[name]()
        return self._from_value(node)

    def resolve_param_type(self, node: ast.expr) -> tuple[Type, ParamDirection]:
        """A parameter's type and direction."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.resolve_param_type(self._from_string(node))
        direction, inner = direction_of(node)
        made = self.resolve_type(inner)
        if isinstance(made, list):
            self.fail("a parameter has one type, not a tuple of them", node, "declare one parameter for each value")
        if isinstance(made, ScalarType) and direction is ParamDirection.InOut:
            self.fail(
                "Scalar parameters cannot have InOut direction",
                node,
                "return the new value, or pass a one-element pl.InOut[pl.Tensor[[1], ..]]",
            )
        return made, direction

    def _from_string(self, node: ast.Constant) -> ast.expr:
        try:
            inner = ast.parse(str(node.value).strip(), mode="eval").body
        except SyntaxError as error:
            raise ParserTypeError(
                f"annotation {node.value!r} is no expression: {error.msg}", self.span(node)
            ) from error
        for child in ast.walk(inner):
            ast.copy_location(child, node)
        return inner

    def _tuple(self, node: ast.Subscript, name: str) -> Any:
        members = []
        for element in _elements(node.slice):
            if isinstance(element, ast.Subscript) and last_name(element.value) in ("tuple", "Tuple"):
                self.fail("Nested tuple types are not supported", element, "list all values in one tuple")
            members.append(self.resolve_type(element))
        return members if name == "tuple" else TupleType(members)

    def _array(self, parts: list[ast.expr], node: ast.expr) -> Type:
        if len(parts) != 2:
            self.fail("Array requires an extent and a dtype", node, "write pl.Array[16, pl.INT32]")
        extent = self._dim(parts[0], 0)
        if not isinstance(extent, int) or extent <= 0:
            self.fail("an Array has a constant positive extent", parts[0])
        return T.ArrayType(self.resolve_dtype(parts[1]), extent)

    def _shaped(self, kind: str, parts: list[ast.expr], node: ast.expr) -> Type:
        if len(parts) < 2:
            self.fail(
                f"{kind} requires a shape and a dtype",
                node,
                f"write pl.{kind}[[64, 128], pl.FP32]",
            )
        shape = self._to_ir_shape(self._parse_shape(parts[0]))
        dtype = self.resolve_dtype(parts[1])
        more = [
            p for p in parts[2:] if not (kind == "DistributedTensor" and A.is_window_note(getattr(p, "value", None)))
        ]
        extras = [self.resolve_part(kind, p, shape) for p in more]
        return self._build_shaped(kind, shape, dtype, extras, more)

    def _build_shaped(
        self, kind: str, shape: list[Any], dtype: DataType, extras: list[Any], nodes: Sequence[ast.expr]
    ) -> Type:
        found: dict[type, Any] = {}
        for part, node in zip(extras, nodes):
            if type(part) in found:
                self.fail(f"{kind} is given two {type(part).__name__} parts", node)
            found[type(part)] = part
        memref = found.get(MemRef)
        if kind == "Tile":
            space = found.get(MemorySpace)
            if memref is not None and space is None:
                self.fail(
                    "a Tile with a MemRef requires a memory space",
                    nodes[extras.index(memref)],
                    "write pl.Tile[[..], dtype, memref, pl.Mem.Vec]",
                )
            stated = found.get(StatedTileView)
            return TileType(shape, dtype, memref, stated.of(shape, space) if stated is not None else None, space)
        cls = TensorType if kind == "Tensor" else T.DistributedTensorType
        return cls(shape, dtype, memref, found.get(TensorView))

    def _from_value(self, node: ast.expr) -> Any:
        """A bare dtype, or a variable that holds an annotation."""
        name = last_name(node)
        if isinstance(node, (ast.Attribute, ast.Name)):
            if name in (*_SHAPED, "Scalar", "Array", "Tuple"):
                example = {"Scalar": "pl.Scalar[pl.FP32]", "Array": "pl.Array[16, pl.INT32]"}.get(
                    name, f"pl.{name}[[64, 128], pl.FP32]"
                )
                self.fail(f"Incomplete type annotation: {name} requires its parameters", node, f"write {example}")
            if name in DataType.__members__ and not (isinstance(node, ast.Name) and self._closure(name) is not MISSING):
                return ScalarType(DataType[name])
            value = self._python_value(node)
            if isinstance(value, DataType):
                return ScalarType(value)
            made = self._from_annotation(value, node)
            if made is not None:
                return made
        self.fail(
            f"Unknown type annotation '{ast.unparse(node)}'",
            node,
            "annotate with pl.Tensor[[..], dtype], pl.Tile[[..], dtype] or pl.Scalar[dtype]",
        )

    def _from_annotation(self, value: Any, node: ast.expr) -> Any:
        if isinstance(value, Type):
            return value
        if isinstance(value, A._Shaped):
            shape = self._to_ir_shape(self._checked_dims(value.shape, node))
            view = getattr(value, "tensor_view", None) or getattr(value, "tile_view", None)
            extras = [p for p in (value.memref, value.memory_space, view) if p is not None]
            return self._build_shaped(value.kind, shape, value.dtype, extras, [node] * len(extras))
        if isinstance(value, A.Scalar) and isinstance(value.dtype, DataType):
            return ScalarType(value.dtype)
        if isinstance(value, A.Array) and isinstance(value.dtype, DataType):
            return T.ArrayType(value.dtype, value.extent)
        return None

    # -- dtypes and shapes

    def resolve_dtype(self, node: ast.expr) -> DataType:
        """The DataType a node denotes. ParserTypeError when it denotes none."""
        if isinstance(node, ast.Attribute) and node.attr in DataType.__members__:
            return DataType[node.attr]
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found = self._closure(node.value.id)
            if found is MISSING or not hasattr(found, node.attr):
                self._unknown_dtype(node, node.attr)
        if isinstance(node, ast.Name) and self._closure(node.id) is MISSING:
            if node.id in DataType.__members__:
                return DataType[node.id]
            self._unknown_dtype(node, node.id)
        value = self._python_value(node)
        if not isinstance(value, DataType):
            self.fail(f"dtype must be a DataType, got {type(value).__name__}", node, "use a dtype such as pl.FP32")
        return value

    def _unknown_dtype(self, node: ast.expr, name: str) -> NoReturn:
        from difflib import get_close_matches

        close = get_close_matches(name, list(DataType.__members__), 1)
        self.fail(
            f"Unknown dtype '{name}'", node, f"did you mean pl.{close[0]}?" if close else "use pl.FP32, pl.INT32 .."
        )

    def _parse_shape(self, node: ast.expr) -> list[Dim]:
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._dim(e, i) for i, e in enumerate(node.elts)]
        if isinstance(node, ast.Name) and self._closure(node.id) is MISSING:
            self._unknown_shape(node, node.id)
        return self._checked_dims(self._python_value(node), node)

    def _checked_dims(self, value: Any, node: ast.expr) -> list[Dim]:
        if not isinstance(value, (list, tuple)):
            self.fail(f"a shape must be a list or tuple, got {type(value).__name__}", node, "write [64, 128]")
        return [self._checked_dim(v, node, f"shape element {i}") for i, v in enumerate(value)]

    def _dim(self, node: ast.expr, index: int) -> Dim:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return self._checked_dim(node.value, node, "a dimension")
        name = node.id if isinstance(node, ast.Name) else None
        if self.parse_expression is not None:
            value = self._kernel_dim(node, name)
        elif name is not None:
            value = self._closure(name)
            if value is MISSING:
                value = self.scope_lookup(name) if self.scope_lookup is not None else None
                if value is None:
                    self._unknown_shape(node, name)
        else:
            value = self.evaluator.eval_expr(node)
        return self._checked_dim(value, node, f"shape variable '{name}'" if name else "a dimension")

    def _kernel_dim(self, node: ast.expr, name: str | None) -> Any:
        """A dimension inside a kernel. A variable that cannot be one does not hide a Python name that can."""
        found = self.scope_lookup(name) if self.scope_lookup is not None and name is not None else None
        if isinstance(found, Expr) and not is_integer(found):
            outside = self._closure(name or "")
            if outside is not MISSING:
                return outside
        return self.parse_expression(node) if self.parse_expression is not None else None

    def _checked_dim(self, value: Any, node: ast.expr, what: str) -> Dim:
        if isinstance(value, DynVar):
            return value.var
        if isinstance(value, ConstInt):
            value = value.value if value.dtype is DataType.INDEX else value
        if isinstance(value, Expr):
            if is_integer(value):
                return value
        elif isinstance(value, int) and not isinstance(value, bool):
            if value < 0:
                self.fail(f"{what} is {value}: extents are not negative", node)
            return value
        shown = getattr(value, "type", None) if isinstance(value, Expr) else type(value).__name__
        self.fail(f"{what} must be int or pl.dynamic, got {shown}", node)

    def _unknown_shape(self, node: ast.expr, name: str) -> NoReturn:
        self.fail(
            f"Unknown shape variable '{name}'",
            node,
            f"define it outside the kernel: {name} = 64, or pl.dynamic({name!r})",
        )

    def _to_ir_shape(self, shape: Sequence[Dim]) -> list[Any]:
        """Plain ints while all are, else expressions throughout."""
        if all(isinstance(d, int) for d in shape):
            return list(shape)
        return [index_const(d) if isinstance(d, int) else d for d in shape]

    def validate_annotation_consistency(
        self, annotated: Type, inferred: Type, name: str = "", node: Any = None
    ) -> None:
        """ParserTypeError when the annotation of ``name`` contradicts the type of the value."""
        span = node if isinstance(node, Span) else self.span(node) if node is not None else UNKNOWN_SPAN
        check_consistent(annotated, inferred, span, self.source_lines, f"Type annotation of '{name}'")

    # -- helpers

    def fail(self, message: str, node: ast.AST, hint: str | None = None) -> NoReturn:
        raise ParserTypeError(message, self.span(node), hint, source_lines=self.source_lines)

    def span(self, node: ast.AST) -> Span:
        return self.spans.get_span(node) if self.spans is not None else UNKNOWN_SPAN

    def _closure(self, name: str) -> Any:
        return self.evaluator.lookup(name)

    def _python_value(self, node: ast.expr) -> Any:
        if self.parse_expression is not None:
            try:
                return self.parse_expression(node)
            except ParserTypeError:
                raise
            except ParserError as error:
                raise ParserTypeError(
                    error.message, self.span(node), error.hint, source_lines=self.source_lines
                ) from error
        return self.evaluator.eval_expr(node)

    def _sole_argument(self, node: ast.Call) -> ast.expr:
        values = [*node.args, *(k.value for k in node.keywords)]
        if len(values) != 1:
            self.fail("Scalar requires one dtype", node, "write pl.Scalar[pl.FP32]")
        return values[0]


def direction_of(annotation: ast.expr) -> tuple[ParamDirection, ast.expr]:
    """The direction an annotation states, and what is inside ``pl.Out[..]`` or ``pl.InOut[..]``."""
    if isinstance(annotation, ast.Subscript) and (name := last_name(annotation.value)) in _DIRECTIONS:
        return _DIRECTIONS[name], annotation.slice
    return ParamDirection.In, annotation


def _elements(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


__all__ = ["TensorLayout", "TypeResolver", "direction_of"]
