"""Collectives of kernels on several ranks at once, against what numpy makes of all their slices."""

from __future__ import annotations

import numpy as np
import pytest
from text_programs import kernel

import pypto.language as pl

R = np.random.default_rng(5)
TYPES = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32}


def program(params: str, body: str, target: str = "a2a3"):
    """A kernel that runs ``body``."""
    return pl.compile(kernel(params, body), target=target, skip_ptoas=True)


def window(name: str, shape: list[int], dtype: str = "FP32") -> str:
    return f"{name}: pl.InOut[pld.DistributedTensor[{shape}, pl.{dtype}]]"


def numbers(*shape: int, dtype: str = "FP32") -> np.ndarray:
    """Small whole numbers, whose sums and products are exact in any order."""
    return R.integers(-3, 4, shape).astype(TYPES[dtype])


def cells(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


COMBINED = {
    "Sum": lambda xs: np.sum(xs, axis=0, dtype=xs[0].dtype),
    "Max": lambda xs: np.max(xs, axis=0),
    "Min": lambda xs: np.min(xs, axis=0),
    "Prod": lambda xs: np.prod(xs, axis=0, dtype=xs[0].dtype),
}


def reduce(
    ranks: int, size: int, mode: str, op: str = "Sum", dtype: str = "FP32", calls: int = 1, target: str = "a2a3"
):
    """Each rank's slice before, and before and after ``calls`` allreduces; all signals are zero again."""
    shape = [ranks, 1] if mode == "mesh" else [2 * (ranks - 1), ranks]
    call = f'pld.tensor.allreduce(data, signal, op=pld.ReduceOp.{op}, mode="{mode}")'
    body = call if calls == 1 else f"for _ in pl.range({calls}):\n    {call}"
    kernel = program(f"{window('data', [1, size], dtype)}, {window('signal', shape, 'INT32')}", body, target)
    before = [numbers(1, size, dtype=dtype) for _ in range(ranks)]
    args = [[x.copy(), cells(*shape)] for x in before]
    kernel.run_ranks(args)
    assert not any(s.any() for _, s in args)
    return before, [data for data, _ in args]


@pytest.mark.parametrize("mode", ["mesh", "ring"])
@pytest.mark.parametrize(
    "op, dtype, target",
    [("Sum", "FP32", "a5"), ("Sum", "FP16", "a2a3"), ("Max", "FP32", "a2a3"), ("Min", "FP16", "a5"),
     ("Prod", "FP32", "a2a3")],
)  # fmt: skip
def test_every_rank_holds_the_combination_of_all(mode, op, dtype, target):
    before, after = reduce(3, 50, mode, op, dtype, target=target)
    expected = COMBINED[op](before)
    assert all(np.array_equal(data, expected) for data in after)


@pytest.mark.parametrize("mode", ["mesh", "ring"])
@pytest.mark.parametrize(
    "ranks, dtype, size", [(2, "FP32", 1), (4, "FP32", 17), (2, "FP32", 9001), (4, "FP16", 3), (2, "FP16", 16500)]
)
def test_rows_of_any_length_are_reduced_in_pieces(mode, ranks, dtype, size):
    before, after = reduce(ranks, size, mode, dtype=dtype)
    expected = COMBINED["Sum"](before)
    assert all(np.array_equal(data, expected) for data in after)


@pytest.mark.parametrize("mode", ["mesh", "ring"])
def test_a_signal_serves_every_round_of_a_loop(mode):
    before, after = reduce(3, 40, mode, calls=3)
    expected = COMBINED["Sum"](before) * 9
    assert all(np.array_equal(data, expected) for data in after)


@pytest.mark.parametrize("mode", ["mesh", "ring"])
def test_what_is_no_number_spreads_and_stays_in_its_place(mode):
    shape = [2, 1] if mode == "mesh" else [2, 2]
    kernel = program(
        f"{window('data', [1, 24])}, {window('signal', shape, 'INT32')}",
        f'pld.tensor.allreduce(data, signal, mode="{mode}")',
    )
    before = [numbers(1, 24), numbers(1, 24)]
    before[0][0, [1, 5]], before[1][0, [5, 9]] = [np.nan, np.inf], [-np.inf, np.inf]
    args = [[x.copy(), cells(*shape)] for x in before]
    kernel.run_ranks(args)
    with np.errstate(invalid="ignore"):
        expected = before[0] + before[1]
    assert all(np.array_equal(data, expected, equal_nan=True) for data, _ in args)


def test_only_the_valid_rectangle_of_a_window_is_reduced():
    view = "pl.TensorView(valid_shape=[1, 3, 8], stride=[], layout=pl.TensorLayout.ND)"
    kernel = program(
        f"data: pl.InOut[pld.DistributedTensor[[2, 4, 16], pl.FP32, {view}]], {window('signal', [3, 1], 'INT32')}",
        "pld.tensor.allreduce(data, signal)",
    )
    before = [numbers(2, 4, 16) for _ in range(3)]
    args = [[x.copy(), cells(3, 1)] for x in before]
    kernel.run_ranks(args)
    for x, (data, _) in zip(before, args):
        expected = x.copy()
        expected[0, :3, :8] = sum(b[0, :3, :8] for b in before)
        assert np.array_equal(data, expected)


def test_only_the_valid_start_of_a_window_goes_around_the_ring():
    view = "pl.TensorView(valid_shape=[1, 3, 8], stride=[], layout=pl.TensorLayout.ND)"
    kernel = program(
        f"data: pl.InOut[pld.DistributedTensor[[2, 4, 8], pl.FP32, {view}]], {window('signal', [4, 3], 'INT32')}",
        'pld.tensor.allreduce(data, signal, mode="ring")',
    )
    before = [numbers(2, 4, 8) for _ in range(3)]
    args = [[x.copy(), cells(4, 3)] for x in before]
    kernel.run_ranks(args)
    for x, (data, _) in zip(before, args):
        expected = x.copy()
        expected[0, :3] = sum(b[0, :3] for b in before)
        assert np.array_equal(data, expected)


@pytest.mark.parametrize("ranks, size", [(3, 17), (2, 5000)])
def test_each_rank_keeps_its_row_of_the_sum(ranks, size):
    kernel = program(
        f"{window('data', [ranks, size])}, {window('signal', [ranks, 1], 'INT32')}",
        "pld.tensor.reduce_scatter(data, signal)",
    )
    before = [numbers(ranks, size) for _ in range(ranks)]
    args = [[x.copy(), cells(ranks, 1)] for x in before]
    kernel.run_ranks(args)
    for rank, (data, signal) in enumerate(args):
        expected = before[rank].copy()
        expected[rank] = sum(b[rank] for b in before)
        assert np.array_equal(data, expected) and not signal.any()


@pytest.mark.parametrize("root", [0, 2])
@pytest.mark.parametrize("shape", [[2, 5, 48], [3, 9000]])
def test_a_broadcast_is_the_slice_of_its_root(root, shape):
    kernel = program(
        f"{window('data', shape)}, {window('signal', [3, 1], 'INT32')}",
        f"pld.tensor.broadcast(data, signal, root={root})",
    )
    before = [numbers(*shape) for _ in range(3)]
    args = [[x.copy(), cells(3, 1)] for x in before]
    kernel.run_ranks(args)
    assert all(np.array_equal(data, before[root]) and not signal.any() for data, signal in args)


@pytest.mark.parametrize("source", ["inp", "pl.load(inp, [0, 0], [1, 40])"])
def test_rows_are_gathered_from_memory_and_from_tiles(source):
    kernel = program(
        f"inp: pl.Tensor[[1, 40], pl.FP32], {window('data', [4, 40])}, {window('signal', [4, 1], 'INT32')}",
        f"row = {source}\npld.tensor.allgather(row, data, signal)",
    )
    rows = [numbers(1, 40) for _ in range(4)]
    args = [[x, np.zeros((4, 40), np.float32), cells(4, 1)] for x in rows]
    kernel.run_ranks(args)
    assert all(np.array_equal(data, np.concatenate(rows)) and not signal.any() for _, data, signal in args)


@pytest.mark.parametrize("dtype, size", [("FP32", 40), ("FP16", 9000)])
def test_row_d_goes_to_rank_d(dtype, size):
    kernel = program(
        f"inp: pl.Tensor[[3, {size}], pl.{dtype}], {window('data', [3, size], dtype)}, "
        f"{window('signal', [3, 1], 'INT32')}",
        "pld.tensor.all_to_all(inp, data, signal)",
    )
    sent = [numbers(3, size, dtype=dtype) for _ in range(3)]
    args = [[x, np.zeros((3, size), TYPES[dtype]), cells(3, 1)] for x in sent]
    kernel.run_ranks(args)
    for rank, (_, data, signal) in enumerate(args):
        assert np.array_equal(data, np.stack([x[rank] for x in sent])) and not signal.any()


def test_blocks_go_with_their_counts_which_never_exceed_them():
    kernel = program(
        f"inp: pl.Tensor[[6, 16], pl.FP32], counts: pl.Tensor[[3], pl.INT32], {window('data', [6, 16])}, "
        f"{window('signal', [3, 1], 'INT32')}, {window('got', [3, 1], 'INT32')}",
        "pld.tensor.all_to_all_v(inp, data, signal, counts, got)",
    )
    sent = [numbers(6, 16) for _ in range(3)]
    counts = [np.array(c, np.int32) for c in ([1, 2, 0], [2, 5, 1], [0, 0, 2])]
    args = [[x, n, np.zeros((6, 16), np.float32), cells(3, 1), cells(3, 1)] for x, n in zip(sent, counts)]
    kernel.run_ranks(args)
    for rank, (_, _, data, signal, got) in enumerate(args):
        assert got[:, 0].tolist() == [min(int(n[rank]), 2) for n in counts]
        assert np.array_equal(data, np.concatenate([x[2 * rank : 2 * rank + 2] for x in sent])) and not signal.any()


def test_a_barrier_separates_what_was_written_from_what_is_read():
    kernel = program(
        f"x: pl.Tensor[[8, 16], pl.FP32], {window('data', [8, 16])}, {window('signal', [3, 1], 'INT32')}, "
        "out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]",
        """
data = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], data)
pld.tensor.barrier(signal)
ctx = pld.system.get_comm_ctx(data)
last = pld.system.nranks(ctx) - 1 - pld.system.rank(ctx)
theirs = pld.tile.remote_load(data, last, [0, 0], [8, 16])
pl.store(theirs, [0, 0], out)
""",
    )
    xs = [numbers(8, 16) for _ in range(3)]
    for order in ([0, 1, 2], [2, 1, 0]):
        args = [[x, np.zeros_like(x), cells(3, 1), np.zeros_like(x)] for x in xs]
        kernel.run_ranks(args, order)
        assert all(np.array_equal(a[3], xs[2 - rank]) and not a[2].any() for rank, a in enumerate(args))


def test_a_collective_that_no_core_runs_is_refused_with_the_form_that_works():
    text = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class Tasks:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, data: pl.InOut[pld.DistributedTensor[[2, 16], pl.FP32]],
             signal: pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]):
        CALL
"""
    with pytest.raises(ValueError, match="pld.tensor.allreduce needs a core") as error:
        pl.compile(pl.parse_program(text.replace("CALL", "pld.tensor.allreduce(data, signal)")), skip_ptoas=True)
    assert "pl.at(level=pl.Level.CORE_GROUP)" in str(error.value)
    on_core = "with pl.at(level=pl.Level.CORE_GROUP):\n            pld.tensor.allreduce(data, signal)"
    compiled = pl.compile(pl.parse_program(text.replace("CALL", on_core)), skip_ptoas=True)
    args = [[numbers(2, 16), cells(2, 1)] for _ in range(2)]
    total = args[0][0] + args[1][0]
    compiled.run_ranks(args)
    assert all(np.array_equal(data, total) for data, _ in args)
