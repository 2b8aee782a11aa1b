"""Kernels whose tiles trade places, run in the simulator at the addresses the memory passes chose."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import CapacityError

A = np.random.default_rng(7).standard_normal((16, 64)).astype(np.float32)


@pl.function(type=pl.FunctionType.InCore)
def swap(a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
    x = pl.tile.load(a, [0, 0], [8, 64])
    y = pl.tile.load(a, [8, 0], [8, 64])
    for _i, (p, q) in pl.range(3, init_values=(x, y)):
        rp, rq = pl.yield_(q, p)
    o1 = pl.tile.store(rp, [0, 0], out)
    o2 = pl.tile.store(rq, [8, 0], o1)
    return o2


@pl.function(type=pl.FunctionType.InCore)
def initial_value_needed(
    a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    x = pl.tile.load(a, [0, 0], [16, 64])
    for _i, (c,) in pl.range(4, init_values=(x,)):
        y = pl.tile.add(c, x)
        r = pl.yield_(y)
    o = pl.tile.store(r, [0, 0], out)
    return o


@pl.function(type=pl.FunctionType.InCore)
def operand_needed(
    a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    x = pl.tile.load(a, [0, 0], [16, 64])
    row = pl.tile.load(a, [0, 0], [1, 64])
    y = pl.tile.assemble(x, row, [3, 0])
    z = pl.tile.add(x, y)
    o = pl.tile.store(z, [0, 0], out)
    return o


@pl.function(type=pl.FunctionType.InCore)
def branches(
    a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
) -> pl.Tensor[[16, 64], pl.FP32]:
    x = pl.tile.load(a, [0, 0], [16, 64])
    zero = pl.tile.muls(x, 0.0)
    for i, (c,) in pl.range(5, init_values=(zero,)):
        if i < 2:
            e = pl.tile.add(c, x)
            f = pl.yield_(e)
        else:
            f = pl.yield_(x)
        g = pl.tile.add(f, c)
        r = pl.yield_(g)
    o = pl.tile.store(r, [0, 0], out)
    return o


@pl.function(type=pl.FunctionType.InCore)
def windows(a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
    start = pl.tile.load(a, [0, 0], [16, 32])
    for _i, (c,) in pl.range(3, init_values=(start,)):
        x = pl.tile.load(a, [0, 0], [16, 64])
        right = pl.tile.slice(x, [16, 32], [0, 32])
        left = pl.tile.slice(x, [16, 32], [0, 0])
        w = pl.tile.add(c, left)
        v = pl.tile.add(w, right)
        u = pl.tile.assemble(x, v, [0, 0])
        t = pl.tile.slice(u, [16, 32], [0, 0])
        r = pl.yield_(t)
    o = pl.tile.store(r, [0, 0], out)
    return o


def expected_branches():
    c = np.zeros_like(A)
    for i in range(5):
        c = (c + A if i < 2 else A) + c
    return c


def expected_windows():
    out = np.zeros_like(A)
    out[:, :32] = A[:, :32] + 3 * (A[:, :32] + A[:, 32:])
    return out


with_row = np.where(np.arange(16)[:, None] == 3, A[0], A)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (swap, np.concatenate([A[8:], A[:8]])),
        (initial_value_needed, 5 * A),
        (operand_needed, A + with_row),
        (branches, expected_branches()),
        (windows, expected_windows()),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_results(kernel, expected):
    out = np.zeros_like(A)
    pl.compile(kernel)(A, out)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_a_kernel_that_does_not_fit_points_at_its_tile():
    @pl.function(type=pl.FunctionType.InCore)
    def large(
        a: pl.Tensor[[256, 256], pl.FP32], out: pl.Out[pl.Tensor[[256, 256], pl.FP32]]
    ) -> pl.Tensor[[256, 256], pl.FP32]:
        x = pl.tile.load(a, [0, 0], [256, 256])
        o = pl.tile.store(x, [0, 0], out)
        return o

    with pytest.raises(CapacityError) as caught:
        pl.compile(large)
    message = str(caught.value)
    assert "Vec buffer usage (262144 bytes) exceeds platform limit (188416 bytes)" in message
    assert "x = pl.tile.load(a, [0, 0], [256, 256])" in message
    assert "test_memory_passes_run.py" in message
    assert "'x' [256, 256] fp32" in message
