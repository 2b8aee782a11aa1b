"""What the host side of a program does itself: arrays, views, tasks, the width of the chip."""

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import KernelValueError


@pl.program
class Rows:
    @pl.function(type=pl.FunctionType.InCore)
    def copy_row(
        self, x: pl.Tensor[[4, 16], pl.FP32], i: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[4, 16], pl.FP32]]
    ) -> pl.Tensor[[4, 16], pl.FP32]:
        return pl.store(pl.load(x, [i, 0], [1, 16]), [i, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[4, 16], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[4, 16], pl.FP32]]
    ) -> pl.Tensor[[4, 16], pl.FP32]:
        order = pl.array.create(3, pl.INDEX)
        order[0] = 3
        for i in pl.range(1, 3):
            order[i] = order[i - 1] - 1
        out = self.copy_row(x, order[n], out)
        return out


@pytest.mark.parametrize("n", [0, 1, 2])
def test_an_array_holds_what_was_written(n):
    x, out = np.arange(64, dtype=np.float32).reshape(4, 16), np.zeros((4, 16), np.float32)
    pl.compile(Rows)(x, n, out)
    assert (out[3 - n] == x[3 - n]).all() and np.count_nonzero(out.any(axis=1)) == 1


@pytest.mark.parametrize("n", [-1, 3])
def test_an_element_outside_an_array_is_refused(n):
    x, out = np.ones((4, 16), np.float32), np.zeros((4, 16), np.float32)
    with pytest.raises(KernelValueError, match=rf"element {n} is outside an array of 3") as caught:
        pl.compile(Rows)(x, n, out)
    assert "order[n]" in str(caught.value)


def view_program(view):
    return pl.parse(f"""
import pypto.language as pl

@pl.function
def kernel(x: pl.Tensor[[16, 64], pl.FP32]) -> pl.Tensor[[32, 32], pl.INT32]:
    v = {view}
    with pl.at(level=pl.Level.CORE_GROUP):
        result = pl.tensor.add(v, v)
    return result
""")


def test_a_view_shares_the_memory_of_its_tensor():
    x = np.arange(1024, dtype=np.int32).view(np.float32).reshape(16, 64)
    compiled = pl.compile(view_program("pl.tensor.view(pl.tensor.reinterpret_view(x, dtype=pl.INT32), [32, 32])"))
    assert (np.asarray(compiled(x)) == 2 * np.arange(1024).reshape(32, 32)).all()


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_a_launch_as_wide_as_the_chip(target):
    @pl.program
    class Wide:
        @pl.function(type=pl.FunctionType.InCore)
        def count(self, out: pl.Out[pl.Tensor[[256], pl.INT32]]) -> pl.Tensor[[256], pl.INT32]:
            pl.write(out, [pl.tile.get_block_idx()], pl.cast(pl.tile.get_block_num(), pl.INT32))
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, out: pl.Out[pl.Tensor[[256], pl.INT32]]) -> pl.Tensor[[256], pl.INT32]:
            with pl.spmd(pl.system.available_aiv_count()):
                out = self.count(out)
            return out

    compiled, out = pl.compile(Wide, target=target), np.zeros(256, np.int32)
    compiled(out)
    width = compiled.target.dies * compiled.target.groups_per_die * compiled.target.vectors_per_group
    assert (out[:width] == width).all() and not out[width:].any()


@pl.function(type=pl.FunctionType.InCore)
def copy(x: pl.Tensor[[4, 16], pl.FP32], out: pl.Out[pl.Tensor[[4, 16], pl.FP32]]):
    pl.store(pl.load(x, [0, 0], [4, 16]), [0, 0], out)


def test_arrays_that_are_only_read_may_be_read_only():
    compiled, out = pl.compile(copy), np.zeros((4, 16), np.float32)
    whole = np.arange(64, dtype=np.float32).reshape(4, 16)
    whole.flags.writeable = False
    for x in (whole, np.broadcast_to(whole[:1], (4, 16)), np.repeat(whole, 2, axis=1)[:, ::2]):
        compiled(x, out)
        assert (out == x).all()


def test_an_array_that_is_written_must_not_be_read_only():
    x = np.ones((4, 16), np.float32)
    for out in (np.zeros((4, 16), np.float32), np.zeros((4, 32), np.float32)[:, ::2]):
        out.flags.writeable = False
        with pytest.raises(KernelValueError, match="argument 'out' is read-only, and copy writes it"):
            pl.compile(copy)(x, out)
