import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def product(
    x: pl.Tensor[[32, 32], pl.FP32], y: pl.Tensor[[32, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
) -> pl.Tensor[[32, 32], pl.FP32]:
    a = pl.load(x, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
    b = pl.load(y, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
    c = pl.tile.matmul(a, b)
    pl.system.bar_m()
    return pl.store(c, [0, 0], out)


x, y = np.eye(32, dtype=np.float32), np.arange(1024, dtype=np.float32).reshape(32, 32)
out = np.zeros((32, 32), np.float32)
pl.compile(product)(x, y, out)
assert (out == y).all()
