"""FoldNoOpReshape: a reshape to the same shape is another name of the tile."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import passes
from pypto.ir.program import summarize

from .checking import unchanged


@pl.program
class Reshapes:
    @pl.function(type=pl.FunctionType.InCore)
    def same(
        self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 64])
        u = pl.tile.reshape(t, [16, 64])
        return pl.store(pl.add(u, t), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def other(
        self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 16], pl.FP32]]
    ) -> pl.Tensor[[64, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 64])
        u = pl.tile.reshape(t, [64, 16])
        return pl.store(u, [0, 0], out)


@pytest.mark.parametrize(("name", "kept"), [("same", False), ("other", True)])
def test_only_a_reshape_to_another_shape_stays(name, kept):
    compiled = pl.compile(Reshapes)
    function = compiled.lowered.get_function(name)
    assert ("tile.reshape" in summarize(function).ops) is kept
    assert ("rows=64, cols=16" in compiled.pto[name]) is kept
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    out = np.zeros((64, 16) if kept else (16, 64), np.float32)
    compiled.kernel(name)(x, out)
    np.testing.assert_array_equal(out, x.reshape(64, 16) if kept else 2 * x)


def test_before_buffers_are_known_nothing_is_folded():
    unchanged(passes.convert_to_ssa()(Reshapes), passes.fold_no_op_reshape)
