"""InlineFunctions: copies, arguments, results, cycles."""

from __future__ import annotations

import pytest
from checking import check, findings, unchanged

import pypto.language as pl
from pypto import ir, passes

P = passes.IRProperty


def test_each_call_gets_a_copy_of_its_own():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Inline)
        def twice(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.mul(x, 2.0)
            return y

        @pl.function
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            b = pl.add(self.twice(a), self.twice(pl.exp(a)))
            return self.twice(b)

    @pl.program
    class Expected:
        @pl.function
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y0 = pl.mul(a, 2.0)
            y1 = pl.mul(pl.exp(a), 2.0)
            b = pl.add(y0, y1)
            y2 = pl.mul(b, 2.0)
            return y2

    after = check(Before, Expected, passes.inline_functions)
    names = [s.var.name_hint for s in ir.flatten_to_stmts(after.get_function("main").body)[:-1]]
    assert names == ["y_inline0", "y_inline1", "b", "y_inline2"]


def test_written_parameters_are_the_argument_and_other_assignments_stay_inside():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Inline)
        def put(self, x: pl.Tensor[[8], pl.FP32], out: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            for _i in pl.range(2):
                x = pl.mul(x, 2.0)
            out = pl.assemble(out, x, [0])
            return out

        @pl.function
        def main(
            self, a: pl.Tensor[[8], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]
        ) -> pl.Tensor[[64], pl.FP32]:
            out = self.put(a, out)
            r = pl.assemble(out, a, [8])
            return r

    @pl.program
    class Expected:
        @pl.function
        def main(
            self, a: pl.Tensor[[8], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]
        ) -> pl.Tensor[[64], pl.FP32]:
            x = a
            for _i in pl.range(2):
                x = pl.mul(x, 2.0)
            put = pl.assemble(out, x, [0])
            out = put
            r = pl.assemble(out, a, [8])
            return r

    check(Before, Expected, passes.inline_functions)


def test_several_results_are_assigned_one_by_one():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Inline)
        def both(
            self, x: pl.Tensor[[64], pl.FP32]
        ) -> tuple[pl.Tensor[[64], pl.FP32], pl.Tensor[[64], pl.FP32]]:
            up = pl.add(x, 1.0)
            down = pl.sub(x, 1.0)
            return up, down

        @pl.function
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            p, q = self.both(a)
            r = pl.mul(p, q)
            return r

    @pl.program
    class Expected:
        @pl.function
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            up = pl.add(a, 1.0)
            down = pl.sub(a, 1.0)
            p = up
            q = down
            r = pl.mul(p, q)
            return r

    check(Before, Expected, passes.inline_functions)


def test_results_that_swap_arguments_are_not_mixed_up():
    @pl.program
    class Prog:
        @pl.function(type=pl.FunctionType.Inline)
        def swap(
            self, x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32]
        ) -> tuple[pl.Tensor[[64], pl.FP32], pl.Tensor[[64], pl.FP32]]:
            return y, x

        @pl.function
        def main(self, a: pl.Tensor[[64], pl.FP32], b: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            a, b = self.swap(a, b)
            r = pl.sub(a, b)
            return r

    main = passes.simplify()(passes.convert_to_ssa()(passes.inline_functions()(Prog))).get_function("main")
    held = {s.var: s.value for s in ir.flatten_to_stmts(main.body) if isinstance(s, ir.AssignStmt)}

    def origin(var):
        value = held.get(var)
        if isinstance(value, ir.TupleGetItemExpr):
            return origin(held[value.tuple].elements[value.index])
        return origin(value) if isinstance(value, ir.Var) else var

    call = next(v for v in held.values() if isinstance(v, ir.Call))
    assert [origin(v).name_hint for v in call.args] == ["b__ssa_v0", "a__ssa_v0"]


def test_inline_functions_call_each_other_but_not_in_a_circle():
    @pl.program
    class Prog:
        @pl.function(type=pl.FunctionType.Inline)
        def inner(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return pl.exp(x)

        @pl.function(type=pl.FunctionType.Inline)
        def outer(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return self.inner(self.inner(x))

        @pl.function
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return self.outer(a)

    after = passes.inline_functions()(Prog)
    assert [f.name for f in after.functions.values()] == ["main"]
    assert findings(after, P.InlineFunctionsEliminated) == []
    assert len(findings(Prog, P.InlineFunctionsEliminated)) == 5

    @pl.program
    class Circle:
        @pl.function(type=pl.FunctionType.Inline)
        def a(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return self.b(x)

        @pl.function(type=pl.FunctionType.Inline)
        def b(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return self.a(x)

    with pytest.raises(ValueError, match="Cycle detected among Inline functions: a -> b -> a"):
        passes.inline_functions()(Circle)


def test_programs_without_inline_functions_are_returned_as_they_are():
    @pl.program
    class Prog:
        @pl.function
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return pl.exp(a)

    unchanged(Prog, passes.inline_functions)
