"""Programs of several devices, called as one: launches side by side, windows, collectives, memory of the caller."""

import re

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.pto import PtoError
from pypto.runtime import CompiledProgram, RunConfig

R = np.random.default_rng(23)
P = pl.dynamic("P")
N = 64


def compiled(program, ranks, **options):
    devices = DistributedConfig(device_ids=list(range(ranks)))
    return ir.compile(program, skip_ptoas=True, distributed_config=devices, **options)


def rows(ranks, *shape):
    return R.standard_normal((ranks, *shape)).astype(np.float32), np.zeros((ranks, *shape), np.float32)


@pl.program
class Shift:
    """Each rank gives its row to the next."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
        inbox: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    ) -> pl.Tensor[[1, N], pl.FP32]:
        ctx = pld.get_comm_ctx(inbox)
        following = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        pld.tile.remote_store(pl.load(x, [0, 0], [1, N]), inbox, following, [0, 0])
        pld.system.notify(arrived, following, [0], 1)
        pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)
        return pl.store(pl.load(inbox, [0, 0], [1, N]), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
        inbox: pl.InOut[pld.DistributedTensor[[1, N], pl.FP32]],
        arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
    ) -> pl.Tensor[[1, N], pl.FP32]:
        return self.kernel(x, y, inbox, arrived)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, xs: pl.Tensor[[P, 1, N], pl.FP32], ys: pl.Out[pl.Tensor[[P, 1, N], pl.FP32]]):
        inbox_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        arrived_buf = pld.alloc_window_buffer([1], dtype=pl.INT32)
        inbox = pld.window(inbox_buf, [1, N], dtype=pl.FP32)
        arrived = pld.window(arrived_buf, [1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.chip(xs[r], ys[r], inbox, arrived, device=r)


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_each_device_runs_its_launch_beside_the_others(ranks, platform):
    program = compiled(Shift, ranks, platform=platform)
    for _ in range(2):
        xs, ys = rows(ranks, 1, N)
        program(xs, ys)
        assert np.array_equal(ys, np.roll(xs, 1, axis=0))
    assert [name for name, _ in program.reports] == ["kernel"] * ranks


def test_the_devices_are_kept_with_the_program(tmp_path):
    compiled(Shift, 3, output_dir=tmp_path)
    again = CompiledProgram.from_dir(tmp_path)
    assert again.distributed_config == DistributedConfig(device_ids=[0, 1, 2])
    xs, ys = rows(3, 1, N)
    again(xs, ys)
    assert np.array_equal(ys, np.roll(xs, 1, axis=0))


def test_a_config_of_a_call_is_for_the_same_devices():
    program = compiled(Shift, 2)
    xs, ys = rows(2, 1, N)
    program(xs, ys, config=RunConfig(distributed_config=DistributedConfig(device_ids=[0, 1])))
    assert np.array_equal(ys, np.roll(xs, 1, axis=0))
    with pytest.raises(ValueError, match="compiled for DistributedConfig"):
        program(xs, ys, config=RunConfig(distributed_config=DistributedConfig(device_ids=[0])))


def test_a_host_function_is_called_once_for_all_ranks():
    with pytest.raises(ValueError, match="main is a host function: call the program once"):
        compiled(Shift, 2).run_ranks([rows(2, 1, N), rows(2, 1, N)])


def test_two_ranks_too_few_wait_for_what_nobody_sends():
    @pl.program
    class Lonely:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]]):
            pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]]):
            self.kernel(arrived)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self):
            buf = pld.alloc_window_buffer([1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                self.chip(pld.window(buf, [1], dtype=pl.INT32), device=r)

    with pytest.raises(PtoError, match=r"(?s)rank 0, .*waits at .*rank 1, .*waits at "):
        compiled(Lonely, 2)()


# Order of launches


@pl.program
class Chain:
    """Device 0 doubles the row, then device 1 what device 0 wrote; the host reads an element of that."""

    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]
    ) -> pl.Tensor[[1, N], pl.FP32]:
        t = pl.load(x, [0, 0], [1, N])
        return pl.store(pl.add(t, t), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]) -> pl.Tensor[[1, N], pl.FP32]:
        return self.double(x, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(
        self,
        x: pl.Tensor[[1, N], pl.FP32],
        half: pl.Out[pl.Tensor[[1, N], pl.FP32]],
        y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
    ) -> pl.Tensor[[1, N], pl.FP32]:
        half = self.chip(x, half, device=0)
        y = self.chip(half, y, device=1)
        if pl.read(y, [0, 0]) < 10.0:
            y = self.chip(half, y, device=0)
        else:
            y = self.chip(x, y, device=0)
        return y


@pytest.mark.parametrize(("first", "factor"), [(1.0, 4), (5.0, 2)])
def test_launches_take_data_from_those_before_them_and_so_does_the_host(first, factor):
    x = np.full((1, N), first, np.float32)
    half, y = np.zeros_like(x), np.zeros_like(x)
    made = compiled(Chain, 2)(x, half, y)
    assert np.array_equal(half, 2 * x) and np.array_equal(y, factor * x)
    assert made is y


def test_columns_of_one_array_are_not_the_same_memory():
    """Launches on neighbouring columns wait for each other's signals, so none may wait for the other to end."""

    @pl.program
    class Columns:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            ctx = pld.get_comm_ctx(arrived)
            pld.system.notify(arrived, 1 - pld.rank(ctx), [0], 1)
            pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)
            t = pl.load(x, [0, 0], [16, 16])
            return pl.store(pl.add(t, 1.0), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[16, 16], pl.FP32],
            y: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
            arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            return self.kernel(x, y, arrived)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self, x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
            buf = pld.alloc_window_buffer([1], dtype=pl.INT32)
            arrived = pld.window(buf, [1], dtype=pl.INT32)
            for r in pl.range(2):
                mine = pl.slice(x, [16, 16], [0, r * 16])
                self.chip(mine, pl.slice(y, [16, 16], [0, r * 16]), arrived, device=r)

    x = R.standard_normal((16, 32)).astype(np.float32)
    y = np.zeros_like(x)
    compiled(Columns, 2)(x, y)
    assert np.array_equal(y, x + 1)


# What is refused


def launching(devices):
    @pl.program
    class Few:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, data: pl.InOut[pld.DistributedTensor[[N], pl.FP32]]):
            pld.get_comm_ctx(data)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self):
            buf = pld.alloc_window_buffer([N], dtype=pl.FP32)
            data = pld.window(buf, [N], dtype=pl.FP32)
            for r in pl.range(devices):
                self.chip(data, device=r)

    return Few


def test_a_device_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match=r"window 'buf\w*' is shared by device 2, but the program runs on 2 devices"):
        compiled(launching(4), 2)()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"device_ids": []}, "must not be empty"),
        ({"device_ids": [3, 3]}, "must be distinct"),
        ({"device_ids": [0, -2]}, "must be non-negative"),
        ({"num_sub_workers": -1}, "num_sub_workers must be non-negative"),
        ({"aicpu_thread_num": 1}, "aicpu_thread_num must be 0"),
        ({"aicpu_thread_num": -3}, "aicpu_thread_num must be 0"),
    ],
)
def test_a_config_says_which_devices_there_are(settings, message):
    with pytest.raises(ValueError, match=message):
        DistributedConfig(**settings)


def test_a_config_keeps_a_list_of_its_own():
    ids = [4, 7]
    config = DistributedConfig(device_ids=ids)
    ids.append(9)
    assert config.device_ids == [4, 7] and config.world_size == 2


def test_a_view_larger_than_its_window_is_refused():
    @pl.program
    class Large:
        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, data: pl.InOut[pld.DistributedTensor[[N], pl.FP32]]):
            pld.get_comm_ctx(data)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self):
            buf = pld.alloc_window_buffer(N)
            for r in pl.range(pld.world_size()):
                self.chip(pld.window(buf, [N], dtype=pl.FP32), device=r)

    message = re.escape("float32 [64] takes 256 bytes, window 'buf") + r"\w*' has 64 on each rank"
    with pytest.raises(ValueError, match=message):
        compiled(Large, 2)()


def test_ranks_that_wait_for_each_other_cannot_write_one_array():
    @pl.program
    class Whole:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            x: pl.Tensor[[2, N], pl.FP32],
            row: pl.Scalar[pl.INDEX],
            y: pl.Out[pl.Tensor[[2, N], pl.FP32]],
            arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
        ) -> pl.Tensor[[2, N], pl.FP32]:
            pld.system.notify(arrived, 1 - pld.rank(pld.get_comm_ctx(arrived)), [0], 1)
            pld.system.wait(arrived, [0], 1, cmp=pld.WaitCmp.Ge)
            return pl.store(pl.load(x, [row, 0], [1, N]), [row, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[2, N], pl.FP32],
            row: pl.Scalar[pl.INDEX],
            y: pl.Out[pl.Tensor[[2, N], pl.FP32]],
            arrived: pl.InOut[pld.DistributedTensor[[1], pl.INT32]],
        ) -> pl.Tensor[[2, N], pl.FP32]:
            return self.kernel(x, row, y, arrived)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self, x: pl.Tensor[[2, N], pl.FP32], y: pl.Out[pl.Tensor[[2, N], pl.FP32]]):
            buf = pld.alloc_window_buffer([1], dtype=pl.INT32)
            for r in pl.range(2):
                y = self.chip(x, r, y, pld.window(buf, [1], dtype=pl.INT32), device=r)

    x, y = np.ones((2, N), np.float32), np.zeros((2, N), np.float32)
    message = (
        r"rank 0, 'chip', waits at .* for window 'buf' >= 1.*; "
        r"rank 1, 'chip', waits at .* for the end of rank 0, 'chip', which uses the same memory of the caller"
    )
    with pytest.raises(PtoError, match=message):
        compiled(Whole, 2)(x, y)
