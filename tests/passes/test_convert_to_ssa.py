"""ConvertToSSA: versions, phis, carried values, and what cannot be converted."""

from __future__ import annotations

import numpy as np
import pytest
from checking import check, findings, run, unchanged

import pypto.language as pl
from pypto import InternalError, ir, passes
from pypto.dtypes import DataType

P = passes.IRProperty
I64 = ir.ScalarType(DataType.INT64)


def names(program, function="main"):
    return [v.name_hint for v in program.get_function(function).params]


def test_each_assignment_is_a_new_version():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            x = pl.exp(x)
            y = pl.add(x, x)
            x = pl.mul(y, x)
            return x

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            a = pl.exp(x)
            y = pl.add(a, a)
            b = pl.mul(y, a)
            return b

    after = check(Before, Expected, passes.convert_to_ssa)
    assert names(after) == ["x__ssa_v0"]


def test_a_branch_returns_what_it_reassigns():
    @pl.program
    class Before:
        @pl.function
        def main(
            self, x: pl.Tensor[[32], pl.FP32], big: pl.Scalar[pl.BOOL], out: pl.Out[pl.Tensor[[32], pl.FP32]]
        ) -> pl.Tensor[[32], pl.FP32]:
            y = pl.exp(x)
            if big:
                y = pl.mul(y, 2.0)
            z = pl.add(y, x)
            return z

    @pl.program
    class Expected:
        @pl.function
        def main(
            self, x: pl.Tensor[[32], pl.FP32], big: pl.Scalar[pl.BOOL], out: pl.Out[pl.Tensor[[32], pl.FP32]]
        ) -> pl.Tensor[[32], pl.FP32]:
            y0 = pl.exp(x)
            if big:
                y1 = pl.mul(y0, 2.0)
                y = pl.yield_(y1)
            else:
                y = pl.yield_(y0)
            z = pl.add(y, x)
            return z

    check(Before, Expected, passes.convert_to_ssa)


def test_a_name_both_branches_bind_is_returned_only_when_read_after():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32], c: pl.Scalar[pl.BOOL]) -> pl.Tensor[[32], pl.FP32]:
            if c:
                t = pl.exp(x)
                y = pl.add(t, x)
            else:
                t = pl.mul(x, x)
                y = pl.sub(t, x)
            return y

    after = run(Prog, passes.convert_to_ssa)
    branch = ir.flatten_to_stmts(after.get_function("main").body)[0]
    assert [v.name_hint for v in branch.return_vars] == ["y__phi_v2"]


def test_nested_loops_carry_what_they_reassign_in_name_order():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            total = pl.exp(x)
            part = pl.mul(x, x)
            for i in pl.range(4):
                for _j in pl.range(i):
                    part = pl.add(part, x)
                total = pl.add(total, part)
            return total

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            t0 = pl.exp(x)
            p0 = pl.mul(x, x)
            for i, (p1, t1) in pl.range(4, init_values=(p0, t0)):
                for _j, (p2,) in pl.range(i, init_values=(p1,)):
                    p3 = pl.add(p2, x)
                    p4 = pl.yield_(p3)
                t2 = pl.add(t1, p4)
                p5, t3 = pl.yield_(p4, t2)
            return t3

    check(Before, Expected, passes.convert_to_ssa)


def test_a_while_loop_tests_its_carried_value():
    @pl.program
    class Before:
        @pl.function
        def main(self, n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
            i: pl.Scalar[pl.INT64] = 0
            while i < n:
                i = i + 3
            return i

    @pl.program
    class Expected:
        @pl.function
        def main(self, n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
            i0: pl.Scalar[pl.INT64] = 0
            for (i1,) in pl.while_(init_values=(i0,)):
                pl.cond(i1 < n)
                i2 = i1 + 3
                i3 = pl.yield_(i2)
            return i3

    check(Before, Expected, passes.convert_to_ssa)


def test_types_mention_the_versions_of_their_place():
    """The same extent, reassigned between two slices, is two different extents."""

    @pl.program
    class Prog:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
        ):
            rows = pl.min(n, 8)
            a = pl.tensor.slice(x, [8, 32], [0, 0], valid_shape=[rows, 32])
            rows = pl.min(n, 4)
            _b = pl.tensor.slice(x, [8, 32], [8, 0], valid_shape=[rows, 32])
            _c = a

    after = run(Prog, passes.convert_to_ssa)
    a, b, c = (s.var for s in ir.flatten_to_stmts(after.get_function("main").body) if hasattr(s.value.type, "shape"))
    assert [v.type.valid_shape[0].name_hint for v in (a, b, c)] == ["rows__ssa_v0", "rows__ssa_v1", "rows__ssa_v0"]


def test_converted_programs_are_returned_as_they_are():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            for _i in pl.range(4):
                x = pl.add(x, 1.0)
            return x

    unchanged(passes.convert_to_ssa()(Prog), passes.convert_to_ssa)


def loop_program(direction, trips, result_type=None):
    """A loop whose body is first to assign what the function returns."""
    tensor = result_type or ir.TensorType([32], DataType.FP32)
    a, out, t = ir.Var("a", tensor), ir.Var("out", tensor), ir.Var("t", tensor, ir.Span("k.py", 3, 5, 3, 6))
    i = ir.Var("i", ir.ScalarType(DataType.INDEX))
    bounds = [ir.ConstInt(v, DataType.INDEX) for v in (0, trips, 1)]
    loop = ir.ForStmt(i, *bounds, [], ir.AssignStmt(t, a), [])
    body = ir.seq([loop, ir.ReturnStmt([t])])
    return ir.Program([ir.Function("main", [a, (out, direction)], [tensor], body)])


def test_a_value_that_leaves_a_loop_starts_as_the_out_parameter():
    after = passes.convert_to_ssa()(loop_program(ir.ParamDirection.Out, 4))
    loop = ir.flatten_to_stmts(after.get_function("main").body)[0]
    assert loop.iter_args[0].init_value is after.get_function("main").params[1]
    assert findings(after, P.SSAForm, P.UseAfterDef) == []


def test_a_value_that_leaves_a_loop_needs_a_start():
    with pytest.raises(ValueError, match="'t' is first assigned inside the loop and read after it") as caught:
        passes.convert_to_ssa()(loop_program(ir.ParamDirection.In, 4))
    assert caught.value.span.begin_line == 3
    assert "before the loop" in caught.value.hint


def test_a_scalar_that_leaves_a_loop_that_certainly_runs_needs_none():
    after = passes.convert_to_ssa()(loop_program(ir.ParamDirection.In, 2, I64))
    assert findings(after, P.SSAForm) == []
    with pytest.raises(ValueError, match="first assigned inside the loop"):
        passes.convert_to_ssa()(loop_program(ir.ParamDirection.In, 0, I64))


def test_a_name_bound_in_one_branch_cannot_be_read_after_it():
    span = ir.Span("k.py", 7, 9, 7, 10)
    c, a, t = ir.Var("c", ir.ScalarType(DataType.BOOL)), ir.Var("a", I64), ir.Var("t", I64, span)
    body = ir.seq([ir.IfStmt(c, ir.AssignStmt(t, a)), ir.ReturnStmt([t])])
    program = ir.Program([ir.Function("main", [c, a], [I64], body)])
    with pytest.raises(ValueError, match="'t' is read here but assigned on one path only") as caught:
        passes.convert_to_ssa()(program)
    assert caught.value.span is span


def test_reserved_names_are_refused():
    @pl.program
    class Prog:
        @pl.function
        def main(self, my__x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            y = pl.exp(my__x)
            return y

    with pytest.raises(ValueError, match="reserved delimiter '__'"):
        passes.convert_to_ssa()(Prog)


def test_a_yield_in_the_middle_is_a_broken_invariant():
    a = ir.Var("a", I64)
    body = ir.SeqStmts([ir.YieldStmt([a]), ir.ReturnStmt([a])])
    with pytest.raises(InternalError, match="YieldStmt at position 0"):
        passes.convert_to_ssa()(ir.Program([ir.Function("main", [a], [I64], body)]))




def test_cost_grows_linearly():
    """Ten times the statements are far from a hundred times the variables copied."""

    def straight(count):
        x = ir.Var("x", I64)
        stmts = [ir.AssignStmt(x, ir.Add(x, x, DataType.INT64)) for _ in range(count)]
        return ir.Program([ir.Function("main", [x], [I64], ir.seq([*stmts, ir.ReturnStmt([x])]))])

    after = passes.convert_to_ssa()(straight(2000))
    assert findings(after, P.SSAForm) == []
    assert ir.flatten_to_stmts(after.get_function("main").body)[1999].var.name_hint == "x__ssa_v2000"


def test_a_name_a_loop_only_uses_for_itself_is_not_carried():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            t = pl.exp(x)
            y = pl.add(t, x)
            for _i in pl.range(4):
                t = pl.mul(y, 2.0)
                y = pl.add(t, y)
            return y

    @pl.program
    class Expected:
        @pl.function
        def main(self, x: pl.Tensor[[32], pl.FP32]) -> pl.Tensor[[32], pl.FP32]:
            a = pl.exp(x)
            y = pl.add(a, x)
            for _i, (held,) in pl.range(4, init_values=(y,)):
                b = pl.mul(held, 2.0)
                c = pl.add(b, held)
                result = pl.yield_(c)
            return result

    check(Before, Expected, passes.convert_to_ssa)


@pytest.mark.parametrize("change", ["found = seen + 7", "if seen > 2:\n            found = 9"])
def test_what_only_the_condition_of_a_loop_reads_is_carried(change: str) -> None:
    program = pl.parse(f"""
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def count(first: pl.Scalar[pl.INT32], out: pl.InOut[pl.Tensor[[8], pl.INT32]]):
    seen: pl.Scalar[pl.INT32] = 0
    found: pl.Scalar[pl.INT32] = first
    while found < 9:
        seen = seen + 1
        {change}
    pl.write(out, [1], seen)
""")
    out = np.zeros(8, np.int32)
    pl.compile(program)(0, out)
    assert out.tolist() == [0, 2 if "if" not in change else 3, *[0] * 6]
