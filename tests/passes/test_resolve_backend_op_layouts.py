"""Columns are viewed as rows for instructions that work element by element."""

from __future__ import annotations

import numpy as np
import pytest
from text_programs import kernel

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import ASCEND910B
from pypto.ir.structural import assert_structural_equal
from pypto.ir.visitor import walk

COLUMN = "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]"
SUM = "t = pl.load(x, [0, 0], [16, 64])\ntmp = pl.tile.create([16, 64], dtype=pl.FP32)\ns = pl.tile.row_sum(t, tmp)\n"
STORE = "done = pl.store(y, [0, 0], out)\nreturn done"


def resolve(before: ir.Program) -> ir.Program:
    with passes.PassContext(target=ASCEND910B):
        return passes.resolve_backend_op_layouts()(before)


def test_a_column_is_scaled_as_a_row() -> None:
    made = resolve(kernel(COLUMN, SUM + "y = pl.tile.muls(s, 0.5)\n" + STORE))
    expected = kernel(
        COLUMN,
        SUM + "r = pl.tile.reshape(s, [1, 16])\nm = pl.tile.muls(r, 0.5)\ny = pl.tile.reshape(m, [16, 1])\n" + STORE,
    )
    assert_structural_equal(made, expected)
    assert resolve(made) is made


def test_both_operands_of_a_sum_of_columns() -> None:
    made = resolve(kernel(COLUMN, SUM + "y = pl.tile.add(s, s)\n" + STORE))
    expected = kernel(
        COLUMN,
        SUM
        + "a = pl.tile.reshape(s, [1, 16])\nb = pl.tile.reshape(s, [1, 16])\nm = pl.tile.add(a, b)\n"
        + "y = pl.tile.reshape(m, [16, 1])\n"
        + STORE,
    )
    assert_structural_equal(made, expected)


def test_the_valid_rows_become_valid_columns() -> None:
    ragged = SUM.replace("[16, 64])\ntmp", "[16, 64], [n, 64])\ntmp")
    made = resolve(kernel(COLUMN + ", n: pl.Scalar[pl.INDEX]", ragged + "y = pl.tile.exp(s)\n" + STORE))
    regions = [
        [getattr(d, "name_hint", getattr(d, "value", None)) for d in node.var.type.valid_shape]
        for node in walk(made)
        if isinstance(node, ir.AssignStmt) and isinstance(node.var.type, ir.TileType)
    ]
    assert regions[2:] == [["n", 1], [1, "n"], [1, "n"], ["n", 1]]


def test_a_boxed_tile_is_copied_to_rows_and_back() -> None:
    view = "blayout=pl.TileLayout.col_major, slayout=pl.TileLayout.row_major"
    params = "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    kind = f"pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView({view})]"
    made = resolve(
        kernel(
            params,
            f"t = pl.load(x, [0, 0], [16, 64])\nb: {kind} = pl.tile.move(t, target_memory=pl.Mem.Vec, {view})\n"
            f"y: {kind} = pl.tile.exp(b)\n" + STORE,
        )
    )
    names = [n.op.name for n in walk(made) if isinstance(n, ir.Call)]
    assert names == ["tile.load", "tile.move", "tile.move", "tile.exp", "tile.move", "tile.store"]


def test_operators_that_take_columns_are_left_alone() -> None:
    params = "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    before = kernel(params, SUM + "y = pl.tile.row_expand_sub(t, s)\n" + STORE)
    assert resolve(before) is before


def test_without_a_target_nothing_changes() -> None:
    before = kernel(COLUMN, SUM + "y = pl.tile.exp(s)\n" + STORE)
    assert passes.resolve_backend_op_layouts()(before) is before


def test_a_mask_of_a_column_is_refused_with_the_form_that_works() -> None:
    lines = SUM + "m = pl.tile.cmps(s, 0.0, cmp_type=4)\ny = pl.tile.sel(m, s, s, s)\n" + STORE
    with pytest.raises(ValueError, match=r"(?s)has no row form.*pl\.reshape\(column, \[1, N\]\)"):
        resolve(kernel(COLUMN, lines))


REGIONS = "x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"


def test_operands_are_narrowed_to_what_the_result_holds() -> None:
    loads = "a = pl.load(x, [0, 0], [16, 64], [n, 64])\nb = pl.load(x, [0, 0], [16, 64], [16, 48])\n"
    made = resolve(kernel(REGIONS, loads + "y = pl.tile.add(a, b)\n" + STORE))
    narrow = "c = pl.tile.set_validshape(a, n, 48)\nd = pl.tile.set_validshape(b, n, 48)\n"
    assert_structural_equal(made, kernel(REGIONS, loads + narrow + "y = pl.tile.add(c, d)\n" + STORE))
    assert resolve(made) is made


def test_the_vector_of_an_expansion_is_narrowed_along_its_own_dimension() -> None:
    loads = (
        "a = pl.load(x, [0, 0], [16, 64], [n, 64])\nt = pl.load(x, [0, 0], [16, 64])\n"
        "tmp = pl.tile.create([16, 64], dtype=pl.FP32)\nb = pl.tile.row_sum(t, tmp)\n"
    )
    made = resolve(kernel(REGIONS, loads + "y = pl.tile.row_expand_mul(a, b)\n" + STORE))
    narrow = "c = pl.tile.set_validshape(b, n, 1)\n"
    assert_structural_equal(made, kernel(REGIONS, loads + narrow + "y = pl.tile.row_expand_mul(a, c)\n" + STORE))


def test_scratch_keeps_its_region() -> None:
    lines = "a = pl.load(x, [0, 0], [16, 64], [n, 64])\ntmp = pl.tile.create([16, 64], dtype=pl.FP32)\n"
    before = kernel(REGIONS, lines + "y = pl.tile.pows(a, 2.0, tmp)\n" + STORE)
    assert resolve(before) is before


def test_one_element_of_a_row_is_stored_as_one_of_a_column() -> None:
    params = "x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]"
    load = "t = pl.load(x, [0, 0], [1, 8])\nv = pl.tile.set_validshape(t, 1, 1)\n"
    made = resolve(kernel(params, load + "out = pl.tile.store(v, [n, 0], out, [1, 1])\nreturn out"))
    column = "c = pl.tile.reshape(v, [8, 1])\n"
    expected = kernel(params, load + column + "out = pl.tile.store(c, [n, 0], out, [1, 1])\nreturn out")
    assert_structural_equal(made, expected)
    assert resolve(made) is made


@pl.jit
def firsts(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    for row in pl.spmd(16):
        negated = pl.neg(pl.tile.load(x, [row, 0], [1, 8]))
        y = pl.tile.store(pl.set_validshape(negated, 1, 1), [row, 0], y, shapes=[1, 1])
    return y


def test_elements_reach_their_places_in_a_column() -> None:
    x = np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32)
    x[3:6, 0] = np.inf, -0.0, np.nan
    y = np.zeros((16, 1), np.float32)
    firsts(x, y)
    np.testing.assert_array_equal(y[:, 0], -x[:, 0])
