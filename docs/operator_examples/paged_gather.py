import numpy as np

import pypto.language as pl


@pl.function
def rows_of_pages(
    pool: pl.Tensor[[64, 64], pl.FP32], rows: pl.Tensor[[1, 16], pl.INT32], table: pl.Tensor[[1, 8], pl.INT32]
) -> pl.Tensor[[16, 64], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        found = pl.tensor.paged_gather(
            pool, rows, table, block_size=8, size=64, max_indices=16, space=pl.Mem.Vec
        )
    return found


pool = np.arange(64, dtype=np.float32)[:, None] * np.ones((1, 64), np.float32)
rows = np.arange(0, 64, 4, dtype=np.int32)[None]
table = np.arange(7, -1, -1, dtype=np.int32)[None]  # logical page p is page 7 - p of the pool
found = np.asarray(pl.compile(rows_of_pages)(pool, rows, table))
assert (found[:, 0] == table[0, rows[0] // 8] * 8 + rows[0] % 8).all()
