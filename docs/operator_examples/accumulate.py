import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def product(
    x: pl.Tensor[[32, 128], pl.FP32],
    y: pl.Tensor[[128, 64], pl.FP32],
    bias: pl.Tensor[[1, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
) -> pl.Tensor[[32, 64], pl.FP32]:
    a = pl.load(x, [0, 0], [32, 128], target_memory=pl.Mem.Mat)
    b = pl.load(y, [0, 0], [128, 64], target_memory=pl.Mem.Mat)
    c = pl.move(pl.load(bias, [0, 0], [1, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
    left = pl.tile.extract(a, 0, 0, [32, 64], target_memory=pl.Mem.Left)
    right = pl.tile.extract(b, 0, 0, [64, 64], target_memory=pl.Mem.Right)
    acc = pl.tile.matmul_bias(left, right, c)
    left = pl.tile.extract(a, 0, 64, [32, 64], target_memory=pl.Mem.Left)
    right = pl.tile.extract(b, 64, 0, [64, 64], target_memory=pl.Mem.Right)
    acc = pl.tile.matmul_acc(acc, left, right)
    return pl.store(acc, [0, 0], out)


rng = np.random.default_rng(0)
x, y, bias = (rng.random(shape, np.float32) for shape in ((32, 128), (128, 64), (1, 64)))
out = np.zeros((32, 64), np.float32)
pl.compile(product)(x, y, bias, out)
np.testing.assert_allclose(out, x @ y + bias, rtol=1e-5)
