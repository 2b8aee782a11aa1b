"""Kernels on several ranks at once: what reaches a peer, who waits for whom, and what happens when nobody can go on."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld

R = np.random.default_rng(11)
N = pl.dynamic("N")


def arrays(ranks, *shape, dtype=np.float32):
    return [R.standard_normal(shape).astype(dtype) for _ in range(ranks)]


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def signal(*shape):
    return np.zeros(shape, np.int32)


@pl.function(type=pl.FunctionType.InCore)
def ring(
    x: pl.Tensor[[16, 64], pl.FP32],
    data: pld.DistributedTensor[[16, 64], pl.FP32],
    arrived: pld.DistributedTensor[[1], pl.INT32],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
):
    ctx = pld.get_comm_ctx(data)
    following = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tile.remote_store(pl.load(x, [0, 0], [16, 64]), data, following, [0, 0])
    pld.system.notify(arrived, following, [0], 1)
    pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)
    pl.store(pl.load(data, [0, 0], [16, 64]), [0, 0], out)


@pytest.mark.parametrize("order", [None, [2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_each_rank_gets_what_the_one_before_it_pushed(order, target):
    xs = arrays(3, 16, 64)
    args = [[x, zeros(16, 64), signal(1), zeros(16, 64)] for x in xs]
    pl.compile(ring, target=target, skip_ptoas=True).run_ranks(args, order)
    for rank, (_, data, arrived, out) in enumerate(args):
        assert np.array_equal(out, xs[rank - 1]) and np.array_equal(data, out)
        assert arrived.tolist() == [1]


def test_a_rank_may_be_alone():
    x, out = arrays(1, 16, 64)[0], zeros(16, 64)
    pl.compile(ring, skip_ptoas=True)(x, zeros(16, 64), signal(1), out)
    assert np.array_equal(out, x)


@pl.function(type=pl.FunctionType.InCore)
def reduce_all(
    data: pld.DistributedTensor[[16, 64], pl.FP32],
    arrived: pld.DistributedTensor[[8, 1], pl.INT32],
    out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
):
    ctx = pld.get_comm_ctx(data)
    me, ranks = pld.rank(ctx), pld.nranks(ctx)
    for peer in pl.range(ranks):
        if peer != me:
            pld.system.notify(arrived, peer, [me, 0], 1)
    for source in pl.range(ranks):
        if source != me:
            pld.system.wait(arrived, [source, 0], 1, cmp=pld.WaitCmp.Ge)
    total = pl.tile.full([16, 64], pl.FP32, 0.0)
    for peer in pl.range(ranks):
        total = pl.add(total, pld.tile.remote_load(data, peer, [0, 0], [16, 64]))
    pl.store(total, [0, 0], out)


@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_ranks_add_up_each_others_slices(ranks):
    xs = arrays(ranks, 16, 64)
    args = [[x.copy(), signal(8, 1), zeros(16, 64)] for x in xs]
    pl.compile(reduce_all, skip_ptoas=True).run_ranks(args)
    total = np.zeros((16, 64), np.float32)
    for x in xs:
        total = total + x
    for rank, (_, arrived, out) in enumerate(args):
        assert np.array_equal(out, total)
        assert arrived[:, 0].tolist() == [int(r < ranks and r != rank) for r in range(8)]


@pytest.mark.parametrize("op", [pld.NotifyOp.Set, pld.NotifyOp.AtomicAdd])
def test_signals_are_set_or_added_to_and_wrap(op):
    @pl.function(type=pl.FunctionType.InCore)
    def tell(cell: pld.DistributedTensor[[2, 4], pl.INT32], by: pl.Scalar[pl.INT32]):
        pld.system.notify(cell, 0, [1, 2], by, op=op)

    start = signal(2, 4)
    start[1, 2] = 2**31 - 1
    args = [[start, 5], [signal(2, 4), -7], [signal(2, 4), 3]]
    pl.compile(tell, skip_ptoas=True).run_ranks(args)
    expected = 3 if op is pld.NotifyOp.Set else 2**31 - 1 + 1 - 2**32
    assert start[1, 2] == expected and np.count_nonzero(start) == 1
    assert not args[1][0].any() and not args[2][0].any()


@pytest.mark.parametrize("dtype, numpy", [(pl.FP32, np.float32), (pl.FP16, np.float16), (pl.INT32, np.int32)])
def test_pushes_of_all_ranks_add_up_in_one(dtype, numpy):
    @pl.function(type=pl.FunctionType.InCore)
    def combine(x: pl.Tensor[[8, 16], dtype], data: pld.DistributedTensor[[2, 8, 32], dtype]):
        pld.tile.remote_store(pl.load(x, [0, 0], [8, 16]), data, 1, [1, 0, 16], atomic=pld.AtomicType.Add)

    xs = [R.integers(-9, 9, (8, 16)).astype(numpy) for _ in range(4)]
    args = [[x, zeros(2, 8, 32, dtype=numpy)] for x in xs]
    pl.compile(combine, skip_ptoas=True).run_ranks(args)
    assert np.array_equal(args[1][1][1, :, 16:], sum(xs)) and not args[1][1][0].any()
    assert not any(args[r][1].any() for r in (0, 2, 3))


def test_a_remote_load_reads_what_is_asked_of_a_ragged_slice():
    @pl.function(type=pl.FunctionType.InCore)
    def tail(data: pld.DistributedTensor[[3, 20], pl.FP32], out: pl.Out[pl.Tensor[[3, 20], pl.FP32]]):
        block = pld.tile.remote_load(data, 1, [1, 4], [2, 16], valid_shape=[2, 13])
        pl.store(block, [1, 4], out)

    own, other = arrays(2, 3, 20)
    out = zeros(3, 20)
    pl.compile(tail, skip_ptoas=True).run_ranks([[own, out], [other, zeros(3, 20)]])
    expected = zeros(3, 20)
    expected[1:, 4:17] = other[1:, 4:17]
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("pipeline", [False, True])
def test_bulk_transfers_move_all_of_a_slice_in_chunks(pipeline):
    @pl.function(type=pl.FunctionType.InCore)
    def swap(
        x: pl.Tensor[[10, 96], pl.FP16],
        data: pld.DistributedTensor[[10, 96], pl.FP16],
        arrived: pld.DistributedTensor[[1], pl.INT32],
        out: pl.Out[pl.Tensor[[10, 96], pl.FP16]],
    ):
        other = 1 - pld.rank(pld.get_comm_ctx(data))
        pld.tensor.put(data, other, x, chunk_rows=4, chunk_cols=64, pipeline=pipeline)
        pld.system.notify(arrived, other, [0], 1)
        pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Eq)
        pld.tensor.get(out, other, data, chunk_rows=4, chunk_cols=64, pipeline=pipeline)

    xs = arrays(2, 10, 96, dtype=np.float16)
    args = [[x, zeros(10, 96, dtype=np.float16), signal(1), zeros(10, 96, dtype=np.float16)] for x in xs]
    pl.compile(swap, skip_ptoas=True).run_ranks(args)
    for rank in range(2):
        assert np.array_equal(args[rank][1], xs[1 - rank]) and np.array_equal(args[rank][3], xs[rank])


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_part_of_a_slice_is_moved_and_added(rows):
    @pl.function(type=pl.FunctionType.InCore)
    def part(
        x: pl.Tensor[[8, 64], pl.FP32], data: pld.DistributedTensor[[16, 128], pl.FP32], n: pl.Scalar[pl.INT32]
    ):
        pld.tensor.put(
            data, 1, x, dst_offsets=[9, 64], src_offsets=[1, 0], shape=[n, 64], atomic=pld.AtomicType.Add,
            chunk_rows=4, chunk_cols=64,
        )  # fmt: skip

    xs, before = arrays(2, 8, 64), arrays(1, 16, 128)[0]
    data = before.copy()
    pl.compile(part, skip_ptoas=True).run_ranks([[xs[0], zeros(16, 128), rows], [xs[1], data, rows]])
    expected = before.copy()
    for x in xs:
        expected[9 : 9 + rows, 64:] += x[1 : 1 + rows]
    assert np.array_equal(data, expected)


def test_a_signal_can_be_asked_for_without_waiting():
    @pl.function(type=pl.FunctionType.InCore)
    def ask(cell: pld.DistributedTensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[2], pl.INT32]]):
        me = pld.rank(pld.get_comm_ctx(cell))
        if me == 0:
            asked: pl.Scalar[pl.INT32] = 0
            found: pl.Scalar[pl.BOOL] = pld.system.test(cell, [0], 4, cmp=pld.WaitCmp.Eq)
            pl.write(out, [0], pl.cast(found, pl.INT32))
            while not found:
                asked = asked + 1
                found = pld.system.test(cell, [0], 4, cmp=pld.WaitCmp.Eq)
            pl.write(out, [1], asked)
        else:
            pld.system.notify(cell, 0, [0], 4, op=pld.NotifyOp.Set)

    out = zeros(2, dtype=np.int32)
    pl.compile(ask, skip_ptoas=True).run_ranks([[signal(1), out], [signal(1), zeros(2, dtype=np.int32)]])
    assert out.tolist() == [0, 1]


def test_host_functions_pass_windows_to_kernels():
    @pl.program
    class Shift:
        @pl.function(type=pl.FunctionType.InCore)
        def push(
            self,
            x: pl.Tensor[[16, 64], pl.FP32],
            data: pld.DistributedTensor[[16, 64], pl.FP32],
            arrived: pld.DistributedTensor[[1], pl.INT32],
        ):
            ctx = pld.get_comm_ctx(data)
            following = (pld.rank(ctx) + 1) % pld.nranks(ctx)
            pld.tile.remote_store(pl.load(x, [0, 0], [16, 64]), data, following, [0, 0])
            pld.system.notify(arrived, following, [0], 1)

        @pl.function(type=pl.FunctionType.InCore)
        def take(
            self,
            data: pld.DistributedTensor[[16, 64], pl.FP32],
            arrived: pld.DistributedTensor[[1], pl.INT32],
            out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)
            return pl.store(pl.load(data, [0, 0], [16, 64]), [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[16, 64], pl.FP32],
            data: pld.DistributedTensor[[16, 64], pl.FP32],
            arrived: pld.DistributedTensor[[1], pl.INT32],
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            self.push(x, data, arrived)
            out = pl.create_tensor([16, 64], dtype=pl.FP32)
            out = self.take(data, arrived, out)
            return out

    xs = arrays(3, 16, 64)
    compiled = pl.compile(Shift, skip_ptoas=True)
    results = compiled.run_ranks([[x, zeros(16, 64), signal(1)] for x in xs], order=[2, 0, 1])
    assert all(np.array_equal(results[r], xs[r - 1]) for r in range(3))
    assert [name for name, _ in compiled.reports].count("take") == 3


def test_a_window_may_be_a_torch_tensor():
    torch = pytest.importorskip("torch")
    xs = [torch.randn(16, 64) for _ in range(2)]
    args = [[x, torch.zeros(16, 64), torch.zeros(1, dtype=torch.int32), torch.zeros(16, 64)] for x in xs]
    pl.compile(ring, skip_ptoas=True).run_ranks(args)
    assert torch.equal(args[0][1], xs[1]) and torch.equal(args[0][3], xs[1])


# What goes wrong


def test_ranks_that_wait_for_each_other_are_named_with_their_lines():
    @pl.function(type=pl.FunctionType.InCore)
    def stuck(cell: pld.DistributedTensor[[2], pl.INT32]):
        me = pld.rank(pld.get_comm_ctx(cell))
        pld.system.wait(cell, [me], 1, cmp=pld.WaitCmp.Ge)
        pld.system.notify(cell, 1 - me, [1 - me], 1)

    with pytest.raises(ValueError, match="nothing can go on: rank 0 waits at .*test_ranks.py:\\d+") as caught:
        pl.compile(stuck, skip_ptoas=True).run_ranks([[signal(2)], [signal(2)]])
    text = str(caught.value)
    assert "rank 1 waits at" in text and "window 'cell' >= 1, which is 0" in text
    assert "pld.system.wait(cell, [me], 1" in text


def test_asking_forever_is_noticed():
    @pl.function(type=pl.FunctionType.InCore)
    def ask(cell: pld.DistributedTensor[[1], pl.INT32]):
        found: pl.Scalar[pl.BOOL] = pld.system.test(cell, [0], 4, cmp=pld.WaitCmp.Eq)
        while not found:
            found = pld.system.test(cell, [0], 4, cmp=pld.WaitCmp.Eq)

    with pytest.raises(ValueError, match="rank 0 asks for what nothing will bring about"):
        pl.compile(ask, skip_ptoas=True).run_ranks([[signal(1)], [np.array([4], np.int32)]])


def test_a_peer_that_is_no_rank_is_found_at_its_line():
    @pl.function(type=pl.FunctionType.InCore)
    def wrong(cell: pld.DistributedTensor[[4], pl.INT32]):
        pld.system.notify(cell, 2, [0], 1)

    with pytest.raises(ValueError, match="window of window 'cell'[\\s\\S]*pld.system.notify") as caught:
        pl.compile(wrong, skip_ptoas=True).run_ranks([[signal(4)], [signal(4)]])
    assert "no rank of this run" in str(caught.value)


def test_slices_of_a_window_are_alike():
    @pl.function(type=pl.FunctionType.InCore)
    def tell(cell: pld.DistributedTensor[[N], pl.INT32]):
        pld.system.notify(cell, 0, [0], 1)

    compiled = pl.compile(tell, skip_ptoas=True)
    with pytest.raises(ValueError, match="slices of window 'cell' must have one shape"):
        compiled.run_ranks([[signal(4)], [signal(5)]])
    with pytest.raises(ValueError, match=r"order must name each of the ranks 0 to 1 once, got \[0, 0\]"):
        compiled.run_ranks([[signal(4)], [signal(4)]], order=[0, 0])


@pytest.mark.parametrize("extent", [3, 16, 20])
def test_a_remote_load_stops_where_a_slice_of_unknown_extent_ends(extent):
    @pl.function(type=pl.FunctionType.InCore)
    def head(data: pld.DistributedTensor[[1, N], pl.FP32], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]):
        pl.store(pld.tile.remote_load(data, 1, [0, 0], [1, 16]), [0, 0], out)

    (own, other), out = arrays(2, 1, extent), zeros(1, 16)
    pl.compile(head, skip_ptoas=True).run_ranks([[own, out], [other, zeros(1, 16)]])
    read = min(extent, 16)
    assert np.array_equal(out[:, :read], other[:, :read]) and not out[:, read:].any()
