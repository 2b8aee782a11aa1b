"""A 256 x 256 x 512 matrix product, f16 in, f32 out: blocks of the output, a loop over K that accumulates."""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

M, N, K = 256, 256, 512
TM, TN, TK = 128, 128, 64


@pl.function(type=pl.FunctionType.InCore)
def matmul(
    a: pl.Tensor[[M, K], pl.FP16],
    b: pl.Tensor[[K, N], pl.FP16],
    c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
) -> pl.Tensor[[M, N], pl.FP32]:
    for m in pl.range(0, M, TM):
        for n in pl.range(0, N, TN):
            left = pl.load(a, [m, 0], [TM, TK], target_memory=pl.Mem.Mat)
            right = pl.load(b, [0, n], [TK, TN], target_memory=pl.Mem.Mat)
            acc = pl.matmul(left, right)
            for k in pl.range(TK, K, TK):
                left_k = pl.load(a, [m, k], [TM, TK], target_memory=pl.Mem.Mat)
                right_k = pl.load(b, [k, n], [TK, TN], target_memory=pl.Mem.Mat)
                acc = pl.matmul_acc(acc, left_k, right_k)
            c = pl.store(acc, [m, n], c)
    return c


def example() -> Example:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    return Example("matmul", matmul, [a, b, np.zeros((M, N), np.float32)], expected, tolerance=1e-3)


if __name__ == "__main__":
    main(example())
