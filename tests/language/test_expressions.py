"""Operators, literals, compile-time values, calls of Python functions."""

from __future__ import annotations

import math
from enum import Enum

import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import (
    InternalError,
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from pypto.ir.stmt import flatten_to_stmts


class Mode(Enum):
    FAST = 1


class Config:
    tile = 32
    sizes = {"rows": [16, 8]}

    @property
    def broken(self) -> int:
        raise ValueError("no such size")

    @property
    def bug(self) -> int:
        raise InternalError("broken invariant")


CONFIG = Config()


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def value(function: ir.Function, index: int = 0) -> ir.Expr:
    return flatten_to_stmts(function.body)[index].value


def test_literals():
    @pl.function
    def f(n: pl.Scalar[pl.INT32]):
        a = 3
        b = -1.5
        c = True
        d = pl.const(7, pl.UINT8)
        e = (1, 2.0)
        return a, b, c, d, e

    a, b, c, d, e = (value(f, i) for i in range(5))
    assert (type(a), a.value, a.dtype) == (ir.ConstInt, 3, pl.INDEX)
    assert (type(b), b.value, b.dtype) == (ir.ConstFloat, -1.5, pl.FP32)
    assert (type(c), c.value) == (ir.ConstBool, True)
    assert (type(d), d.value, d.dtype) == (ir.ConstInt, 7, pl.UINT8)
    assert [x.value for x in e.elements] == [1, 2.0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a + b", ir.Add), ("a - b", ir.Sub), ("a * b", ir.Mul), ("a // b", ir.FloorDiv), ("a % b", ir.FloorMod),
        ("a / b", ir.FloatDiv), ("a ** 2", ir.Pow), ("a & b", ir.BitAnd), ("a | b", ir.BitOr), ("a ^ b", ir.BitXor),
        ("a << b", ir.BitShiftLeft), ("a >> b", ir.BitShiftRight), ("a == b", ir.Eq), ("a != b", ir.Ne),
        ("a < b", ir.Lt), ("a <= b", ir.Le), ("a > b", ir.Gt), ("a >= b", ir.Ge), ("min(a, b)", ir.Min),
        ("max(a, b)", ir.Max),
        ("pl.min(a, b)", ir.Min), ("pl.max(a, 3)", ir.Max), ("-a", ir.Neg), ("~a", ir.BitNot), ("abs(a)", ir.Abs),
        ("a > 0 and b > 0", ir.And), ("a > 0 or b > 0", ir.Or), ("not a > 0", ir.Not), ("0 < a < b", ir.And),
        ("pl.cast(a, pl.FP32)", ir.Cast),
    ],
)  # fmt: skip
def test_scalar_operators(text: str, kind: type):
    f = pl.parse(f"@pl.function\ndef f(a: pl.Scalar[pl.INT32], b: pl.Scalar[pl.INT32]):\n    return {text}\n")
    assert type(value(f)[0]) is kind


def test_operands_meet_in_one_dtype():
    @pl.function
    def f(a: pl.Scalar[pl.INT32], b: pl.Scalar[pl.FP16], c: pl.Scalar[pl.INT64]):
        x = a + b
        y = a * 2
        z = c + 1
        return x, y, z

    x, y, z = (value(f, i) for i in range(3))
    assert (x.dtype, type(x.left)) == (pl.FP16, ir.Cast)
    assert (y.right.value, y.right.dtype) == (2, pl.INT32)
    assert (z.dtype, z.right.dtype) == (pl.INT64, pl.INDEX)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x + y", ["tensor.add"]),
        ("x - 2.0", ["tensor.subs"]),
        ("3.0 * x", ["tensor.muls"]),
        ("x / y", ["tensor.div"]),
        ("2.0 - x", ["tensor.adds", "tensor.neg"]),
        ("-x", ["tensor.neg"]),
    ],
)
def test_tensor_operators(text: str, names: list[str]):
    f = pl.parse(
        f"@pl.function\ndef f(x: pl.Tensor[[8, 8], pl.FP32], y: pl.Tensor[[8, 8], pl.FP32]):\n    return {text}\n"
    )
    call = value(f)[0]
    assert call.op.name == names[0]
    if len(names) > 1:
        assert call.args[0].op.name == names[1]


def test_compile_time_values_fold():
    total, part = 100, 7

    @pl.function
    def f(x: pl.Tensor[[64, 128], pl.FP32]):
        a = ceil_div(total, part) + len([1, 2]) - CONFIG.sizes["rows"][-1]
        b = pl.slice(x, CONFIG.sizes["rows"], [CONFIG.tile // 4, x.shape[0] - 16])
        c = math.sqrt(16.0) if total > 3 and not part > 8 else 0
        d = pl.FP32.get_byte() * max(2, part)
        return a, b, c, d

    assert value(f, 0).value == 15 + 2 - 8
    assert [e.value for e in value(f, 1).args[2].elements] == [8, 48]
    assert value(f, 2).value == 4.0
    assert value(f, 3).value == 28


def test_dtypes_and_enums_may_have_local_names():
    @pl.function
    def f(x: pl.Tensor[[8], pl.FP32]):
        wide = pl.FP32
        half = x.dtype if x.dtype is not wide else pl.FP16
        mode = Mode.FAST
        y = pl.cast(x, half)
        return y if mode is Mode.FAST else x

    assert value(f, 0).type.dtype is pl.FP16


def test_operator_errors_keep_their_message_hint_and_cause():
    with pytest.raises(InvalidOperationError, match="pl operation 'add'.*cannot broadcast") as caught:

        @pl.function
        def f(x: pl.Tensor[[8, 8], pl.FP32], y: pl.Tensor[[4, 4], pl.FP32]):
            z = pl.add(x, y)
            return z

    assert isinstance(caught.value.__cause__, (ValueError, TypeError))
    assert caught.value.hint
    text = str(caught.value)
    assert "z = pl.add(x, y)" in text
    assert "^" * len("pl.add(x, y)") in text


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("pl.exq(x)", InvalidOperationError, r"Unknown operation 'pl\.exq'"),
        ("pl.tile.exq(x)", InvalidOperationError, r"Unknown operation 'pl\.tile\.exq'"),
        ("pl.exp()", InvalidOperationError, "pl operation 'exp'"),
        ("pl.exp(x, foo=1)", InvalidOperationError, "unexpected keyword argument 'foo'"),
        ("x.sum()", InvalidOperationError, "has no attribute 'sum'"),
        ("y", UndefinedVariableError, "Undefined variable 'y'"),
        ("pl.Level.NOWHERE", ParserSyntaxError, "'pl.Level' has no 'NOWHERE'"),
        ("x @ x", UnsupportedFeatureError, "operator '@'"),
        ("1.0 / x", InvalidOperationError, "needs the tensor or tile on its left"),
        ("x // x", InvalidOperationError, "operator '//' does not apply"),
        ("x < x", InvalidOperationError, "operator '<' does not compare tensors"),
        ("x and x", InvalidOperationError, "needs scalar conditions"),
        ("n is 3", UnsupportedFeatureError, "Unsupported comparison"),
        ("x[0] & 1.5", InvalidOperationError, "needs integers"),
        ("1 // 0", ParserTypeError, "Failed to evaluate expression '1 // 0'"),
        ("[1, 2][5]", ParserTypeError, "list index out of range"),
        ("'text'", ParserTypeError, "a str is not a value of the kernel"),
        ("b'text'", UnsupportedFeatureError, "Unsupported literal"),
        ("x if n > 3 else x", UnsupportedFeatureError, "a choice between"),
        ("n ** n", InvalidOperationError, "known at compile time"),
        ("n ** -1", InvalidOperationError, "is no integer"),
        ("1.5 // n", InvalidOperationError, "needs integers, got floating point"),
        ("n % 0.5", InvalidOperationError, "needs integers, got floating point"),
        ("[i for i in range(3)]", UnsupportedFeatureError, "ListComp"),
        ("(lambda: 1)()", UnsupportedFeatureError, "only named functions can be called"),
        ("{1: 2}", UnsupportedFeatureError, "a dict"),
        ("f'{x}'", UnsupportedFeatureError, "f-string"),
        ("(y := x)", UnsupportedFeatureError, ":="),
        ("pl.add(*x)", UnsupportedFeatureError, "star arguments"),
        ("pl.add(**x)", UnsupportedFeatureError, r"`\*\*` arguments"),
        ("int(n)", UnsupportedFeatureError, "cannot take kernel values"),
        ("print(x)", UnsupportedFeatureError, "print has no meaning"),
        ("pl.const(300, pl.INT8)", ParserTypeError, "300 does not fit int8"),
        ("pl.const(1.5, pl.INT8)", ParserTypeError, "cannot make 1.5 a int8"),
        ("pl.const(2, pl.BOOL)", ParserTypeError, "cannot make 2 a bool"),
        ("pl.const(n, pl.INT8)", ParserSyntaxError, "compile-time constant"),
        ("pl.range(3)", ParserSyntaxError, "cannot be used in an expression"),
        ("pl.at(level=1)", ParserSyntaxError, "cannot be used in an expression"),
        ("self.g(x)", InvalidOperationError, "only in a method of a @pl.program"),
    ],
)
def test_mistakes(body: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        pl.parse(
            f"@pl.function\ndef f(x: pl.Tensor[[8], pl.FP32], n: pl.Scalar[pl.INT32]):\n    z = {body}\n    return z\n"
        )


def test_python_values_a_kernel_cannot_use():
    text = "not a number"
    with pytest.raises(ParserTypeError, match="Unsupported closure variable type: 'text' of type str"):

        @pl.function
        def f(x: pl.Tensor[[8], pl.FP32]):
            return pl.add(x, text)

    with pytest.raises(UnsupportedFeatureError, match="'ceil_div' is a Python function"):

        @pl.function
        def g(n: pl.Scalar[pl.INT32]):
            return ceil_div(n, 2)

    with pytest.raises(ParserTypeError, match="no such size"):

        @pl.function
        def h(n: pl.Scalar[pl.INT32]):
            return n + CONFIG.broken

    with pytest.raises(InternalError, match="broken invariant"):

        @pl.function
        def i(n: pl.Scalar[pl.INT32]):
            return n + CONFIG.bug


def test_tuples():
    @pl.function
    def f(x: pl.Scalar[pl.INT64], y: pl.Scalar[pl.FP32]):
        pair = (x, y)
        a = pair[0]
        b, c = pair
        d, e = y, x
        return a, b, c, d, e

    pair, a, b, c, d, e = flatten_to_stmts(f.body)[:6]
    assert isinstance(a.value, ir.TupleGetItemExpr) and a.value.tuple is pair.var
    assert (b.value.index, c.value.index) == (0, 1)
    assert (d.value, e.value) == (f.params[1], f.params[0])
    with pytest.raises(ParserTypeError, match="tuple index 2 is out of range"):
        pl.parse("@pl.function\ndef f(x: pl.INT64):\n    t = (x, x)\n    return t[2]\n")
    with pytest.raises(ParserTypeError, match="cannot unpack 3 values into 2 names"):
        pl.parse("@pl.function\ndef f(x: pl.INT64):\n    a, b = (x, x, x)\n")


@pytest.mark.parametrize("value", [0, 1])
def test_a_number_for_a_bool_reads_back(value: int) -> None:
    made = pl.parse(
        "import pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function\n"
        f"    def main(self, n: pl.Scalar[pl.INDEX]):\n        b = pl.const({value}, pl.BOOL)\n"
    )
    assert isinstance(made, ir.Program) and f"pl.const({value}, pl.BOOL)" in str(made)
    again = pl.parse(str(made))
    ir.assert_structural_equal(made, again)
