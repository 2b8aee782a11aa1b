"""Softmax over rows, several blocks of rows, the last one ragged."""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

ROWS, COLS, BLOCK = 100, 256, 32


@pl.function(type=pl.FunctionType.InCore)
def softmax(
    x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
    for row in pl.range(0, ROWS, BLOCK):
        rows = pl.min(BLOCK, ROWS - row)
        tile = pl.load(x, [row, 0], [BLOCK, COLS], valid_shape=[rows, COLS])
        scratch = pl.create_tile([BLOCK, COLS], dtype=pl.FP32)
        shifted = pl.row_expand_sub(tile, pl.row_max(tile, scratch))
        weights = pl.exp(shifted)
        y = pl.store(pl.row_expand_div(weights, pl.row_sum(weights, scratch)), [row, 0], y)
    return y


def example() -> Example:
    x = np.random.default_rng(2).standard_normal((ROWS, COLS), dtype=np.float32) * 4
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True)
    return Example("softmax", softmax, [x, np.zeros_like(x)], expected, tolerance=1e-6)


if __name__ == "__main__":
    main(example())
