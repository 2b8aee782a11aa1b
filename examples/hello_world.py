"""The smallest kernel: add two tiles."""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

ROWS, COLS = 64, 64


@pl.function(type=pl.FunctionType.InCore)
def tile_add(
    a: pl.Tensor[[ROWS, COLS], pl.FP32],
    b: pl.Tensor[[ROWS, COLS], pl.FP32],
    c: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
    tile_a = pl.load(a, [0, 0], [ROWS, COLS])
    tile_b = pl.load(b, [0, 0], [ROWS, COLS])
    tile_c = pl.add(tile_a, tile_b)
    out = pl.store(tile_c, [0, 0], c)
    return out


def example() -> Example:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((ROWS, COLS), dtype=np.float32) for _ in range(2))
    return Example("hello_world", tile_add, [a, b, np.zeros_like(a)], a + b)


if __name__ == "__main__":
    main(example())
