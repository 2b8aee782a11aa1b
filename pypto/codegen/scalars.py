"""Scalar expressions as ``arith`` operations."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.expr import BinaryExpr, Cast, ConstBool, ConstFloat, ConstInt, Expr, UnaryExpr
from ..ir.scalar import is_total, meeting
from .context import Op, Value
from .types import scalar_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_INT = {
    E.Add: "arith.addi", E.Sub: "arith.subi", E.Mul: "arith.muli", E.FloorDiv: "arith.floordivsi",
    E.Min: "arith.minsi", E.Max: "arith.maxsi", E.BitAnd: "arith.andi", E.BitOr: "arith.ori",
    E.BitXor: "arith.xori", E.BitShiftLeft: "arith.shli", E.BitShiftRight: "arith.shrsi",
    E.And: "arith.andi", E.Or: "arith.ori", E.Xor: "arith.xori",
}  # fmt: skip
_UNSIGNED = {
    E.FloorDiv: "arith.divui", E.FloorMod: "arith.remui", E.Min: "arith.minui", E.Max: "arith.maxui",
    E.BitShiftRight: "arith.shrui",
}  # fmt: skip
_FLOAT = {
    E.Add: "arith.addf", E.Sub: "arith.subf", E.Mul: "arith.mulf", E.FloatDiv: "arith.divf",
    E.Min: "arith.minimumf", E.Max: "arith.maximumf",
}  # fmt: skip
_COMPARE = {E.Eq: "eq", E.Ne: "ne", E.Lt: "lt", E.Le: "le", E.Gt: "gt", E.Ge: "ge"}
_FLOAT_FORMATS = {DataType.FP32: ("<f", "<I"), DataType.FP16: ("<e", "<H")}


def float_text(value: float, dtype: DataType) -> str:
    """A float literal as MLIR reads it: all digits of a double, bits for inf and nan."""
    if math.isfinite(value):
        return f"{value:.17e}"
    if dtype is DataType.BF16:
        return f"0x{struct.unpack('<I', struct.pack('<f', value))[0] >> 16:04X}"
    to, back = _FLOAT_FORMATS[dtype]
    bits = struct.unpack(back, struct.pack(to, value))[0]
    return f"0x{bits:0{dtype.bits // 4}X}"


def is_unsigned(dtype: DataType) -> bool:
    return dtype.is_unsigned_int()


class ScalarEmitter:
    """Emits the arithmetic of one kernel; constants are kept at the head of the function, each once."""

    def __init__(self, kernel: KernelBuilder) -> None:
        self.kernel = kernel
        self._constants: dict[tuple[str, str], Value] = {}

    def emit(self, expr: Expr) -> Value:
        """The SSA value of a scalar expression, in the type that its dtype is."""
        if isinstance(expr, (ConstInt, ConstFloat, ConstBool)):
            return self.constant(expr.value, expr.dtype)
        if isinstance(expr, E.Var):
            return self.kernel.scalar_var(expr)
        if isinstance(expr, Cast):
            return self.convert(self.emit(expr.operand), expr.operand.dtype, expr.dtype)
        if isinstance(expr, BinaryExpr):
            return self._binary(expr)
        if isinstance(expr, UnaryExpr):
            return self._unary(expr)
        if isinstance(expr, E.Call):
            return self.kernel.scalar_call(expr)
        raise self.kernel.unsupported(expr, f"a scalar {type(expr).__name__}")

    def constant(self, value: float | bool, dtype: DataType) -> Value:
        """A constant, declared once in the function's head."""
        type_text = scalar_text(dtype)
        if dtype is DataType.BOOL:
            text, name = ("true" if value else "false"), ("%true" if value else "%false")
        elif dtype.is_float():
            text, name = float_text(float(value), dtype), ""
        else:
            text = str(int(value))
            name = f"%c{text.replace('-', 'm')}_{type_text}"
        key = (text, type_text)
        known = self._constants.get(key)
        if known is None:
            name = name or self.kernel.names.take("cst")
            known = self._constants[key] = Value(name, type_text)
            self.kernel.context.constants.append(Op("constant", result=known, text=text))
        return known

    def index(self, expr: Expr) -> Value:
        """An integer expression as ``index``."""
        return self.typed(expr, DataType.INDEX)

    def typed(self, expr: Expr, dtype: DataType) -> Value:
        """An expression in another dtype: what a variable of ``dtype`` holds once it is assigned."""
        if isinstance(expr, ConstInt) and dtype.is_int():
            low, high = dtype.int_range()
            if low <= expr.value <= high:
                return self.constant(expr.value, dtype)
        return self.convert(self.emit(expr), expr.dtype, dtype)

    def written_at(self, offset: Expr) -> Value:
        """An offset of a window that is written, as ``index``: not below 0, so that nothing before the tensor is.

        Positions (INDEX) are not negative; another integer may be. The simulator reports the one that is.
        """
        value = self.index(offset)
        if isinstance(offset, ConstInt) or offset.dtype is DataType.INDEX:
            return value
        result = Value(self.kernel.names.number(), value.type)
        zero = self.constant(0, DataType.INDEX)
        self.kernel.add(Op("window_offset", operands=(value, zero), result=result))
        return result

    def sum(self, left: Value, right: Value) -> Value:
        """The sum of two integers of one type."""
        return self.arith("arith.addi", (left, right))

    def arith(self, mnemonic: str, operands: tuple[Value, ...]) -> Value:
        """An operation on values of one type that gives another."""
        return self._op(mnemonic, operands, operands[0].type)

    def _binary(self, expr: BinaryExpr) -> Value:
        cls = type(expr)
        if cls in (E.And, E.Or) and not is_total(expr.right):
            return self._short_circuit(expr)
        if cls is E.Pow:
            return self._power(expr)
        dtype = meeting(expr.left, expr.right)
        left, right = (self.typed(e, dtype) for e in (expr.left, expr.right))
        if cls in _COMPARE:
            return self._compare(_COMPARE[cls], left, right, dtype)
        if cls is E.FloorMod and not dtype.is_float() and not is_unsigned(dtype):
            return self.convert(self._floor_mod(left, right), dtype, expr.dtype)
        table = _FLOAT if dtype.is_float() else {**_INT, **_UNSIGNED} if is_unsigned(dtype) else _INT
        mnemonic = table.get(cls)
        if mnemonic is None:
            raise self.kernel.unsupported(expr, f"{cls.__name__} of {dtype}")
        return self.convert(self._op(mnemonic, (left, right), left.type), dtype, expr.dtype)

    def _short_circuit(self, expr: BinaryExpr) -> Value:
        """The right side is computed only where the left does not decide."""
        condition = self.emit(expr.left)
        lazy = self.kernel.region(lambda: self.kernel.add(Op("yields", operands=[self.emit(expr.right)])))
        decided = self.constant(isinstance(expr, E.Or), DataType.BOOL)
        known = self.kernel.region(lambda: self.kernel.add(Op("yields", operands=[decided])))
        result = Value(self.kernel.names.number(), "i1")
        then_body, else_body = (lazy, known) if isinstance(expr, E.And) else (known, lazy)
        op = Op("branch", condition=condition, then_body=then_body, else_body=else_body, results=[result])
        self.kernel.add(op)
        return result

    def _power(self, expr: BinaryExpr) -> Value:
        """A product of squares; the exponent is a whole constant."""
        exponent = E.const_value(expr.right)
        if exponent is None or exponent != int(exponent):
            raise self.kernel.unsupported(expr, "a power that is not a whole constant")
        factor = self.convert(self.emit(expr.left), expr.left.dtype, expr.dtype)
        multiply = "arith.mulf" if expr.dtype.is_float() else "arith.muli"
        product, left = None, abs(int(exponent))
        while left:
            if left & 1:
                product = factor if product is None else self.arith(multiply, (product, factor))
            left >>= 1
            if left:
                factor = self.arith(multiply, (factor, factor))
        one = self.constant(1, expr.dtype)
        if product is None:
            return one
        return product if exponent > 0 else self.arith("arith.divf", (one, product))

    def _compare(self, predicate: str, left: Value, right: Value, dtype: DataType) -> Value:
        if dtype.is_float():
            name = f"arith.cmpf {'u' if predicate == 'ne' else 'o'}{predicate},"
        else:
            sign = "" if predicate in ("eq", "ne") else "u" if is_unsigned(dtype) else "s"
            name = f"arith.cmpi {sign}{predicate},"
        return self._op(name, (left, right), "i1")

    def _floor_mod(self, left: Value, right: Value) -> Value:
        """MLIR has only the truncating remainder: ``a - floor(a / b) * b``."""
        quotient = self._op("arith.floordivsi", (left, right), left.type)
        return self._op("arith.subi", (left, self._op("arith.muli", (quotient, right), left.type)), left.type)

    def _unary(self, expr: UnaryExpr) -> Value:
        cls, dtype, operand = type(expr), expr.operand.dtype, self.emit(expr.operand)
        if cls is E.Not:
            return self._op("arith.xori", (operand, self.constant(True, DataType.BOOL)), "i1")
        if cls is E.BitNot:
            return self._op("arith.xori", (operand, self.constant(-1, dtype)), operand.type)
        if cls is E.Abs and is_unsigned(dtype):
            return operand
        negative = self._negate(operand, dtype)
        if cls is E.Neg:
            return negative
        if cls is E.Abs:
            return self._op("arith.maximumf" if dtype.is_float() else "arith.maxsi", (operand, negative), operand.type)
        raise self.kernel.unsupported(expr, f"{cls.__name__} of a scalar")

    def _negate(self, operand: Value, dtype: DataType) -> Value:
        if dtype.is_float():
            return self._op("arith.negf", (operand,), operand.type)
        return self._op("arith.subi", (self.constant(0, dtype), operand), operand.type)

    def convert(self, value: Value, source: DataType, target: DataType) -> Value:
        """``value`` in another dtype; nothing when the representations are the same."""
        to = scalar_text(target)
        if value.type == to:
            return value
        if target is DataType.BOOL:
            return self._compare("ne", value, self.constant(0, source), source)
        unsigned = is_unsigned(source) or source is DataType.BOOL
        through = source.is_float() or target.is_float() or (unsigned and source.bits < DataType.INT64.bits)
        if DataType.INDEX in (source, target) and through:
            return self.convert(self.convert(value, source, DataType.INT64), DataType.INT64, target)
        mnemonic = _cast_mnemonic(source, target)
        result = Value(self.kernel.names.number(), to)
        self.kernel.add(Op("cast", mnemonic=mnemonic, operands=(value,), result=result))
        return result

    def _op(self, mnemonic: str, operands: tuple[Value, ...], result_type: str) -> Value:
        result = Value(self.kernel.names.number(), result_type)
        self.kernel.add(Op("arith", mnemonic=mnemonic, operands=operands, result=result))
        return result


def _cast_mnemonic(source: DataType, target: DataType) -> str:
    if DataType.INDEX in (source, target):
        return "arith.index_cast"
    if source.is_float() and target.is_float():
        return "arith.extf" if target.bits > source.bits else "arith.truncf"
    if source.is_float():
        return "arith.fptoui" if is_unsigned(target) else "arith.fptosi"
    unsigned = is_unsigned(source) or source is DataType.BOOL
    if target.is_float():
        return "arith.uitofp" if unsigned else "arith.sitofp"
    if target.bits < source.bits:
        return "arith.trunci"
    return "arith.extui" if unsigned else "arith.extsi"
