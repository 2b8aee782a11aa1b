"""Scalar expressions from operands of mixed dtypes: promotion and construction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..errors import KernelValueError
from . import expr as E
from .expr import BinaryExpr, Cast, ConstBool, ConstFloat, ConstInt, Expr, UnaryExpr
from .span import UNKNOWN_SPAN, Span
from .types import ScalarType


def scalar_const(value: bool | int | float, like: DataType | None, span: Span = UNKNOWN_SPAN) -> Expr:
    """A constant for a Python number, in ``like`` where it can hold such numbers. Raises ValueError out of range."""
    if isinstance(value, bool):
        return ConstBool(value, span)
    if isinstance(value, int):
        if like is not None and like.is_float():
            return ConstFloat(float(value), like, span)
        if like is None or like is DataType.BOOL or like is DataType.INT64:
            like = DataType.INDEX
        low, high = like.int_range()
        if not low <= value <= high:
            raise KernelValueError(f"{value} does not fit {like}: it holds {low} to {high}", span)
        return ConstInt(value, like, span)
    if isinstance(value, float):
        return ConstFloat(value, like if like is not None and like.is_float() else DataType.FP32, span)
    raise TypeError(f"expected a number or a scalar expression, got {type(value).__name__}")


def scalar_dtype(value: Expr) -> DataType:
    """The dtype of a scalar expression; TypeError for anything else."""
    if not isinstance(value.type, ScalarType):
        raise TypeError(f"scalar arithmetic needs ScalarType operands, got {value.type}")
    return value.type.dtype


def promote(a: DataType, b: DataType) -> DataType:
    """The dtype two scalars meet in: floating point before integer, then the wider, then INDEX, then signed."""
    if a is b:
        return a
    if a.is_float() != b.is_float():
        return a if a.is_float() else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if DataType.INDEX in (a, b):
        return DataType.INDEX
    return b if a.is_unsigned_int() else a


def binary(cls: type[BinaryExpr], left: Expr, right: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``cls`` of two scalars: operands are cast to their common dtype, comparisons yield BOOL."""
    if cls in E.LOGICAL:
        return cls(left, right, DataType.BOOL, span)
    common = meeting(left, right)
    if cls is E.FloatDiv and not common.is_float():
        common = DataType.FP32
    _check_bits(cls, common)
    left, right = cast_scalar(left, common, span), cast_scalar(right, common, span)
    result = DataType.BOOL if cls in E.COMPARISONS else common
    return cls(left, right, result, span)


_BITWISE = frozenset({E.BitAnd, E.BitOr, E.BitXor, E.BitShiftLeft, E.BitShiftRight, E.BitNot})


def _check_bits(cls: type[Expr], dtype: DataType) -> None:
    """Raise TypeError for a bit operation on floating point."""
    if cls in _BITWISE and dtype.is_float():
        raise TypeError(f"{cls.__name__} requires integer dtype, got {dtype}")


def meeting(left: Expr, right: Expr) -> DataType:
    """The dtype in which an operator sees its two operands."""
    a, b = scalar_dtype(left), scalar_dtype(right)
    return a if _is_bare(right, a) else b if _is_bare(left, b) else promote(a, b)


def _is_bare(value: Expr, other: DataType) -> bool:
    """Whether ``value`` is an integer literal beside an INT64, which it then is too."""
    return other is DataType.INT64 and isinstance(value, ConstInt) and value.dtype is DataType.INDEX


def cast_scalar(value: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> Expr:
    """``value`` in ``dtype``. INDEX and INT64 are one representation and are never cast into each other."""
    have = scalar_dtype(value)
    if have is dtype or {have, dtype} == {DataType.INDEX, DataType.INT64}:
        return value
    if isinstance(value, ConstInt) and have is DataType.INDEX:
        return scalar_const(value.value, dtype, value.span)
    return Cast(value, dtype, span)


def unary(cls: type[UnaryExpr], operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``cls`` of one scalar."""
    dtype = scalar_dtype(operand)
    _check_bits(cls, dtype)
    return cls(operand, DataType.BOOL if cls is E.Not else dtype, span)


def build_scalar(name: str, operands: Sequence[Any], span: Span) -> Expr:
    """The expression class ``name`` of operands of which at least one is an expression."""
    like = next(scalar_dtype(o) for o in operands if isinstance(o, Expr))
    made = [o if isinstance(o, Expr) else scalar_const(o, like, span) for o in operands]
    cls = getattr(E, name)
    return unary(cls, made[0], span) if len(made) == 1 else binary(cls, made[0], made[1], span)


def _operands(a: Expr | int | float, b: Expr | int | float, span: Span) -> tuple[Expr, Expr]:
    like = next((scalar_dtype(v) for v in (a, b) if isinstance(v, Expr)), None)
    left, right = (v if isinstance(v, Expr) else scalar_const(v, like, span) for v in (a, b))
    return left, right


def _two(cls: Any, name: str) -> Any:
    def build(left: Expr | int | float, right: Expr | int | float, span: Span | None = None) -> Expr:
        at = span or Span.here()
        return binary(cls, *_operands(left, right, at), at)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"`{cls.__name__}` of two scalars, promoted to their common dtype."
    return build


def _one(cls: Any, name: str) -> Any:
    def build(operand: Expr, span: Span | None = None) -> Expr:
        return unary(cls, operand, span or Span.here())

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"`{cls.__name__}` of a scalar."
    return build


FUNCTIONS: dict[str, Any] = {
    **{name: _two(cls, name) for name, cls in (
        ("add", E.Add), ("sub", E.Sub), ("mul", E.Mul), ("truediv", E.FloatDiv), ("floordiv", E.FloorDiv),
        ("mod", E.FloorMod), ("pow", E.Pow), ("min_", E.Min), ("max_", E.Max), ("eq", E.Eq), ("ne", E.Ne),
        ("lt", E.Lt), ("le", E.Le), ("gt", E.Gt), ("ge", E.Ge), ("and_", E.And), ("or_", E.Or), ("xor", E.Xor),
        ("bit_and", E.BitAnd), ("bit_or", E.BitOr), ("bit_xor", E.BitXor), ("bit_shift_left", E.BitShiftLeft),
        ("bit_shift_right", E.BitShiftRight),
    )},
    **{name: _one(cls, name) for name, cls in (
        ("neg", E.Neg), ("abs_", E.Abs), ("not_", E.Not), ("bit_not", E.BitNot),
    )},
}  # fmt: skip
"""Scalar expressions by function name, as ``ir.add`` and so on offer them."""


def cast(operand: Expr, dtype: DataType, span: Span | None = None) -> Expr:
    """``operand`` converted to ``dtype``, always as a `Cast`."""
    scalar_dtype(operand)
    return Cast(operand, dtype, span or Span.here())
