import numpy as np

import pypto.language as pl


@pl.program
class Meeting:
    @pl.function(type=pl.FunctionType.AIV)
    def reverse(
        self,
        x: pl.Tensor[[4, 16], pl.FP32],
        work: pl.Tensor[[16], pl.INT32],
        middle: pl.Out[pl.Tensor[[4, 16], pl.FP32]],
        y: pl.Out[pl.Tensor[[4, 16], pl.FP32]],
    ) -> pl.Tensor[[4, 16], pl.FP32]:
        i = pl.tile.get_block_idx()
        row = pl.load(x, [i, 0], [1, 16])
        middle = pl.store(pl.add(row, row), [i, 0], middle)
        pl.system.syncall(mode="soft", core_type="aiv_only", gm_workspace=work, used_cores=4)
        y = pl.store(pl.load(middle, [3 - i, 0], [1, 16]), [i, 0], y)  # another block's row
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[4, 16], pl.FP32],
        work: pl.Tensor[[16], pl.INT32],
        middle: pl.Out[pl.Tensor[[4, 16], pl.FP32]],
        y: pl.Out[pl.Tensor[[4, 16], pl.FP32]],
    ) -> pl.Tensor[[4, 16], pl.FP32]:
        with pl.spmd(4):
            y = self.reverse(x, work, middle, y)
        return y


x = np.arange(64, dtype=np.float32).reshape(4, 16)
middle, y = np.zeros((2, 4, 16), np.float32)
pl.compile(Meeting)(x, np.zeros(16, np.int32), middle, y)
assert (y == 2 * x[::-1]).all()
