import numpy as np

import pypto.language as pl


@pl.function
def to_lanes(
    x: pl.Tensor[[32, 32], pl.FP16], w: pl.Tensor[[32, 32], pl.FP16], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
) -> pl.Tensor[[32, 32], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        product = pl.matmul(x, w, out_dtype=pl.FP32)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.tensor.aiv_shard(product)
            y = pl.assemble(y, pl.add(half, half), [lane * 16, 0])
    return y


@pl.function
def from_lanes(
    x: pl.Tensor[[32, 32], pl.FP32], w: pl.Tensor[[32, 32], pl.FP32], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
) -> pl.Tensor[[32, 32], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.slice(x, [16, 32], [lane * 16, 0])
            whole = pl.tensor.aic_gather(pl.add(half, half))
        y = pl.assemble(y, pl.matmul(whole, w, out_dtype=pl.FP32), [0, 0])
    return y


for kernel, dtype in ((to_lanes, np.float16), (from_lanes, np.float32)):
    x, w, y = np.ones((32, 32), dtype), np.eye(32, dtype=dtype), np.zeros((32, 32), np.float32)
    pl.compile(kernel)(x, w, y)
    assert (y == 2).all()
