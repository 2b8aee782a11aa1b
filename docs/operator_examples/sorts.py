import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def sort(
    x: pl.Tensor[[1, 128], pl.FP32],
    index: pl.Tensor[[1, 128], pl.UINT32],
    first: pl.Out[pl.Tensor[[1, 256], pl.FP32]],
    second: pl.Out[pl.Tensor[[1, 128], pl.FP32]],
) -> pl.Tensor[[1, 256], pl.FP32]:
    runs = pl.tile.sort32(pl.load(x, [0, 0], [1, 128]), pl.load(index, [0, 0], [1, 128]))
    first = pl.store(pl.tile.mrgsort_format1(runs, 64), [0, 0], first)  # four runs of 32 pairs
    a = pl.tile.sort32(pl.load(x, [0, 0], [1, 32]), pl.load(index, [0, 0], [1, 32]))
    b = pl.tile.sort32(pl.load(x, [0, 32], [1, 32]), pl.load(index, [0, 32], [1, 32]))
    tmp = pl.create_tile([1, 128], dtype=pl.FP32)
    second = pl.store(pl.tile.mrgsort_format2(a, b, tmp=tmp), [0, 0], second)
    return first


x = np.random.default_rng(0).permutation(128).astype(np.float32)[None]
index = np.arange(128, dtype=np.uint32)[None]
first, second = np.zeros((1, 256), np.float32), np.zeros((1, 128), np.float32)
pl.compile(sort)(x, index, first, second)
assert (first[0, ::2] == np.arange(127, -1, -1)).all()  # values, and between them their indices
assert (second[0, ::2] == np.sort(x[0, :64])[::-1]).all()
