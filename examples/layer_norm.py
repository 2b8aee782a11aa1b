"""Layer norm with scale and shift, over blocks of rows; how many rows there are is known when it runs."""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

HIDDEN, BLOCK, EPS = 128, 32, 1e-5
ROWS = pl.dynamic("ROWS")


@pl.function(type=pl.FunctionType.InCore)
def layer_norm(
    x: pl.Tensor[[ROWS, HIDDEN], pl.FP32],
    gamma: pl.Tensor[[1, HIDDEN], pl.FP32],
    beta: pl.Tensor[[1, HIDDEN], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, HIDDEN], pl.FP32]],
) -> pl.Tensor[[ROWS, HIDDEN], pl.FP32]:
    scale = pl.load(gamma, [0, 0], [1, HIDDEN])
    shift = pl.load(beta, [0, 0], [1, HIDDEN])
    scratch = pl.create_tile([BLOCK, HIDDEN], dtype=pl.FP32)
    total = pl.dim(x, 0)
    for row in pl.range(0, total, BLOCK):
        rows = pl.min(BLOCK, total - row)
        tile = pl.load(x, [row, 0], [BLOCK, HIDDEN], valid_shape=[rows, HIDDEN])
        mean = pl.mul(pl.reshape(pl.row_sum(tile, scratch), [1, BLOCK]), 1.0 / HIDDEN)
        centered = pl.row_expand_sub(tile, pl.reshape(mean, [BLOCK, 1]))
        squares = pl.row_sum(pl.mul(centered, centered), scratch)
        variance = pl.mul(pl.reshape(squares, [1, BLOCK]), 1.0 / HIDDEN)
        deviation = pl.reshape(pl.sqrt(pl.add(variance, EPS)), [BLOCK, 1])
        normal = pl.row_expand_div(centered, deviation)
        y = pl.store(pl.col_expand_add(pl.col_expand_mul(normal, scale), shift), [row, 0], y)
    return y


def example() -> Example:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((75, HIDDEN), dtype=np.float32)
    gamma, beta = (rng.standard_normal((1, HIDDEN), dtype=np.float32) for _ in range(2))
    centered = x - x.mean(axis=1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + EPS) * gamma + beta
    return Example("layer_norm", layer_norm, [x, gamma, beta, np.zeros_like(x)], expected, tolerance=1e-5)


if __name__ == "__main__":
    main(example())
