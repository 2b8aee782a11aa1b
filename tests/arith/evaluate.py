"""Evaluates scalar integer expressions as the machine does, for tests to compare with."""

from __future__ import annotations

import operator

from pypto import DataType, ir


class NoValue(Exception):
    """The expression divides by zero or shifts too far for these values."""


def wrap(value: int, dtype: DataType) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed_int() and value >> (dtype.bits - 1) else value


_BINARY = {
    ir.Add: operator.add, ir.Sub: operator.sub, ir.Mul: operator.mul, ir.Min: min, ir.Max: max,
    ir.BitAnd: operator.and_, ir.BitOr: operator.or_, ir.BitXor: operator.xor,
    ir.Eq: operator.eq, ir.Ne: operator.ne, ir.Lt: operator.lt, ir.Le: operator.le, ir.Gt: operator.gt,
    ir.Ge: operator.ge, ir.And: lambda a, b: a and b, ir.Or: lambda a, b: a or b, ir.Xor: operator.xor,
}  # fmt: skip
_UNARY = {ir.Neg: operator.neg, ir.Abs: abs, ir.BitNot: operator.invert, ir.Not: operator.not_, ir.Cast: lambda a: a}


def evaluate(e: ir.Expr, values: dict[ir.Var, int]) -> int | bool:
    """The value of ``e``, each operation wrapping in its dtype."""
    if isinstance(e, ir.Var):
        return values[e]
    if isinstance(e, (ir.ConstInt, ir.ConstBool)):
        return e.value
    if isinstance(e, ir.UnaryExpr):
        made = _UNARY[type(e)](evaluate(e.operand, values))
    else:
        assert isinstance(e, ir.BinaryExpr)
        made = _binary(e, evaluate(e.left, values), evaluate(e.right, values))
    return bool(made) if e.dtype is DataType.BOOL else wrap(made, e.dtype)


def _binary(e: ir.BinaryExpr, a: int, b: int) -> int | bool:
    if isinstance(e, (ir.FloorDiv, ir.FloorMod)):
        if b == 0:
            raise NoValue
        return a // b if isinstance(e, ir.FloorDiv) else a % b
    if isinstance(e, (ir.BitShiftLeft, ir.BitShiftRight)):
        if not 0 <= b < e.dtype.bits:
            raise NoValue
        return a << b if isinstance(e, ir.BitShiftLeft) else a >> b
    return _BINARY[type(e)](a, b)
