import numpy as np

import pypto.language as pl


@pl.function
def twice(
    x: pl.Tensor[[32, 64], pl.FP32], y: pl.Tensor[[64, 32], pl.FP32]
) -> pl.Tensor[[32, 32], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.tensor.matmul(x, y)
        acc = pl.tensor.matmul_acc(acc, x, y)
    return acc


x, y = np.ones((32, 64), np.float32), np.ones((64, 32), np.float32)
assert (np.asarray(pl.compile(twice)(x, y)) == 128).all()
