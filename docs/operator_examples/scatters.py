import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def scatters(
    x: pl.Tensor[[32, 64], pl.FP32],
    rows: pl.Tensor[[1, 8], pl.INT32],
    new: pl.Tensor[[8, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    spread: pl.Out[pl.Tensor[[8, 128], pl.FP32]],
) -> pl.Tensor[[32, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [32, 64])
    s = pl.load(new, [0, 0], [8, 64])
    i = pl.load(rows, [0, 0], [1, 8])
    out = pl.store(pl.tile.scatter_update(t, -2, i, s), [0, 0], out)
    wide = pl.tile.full([8, 128], dtype=pl.FP32, value=0.0)
    spread = pl.store(pl.tile.scatter_mask(wide, s, mask_pattern=pl.tile.MaskPattern.P1010), [0, 0], spread)
    return out


x, new = np.zeros((32, 64), np.float32), np.ones((8, 64), np.float32)
rows = np.arange(0, 32, 4, dtype=np.int32)[None]
out, spread = np.zeros((32, 64), np.float32), np.zeros((8, 128), np.float32)
pl.compile(scatters)(x, rows, new, out, spread)
assert (out[::4] == 1).all() and out.sum() == new.size
assert spread.sum() == new.size
