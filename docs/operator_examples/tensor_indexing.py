import numpy as np

import pypto.language as pl


@pl.function
def update(
    x: pl.Tensor[[32, 64], pl.FP32], rows: pl.Tensor[[1, 8], pl.INT32], new: pl.Tensor[[8, 64], pl.FP32]
) -> pl.Tensor[[32, 64], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        result = pl.tensor.scatter_update(x, dim=-2, index=rows, src=new)
    return result


@pl.function
def spread(x: pl.Tensor[[16, 64], pl.FP32], old: pl.Tensor[[16, 128], pl.FP32]) -> pl.Tensor[[16, 128], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        result = pl.tensor.scatter_mask(x, dst=old, mask_pattern=2)
    return result


rows = np.arange(0, 32, 4, dtype=np.int32)[None]
found = np.asarray(pl.compile(update)(np.zeros((32, 64), np.float32), rows, np.ones((8, 64), np.float32)))
assert (found[::4] == 1).all() and found.sum() == 8 * 64
found = np.asarray(pl.compile(spread)(np.ones((16, 64), np.float32), np.zeros((16, 128), np.float32)))
assert (found[:, 1::2] == 1).all() and found.sum() == 16 * 64
