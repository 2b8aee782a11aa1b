"""What is written into a window is in memory before peers are told; what is read after waiting is fresh."""

from __future__ import annotations

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir, passes
from pypto.ir.visitor import walk

from .checking import check, run, unchanged

FENCE = passes.insert_comm_fence


def test_each_write_is_followed_by_what_makes_it_visible():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def send(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            win: pl.InOut[pld.DistributedTensor[[16, 16], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
            peer: pl.Scalar[pl.INT32],
            v: pl.Scalar[pl.FP32],
        ):
            stage = pl.tile.create([16, 16], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            tile = pl.load(x, [0, 0], [16, 16])
            own = pl.store(tile, [0, 0], win)
            pl.write(own, [0, 0], v)
            for _ in pl.range(2):
                pld.tile.remote_store(tile, own, peer, [0, 0])
            pld.tile.put(own, peer, x, stage)
            pld.tile.get(own, peer, own, stage)
            pld.system.notify(signal, peer, [0, 0], 1)

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def send(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            win: pl.InOut[pld.DistributedTensor[[16, 16], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
            peer: pl.Scalar[pl.INT32],
            v: pl.Scalar[pl.FP32],
        ):
            stage = pl.tile.create([16, 16], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            tile = pl.load(x, [0, 0], [16, 16])
            own = pl.store(tile, [0, 0], win)
            pl.system.cacheinvalid(win, [16, 16], [0, 0])
            pl.system.fence()
            pl.write(own, [0, 0], v)
            pl.system.cacheinvalid(own, [16, 16], [0, 0])
            pl.system.fence()
            for _ in pl.range(2):
                pld.tile.remote_store(tile, own, peer, [0, 0])
                pl.system.fence()
            pld.tile.put(own, peer, x, stage)
            pl.system.fence()
            pld.tile.get(own, peer, own, stage)
            pl.system.cacheinvalid(own, [16, 16], [0, 0])
            pl.system.fence()
            pld.system.notify(signal, peer, [0, 0], 1)

    check(Before, Expected, FENCE)


def test_after_a_wait_or_a_look_everything_is_read_anew():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def poll(self, signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]], out: pl.Tensor[[1], pl.INT32]):
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            there = pld.system.test(signal, [1, 0], 1, cmp=pld.WaitCmp.Eq)
            if there:
                n = pl.read(signal, [1, 0])
                pl.write(out, [0], n)

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def poll(self, signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]], out: pl.Tensor[[1], pl.INT32]):
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            pl.system.cacheinvalid()
            there = pld.system.test(signal, [1, 0], 1, cmp=pld.WaitCmp.Eq)
            pl.system.cacheinvalid()
            if there:
                n = pl.read(signal, [1, 0])
                pl.write(out, [0], n)

    check(Before, Expected, FENCE)


def test_another_function_may_have_written_anything():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def helper(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
            pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def tell(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
        ):
            self.helper(x, y)
            pld.system.notify(signal, 0, [0, 0], 1)

    after = run(Before, FENCE)
    tell = after.get_function("tell")
    assert [n.op.name for n in walk(tell) if isinstance(n, ir.Call)] == [
        "helper", "system.cacheinvalid", "system.fence", "pld.system.notify",
    ]  # fmt: skip
    unchanged(after, FENCE)


def test_what_no_peer_reads_is_left_alone():
    @pl.program
    class Plain:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
        ):
            t = pl.load(x, [0, 0], [16, 16])
            y = pl.store(t, [0, 0], y)
            pld.system.notify(signal, 0, [0, 0], 1)

    unchanged(Plain, FENCE)


def test_a_compiled_collective_has_its_fences():
    @pl.program
    class Gather:
        @pl.function(type=pl.FunctionType.InCore)
        def gather(
            self,
            row: pl.Tensor[[1, 64], pl.FP32],
            data: pl.InOut[pld.DistributedTensor[[2, 64], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
        ):
            pld.tensor.allgather(row, data, signal)

    lowered = passes.run_pipeline(Gather)
    names = [n.op.name for f in lowered.functions.values() for n in walk(f) if isinstance(n, ir.Call)]
    assert names[names.index("pld.tile.put") + 1] == "system.fence"
    assert names[names.index("pld.system.wait") + 1] == "system.cacheinvalid"
