"""Folding operations on constants.

A fold happens only when its result is exactly what the operation computes in its dtype: an integer result that
does not fit, a shift by more than the width, or a float dtype whose rounding is not modelled is left alone.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import Any, Final

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr, is_integer
from ..ir.types import ScalarType
from .linear import discardable, same_dtype

_CONSTS: Final = frozenset({ConstInt, ConstFloat, ConstBool})
_PACK: Final = {DataType.FP32: "f", DataType.FP16: "e"}

_INT: Final[dict[type, Callable[[int, int], int]]] = {
    E.Add: operator.add,
    E.Sub: operator.sub,
    E.Mul: operator.mul,
    E.FloorDiv: operator.floordiv,
    E.FloorMod: operator.mod,
    E.Min: min,
    E.Max: max,
    E.BitAnd: operator.and_,
    E.BitOr: operator.or_,
    E.BitXor: operator.xor,
    E.BitShiftRight: operator.rshift,
}
_COMPARE: Final[dict[type, Callable[[Any, Any], bool]]] = {
    E.Eq: operator.eq,
    E.Ne: operator.ne,
    E.Lt: operator.lt,
    E.Le: operator.le,
    E.Gt: operator.gt,
    E.Ge: operator.ge,
}
_LOGIC: Final[dict[type, Callable[[bool, bool], bool]]] = {
    E.And: lambda a, b: a and b,
    E.Or: lambda a, b: a or b,
    E.Xor: operator.xor,
}
_FLOAT: Final[dict[type, Callable[[float, float], float]]] = {
    E.Add: operator.add,
    E.Sub: operator.sub,
    E.Mul: operator.mul,
}


def fold_const(expr: Expr) -> Expr | None:
    """``expr`` with its operation on constants done, or its neutral or absorbing operand taken; None if neither.

    Raises ValueError for an integer division that has no value: by zero, or the smallest integer by -1.
    """
    if isinstance(expr, E.BinaryExpr):
        a, b = expr.left, expr.right
        if isinstance(a, ConstInt) and isinstance(b, ConstInt) and isinstance(expr, (E.FloorDiv, E.FloorMod)):
            if b.value == 0:
                raise ValueError(f"{a.value} {expr.symbol} 0 has no value")
            if b.value == -1 and isinstance(expr, E.FloorDiv) and not _fits(-a.value, expr.dtype):
                raise ValueError(f"{a.value} // -1 does not fit in {expr.dtype}")
        return fold_binary(expr) or fold_identity(expr)
    return fold_unary(expr) if isinstance(expr, E.UnaryExpr) else None


def fold_binary(expr: Any) -> Expr | None:
    """The constant an operation on two constants gives, or None."""
    a, b = expr.left, expr.right
    if a.__class__ not in _CONSTS or b.__class__ not in _CONSTS:
        return None
    cls = expr.__class__
    if cls in _COMPARE:
        if a.__class__ is not b.__class__:
            return None
        return ConstBool(_COMPARE[cls](rounded(a), rounded(b)), expr.span)
    if isinstance(a, ConstBool) and isinstance(b, ConstBool):
        return ConstBool(_LOGIC[cls](a.value, b.value), expr.span) if cls in _LOGIC else None
    if isinstance(a, ConstInt) and isinstance(b, ConstInt):
        return _fold_ints(expr, a.value, b.value)
    if isinstance(a, ConstFloat) and isinstance(b, ConstFloat):
        return _fold_floats(expr, rounded(a), rounded(b))
    return None


def _fits(value: int, dtype: DataType) -> bool:
    low, high = dtype.int_range()
    return low <= value <= high


def _int_const(value: int, expr: Expr) -> Expr | None:
    return ConstInt(value, expr.dtype, expr.span) if expr.dtype.is_int() and _fits(value, expr.dtype) else None


def _fold_ints(expr: Any, a: int, b: int) -> Expr | None:
    cls = expr.__class__
    if cls in (E.FloorDiv, E.FloorMod) and b == 0:
        return None
    if cls in (E.BitShiftLeft, E.BitShiftRight) and not 0 <= b < expr.dtype.bits:
        return None
    if cls is E.BitShiftLeft:
        return _int_const(a << b, expr)
    if cls is E.Pow:
        # A base other than -1, 0 and 1 leaves 64 bits within 64 steps: no huge power is ever computed.
        return _int_const(a**b, expr) if 0 <= b < 64 or (b > 0 and -1 <= a <= 1) else None
    return _int_const(_INT[cls](a, b), expr) if cls in _INT else None


def rounded(const: Any) -> Any:
    """A constant's value as its dtype holds it."""
    if not isinstance(const, ConstFloat):
        return const.value
    made = round_float(const.value, const.dtype)
    return const.value if made is None else made


def round_float(value: float, dtype: DataType) -> float | None:
    """``value`` rounded to ``dtype``, or None for a dtype whose rounding is not modelled here."""
    pack = _PACK.get(dtype)
    if pack is None:
        return None
    try:
        return struct.unpack(pack, struct.pack(pack, value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def _fold_floats(expr: Any, a: float, b: float) -> Expr | None:
    cls, dtype = expr.__class__, expr.dtype
    if cls in (E.Min, E.Max):
        # The machine's answer for NaN, and for zeros of both signs, is its own.
        if a != a or b != b or a == b == 0:
            return None
        return ConstFloat(min(a, b) if cls is E.Min else max(a, b), dtype, expr.span)
    if cls is E.FloatDiv:
        value = a / b if b else math.nan if a != a or not a else math.copysign(math.inf, a) * math.copysign(1, b)
    elif cls is E.Pow:
        try:
            value = math.pow(a, b)
        except (OverflowError, ValueError):
            return None
    elif cls in _FLOAT:
        value = _FLOAT[cls](a, b)
    else:
        return None
    # Rounding a double once more is exact for + - * /: a double has more than twice the bits.
    value = round_float(value, dtype)
    return None if value is None else ConstFloat(value, dtype, expr.span)


def fold_unary(expr: Any) -> Expr | None:
    """The constant an operation on one constant gives, or None."""
    a, cls = expr.operand, expr.__class__
    if isinstance(a, ConstBool):
        return ConstBool(not a.value, expr.span) if cls is E.Not else None
    if isinstance(a, ConstInt):
        made = {E.Neg: -a.value, E.Abs: abs(a.value), E.BitNot: ~a.value}.get(cls)
        if cls is E.Cast and expr.dtype.is_float() and a.dtype is DataType.INDEX:
            # A literal converted is a literal of the other dtype, as where it is written.
            return ConstFloat(float(a.value), expr.dtype, expr.span)
        if cls is E.Cast and expr.dtype.is_int():
            made = a.value
        if cls is E.BitNot and expr.dtype.is_unsigned_int():
            made = expr.dtype.int_range()[1] - a.value
        return None if made is None else _int_const(made, expr)
    if isinstance(a, ConstFloat) and cls in (E.Neg, E.Abs):
        return ConstFloat(-a.value if cls is E.Neg else abs(a.value), expr.dtype, expr.span)
    return None


def fold_identity(expr: Any) -> Expr | None:
    """The operand (or zero) an integer operation with a neutral or absorbing constant amounts to, or None."""
    if not isinstance(expr.type, ScalarType) or not is_integer(expr):
        return None
    cls, a, b = expr.__class__, expr.left, expr.right
    left = a.value if isinstance(a, ConstInt) else None
    right = b.value if isinstance(b, ConstInt) else None
    if cls in (E.Add, E.Sub) and right == 0:
        return _as(a, expr)
    if cls is E.Add and left == 0:
        return _as(b, expr)
    if cls in (E.Mul, E.FloorDiv) and right == 1:
        return _as(a, expr)
    if cls is E.Mul and left == 1:
        return _as(b, expr)
    if cls is E.Mul and (left == 0 or right == 0) and discardable(b if left == 0 else a):
        return ConstInt(0, expr.dtype, expr.span)
    if cls is E.FloorMod and right == 1 and discardable(a):
        return ConstInt(0, expr.dtype, expr.span)
    return None


def _as(operand: Expr, expr: Expr) -> Expr | None:
    return operand if same_dtype(operand, expr) else None
