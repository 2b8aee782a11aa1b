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
    """The dtype elements of two meet in: floating point before integer, then the wider, then INDEX, then signed."""
    if a is b:
        return a
    if a.is_float() != b.is_float():
        return a if a.is_float() else b
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    if DataType.INDEX in (a, b):
        return DataType.INDEX
    return b if a.is_unsigned_int() else a


def meet(a: DataType, b: DataType) -> DataType:
    """The dtype two scalars meet in: `promote`, and wider where that would not hold the values of both.

    Raises TypeError where no dtype does: a signed integer and UINT64.
    """
    if a is not b and a.is_float() and b.is_float() and a.bits == b.bits:
        return DataType.FP32
    unsigned, signed = (a, b) if a.is_unsigned_int() else (b, a)
    if not (unsigned.is_unsigned_int() and signed.is_signed_int()) or signed.bits > unsigned.bits:
        return promote(a, b)
    if unsigned.bits == 64:
        hint = f"cast one of them: pl.cast(x, pl.{unsigned.name})"
        raise TypeError(f"no dtype holds the values of both {a} and {b}\n  hint: {hint}")
    return _SIGNED[unsigned.bits * 2]


_SIGNED = {16: DataType.INT16, 32: DataType.INT32, 64: DataType.INT64}


def truth(value: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """Whether a scalar counts as true: what is not zero does."""
    dtype = scalar_dtype(value)
    return value if dtype is DataType.BOOL else E.Ne(value, scalar_const(0, dtype, span), DataType.BOOL, span)


def binary(cls: type[BinaryExpr], left: Expr, right: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``cls`` of two scalars: operands are cast to their common dtype, comparisons yield BOOL."""
    if cls in E.LOGICAL:
        return cls(truth(left, span), truth(right, span), DataType.BOOL, span)
    common = meeting(left, right)
    if cls is E.FloatDiv and not common.is_float():
        common = DataType.FP32
    if common is DataType.BOOL and cls not in _ON_BOOLS:
        common = DataType.INDEX
    _check_bits(cls, common)
    left, right = cast_scalar(left, common, span), cast_scalar(right, common, span)
    result = DataType.BOOL if cls in E.COMPARISONS else common
    return cls(left, right, result, span)


def alternatives(left: Expr, right: Expr, span: Span = UNKNOWN_SPAN) -> tuple[Expr, Expr]:
    """Two scalars of which one is chosen, in one dtype. Raises TypeError where none holds the values of both."""
    a, b = scalar_dtype(left), scalar_dtype(right)
    if isinstance(right, ConstInt) and _is_bare(right, a):
        return left, ConstInt(right.value, a, right.span)
    if isinstance(left, ConstInt) and _is_bare(left, b):
        return ConstInt(left.value, b, left.span), right
    if {a, b} == {DataType.INDEX, DataType.INT64}:
        raise TypeError(
            "a choice between INT64 and INDEX needs values of one dtype\n  hint: write an if / else statement"
        )
    common = meet(a, b)
    return cast_scalar(left, common, span), cast_scalar(right, common, span)


_BITWISE = frozenset({E.BitAnd, E.BitOr, E.BitXor, E.BitShiftLeft, E.BitShiftRight, E.BitNot})
_ON_BOOLS = frozenset({E.Eq, E.Ne, E.BitAnd, E.BitOr, E.BitXor})
"""What is the same of truth values as of the integers 0 and 1; anything else counts them."""


def _check_bits(cls: type[Expr], dtype: DataType) -> None:
    """Raise TypeError for a bit operation on floating point."""
    if cls in _BITWISE and dtype.is_float():
        raise TypeError(f"{cls.__name__} requires integer dtype, got {dtype}")


def meeting(left: Expr, right: Expr) -> DataType:
    """The dtype in which an operator sees its two operands."""
    a, b = scalar_dtype(left), scalar_dtype(right)
    return a if _is_bare(right, a) else b if _is_bare(left, b) else meet(a, b)


def is_total(value: Expr) -> bool:
    """Whether a scalar has a value whatever its variables hold, so that it may be computed where it is not needed."""
    if isinstance(value, BinaryExpr):
        divides = isinstance(value, (E.FloorDiv, E.FloorMod)) and value.right.dtype.is_int()
        if divides and not (isinstance(value.right, ConstInt) and value.right.value not in (0, -1)):
            return False
        shifts = isinstance(value, (E.BitShiftLeft, E.BitShiftRight))
        if shifts and not (isinstance(value.right, ConstInt) and 0 <= value.right.value < value.dtype.bits):
            return False
        return is_total(value.left) and is_total(value.right)
    if isinstance(value, UnaryExpr):
        return is_total(value.operand) and not (isinstance(value, Cast) and _truncates(value))
    return isinstance(value, (E.Var, ConstInt, ConstFloat, ConstBool))


def _truncates(cast: UnaryExpr) -> bool:
    return cast.operand.dtype.is_float() and not cast.dtype.is_float()


def _check_computable(name: str, operands: Sequence[Any]) -> None:
    """Raise TypeError for an operation whose meaning in Python no core computes."""
    floats = [isinstance(o, float) or (isinstance(o, Expr) and scalar_dtype(o).is_float()) for o in operands]
    if name in ("FloorDiv", "FloorMod") and any(floats):
        symbol = getattr(E, name).symbol
        raise TypeError(
            f"operator '{symbol}' needs integers, got floating point\n"
            "  hint: cast the quotient, which rounds towards zero: pl.cast(x / y, pl.INT32)"
        )
    if name != "Pow":
        return
    base, exponent = operands
    power = exponent if not isinstance(exponent, Expr) else E.const_value(exponent)
    if power is None or power != int(power) or abs(power) > 64:
        raise TypeError(
            "operator '**' needs a whole exponent up to 64 that is known at compile time\n"
            "  hint: powers of two are shifts, 1 << n; others are products in a loop"
        )
    if power < 0 and not floats[0]:
        raise TypeError(
            f"an integer to the power {power} is no integer\n  hint: cast it first: pl.cast(x, pl.FP32) ** {power}"
        )


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
    if cls is E.Not:
        return cls(truth(operand, span), DataType.BOOL, span)
    if dtype is DataType.BOOL:
        operand, dtype = Cast(operand, DataType.INDEX, span), DataType.INDEX
    return cls(operand, dtype, span)


def computed_scalar(name: str, operands: Sequence[Any], span: Span) -> Expr:
    """`build_scalar` of what a kernel computes. Raises TypeError where no core computes what Python means by it."""
    _check_computable(name, operands)
    return build_scalar(name, operands, span)


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
