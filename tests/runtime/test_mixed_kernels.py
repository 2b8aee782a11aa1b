"""Kernels that use the cube and the vector cores, run against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto import codegen

Made = tuple[Any, Callable[[dict[str, np.ndarray]], np.ndarray]]
MODES = [pl.SplitMode.NONE, pl.SplitMode.UP_DOWN, pl.SplitMode.LEFT_RIGHT]
F32, F16 = np.float32, np.float16


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(F32) @ b.astype(F32)


def inputs(**shapes: tuple[int, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {name: (rng.standard_normal(shape) * 0.3).astype(F16) for name, shape in shapes.items()}


def check(
    program: Any, target: str, given: dict[str, np.ndarray], expected: np.ndarray, tolerance: float = 1e-5
) -> Any:
    compiled = pl.compile(program, target=target)
    out = np.full(expected.shape, np.nan, F32)
    compiled(*given.values(), out)
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
    return compiled


@pytest.fixture(params=["910B", "950"])
def target(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("mode", MODES)
def test_a_product_goes_to_the_vectors_and_back(target: str, mode: pl.SplitMode) -> None:
    @pl.program
    class Chain:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            w: pl.Tensor[[32, 48], pl.FP16],
            out: pl.Out[pl.Tensor[[32, 48], pl.FP32]],
        ) -> pl.Tensor[[32, 48], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(mode)]):
                e = pl.cast(pl.exp(pl.matmul(a, b, out_dtype=pl.FP32)), pl.FP16)
                d = pl.add(pl.matmul(e, w, out_dtype=pl.FP32), 1.0)
                out = pl.assemble(out, d, [0, 0])
            return out

    given = inputs(a=(32, 64), b=(64, 32), w=(32, 48))
    e = np.exp(product(given["a"], given["b"])).astype(F16)
    compiled = check(Chain, target, given, product(e, given["w"]) + 1)
    assert len(compiled.lowered.functions) == 4


@pytest.mark.parametrize("mode", MODES[:2])
def test_softmax_of_a_product(target: str, mode: pl.SplitMode) -> None:
    @pl.program
    class Softmax:
        @pl.function
        def main(
            self,
            q: pl.Tensor[[32, 64], pl.FP16],
            k: pl.Tensor[[64, 64], pl.FP16],
            out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        ) -> pl.Tensor[[32, 64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(mode)]):
                s = pl.matmul(q, k, out_dtype=pl.FP32)
                e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
                out = pl.assemble(out, pl.row_expand_div(e, pl.row_sum(e)), [0, 0])
            return out

    given = inputs(q=(32, 64), k=(64, 64))
    s = product(given["q"], given["k"])
    e = np.exp(s - s.max(1, keepdims=True))
    check(Softmax, target, given, e / e.sum(1, keepdims=True))


def test_a_loop_hands_a_product_over_each_time(target: str) -> None:
    @pl.program
    class Loop:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[16, 64], pl.FP16],
            b: pl.Tensor[[64, 96], pl.FP16],
            out: pl.Out[pl.Tensor[[16, 96], pl.FP32]],
        ) -> pl.Tensor[[16, 96], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for j in pl.range(3):
                    part = pl.slice(b, [64, 32], [0, j * 32])
                    out = pl.assemble(out, pl.exp(pl.matmul(a, part, out_dtype=pl.FP32)), [0, j * 32])
            return out

    given = inputs(a=(16, 64), b=(64, 96))
    check(Loop, target, given, np.exp(product(given["a"], given["b"])))


def test_blocks_have_pipes_of_their_own(target: str) -> None:
    @pl.program
    class Blocks:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[64, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            out: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            for i in pl.spmd(4):
                rows = pl.slice(a, [16, 64], [i * 16, 0])
                out = pl.assemble(out, pl.exp(pl.matmul(rows, b, out_dtype=pl.FP32)), [i * 16, 0])
            return out

    given = inputs(a=(64, 64), b=(64, 32))
    check(Blocks, target, given, np.exp(product(given["a"], given["b"])))


def test_a_region_divided_by_hand(target: str) -> None:
    @pl.program
    class Region:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                c = pl.matmul(a, b, out_dtype=pl.FP32)
                for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                    out = pl.assemble(out, pl.exp(pl.aiv_shard(c)), [lane * 16, 0])
            return out

    given = inputs(a=(32, 64), b=(64, 32))
    check(Region, target, given, np.exp(product(given["a"], given["b"])))


@pytest.mark.parametrize("rows", [16, 13, 9, 1])
def test_a_ragged_product(target: str, rows: int) -> None:
    @pl.program
    class Ragged:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[16, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            out: pl.Out[pl.Tensor[[rows, 32], pl.FP32]],
        ) -> pl.Tensor[[rows, 32], pl.FP32]:
            ta = pl.load(a, [0, 0], [16, 64], [rows, 64], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
            out = pl.store(pl.exp(pl.matmul(ta, tb)), [0, 0], out)
            return out

    given = inputs(a=(16, 64), b=(64, 32))
    check(Ragged, target, given, np.exp(product(given["a"][:rows], given["b"])))


def test_global_memory_between_the_cores(target: str) -> None:
    @pl.program
    class Exchange:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[16, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            scratch: pl.Out[pl.Tensor[[16, 64], pl.FP16]],
            out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            scratch = pl.store(pl.exp(pl.load(a, [0, 0], [16, 64])), [0, 0], scratch)
            ta = pl.load(scratch, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
            out = pl.store(pl.matmul(ta, tb), [0, 0], out)
            return out

    given = inputs(a=(16, 64), b=(64, 32))
    expected = product(np.exp(given["a"]), given["b"])
    given["scratch"] = np.zeros((16, 64), F16)
    check(Exchange, target, given, expected, 2e-3)


def test_both_cores_use_what_is_loaded_for_the_cube(target: str) -> None:
    @pl.program
    class Both:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            copy: pl.Out[pl.Tensor[[32, 64], pl.FP16]],
            out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
            for i in pl.range(2):
                ta = pl.load(a, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
                copy = pl.store(pl.mul(ta, ta), [i * 16, 0], copy)
                out = pl.store(pl.exp(pl.matmul(ta, tb)), [i * 16, 0], out)
            return out

    given = inputs(a=(32, 64), b=(64, 32))
    expected = np.exp(product(given["a"], given["b"]))
    given["copy"] = np.zeros((32, 64), F16)
    check(Both, target, given, expected)
    np.testing.assert_array_equal(given["copy"], given["a"] * given["a"])


def test_global_memory_between_the_cores_through_views(target: str) -> None:
    @pl.program
    class Views:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[16, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            scratch: pl.Out[pl.Tensor[[32, 64], pl.FP16]],
            made: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
            out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ) -> pl.Tensor[[16, 32], pl.FP32]:
            flat = pl.tensor.view(scratch, [16, 128])
            flat = pl.store(pl.exp(pl.load(a, [0, 0], [16, 64])), [0, 64], flat)
            ta = pl.load(flat, [0, 64], [16, 64], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
            made = pl.store(pl.matmul(ta, tb), [0, 0], made)
            turned = pl.tensor.view(made, [8, 64])
            out = pl.store(pl.add(pl.load(turned, [0, 0], [8, 32]), 1.0), [0, 0], out)
            out = pl.store(pl.add(pl.load(turned, [0, 32], [8, 32]), 1.0), [8, 0], out)
            return out

    given = inputs(a=(16, 64), b=(64, 32))
    c = product(np.exp(given["a"]), given["b"]).reshape(8, 64)
    given |= {"scratch": np.zeros((32, 64), F16), "made": np.zeros((16, 32), F32)}
    check(Views, target, given, np.concatenate([c[:, :32], c[:, 32:]]) + 1, 2e-3)


def test_branches_take_turns_alike(target: str) -> None:
    @pl.program
    class Branch:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[16, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            out: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        ) -> pl.Tensor[[64, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(4):
                    if i % 2 == 0:
                        out = pl.assemble(out, pl.exp(pl.matmul(a, b, out_dtype=pl.FP32)), [i * 16, 0])
                    else:
                        out = pl.assemble(out, pl.mul(pl.matmul(a, b, out_dtype=pl.FP32), 2.0), [i * 16, 0])
            return out

    given = inputs(a=(16, 64), b=(64, 32))
    c = product(given["a"], given["b"])
    check(Branch, target, given, np.concatenate([np.exp(c), 2 * c, np.exp(c), 2 * c]))


@pytest.mark.parametrize(("trips", "stage"), [(4, 2), (3, 2), (6, 4), (1, 2)])
def test_the_cube_runs_ahead(target: str, trips: int, stage: int) -> None:
    @pl.program
    class Pipeline:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[96, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            w: pl.Tensor[[32, 32], pl.FP16],
            out: pl.Out[pl.Tensor[[96, 32], pl.FP32]],
        ) -> pl.Tensor[[96, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.pipeline(trips, stage=stage):
                    rows = pl.slice(a, [16, 64], [i * 16, 0])
                    e = pl.cast(pl.exp(pl.matmul(rows, b, out_dtype=pl.FP32)), pl.FP16)
                    out = pl.assemble(out, pl.matmul(e, w, out_dtype=pl.FP32), [i * 16, 0])
            return out

    given = inputs(a=(96, 64), b=(64, 32), w=(32, 32))
    compiled = pl.compile(Pipeline, target=target)
    out = np.zeros((96, 32), F32)
    compiled(*given.values(), out)
    e = np.exp(product(given["a"], given["b"])).astype(F16)  # equal but for roundings to FP16
    np.testing.assert_allclose(out[: 16 * trips], product(e, given["w"])[: 16 * trips], rtol=2e-3, atol=2e-3)
    assert not out[16 * trips :].any()


@pl.program
class ByLane:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[128, 64], pl.FP32], y: pl.Out[pl.Tensor[[128, 64], pl.FP32]]
    ) -> pl.Tensor[[128, 64], pl.FP32]:
        for block in pl.spmd(2):
            for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
                row = (block * 2 + lane) * 32
                t = pl.load(x, [row, 0], [32, 64])
                y = pl.store(pl.add(t, t), [row, 0], y)
        return y


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
def test_both_vector_cores_run_a_kernel_that_tells_them_apart_without_a_cube(target):
    compiled = pl.compile(ByLane, target=target, skip_ptoas=True)
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
    np.testing.assert_array_equal(compiled(x), 2 * x)
    code = codegen.generate_orchestration(compiled.lowered, compiled.lowered.get_function("main")).code
    assert "MixedKernels mixed_0 = {INVALID_KERNEL_ID, 0, 0};" in code


COUNT = pl.dynamic("COUNT")


@pl.jit
def scaled_rows(
    a: pl.Tensor[[COUNT, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[COUNT, 32], pl.FP32]]
):
    for block in pl.spmd((pl.tensor.dim(a, 0) + 31) // 32):
        rows = pl.min(32, pl.tensor.dim(a, 0) - block * 32)
        left = pl.slice(a, [32, 64], [block * 32, 0], valid_shape=[rows, 64])
        out = pl.assemble(out, pl.mul(pl.matmul(left, b), 3.0), [block * 32, 0])
    return out


@pytest.mark.parametrize("count", [1, 31, 32, 50])
def test_the_other_core_computes_how_much_of_a_tile_it_gets(count):
    rng = np.random.default_rng(count)
    a, b = rng.standard_normal((count, 64)).astype(np.float32), rng.standard_normal((64, 32)).astype(np.float32)
    out = np.full((count, 32), np.nan, np.float32)
    scaled_rows(a, b, out)
    np.testing.assert_allclose(out, a @ b * 3, rtol=1e-4, atol=1e-4)


@pl.jit
def large_product(
    a: pl.Tensor[[256, 64], pl.FP16], b: pl.Tensor[[64, 256], pl.FP16], out: pl.Out[pl.Tensor[[256, 256], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        for m in pl.range(0, 256, 128):
            product = pl.matmul(a[m : m + 128, 0:64], b, out_dtype=pl.FP32)
            for r in pl.range(0, 128, 16):
                out[m + r : m + r + 16, 0:256] = pl.add(product[r : r + 16, 0:256], 1.0)
    return out


def test_a_pipe_of_tiles_of_which_memory_holds_one():
    text = "\n".join(large_product.compile().pto.values())
    assert "slot_num = 1" in text
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((256, 64), (64, 256)))
    out = np.zeros((256, 256), np.float32)
    large_product(a, b, out)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32) + 1)
