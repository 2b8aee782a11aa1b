"""Rules about types."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from ...dtypes import DataType
from ...ir.expr import Call, Expr, Var, const_value
from ...ir.node import NodeList
from ...ir.program import Function, is_incore_type
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt, YieldStmt
from ...ir.types import (
    DistributedTensorType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
    implicit_layout,
    implicit_view,
)
from ...ops.rules import all_same
from .driver import Rule
from .ssa import last_stmt
from .valid_shapes import findings, has_view


class TypeCheckErrorType(Enum):
    """What `TypeChecked` finds."""

    TYPE_KIND_MISMATCH = 101
    DTYPE_MISMATCH = 102
    SHAPE_DIMENSION_MISMATCH = 103
    SHAPE_VALUE_MISMATCH = 104
    SIZE_MISMATCH = 105
    IF_CONDITION_MUST_BE_SCALAR = 106
    FOR_RANGE_MUST_BE_SCALAR = 107
    CONDITION_MUST_BE_BOOL = 108
    TENSOR_PADDING_MISMATCH = 109
    DISTRIBUTED_WINDOW_IDENTITY_MISMATCH = 110
    TILE_VIEW_MISMATCH = 111


E = TypeCheckErrorType


def _same_extent(a: Expr, b: Expr) -> bool | None:
    """Whether two extents are equal; None when that depends on run-time values."""
    if a is b:
        return True
    x, y = const_value(a), const_value(b)
    if x is not None and y is not None:
        return x == y
    from ...ir.structural import structural_equal

    return True if structural_equal(a, b) else None


class TypeChecked(Rule):
    """Conditions are booleans, ranges scalars, a carried value has one type all along, valid regions lie inside."""

    name = "TypeCheck"
    expressions = True

    def enter_function(self, function: Function) -> None:
        self._checked: set[int] = set()
        for i, type in enumerate(function.return_types):
            self._check_region(type, f"Function '{function.name}' return type[{i}]", function)

    def define(self, var: Var) -> None:
        self._check_region(var.type, f"{type(var).__name__} '{var.name_hint}'", var)

    def visit_call(self, op: Call) -> None:
        self._check_region(op.type, "Call result", op)

    def _check_region(self, type: Type, where: str, op: Any) -> None:
        """Valid regions of ``type``. A type that several variables share is reported for the first of them."""
        if id(type) in self._checked or not has_view(type):
            return
        self._checked.add(id(type))
        for found in findings(type, where):
            code = E.SHAPE_DIMENSION_MISMATCH if found.is_rank else E.SHAPE_VALUE_MISMATCH
            self._report(code, f"{found.where} has invalid {found.message}", op)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self._check_condition(op, "IfStmt")
        if not op.return_vars or op.else_body is None:
            return
        here, there = last_stmt(op.then_body), last_stmt(op.else_body)
        if not isinstance(here, YieldStmt) or not isinstance(there, YieldStmt):
            return
        if not len(here.values) == len(there.values) == len(op.return_vars):
            self._report_sizes(op, "IfStmt", "then yield", here.values, "else yield", there.values)
            return
        for i, (a, b, var) in enumerate(zip(here.values, there.values, op.return_vars)):
            names = (f"else yield value[{i}]", f"then yield value[{i}]", f"return_var[{i}]")
            self._check_carriers(op, "IfStmt", names, (b, a, var))

    def visit_for_stmt(self, op: ForStmt) -> None:
        for what in ("start", "stop", "step"):
            bound: Expr = getattr(op, what)
            if not isinstance(bound.type, ScalarType):
                self._report(E.FOR_RANGE_MUST_BE_SCALAR, f"ForStmt {what} must be a scalar, not {bound.type}", op)
        self._check_loop(op, "ForStmt")

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._check_condition(op, "WhileStmt")
        self._check_loop(op, "WhileStmt")

    def _check_condition(self, op: IfStmt | WhileStmt, what: str) -> None:
        type = op.condition.type
        if not isinstance(type, ScalarType):
            self._report(E.IF_CONDITION_MUST_BE_SCALAR, f"{what} condition must be a scalar, not {type}", op)
        elif type.dtype is not DataType.BOOL:
            self._report(
                E.CONDITION_MUST_BE_BOOL, f"{what} condition dtype must be BOOL, not {type.dtype.name}", op
            )

    def _check_loop(self, op: ForStmt | WhileStmt, what: str) -> None:
        last = last_stmt(op.body)
        if not op.iter_args:
            return
        if not isinstance(last, YieldStmt):
            return
        if not len(op.iter_args) == len(last.values) == len(op.return_vars):
            self._report_sizes(op, what, "iter_args", op.iter_args, "yield", last.values)
            return
        for i, (arg, value, var) in enumerate(zip(op.iter_args, last.values, op.return_vars)):
            names = (f"initValue of iter_arg[{i}]", f"declared iter_arg[{i}]", f"yield value[{i}]", f"return_var[{i}]")
            self._check_carriers(op, what, names, (arg.init_value, arg, value, var))

    def _check_carriers(self, op: Any, what: str, names: Sequence[str], values: Sequence[Expr]) -> None:
        """Neighbours must agree; one finding for each chain."""
        for (name_a, a), (name_b, b) in zip(zip(names, values), zip(names[1:], values[1:])):
            found = _type_difference(a.type, b.type)
            if found is not None:
                code, text, detail = found
                self._report(code, f"{text} mismatch in {what}: {name_a} and {name_b} differ: {detail}", op)
                return

    def _report_sizes(self, op: Any, what: str, name_a: str, a: NodeList, name_b: str, b: NodeList) -> None:
        self._report(E.SIZE_MISMATCH, f"size mismatch in {what}: {name_a} {len(a)}, {name_b} {len(b)}", op)

    def _report(self, code: TypeCheckErrorType, message: str, op: Any) -> None:
        self.report(message, op.span, code.value)


_Difference = tuple[TypeCheckErrorType, str, str]


def _type_difference(a: Type, b: Type) -> _Difference | None:
    """The first way two types of one carried value differ: error code, what, detail."""
    if a is b or isinstance(a, UnknownType) or isinstance(b, UnknownType):
        return None
    if type(a) is not type(b):
        return E.TYPE_KIND_MISMATCH, "Type kind", f"{type(a).__name__} and {type(b).__name__}"
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if len(a.types) != len(b.types):
            return E.SIZE_MISMATCH, "Tuple size", f"{len(a.types)} and {len(b.types)}"
        return next(filter(None, map(_type_difference, a.types, b.types)), None)
    dtypes = getattr(a, "dtype", None), getattr(b, "dtype", None)
    if dtypes[0] is not dtypes[1]:
        return E.DTYPE_MISMATCH, "Dtype", f"{_name(dtypes[0])} and {_name(dtypes[1])}"
    if not isinstance(a, ShapedType) or not isinstance(b, ShapedType):
        return None
    if len(a.shape) != len(b.shape):
        return E.SHAPE_DIMENSION_MISMATCH, "Shape rank", f"{len(a.shape)} and {len(b.shape)} dimensions"
    found = _extent_difference("Shape dimension", a.shape, b.shape)
    return found or _view_difference(a, b)


def _name(dtype: Any) -> str:
    return getattr(dtype, "name", str(dtype))


def _extent_difference(what: str, a: Sequence[Expr], b: Sequence[Expr]) -> _Difference | None:
    for i, (x, y) in enumerate(zip(a, b)):
        same = _same_extent(x, y)
        if same is False:
            return E.SHAPE_VALUE_MISMATCH, what, f"{const_value(x)} and {const_value(y)} in dimension {i}"
        if same is None:
            return (
                E.SHAPE_VALUE_MISMATCH,
                what,
                f"in dimension {i}, equality is not provable and there is no runtime guard",
            )
    return None


def _is_implied(tile: TileType) -> bool:
    """Whether a tile lies as tiles in its memory do."""
    view = tile.get_effective_tile_view()
    return (view.blayout, view.slayout, view.fractal) == implicit_layout(tile.shape, tile.memory_space) and (
        not view.stride and view.start_offset is None
    )


def _view_difference(a: ShapedType, b: ShapedType) -> _Difference | None:
    if isinstance(a, (TensorType, TileType)) and isinstance(b, (TensorType, TileType)):
        found = _extent_difference("Valid shape dimension", a.valid_shape, b.valid_shape)
        if found is not None:
            return found
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        pads = [t.tensor_view.pad if t.tensor_view is not None else None for t in (a, b)]
        null = [p for p in pads if p is not None and p.name != "null"]
        if null and pads[0] is not pads[1]:
            return E.TENSOR_PADDING_MISMATCH, "Tensor padding", " and ".join(str(p) for p in pads)
        windows = [t.window_buffer if isinstance(t, DistributedTensorType) else None for t in (a, b)]
        if windows[0] is not windows[1]:
            what = "Distributed window-buffer identity"
            return E.DISTRIBUTED_WINDOW_IDENTITY_MISMATCH, what, "they lie in different windows"
    if isinstance(a, TileType) and isinstance(b, TileType):
        left, right = a.get_effective_tile_view(), b.get_effective_tile_view()
        if a.memory_space is not b.memory_space and _is_implied(a) and _is_implied(b):
            return None  # InferTileMemorySpace gives both one memory, and the layout of that
        # Valid extents are compared above, and may be equal without being the same expression. A whole tile has no
        # cells that padding could be about.
        pad = right.pad if all_same(a.valid_shape, a.shape) else left.pad
        if left.replace(valid_shape=right.valid_shape, pad=pad) != right:
            return E.TILE_VIEW_MISMATCH, "Tile view metadata", "layout, stride, padding or start differ"
    return None


class AssignTypeSymmetry(Rule):
    """A variable has the type of the value assigned to it, allocations aside."""

    name = "AssignTypeSymmetry"

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        declared, actual = op.var.type, op.value.type
        if declared is actual or isinstance(actual, UnknownType):
            return
        if _without_memref(declared) != _without_memref(actual):
            spaces = [getattr(t, "memory_space", None) for t in (declared, actual)]
            what = "memory_space" if spaces[0] is not spaces[1] else "type"
            self.report(
                f"'{op.var.name_hint}' and the value assigned to it differ in {what}: {declared} and {actual}", op.span
            )


def _without_memref(type: Type) -> Type:
    if isinstance(type, TupleType):
        return TupleType([_without_memref(t) for t in type.types])
    return type.replace(memref=None) if getattr(type, "memref", None) is not None else type


class _TileTypes(Rule):
    """Looks at the type of every tile a function defines."""

    def define(self, var: Var) -> None:
        if isinstance(var.type, TileType):
            self.check_tile(var, var.type)

    def check_tile(self, var: Var, type: TileType) -> None:
        """Check one tile."""


class TileTypeCoherence(_TileTypes):
    """A tile type states no view its shape and memory imply."""

    name = "TileTypeCoherence"

    def check_tile(self, var: Var, type: TileType) -> None:
        view = type.tile_view
        if view is not None and view == implicit_view(type.shape, type.memory_space):
            self.report(f"Tile '{var.name_hint}' states the view it has anyway", var.span)


class TileOps2D(_TileTypes):
    """InCore functions have tiles of at most two dimensions."""

    name = "TileOps2D"

    def enter_function(self, function: Function) -> None:
        self._incore = is_incore_type(function.func_type)

    def check_tile(self, var: Var, type: TileType) -> None:
        if self._incore and len(type.shape) > 2:
            self.report(f"Tile '{var.name_hint}' has {len(type.shape)} dimensions", var.span)
