import numpy as np

import pypto.language as pl


@pl.program
class ToVector:
    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, x: pl.Tensor[[48, 16], pl.FP16], w: pl.Tensor[[16, 32], pl.FP16]):
        there = pl.system.import_peer_buffer(name="products", peer_func="vector")
        pl.system.aic_initialize_pipe(dir_mask=1, slot_size=2048, slot_num=2, c2v_consumer_buf=there)
        right = pl.move(pl.load(w, [0, 0], [16, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        for i in pl.range(3):
            rows = pl.load(x, [i * 16, 0], [16, 16], target_memory=pl.Mem.Mat)
            pl.tile.tpush_to_aiv(pl.matmul(pl.move(rows, target_memory=pl.Mem.Left), right), split=1)

    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, y: pl.Out[pl.Tensor[[48, 32], pl.FP32]]) -> pl.Tensor[[48, 32], pl.FP32]:
        here = pl.system.reserve_buffer(name="products", size=4096)
        pl.system.aiv_initialize_pipe(dir_mask=1, slot_size=2048, slot_num=2, c2v_consumer_buf=here)
        lane = pl.tile.get_subblock_idx()
        for i in pl.range(3):
            half: pl.Tile[[8, 32], pl.FP32, pl.Mem.Vec] = pl.tile.tpop_from_aic(split=1)
            twice = pl.add(half, half)
            pl.system.tfree_to_aic(half)
            y = pl.store(twice, [i * 16 + lane * 8, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Group)
    def both(
        self,
        x: pl.Tensor[[48, 16], pl.FP16],
        w: pl.Tensor[[16, 32], pl.FP16],
        y: pl.Out[pl.Tensor[[48, 32], pl.FP32]],
    ) -> pl.Tensor[[48, 32], pl.FP32]:
        self.cube(x, w)
        y = self.vector(y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[48, 16], pl.FP16],
        w: pl.Tensor[[16, 32], pl.FP16],
        y: pl.Out[pl.Tensor[[48, 32], pl.FP32]],
    ) -> pl.Tensor[[48, 32], pl.FP32]:
        y = self.both(x, w, y)
        return y


x, w, y = np.ones((48, 16), np.float16), np.ones((16, 32), np.float16), np.zeros((48, 32), np.float32)
pl.compile(ToVector)(x, w, y)
assert (y == 32).all()
