"""OutlineIncoreScopes: parameters, directions, results, names, and what is refused."""

from __future__ import annotations

import pytest
from checking import check, findings, run, unchanged

import pypto.language as pl
from pypto import ir, passes

P = passes.IRProperty
In, Out, InOut = ir.ParamDirection.In, ir.ParamDirection.Out, ir.ParamDirection.InOut


def outlined(program):
    return run(program, passes.convert_to_ssa, passes.outline_incore_scopes)


def signature(program, name):
    function = program.get_function(name)
    return [(v.name_hint.split("__")[0], d) for v, d in function.directed_params()]


def test_a_region_becomes_a_function_of_what_it_reads():
    @pl.program
    class Before:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            a = pl.add(x, y)
            with pl.at(level=pl.Level.CORE_GROUP):
                b = pl.mul(y, a)
                c = pl.exp(b)
            d = pl.sub(c, x)
            return d

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def main_incore_0(self, y: pl.Tensor[[64], pl.FP32], a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            b = pl.mul(y, a)
            c = pl.exp(b)
            return c

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[64], pl.FP32], y: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            a = pl.add(x, y)
            c = self.main_incore_0(y, a)
            d = pl.sub(c, x)
            return d

    after = check(Before, Expected, passes.convert_to_ssa, passes.outline_incore_scopes)
    assert findings(after, P.SplitIncoreOrch, P.SSAForm, P.UseAfterDef) == []
    main = after.get_function("main")
    assert (main.level, main.role) == (ir.Level.CHIP, ir.Role.Orchestrator)


def test_the_two_functions_share_no_variable_they_both_define():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.exp(x)
            return y

    after = outlined(Prog)
    main, region = after.get_function("main"), after.get_function("main_incore_0")
    assert main.params[0] is not region.params[0]
    call = ir.flatten_to_stmts(main.body)[0]
    assert call.var is not ir.flatten_to_stmts(region.body)[0].var


def test_a_store_target_is_out_and_returned_as_the_parameter():
    @pl.program
    class Prog:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            for i in pl.range(0, 64, 32):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [i, 0], [32, 32])
                    out = pl.store(pl.exp(t), [i, 0], out)
            return out

    after = outlined(Prog)
    assert signature(after, "main_incore_0") == [("x", In), ("i", In), ("out", Out)]
    region = after.get_function("main_incore_0")
    assert ir.flatten_to_stmts(region.body)[-1].value[0] is region.params[2]


def test_stores_whose_result_is_not_bound_count_too():
    """Two regions, one in a loop, write the same tensor without naming the result."""

    @pl.program
    class Prog:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            for i in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [i * 32, 0], [32, 32]), [i * 32, 0], out)
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(out, [0, 0], [32, 32]), [32, 0], out)
            return out

    after = outlined(Prog)
    assert signature(after, "main_incore_0") == [("x", In), ("i", In), ("out", Out)]
    assert signature(after, "main_incore_1") == [("out", InOut)]
    assert findings(after, P.SSAForm, P.InOutUseValid) == []
    loop = ir.flatten_to_stmts(after.get_function("main").body)[0]
    assert len(loop.iter_args) == 1


@pytest.mark.parametrize(
    ("body", "direction"),
    [
        ("write", Out),
        ("read the result of the write", InOut),
        ("read before", InOut),
        ("add atomically", InOut),
        ("read only", In),
    ],
)
def test_directions_say_what_the_region_does(body, direction):
    text = {
        "write": "r = pl.store(t, [0, 0], out)",
        "read the result of the write": (
            "r = pl.store(pl.load(pl.store(t, [0, 0], out), [32, 0], [32, 32]), [0, 0], x)"
        ),
        "read before": "r = pl.store(pl.add(t, pl.load(out, [0, 0], [32, 32])), [0, 0], out)",
        "add atomically": "r = pl.store(t, [0, 0], out, atomic=pl.AtomicType.Add)",
        "read only": "r = pl.store(pl.load(out, [0, 0], [32, 32]), [0, 0], x)",
    }[body]
    program = pl.parse_program(
        "import pypto.language as pl\n"
        "@pl.program\n"
        "class Prog:\n"
        "    @pl.function\n"
        "    def main(self, x: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]])"
        " -> pl.Tensor[[64, 32], pl.FP32]:\n"
        "        with pl.at(level=pl.Level.CORE_GROUP):\n"
        "            t = pl.load(x, [0, 0], [32, 32])\n"
        f"            {text}\n"
        "        return r\n"
    )
    assert dict(signature(outlined(program), "main_incore_0"))["out"] is direction


def test_a_carried_tensor_that_changes_is_not_the_parameter():
    """Returning the loop's initial value would lose every iteration."""

    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for _i, (acc,) in pl.range(3, init_values=(x,)):
                    more = pl.add(acc, 1.0)
                    total = pl.yield_(more)
            return total

    region = outlined(Prog).get_function("main_incore_0")
    loop, result = ir.flatten_to_stmts(region.body)
    assert result.value[0] is loop.return_vars[0]
    assert region.param_directions[0] is In


def test_a_carried_store_target_is_the_parameter():
    @pl.program
    class Prog:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(0, 64, 32):
                    out = pl.store(pl.load(x, [i, 0], [32, 32]), [i, 0], out)
            return out

    region = outlined(Prog).get_function("main_incore_0")
    out, direction = next((v, d) for v, d in region.directed_params() if v.name_hint.startswith("out"))
    assert ir.flatten_to_stmts(region.body)[-1].value[0] is out
    assert direction is Out


def test_scalars_read_after_a_region_are_computed_by_the_caller():
    @pl.program
    class Prog:
        @pl.function
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                at = n * 32
                out = pl.store(pl.load(x, [at, 0], [32, 32]), [at, 0], out)
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(x, [at + 1, 0], [1, 32]), [at, 0], out)
            return out

    after = outlined(Prog)
    assert len(after.get_function("main_incore_0").return_types) == 1
    assert [n for n, _ in signature(after, "main_incore_1")] == ["x", "at", "out"]


def test_names_come_from_hints_and_do_not_clash():
    @pl.program
    class Prog:
        @pl.function
        def first(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
                x = pl.exp(x)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
                x = pl.exp(x)
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.exp(x)
            return x

        @pl.function
        def second(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
                x = pl.exp(x)
            return x

    names = {f.name for f in outlined(Prog).functions.values()}
    assert names == {"first", "second", "step", "step_0", "first_incore_2", "second_step"}


def test_reads_of_a_dynamic_extent_become_the_symbol():
    rows = pl.dynamic("rows")

    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[rows, 32], pl.FP32]) -> pl.Tensor[[rows, 32], pl.FP32]:
            n = pl.tensor.dim(x, 0)
            cols = pl.tensor.dim(x, 1)
            _y = pl.create_tensor([n, cols], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP):
                z = pl.exp(x)
            return z

    with passes.PassContext([]):
        after = passes.outline_incore_scopes()(passes.convert_to_ssa()(Prog))
    calls = [s.value for s in ir.flatten_to_stmts(after.get_function("main").body) if isinstance(s, ir.AssignStmt)]
    reads = [c for c in calls if c.op.name == "tensor.dim"]
    assert [c.args[1].value for c in reads] == [1]


def test_programs_without_regions_are_returned_as_they_are():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            y = pl.exp(x)
            return y

    unchanged(Prog, passes.outline_incore_scopes)
    assert Prog.get_function("main").func_type is ir.FunctionType.Opaque


def test_a_region_that_is_split_by_hand_cannot_be_split_by_the_compiler():
    lane = ir.SplitAivScopeStmt(ir.SplitMode.UP_DOWN, 2, "", ir.SeqStmts([]))
    region = ir.InCoreScopeStmt("", lane, ir.SplitMode.UP_DOWN, span=ir.Span("k.py", 5, 1, 5, 9))
    program = ir.Program([ir.Function("main", [], [], region)])
    with pytest.raises(ValueError, match="mutually exclusive") as caught:
        passes.outline_incore_scopes()(program)
    assert caught.value.span.begin_line == 5


def test_regions_left_over_are_found():
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.exp(x)
            return y

    assert findings(Prog, P.SplitIncoreOrch) == ["InCore ScopeStmt remains in function 'main'"]
