import numpy as np

import pypto.language as pl


@pl.function
def product(
    x: pl.Tensor[[32, 64], pl.FP32], rows: pl.Tensor[[32, 64], pl.FP32]
) -> pl.Tensor[[32, 32], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        right = pl.tensor.create_l1([32, 64], dtype=pl.FP32)
        right = pl.tensor.gather_row(right, rows, [0, 0], [16, 0], [16, 64])
        right = pl.tensor.gather_row(right, rows, [16, 0], [0, 0], [16, 64])
        result = pl.tensor.matmul(x, right, b_trans=True)
    return result


x, rows = np.ones((32, 64), np.float32), np.arange(32, dtype=np.float32)[:, None] * np.ones((1, 64), np.float32)
found = np.asarray(pl.compile(product)(x, rows))
assert (found == 64 * np.roll(np.arange(32), 16)).all()
