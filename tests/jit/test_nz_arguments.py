"""NZ parameters of jit kernels: the bytes come as the array of blocks, or in the annotated shape."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import ParserTypeError
from pypto.layouts import to_nz


@pl.jit
def product(
    w: pl.Tensor[[32, 64], pl.FP16, pl.NZ], x: pl.Tensor[[64, 32], pl.FP16], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.assemble(y, pl.matmul(pl.slice(w, [32, 64], [0, 0]), x, out_dtype=pl.FP32), [0, 0])
    return y


@pl.jit
def batched(
    w: pl.Tensor[[2, 32, 64], pl.FP16, pl.NZ], x: pl.Tensor[[64, 32], pl.FP16], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.assemble(y, pl.matmul(w[1, :, :], x, out_dtype=pl.FP32), [0, 0])
    return y


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-4, 5, shape).astype(np.float16)


@pytest.mark.parametrize("kernel, shape", [(product, (32, 64)), (batched, (2, 32, 64))], ids=["matrix", "batch"])
def test_both_shapes_of_the_same_bytes_work(kernel, shape):
    w, x = numbers(*shape), numbers(64, 32)
    expected = w.reshape(-1, 32, 64)[-1].astype(np.float32) @ x.astype(np.float32)
    packed = to_nz(w)
    for given in (packed, packed.reshape(shape)):
        y = np.zeros((32, 32), np.float32)
        kernel(given, x, y)
        assert (y == expected).all()
    y = np.zeros((32, 32), np.float32)
    kernel.compile(packed, x, y)(packed, x, y)
    assert (y == expected).all()
    assert kernel.compile(packed, x, y) is kernel.compile(packed.reshape(shape), x, y)


def test_bytes_that_do_not_follow_each_other_are_no_nz_tensor():
    with pytest.raises(ParserTypeError, match="'w' of 'product' is not contiguous, and its bytes are in NZ order"):
        product(numbers(64, 32).T, numbers(64, 32), np.zeros((32, 32), np.float32))


def test_other_blocks_are_refused():
    with pytest.raises(ParserTypeError, match="argument 'w' of 'product'"):
        product(to_nz(numbers(64, 64)), numbers(64, 32), np.zeros((32, 32), np.float32))
