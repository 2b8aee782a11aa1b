"""CtrlFlowTransform: the structured loop computes what the loop with exits does."""

from __future__ import annotations

import pytest
from checking import findings, unchanged
from hypothesis import given, settings, strategies as st
from scalar_programs import outcome, programs

import pypto.language as pl
from pypto import ir, passes

P = passes.IRProperty


@pl.program
class Exits:
    """A loop nest that leaves iterations on some paths through nested branches only."""

    @pl.function
    def main(self, n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
        total: pl.Scalar[pl.INT64] = 0
        for i in pl.range(0, 20, 2):
            total = total + 1
            if i > 4:
                if i % 3 == 0:
                    continue
                total = total + 10
                if total > n:
                    break
            else:
                if i == 2:
                    continue
            inner: pl.Scalar[pl.INT64] = 0
            while inner < 10:
                inner = inner + 1
                if inner == m:
                    break
                if inner % 2 == 0:
                    continue
                total = total + 100
            total = total + 1000
        return total


@pl.program
class Carried:
    """A loop with values of its own: an iteration left early carries on what it began with."""

    @pl.function
    def main(self, n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
        zero: pl.Scalar[pl.INT64] = 0
        for i, (acc, last) in pl.range(9, 0, -1, init_values=(zero, n)):
            more = acc + 3
            if i == m:
                continue
            if more > n:
                if i < 4:
                    break
                more = more - 2
            grown = more + 1
            low = last - 1
            done, least = pl.yield_(grown, low)
        return done * 1000 + least


@pytest.mark.parametrize("program", [Exits, Carried])
@pytest.mark.parametrize("stage", ["structured", "ssa", "simplified"])
def test_structured_loops_compute_the_same(program, stage):
    after = passes.ctrl_flow_transform()(program)
    assert findings(after, P.StructuredCtrlFlow, P.UseAfterDef, P.TypeChecked, P.NoRedundantBlocks) == []
    if stage != "structured":
        after = passes.convert_to_ssa()(after)
        assert findings(after, P.SSAForm) == []
    if stage == "simplified":
        after = passes.simplify()(after)
    for n in (0, 7, 30, 5000):
        for m in (1, 4, 5, 11):
            assert outcome(after, n, m) == outcome(program, n, m), (n, m)


@settings(max_examples=150, deadline=None)
@given(programs(), st.lists(st.tuples(*[st.integers(-4, 9)] * 3), min_size=1, max_size=4))
def test_every_pass_before_outlining_keeps_what_a_program_computes(program, inputs):
    expected = [outcome(program, *args) for args in inputs]
    stages = (passes.ctrl_flow_transform, passes.convert_to_ssa, passes.simplify, passes.normalize_stmt_structure)
    with passes.PassContext([]):
        early = passes.simplify()(program)
        assert [outcome(early, *args) for args in inputs] == expected
        after = program
        for factory in stages:
            after = factory()(after)
            assert [outcome(after, *args) for args in inputs] == expected, factory.__name__
        assert findings(after, P.SSAForm, P.UseAfterDef, P.TypeChecked, P.NormalizedStmtStructure) == []
        assert passes.simplify()(after) is after or outcome(passes.simplify()(after), *inputs[0]) == expected[0]
        for factory in stages[:2]:
            assert factory()(after) is after


def test_loops_without_exits_and_orchestration_are_returned_as_they_are():
    @pl.program
    class Prog:
        @pl.function
        def plain(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            for _i in pl.range(3):
                x = pl.exp(x)
            return x

        @pl.function(type=pl.FunctionType.Orchestration)
        def host(self, x: pl.Tensor[[64], pl.FP32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[64], pl.FP32]:
            for i in pl.range(3):
                if i > n:
                    break
                x = pl.exp(x)
            return x

    unchanged(Prog, passes.ctrl_flow_transform)


def test_exits_outside_loops_and_from_parallel_ones_are_found():
    program = ir.Program([ir.Function("main", [], [], ir.BreakStmt())])
    assert findings(program, P.BreakContinueValid) == ["'break' outside a loop"]
    i = ir.Var("i", ir.ScalarType(pl.INDEX))
    bounds = [ir.ConstInt(v, pl.INDEX) for v in (0, 4, 1)]
    loop = ir.ForStmt(i, *bounds, [], ir.ContinueStmt(), [], kind=ir.ForKind.Parallel)
    program = ir.Program([ir.Function("main", [], [], loop)])
    assert findings(program, P.BreakContinueValid) == [
        "'continue' in a Parallel loop: only sequential loops can be left"
    ]


def test_a_loop_with_break_needs_to_know_its_direction():
    @pl.program
    class Prog:
        @pl.function
        def main(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:
            total: pl.Scalar[pl.INDEX] = 0
            for i in pl.range(0, 9, n):
                if i > 4:
                    break
                total = total + i
            return total

    with pytest.raises(NotImplementedError, match="a loop with break needs a constant step"):
        passes.ctrl_flow_transform()(Prog)
