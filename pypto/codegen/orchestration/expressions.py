"""Scalar expressions in C++."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import DataType
from ...errors import InternalError
from ...ir import expr as E
from ...ir.expr import BinaryExpr, Call, Cast, ConstBool, ConstFloat, ConstInt, Expr, UnaryExpr, Var
from .cpp import cpp, float_text, scalar_type

if TYPE_CHECKING:
    from .builder import OrchestrationBuilder

_SYMBOLS = {
    E.Add: "+", E.Sub: "-", E.Mul: "*", E.FloatDiv: "/", E.Eq: "==", E.Ne: "!=", E.Lt: "<", E.Le: "<=", E.Gt: ">",
    E.Ge: ">=", E.And: "&&", E.Or: "||", E.Xor: "!=", E.BitAnd: "&", E.BitOr: "|", E.BitXor: "^",
    E.BitShiftLeft: "<<", E.BitShiftRight: ">>",
}  # fmt: skip
_EXTREMES = {E.Min: "std::min", E.Max: "std::max"}
_DIVISIONS = {E.FloorDiv: ("/", "floor_div"), E.FloorMod: ("%", "floor_mod")}
_NATURAL = (E.Add, E.Mul, E.FloorDiv, E.FloorMod, E.Min, E.Max)
_NARROW = frozenset({DataType.INT8, DataType.INT16, DataType.UINT8, DataType.UINT16})
_WIDE = frozenset({DataType.INT64, DataType.INDEX})


class ExpressionWriter:
    """Writes the scalar expressions of one orchestration."""

    def __init__(self, builder: OrchestrationBuilder) -> None:
        self.builder = builder

    def text(self, expr: Expr) -> str:
        """A scalar expression."""
        if isinstance(expr, (ConstInt, ConstFloat, ConstBool)):
            return self._constant(expr)
        if isinstance(expr, Var):
            return self.builder.handle(expr, expr).text
        if isinstance(expr, Cast):
            return cpp("cast", scalar_type(expr.dtype, expr.span), self.text(expr.operand))
        if isinstance(expr, BinaryExpr):
            return self._binary(expr)
        if isinstance(expr, UnaryExpr):
            return self._unary(expr)
        if isinstance(expr, Call):
            return self.builder.scalar_call(expr)
        raise InternalError(f"codegen met a scalar {type(expr).__name__}", expr.span)

    def word(self, expr: Expr) -> str:
        """An integer as the runtime's 32-bit extents and offsets."""
        if isinstance(expr, ConstInt) and expr.value >= 0:
            return self.text(expr)
        return cpp("cast", "uint32_t", self.text(expr))

    def slot(self, expr: Expr) -> str:
        """A scalar as a task argument: 64 bits."""
        text = self.text(expr)
        return cpp("call", "to_u64", [text]) if expr.dtype.is_float() else cpp("slot_word", text)

    def _constant(self, expr: ConstInt | ConstFloat | ConstBool) -> str:
        scalar_type(expr.dtype, expr.span)
        if expr.dtype is DataType.BOOL:
            return "true" if expr.value else "false"
        if expr.dtype.is_float():
            return float_text(float(expr.value))
        value = int(expr.value)
        return cpp("smallest") if value == -(1 << 63) else str(value)

    def _binary(self, expr: BinaryExpr) -> str:
        kind, dtype = type(expr), expr.left.dtype
        left, right = self.text(expr.left), self.text(expr.right)
        if isinstance(expr.left, ConstInt) and isinstance(expr.right, ConstInt) and dtype in _WIDE:
            left = cpp("cast", "int64_t", left)
        if kind is E.FloatDiv and not dtype.is_float():
            left = cpp("cast", scalar_type(expr.dtype, expr.span), left)
        if kind in _EXTREMES:
            self.builder.unit.uses.add("algorithm")
            return cpp("generic", _EXTREMES[kind], scalar_type(dtype, expr.span), [left, right])
        if kind is E.Pow:
            self.builder.unit.uses.add("power")
            exponent = int(E.const_value(expr.right) or 0)
            text = cpp("call", "power", [cpp("cast", scalar_type(expr.dtype, expr.span), left), str(exponent)])
        elif kind in _DIVISIONS and not dtype.is_float():
            text = self._division(expr, left, right)
        elif kind in _SYMBOLS:
            text = cpp("binary", _SYMBOLS[kind], left, right)
        else:
            raise self.builder.refused(f"an orchestration does not compute {kind.symbol!r} of {dtype}", expr)
        return cpp("cast", scalar_type(expr.dtype, expr.span), text) if expr.dtype in _NARROW else text

    def _division(self, expr: BinaryExpr, left: str, right: str) -> str:
        """C++ rounds towards zero: where an operand may be negative, a helper rounds down."""
        symbol, helper = _DIVISIONS[type(expr)]
        if self.natural(expr.left) and self.natural(expr.right) or expr.left.dtype.is_unsigned_int():
            return cpp("binary", symbol, left, right)
        self.builder.unit.uses.add(helper)
        return cpp("call", helper, [left, right])

    def _unary(self, expr: UnaryExpr) -> str:
        operand = self.text(expr.operand)
        if isinstance(expr, E.Not):
            return cpp("unary", "!", operand)
        if isinstance(expr, E.Abs) and expr.dtype.is_unsigned_int():
            return operand
        text = cpp("magnitude", operand) if isinstance(expr, E.Abs) else cpp("unary", expr.symbol, operand)
        return cpp("cast", scalar_type(expr.dtype, expr.span), text) if expr.dtype in _NARROW else text

    def natural(self, expr: Expr) -> bool:
        """Whether an integer is never negative, by what it is made of."""
        if isinstance(expr, ConstInt):
            return expr.value >= 0
        if isinstance(expr, Var):
            return self.builder.handle(expr, expr).natural
        if isinstance(expr, _NATURAL):
            return self.natural(expr.left) and self.natural(expr.right)
        return isinstance(expr, Call) and expr.op.name == "tensor.dim"
