"""Functions that build scalar expressions: ``ir.add(a, b)``, ``ir.cast(x, dtype)`` ...

Numbers become constants of the other operand's dtype; operands of different dtypes meet as `scalar.promote` says.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import DataType
from .expr import Expr
from .scalar import build_scalar, cast_scalar, scalar_dtype
from .span import UNKNOWN_SPAN, Span

BinaryFunction = Callable[..., Expr]


def _binary(name: str) -> BinaryFunction:
    def build(lhs: Expr | int | float, rhs: Expr | int | float, span: Span = UNKNOWN_SPAN) -> Expr:
        return build_scalar(name, (lhs, rhs), span)

    build.__name__ = name.lower()
    build.__doc__ = f"`{name}` of two scalars, at least one of them an expression."
    return build


add = _binary("Add")
sub = _binary("Sub")
mul = _binary("Mul")
truediv = _binary("FloatDiv")
floordiv = _binary("FloorDiv")
mod = _binary("FloorMod")
pow = _binary("Pow")
min_ = _binary("Min")
max_ = _binary("Max")
eq = _binary("Eq")
ne = _binary("Ne")
lt = _binary("Lt")
le = _binary("Le")
gt = _binary("Gt")
ge = _binary("Ge")
and_ = _binary("And")
or_ = _binary("Or")
xor = _binary("Xor")
bit_and = _binary("BitAnd")
bit_or = _binary("BitOr")
bit_xor = _binary("BitXor")
bit_shift_left = _binary("BitShiftLeft")
bit_shift_right = _binary("BitShiftRight")


def neg(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """The negative of a scalar."""
    return build_scalar("Neg", (operand,), span)


def abs_(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """The absolute value of a scalar."""
    return build_scalar("Abs", (operand,), span)


def not_(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """Logical negation; BOOL."""
    return build_scalar("Not", (operand,), span)


def bit_not(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """Bitwise complement. Raises TypeError for a dtype that is no integer."""
    dtype = scalar_dtype(operand)
    if not dtype.is_int():
        raise TypeError(f"bit_not requires integer dtype, got {dtype}")
    return build_scalar("BitNot", (operand,), span)


def cast(value: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> Expr:
    """``value`` in ``dtype``; itself where that is the same representation."""
    return cast_scalar(value, dtype, span)
