import numpy as np

import pypto.language as pl


@pl.function
def zeros(
    x: pl.Tensor[[16, 64], pl.INT32],
    columns: pl.Out[pl.Tensor[[16, 8], pl.INT32]],
    counts: pl.Out[pl.Tensor[[1, 16], pl.INT32]],
) -> tuple[pl.Tensor[[16, 8], pl.INT32], pl.Tensor[[1, 16], pl.INT32]]:
    with pl.at(level=pl.Level.CORE_GROUP):
        found, count = pl.tensor.gather_compare(x, 0, out_cols=8)
        columns = pl.assemble(columns, found, [0, 0])
        counts = pl.assemble(counts, count, [0, 0])
    return columns, counts


x = np.tile(np.arange(64, dtype=np.int32) % 8, (16, 1))
columns, counts = np.zeros((16, 8), np.int32), np.zeros((1, 16), np.int32)
pl.compile(zeros)(x, columns, counts)
assert (columns == np.arange(0, 64, 8)).all() and (counts == 8).all()
