"""Tiles assembled at places no vector instruction may write: the elements are written one by one."""

import numpy as np
import pytest

import pypto.language as pl
from pypto.backend import ASCEND910B, ASCEND950
from pypto.dtypes import DataType

TARGETS = (ASCEND910B, ASCEND950)
DTYPES = (DataType.FP32, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8)


def _kernel(dtype: DataType, column: int, width: int):
    @pl.function(type=pl.FunctionType.InCore)
    def join(
        x: pl.Tensor[[16, 64], dtype], v: pl.Tensor[[16, 32], dtype], y: pl.Out[pl.Tensor[[16, 64], dtype]]
    ) -> pl.Tensor[[16, 64], dtype]:
        part = pl.tile.load(v, [0, 0], [16, 32], [13, width])
        y = pl.store(pl.tile.assemble(pl.load(x, [0, 0], [16, 64]), part, [0, column]), [0, 0], y)
        return y

    return join


def _arrays(dtype: DataType) -> tuple[np.ndarray, np.ndarray]:
    kind = dtype.numpy
    rng = np.random.default_rng(3)
    return rng.integers(-100, 100, (16, 64)).astype(kind), rng.integers(-100, 100, (16, 32)).astype(kind)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("column", "width"), [(3, 7), (31, 31), (1, 1)])
def test_assemble_at_odd_column_keeps_what_is_around_it(target, dtype, column, width):
    compiled = pl.compile(_kernel(dtype, column, width), target=target)
    assert "pto.tsetval" in compiled.pto["join"]
    x, v = _arrays(dtype)
    y = np.zeros_like(x)
    compiled(x, v, y)
    want = x.copy()
    want[:13, column : column + width] = v[:13, :width]
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("column", [0, 8, 32])
def test_assemble_at_a_multiple_of_32_bytes_stays_a_copy(column):
    text = pl.compile(_kernel(DataType.FP32, column, 16)).pto["join"]
    assert "pto.tsetval" not in text and "pto.tinsert" in text


def test_offset_of_a_loop_is_aligned_by_its_step():
    @pl.function(type=pl.FunctionType.InCore)
    def spread(
        v: pl.Tensor[[16, 8], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        tile = pl.tile.full([16, 64], dtype=pl.FP32, value=0.0)
        for i in pl.range(n):
            tile = pl.tile.assemble(tile, pl.load(v, [0, 0], [16, 8]), [0, i * 8])
        y = pl.store(tile, [0, 0], y)
        return y

    assert "pto.tsetval" not in pl.compile(spread).pto["spread"]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_old_value_is_kept_beside_the_one_assembled_at_a_runtime_column(target):
    @pl.function(type=pl.FunctionType.InCore)
    def both(
        x: pl.Tensor[[16, 64], pl.FP32],
        v: pl.Tensor[[16, 8], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        old = pl.load(x, [0, 0], [16, 64])
        new = pl.tile.assemble(old, pl.load(v, [0, 0], [16, 8]), [0, n])
        y = pl.store(pl.sub(new, old), [0, 0], y)
        return y

    compiled = pl.compile(both, target=target)
    rng = np.random.default_rng(5)
    x, v = rng.standard_normal((16, 64), dtype=np.float32), rng.standard_normal((16, 8), dtype=np.float32)
    for column in (0, 3, 8, 56):
        y = np.zeros_like(x)
        compiled(x, v, column, y)
        want = np.zeros_like(x)
        want[:, column : column + 8] = v - x[:, column : column + 8]
        np.testing.assert_array_equal(y, want)
