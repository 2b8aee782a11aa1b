import numpy as np

import pypto.language as pl
from pypto.layouts import to_mx_a, to_mx_b


@pl.function(type=pl.FunctionType.InCore)
def product(
    x: pl.Tensor[[32, 128], pl.FP8E4M3FN],
    x_scale: pl.Tensor[[32, 4], pl.FP8E8M0, pl.MX_A_ZZ],
    w: pl.Tensor[[128, 64], pl.FP8E4M3FN],
    w_scale: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
    bias: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[2, 32, 64], pl.FP32]],
) -> pl.Tensor[[2, 32, 64], pl.FP32]:
    a = pl.move(pl.load(x, [0, 0], [32, 128], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
    b = pl.move(pl.load(w, [0, 0], [128, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
    a_s = pl.move(pl.load(x_scale, [0, 0], [32, 4], target_memory=pl.Mem.Mat), target_memory=pl.Mem.LeftScale)
    b_s = pl.move(pl.load(w_scale, [0, 0], [4, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.RightScale)
    acc = pl.tile.matmul_mx(a, a_s, b, b_s)
    y = pl.store(pl.tile.matmul_mx_acc(acc, a, a_s, b, b_s), [0, 0, 0], y)
    row = pl.move(pl.load(bias, [0, 0], [1, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
    return pl.store(pl.tile.matmul_mx_bias(a, a_s, b, b_s, row), [1, 0, 0], y)


x, w = np.ones((32, 128), pl.FP8E4M3FN.numpy), np.ones((128, 64), pl.FP8E4M3FN.numpy)
x_scale, w_scale = np.full((32, 4), 2, pl.FP8E8M0.numpy), np.ones((4, 64), pl.FP8E8M0.numpy)
bias, y = np.full((1, 64), 3, np.float32), np.zeros((2, 32, 64), np.float32)
pl.compile(product, target="Ascend950")(x, to_mx_a(x_scale), w, to_mx_b(w_scale), bias, y)
assert (y[0] == 512).all() and (y[1] == 259).all()
