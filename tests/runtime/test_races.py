"""A sanitized run refuses what depends on who comes first: blocks, lanes, iterations and ranks."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.errors import KernelValueError
from pypto.pto.errors import PtoError

F32 = np.float32
TARGETS = ["Ascend910B", "Ascend950"]


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, F32)


def signal(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int32)


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=F32).reshape(shape)


def sanitized(program, target: str = "Ascend910B"):
    compiled = pl.compile(program, target=target, skip_ptoas=True)
    compiled.sanitize = True
    return compiled


def refused(run, *parts: str) -> PtoError:
    with pytest.raises(PtoError) as caught:
        run()
    assert all(part in str(caught.value) for part in parts), str(caught.value)
    assert caught.value.loc is not None
    return caught.value


# Blocks


def blocks(step: int):
    @pl.program
    class Blocks:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(
            self, x: pl.Tensor[[128, 64], pl.FP32], y: pl.Out[pl.Tensor[[128, 64], pl.FP32]]
        ) -> pl.Tensor[[128, 64], pl.FP32]:
            i = pl.tile.get_block_idx()
            y = pl.store(pl.load(x, [i * step, 0], [16, 64]), [i * step, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[128, 64], pl.FP32], y: pl.Out[pl.Tensor[[128, 64], pl.FP32]]
        ) -> pl.Tensor[[128, 64], pl.FP32]:
            with pl.spmd(4):
                y = self.copy(x, y)
            return y

    return Blocks


@pytest.mark.parametrize("target", TARGETS)
def test_blocks_that_write_overlapping_rows_race(target):
    error = refused(
        lambda: sanitized(blocks(15), target)(numbers(128, 64), zeros(128, 64)), "a race: block 1", "writes 64 elements"
    )
    assert str(error).count("test_races.py") >= 2


def test_blocks_with_rows_of_their_own_do_not_race():
    x, y = numbers(128, 64), zeros(128, 64)
    sanitized(blocks(16))(x, y)
    assert (y[:64] == x[:64]).all()


def test_interleaved_columns_of_blocks_do_not_race():
    @pl.program
    class Columns:
        @pl.function(type=pl.FunctionType.InCore)
        def copy(
            self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            i = pl.tile.get_block_idx()
            y = pl.store(pl.load(x, [0, i * 16], [16, 16]), [0, i * 16], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            with pl.spmd(4):
                y = self.copy(x, y)
            return y

    x, y = numbers(16, 64), zeros(16, 64)
    sanitized(Columns)(x, y)
    assert (y == x).all()


@pytest.mark.parametrize("atomic", [True, False])
def test_blocks_may_add_to_the_same_elements(atomic):
    kind = pl.AtomicType.Add if atomic else pl.AtomicType.None_

    @pl.program
    class Sum:
        @pl.function(type=pl.FunctionType.InCore)
        def add(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            i = pl.tile.get_block_idx()
            y = pl.store(pl.load(x, [i * 16, 0], [16, 64]), [0, 0], y, atomic=kind)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            with pl.spmd(4):
                y = self.add(x, y)
            return y

    x, y = numbers(64, 64), zeros(16, 64)
    if not atomic:
        refused(lambda: sanitized(Sum)(x, y), "a race")
        return
    sanitized(Sum)(x, y)
    assert (y == x.reshape(4, 16, 64).sum(axis=0)).all()


def test_a_block_that_reads_what_another_writes_races():
    @pl.program
    class Neighbour:
        @pl.function(type=pl.FunctionType.InCore)
        def shift(self, y: pl.InOut[pl.Tensor[[80, 64], pl.FP32]]) -> pl.Tensor[[80, 64], pl.FP32]:
            i = pl.tile.get_block_idx()
            y = pl.store(pl.load(y, [i * 16 + 16, 0], [16, 64]), [i * 16, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, y: pl.InOut[pl.Tensor[[80, 64], pl.FP32]]) -> pl.Tensor[[80, 64], pl.FP32]:
            with pl.spmd(4):
                y = self.shift(y)
            return y

    refused(lambda: sanitized(Neighbour)(numbers(80, 64)), "writes 1024 elements", "that block 0", "reads")


# Iterations


def iterations(step: int, loop):
    @pl.program
    class Iterations:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            for i in loop(4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.assemble(y, pl.mul(pl.slice(x, [16, 64], [i * step, 0]), 2.0), [i * step, 0])
            return y

    return Iterations


@pytest.mark.parametrize("step, loop, races", [(8, pl.parallel, True), (16, pl.parallel, False), (8, pl.range, False)])
def test_iterations_of_parallel_loops_race_where_they_overlap(step, loop, races):
    x, y = numbers(64, 64), zeros(64, 64)
    compiled = sanitized(iterations(step, loop))
    if races:
        refused(lambda: compiled(x, y), "iteration 1", "iteration 0")
    else:
        compiled(x, y)
        assert (y[: 3 * step + 16] == 2 * x[: 3 * step + 16]).all()


# Ranks


def ranks_of(kernel, ranks: int, *make) -> list[list[np.ndarray]]:
    args = [[m(r) for m in make] for r in range(ranks)]
    pl.compile(kernel, skip_ptoas=True).run_ranks(args, sanitize=True)
    return args


def shift(waits: bool, early: bool):
    if early:

        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            x: pl.Tensor[[16, 64], pl.FP32],
            inbox: pld.DistributedTensor[[16, 64], pl.FP32],
            arrived: pld.DistributedTensor[[1], pl.INT32],
            y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        ):
            ctx = pld.get_comm_ctx(inbox)
            following = (pld.rank(ctx) + 1) % pld.nranks(ctx)
            pld.system.notify(arrived, following, [0], 1)
            pld.remote_store(pl.load(x, [0, 0], [16, 64]), inbox, following, [0, 0])
            pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)
            pl.store(pl.load(inbox, [0, 0], [16, 64]), [0, 0], y)

        return kernel

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[16, 64], pl.FP32],
        inbox: pld.DistributedTensor[[16, 64], pl.FP32],
        arrived: pld.DistributedTensor[[1], pl.INT32],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        ctx = pld.get_comm_ctx(inbox)
        following = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        pld.remote_store(pl.load(x, [0, 0], [16, 64]), inbox, following, [0, 0])
        pld.system.notify(arrived, following, [0], 1)
        if waits:
            pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)
        pl.store(pl.load(inbox, [0, 0], [16, 64]), [0, 0], y)

    return kernel


@pytest.mark.parametrize("waits, early, races", [(True, False, False), (False, False, True), (True, True, True)])
def test_what_a_peer_stored_is_read_after_a_wait_for_what_it_notified_then(waits, early, races):
    def run():
        return ranks_of(
            shift(waits, early), 3,
            lambda r: np.full((16, 64), r, F32), lambda r: zeros(16, 64), lambda r: signal(1), lambda r: zeros(16, 64),
        )  # fmt: skip

    if races:
        refused(run, "a race: rank", "window 'inbox'")
    else:
        assert [args[3][0, 0] for args in run()] == [2, 0, 1]


@pytest.mark.parametrize("waits", [True, False])
def test_a_signal_is_read_after_a_wait_for_it(waits):
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(arrived: pld.DistributedTensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[1], pl.INT32]]):
        ctx = pld.get_comm_ctx(arrived)
        pld.system.notify(arrived, (pld.rank(ctx) + 1) % pld.nranks(ctx), [0], 7)
        if waits:
            pld.system.wait(arrived, [0], 7, cmp=pld.WaitCmp.Eq)
        pl.write(y, [0], pl.read(arrived, [0]))

    def run():
        return ranks_of(kernel, 2, lambda r: signal(1), lambda r: signal(1))

    if waits:
        assert [args[1].tolist() for args in run()] == [[7], [7]]
    else:
        refused(run, "a race: rank", "window 'arrived'")


def test_all_ranks_that_store_to_one_place_race():
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(x: pl.Tensor[[16, 64], pl.FP32], inbox: pld.DistributedTensor[[16, 64], pl.FP32]):
        pld.remote_store(pl.load(x, [0, 0], [16, 64]), inbox, 0, [0, 0])

    refused(
        lambda: ranks_of(kernel, 2, lambda r: numbers(16, 64), lambda r: zeros(16, 64)),
        "rank 1 writes 1024 elements", "rank 0 writes",
    )  # fmt: skip


def test_a_count_that_others_can_reach_orders_none_of_them():
    """Rank 0 waits for two of three: whichever they are, one may still be storing."""

    def program(count: int):
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            inbox: pld.DistributedTensor[[4, 64], pl.FP32],
            arrived: pld.DistributedTensor[[1], pl.INT32],
            x: pl.Tensor[[1, 64], pl.FP32],
            y: pl.Out[pl.Tensor[[4, 64], pl.FP32]],
        ):
            me = pld.rank(pld.get_comm_ctx(inbox))
            if me > 0:
                pld.remote_store(pl.load(x, [0, 0], [1, 64]), inbox, 0, [me, 0])
                pld.system.notify(arrived, 0, [0], 1)
            else:
                pld.system.wait(arrived, [0], count, cmp=pld.WaitCmp.Ge)
                pl.store(pl.load(inbox, [0, 0], [4, 64]), [0, 0], y)

        return kernel

    make = (lambda r: zeros(4, 64), lambda r: signal(1), lambda r: numbers(1, 64) + 100 * r, lambda r: zeros(4, 64))
    assert ranks_of(program(3), 4, *make)[0][3][3, 0] == 300
    refused(lambda: ranks_of(program(2), 4, *make), "a race: rank")


@pytest.mark.parametrize("barrier", [True, False])
def test_collectives_in_a_row_on_one_window_need_a_barrier_before_it_is_filled_again(barrier):
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[1, 64], pl.FP32],
        data: pld.DistributedTensor[[1, 64], pl.FP32],
        sync: pld.DistributedTensor[[3, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    ):
        pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)
        pld.tensor.broadcast(data, sync, root=0)
        if barrier:
            pld.tensor.barrier(sync)
        pl.store(pl.add(pl.load(data, [0, 0], [1, 64]), 1.0), [0, 0], data)
        pld.tensor.broadcast(data, sync, root=1)
        pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], y)

    def run():
        return ranks_of(
            kernel, 3,
            lambda r: np.full((1, 64), r, F32), lambda r: zeros(1, 64), lambda r: signal(3, 1), lambda r: zeros(1, 64),
        )  # fmt: skip

    if barrier:
        assert [args[3][0, 0] for args in run()] == [1, 1, 1]
    else:
        refused(run, "a race: rank", "window 'data'")


def test_counters_that_are_taken_back_order_the_next_round():
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[1, 64], pl.FP32],
        data: pld.DistributedTensor[[2, 64], pl.FP32],
        sync: pld.DistributedTensor[[2, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[2, 64], pl.FP32]],
    ):
        for _ in pl.range(3):
            pld.tensor.allgather(pl.load(x, [0, 0], [1, 64]), data, sync)
            pl.store(pl.load(data, [0, 0], [2, 64]), [0, 0], y)
            pld.tensor.barrier(sync)

    made = ranks_of(
        kernel, 2,
        lambda r: np.full((1, 64), r, F32), lambda r: zeros(2, 64), lambda r: signal(2, 1), lambda r: zeros(2, 64),
    )  # fmt: skip
    assert made[0][3][:, 0].tolist() == [0, 1]


# Memory that nothing has written


@pl.program
class Scratch:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        t = pl.create_tensor([32, 64], dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.assemble(t, pl.mul(pl.slice(x, [16, 64], [0, 0]), 2.0), [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.assemble(y, pl.add(pl.slice(t, [32, 64], [0, 0]), 1.0), [0, 0])
        return y


@pytest.mark.parametrize("target", TARGETS)
def test_what_nothing_wrote_in_a_created_tensor_is_poison_and_reported(target):
    x = numbers(32, 64)
    y = pl.compile(Scratch, target=target, skip_ptoas=True)(x)
    assert (y[:16] == 2 * x[:16] + 1).all() and np.isnan(y[16:]).all()
    refused(
        lambda: sanitized(Scratch, target)(x, zeros(32, 64)), "reads 1024 of 2048 elements of the tensor made at",
        "the first at [16, 0]", "pl.slice(t, [32, 64], [0, 0])",
    )  # fmt: skip


@pytest.mark.parametrize("dtype, poison", [(pl.FP32, "nan"), (pl.INT32, -1), (pl.UINT8, 255)])
def test_an_output_the_call_leaves_out_is_poison_where_nothing_writes_it(dtype, poison):
    @pl.program
    class Half:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[32, 64], dtype], y: pl.Out[pl.Tensor[[32, 64], dtype]]
        ) -> pl.Tensor[[32, 64], dtype]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y)
            return y

    x = np.ones((32, 64), dtype.numpy)
    y = pl.compile(Half, skip_ptoas=True)(x)
    assert (y[:16] == 1).all()
    assert np.isnan(y[16:]).all() if poison == "nan" else (y[16:] == poison).all()
    refused(lambda: sanitized(Half)(x), "returns 1024 of 2048 elements of 'y', which the call leaves out")
    given = np.zeros_like(x)
    sanitized(Half)(x, given)
    assert (given[:16] == 1).all()


# Arguments that share memory


@pl.program
class AddTo:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32],
        y: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:  # fmt: skip
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.assemble(y, pl.add(pl.slice(a, [32, 32], [0, 0]), pl.slice(b, [32, 32], [0, 0])), [0, 0])
        return y


@pytest.mark.parametrize(
    "view",
    [
        lambda a: (a[:32, :32], a[:32, :32]),
        lambda a: (a[:32, :32], a[:32, :32].T),
        lambda a: (a[:32, :32], a[31:63, :32]),
        lambda a: (a[::2, :32], a[32:, 32:]),
        lambda a: (np.asfortranarray(a)[:32, :32],) * 2,
    ],
    ids=["same", "transposed", "one row in common", "every second row", "Fortran order"],
)
def test_a_written_argument_that_shares_memory_with_another_is_refused_naming_both(view):
    a, y = view(numbers(64, 64))
    compiled = pl.compile(AddTo, skip_ptoas=True)
    if not np.shares_memory(a, y):
        compiled(a, a, y)
        return
    with pytest.raises(KernelValueError, match="arguments 'a' and 'y' share memory, and main writes y"):
        compiled(a, numbers(32, 32), y)


def test_inputs_may_share_memory_and_parts_of_one_array_are_apart():
    whole = numbers(64, 64)
    expected = whole[:32, :32] * 2
    pl.compile(AddTo, skip_ptoas=True)(whole[:32, :32], whole[:32, :32], whole[32:, :32])
    assert (whole[32:, :32] == expected).all()


def test_views_of_torch_tensors_are_refused_too():
    import torch

    whole = torch.zeros(64, 32)
    with pytest.raises(KernelValueError, match="arguments 'b' and 'y' share memory"):
        pl.compile(AddTo, skip_ptoas=True)(torch.ones(32, 32), whole[16:48], whole[32:])


def test_ranks_do_not_share_what_they_write():
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], y)

    x, y = numbers(16, 64), zeros(16, 64)
    with pytest.raises(KernelValueError, match="arguments 'y' of rank 0 and 'y' of rank 1 share memory"):
        pl.compile(kernel, skip_ptoas=True).run_ranks([[x, y], [x, y]])
