"""Strides, shapes and layouts of tensor views."""

from __future__ import annotations

import pytest

from pypto import ir
from pypto.dtypes import DataType
from pypto.ir import TensorLayout as Layout
from pypto.ir.tensor_view_semantics import (
    build_logical_strides_from_layout as build,
    canonicalize_view,
    check_canonical_view as check,
    compute_shape_product,
    derive_layout_from_strides as derive,
    index_mul,
    is_blocked_nz_shape,
    materialized,
)

INT64_MAX = (1 << 63) - 1


def dims(*values):
    return [v if isinstance(v, ir.Expr) else ir.index_const(v) for v in values]


def values(exprs):
    return [e.value for e in exprs]


def symbol(name):
    return ir.Var(name, ir.ScalarType(DataType.INDEX))


@pytest.mark.parametrize(
    ("shape", "layout", "strides"),
    [
        ((), Layout.ND, []),
        ((7,), Layout.ND, [1]),
        ((8, 16), Layout.ND, [16, 1]),
        ((2, 4, 8), Layout.ND, [32, 8, 1]),
        ((5, 1, 1), Layout.ND, [1, 1, 1]),
        ((4, 8), Layout.DN, [1, 4]),
        ((2, 4, 8), Layout.DN, [32, 1, 4]),
        ((2, 3, 4, 8), Layout.DN, [96, 32, 1, 4]),
        ((9, 2, 3, 4, 8), Layout.DN, [192, 96, 32, 1, 4]),
        ((1, 4, 3, 16, 16), Layout.NZ, [3072, 768, 256, 16, 1]),
        ((2, 4, 3, 16, 8), Layout.NZ, [1536, 384, 128, 8, 1]),
        ((1, 2, 3, 16, 2), Layout.MX_A_ZZ, [192, 96, 32, 2, 1]),
    ],
)
def test_packed_strides(shape, layout, strides):
    assert values(build(dims(*shape), layout)) == strides
    assert values(canonicalize_view(dims(*shape), layout).stride) == strides
    assert check(dims(*shape), dims(*strides), layout) == (True, "")


@pytest.mark.parametrize(
    ("shape", "layout", "reason"),
    [
        ((8,), Layout.DN, "rank >= 2"),
        ((8, 16), Layout.NZ, "NZ"),
        ((1, 4, 3, 8, 16), Layout.NZ, "blocked"),
        ((1, 4, 3, 16, 5), Layout.NZ, "blocked"),
        ((4, 16, 64), Layout.MX_B_NN, "MX_B_NN needs a 2-D shape, or one blocked"),
    ],
)
def test_shapes_a_layout_does_not_have(shape, layout, reason):
    with pytest.raises(ValueError, match=reason):
        build(dims(*shape), layout)
    ok, why = check(dims(*shape), dims(*[1] * len(shape)), layout)
    assert not ok
    assert reason in why


def test_symbolic_dimensions_stay_products():
    rows, cols = symbol("rows"), symbol("cols")
    outer, inner, last = build(dims(2, rows, cols), Layout.ND)
    assert isinstance(outer, ir.Mul)
    assert (outer.left, outer.right) == (rows, cols)
    assert inner is cols
    assert last.value == 1
    one, trailing = build(dims(rows, cols), Layout.DN)
    assert one.value == 1
    assert trailing is rows


def test_a_product_beyond_int64_is_not_folded():
    half = 1 << 32
    outer, inner, _ = build(dims(2, half, half // 2), Layout.ND)
    assert isinstance(outer, ir.Mul)
    assert (outer.left.value, outer.right.value) == (half, half // 2)
    assert inner.value == half // 2
    assert index_mul(*dims(half // 2, half - 1)).value == (half // 2) * (half - 1) <= INT64_MAX
    assert index_mul(*dims(-half, half // 2)).value == -(1 << 63)
    assert isinstance(index_mul(*dims(-half, half)), ir.Mul)


def test_a_factor_of_one_is_left_out():
    rows = symbol("rows")
    assert index_mul(rows, ir.index_const(1)) is rows
    assert index_mul(ir.index_const(1), rows) is rows


def test_blocked_shapes():
    assert is_blocked_nz_shape(dims(1, 4, 3, 16, 16), DataType.FP16)
    assert is_blocked_nz_shape(dims(1, 4, 3, 16, 8), DataType.FP32)
    assert is_blocked_nz_shape(dims(1, 4, 3, 16, 32), DataType.INT8)
    assert is_blocked_nz_shape(dims(1, 4, 3, 16, 64), DataType.FP4)
    assert is_blocked_nz_shape(dims(symbol("batch"), 4, symbol("r"), 16, 16), DataType.BF16)
    assert is_blocked_nz_shape(dims(1, 4, 3, 16, 32))
    assert not is_blocked_nz_shape(dims(1, 4, 3, 16, 16), DataType.FP32)
    assert not is_blocked_nz_shape(dims(1, 4, 3, 32, 16), DataType.FP16)
    assert not is_blocked_nz_shape(dims(1, 4, 3, symbol("r"), 16), DataType.FP16)
    assert not is_blocked_nz_shape(dims(4, 3, 16, 16), DataType.FP16)


@pytest.mark.parametrize(
    ("shape", "strides", "layout"),
    [
        ((8, 16), (16, 1), Layout.ND),
        ((4, 8), (16, 1), Layout.ND),
        ((4, 8), (1, 4), Layout.DN),
        ((2, 4), (1, 8), Layout.DN),
        ((8, 16), (2, 4), None),
        ((8, 16), (1,), None),
        ((), (), None),
    ],
)
def test_layout_from_strides(shape, strides, layout):
    assert derive(dims(*shape), dims(*strides)) is layout


@pytest.mark.parametrize(
    ("shape", "strides", "layout"),
    [
        ((), (), Layout.ND),
        ((4, 8), (16, 1), Layout.ND),
        ((2, 4, 8), (100, 8, 1), Layout.ND),
        ((2, 4), (1, 4), Layout.DN),
        ((2, 3, 4, 8), (96, 32, 1, 4), Layout.DN),
        ((2, 3, 4, 8), (200, 64, 1, 8), Layout.DN),
        ((1, 4, 3, 16, 16), (9999, 800, 256, 16, 1), Layout.NZ),
    ],
)
def test_strides_a_layout_allows(shape, strides, layout):
    assert check(dims(*shape), dims(*strides), layout) == (True, "")


@pytest.mark.parametrize(
    ("shape", "strides", "layout", "reason"),
    [
        ((8, 16), (), Layout.ND, "stride is empty"),
        ((8, 16), (1,), Layout.ND, "rank"),
        ((4, 8), (1, 4), Layout.ND, "innermost"),
        ((8, 16), (16, 1), Layout.DN, "stride[-2]"),
        ((4, 8), (4, 1), Layout.ND, "smaller than packed"),
        ((4, 8), (1, 2), Layout.DN, "shape[-2]"),
        ((2, 4, 8), (31, 1, 4), Layout.DN, "smaller than packed"),
        ((2, 4, 8), (31, 8, 1), Layout.ND, "smaller than packed"),
        ((2, 4, 8), (-32, 8, 1), Layout.ND, "smaller than packed"),
        ((1, 4, 3, 16, 16), (3072, 767, 256, 16, 1), Layout.NZ, "smaller than packed"),
        ((8,), (1,), Layout.DN, "rank >= 2"),
    ],
)
def test_strides_a_layout_does_not_allow(shape, strides, layout, reason):
    ok, why = check(dims(*shape), dims(*strides), layout)
    assert not ok
    assert reason in why


def test_what_is_not_constant_counts_as_right_unless_proof_is_asked_for():
    rows, cols = symbol("rows"), symbol("cols")
    assert check([rows, cols], dims(1, rows), Layout.DN)[0]
    assert check([rows, cols], [cols, cols], Layout.ND)[0]
    for shape, strides, layout in (
        ([rows, cols], dims(1, rows), Layout.DN),
        ([rows, cols], dims(cols, 1), Layout.ND),
        (dims(4, 8), dims(8, cols), Layout.ND),
    ):
        ok, why = check(shape, strides, layout, False)
        assert not ok
        assert "symbolic" in why


def test_materialized_keeps_strides_and_everything_else():
    view = ir.TensorView((), Layout.DN, dims(2, 8), ir.PadValue.zero)
    full = materialized(view, dims(4, 8))
    assert values(full.stride) == [1, 4]
    assert (full.layout, values(full.valid_shape), full.pad) == (Layout.DN, [2, 8], ir.PadValue.zero)
    assert materialized(full, dims(4, 8)) is full


def test_element_counts():
    assert compute_shape_product(dims(2, 3, 5)) == 30
    assert compute_shape_product([]) == 1
    assert compute_shape_product(dims(0, 7)) == 0
    assert compute_shape_product([symbol("n"), ir.index_const(8)]) == -1
    assert compute_shape_product(dims(1 << 40, 1 << 40)) == -1
