import numpy as np

import pypto.language as pl


@pl.function
def sort(
    x: pl.Tensor[[1, 128], pl.FP32], index: pl.Tensor[[1, 128], pl.UINT32]
) -> pl.Tensor[[1, 256], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        result = pl.tensor.mrgsort_format1(pl.tensor.sort32(x, index), 64)
    return result


@pl.function
def merge(
    x: pl.Tensor[[1, 32], pl.FP32],
    y: pl.Tensor[[1, 32], pl.FP32],
    index: pl.Tensor[[1, 32], pl.UINT32],
) -> pl.Tensor[[1, 128], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        result = pl.tensor.mrgsort_format2(pl.tensor.sort32(x, index), pl.tensor.sort32(y, index))
    return result


x = np.random.default_rng(0).permutation(128).astype(np.float32)[None]
index = np.arange(128, dtype=np.uint32)[None]
found = np.asarray(pl.compile(sort)(x, index))
assert (found[0, ::2] == np.arange(127, -1, -1)).all()
found = np.asarray(pl.compile(merge)(x[:, :32], x[:, 32:64], index[:, :32]))
assert (found[0, ::2] == np.sort(x[0, :64])[::-1]).all()
