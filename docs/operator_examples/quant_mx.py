import ml_dtypes
import numpy as np

import pypto.language as pl


@pl.function(type=pl.FunctionType.InCore)
def block_scaled(
    x: pl.Tensor[[64, 64], pl.FP32],
    scales: pl.Out[pl.Tensor[[2, 64], pl.UINT8]],
    out: pl.Out[pl.Tensor[[64, 64], pl.INT8]],
) -> pl.Tensor[[64, 64], pl.INT8]:
    exp = pl.create_tile([2, 64], dtype=pl.UINT8)
    most = pl.create_tile([2, 64], dtype=pl.FP32)
    factor = pl.create_tile([2, 64], dtype=pl.FP32)
    q = pl.tile.quant_mx(pl.load(x, [0, 0], [64, 64]), exp, most, factor, axis=0)
    scales = pl.store(exp, [0, 0], scales)
    return pl.store(q, [0, 0], out)


x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
scales, out = np.zeros((2, 64), np.uint8), np.zeros((64, 64), np.int8)
pl.compile(block_scaled, target="950")(x, scales, out)
factor = np.repeat(scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float32), 32, axis=0)
elements = out.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
np.testing.assert_allclose(elements * factor, x, rtol=2**-3, atol=factor.max() * 2.0**-9)
