import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def product(
    x: pl.Tensor[[1, 256], pl.FP16],
    y: pl.Tensor[[256, 64], pl.FP16],
    bias: pl.Tensor[[1, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[2, 64], pl.FP32]],
) -> pl.Tensor[[2, 64], pl.FP32]:
    a = pl.load(x, [0, 0], [1, 256], target_memory=pl.Mem.Mat)
    b = pl.load(y, [0, 0], [256, 64], target_memory=pl.Mem.Mat)
    c = pl.load(bias, [0, 0], [1, 64], target_memory=pl.Mem.Mat)
    twice = pl.tile.gemv_acc(pl.tile.gemv(a, b), a, b)
    out = pl.store(twice, [0, 0], out)
    return pl.store(pl.tile.gemv_bias(a, b, pl.move(c, target_memory=pl.Mem.Bias)), [1, 0], out)


x, y = np.ones((1, 256), np.float16), np.eye(256, 64, dtype=np.float16)
bias, out = np.full((1, 64), 3, np.float32), np.zeros((2, 64), np.float32)
pl.compile(product)(x, y, bias, out)
assert (out == [[2], [4]]).all()
