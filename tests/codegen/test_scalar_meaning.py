"""Scalar expressions mean in kernels, and on the host, what they mean in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import Diagnosed
from pypto.pto.errors import PtoError

HEAD = "import pypto.language as pl\n"
KERNEL = """
@pl.function(type=pl.FunctionType.InCore)
def k({params}, out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]):
{body}
    pl.write(out, [0, 0], pl.cast(r, pl.FP32))
"""


def result(body: str, target: str = "Ascend910B", **given: tuple[str, Any]) -> float:
    """What ``body`` leaves in `r`; parameters are given as (dtype, value)."""
    params = ", ".join(f"{name}: pl.Scalar[pl.{dtype}]" for name, (dtype, _) in given.items())
    lines = "\n".join("    " + line for line in (body if "\n" in body else f"r = {body}").splitlines())
    program = pl.parse(HEAD + KERNEL.format(params=params, body=lines))
    out = np.zeros((1, 16), np.float32)
    pl.compile(program, target=target, dump_passes=False)(*(value for _, value in given.values()), out)
    return float(out[0, 0])


@pytest.mark.parametrize(
    "text",
    [
        "(n > 1) + (n > 2)", "(n > 1) - (n < 9)", "-(n > 1)", "~(n > 1)", "(n > 1) * n", "(n > 1) << 3",
        "(n > 1) > (n > 2)", "max(n > 1, n > 2)", "(n > 1) * 2 == 2", "(n > 1) & (n > 2)", "abs(n > 1)",
        "(n > 1) / 2", "(n > 3) ** 0",
    ],
)  # fmt: skip
def test_truth_values_count_as_zero_and_one(text: str):
    for n in (0, 2, 3):
        assert result(text, n=("INT32", n)) == eval(text, {"n": n})


@pytest.mark.parametrize("text", ["not n", "1 < n or n", "n and 100 // n", "n or n > -5", "not (n and 0)"])
def test_and_or_not_take_any_scalar_and_give_one_of_their_operands(text: str):
    for n in (5, -3, 0, 1):
        assert result(text, n=("INT32", n)) == eval(text, {"n": n})


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_and_does_not_evaluate_its_right_side_where_the_left_is_false(target: str):
    body = "r = 0\nif n > 0 and 8 // n > 1:\n    r = 1"
    assert [result(body, target, n=("INT32", n)) for n in (0, 2, 8)] == [0, 1, 0]


def test_reads_on_the_right_of_and_are_not_reads_of_what_the_left_excludes():
    body = "r = 0\nif n < 16 and pl.read(out, [0, n]) == 0 or n > 900:\n    r = 1"
    assert [result(body, n=("INT32", n)) for n in (3, 500, 10**6)] == [1, 0, 1]


def test_a_chained_comparison_stops_at_the_first_that_fails():
    assert [result("0 < n < 10 // n", n=("INT32", n)) for n in (0, 2, 5)] == [0, 1, 0]


def test_a_loop_evaluates_only_what_its_condition_needs():
    body = "r = 0\nwhile n > 0 and 12 // n < 7:\n    n = n - 1\n    r = r + 1"
    assert [result(body, n=("INT32", n)) for n in (5, 0, 12)] == [4, 0, 11]


def test_a_guarded_division_of_an_unrolled_loop_is_not_evaluated():
    body = "r = 0\nfor i in pl.unroll(3):\n    if i > 0 and 8 // i > 5:\n        r = r + n"
    assert result(body, n=("INT32", 7)) == 7


def test_conditional_expressions_compute_the_side_they_choose():
    assert [result("100 // n if n != 0 else n + 7", n=("INT32", n)) for n in (5, -3, 0)] == [20, -34, 7]
    assert [result("n if n > 2 else 0.5", n=("INT32", n)) for n in (5, 1)] == [5, 0.5]
    assert [result("d if n > 2 else 1", n=("INT32", n), d=("INT64", 9)) for n in (5, 1)] == [9, 1]


def test_the_condition_of_a_loop_does_not_choose_between_values():
    with pytest.raises(Diagnosed, match="condition of a loop chooses"):
        result("r = 0\nwhile (n if n > 2 else 0) > 0:\n    n = n - 1", n=("INT32", 3))


def test_powers_with_a_whole_constant_exponent_are_products():
    assert [result(f"n ** {e}", n=("INT32", -3)) for e in (0, 1, 2, 5)] == [1, -3, 9, -243]
    assert [result(f"x ** {e}", x=("FP32", -2.0)) for e in (0, 3, -2)] == [1, -8, 0.25]


def test_floor_division_and_remainder_follow_the_sign_of_the_divisor():
    for a, b in ((7, 2), (-7, 2), (7, -2), (-7, -2)):
        assert result("a // b * 100 + a % b", a=("INT32", a), b=("INT32", b)) == a // b * 100 + a % b


def test_signed_and_unsigned_meet_in_a_type_that_holds_both():
    assert result("u > n", u=("UINT32", 4_000_000_000), n=("INT32", -1)) == 1
    assert result("u + n", u=("UINT8", 200), n=("INT8", -100)) == 100
    with pytest.raises(Diagnosed, match="no dtype holds the values of both"):
        result("u > n", u=("UINT64", 4), n=("INT32", -1))


def test_formats_of_16_bits_meet_in_fp32():
    assert result("a + b", a=("FP16", 1.0009765625), b=("BF16", 2.0)) == np.float32(3.0009765625)


def test_the_magnitude_of_an_unsigned_scalar_is_itself():
    assert result("abs(u)", u=("UINT8", 200)) == 200


def test_a_cast_to_bool_asks_whether_there_is_anything():
    assert [result("pl.cast(n, pl.BOOL)", n=("INT32", n)) for n in (0, 2)] == [0, 1]
    assert [result("pl.cast(x, pl.BOOL)", x=("FP32", x)) for x in (0.0, 0.25)] == [0, 1]


def test_division_by_zero_is_reported_where_it_is_evaluated():
    with pytest.raises(PtoError, match="division by zero"):
        result("n > 5 or 8 // n > 1", n=("INT32", 0))


HOST = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def put(self, v: pl.Scalar[pl.FP32], out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]) -> pl.Tensor[[1, 16], pl.FP32]:
        pl.write(out, [0, 0], v)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, n: pl.Scalar[pl.INT32], x: pl.Scalar[pl.FP32], out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]
    ) -> pl.Tensor[[1, 16], pl.FP32]:
        out = self.put(pl.cast({text}, pl.FP32), out)
        return out
"""


@pytest.mark.parametrize(
    "text",
    [
        "(n > 1) + (n > 2)", "not n", "n and 100 // n", "8 // n if n else 3", "n ** 3", "x * 3 if n > 1 else 0.5",
        "-7 // 2 + n % -3", "n > 0 and 8 // n > 1",
    ],
)  # fmt: skip
def test_the_host_computes_as_python_does(text: str):
    compiled = pl.compile(pl.parse(HEAD + HOST.format(text=text)), dump_passes=False)
    for n in (0, 1, 4):
        out = np.zeros((1, 16), np.float32)
        compiled(n, 1.5, out)
        assert out[0, 0] == np.float32(eval(text, {"n": n, "x": 1.5}))


def test_a_division_by_zero_of_the_host_is_an_error_at_its_line():
    compiled = pl.compile(pl.parse(HEAD + HOST.format(text="8 // n")), dump_passes=False)
    with pytest.raises(Diagnosed, match="has no value"):
        compiled(0, 1.5, np.zeros((1, 16), np.float32))


def test_orchestration_code_has_powers_and_conditions():
    from pypto import backend, codegen, passes

    with passes.PassContext(target=backend.ASCEND910B):
        lowered = passes.run_pipeline(pl.parse(HEAD + HOST.format(text="n ** 3 if n > 0 and 8 // n > 1 else n")))
    text = codegen.generate_orchestration(lowered, lowered.get_function("main")).code
    assert "power(static_cast<int32_t>(n), 3)" in text and "((n > 0) && (floor_div(8, n) > 1))" in text
