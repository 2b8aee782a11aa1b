"""Loops of kernels that count down, and while loops that carry nothing, run against Python."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl

COUNTS = {
    "10, 0, -3": lambda n: range(10, 0, -3),
    "n, 0, -1": lambda n: range(n, 0, -1),
    "3, n, -2": lambda n: range(3, n, -2),
    "0, 4, -1": lambda n: range(0, 4, -1),
    "4, -1, -2": lambda n: range(4, -1, -2),
}


@pytest.mark.parametrize("left", ["", "break", "continue"])
@pytest.mark.parametrize("bounds", COUNTS)
def test_loop_that_counts_down(bounds: str, left: str):
    jump = f"if i == 4:\n            {left}" if left else "pass"
    compiled = pl.compile(
        pl.parse(f"""
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[8, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [8, 64])
    for i in pl.range({bounds}):
        {jump}
        t = pl.add(pl.mul(t, 0.5), pl.cast(i, pl.FP32))
    pl.store(t, [0, 0], y)
""")
    )
    for n in (0, 1, 4):
        wanted = 1.0
        for i in COUNTS[bounds](n):
            if i == 4 and left == "break":
                break
            wanted = wanted if i == 4 and left else wanted * 0.5 + i
        y = np.zeros((8, 64), np.float32)
        compiled(np.ones((8, 64), np.float32), n, y)
        assert (y == wanted).all()


def test_while_that_carries_nothing_reads_back_and_runs():
    compiled = pl.compile(
        pl.parse("""
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[8, 64], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.InOut[pl.Tensor[[8, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [8, 64])
    while n < 0:
        pl.store(t, [0, 0], y)
""")
    )
    (text,) = compiled.pto.values()
    y = np.zeros((8, 64), np.float32)
    compiled(np.ones((8, 64), np.float32), 3, y)
    assert "scf.while ()" in text and (y == 0).all()
