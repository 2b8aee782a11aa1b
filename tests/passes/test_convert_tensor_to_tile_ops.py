"""Tensor operators of a kernel become loads, tile operators and stores; its callers pass what it then writes to."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
import text_programs
from text_programs import method

import pypto.language as pl
from pypto import ir, passes
from pypto.errors import InternalError
from pypto.ir.structural import assert_structural_equal
from pypto.ir.visitor import walk


def program(*functions: str) -> ir.Program:
    return text_programs.program(*(indent(dedent(f).strip("\n"), "    ") + "\n" for f in functions))


def kernel(params: str, lines: str, result: str = "", kind: str = "InCore") -> str:
    """Text of a method ``kernel`` of ``lines``."""
    return method("kernel", params, lines, result, f"@pl.function(type=pl.FunctionType.{kind})")


def convert(before: ir.Program) -> ir.Program:
    return passes.convert_tensor_to_tile_ops()(passes.convert_to_ssa()(before))


def expect(before: ir.Program, expected: ir.Program) -> None:
    """``before`` becomes ``expected``; loads the pass brings to Mat are marked, which ``expected`` leaves out."""
    assert_structural_equal(_unmarked(convert(before)), passes.convert_to_ssa()(expected))


def _unmarked(made: ir.Program) -> ir.Program:
    class Unmark(ir.visitor.Rewriter):  # pyright: ignore[reportAttributeAccessIssue]
        def visit_call(self, op: ir.Call) -> ir.Expr:
            call = self.generic(op)
            return call.replace(attrs={k: v for k, v in call.attrs.items() if not k.startswith("__")})

    return Unmark().rewrite(made)


def calls(made: ir.Program, name: str = "kernel") -> list[str]:
    function = made.get_function(name)
    assert function is not None
    return [n.op.name for n in walk(function) if isinstance(n, ir.Call)]


VEC64 = "pl.Tensor[[64], pl.FP32]"


def test_parameters_are_loaded_and_the_result_is_stored_to_a_new_parameter() -> None:
    before = program(
        kernel(f"x: {VEC64}, y: {VEC64}", "z = pl.mul(pl.add(x, y), 2.0)\nreturn z", VEC64),
        f"""
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: {VEC64}, y: {VEC64}) -> {VEC64}:
            z = self.kernel(x, y)
            return z
        """,
    )
    expected = program(
        kernel(
            f"x: {VEC64}, y: {VEC64}, out: pl.Out[{VEC64}]",
            """
            a = pl.load(x, [0], [64])
            b = pl.load(y, [0], [64])
            s = pl.tile.add(a, b)
            z = pl.tile.muls(s, 2.0)
            stored = pl.store(z, [0], out)
            return stored
            """,
            VEC64,
        ),
        f"""
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: {VEC64}, y: {VEC64}) -> {VEC64}:
            out = pl.create_tensor([64], dtype=pl.FP32)
            z = self.kernel(x, y, out)
            return z
        """,
    )
    expect(before, expected)


def test_a_tile_kernel_is_left_alone() -> None:
    before = program(
        kernel(
            f"x: {VEC64}, out: pl.Out[{VEC64}]",
            "t = pl.load(x, [0], [64])\nout_1 = pl.store(pl.tile.exp(t), [0], out)\nreturn out_1",
            VEC64,
        )
    )
    before = passes.convert_to_ssa()(before)
    assert passes.convert_tensor_to_tile_ops()(before) is before


def test_a_second_run_changes_nothing() -> None:
    once = convert(program(kernel(f"x: {VEC64}", "y = pl.exp(x)\nreturn y", VEC64)))
    assert passes.convert_tensor_to_tile_ops()(once) is once


def test_row_blocks_with_a_ragged_end() -> None:
    shape = "[100, 256]"
    params = f"x: pl.Tensor[{shape}, pl.FP32], out: pl.Out[pl.Tensor[{shape}, pl.FP32]]"
    before = program(
        kernel(
            params,
            """
            for i in pl.range(0, 100, 32):
                rows = pl.min(32, 100 - i)
                t = pl.slice(x, [32, 256], [i, 0], valid_shape=[rows, 256])
                m = pl.row_max(t)
                out = pl.assemble(out, pl.row_expand_sub(t, m), [i, 0])
            return out
            """,
            f"pl.Tensor[{shape}, pl.FP32]",
        )
    )
    expected = program(
        kernel(
            params,
            """
            for i in pl.range(0, 100, 32):
                rows = pl.min(32, 100 - i)
                t = pl.load(x, [i, 0], [32, 256], [rows, 256])
                scratch = pl.tile.create([32, 256], dtype=pl.FP32)
                m = pl.tile.row_max(t, scratch)
                s = pl.tile.row_expand_sub(t, m)
                out = pl.store(s, [i, 0], out)
            return out
            """,
            f"pl.Tensor[{shape}, pl.FP32]",
        )
    )
    expect(before, expected)


def test_narrow_rows_get_wide_scratch() -> None:
    made = convert(program(kernel("x: pl.Tensor[[32, 64], pl.FP32]", "y = pl.row_sum(x)\nreturn y")))
    text = str(ir_text(made))
    assert "pl.tile.create([32, 128], dtype=pl.FP32" in text


def ir_text(made: ir.Program) -> str:
    from pypto.ir.printer import python_print

    return python_print(made)


def test_matmul_operands_go_to_mat_and_a_transposed_one_is_a_view() -> None:
    params = "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[32, 64], pl.FP16]"
    result = "pl.Tensor[[16, 32], pl.FP32]"
    before = program(kernel(params, "c = pl.matmul(a, b, b_trans=True, out_dtype=pl.FP32)\nreturn c", result))
    expected = program(
        kernel(
            f"{params}, out: pl.Out[{result}]",
            """
            ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
            bt = pl.tile.transpose_view(tb)
            c = pl.tile.matmul(ta, bt)
            stored = pl.store(c, [0, 0], out)
            return stored
            """,
            result,
        )
    )
    expect(before, expected)


def test_a_window_read_by_both_cores_is_loaded_for_each() -> None:
    made = convert(
        program(
            kernel(
                "x: pl.Tensor[[64, 64], pl.FP16], w: pl.Tensor[[16, 16], pl.FP16], "
                "s: pl.Out[pl.Tensor[[16, 16], pl.FP16]]",
                """
                t = pl.slice(x, [16, 16], [16, 0])
                s = pl.assemble(s, pl.exp(t), [0, 0])
                c = pl.matmul(t, w, out_dtype=pl.FP32)
                return c
                """,
            )
        )
    )
    loads = [n for n in walk(made) if isinstance(n, ir.Call) and n.op.name == "tile.load"]
    spaces = [load.type.memory_space for load in loads if load.args[0].type.shape[0].value == 64]  # pyright: ignore
    assert spaces == [ir.MemorySpace.Vec, ir.MemorySpace.Mat]


def test_a_product_used_further_gets_its_declared_dtype() -> None:
    params = "a: pl.Tensor[[16, 16], pl.BF16], b: pl.Tensor[[16, 16], pl.BF16]"
    stored = convert(program(kernel(params, "c = pl.matmul(a, b)\nreturn c")))
    assert "tile.cast" not in calls(stored)
    used = convert(program(kernel(params, "c = pl.exp(pl.cast(pl.matmul(a, b), pl.FP32))\nreturn c")))
    assert calls(used).count("tile.cast") == 2 or calls(used).count("tile.cast") == 1


def test_an_accumulator_that_is_returned_is_written_in_place() -> None:
    before = program(
        kernel(
            "x: pl.Tensor[[1, 32], pl.FP32]",
            """
            buf = pl.create_tensor([1, 64], dtype=pl.FP32)
            for i, (acc,) in pl.range(2, init_values=(buf,)):
                part = pl.slice(x, [1, 32], [0, 0])
                more = pl.assemble(acc, part, [0, i * 32])
                done = pl.yield_(more)
            return done
            """,
            "pl.Tensor[[1, 64], pl.FP32]",
        )
    )
    expected = program(
        kernel(
            "x: pl.Tensor[[1, 32], pl.FP32], out: pl.Out[pl.Tensor[[1, 64], pl.FP32]]",
            """
            for i, (acc,) in pl.range(2, init_values=(out,)):
                part = pl.load(x, [0, 0], [1, 32])
                more = pl.store(part, [0, i * 32], acc)
                done = pl.yield_(more)
            return done
            """,
            "pl.Tensor[[1, 64], pl.FP32]",
        )
    )
    expect(before, expected)


def test_loop_carries_and_branches_become_tiles() -> None:
    before = program(
        kernel(
            f"acc: {VEC64}, x: {VEC64}, n: pl.Scalar[pl.INT64]",
            """
            for i, (s,) in pl.range(3, init_values=(acc,)):
                if n == 0:
                    t = pl.yield_(pl.add(s, x))
                else:
                    t = pl.yield_(x)
                r = pl.yield_(t)
            return r
            """,
            VEC64,
        )
    )
    expected = program(
        kernel(
            f"acc: {VEC64}, x: {VEC64}, n: pl.Scalar[pl.INT64], out: pl.Out[{VEC64}]",
            """
            acc_tile = pl.load(acc, [0], [64])
            x_tile = pl.load(x, [0], [64])
            for i, (s,) in pl.range(3, init_values=(acc_tile,)):
                if n == 0:
                    sum_tile = pl.tile.add(s, x_tile)
                    t = pl.yield_(sum_tile)
                else:
                    t = pl.yield_(x_tile)
                r = pl.yield_(t)
            stored = pl.store(r, [0], out)
            return stored
            """,
            VEC64,
        )
    )
    flat = passes.flatten_call_expr()(passes.normalize_stmt_structure()(passes.convert_to_ssa()(before)))
    assert_structural_equal(passes.convert_tensor_to_tile_ops()(flat), passes.convert_to_ssa()(expected))


@pytest.mark.parametrize(
    ("op", "lhs", "rhs", "form"),
    [
        ("add", "[32, 64]", "[32, 1]", "tile.row_expand_add"),
        ("mul", "[32, 1]", "[32, 64]", "tile.row_expand_mul"),
        ("sub", "[32, 64]", "[1, 64]", "tile.col_expand_sub"),
        ("maximum", "[1, 64]", "[32, 64]", "tile.col_expand_max"),
        ("div", "[32, 64]", "[32, 1]", "tile.row_expand_div"),
        ("add", "[32, 64]", "[32, 64]", "tile.add"),
    ],
)
def test_broadcasts_become_expansions(op: str, lhs: str, rhs: str, form: str) -> None:
    made = convert(
        program(kernel(f"a: pl.Tensor[{lhs}, pl.FP32], b: pl.Tensor[{rhs}, pl.FP32]", f"c = pl.{op}(a, b)\nreturn c"))
    )
    assert form in calls(made)


def test_a_bias_of_one_dimension_repeats_over_the_rows() -> None:
    made = convert(
        program(kernel("a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64], pl.FP32]", "c = pl.add(a, b)\nreturn c"))
    )
    assert calls(made)[-3:] == ["tile.reshape", "tile.col_expand_add", "tile.store"]


def test_reads_of_a_config_tensor_stay_in_global_memory() -> None:
    made = convert(
        program(
            kernel(
                f"cfg: pl.Tensor[[4], pl.FP32], x: {VEC64}",
                "s = pl.read(cfg, [0])\ny = pl.mul(x, s)\nreturn y",
                VEC64,
            )
        )
    )
    assert calls(made) == ["tile.load", "tensor.read", "tile.muls", "tile.store"]


def test_a_local_tensor_is_written_on_chip() -> None:
    made = convert(
        program(
            kernel(
                "a: pl.Tensor[[4], pl.FP32], v: pl.Scalar[pl.FP32]",
                "t = pl.add(a, a)\npl.write(t, [0], v)\nr = pl.read(t, [0])\nreturn r",
                "pl.Scalar[pl.FP32]",
            )
        )
    )
    assert calls(made) == ["tile.load", "tile.add", "tile.write", "tile.read"]


def test_written_parameters_are_declared_so_up_to_the_caller() -> None:
    made = convert(
        program(
            kernel(
                f"dst: {VEC64}, both: {VEC64}",
                "dst = pl.assemble(dst, pl.exp(both), [0])\n"
                "pl.assemble(both, pl.full([64], dtype=pl.FP32, value=1.0), [0])\n"
                "return dst",
                VEC64,
            ),
            f"""
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, a: {VEC64}, b: {VEC64}) -> {VEC64}:
                c = self.kernel(a, b)
                return c
            """,
        )
    )
    want = [ir.ParamDirection.Out, ir.ParamDirection.InOut]
    for name in ("kernel", "main"):
        function = made.get_function(name)
        assert function is not None and list(function.param_directions) == want


def test_a_wrapper_forwards_the_output_its_kernel_gained() -> None:
    made = convert(
        program(
            kernel(f"x: {VEC64}", "y = pl.exp(x)\nreturn y", VEC64),
            f"""
            @pl.function(type=pl.FunctionType.Spmd, attrs={{"core_num": 4}})
            def spread(self, x: {VEC64}) -> {VEC64}:
                y = self.kernel(x)
                return y
            """,
            f"""
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, x: {VEC64}) -> {VEC64}:
                y = self.spread(x)
                return y
            """,
        )
    )
    spread = made.get_function("spread")
    assert spread is not None and len(spread.params) == 2
    assert calls(made, "spread") == ["kernel"] and calls(made, "main") == ["tensor.create", "spread"]


def test_inserted_statements_point_at_the_lines_that_cause_them() -> None:
    before = program(kernel(f"x: {VEC64}", "y = pl.exp(x)\nreturn y", VEC64))
    made = convert(before).get_function("kernel")
    assert made is not None
    load, exp, store = [s for s in walk(made) if isinstance(s, ir.AssignStmt)]
    assert load.span.begin_line == load.value.span.begin_line == made.params[0].span.begin_line
    assert exp.span.begin_line + 1 == store.span.begin_line == store.value.span.begin_line


# What is refused.


def refused(params: str, lines: str) -> str:
    with pytest.raises(ValueError) as caught:
        convert(program(kernel(params, lines)))
    return str(caught.value)


def test_bulk_and_element_writes_to_one_tensor() -> None:
    message = refused(
        "dst: pl.Tensor[[64], pl.INT32], v: pl.Scalar[pl.INT32]",
        "dst[0:32] = pl.full([32], dtype=pl.INT32, value=-1)\npl.write(dst, [40], v)\nreturn dst",
    )
    assert "'dst' mixes MTE3 and scalar stores" in message and "pl.write(dst, [40], v)" in message


def test_a_tensor_read_whole_and_written_by_element() -> None:
    message = refused(
        f"x: {VEC64}, v: pl.Scalar[pl.FP32]", "pl.write(x, [0], v)\ny = pl.exp(x)\nreturn y"
    )
    assert "'x' is read whole into a tile and also written" in message


def test_a_view_of_a_computed_value() -> None:
    assert "result of an op lowered to Tile" in refused(
        "x: pl.Tensor[[4, 8], pl.FP32]", "y = pl.tensor.view(pl.exp(x), [32])\nreturn y"
    )


def test_an_atomic_write_into_a_tile() -> None:
    params = "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 128], pl.FP32]]"
    write = "t = pl.assemble(t, pl.add(x, x), [0, 64], atomic=pl.AtomicType.Add)"
    made = "t = pl.create_tensor([16, 128], dtype=pl.FP32)"
    message = refused(params, f"{made}\n{write}\nreturn pl.assemble(out, t, [0, 0])")
    assert "global-memory destination only" in message and write in message


def test_the_matrix_must_come_first_in_a_division() -> None:
    message = refused(
        "row: pl.Tensor[[32, 1], pl.FP32], x: pl.Tensor[[32, 64], pl.FP32]", "y = pl.div(row, x)\nreturn y"
    )
    assert "row-vector lhs broadcast" in message and "pl.row_expand" in message


def test_a_divisor_must_cover_the_dividend() -> None:
    message = refused(
        "a: pl.Tensor[[8, 16], pl.FP32], b: pl.Tensor[[8, 1], pl.FP32], n: pl.Scalar[pl.INDEX]",
        "d = pl.slice(b, [8, 1], [0, 0], valid_shape=[n, 1])\ny = pl.div(a, d)\nreturn y",
    )
    assert "divisor valid rows to cover the dividend" in message


def test_an_operator_without_a_tile_form_is_a_defect_of_the_compiler() -> None:
    x = ir.Var("x", ir.TensorType([4], pl.FP32))
    y = ir.Var("y", x.type)
    op = ir.Op("tensor.unheard_of")
    body = ir.SeqStmts([ir.AssignStmt(y, ir.Call(op, [x], x.type)), ir.ReturnStmt([y])])
    facets = {"name": op.name, "args": (), "by_name": {}, "tile_form": None, "channel": None, "inherits": None}
    op.decl = type("Decl", (), facets)()
    before = ir.Program([ir.Function("kernel", [x], [x.type], body, type=ir.FunctionType.InCore)])
    with pytest.raises(InternalError, match="no registered tile conversion"):
        passes.convert_tensor_to_tile_ops()(before)


def test_a_ragged_block_added_to_a_whole_accumulator() -> None:
    message = refused(
        "x: pl.Tensor[[100, 64], pl.FP32], y: pl.Tensor[[32, 64], pl.FP32]",
        """
        acc = pl.add(y, y)
        for i in pl.range(0, 100, 32):
            rows = pl.min(32, 100 - i)
            acc = pl.add(acc, pl.slice(x, [32, 64], [i, 0], valid_shape=[rows, 64]))
        return acc
        """,
    )
    assert "the valid region of 'acc' differs" in message and "[32, 64] and [rows, 64], and only the loop" in message
    assert "pl.fillpad" in message and "acc = pl.add(acc," in message


@pytest.mark.parametrize(
    ("source", "forms"),
    [
        ("[1, 4, 8]", ["tile.load", "tile.store"]),
        ("[2, 1, 8]", ["tile.load", "tile.create", "tile.col_expand", "tile.store"]),
        ("[2, 4, 1]", ["tile.load", "tile.create", "tile.row_expand", "tile.store"]),
    ],
)
def test_expand_clone_repeats_one_dimension(source: str, forms: list[str]) -> None:
    made = convert(
        program(
            kernel(
                f"x: pl.Tensor[{source}, pl.FP16], out: pl.Out[pl.Tensor[[2, 4, 8], pl.FP16]]",
                "y = pl.expand_clone(x, out)\nreturn y",
            )
        )
    )
    assert calls(made) == forms
