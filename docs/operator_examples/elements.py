import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def edit(
    x: pl.Tensor[[16, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ends: pl.Out[pl.Tensor[[1, 2], pl.FP32]],
) -> pl.Tensor[[16, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 64])
    pl.tile.write(t, [0, 1], pl.tile.read(t, [0, 2]))
    out = pl.tile.store(t, [0, 0], out)
    pl.tensor.write(ends, [0, 0], pl.tensor.read(x, [0, 0]))
    pl.tensor.write(ends, [0, 1], pl.tensor.read(x, [15, 63]))
    return out


x, out = np.arange(1024, dtype=np.float32).reshape(16, 64), np.zeros((16, 64), np.float32)
ends = np.zeros((1, 2), np.float32)
pl.compile(edit)(x, out, ends)
assert out[0, :4].tolist() == [0, 2, 2, 3] and ends.tolist() == [[0, 1023]]
