import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def blocks(
    x: pl.Tensor[[16, 64], pl.FP32],
    offsets: pl.Tensor[[4, 8], pl.UINT32],
    out: pl.Out[pl.Tensor[[4, 64], pl.FP32]],
) -> pl.Tensor[[4, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 64])
    o = pl.load(offsets, [0, 0], [4, 8])
    return pl.store(pl.tile.gatherb(t, o), [0, 0], out)


x = np.arange(1024, dtype=np.float32).reshape(16, 64)
offsets = np.arange(32, dtype=np.uint32)[::-1].reshape(4, 8) * 32  # bytes: blocks of 32
out = np.zeros((4, 64), np.float32)
pl.compile(blocks)(x, np.ascontiguousarray(offsets), out)
assert (out.reshape(32, 8) == x.reshape(-1, 8)[:32][::-1]).all()
