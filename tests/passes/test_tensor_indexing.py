"""Gathers and scatters of tensors, run and compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl

TARGETS = pytest.mark.parametrize("target", ["a2a3", "a5"])
R = np.random.default_rng(11)


def run(kernel, *arrays, target):
    return pl.compile(kernel, target=target, skip_ptoas=True)(*arrays)


@TARGETS
@pytest.mark.parametrize("rows", [1, 4])
def test_gather_takes_elements_row_by_row(target, rows):
    @pl.function(type=pl.FunctionType.InCore)
    def pick(
        x: pl.Tensor[[rows, 32], pl.FP32],
        i: pl.Tensor[[rows, 8], pl.INT32],
        out: pl.Out[pl.Tensor[[rows, 8], pl.FP32]],
    ) -> pl.Tensor[[rows, 8], pl.FP32]:
        out = pl.assemble(out, pl.gather(x, dim=-1, index=i), [0, 0])
        return out

    x = R.standard_normal((rows, 32)).astype(np.float32)
    x[0, 0], x[0, 1] = np.inf, np.nan
    i = R.integers(0, 32, (rows, 8)).astype(np.int32)
    i[0, :3] = [0, 1, 31]
    got = run(pick, x, i, np.zeros((rows, 8), np.float32), target=target)
    assert np.array_equal(got, np.take_along_axis(x, i, 1), equal_nan=True)


@TARGETS
def test_gather_from_a_window_of_a_computed_value(target):
    @pl.function(type=pl.FunctionType.InCore)
    def pick(
        x: pl.Tensor[[4, 32], pl.FP32], i: pl.Tensor[[4, 8], pl.INT32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        y = pl.mul(x, 2.0)
        out = pl.assemble(out, pl.gather(y[:, 8:24], dim=-1, index=i), [0, 0])
        return out

    x = R.standard_normal((4, 32)).astype(np.float32)
    i = R.integers(0, 16, (4, 8)).astype(np.int32)
    got = run(pick, x, i, np.zeros((4, 8), np.float32), target=target)
    assert np.array_equal(got, np.take_along_axis(2 * x[:, 8:24], i, 1))


@TARGETS
def test_scatter_keeps_what_it_does_not_write(target):
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        x: pl.Tensor[[8, 16], pl.FP32],
        i: pl.Tensor[[8, 8], pl.INT32],
        s: pl.Tensor[[8, 8], pl.FP32],
        out: pl.Out[pl.Tensor[[8, 16], pl.FP32]],
    ) -> pl.Tensor[[8, 16], pl.FP32]:
        out = pl.assemble(out, pl.scatter(x, dim=-1, index=i, src=s), [0, 0])
        return out

    x, s = R.standard_normal((8, 16)).astype(np.float32), R.standard_normal((8, 8)).astype(np.float32)
    i = np.stack([R.permutation(16)[:8] for _ in range(8)]).astype(np.int32)
    want = x.copy()
    np.put_along_axis(want, i, s, 1)
    assert np.array_equal(run(put, x, i, s, np.zeros_like(x), target=target), want)


@TARGETS
def test_scatter_by_mask_keeps_the_other_columns(target):
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        x: pl.Tensor[[4, 8], pl.FP32], d: pl.Tensor[[4, 16], pl.FP32], out: pl.Out[pl.Tensor[[4, 16], pl.FP32]]
    ) -> pl.Tensor[[4, 16], pl.FP32]:
        out = pl.assemble(out, pl.tensor.scatter_mask(x, d, mask_pattern=pl.tile.MaskPattern.P1010), [0, 0])
        return out

    x, d = R.standard_normal((4, 8)).astype(np.float32), R.standard_normal((4, 16)).astype(np.float32)
    want = d.copy()
    want[:, 1::2] = x
    assert np.array_equal(run(put, x, d, np.zeros_like(d), target=target), want)


@TARGETS
@pytest.mark.parametrize("dtype", ["FP16", "FP32"])
def test_scatter_update_replaces_rows(target, dtype):
    kind = getattr(pl, dtype)

    @pl.function(type=pl.FunctionType.InCore)
    def put(
        x: pl.Tensor[[16, 64], kind],
        i: pl.Tensor[[1, 8], pl.INT32],
        s: pl.Tensor[[8, 64], kind],
        out: pl.Out[pl.Tensor[[16, 64], kind]],
    ) -> pl.Tensor[[16, 64], kind]:
        out = pl.assemble(out, pl.scatter_update(x, -2, i, s), [0, 0])
        return out

    numpy = np.float16 if dtype == "FP16" else np.float32
    x, s = R.standard_normal((16, 64)).astype(numpy), R.standard_normal((8, 64)).astype(numpy)
    i = R.permutation(16)[:8].astype(np.int32)
    want = x.copy()
    want[i] = s
    assert np.array_equal(run(put, x, i[None], s, np.zeros_like(x), target=target), want)


@TARGETS
def test_rows_of_a_tile_are_replaced(target):
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        x: pl.Tensor[[16, 32], pl.FP32],
        i: pl.Tensor[[1, 8], pl.INT32],
        s: pl.Tensor[[8, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        held, rows = pl.load(x, [0, 0], [16, 32]), pl.load(s, [0, 0], [8, 32])
        out = pl.store(pl.tile.scatter_update(held, -2, pl.load(i, [0, 0], [1, 8]), rows), [0, 0], out)
        return out

    x, s = R.standard_normal((16, 32)).astype(np.float32), R.standard_normal((8, 32)).astype(np.float32)
    i = R.permutation(16)[:8].astype(np.int32)
    want = x.copy()
    want[i] = s
    assert np.array_equal(run(put, x, i[None], s, np.zeros_like(x), target=target), want)


def test_positions_beyond_16_bits_are_refused():
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        x: pl.Tensor[[128, 256], pl.FP16],
        i: pl.Tensor[[1, 8], pl.INT32],
        s: pl.Tensor[[8, 256], pl.FP16],
        out: pl.Out[pl.Tensor[[128, 256], pl.FP16]],
    ) -> pl.Tensor[[128, 256], pl.FP16]:
        out = pl.assemble(out, pl.scatter_update(x, -2, i, s), [0, 0])
        return out

    with pytest.raises(ValueError, match="i16 flat-index limit"):
        pl.compile(put, skip_ptoas=True)


POOL, PAGE = 64, 8


def paged():
    source = R.standard_normal((POOL, 32)).astype(np.float32)
    table = R.permutation(POOL // PAGE).astype(np.int32)
    index = R.integers(0, POOL, 16).astype(np.int32)
    return source, index, table, table[index // PAGE] * PAGE + index % PAGE


@TARGETS
def test_rows_of_a_paged_pool_into_vector_memory(target):
    @pl.function(type=pl.FunctionType.InCore)
    def fetch(
        src: pl.Tensor[[POOL, 32], pl.FP32],
        i: pl.Tensor[[16], pl.INT32],
        bt: pl.Tensor[[POOL // PAGE], pl.INT32],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        rows = pl.paged_gather(
            src, i, bt, block_size=PAGE, size=32, max_indices=16, space=pl.MemorySpace.Vec
        )
        out = pl.assemble(out, rows, [0, 0])
        return out

    source, index, table, rows = paged()
    assert np.array_equal(run(fetch, source, index, table, np.zeros((16, 32), np.float32), target=target), source[rows])


@TARGETS
@pytest.mark.parametrize("turned", [False, True])
def test_rows_of_a_paged_pool_as_a_matmul_operand(target, turned):
    inner, width = (32, 16) if turned else (16, 32)

    @pl.function(type=pl.FunctionType.InCore)
    def fetch(
        src: pl.Tensor[[POOL, 32], pl.FP16],
        i: pl.Tensor[[16], pl.INT32],
        bt: pl.Tensor[[POOL // PAGE], pl.INT32],
        a: pl.Tensor[[16, inner], pl.FP16],
        out: pl.Out[pl.Tensor[[16, width], pl.FP32]],
    ) -> pl.Tensor[[16, width], pl.FP32]:
        kv = pl.paged_gather(src, i, bt, block_size=PAGE, size=32, max_indices=16, is_trans=turned)
        out = pl.assemble(out, pl.matmul(a, kv, out_dtype=pl.FP32), [0, 0])
        return out

    source, index, table, rows = paged()
    half, a = source.astype(np.float16), R.standard_normal((16, inner)).astype(np.float16)
    operand = half[rows].astype(np.float32)
    want = a.astype(np.float32) @ (operand.T if turned else operand)
    got = run(fetch, half, index, table, a, np.zeros((16, width), np.float32), target=target)
    assert np.allclose(got, want, atol=1e-4)
