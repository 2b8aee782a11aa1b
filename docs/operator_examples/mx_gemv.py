import numpy as np

import pypto.language as pl
from pypto.layouts import to_mx_a, to_mx_b


@pl.function(type=pl.FunctionType.InCore)
def product(
    x: pl.Tensor[[16, 128], pl.FP8E4M3FN],
    x_scale: pl.Tensor[[16, 4], pl.FP8E8M0, pl.MX_A_ZZ],
    w: pl.Tensor[[128, 64], pl.FP8E4M3FN],
    w_scale: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
    bias: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    z: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
) -> pl.Tensor[[16, 64], pl.FP32]:
    rows = pl.load(x, [0, 0], [16, 128], valid_shape=[1, 128], target_memory=pl.Mem.Mat)
    scales = pl.load(x_scale, [0, 0], [16, 4], valid_shape=[1, 4], target_memory=pl.Mem.Mat)
    a, a_s = pl.move(rows, target_memory=pl.Mem.Left), pl.move(scales, target_memory=pl.Mem.LeftScale)
    b = pl.move(pl.load(w, [0, 0], [128, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
    b_s = pl.move(pl.load(w_scale, [0, 0], [4, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.RightScale)
    acc = pl.tile.gemv_mx(a, a_s, b, b_s)
    y = pl.store(pl.tile.gemv_mx_acc(acc, a, a_s, b, b_s), [0, 0], y)
    row = pl.move(pl.load(bias, [0, 0], [1, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Bias)
    z = pl.store(pl.tile.gemv_mx_bias(a, a_s, b, b_s, row), [0, 0], z)
    return y


x, w = np.ones((16, 128), pl.FP8E4M3FN.numpy), np.ones((128, 64), pl.FP8E4M3FN.numpy)
x_scale, w_scale = np.full((16, 4), 2, pl.FP8E8M0.numpy), np.ones((4, 64), pl.FP8E8M0.numpy)
bias = np.full((1, 64), 3, np.float32)
y, z = np.zeros((2, 16, 64), np.float32)
pl.compile(product, target="Ascend950")(x, to_mx_a(x_scale), w, to_mx_b(w_scale), bias, y, z)
assert (y[0] == 512).all() and (z[0] == 259).all() and not y[1:].any()
