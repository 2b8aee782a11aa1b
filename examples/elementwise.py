"""An elementwise chain written on tensors: the compiler places the loads, the tiles and the store."""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

ROWS, COLS = 32, 128


@pl.function
def swish_scaled(
    x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Tensor[[ROWS, COLS], pl.FP32]
) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        gate = pl.recip(pl.add(pl.exp(pl.neg(x)), 1.0))
        out = pl.mul(pl.mul(x, gate), pl.maximum(y, 0.0))
    return out


def example() -> Example:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((ROWS, COLS), dtype=np.float32) for _ in range(2))
    expected = x / (1 + np.exp(-x)) * np.maximum(y, 0)
    return Example("elementwise", swish_scaled, [x, y], expected, tolerance=1e-6)


if __name__ == "__main__":
    main(example())
