import numpy as np

import pypto.language as pl
from pypto.layouts import fix_pipe_words


@pl.function(type=pl.FunctionType.InCore)
def layers(
    x: pl.Tensor[[32, 128], pl.INT8],
    w: pl.Tensor[[128, 64], pl.INT8],
    v: pl.Tensor[[64, 32], pl.INT8],
    quant: pl.Tensor[[1, 64], pl.UINT64],
    hidden: pl.Out[pl.Tensor[[32, 64], pl.INT8]],
    upper: pl.Out[pl.Tensor[[16, 32], pl.INT32]],
    out: pl.Out[pl.Tensor[[32, 32], pl.INT32]],
) -> pl.Tensor[[32, 32], pl.INT32]:
    scale = pl.load(quant, [0, 0], [1, 64], target_memory=pl.Mem.Mat)
    second = pl.load(v, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
    acc = pl.tile.matmul(
        pl.load(x, [0, 0], [32, 128], target_memory=pl.Mem.Mat), pl.load(w, [0, 0], [128, 64], target_memory=pl.Mem.Mat)
    )
    hidden = pl.tile.store_fp(acc, scale, [0, 0], hidden)
    whole = pl.create_tile([32, 64], dtype=pl.INT8, target_memory=pl.Mem.Mat)
    whole = pl.tile.assemble_fp(whole, acc, scale, [0, 0])
    rows = pl.tile.extract_fp(acc, scale, 0, 0, [16, 64], dtype=pl.INT8)
    upper = pl.store(pl.tile.matmul(rows, second), [0, 0], upper)
    again = pl.tile.move_fp(acc, scale, dtype=pl.INT8)
    product = pl.tile.matmul_acc(pl.tile.matmul(whole, second), again, second)
    return pl.store(product, [0, 0], out)


rng = np.random.default_rng(0)
x, w, v = (rng.integers(-9, 10, shape).astype(np.int8) for shape in ((32, 128), (128, 64), (64, 32)))
scale, offset = np.exp2(rng.integers(-6, 0, 64)), rng.integers(-9, 10, 64)
hidden, upper, out = np.zeros((32, 64), np.int8), np.zeros((16, 32), np.int32), np.zeros((32, 32), np.int32)
pl.compile(layers)(x, w, v, fix_pipe_words(scale, offset), hidden, upper, out)
scaled = np.rint(np.clip((x.astype(int) @ w) * scale, -256, 255)) + offset
np.testing.assert_array_equal(hidden, np.clip(scaled, -128, 127))
np.testing.assert_array_equal(out, 2 * (hidden.astype(int) @ v))
np.testing.assert_array_equal(upper, hidden[:16].astype(int) @ v)
