import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def peaks(
    x: pl.Tensor[[16, 64], pl.FP32],
    columns: pl.Out[pl.Tensor[[16, 8], pl.INT32]],
    counts: pl.Out[pl.Tensor[[1, 16], pl.INT32]],
) -> tuple[pl.Tensor[[16, 8], pl.INT32], pl.Tensor[[1, 16], pl.INT32]]:
    t = pl.load(x, [0, 0], [16, 64])
    tmp = pl.create_tile([1, 8192], dtype=pl.UINT8)
    found, count = pl.tile.gather_compare(t, 0.5, tmp, cmp_mode="gt", out_cols=8)
    columns = pl.store(found, [0, 0], columns)
    counts = pl.store(count, [0, 0], counts)
    return columns, counts


x = np.zeros((16, 64), np.float32)
x[:, 3::8] = 1
columns, counts = np.zeros((16, 8), np.int32), np.zeros((1, 16), np.int32)
pl.compile(peaks)(x, columns, counts)
assert (columns == np.arange(3, 64, 8)).all() and (counts == 8).all()
