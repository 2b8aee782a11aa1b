import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def product(
    x: pl.Tensor[[32, 64], pl.FP32], y: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
) -> pl.Tensor[[32, 32], pl.FP32]:
    a = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
    b = pl.load(y, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
    return pl.store(pl.tile.matmul(a, pl.tile.transpose_view(b)), [0, 0], out)


x, y = np.ones((32, 64), np.float32), np.arange(2048, dtype=np.float32).reshape(32, 64)
out = np.zeros((32, 32), np.float32)
pl.compile(product)(x, y, out)
np.testing.assert_allclose(out, x @ y.T)
