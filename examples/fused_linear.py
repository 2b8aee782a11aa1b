"""relu(x @ w + bias): a cube kernel and a vector kernel, launched one after the other by one function."""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

M, N, K = 64, 128, 256


@pl.function
def fused_linear(
    x: pl.Tensor[[M, K], pl.FP16], w: pl.Tensor[[K, N], pl.FP16], bias: pl.Tensor[[1, N], pl.FP32]
) -> pl.Tensor[[M, N], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="product"):
        product = pl.matmul(x, w, out_dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="bias_relu"):
        y = pl.maximum(pl.col_expand_add(product, bias), 0.0)
    return y


def example() -> Example:
    rng = np.random.default_rng(6)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    bias = rng.standard_normal((1, N), dtype=np.float32)
    expected = np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias, 0)
    return Example("fused_linear", fused_linear, [x, w, bias], expected, tolerance=1e-3)


if __name__ == "__main__":
    main(example())
