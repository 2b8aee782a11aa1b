"""UnrollLoops: iterations, constants, limits."""

from __future__ import annotations

import pytest
from checking import check, findings, unchanged

import pypto.language as pl
from pypto import ir, passes
from pypto.dtypes import DataType

P = passes.IRProperty


def test_iterations_follow_one_another_downwards_too():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64, 8], pl.FP32]) -> pl.Tensor[[8, 8], pl.FP32]:
            y = pl.create_tensor([8, 8], dtype=pl.FP32)
            for i in pl.unroll(6, 0, -3):
                for j in pl.unroll(2):
                    y = pl.add(y, pl.slice(x, [8, 8], [i * 8 + j, 0]))
            return y

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[64, 8], pl.FP32]) -> pl.Tensor[[8, 8], pl.FP32]:
            y = pl.create_tensor([8, 8], dtype=pl.FP32)
            y = pl.add(y, pl.slice(x, [8, 8], [48, 0]))
            y = pl.add(y, pl.slice(x, [8, 8], [49, 0]))
            y = pl.add(y, pl.slice(x, [8, 8], [24, 0]))
            y = pl.add(y, pl.slice(x, [8, 8], [25, 0]))
            return y

    after = check(Before, Expected, passes.unroll_loops)
    assert findings(Before, P.UnrollResolved) and findings(after, P.UnrollResolved) == []


def test_no_iteration_leaves_nothing():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            for _i in pl.unroll(3, 3):
                x = pl.exp(x)
            return x

    assert isinstance(passes.unroll_loops()(Prog).get_function("main").body, ir.ReturnStmt)


def test_other_loops_are_returned_as_they_are():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            for _i in pl.range(3):
                x = pl.exp(x)
            return x

    unchanged(Prog, passes.unroll_loops)


def unrolled(start, stop, step, body=None):
    index = ir.ScalarType(DataType.INDEX)
    n, i = ir.Var("n", index), ir.Var("i", index)
    bounds = [n if v == "n" else ir.ConstInt(v, DataType.INDEX) for v in (start, stop, step)]
    loop = ir.ForStmt(i, *bounds, [], body or ir.EvalStmt(i), [], ir.Span("k.py", 2, 1, 2, 9), ir.ForKind.Unroll)
    return ir.Program([ir.Function("main", [n], [], loop)])


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0, "n", 1), "the stop of an unrolled loop must be a constant"),
        ((0, 4, 0), "step of an unrolled loop must not be 0"),
        ((0, 4096, 1), "unrolling 4096 iterations exceeds maximum allowed 1024"),
    ],
)
def test_what_cannot_be_unrolled_is_refused(bounds, message):
    with pytest.raises(ValueError, match=message):
        passes.unroll_loops()(unrolled(*bounds))


def test_arithmetic_that_has_no_value_is_refused_where_it_stands():
    program = unrolled(0, 2, 1)
    loop = program.get_function("main").body
    divided = ir.FloorDiv(ir.ConstInt(8, DataType.INDEX), loop.loop_var, DataType.INDEX, ir.Span("k.py", 3, 5, 3, 9))
    body = ir.EvalStmt(divided)
    function = program.get_function("main")
    with pytest.raises(ValueError, match="8 // 0 has no value") as caught:
        passes.unroll_loops()(program.with_functions([function.replace(body=loop.replace(body=body))]))
    assert caught.value.span.begin_line == 3
