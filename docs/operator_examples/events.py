import numpy as np

import pypto.language as pl


@pl.program
class Events:
    @pl.function(type=pl.FunctionType.AIC)
    def cube(
        self,
        ffts: pl.Tensor[[256], pl.INT64],
        middle: pl.Tensor[[16, 16], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        pl.system.set_ffts(ffts)
        pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)
        left = pl.move(pl.load(middle, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        right = pl.move(pl.load(middle, [0, 0], [16, 16], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        y = pl.store(pl.matmul(left, right), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.AIV)
    def vector(
        self,
        ffts: pl.Tensor[[256], pl.INT64],
        x: pl.Tensor[[16, 16], pl.FP32],
        middle: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        pl.func_attr({"dual_aiv_dispatch": True})
        pl.system.set_ffts(ffts)
        lane = pl.tile.get_subblock_idx()
        half = pl.load(x, [lane * 8, 0], [8, 16])
        middle = pl.store(pl.add(half, half), [lane * 8, 0], middle)
        pl.system.sync_set(3, pipe=pl.PipeType.MTE3, ffts_mode=2)  # both lanes, to their cube
        return middle

    @pl.function(type=pl.FunctionType.Group)
    def both(
        self,
        ffts: pl.Tensor[[256], pl.INT64],
        x: pl.Tensor[[16, 16], pl.FP32],
        middle: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        y = self.cube(ffts, middle, y)
        self.vector(ffts, x, middle)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        ffts: pl.Tensor[[256], pl.INT64],
        x: pl.Tensor[[16, 16], pl.FP32],
        middle: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        y = self.both(ffts, x, middle, y)
        return y


x = np.eye(16, dtype=np.float32)
middle, y = np.zeros((2, 16, 16), np.float32)
pl.compile(Events)(np.zeros(256, np.int64), x, middle, y)
assert (y == 4 * x).all()
