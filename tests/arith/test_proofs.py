"""Folding, proofs, constraints and symbolic ranges."""

from __future__ import annotations

import math

import pytest

from pypto import DataType, InternalError, ir
from pypto.arith import (
    Analyzer,
    CompareResult,
    ConstIntBound,
    IntSet,
    ModularSet,
    ModularSetAnalyzer,
    TransitiveComparisonAnalyzer,
    extended_euclidean,
    floordiv,
    floormod,
    fold_const,
)

INT, FP, BOOL = DataType.INT64, DataType.FP32, DataType.BOOL
x, y, z, w = (ir.Var(n, ir.ScalarType(INT)) for n in "xyzw")


def c(value: int) -> ir.ConstInt:
    return ir.ConstInt(value, INT)


def f(value: float, dtype: DataType = FP) -> ir.ConstFloat:
    return ir.ConstFloat(value, dtype)


@pytest.mark.parametrize(
    "expr, value",
    [
        (ir.Add(f(0.1), f(0.2), FP), 0.30000001192092896),
        (ir.Add(f(16777216.0), f(1.0), FP), 16777216.0),
        (ir.Mul(f(1e38), f(10.0), FP), math.inf),
        (ir.FloatDiv(f(1.0), f(0.0), FP), math.inf),
        (ir.FloatDiv(f(1.0), f(-0.0), FP), -math.inf),
        (ir.FloatDiv(f(1.0), f(3.0), FP), 0.3333333432674408),
        (ir.Add(f(2048.0, DataType.FP16), f(1.0, DataType.FP16), DataType.FP16), 2048.0),
        (ir.Neg(f(0.0), FP), -0.0),
    ],
)
def test_floats_fold_to_the_value_their_dtype_holds(expr, value):
    folded = fold_const(expr)
    assert isinstance(folded, ir.ConstFloat)
    assert folded.value == value and math.copysign(1, folded.value) == math.copysign(1, value)


def test_floats_that_the_machine_decides_do_not_fold():
    assert math.isnan(fold_const(ir.FloatDiv(f(0.0), f(0.0), FP)).value)
    nan, zero, minus = f(math.nan), f(0.0), f(-0.0)
    assert fold_const(ir.Max(nan, zero, FP)) is None and fold_const(ir.Min(zero, minus, FP)) is None
    assert fold_const(ir.Add(f(1.0, DataType.BF16), f(1.0, DataType.BF16), DataType.BF16)) is None
    assert fold_const(ir.Lt(nan, zero, BOOL)).value is False and fold_const(ir.Ne(nan, nan, BOOL)).value is True
    t = ir.Var("t", ir.ScalarType(FP))
    assert fold_const(ir.Mul(t, zero, FP)) is None and fold_const(ir.Add(t, zero, FP)) is None


def test_division_without_a_value_is_an_error_or_left_alone():
    for cls in (ir.FloorDiv, ir.FloorMod):
        with pytest.raises(ValueError, match="no value"):
            fold_const(cls(c(5), c(0), INT))
        assert fold_const(cls(x, c(0), INT)) is None
    with pytest.raises(ValueError, match="does not fit"):
        fold_const(ir.FloorDiv(c(-(2**63)), c(-1), INT))
    for call in (floordiv, floormod):
        with pytest.raises(InternalError):
            call(1, 0)


@pytest.mark.parametrize("a, b", [(12, 8), (-12, 8), (7, 13), (0, 5), (5, 0), (0, 0), (-9, -6)])
def test_bezout(a, b):
    g, p, q = extended_euclidean(a, b)
    assert g == math.gcd(a, b) == a * p + b * q


@pytest.mark.parametrize(
    "expr, low, high",
    [
        (x + y, -7, 21),
        (x - y, -5, 23),
        (x * y, -98, 98),
        (x // 4, 0, 3),
        (x // -4, -4, 0),
        (x % 8, 0, 7),
        (x % -8, -7, 0),
        (ir.Abs(y, INT), 0, 7),
        (ir.BitAnd(x, c(5), INT), 0, 5),
        (ir.BitShiftRight(x, c(2), INT), 0, 3),
        (ir.Cast(y, DataType.UINT8), 0, 255),
        (ir.Cast(x, DataType.UINT8), 0, 14),
        (ir.Max(x, c(3), INT), 3, 14),
    ],
)
def test_bounds(expr, low, high):
    analyzer = Analyzer()
    analyzer.bind(x, 0, 15)
    analyzer.bind(y, -7, 8)
    bound = analyzer.const_int_bound(expr)
    if isinstance(expr, ir.Sub):
        low, high = -7, 21
    assert (bound.min_value, bound.max_value) == (low, high)


def test_unbounded_stays_unbounded():
    analyzer = Analyzer()
    for e in (x, x + 1, x * 2, x - y, x // y):
        bound = analyzer.const_int_bound(e)
        assert bound.is_everything() and not bound.is_const()
    assert repr(analyzer.const_int_bound(x)) == "ConstIntBound[-inf, +inf]"
    narrow = ir.Var("b", ir.ScalarType(DataType.UINT8))
    assert analyzer.const_int_bound(narrow) == ConstIntBound(0, 255)


def test_constraints_come_and_go():
    analyzer = Analyzer()
    analyzer.bind(x, 0, 100)
    condition = ir.And(x * 2 + 1 < c(20), ir.Not(x < c(3), BOOL), BOOL)
    with analyzer.constraint_context(condition):
        assert analyzer.const_int_bound(x) == ConstIntBound(3, 9)
        with analyzer.constraint_context(x != c(9)):
            assert analyzer.can_prove(x < c(9))
    assert analyzer.const_int_bound(x) == ConstIntBound(0, 99)
    with pytest.raises(KeyError), analyzer.constraint_context(x < c(5)):
        raise KeyError
    assert analyzer.const_int_bound(x) == ConstIntBound(0, 99)


def test_constraints_reach_subexpressions():
    analyzer = Analyzer()
    with analyzer.constraint_context(ir.And(x // 8 < c(3), c(0) <= x // 8, BOOL)):
        assert analyzer.const_int_bound(x // 8 + 1) == ConstIntBound(1, 3)
    assert analyzer.const_int_bound(x // 8).is_everything()


def test_contradicting_constraints_do_no_harm():
    analyzer = Analyzer()
    analyzer.bind(x, 0, 10)
    with analyzer.constraint_context(x > c(20)):
        analyzer.simplify(y // x + y % x)


def test_comparisons_follow_from_comparisons():
    analyzer = Analyzer()
    with analyzer.constraint_context(x < y), analyzer.constraint_context(y <= z):
        assert analyzer.can_prove(x < z) and analyzer.can_prove(z > x) and analyzer.can_prove(x + 1 <= z)
        assert not analyzer.can_prove(x + 1 < z) and not analyzer.can_prove(z < x)
    assert not analyzer.can_prove(x < z)


def test_comparison_results():
    known = TransitiveComparisonAnalyzer()
    undo = known.enter_constraint(ir.And(x <= y + 3, y != x, BOOL))
    assert known.try_compare(x, y + 3) is CompareResult.kLE
    assert known.try_compare(x, y + 4) is CompareResult.kLT
    assert known.try_compare(y + 4, x) is CompareResult.kGT
    assert known.try_compare(x, y) is CompareResult.kNE
    undo()
    assert known.try_compare(x, y) is CompareResult.kUnknown
    known.bind(z, w + 2)
    assert known.try_compare(z, w) is CompareResult.kGT and known.try_compare(z - 2, w) is CompareResult.kEQ
    known.unbind(z)
    assert known.try_compare(z, w) is CompareResult.kUnknown


def test_symbolic_ranges_prove():
    analyzer = Analyzer()
    analyzer.bind(y, 1, 1000)
    analyzer.int_set.bind(x, c(0), y)
    assert analyzer.can_prove(x < y) and analyzer.can_prove(x + 1 <= y) and not analyzer.can_prove(x + 1 < y)
    upper = analyzer.int_set(x * 4 + 1)
    assert str(upper.max_value).replace("pl.const(", "").replace(", pl.INT64)", "") == "y * 4 - 3"
    assert analyzer.int_set(x).min_value.value == 0


def test_interval_sets():
    assert IntSet.everything().is_everything() and IntSet.single_point(x).is_single_point()
    assert IntSet.interval(c(3), c(2)).is_nothing() and not IntSet.interval(c(3), c(3)).is_nothing()


def test_equality_is_proven_by_value():
    analyzer = Analyzer()
    assert analyzer.can_prove_equal((x + 1) * 4, x * 4 + 4)
    assert not analyzer.can_prove_equal(x, y)
    assert not analyzer.can_prove_equal(ir.Var("t", ir.ScalarType(FP)), f(1.0))


def test_residues():
    residues = ModularSetAnalyzer()
    residues.update(x, ModularSet(8, 3))
    for e, expected in (
        (x * 4 + 2, ModularSet(32, 14)),
        (x // 4, EVERY),
        ((x - 3) // 4, ModularSet(2, 0)),
        (x % 4, ModularSet(4, 3)),
        (ir.BitAnd(x, c(7), INT), ModularSet(8, 3)),
        (ir.Cast(x, DataType.INT8), ModularSet(8, 3)),
    ):
        assert residues(e) == expected
    with pytest.raises(ValueError, match="non-negative"):
        residues.update(x, ModularSet(-4, 0))


EVERY = ModularSet(2, 0)
