import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def scatter(
    x: pl.Tensor[[8, 32], pl.FP32],
    positions: pl.Tensor[[8, 32], pl.INT32],
    out: pl.Out[pl.Tensor[[20, 64], pl.FP32]],
) -> pl.Tensor[[20, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [8, 32])
    i = pl.load(positions, [0, 0], [8, 32])
    return pl.tile.mscatter(t, i, out)


x = np.arange(256, dtype=np.float32).reshape(8, 32)
positions = np.arange(256, dtype=np.int32).reshape(8, 32) * 4  # in elements of the whole tensor
out = np.zeros((20, 64), np.float32)
pl.compile(scatter)(x, positions, out)
assert (out.ravel()[:1024:4] == x.ravel()).all()
