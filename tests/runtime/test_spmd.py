"""Programs that run a kernel on several blocks."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def test_each_block_does_its_part():
    @pl.function
    def double(
        x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
    ) -> pl.Tensor[[64, 32], pl.FP32]:
        for i in pl.spmd(4):
            t = pl.load(x, [i * 16, 0], [16, 32])
            y = pl.store(pl.add(t, t), [i * 16, 0], y)
        return y

    compiled = pl.compile(double)
    x, y = floats(64, 32), np.zeros((64, 32), np.float32)
    assert compiled(x, y) is y
    np.testing.assert_array_equal(y, 2 * x)
    assert [name for name, _ in compiled.reports] == ["double_incore_0"] * 4


N = pl.dynamic("N")


@pl.program
class Rows:
    """Block i of n adds i to row block i, and n to all."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[N, 32], pl.FP32], y: pl.Out[pl.Tensor[[N, 32], pl.FP32]]
    ) -> pl.Tensor[[N, 32], pl.FP32]:
        i = pl.tile.get_block_idx()
        count = pl.tile.get_block_num()
        t = pl.load(x, [i * 16, 0], [16, 32])
        t = pl.add(t, pl.cast(i, pl.FP32))
        t = pl.add(t, pl.cast(count, pl.FP32))
        y = pl.store(t, [i * 16, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[N, 32], pl.FP32], y: pl.Out[pl.Tensor[[N, 32], pl.FP32]]
    ) -> pl.Tensor[[N, 32], pl.FP32]:
        n = pl.tensor.dim(x, 0)
        with pl.spmd(n // 16):
            y = self.kernel(x, y)
        return y


@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_the_number_of_blocks_may_depend_on_shapes(blocks):
    compiled = pl.compile(Rows)
    x, y = floats(16 * blocks, 32, seed=blocks), np.zeros((16 * blocks, 32), np.float32)
    compiled(x, y)
    part = np.repeat(np.arange(blocks, dtype=np.float32), 16)[:, None]
    np.testing.assert_allclose(y, x + part + blocks, rtol=1e-6)


def test_a_launch_on_no_blocks_is_refused():
    with pytest.raises(ValueError, match="main_spmd_0 is launched on 0 blocks"):
        pl.compile(Rows)(floats(0, 32), np.zeros((0, 32), np.float32))


def test_a_kernel_called_on_its_own_is_block_0_of_1():
    x, y = floats(32, 32), np.zeros((32, 32), np.float32)
    pl.compile(Rows).kernel("kernel")(x, y)
    np.testing.assert_allclose(y[:16], x[:16] + 1, rtol=1e-6)
    assert not y[16:].any()


def test_launched_tasks_run_in_the_order_of_their_launches():
    @pl.function
    def twice(x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]) -> pl.Tensor[[64, 32], pl.FP32]:
        with pl.spmd(4) as first:
            i = pl.tile.get_block_idx()
            y = pl.store(pl.load(x, [i * 16, 0], [16, 32]), [i * 16, 0], y)
        with pl.spmd(2, deps=[first]) as _second:
            j = pl.tile.get_block_idx()
            t = pl.load(y, [j * 32, 0], [32, 32])
            y = pl.store(pl.add(t, t), [j * 32, 0], y)
        return y

    compiled = pl.compile(twice)
    x, y = floats(64, 32), np.zeros((64, 32), np.float32)
    compiled(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    assert len(compiled.reports) == 6


def test_a_cluster_runs_its_kernel_on_every_block():
    @pl.program
    class Clustered:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            i = pl.tile.get_block_idx()
            y = pl.store(pl.load(x, [i * 16, 0], [16, 32]), [i * 16, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[64, 32], pl.FP32], y: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.cluster():  # noqa: SIM117
                with pl.spmd(4):
                    y = self.kernel(x, y)
            return y

    compiled = pl.compile(Clustered)
    x, y = floats(64, 32), np.zeros((64, 32), np.float32)
    compiled(x, y)
    np.testing.assert_array_equal(y, x)
    assert len(compiled.reports) == 4
