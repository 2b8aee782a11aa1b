"""A sum over the rows of four devices: each reads the others' rows from their windows, after all have filled theirs."""

import numpy as np

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.runtime import DistributedConfig
from pypto.tools.examples import Example, main

RANKS, N = 4, 256
P = pl.dynamic("P")


@pl.program
class AllReduce:
    @pl.function(type=pl.FunctionType.InCore)
    def add_up(
        self,
        x: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]],
        filled: pl.InOut[pld.DistributedTensor[[P, 1], pl.INT32]],
    ) -> pl.Tensor[[1, N], pl.FP32]:
        ctx = pld.get_comm_ctx(rows)
        me, ranks = pld.rank(ctx), pld.nranks(ctx)
        total = pl.load(x, [0, 0], [1, N])
        rows = pl.store(total, [0, 0], rows)
        for peer in pl.range(ranks):
            pld.system.notify(filled, peer, [me, 0], 1)
        for step in pl.range(1, ranks):
            peer = (me + step) % ranks
            pld.system.wait(filled, [peer, 0], 1, cmp=pld.WaitCmp.Ge)
            total = pl.add(total, pld.tile.remote_load(rows, peer, [0, 0], [1, N]))
        return pl.store(total, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def on_chip(
        self,
        x: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
        rows: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]],
        filled: pl.InOut[pld.DistributedTensor[[P, 1], pl.INT32]],
    ) -> pl.Tensor[[1, N], pl.FP32]:
        return self.add_up(x, y, rows, filled)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def allreduce(
        self, xs: pl.Tensor[[P, 1, N], pl.FP32], ys: pl.Out[pl.Tensor[[P, 1, N], pl.FP32]]
    ) -> pl.Tensor[[P, 1, N], pl.FP32]:
        rows_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        filled_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            rows = pld.window(rows_buf, [1, N], dtype=pl.FP32)
            filled = pld.window(filled_buf, [pld.world_size(), 1], dtype=pl.INT32)
            self.on_chip(xs[r], ys[r], rows, filled, device=r)
        return ys


def example() -> Example:
    xs = np.random.default_rng(9).integers(-99, 99, (RANKS, 1, N)).astype(np.float32)
    expected = np.broadcast_to(xs.sum(axis=0), xs.shape)
    devices = DistributedConfig(device_ids=list(range(RANKS)))
    return Example("allreduce", AllReduce, [xs, np.zeros_like(xs)], expected, options={"distributed_config": devices})


if __name__ == "__main__":
    main(example())
