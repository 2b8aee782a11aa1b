import numpy as np

import pypto.language as pl


@pl.function
def spread(
    x: pl.Tensor[[4, 1, 64], pl.FP32], out: pl.Out[pl.Tensor[[4, 16, 64], pl.FP32]]
) -> pl.Tensor[[4, 16, 64], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.tensor.expand_clone(x, out)
    return out


x, out = np.arange(256, dtype=np.float32).reshape(4, 1, 64), np.zeros((4, 16, 64), np.float32)
pl.compile(spread)(x, out)
assert (out == x).all()
