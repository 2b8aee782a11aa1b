"""Random expressions keep their value through simplification, and bounds, residues and proofs hold of it."""

from __future__ import annotations

import random

import pytest

from pypto import DataType, ir
from pypto.arith import Analyzer, CanonicalSimplifier, RewriteSimplifier, fold_const

from .evaluate import NoValue, evaluate

_ARITHMETIC = [ir.Add, ir.Sub, ir.Mul, ir.Add, ir.Sub, ir.Min, ir.Max, ir.FloorDiv, ir.FloorMod, ir.FloorDiv]
_COMPARISONS = [ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge]
_CONSTS = [-8, -3, -2, -1, 0, 1, 1, 2, 2, 3, 4, 4, 7, 8]


class Case:
    """Random expressions over three variables of one dtype, each with a random range."""

    def __init__(self, seed: int, dtype: DataType, reach: int) -> None:
        self.random = random.Random(seed)
        self.dtype = dtype
        low, high = dtype.int_range()
        # An INDEX variable is a size or a position: never negative.
        low = 0 if dtype is DataType.INDEX else low
        self.vars = [ir.Var(n, ir.ScalarType(dtype)) for n in "xyz"]
        self.ranges = []
        for _ in self.vars:
            a, b = (self.random.randint(max(low, -reach), min(high, reach)) for _ in range(2))
            self.ranges.append((min(a, b), max(a, b)))

    def integer(self, depth: int) -> ir.Expr:
        if depth == 0 or self.random.random() < 0.15:
            if self.random.random() < 0.6:
                return self.random.choice(self.vars)
            low, _ = self.dtype.int_range()
            return ir.ConstInt(max(low, self.random.choice(_CONSTS)), self.dtype)
        if self.random.random() < 0.08 and self.dtype.is_signed_int():
            return ir.Neg(self.integer(depth - 1), self.dtype)
        cls = self.random.choice(_ARITHMETIC)
        right = self.integer(depth - 1)
        if cls in (ir.FloorDiv, ir.FloorMod) and self.random.random() < 0.7:
            right = ir.ConstInt(self.random.choice([1, 2, 3, 4, 8]), self.dtype)
        return cls(self.integer(depth - 1), right, self.dtype)

    def boolean(self, depth: int) -> ir.Expr:
        roll = self.random.random()
        if depth > 1 and roll < 0.3:
            return self.random.choice([ir.And, ir.Or])(self.boolean(depth - 1), self.boolean(depth - 1), DataType.BOOL)
        if depth > 1 and roll < 0.4:
            return ir.Not(self.boolean(depth - 1), DataType.BOOL)
        cls = self.random.choice(_COMPARISONS)
        return cls(self.integer(depth - 1), self.integer(depth - 1), DataType.BOOL)

    def points(self, count: int):
        for i in range(count):
            yield {
                v: self.random.choice((lo, hi)) if i < 6 else self.random.randint(lo, hi)
                for v, (lo, hi) in zip(self.vars, self.ranges)
            }

    def analyzer(self) -> Analyzer:
        made = Analyzer()
        for v, (lo, hi) in zip(self.vars, self.ranges):
            made.bind(v, lo, hi + 1)
        return made


def _values(e: ir.Expr, case: Case, count: int = 40):
    for point in case.points(count):
        try:
            yield point, evaluate(e, point)
        except NoValue:
            continue


_DTYPES = [(DataType.INT64, 40), (DataType.INDEX, 40), (DataType.INT8, 127), (DataType.UINT8, 255), (DataType.INT32, 9)]


@pytest.mark.parametrize("dtype, reach", _DTYPES, ids=str)
def test_integers_keep_their_value(dtype, reach):
    for seed in range(250):
        case = Case(seed, dtype, reach)
        e = case.integer(4)
        analyzer = case.analyzer()
        made = [analyzer.simplify(e), CanonicalSimplifier()(e), RewriteSimplifier()(e)]
        bound, residue = analyzer.const_int_bound(e), analyzer.modular_set(e)
        for point, value in _values(e, case):
            for m in made:
                assert evaluate(m, point) == value, f"seed {seed}: {e} became {m}, at {list(point.values())}"
            assert bound.min_value <= value <= bound.max_value, f"seed {seed}: {e} is {value}, not in {bound}"
            fits = value == residue.base if residue.coeff == 0 else (value - residue.base) % residue.coeff == 0
            assert fits, f"seed {seed}: {e} is {value}, not in {residue}"


@pytest.mark.parametrize("dtype, reach", _DTYPES, ids=str)
def test_conditions_keep_their_value(dtype, reach):
    for seed in range(250):
        case = Case(seed, dtype, reach)
        e = case.boolean(3)
        analyzer = case.analyzer()
        made = [analyzer.simplify(e), RewriteSimplifier()(e)]
        proven, refuted = analyzer.can_prove(e), analyzer.can_prove(ir.Not(e, DataType.BOOL))
        for point, value in _values(e, case):
            for m in made:
                assert evaluate(m, point) == value, f"seed {seed}: {e} became {m}, at {list(point.values())}"
            assert not (proven and not value) and not (refuted and value), f"seed {seed}: {e} is {value}"


@pytest.mark.parametrize("dtype, reach", _DTYPES, ids=str)
def test_constraints_hold_only_where_they_are_true(dtype, reach):
    for seed in range(200):
        case = Case(seed, dtype, reach)
        condition, e = case.boolean(2), case.integer(3)
        analyzer = case.analyzer()
        before = [analyzer.const_int_bound(v) for v in case.vars]
        with analyzer.constraint_context(condition):
            made, bound = analyzer.simplify(e), analyzer.const_int_bound(e)
            symbolic = analyzer.int_set(e)
            for point, holds in _values(condition, case):
                try:
                    value = evaluate(e, point)
                except NoValue:
                    continue
                if not holds:
                    continue
                assert evaluate(made, point) == value, f"seed {seed}: {e} became {made} where {condition}"
                assert bound.min_value <= value <= bound.max_value, f"seed {seed}: {e} is {value} where {condition}"
                low, high = symbolic.min_value, symbolic.max_value
                assert low is None or evaluate(low, point) <= value, f"seed {seed}: {e} is {value}, below {low}"
                assert high is None or value <= evaluate(high, point), f"seed {seed}: {e} is {value}, above {high}"
        assert [analyzer.const_int_bound(v) for v in case.vars] == before


@pytest.mark.parametrize("dtype, reach", _DTYPES, ids=str)
def test_simplification_settles(dtype, reach):
    for seed in range(150):
        case = Case(seed, dtype, reach)
        analyzer = case.analyzer()
        once = analyzer.simplify(case.integer(4), steps=4)
        assert analyzer.simplify(once) is once, f"seed {seed}: {once} became {analyzer.simplify(once)}"


@pytest.mark.parametrize("dtype", [DataType.INT8, DataType.UINT8, DataType.INT64])
def test_folding_gives_the_machine_value(dtype):
    low, high = dtype.int_range()
    edges = [low, low + 1, -1, 0, 1, 2, 7, 8, high - 1, high]
    consts = [ir.ConstInt(v, dtype) for v in edges if low <= v <= high]
    classes = [*_ARITHMETIC, *_COMPARISONS, ir.BitAnd, ir.BitOr, ir.BitXor, ir.BitShiftLeft, ir.BitShiftRight]
    for cls in classes:
        out = DataType.BOOL if cls in _COMPARISONS else dtype
        for a in consts:
            for b in consts:
                e = cls(a, b, out)
                try:
                    folded = fold_const(e)
                except ValueError:
                    assert b.value == 0 or (a.value == low and b.value == -1)
                    continue
                if folded is not None and not (cls in (ir.FloorDiv, ir.FloorMod) and b.value == 0):
                    assert evaluate(folded, {}) == evaluate(e, {}), f"{e} folded to {folded}"
