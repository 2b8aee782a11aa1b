import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def product(
    x: pl.Tensor[[2, 32, 64], pl.FP32],
    y: pl.Tensor[[2, 64, 32], pl.FP32],
    out: pl.Out[pl.Tensor[[2, 32, 32], pl.FP32]],
) -> pl.Tensor[[2, 32, 32], pl.FP32]:
    a = pl.load(x, [0, 0, 0], [2, 32, 64], target_memory=pl.Mem.Mat)
    b = pl.load(y, [0, 0, 0], [2, 64, 32], target_memory=pl.Mem.Mat)
    total = pl.tile.batch_matmul_acc(pl.tile.batch_matmul(a, b), a, b)
    return pl.store(total, [0, 0, 0], out)


x, y = np.ones((2, 32, 64), np.float32), np.ones((2, 64, 32), np.float32)
out = np.zeros((2, 32, 32), np.float32)
pl.compile(product)(x, y, out)
assert (out == 128).all()
