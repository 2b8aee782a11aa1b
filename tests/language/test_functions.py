"""From decorated functions to IR: signatures, bodies, results."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import ParserSyntaxError, ParserTypeError, SSAViolationError, UnsupportedFeatureError
from pypto.ir.stmt import flatten_to_stmts

M = pl.dynamic("M")
ROWS = 16


def statements(function: ir.Function) -> list[ir.Stmt]:
    return flatten_to_stmts(function.body)


def test_tile_kernel():
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        a: pl.Tensor[[64, 64], pl.FP32],
        b: pl.Tensor[[64, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        x = pl.load(a, [0, 0], [64, 64])
        y = pl.load(b, [0, 0], [64, 64])
        z = pl.add(x, y)
        return pl.store(z, [0, 0], out)

    assert add.name == "add"
    assert add.func_type is pl.FunctionType.InCore
    assert [p.name_hint for p in add.params] == ["a", "b", "out"]
    assert list(add.param_directions) == [ir.ParamDirection.In, ir.ParamDirection.In, ir.ParamDirection.Out]
    first, second, third, last = statements(add)
    assert [s.value.op.name for s in (first, second, third)] == ["tile.load", "tile.load", "tile.add"]
    assert list(third.value.args) == [first.var, second.var]
    assert isinstance(last, ir.ReturnStmt)
    assert last.value[0].op.name == "tile.store"


def test_names_around_the_function_and_string_annotations():
    columns = 32
    scale = 3
    dtype = pl.FP16
    shape = [ROWS, columns]

    @pl.function
    def f(x: pl.Tensor[shape, dtype], y: pl.Tensor[[M, ROWS * 2], pl.FP32]) -> pl.Tensor[[ROWS, columns], dtype]:
        return pl.mul(x, scale)

    x, y = f.params
    assert [d.value for d in x.type.shape] == [16, 32]
    assert x.type.dtype is pl.FP16
    assert y.type.shape[0] is M.var
    assert y.type.shape[1].value == 32
    assert statements(f)[0].value[0].args[1].value == 3


def test_a_captured_variable_hides_a_global_one_and_a_local_one_hides_both():
    ROWS = 8

    @pl.function
    def outer(x: pl.Tensor[[64, 64], pl.FP32]):
        return pl.slice(x, [ROWS, 64], [0, 0])

    @pl.function
    def inner(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):
        ROWS = n + 1
        y = ROWS
        return y

    assert statements(outer)[0].value[0].args[1].elements[0].value == 8
    assert statements(inner)[1].value is statements(inner)[0].var


def test_a_parameter_shape_may_name_an_earlier_parameter():
    @pl.function
    def f(n: pl.Scalar[pl.INDEX], x: pl.Tensor[[n, 8], pl.FP32]) -> pl.Tensor[[n, 8], pl.FP32]:  # noqa: F821
        return x

    assert f.params[1].type.shape[0] is f.params[0]


def test_results_are_checked():
    with pytest.raises(ParserTypeError, match="Return type mismatch.*shape dimension 1 = 32, the value 64"):

        @pl.function
        def shape(x: pl.Tensor[[64, 64], pl.FP32]) -> pl.Tensor[[64, 32], pl.FP32]:
            return x

    with pytest.raises(ParserTypeError, match="Return type mismatch.*dtype fp16, the value fp32"):

        @pl.function
        def dtype(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP16]:
            return x

    with pytest.raises(ParserTypeError, match=r"declares 2 result\(s\) but returns 1"):

        @pl.function
        def count(x: pl.Tensor[[64], pl.FP32]) -> tuple[pl.Tensor[[64], pl.FP32], pl.Scalar[pl.INT32]]:
            return x

    with pytest.raises(ParserSyntaxError, match="does not end with return"):

        @pl.function
        def missing(x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.exp(x)  # noqa: F841


def test_several_results():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32]) -> tuple[pl.Tensor[[64], pl.FP32], pl.Scalar[pl.INT64]]:
        return x, 3

    assert len(f.return_types) == 2
    assert [type(v) for v in statements(f)[0].value] == [ir.Var, ir.ConstInt]


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("def f(x): return x", ParserTypeError, "Parameter 'x' is missing type annotation"),
        ("def f(*x: pl.INT32): pass", UnsupportedFeatureError, r"Unsupported parameter: \*x"),
        ("def f(x: pl.INT32 = 3): pass", UnsupportedFeatureError, "default values"),
        ("def f(x: pl.INT32, /): pass", UnsupportedFeatureError, "markers"),
        ("def f(x: pl.Tensor): pass", ParserTypeError, "Incomplete type annotation: Tensor"),
        ("def f(x: pl.InOut[pl.Scalar[pl.FP32]]): pass", ParserTypeError, "cannot have InOut direction"),
        ("def f(x: int): pass", ParserTypeError, "Unknown type annotation 'int'"),
    ],
)
def test_wrong_signatures(source: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        pl.parse(f"@pl.function\n{source}\n")


def test_strict_ssa_refuses_a_second_assignment():
    with pytest.raises(SSAViolationError, match="Variable 'y' is already defined"):

        @pl.function(strict_ssa=True)
        def f(x: pl.Tensor[[64], pl.FP32]):
            y = pl.exp(x)
            y = pl.exp(y)
            return y


def test_bare_dtypes_and_arrays_are_annotations():
    @pl.function
    def f(n: pl.INT32, flag: pl.BOOL):
        table: pl.Array[4, pl.INT32] = pl.array.create(4, pl.INT32)
        table[1] = n
        return table[1]

    assert [p.type.dtype for p in f.params] == [pl.INT32, pl.BOOL]
    create, update, last = statements(f)
    assert update.value.op.name == "array.update_element"
    assert last.value[0].op.name == "array.get_element"


def test_type_level_and_role_must_agree():
    with pytest.raises(ParserSyntaxError, match="a InCore function has level|an? InCore function has level"):

        @pl.function(type=pl.FunctionType.InCore, level=pl.Level.HOST)
        def f(x: pl.Tensor[[64], pl.FP32]):
            return x


def test_attributes():
    @pl.function
    def f(x: pl.Tensor[[64], pl.FP32], w: pl.Tensor[[64], pl.FP32]):
        """Docstrings may come first."""
        pl.func_attr({"stationary": w, "split": pl.SplitMode.UP_DOWN})
        return x

    assert f.attrs["stationary"] is f.params[1]
    assert f.attrs["split"] == 1
    with pytest.raises(ParserSyntaxError, match="duplicate function attribute 'a'"):
        pl.parse('@pl.function\ndef f(x: pl.INT32):\n    pl.func_attr({"a": 1})\n    pl.func_attr({"a": 2})\n')
    with pytest.raises(ParserSyntaxError, match="before every other statement"):
        pl.parse('@pl.function\ndef f(x: pl.INT32):\n    y = x\n    pl.func_attr({"a": 1})\n')
    with pytest.warns(DeprecationWarning, match="cannot reference parameters"):
        pl.function(attrs={"a": 1})


def test_strict_ssa_lets_a_branch_write_what_surrounds_it():
    @pl.function(strict_ssa=True)
    def f(n: pl.Scalar[pl.INDEX]):
        stop: pl.Scalar[pl.BOOL] = False
        while not stop:
            if n > 3:
                stop: pl.Scalar[pl.BOOL] = True

    first, loop = flatten_to_stmts(f.body)
    (branch,) = flatten_to_stmts(loop.body)
    assert branch.then_body.var is first.var


def test_a_tuple_stands_for_several_results():
    @pl.program
    class P:
        @pl.function
        def two(self, x: pl.Tensor[[8], pl.FP32]) -> tuple[pl.Tensor[[8], pl.FP32], pl.Tensor[[8], pl.FP32]]:
            return x, pl.add(x, 1.0)

        @pl.function
        def both(self, x: pl.Tensor[[8], pl.FP32]) -> tuple[pl.Tensor[[8], pl.FP32], pl.Tensor[[8], pl.FP32]]:
            return self.two(x)

    assert len(P.get_function("both").return_types) == 2
    for results, message in (("pl.Tensor[[8], pl.FP16], pl.Tensor[[8], pl.FP32]", "dtype fp16"), ("T, T, T", "3")):
        with pytest.raises(ParserTypeError, match=message):
            pl.parse_program(f"""
T = pl.Tensor[[8], pl.FP32]
@pl.program
class P:
    @pl.function
    def two(self, x: pl.Tensor[[8], pl.FP32]) -> tuple[T, T]:
        return x, x
    @pl.function
    def both(self, x: pl.Tensor[[8], pl.FP32]) -> tuple[{results}]:
        return self.two(x)
""")


def test_a_host_worker_is_python():
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def check(x: pl.Tensor[[8], pl.FP32]):
            import math

            # any Python
            assert all(math.isfinite(v) for v in x)

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def later(x: pl.Tensor[[8], pl.FP32]): ...

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self, x: pl.Tensor[[8], pl.FP32]) -> pl.Tensor[[8], pl.FP32]:
            self.check(x)
            return x

    body = P.get_function("check").body
    assert isinstance(body, ir.InlineStmt)
    assert body.body == "import math\n\n# any Python\nassert all(math.isfinite(v) for v in x)"
    assert P.get_function("later").requires_runtime_binding
    ir.assert_structural_equal(P, pl.parse_program(str(P)))


def test_a_kernel_written_elsewhere_needs_no_body(tmp_path):
    (tmp_path / "k.cpp").touch()

    @pl.function(type=pl.FunctionType.AIV, external_source=tmp_path / "k.cpp")
    def k(x: pl.Tensor[[8], pl.FP32], out: pl.Out[pl.Tensor[[8], pl.FP32]]) -> pl.Tensor[[8], pl.FP32]: ...

    assert k.attrs["external_source"] == str(tmp_path / "k.cpp")
    assert not k.requires_runtime_binding


def test_a_symbol_read_by_an_annotation_is_no_later_parameter():
    with pytest.raises(ParserTypeError, match="earlier parameter"):
        pl.parse("""
M = pl.dynamic("M")
@pl.function
def f(x: pl.Tensor[[M], pl.FP32], M: pl.Scalar[pl.INDEX]):
    return x
""")
