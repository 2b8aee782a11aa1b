"""Collectives that a host function launches, against numpy: every one, on several ranks, one after another."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.pto import PtoError
from pypto.runtime import RunConfig

R = np.random.default_rng(29)
N = 64
P = pl.dynamic("P")


@pl.jit.incore
def stage(x: pl.Tensor, data: pl.InOut[pld.DistributedTensor]):
    data = pl.store(pl.load(x, [0, 0], [x.shape[0], x.shape[1]]), [0, 0], data)
    return data


@pl.jit.incore
def fetch(data: pld.DistributedTensor, y: pl.Out[pl.Tensor]):
    y = pl.store(pl.load(data, [0, 0], [y.shape[0], y.shape[1]]), [0, 0], y)
    return y


@pl.jit
def fill(x: pl.Tensor, data: pl.InOut[pld.DistributedTensor]):
    return stage(x, data)


@pl.jit
def take(data: pld.DistributedTensor, y: pl.Out[pl.Tensor]):
    return fetch(data, y)


def run(program, ranks, *args):
    devices = DistributedConfig(device_ids=list(range(ranks)))
    program(*args, config=RunConfig(distributed_config=devices))


def given(ranks, rows, dtype=np.float32):
    return R.integers(-9, 9, (ranks, rows, N)).astype(dtype)


def summing(op, dtype=pl.FP32, cores=1):
    """Sums, maxima, .. of the ranks' rows, twice over, with a signal of the compiler's."""

    @pl.jit.host
    def reduced(xs: pl.Tensor[[P, 1, N], dtype], ys: pl.Out[pl.Tensor[[P, 1, N], dtype]]):
        buf = pld.alloc_window_buffer([1, N], dtype=dtype)
        data = pld.window(buf, [1, N], dtype=dtype)
        for r in pl.range(pld.world_size()):
            data = fill(xs[r], data, device=r)
        data = pld.tensor.allreduce(data, op=op, core_num=cores)
        data = pld.tensor.allreduce(data, op=op, core_num=cores)
        for r in pl.range(pld.world_size()):
            take(data, ys[r], device=r)

    return reduced


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(
    ("op", "combine"),
    [
        (pld.ReduceOp.Sum, np.add),
        (pld.ReduceOp.Max, np.maximum),
        (pld.ReduceOp.Min, np.minimum),
        (pld.ReduceOp.Prod, np.multiply),
    ],
)
def test_allreduce(op, combine, dtype):
    xs = R.integers(-3, 4, (3, 1, N)).astype(dtype)
    ys = np.zeros_like(xs)
    run(summing(op, pl.FP32 if dtype is np.float32 else pl.FP16), 3, xs, ys)
    once = combine.reduce(xs, axis=0)
    assert np.array_equal(ys, np.broadcast_to(combine.reduce([once] * 3), xs.shape))


@pytest.mark.parametrize("ranks", [1, 4])
def test_allreduce_on_several_cores_and_any_number_of_ranks(ranks):
    xs = given(ranks, 1)
    ys = np.zeros_like(xs)
    run(summing(pld.ReduceOp.Sum, cores=4), ranks, xs, ys)
    assert np.array_equal(ys, np.broadcast_to(ranks * xs.sum(axis=0), xs.shape))


@pl.jit.host
def ring_sum(xs: pl.Tensor[[4, 1, N], pl.FP32], ys: pl.Out[pl.Tensor[[4, 1, N], pl.FP32]]):
    buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
    counts = pld.alloc_window_buffer([7, 4], dtype=pl.INT32)
    data = pld.window(buf, [1, N], dtype=pl.FP32)
    signal = pld.window(counts, [7, 4], dtype=pl.INT32)
    for r in pl.range(4):
        data = fill(xs[r], data, device=r)
    data = pld.tensor.allreduce(data, signal, mode="ring")
    for r in pl.range(4):
        take(data, ys[r], device=r)


def test_allreduce_around_a_ring():
    xs = given(4, 1)
    ys = np.zeros_like(xs)
    run(ring_sum, 4, xs, ys)
    assert np.array_equal(ys, np.broadcast_to(xs.sum(axis=0), xs.shape))


@pl.jit.host
def broadcast(xs: pl.Tensor[[P, 1, N], pl.FP32], ys: pl.Out[pl.Tensor[[P, 1, N], pl.FP32]]):
    buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
    counts = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    data = pld.window(buf, [1, N], dtype=pl.FP32)
    signal = pld.window(counts, [pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = fill(xs[r], data, device=r)
    data = pld.tensor.broadcast(data, signal, root=2)
    signal = pld.tensor.barrier(signal)
    for r in pl.range(pld.world_size()):
        take(data, ys[r], device=r)


def test_broadcast_and_barrier_with_one_signal():
    xs = given(3, 1)
    ys = np.zeros_like(xs)
    run(broadcast, 3, xs, ys)
    assert np.array_equal(ys, np.broadcast_to(xs[2], xs.shape))


@pl.jit.host
def gather(xs: pl.Tensor[[3, 1, N], pl.FP32], ys: pl.Out[pl.Tensor[[3, 3, N], pl.FP32]]):
    mine_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
    all_buf = pld.alloc_window_buffer([3, N], dtype=pl.FP32)
    counts = pld.alloc_window_buffer([3], dtype=pl.INT32)
    mine = pld.window(mine_buf, [1, N], dtype=pl.FP32)
    every = pld.window(all_buf, [3, N], dtype=pl.FP32)
    signal = pld.window(counts, [3], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        mine = fill(xs[r], mine, device=r)
    every = pld.tensor.allgather(mine, every, signal)
    for r in pl.range(pld.world_size()):
        take(every, ys[r], device=r)


def test_allgather():
    xs = given(3, 1)
    ys = np.zeros((3, 3, N), np.float32)
    run(gather, 3, xs, ys)
    assert np.array_equal(ys, np.broadcast_to(xs[:, 0], ys.shape))


@pl.jit.host
def scatter(xs: pl.Tensor[[3, 3, N], pl.FP32], ys: pl.Out[pl.Tensor[[3, 3, N], pl.FP32]]):
    buf = pld.alloc_window_buffer([3, N], dtype=pl.FP32)
    counts = pld.alloc_window_buffer([3], dtype=pl.INT32)
    data = pld.window(buf, [3, N], dtype=pl.FP32)
    signal = pld.window(counts, [3], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = fill(xs[r], data, device=r)
    data = pld.tensor.reduce_scatter(data, signal)
    for r in pl.range(pld.world_size()):
        take(data, ys[r], device=r)


def test_reduce_scatter_leaves_each_rank_its_row():
    xs = given(3, 3)
    ys = np.zeros_like(xs)
    run(scatter, 3, xs, ys)
    assert np.array_equal(ys[range(3), range(3)], xs.sum(axis=0))


@pl.jit.host
def exchange(xs: pl.Tensor[[3, 3, N], pl.FP32], ys: pl.Out[pl.Tensor[[3, 3, N], pl.FP32]]):
    sent_buf = pld.alloc_window_buffer([3, N], dtype=pl.FP32)
    got_buf = pld.alloc_window_buffer([3, N], dtype=pl.FP32)
    counts = pld.alloc_window_buffer([3], dtype=pl.INT32)
    sent = pld.window(sent_buf, [3, N], dtype=pl.FP32)
    got = pld.window(got_buf, [3, N], dtype=pl.FP32)
    signal = pld.window(counts, [3], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        sent = fill(xs[r], sent, device=r)
    got = pld.tensor.all_to_all(sent, got, signal)
    for r in pl.range(pld.world_size()):
        take(got, ys[r], device=r)


def test_all_to_all():
    xs = given(3, 3)
    ys = np.zeros_like(xs)
    run(exchange, 3, xs, ys)
    assert np.array_equal(ys, xs.transpose(1, 0, 2))


@pl.jit.incore
def stage_counts(counts: pl.Tensor, window: pl.InOut[pld.DistributedTensor]):
    for i in pl.range(2):
        pl.write(window, [i, 0], pl.read(counts, [i, 0]))
    return window


@pl.jit
def fill_counts(counts: pl.Tensor, window: pl.InOut[pld.DistributedTensor]):
    return stage_counts(counts, window)


@pl.jit.incore
def fetch_counts(window: pld.DistributedTensor, counts: pl.Out[pl.Tensor]):
    for i in pl.range(2):
        pl.write(counts, [i, 0], pl.read(window, [i, 0]))
    return counts


@pl.jit
def take_counts(window: pld.DistributedTensor, counts: pl.Out[pl.Tensor]):
    return fetch_counts(window, counts)


@pl.jit.host
def exchange_some(
    xs: pl.Tensor[[2, 8, N], pl.FP32],
    counts: pl.Tensor[[2, 2, 1], pl.INT32],
    ys: pl.Out[pl.Tensor[[2, 8, N], pl.FP32]],
    received: pl.Out[pl.Tensor[[2, 2, 1], pl.INT32]],
):
    sent_buf = pld.alloc_window_buffer([8, N], dtype=pl.FP32)
    got_buf = pld.alloc_window_buffer([8, N], dtype=pl.FP32)
    counts_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    received_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    sent = pld.window(sent_buf, [8, N], dtype=pl.FP32)
    got = pld.window(got_buf, [8, N], dtype=pl.FP32)
    send_counts = pld.window(counts_buf, [2, 1], dtype=pl.INT32)
    recv_counts = pld.window(received_buf, [2, 1], dtype=pl.INT32)
    signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        sent = fill(xs[r], sent, device=r)
        send_counts = fill_counts(counts[r], send_counts, device=r)
    got = pld.tensor.all_to_all_v(sent, got, signal, send_counts, recv_counts)
    for r in pl.range(pld.world_size()):
        take(got, ys[r], device=r)
        take_counts(recv_counts, received[r], device=r)


def test_all_to_all_v_moves_blocks_and_says_how_many_rows_count():
    xs, counts = given(2, 8), np.array([[[1], [9]], [[0], [4]]], np.int32)
    ys, received = np.zeros_like(xs), np.zeros_like(counts)
    run(exchange_some, 2, xs, counts, ys, received)
    assert np.array_equal(ys.reshape(2, 2, 4, N), xs.reshape(2, 2, 4, N).transpose(1, 0, 2, 3))
    assert received[..., 0].tolist() == [[1, 0], [4, 4]]


@pl.jit.host
def alone(xs: pl.Tensor[[2, 1, N], pl.FP32]):
    buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
    stuck_buf = pld.alloc_window_buffer([1], dtype=pl.INT32)
    counts = pld.alloc_window_buffer([2], dtype=pl.INT32)
    data = pld.window(buf, [1, N], dtype=pl.FP32)
    stuck = pld.window(stuck_buf, [1], dtype=pl.INT32)
    signal = pld.window(counts, [2], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = fill(xs[r], data, device=r)
    stuck = wait_for_ever(stuck, device=1)
    stuck = wait_for_ever(stuck, device=1)
    data = pld.tensor.broadcast(data, signal, root=0)


@pl.jit.incore
def wait(stuck: pl.InOut[pld.DistributedTensor]):
    pld.system.wait(stuck, [0], 1, cmp=pld.WaitCmp.Ge)
    return stuck


@pl.jit
def wait_for_ever(stuck: pl.InOut[pld.DistributedTensor]):
    return wait(stuck)


def test_a_rank_that_never_comes_is_named():
    with pytest.raises(PtoError, match=r"rank 0, '.*broadcast', waits at .* for rank 1 to come to"):
        run(alone, 2, given(2, 1))
