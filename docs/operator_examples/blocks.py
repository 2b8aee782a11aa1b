import numpy as np

import pypto.language as pl


@pl.program
class Blocks:
    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        rows = pl.tensor.dim(x, 0) // pl.tensor.get_block_num()
        at = pl.tensor.get_block_idx() * rows
        t = pl.load(x, [at, 0], [16, 64])
        return pl.store(pl.tile.add(t, t), [at, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        with pl.spmd(4):
            out = self.double(x, out)
        return out


x, out = np.ones((64, 64), np.float32), np.zeros((64, 64), np.float32)
pl.compile(Blocks)(x, out)
assert (out == 2).all()
