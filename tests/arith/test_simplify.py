"""The forms simplification arrives at."""

from __future__ import annotations

import pytest

from pypto import DataType, ir
from pypto.arith import Analyzer, CanonicalSimplifier, RewriteSimplifier

IDX, INT, BOOL = DataType.INDEX, DataType.INT64, DataType.BOOL
x, y, z = (ir.Var(n, ir.ScalarType(INT)) for n in "xyz")
n = ir.Var("n", ir.ScalarType(IDX))


def c(value: int, dtype: DataType = INT) -> ir.ConstInt:
    return ir.ConstInt(value, dtype)


def show(e: ir.Expr) -> str:
    return str(e).replace("pl.const(", "").replace(", pl.INT64)", "").replace("pl.", "")


def lo(a, b):
    return ir.Min(a, b, INT)


def hi(a, b):
    return ir.Max(a, b, INT)


@pytest.mark.parametrize(
    "expr, text",
    [
        (x + 3 + 5, "x + 8"),
        (x - 3 + 1, "x - 2"),
        (3 + x, "x + 3"),
        (c(10) - x, "10 - x"),
        (c(0) - x, "-x"),
        (-(x + 3), "-x + -3"),
        (x + x * 2, "x * 3"),
        ((x + 1) * 2, "x * 2 + 2"),
        (x - (y - z), "x + z - y"),
        (x * 4 * 8, "x * 32"),
        (x * 0, "0"),
        ((x * 12) // 4 // 3, "x"),
        ((x * 4 + 2) // 4, "x"),
        ((x * 4 + 6) % 4, "2"),
        ((x + 6) // 3, "x // 3 + 2"),
        ((x * 4) // 6, "x * 2 // 3"),
        (x // 3 // 4, "x // 12"),
        ((x // 3 + 2) // 4, "(x + 6) // 12"),
        ((x // 8) * 8 + x % 8, "x"),
        ((x // 8) * 4 + x % 8, "x // 8 * 4 + x % 8"),
        (x - (x // 4) * 4, "x % 4"),
        ((x - x % 4) // 4, "x // 4"),
        (x % 12 % 4, "x % 4"),
        ((x * 7) % 3, "x % 3"),
        ((x - 5) % 4, "(x + 3) % 4"),
        (x // -1, "x // -1"),
        (lo(x, x + 1), "x"),
        (hi(x + 3, y + 3), "max(x, y) + 3"),
        (lo(x * 3, y * 3), "min(x, y) * 3"),
        (lo(hi(x, y), y), "y"),
        (lo(lo(x, c(5)), c(3)), "min(x, 3)"),
        (hi(x, y) + lo(y, x), "x + y"),
        (lo(x + y, z) - x, "min(y, z - x)"),
        (x + y < x + z, "y < z"),
        (x + 2 < c(5), "x < 3"),
        (x * 4 <= y * 4, "x <= y"),
        (x * 4 == c(8), "x == 2"),
        (x // 4 < c(3), "x < 12"),
        (ir.Not(x < y, BOOL), "y <= x"),
        (ir.And(x < c(3), x < c(5), BOOL), "x < 3"),
        (ir.Or(x < y, x == y, BOOL), "x <= y"),
        (ir.Or(x < y, y <= x, BOOL), "True"),
        (ir.And(x < c(3), c(5) < x, BOOL), "False"),
    ],
)
def test_the_analyzer_arrives_at(expr, text):
    assert show(Analyzer().simplify(expr)) == text


def test_what_cannot_be_simplified_stays_the_same_object():
    analyzer = Analyzer()
    for e in (x, x + 1, x * 2 + y, x // 8, x % 8, lo(x, y), x < y, ir.Call(ir.Op("f"), [x], x.type), (x + y) // z):
        assert analyzer.simplify(e) is e


def test_without_distribution_products_stay_products():
    assert show(RewriteSimplifier()((x + 1) * 2)) == "(x + 1) * 2"
    assert show(RewriteSimplifier()((x - y) * -3)) == "(y - x) * 3"
    assert show(CanonicalSimplifier()((x + 1) * 2)) == "x * 2 + 2"


def test_narrow_arithmetic_wraps():
    a = ir.Var("a", ir.ScalarType(DataType.INT8))

    def k(value):
        return ir.ConstInt(value, DataType.INT8)

    analyzer = Analyzer()
    doubled = ir.FloorDiv(ir.Mul(a, k(2), DataType.INT8), k(2), DataType.INT8)
    assert analyzer.simplify(doubled) is doubled, "100 * 2 // 2 is -28"
    grown = ir.Gt(ir.Add(a, k(1), DataType.INT8), a, BOOL)
    assert analyzer.simplify(grown) is grown, "127 + 1 is -128"
    analyzer.bind(a, -10, 10)
    assert analyzer.simplify(doubled) is a
    assert analyzer.can_prove(grown)


def test_effects_are_kept():
    launch = ir.Call(ir.GlobalVar("kernel"), [], {}, {}, ir.ScalarType(INT), ir.Span.unknown())
    analyzer = Analyzer()
    for e in (launch * 0, launch - launch, lo(launch, launch), launch % 1):
        assert analyzer.simplify(e) is e


def test_nothing_is_said_about_division_by_zero():
    analyzer = Analyzer()
    for e in (x // 0, x % 0, c(5) // 0, x // x, (x * 5) // x, (x * y) % y):
        assert analyzer.simplify(e) is e
    analyzer.bind(y, 1, 100)
    assert show(analyzer.simplify(y // y)) == "1"
    assert show(analyzer.simplify((y * 5) // y)) == "5"
    assert show(analyzer.simplify((x * y) % y)) == "0"


def test_bounds_decide():
    analyzer = Analyzer()
    analyzer.bind(x, 0, 8)
    analyzer.bind(y, 8, 100)
    for e, text in (
        (x // 8, "0"),
        (x % 8, "x"),
        ((z * 8 + x) // 8, "z"),
        ((z * 8 + x) % 8, "x"),
        ((y * 8 - x - 1) // 8, "y - 1"),
        (lo(x, y), "x"),
        (hi(x, y), "y"),
        (x < y, "True"),
        (x == c(8), "False"),
        (x // 4, "x // 4"),
    ):
        assert show(analyzer.simplify(e)) == text
    analyzer.unbind(x)
    assert show(analyzer.simplify(x % 8)) == "x % 8"


def test_a_variable_with_one_value_is_that_value():
    analyzer = Analyzer()
    analyzer.bind(x, 5, 6)
    analyzer.bind(y, x + n)
    assert show(analyzer.simplify(x * 2 + y)) == "n + 15"
    with pytest.raises(ValueError, match="empty"):
        analyzer.bind(z, 3, 3)
    with pytest.raises(ValueError, match="end"):
        analyzer.bind(z, 3)


def test_residues_decide():
    analyzer = Analyzer()
    analyzer.bind(y, x * 16 + 4)
    assert analyzer.is_multiple_of(y, 4) and not analyzer.is_multiple_of(y, 8)
    assert show(analyzer.simplify(y % 16)) == "4"
    assert analyzer.is_multiple_of(x * 8 + y * 4, 8) and analyzer.is_multiple_of(c(0), 7)


def test_sizes_are_not_negative():
    analyzer = Analyzer()
    assert analyzer.is_non_negative(n) and analyzer.is_non_negative(n * 4 + 3)
    assert not analyzer.is_non_negative(n - 1) and not analyzer.is_non_negative(x)
    assert analyzer.simplify(ir.Max(n, c(0, IDX), IDX)) is n


def test_a_long_expression_is_no_worse_than_its_length():
    e = x
    for i in range(300):
        e = e + (y if i % 2 else 1)
    assert show(Analyzer().simplify(e)) == "x + y * 150 + 150"
