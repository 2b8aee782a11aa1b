"""RMS norm with a weight for each column, over blocks of rows with a ragged last block."""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

ROWS, HIDDEN, BLOCK, EPS = 72, 256, 32, 1e-5


@pl.function(type=pl.FunctionType.InCore)
def rms_norm(
    x: pl.Tensor[[ROWS, HIDDEN], pl.FP32],
    gamma: pl.Tensor[[1, HIDDEN], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, HIDDEN], pl.FP32]],
) -> pl.Tensor[[ROWS, HIDDEN], pl.FP32]:
    weight = pl.load(gamma, [0, 0], [1, HIDDEN])
    scratch = pl.create_tile([BLOCK, HIDDEN], dtype=pl.FP32)
    for row in pl.range(0, ROWS, BLOCK):
        rows = pl.min(BLOCK, ROWS - row)
        tile = pl.load(x, [row, 0], [BLOCK, HIDDEN], valid_shape=[rows, HIDDEN])
        squares = pl.row_sum(pl.mul(tile, tile), scratch)
        # A column holds one value a row; vector arithmetic wants them in one row.
        mean = pl.mul(pl.reshape(squares, [1, BLOCK]), 1.0 / HIDDEN)
        rms = pl.reshape(pl.sqrt(pl.add(mean, EPS)), [BLOCK, 1])
        y = pl.store(pl.col_expand_mul(pl.row_expand_div(tile, rms), weight), [row, 0], y)
    return y


def example() -> Example:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((ROWS, HIDDEN), dtype=np.float32)
    gamma = rng.standard_normal((1, HIDDEN), dtype=np.float32)
    expected = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * gamma
    return Example("rms_norm", rms_norm, [x, gamma, np.zeros_like(x)], expected, tolerance=1e-5)


if __name__ == "__main__":
    main(example())
