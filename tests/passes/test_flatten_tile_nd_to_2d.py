"""Tiles become two-dimensional; what addresses them follows, and what has no such form is refused."""

from __future__ import annotations

import numpy as np
import pytest
from text_programs import kernel

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.printer import python_print
from pypto.ir.structural import assert_structural_equal
from pypto.ir.visitor import walk

BATCH = (
    "a: pl.Tensor[[2, 16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], "
    "out: pl.Out[pl.Tensor[[2, 16, 32], pl.FP32]]"
)


def program(params: str, lines: str) -> ir.Program:
    return passes.convert_to_ssa()(kernel(params, lines))


def flatten(params: str, lines: str) -> ir.Program:
    return passes.flatten_tile_nd_to_2d()(program(params, lines))


def tile_shapes(made: ir.Program) -> list[list[int]]:
    found = []
    for node in walk(made):
        if isinstance(node, ir.AssignStmt) and isinstance(node.var.type, ir.TileType):
            found.append([d.value for d in node.var.type.shape])  # pyright: ignore[reportAttributeAccessIssue]
    return found


def refused(params: str, lines: str) -> str:
    with pytest.raises(ValueError) as caught:
        flatten(params, lines)
    return str(caught.value)


def test_leading_dimensions_run_together() -> None:
    made = flatten(
        "x: pl.Tensor[[2, 3, 8], pl.FP32], out: pl.Out[pl.Tensor[[2, 3, 8], pl.FP32]]",
        "t = pl.load(x, [0, 0, 0], [2, 3, 8])\ny = pl.exp(pl.tile.add(t, t))\n"
        "out = pl.store(y, [0, 0, 0], out)\nreturn out",
    )
    assert tile_shapes(made) == [[6, 8], [6, 8]]
    text = python_print(made)
    assert "pl.tile.load(x__ssa_v0, [0, 0, 0], [2, 3, 8], [2, 3, 8]" in text
    assert "pl.tile.store(y__ssa_v0, [0, 0, 0], out__ssa_v0, [2, 3, 8])" in text


def test_the_result_reads_back() -> None:
    made = flatten(
        "x: pl.Tensor[[2, 3, 8], pl.FP32], v: pl.Tensor[[8], pl.FP32], out: pl.Out[pl.Tensor[[2, 3, 8], pl.FP32]]",
        """
        t = pl.load(x, [0, 0, 0], [2, 3, 8])
        w = pl.load(v, [0], [8])
        for i in pl.range(4):
            t = pl.tile.add(t, t)
        out = pl.store(t, [0, 0, 0], out)
        return out
        """,
    )
    again = pl.parse(python_print(made))
    assert isinstance(again, ir.Program)
    assert_structural_equal(made, again)


def test_a_vector_is_one_row() -> None:
    made = flatten(
        "x: pl.Tensor[[64], pl.FP32], out: pl.Out[pl.Tensor[[64], pl.FP32]]",
        """
        t = pl.load(x, [0], [64])
        s = pl.read(t, [5])
        h = pl.tile.slice(t, [32], [32])
        y = pl.tile.muls(h, s)
        out = pl.store(y, [32], out)
        return out
        """,
    )
    assert tile_shapes(made) == [[1, 64], [1, 32], [1, 32]]
    text = python_print(made)
    assert "pl.tile.read(t__ssa_v0, [0, 5])" in text
    assert "pl.tile.slice(t__ssa_v0, [1, 32], [0, 32])" in text
    assert "out__ssa_v0, [32])" in text


def test_two_dimensional_kernels_are_left_alone() -> None:
    before = program(
        "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
        "t = pl.load(x, [0, 0], [16, 64])\nout = pl.store(pl.exp(t), [0, 0], out)\nreturn out",
    )
    assert passes.flatten_tile_nd_to_2d()(before) is before


@pytest.mark.parametrize(("valid", "rows"), [("[1, n, 64]", "n"), ("[1, 10, 64]", "10"), ("[1, 16, 64]", None)])
def test_the_valid_region_is_kept(valid: str, rows: str | None) -> None:
    made = flatten(
        "x: pl.Tensor[[4, 16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[4, 16, 64], pl.FP32]]",
        f"t = pl.load(x, [1, 0, 0], [1, 16, 64], {valid})\nout = pl.store(pl.exp(t), [1, 0, 0], out)\nreturn out",
    )
    load = next(n for n in walk(made) if isinstance(n, ir.Call) and n.op.name == "tile.load")
    found = load.type.valid_shape[0]  # pyright: ignore[reportAttributeAccessIssue]
    text = {None: "16"}.get(rows, rows)
    assert getattr(found, "name_hint", "").startswith("n") if text == "n" else found.value == int(text or "0")


def test_a_store_keeps_a_ragged_window_per_dimension() -> None:
    made = flatten(
        "x: pl.Tensor[[4, 16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[4, 16, 64], pl.FP32]]",
        "t = pl.load(x, [1, 0, 0], [1, 16, 64], [1, n, 64])\nout = pl.store(t, [1, 0, 0], out)\nreturn out",
    )
    assert "out__ssa_v0, [1, n__ssa_v0, 64])" in python_print(made)


def test_an_assemble_offset_becomes_row_and_column() -> None:
    made = flatten(
        "out: pl.Out[pl.Tensor[[4, 8, 16], pl.FP32]]",
        """
        page = pl.tile.full([1, 8, 16], dtype=pl.FP32, value=1.0)
        whole = pl.tile.create([4, 8, 16], dtype=pl.FP32)
        whole = pl.tile.assemble(whole, page, [2, 3, 0])
        out = pl.store(whole, [0, 0, 0], out)
        return out
        """.replace("[2, 3, 0]", "[2, 0, 0]"),
    )
    assert "[16, 0])" in python_print(made) and tile_shapes(made) == [[8, 16], [32, 16], [32, 16]]


def test_a_reshape_that_only_renames_rows_goes() -> None:
    made = flatten(
        "x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 2, 8], pl.FP32]]",
        "t = pl.load(x, [0, 0], [4, 8])\nr = pl.tile.reshape(t, [4, 1, 8])\n"
        "out = pl.store(r, [0, 1, 0], out)\nreturn out",
    )
    assert tile_shapes(made) == [[4, 8]]
    assert "pl.tile.store(t__ssa_v0, [0, 1, 0], out__ssa_v0, [4, 1, 8])" in python_print(made)


def test_a_reduction_along_the_last_dimension() -> None:
    made = flatten(
        "x: pl.Tensor[[2, 8, 64], pl.FP32], out: pl.Out[pl.Tensor[[2, 8, 1], pl.FP32]]",
        """
        t = pl.load(x, [0, 0, 0], [2, 8, 64])
        tmp = pl.tile.create([2, 8, 64], dtype=pl.FP32)
        s = pl.tile.row_sum(t, tmp)
        out = pl.store(s, [0, 0, 0], out)
        return out
        """,
    )
    assert tile_shapes(made) == [[16, 64], [16, 64], [16, 1]]


def test_a_transpose_gets_its_scratch() -> None:
    made = flatten(
        "x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 8], pl.FP32]]",
        "t = pl.load(x, [0, 0], [8, 16])\ny = pl.tile.transpose(t, 0, 1)\nout = pl.store(y, [0, 0], out)\nreturn out",
    )
    call = next(n for n in walk(made) if isinstance(n, ir.Call) and n.op.name == "tile.transpose")
    assert len(call.args) == 4 and [d.value for d in call.args[3].type.shape] == [8, 16]  # pyright: ignore


def test_matrices_are_transposed_one_by_one() -> None:
    made = flatten(
        "x: pl.Tensor[[2, 8, 16], pl.FP32], out: pl.Out[pl.Tensor[[2, 16, 8], pl.FP32]]",
        """
        t = pl.load(x, [0, 0, 0], [2, 8, 16])
        y = pl.tile.transpose(t, 1, 2)
        out = pl.store(y, [0, 0, 0], out)
        return out
        """,
    )
    names = [n.op.name for n in walk(made) if isinstance(n, ir.Call)]
    assert names.count("tile.transpose") == 2 and names.count("tile.assemble") == 2


def test_a_batched_product_is_done_and_stored_matrix_by_matrix() -> None:
    made = flatten(
        BATCH,
        """
        ta = pl.load(a, [0, 0, 0], [2, 16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        c = pl.tile.batch_matmul(ta, tb)
        out = pl.store(c, [0, 0, 0], out)
        return out
        """,
    )
    names = [n.op.name for n in walk(made) if isinstance(n, ir.Call)]
    assert names.count("tile.matmul") == 2 and names.count("tile.store") == 2 and names.count("tensor.view") == 1
    assert "[1, 0, 0]" in python_print(made) and "[1, 16, 32])" in python_print(made)


def test_one_matrix_in_a_batch_is_an_ordinary_product() -> None:
    made = flatten(
        "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[1, 32, 64], pl.FP16], "
        "out: pl.Out[pl.Tensor[[1, 16, 32], pl.FP32]]",
        """
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0, 0], [1, 32, 64], target_memory=pl.Mem.Mat)
        c = pl.tile.batch_matmul(ta, pl.tile.transpose_view(tb))
        out = pl.store(c, [0, 0, 0], out)
        return out
        """,
    )
    names = [n.op.name for n in walk(made) if isinstance(n, ir.Call)]
    assert names == ["tile.load", "tensor.view", "tile.load", "tile.transpose_view", "tile.matmul", "tile.store"]


# What is refused.


def test_valid_rows_with_gaps() -> None:
    message = refused(
        "x: pl.Tensor[[2, 8, 16], pl.FP32], out: pl.Out[pl.Tensor[[2, 8, 16], pl.FP32]]",
        "t = pl.load(x, [0, 0, 0], [2, 8, 16], [2, 5, 16])\nout = pl.store(t, [0, 0, 0], out)\nreturn out",
    )
    assert "valid region [2, 5, 16] cannot be flattened" in message and "^" in message


def test_an_assemble_with_gaps() -> None:
    assert "contiguous row band" in refused(
        "out: pl.Out[pl.Tensor[[4, 8, 16], pl.FP32]]",
        """
        part = pl.tile.full([2, 4, 16], dtype=pl.FP32, value=1.0)
        whole = pl.tile.create([4, 8, 16], dtype=pl.FP32)
        whole = pl.tile.assemble(whole, part, [0, 0, 0])
        out = pl.store(whole, [0, 0, 0], out)
        return out
        """,
    )


def test_a_transpose_of_batches() -> None:
    assert "only last-two-axes tile.transpose" in refused(
        "x: pl.Tensor[[2, 4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 2, 8], pl.FP32]]",
        "t = pl.load(x, [0, 0, 0], [2, 4, 8])\ny = pl.tile.transpose(t, 0, 1)\n"
        "out = pl.store(y, [0, 0, 0], out)\nreturn out",
    )


def test_a_reduction_over_a_middle_dimension() -> None:
    assert "tile.col_max with a result of shape [2, 1, 8] has no two-dimensional form" in refused(
        "x: pl.Tensor[[2, 4, 8], pl.FP32], out: pl.Out[pl.Tensor[[2, 1, 8], pl.FP32]]",
        "t = pl.load(x, [0, 0, 0], [2, 4, 8])\ny = pl.tile.col_max(t)\nout = pl.store(y, [0, 0, 0], out)\nreturn out",
    )


def test_a_dynamic_tile() -> None:
    n = ir.Var("n", ir.ScalarType(pl.INDEX))
    kind = ir.TileType([n, ir.index_const(4), ir.index_const(8)], pl.FP32)
    x, y = ir.Var("x", kind), ir.Var("y", kind)
    call = ir.Call(ir.Op("tile.anything"), [x], kind)
    body = ir.SeqStmts([ir.AssignStmt(y, call), ir.ReturnStmt([y])])
    before = ir.Program([ir.Function("kernel", [x], [kind], body, type=ir.FunctionType.InCore)])
    with pytest.raises(ValueError, match="cannot be flattened to 2D") as caught:
        passes.flatten_tile_nd_to_2d()(before)
    assert "pl.parallel" in str(caught.value) and "reshape" in str(caught.value)


def test_several_products_used_as_one_value() -> None:
    message = refused(
        BATCH,
        """
        ta = pl.load(a, [0, 0, 0], [2, 16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        c = pl.tile.batch_matmul(ta, tb)
        out = pl.store(pl.tile.exp(c), [0, 0, 0], out)
        return out
        """,
    )
    assert "'c' holds 2 matrices" in message


PARTIAL = "a: pl.Tensor[[2, 16, 64], pl.FP16], b: pl.Tensor[[2, 128, 32], pl.FP16], "


def test_matrices_with_gaps_between_them_are_loaded_one_by_one() -> None:
    made = flatten(
        PARTIAL + "out: pl.Out[pl.Tensor[[2, 16, 32], pl.FP32]]",
        """
        ta = pl.load(a, [0, 0, 0], [2, 16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 64, 0], [2, 64, 32], target_memory=pl.Mem.Mat)
        c = pl.tile.batch_matmul(ta, tb)
        out = pl.store(c, [0, 0, 0], out)
        return out
        """,
    )
    loads = [n for n in walk(made) if isinstance(n, ir.Call) and n.op.name == "tile.load"]
    places = [[d.value for d in load.args[1].elements] for load in loads]  # pyright: ignore[reportAttributeAccessIssue]
    assert places == [[0, 0], [64, 0], [192, 0]]


def test_matrices_with_gaps_as_one_tile() -> None:
    message = refused(
        PARTIAL,
        "t = pl.load(b, [0, 64, 0], [2, 64, 32], target_memory=pl.Mem.Mat)\nm = pl.move(t, target_memory=pl.Mem.Left)\n"
        "return a",
    )
    assert "a load of [2, 64, 32] from [2, 128, 32] into Mat has no two-dimensional form" in message


# Windows that may leave an axis other than the first.


def _rows_of_a_batch(bound: int):
    @pl.program
    class Rows:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[2, 100, 64], pl.FP32],
            w: pl.Tensor[[64, 64], pl.FP32],
            t: pl.Scalar[pl.INDEX],
            y: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.assemble(y, pl.matmul(x[0, t : t + bound, :], w), [0, 0])
            return y

    return Rows


def test_window_of_a_matmul_operand_past_its_axis_is_no_row_of_the_next_batch():
    compiled = pl.compile(_rows_of_a_batch(64))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 100, 64), dtype=np.float32), rng.standard_normal((64, 64), dtype=np.float32)
    y = np.zeros((64, 64), np.float32)
    compiled(x, w, 36, y)
    np.testing.assert_allclose(y, x[0, 36:] @ w, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match=r"takes elements 37\.\.101 of axis 1, which has 100"):
        compiled(x, w, 37, y)


def test_window_provably_inside_is_read_through_a_view_of_two_dimensions():
    @pl.program
    class Inside:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[2, 128, 64], pl.FP32],
            w: pl.Tensor[[64, 64], pl.FP32],
            y: pl.Out[pl.Tensor[[256, 64], pl.FP32]],
        ) -> pl.Tensor[[256, 64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for b in pl.range(2):
                    for t in pl.range(0, 128, 64):
                        y = pl.assemble(y, pl.matmul(x[b, t : t + 64, :], w), [b * 128 + t, 0])
            return y

    compiled = pl.compile(Inside)
    assert "view_2d" in "".join(compiled.pto.values())
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((2, 128, 64), dtype=np.float32), rng.standard_normal((64, 64), dtype=np.float32)
    y = np.zeros((256, 64), np.float32)
    compiled(x, w, y)
    np.testing.assert_allclose(y, x.reshape(256, 64) @ w, rtol=1e-4, atol=1e-4)


def test_slice_of_a_tile_that_may_reach_the_next_matrix_is_refused():
    @pl.function(type=pl.FunctionType.InCore)
    def rows(
        x: pl.Tensor[[2, 16, 64], pl.FP32], t: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[1, 8, 64], pl.FP32]]
    ) -> pl.Tensor[[1, 8, 64], pl.FP32]:
        tile = pl.load(x, [0, 0, 0], [2, 16, 64])
        y = pl.store(pl.tile.slice(tile, [1, 8, 64], [0, t, 0]), [0, 0, 0], y)
        return y

    with pytest.raises(ValueError, match="may run past axis 1, into the next matrix"):
        pl.compile(rows)
