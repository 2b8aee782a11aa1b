"""Programs: methods that call each other, functions from outside, inline functions."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import ParserSyntaxError, ParserTypeError, UndefinedVariableError, UnsupportedFeatureError
from pypto.ir.stmt import flatten_to_stmts
from pypto.language.parser.program_parser import program_of

N = pl.dynamic("N")


def calls(function: ir.Function | None) -> list[ir.Call]:
    assert function is not None
    return [s.value for s in flatten_to_stmts(function.body) if isinstance(s, ir.AssignStmt)]


def test_calls_look_ahead():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
            y = self.later(x, out)
            return y

        @pl.function(type=pl.FunctionType.InCore)
        def later(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
            return pl.store(pl.load(x, [0], [64]), [0], out)

    assert P.name == "P"
    (call,) = calls(P.get_function("main"))
    assert call.op is P.get_global_var("later")
    assert call.type == P.get_function("later").params[1].type
    assert [p.name_hint for p in P.get_function("main").params] == ["x", "out"]


def test_dimensions_of_the_callee_become_those_of_the_arguments():
    @pl.program
    class P:
        @pl.function
        def rows(self, x: pl.Tensor[[N, 8], pl.FP32], y: pl.Tensor[[N * 2, 8], pl.FP32]) -> pl.Tensor[[N, 8], pl.FP32]:
            return x

        @pl.function
        def main(self, x: pl.Tensor[[32, 8], pl.FP32], y: pl.Tensor[[64, 8], pl.FP32]):
            z = self.rows(x, y)
            return z

    (call,) = calls(P.get_function("main"))
    assert [d.value for d in call.type.shape] == [32, 8]


def test_arguments_are_checked():
    header = """N = pl.dynamic('N')
@pl.program
class P:
    @pl.function
    def f(self, x: pl.Tensor[[8, N], pl.FP32], n: pl.Scalar[pl.INT32]):
        return x
    @pl.function
    def main(self, x: pl.Tensor[[8, 4], pl.FP32]):
"""

    def error(body: str, kind: type[Exception], message: str) -> None:
        with pytest.raises(kind, match=message):
            pl.parse(f"{header}        {body}\n")

    error("y = self.f(x)", ParserTypeError, r"expects 2 argument\(s\), got 1")
    error("y = self.f(x, 1, 2)", ParserTypeError, r"expects 2 argument\(s\), got 3")
    error("y = self.f(x, m=1)", ParserTypeError, "has no parameter 'm'")
    error("y = self.f(x, 1, n=1)", ParserTypeError, "got 'n' twice")
    error("y = self.f(x, 1.5)", ParserTypeError, "Argument 'n' of 'f' does not fit: .*dtype int32, the argument fp32")
    error("y = self.f(x[0:4, :], 1)", ParserTypeError, "shape dimension 0 = 8, the argument 4")
    error("y = self.g(x)", UndefinedVariableError, "Function 'g' is not defined")


def test_bare_numbers_take_the_parameters_dtype():
    @pl.program
    class P:
        @pl.function
        def f(self, n: pl.Scalar[pl.INT32], s: pl.Scalar[pl.FP16]):
            return n

        @pl.function
        def main(self, x: pl.Scalar[pl.INT32]):
            y = self.f(s=2, n=3)
            return y

    (call,) = calls(P.get_function("main"))
    assert [(type(a), a.value, a.dtype) for a in call.args] == [
        (ir.ConstInt, 3, pl.INT32),
        (ir.ConstFloat, 2.0, pl.FP16),
    ]


def test_conflicting_dimensions():
    with pytest.raises(ParserSyntaxError, match="conflicting bindings of dimension 'N' of 'f': 8 and 9"):

        @pl.program
        class P:
            @pl.function
            def f(self, a: pl.Tensor[[N], pl.FP32], b: pl.Tensor[[N], pl.FP32]):
                return a

            @pl.function
            def main(self, a: pl.Tensor[[8], pl.FP32], b: pl.Tensor[[9], pl.FP32]):
                return self.f(a, b)


@pl.function
def twice(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
    return pl.mul(x, 2.0)


@pl.function
def four_times(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
    return twice(twice(x))


def test_functions_from_outside_join_the_program():
    @pl.program
    class P:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = four_times(x)
            z = four_times(y)
            return z

    assert [g.name for g in P.functions] == ["four_times", "main", "twice"]
    assert P.get_function("four_times") is four_times
    first, second = calls(P.get_function("main"))
    assert first.op is second.op is P.get_global_var("four_times")
    assert [g.name for g in program_of(four_times).functions] == ["four_times", "twice"]


def test_inline_functions_expand_each_time():
    factor = 3.0

    @pl.inline
    def scaled(x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32]):
        r = pl.mul(x, factor)
        return pl.add(r, y)

    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        r = scaled(x, y=x)
        s = scaled(r, r)
        return s

    body = flatten_to_stmts(f.body)
    assert [s.value.op.name for s in body[:4]] == ["tensor.muls", "tensor.add", "tensor.muls", "tensor.add"]
    assert body[0].var is not body[2].var
    with pytest.raises(ParserTypeError, match=r"Inline function 'scaled' expects 2 argument\(s\), got 1"):

        @pl.function
        def wrong(x: pl.Tensor[[64], pl.FP32]):
            return scaled(x)


def test_inline_functions_leave_the_callers_variables_alone():
    @pl.inline
    def looped(x: pl.Tensor[[64], pl.FP32]):
        for _i in pl.range(3):
            x = pl.exp(x)
        return x

    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]):
        y = looped(x)
        return pl.add(x, y)

    copy, loop, bound, last = flatten_to_stmts(f.body)
    assert copy.value is f.params[0]
    assert flatten_to_stmts(loop.body)[0].var is copy.var is bound.value
    assert last.value[0].args[0] is f.params[0]
    with pytest.raises(
        ParserTypeError, match="Argument 'x' of 'looped' does not fit: .*dimension 0 = 64, the argument 8"
    ):

        @pl.function
        def g(x: pl.Tensor[[8], pl.FP32]):
            return looped(x)


def test_inline_functions_do_not_recurse():
    with pytest.raises(UnsupportedFeatureError, match="inline function 'again' calls itself"):

        @pl.inline
        def again(x: pl.Tensor[[64], pl.FP32]):
            return again(x)

        @pl.function
        def f(x: pl.Tensor[[64], pl.FP32]):
            return again(x)


def test_program_mistakes():
    with pytest.raises(ParserSyntaxError, match="needs 'self' as its first parameter"):

        @pl.program
        class NoSelf:
            @pl.function
            def f(x):
                return x

    with pytest.raises(ParserSyntaxError, match="has no @pl.function methods"):

        @pl.program
        class Empty:
            pass

    with pytest.raises(ParserSyntaxError, match="conflicts with program function"):

        @pl.program
        class Taken:
            @pl.function
            def twice(self, x: pl.Tensor[[64], pl.FP32]):
                return x

            @pl.function
            def main(self, x: pl.Tensor[[64], pl.FP32]):
                return twice(x)

    with pytest.raises(TypeError, match="decorates a class"):
        pl.program(3)


def test_recorded_directions_and_no_dep():
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
            return pl.store(pl.load(x, [0], [64]), [0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]):
            a = self.k(x, out, attrs={"arg_directions": [pl.adir.input, pl.adir.output]})
            b = self.k(pl.no_dep(x), a)
            return b

    first, second = calls(P.get_function("main"))
    assert first.arg_directions == [ir.ArgDirection.Input, ir.ArgDirection.Output]
    assert second.attrs == {"arg_direction_overrides": [0]}
