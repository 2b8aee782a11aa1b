"""Expressions solved for the symbol they do not know."""

import pytest

from pypto.arith.inverse import solve
from pypto.dtypes import DataType
from pypto.ir.expr import Add, FloorDiv, Mul, Sub, Var, index_const
from pypto.ir.types import ScalarType
from pypto.ops.rules import value

INDEX = DataType.INDEX
N, M = Var("n", ScalarType(INDEX)), Var("m", ScalarType(INDEX))


def number(n):
    return index_const(n)


@pytest.mark.parametrize(
    ("expr", "steps"),
    [
        (N, []),
        (Add(number(3), N, INDEX), [("less", 3)]),
        (Sub(N, number(3), INDEX), [("plus", 3)]),
        (Sub(number(3), N, INDEX), [("from", 3)]),
        (Add(Mul(N, number(4), INDEX), number(2), INDEX), [("less", 2), ("over", 4)]),
    ],
)
def test_the_steps_lead_back_to_the_symbol(expr, steps):
    assert solve(expr, value) == (N, steps)


@pytest.mark.parametrize(
    "expr",
    [
        number(3),
        Add(N, M, INDEX),
        Add(number(1), number(2), INDEX),
        Mul(N, number(0), INDEX),
        FloorDiv(N, number(2), INDEX),
    ],
)
def test_what_does_not_say_one_value_has_no_steps(expr):
    assert solve(expr, value) is None
