"""Arguments of calls of `@pl.jit` functions."""

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl


@pl.jit
def times(x: pl.Tensor[[16, 64], pl.FP32], a: pl.Scalar[pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:, :] = pl.mul(x[:, :], a)
    return y


@pytest.mark.parametrize(
    "number", [np.float32(2), np.float64(2), np.int64(2), np.array(2.0), ml_dtypes.bfloat16(2), 2, 2.0], ids=repr
)
def test_scalars_of_numpy_are_numbers(number):
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    y = np.zeros_like(x)
    times(x, number, y)
    np.testing.assert_array_equal(y, 2 * x)
