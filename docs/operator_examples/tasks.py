import numpy as np

import pypto.language as pl


@pl.program
class Tasks:
    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 64])
        return pl.store(pl.tile.add(t, t), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        n: pl.Out[pl.Tensor[[3], pl.INT32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        mid = pl.create_tensor([16, 64], dtype=pl.FP32)
        with pl.manual_scope():
            mid, first = pl.submit(self.double, x, mid)
            barrier = pl.system.task_dummy(deps=[first])
            y, _ = pl.submit(self.double, mid, y, deps=[barrier])
        none = pl.system.task_invalid()
        pl.write(n, [0], pl.cast(pl.system.task_is_valid(none), pl.INT32))
        pl.write(n, [1], pl.system.available_cluster_count())
        pl.write(n, [2], pl.system.available_aiv_count())
        return y


x, y, n = np.ones((16, 64), np.float32), np.zeros((16, 64), np.float32), np.zeros(3, np.int32)
pl.compile(Tasks)(x, y, n)
assert (y == 4).all() and n.tolist() == [0, 24, 48]
