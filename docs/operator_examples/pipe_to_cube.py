import numpy as np

import pypto.language as pl


@pl.program
class ToCube:
    @pl.function(type=pl.FunctionType.AIC)
    def cube(
        self, w: pl.Tensor[[32, 32], pl.FP16], y: pl.Out[pl.Tensor[[96, 32], pl.FP32]]
    ) -> pl.Tensor[[96, 32], pl.FP32]:
        here = pl.system.reserve_buffer(name="doubled", size=8192)
        pl.system.aic_initialize_pipe(dir_mask=2, slot_size=4096, slot_num=2, v2c_consumer_buf=here)
        right = pl.move(pl.load(w, [0, 0], [32, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        for i in pl.range(3):
            rows: pl.Tile[[32, 32], pl.FP16, pl.Mem.Mat] = pl.tile.tpop_from_aiv(split=1)
            left = pl.move(rows, target_memory=pl.Mem.Left)
            pl.system.tfree_to_aiv(rows)
            y = pl.store(pl.matmul(left, right), [i * 32, 0], y)
        return y

    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, x: pl.Tensor[[96, 32], pl.FP16]):
        there = pl.system.import_peer_buffer(name="doubled", peer_func="cube")
        pl.system.aiv_initialize_pipe(dir_mask=2, slot_size=4096, slot_num=2, v2c_consumer_buf=there)
        lane = pl.tile.get_subblock_idx()
        for i in pl.range(3):
            half = pl.load(x, [i * 32 + lane * 16, 0], [16, 32])
            pl.tile.tpush_to_aic(pl.add(half, half), split=1)

    @pl.function(type=pl.FunctionType.Group)
    def both(
        self,
        x: pl.Tensor[[96, 32], pl.FP16],
        w: pl.Tensor[[32, 32], pl.FP16],
        y: pl.Out[pl.Tensor[[96, 32], pl.FP32]],
    ) -> pl.Tensor[[96, 32], pl.FP32]:
        y = self.cube(w, y)
        self.vector(x)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[96, 32], pl.FP16],
        w: pl.Tensor[[32, 32], pl.FP16],
        y: pl.Out[pl.Tensor[[96, 32], pl.FP32]],
    ) -> pl.Tensor[[96, 32], pl.FP32]:
        y = self.both(x, w, y)
        return y


x, w, y = np.ones((96, 32), np.float16), np.eye(32, dtype=np.float16), np.zeros((96, 32), np.float32)
pl.compile(ToCube)(x, w, y)
assert (y == 2).all()
