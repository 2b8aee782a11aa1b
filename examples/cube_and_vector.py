"""gelu(x @ w + bias): the cube and both vector lanes of a core group work at once, tiles pass through a pipe.

The cube multiplies block after block of rows; while it is at the next, each lane has half of the rows of the last one.
"""

import numpy as np

import pypto.language as pl
from pypto.tools.examples import Example, main

M, N, K = 128, 64, 128
ROWS = 32
SLOT = ROWS * N * 4


@pl.program
class CubeAndVector:
    @pl.function(type=pl.FunctionType.AIC)
    def product(self, x: pl.Tensor[[M, K], pl.FP16], w: pl.Tensor[[K, N], pl.FP16]):
        there = pl.import_peer_buffer(name="products", peer_func="gelu")
        pl.aic_initialize_pipe(dir_mask=1, slot_size=SLOT, slot_num=2, c2v_consumer_buf=there)
        right = pl.move(pl.load(w, [0, 0], [K, N], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        for i in pl.range(M // ROWS):
            rows = pl.load(x, [i * ROWS, 0], [ROWS, K], target_memory=pl.Mem.Mat)
            block = pl.matmul(pl.move(rows, target_memory=pl.Mem.Left), right)
            pl.tpush_to_aiv(block, split=1)

    @pl.function(type=pl.FunctionType.AIV)
    def gelu(
        self, bias: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[M, N], pl.FP32]]
    ) -> pl.Tensor[[M, N], pl.FP32]:
        here = pl.reserve_buffer(name="products", size=2 * SLOT)
        pl.aiv_initialize_pipe(dir_mask=1, slot_size=SLOT, slot_num=2, c2v_consumer_buf=here)
        lane = pl.tile.get_subblock_idx()
        row = pl.load(bias, [0, 0], [1, N])
        for i in pl.range(M // ROWS):
            half: pl.Tile[[ROWS // 2, N], pl.FP32, pl.MemorySpace.Vec] = pl.tpop_from_aic(split=1)
            z = pl.col_expand_add(half, row)
            pl.tfree_to_aic(half)
            # z / (1 + exp(-1.702 z)), the sigmoid form of gelu
            y = pl.store(pl.div(z, pl.add(pl.exp(pl.mul(z, -1.702)), 1.0)), [i * ROWS + lane * (ROWS // 2), 0], y)
        return y

    @pl.function(type=pl.FunctionType.Group)
    def both(
        self,
        x: pl.Tensor[[M, K], pl.FP16],
        w: pl.Tensor[[K, N], pl.FP16],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        self.product(x, w)
        y = self.gelu(bias, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[M, K], pl.FP16],
        w: pl.Tensor[[K, N], pl.FP16],
        bias: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        y = self.both(x, w, bias, y)
        return y


def example() -> Example:
    rng = np.random.default_rng(8)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    bias = rng.standard_normal((1, N), dtype=np.float32)
    z = x.astype(np.float64) @ w.astype(np.float64) + bias
    return Example("cube_and_vector", CubeAndVector, [x, w, bias], z / (1 + np.exp(-1.702 * z)), tolerance=1e-3)


if __name__ == "__main__":
    main(example())
