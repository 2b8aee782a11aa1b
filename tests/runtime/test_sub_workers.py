"""Sub-workers: Python of the host between launches, written in the program or bound when it runs."""

import numpy as np
import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.runtime import DistributedConfig, DistributedWorker

N = 64
TWO = DistributedConfig(device_ids=[0, 1], num_sub_workers=1)


@pl.program
class Halved:
    """Each device doubles its row; the host then halves and counts; a device doubles what the host left."""

    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]
    ) -> pl.Tensor[[1, N], pl.FP32]:
        t = pl.load(x, [0, 0], [1, N])
        return pl.store(pl.add(t, t), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]
    ) -> pl.Tensor[[1, N], pl.FP32]:
        return self.double(x, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def shrink(
        ys: pl.InOut[pl.Tensor[[2, 1, N], pl.FP32]], by: pl.Scalar[pl.INT32]
    ) -> pl.Tensor[[2, 1, N], pl.FP32]:
        import numpy

        ys[:] = numpy.trunc(ys / by)
        return ys

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(
        self,
        xs: pl.Tensor[[2, 1, N], pl.FP32],
        ys: pl.Out[pl.Tensor[[2, 1, N], pl.FP32]],
        zs: pl.Out[pl.Tensor[[2, 1, N], pl.FP32]],
    ):
        for r in pl.range(pld.world_size()):
            self.chip(xs[r], ys[r], device=r)
        ys = self.shrink(ys, 4)
        for r in pl.range(pld.world_size()):
            self.chip(ys[r], zs[r], device=r)


def arrays():
    xs = np.arange(2 * N, dtype=np.float32).reshape(2, 1, N)
    return xs, np.zeros_like(xs), np.zeros_like(xs)


def test_a_sub_worker_runs_after_the_launches_it_takes_data_from_and_before_those_that_take_its():
    program = ir.compile(Halved, skip_ptoas=True, distributed_config=TWO)
    xs, ys, zs = arrays()
    program(xs, ys, zs)
    assert np.array_equal(ys, np.trunc(xs / 2)) and np.array_equal(zs, 2 * ys)


def test_a_sub_worker_may_be_replaced():
    def negate(args):
        args[0][:] *= -args[1]
        return args[0]

    program = ir.compile(Halved, skip_ptoas=True, distributed_config=TWO)
    with program.prepare(callbacks={"shrink": negate}) as worker:
        for _ in range(2):
            xs, ys, zs = arrays()
            worker(xs, ys, zs)
            assert np.array_equal(ys, -8 * xs) and np.array_equal(zs, -16 * xs)


def test_what_a_sub_worker_raises_reaches_the_caller():
    def fail(args):
        raise LookupError("no such thing")

    program = ir.compile(Halved, skip_ptoas=True, distributed_config=TWO)
    with pytest.raises(LookupError, match="no such thing"):
        program.prepare(callbacks={"shrink": fail})(*arrays())


def test_a_sub_worker_may_be_called_on_its_own():
    xs, _, _ = arrays()
    expected = np.trunc(xs / 4)
    ir.compile(Halved, skip_ptoas=True).kernel("shrink")(xs, 4)
    assert np.array_equal(xs, expected)


@pl.program
class Watched:
    """What a kernel made is shown to code that is bound when the program runs."""

    @pl.function(type=pl.FunctionType.InCore)
    def double(
        self, x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]
    ) -> pl.Tensor[[1, N], pl.FP32]:
        t = pl.load(x, [0, 0], [1, N])
        return pl.store(pl.add(t, t), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, x: pl.Tensor[[1, N], pl.FP32], y: pl.Out[pl.Tensor[[1, N], pl.FP32]]
    ) -> pl.Tensor[[1, N], pl.FP32]:
        return self.double(x, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def watch(y: pl.Tensor[[1, N], pl.FP32]) -> pl.Tensor[[1, N], pl.FP32]: ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(
        self,
        x: pl.Tensor[[1, N], pl.FP32],
        y: pl.Out[pl.Tensor[[1, N], pl.FP32]],
        z: pl.Out[pl.Tensor[[1, N], pl.FP32]],
    ) -> pl.Tensor[[1, N], pl.FP32]:
        y = self.chip(x, y)
        seen = self.watch(y)
        z = self.chip(seen, z)
        return z


@pytest.fixture(scope="module")
def watched():
    return ir.compile(Watched, skip_ptoas=True)


def test_code_is_bound_when_the_program_runs(watched):
    x, y, z = (np.full((1, N), v, np.float32) for v in (3, 0, 0))
    with watched.prepare(callbacks={"watch": lambda args: args[0] + 1}) as worker:
        made = worker(x, y, z)
    assert made is z and (y == 6).all() and (z == 14).all()


def test_torch_tensors_stay_torch_tensors(watched):
    torch = pytest.importorskip("torch")
    seen = []

    def watch(args):
        seen.append(args[0])
        args[0] += 1
        return args[0]

    x, y, z = (torch.full((1, N), float(v)) for v in (3, 0, 0))
    watched.prepare(callbacks={"watch": watch})(x, y, z)
    assert isinstance(seen[0], torch.Tensor) and bool((y == 7).all()) and bool((z == 14).all())


def test_code_that_is_missing_is_found_before_anything_runs(watched):
    with pytest.raises(ValueError, match="the body of watch is bound at run time"):
        watched.prepare()
    x, y, z = (np.zeros((1, N), np.float32) for _ in range(3))
    with pytest.raises(ValueError, match="sub-worker 'watch' has no code"):
        watched(x, y, z)


def test_code_for_no_sub_worker_is_refused(watched):
    code = {"watch": lambda args: args[0], "wach": lambda args: args[0]}
    with pytest.raises(ValueError, match="callbacks names 'wach', which no program has"):
        watched.prepare(callbacks=code)


def test_results_are_counted(watched):
    x, y, z = (np.zeros((1, N), np.float32) for _ in range(3))
    with pytest.raises(ValueError, match=r"must return 1 value\(s\), got 0"):
        watched.prepare(callbacks={"watch": lambda args: None})(x, y, z)


def test_a_worker_runs_the_programs_it_was_made_for(watched):
    halved = ir.compile(Halved, skip_ptoas=True, distributed_config=TWO)
    with DistributedWorker(halved, extra_compiled=[watched], callbacks={"watch": lambda args: args[0]}) as worker:
        xs, ys, zs = arrays()
        worker.run(halved, xs, ys, zs)
        assert np.array_equal(zs, 2 * np.trunc(xs / 2))
        x, y, z = (np.full((1, N), v, np.float32) for v in (1, 0, 0))
        assert (worker.run(watched, x, y, z) == 4).all()
        with pytest.raises(TypeError, match="several programs"):
            worker(xs, ys, zs)
        with pytest.raises(ValueError, match="is not one of the worker's programs"):
            worker.run(ir.compile(Halved, skip_ptoas=True), xs, ys, zs)
    with pytest.raises(RuntimeError, match="the worker is closed"):
        worker.run(halved, xs, ys, zs)


@pytest.mark.parametrize("dtype", ["numpy", "language", "torch"])
def test_memory_of_a_worker_holds_what_a_run_left(watched, dtype):
    torch = pytest.importorskip("torch")
    dtype = {"numpy": np.float32, "language": pl.FP32, "torch": torch.float32}[dtype]
    with DistributedWorker([watched], callbacks={"watch": lambda args: args[0]}) as worker:
        x = worker.alloc_tensor((1, N), dtype, init=np.ones((1, N)) if dtype is not torch.float32 else torch.ones(1, N))
        y, z = (worker.alloc_tensor((1, N), dtype) for _ in range(2))
        worker(x, y, z)
        worker(z, y, x)
        assert bool((z == 4).all()) and bool((x == 16).all())
        worker.free_tensor(y)
        with pytest.raises(ValueError, match=r"init must have shape \[1, 64\], got \[2\]"):
            worker.alloc_tensor((1, N), dtype, init=np.ones(2))
