"""Collectives on a core become signals, waits and transfers."""

from __future__ import annotations

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import backend, codegen, ir, passes
from pypto.ir.visitor import walk

from .checking import check, run, unchanged

LOWER = passes.lower_composite_ops


def calls(program: ir.Program, name: str) -> list[ir.Call]:
    return [n for f in program.functions.values() for n in walk(f) if isinstance(n, ir.Call) and n.op.name == name]


def test_a_barrier_counts_to_one_and_back():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def meet(self, signal: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]]):
            pld.tensor.barrier(signal)

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def meet(self, signal: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]]):
            ctx = pld.system.get_comm_ctx(signal)
            count = pl.cast(pld.system.nranks(ctx), pl.INDEX)
            mine = pl.cast(pld.system.rank(ctx), pl.INDEX)
            for p in pl.range(count):
                if p != mine:
                    pld.system.notify(signal, p, [mine, 0], 1, op=pld.NotifyOp.AtomicAdd)
            for p in pl.range(count):
                if p != mine:
                    pld.system.wait(signal, [p, 0], 1, cmp=pld.WaitCmp.Ge)
            for p in pl.range(count):
                if p != mine:
                    pld.system.notify(signal, mine, [p, 0], -1, op=pld.NotifyOp.AtomicAdd)

    check(Before, passes.flatten_call_expr()(Expected), LOWER)


def test_a_broadcast_reads_the_root_once_all_are_there():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def spread(
            self,
            data: pl.InOut[pld.DistributedTensor[[4, 32], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]],
        ) -> pld.DistributedTensor[[4, 32], pl.FP32]:
            return pld.tensor.broadcast(data, signal, root=1)

    after = run(Before, LOWER)
    (get,) = calls(after, "pld.tile.get")
    data = after.get_function("spread").params[0]
    assert get.args[0] is data and get.args[2] is data and get.args[1].value == 1
    assert get.args[3].type.shape == [4, 32]
    unchanged(after, LOWER)


def test_blocks_of_rows_are_announced_with_their_clamped_count():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def exchange(
            self,
            inp: pl.Tensor[[6, 64], pl.FP16],
            counts: pl.Tensor[[3], pl.INT32],
            data: pl.InOut[pld.DistributedTensor[[6, 64], pl.FP16]],
            signal: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]],
            received: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]],
        ):
            pld.tensor.all_to_all_v(inp, data, signal, counts, received)

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def exchange(
            self,
            inp: pl.Tensor[[6, 64], pl.FP16],
            counts: pl.Tensor[[3], pl.INT32],
            data: pl.InOut[pld.DistributedTensor[[6, 64], pl.FP16]],
            signal: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]],
            received: pl.InOut[pld.DistributedTensor[[3, 1], pl.INT32]],
        ):
            ctx = pld.system.get_comm_ctx(signal)
            count = pl.cast(pld.system.nranks(ctx), pl.INDEX)
            mine = pl.cast(pld.system.rank(ctx), pl.INDEX)
            stage = pl.tile.create([2, 64], dtype=pl.FP16, target_memory=pl.Mem.Vec)
            for p in pl.range(count):
                pld.tile.put(data, p, inp, stage, [mine * 2, 0], [p * 2, 0], [2, 64])
                rows = pl.tensor.read(counts, [p])
                sent = pl.min(pl.cast(rows, pl.INDEX), 2)
                pld.system.notify(received, p, [mine, 0], sent, op=pld.NotifyOp.Set)
            for p in pl.range(count):
                if p != mine:
                    pld.system.notify(signal, p, [mine, 0], 1, op=pld.NotifyOp.AtomicAdd)
            for p in pl.range(count):
                if p != mine:
                    pld.system.wait(signal, [p, 0], 1, cmp=pld.WaitCmp.Ge)
            for p in pl.range(count):
                if p != mine:
                    pld.system.notify(signal, mine, [p, 0], -1, op=pld.NotifyOp.AtomicAdd)

    check(Before, passes.flatten_call_expr()(Expected), LOWER)


def gather(source_type):
    source = "pl.load(inp, [0, 0], [1, 32])" if source_type == "tile" else "inp"
    return pl.parse_program(f"""
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class Gather:
    @pl.function(type=pl.FunctionType.InCore)
    def gather(self, inp: pl.Tensor[[1, 32], pl.FP32], data: pl.InOut[pld.DistributedTensor[[2, 32], pl.FP32]],
               signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):
        row = {source}
        pld.tensor.allgather(row, data, signal)
""")


@pytest.mark.parametrize("source, op", [("tensor", "pld.tile.put"), ("tile", "pld.tile.remote_store")])
def test_a_gathered_row_is_put_from_memory_and_stored_from_a_tile(source, op):
    after = run(gather(source), LOWER)
    assert len(calls(after, op)) == 1
    assert len(calls(after, "pld.tile.put")) + len(calls(after, "pld.tile.remote_store")) == 1


def reduce(target: str, signal: str, call: str) -> ir.Program:
    return pl.parse_program(f"""
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class Reduce:
    @pl.function(type=pl.FunctionType.InCore)
    def reduce(self, data: pl.InOut[pld.DistributedTensor[{target}]],
               signal: pl.InOut[pld.DistributedTensor[{signal}, pl.INT32]]):
        pld.tensor.{call}
""")


ALL = "allreduce(data, signal)"
RING = 'allreduce(data, signal, mode="ring")'
SCATTER = "reduce_scatter(data, signal)"


@pytest.mark.parametrize("call, signal", [(ALL, "[4, 1]"), (RING, "[6, 4]"), (SCATTER, "[4, 1]")])
@pytest.mark.parametrize("dtype, width", [("FP32", 4096), ("FP16", 8192)])
def test_no_tile_of_a_reduction_is_larger_than_a_piece(call, signal, dtype, width):
    after = run(reduce(f"[4, 100000], pl.{dtype}", signal, call), LOWER)
    loads = calls(after, "tile.load") + calls(after, "pld.tile.remote_load")
    assert loads and all(c.type.shape == [1, width] for c in loads)
    unchanged(after, LOWER)


@pytest.mark.parametrize("dtype, padded", [("FP32", False), ("FP16", True)])
def test_two_byte_elements_of_a_peer_are_read_in_whole_blocks(dtype, padded):
    after = run(reduce(f"[1, 50], pl.{dtype}", "[2, 1]", ALL), LOWER)
    (load,) = calls(after, "pld.tile.remote_load")
    assert load.kwargs.get("allow_physical_tail_padding", False) is padded


def test_a_short_row_is_scattered_in_one_piece_between_two_barriers():
    after = run(reduce("[4, 40], pl.FP32", "[4, 1]", SCATTER), LOWER)
    assert [w.args[2].value for w in calls(after, "pld.system.wait")] == [1, 2]
    assert calls(after, "pld.system.notify")[-1].args[3].value == -2
    (load,) = calls(after, "tile.load")
    assert load.args[2].elements == [1, 40]


def test_a_tail_of_a_partially_valid_row_is_stored_inside_it():
    valid = "pl.TensorView(valid_shape=[1, 40], stride=[], layout=pl.TensorLayout.ND)"
    after = run(reduce(f"[1, 64], pl.FP32, {valid}", "[2, 2]", RING), LOWER)
    assert all(c.type.valid_shape == [1, 40] for c in calls(after, "tile.store"))


@pytest.mark.parametrize("shape", ["[1, 1]", "[50, 1]"])
def test_a_row_is_a_row_however_the_window_is_shaped(shape):
    after = run(reduce(f"{shape}, pl.FP32", "[2, 1]", ALL), LOWER)
    (load,) = calls(after, "tile.load")
    assert load.args[0].type.shape[0] == 1 and load.args[0].type.tensor_view.stride


def test_the_peer_is_viewed_to_the_end_of_its_last_block():
    with passes.PassContext(target=backend.ASCEND910B):
        lowered = passes.run_pipeline(reduce("[1, 50], pl.FP16", "[2, 1]", ALL))
    text = codegen.generate_pto(lowered, backend.ASCEND910B)["reduce"]
    (peer,) = (line for line in text.split("\n") if "%data_peer_view = pto.make_tensor_view" in line)
    assert "shape = [%c1_index, %c64_index]" in peer and "strides = [%c50_index, %c1_index]" in peer


def test_a_collective_outside_a_core_is_refused_when_compiled():
    with pytest.raises(ValueError, match="pld.tensor.barrier needs a core") as error:

        @pl.program
        class Tasks:
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(self, signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):
                pld.tensor.barrier(signal)

        pl.compile(Tasks, skip_ptoas=True)
    assert "put pld.tensor.barrier(...) inside `with pl.at" in str(error.value)


STRIDED = "[2, 4, 8], pl.FP32, pl.TensorView(stride=[64, 8, 1], layout=pl.TensorLayout.ND)"
GAPS = "[2, 4, 8], pl.FP32, pl.TensorView(valid_shape=[2, 3, 8], stride=[], layout=pl.TensorLayout.ND)"
ROWS = "[2, 4, 8], pl.FP32, pl.TensorView(valid_shape=[1, 3, 4], stride=[], layout=pl.TensorLayout.ND)"
WIDE = "[2, 9000], pl.FP32, pl.TensorView(valid_shape=[1, 9000], stride=[], layout=pl.TensorLayout.ND)"


@pytest.mark.parametrize(
    "target, signal, call, message",
    [
        ("[4, 8], pl.FP32", "[4, 1]", "allreduce(data)", "requires an explicit signal outside host orchestrator"),
        ("[4, 8], pl.FP32", "[4, 1]", "allreduce(data, signal, core_num=2)", "only in a HOST orchestrator"),
        ("[4, 8], pl.FP32", "[4, 2]", ALL, r"signal shape\[1\] must be 1"),
        ("[4, 8], pl.FP32", "[4]", ALL, r"signal shape\[1\] must be 1"),
        ("[4, 8], pl.FP32", "[4, 4]", RING, r"signal \[2 \* \(ranks - 1\), ranks\]"),
        ("[4, 8], pl.FP32", "[6]", RING, r"signal \[2 \* \(ranks - 1\), ranks\]"),
        (STRIDED, "[4, 1]", ALL, "requires a packed source"),
        (STRIDED, "[6, 4]", RING, "requires a packed source"),
        (GAPS, "[4, 1]", ALL, "cannot be represented by a single 2D view"),
        (ROWS, "[6, 4]", RING, "contiguous row-major prefix"),
        (WIDE, "[4, 1]", ALL, "must fit within one 16384-byte mesh chunk"),
        ("[4, 2, 8], pl.FP32", "[4, 1]", SCATTER, r"needs a whole target \[ranks, n\]"),
        ("[4, 8], pl.FP32", "[4, 1]", "all_to_all(data, data, signal)", "cannot exchange a window with itself"),
        ("[4, 8], pl.FP32", "[4, 1]", "allgather(data, data, signal)", "gathers one row of each rank"),
    ],
)
def test_what_cannot_be_lowered_is_refused_at_its_line(target, signal, call, message):
    with pytest.raises(ValueError, match=message) as error:
        LOWER()(reduce(target, signal, call))
    assert call in str(error.value)


def test_collectives_of_the_host_are_left_alone():
    @pl.program
    class Host:
        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(
            self,
            data: pld.DistributedTensor[[2, 16], pl.FP32],
            signal: pld.DistributedTensor[[2, 1], pl.INT32],
        ):
            data = pld.tensor.allreduce(data, signal)
            pld.tensor.barrier(signal)
            return 0

    unchanged(Host, LOWER)


def test_whole_tiles_may_differ_in_padding_where_values_meet():
    """Padding says what cells outside the valid region hold, and a whole tile has none."""

    @pl.program
    class Meet:
        @pl.function(type=pl.FunctionType.InCore)
        def meet(
            self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INT64], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ):
            part = pl.load(x, [0, 0], [16, 16], [16, 10])
            total = pl.fillpad(part, pad_value=pl.PadValue.zero)
            for _, (kept,) in pl.range(n, init_values=(total,)):
                doubled = pl.add(kept, kept)
                result = pl.yield_(doubled)
            y = pl.store(result, [0, 0], y)

    run(Meet, passes.convert_to_ssa)
