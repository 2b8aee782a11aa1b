"""Tiled products give what numpy gives, on both targets; operands are small integers, so sums are exact."""

from __future__ import annotations

import numpy as np
import pytest
from matmul_programs import DTYPES, biased, product, reduction, result_of, tiled

import pypto.language as pl
from pypto import ir
from pypto.errors import CapacityError

TARGETS = ("Ascend910B", "Ascend950")
SHAPES = [
    (256, 256, 256, "BF16"),
    (256, 64, 256, "BF16"),
    (272, 64, 272, "FP16"),
    (16, 2048, 64, "BF16"),
    (64, 688, 64, "BF16"),
    (320, 64, 336, "FP32"),
    (64, 144, 320, "FP32"),
    (144, 96, 1184, "INT8"),
    (528, 32, 96, "INT8"),
]


def operands(m: int, k: int, n: int, dtype: str, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = np.dtype(np.int32 if dtype == "INT8" else np.float32)
    a, b = (rng.integers(-4, 5, shape).astype(DTYPES[dtype]) for shape in ((m, k), (k, n)))
    return [a, b, rng.integers(-99, 100, (1, n)).astype(made), np.full((m, n), -7, made)]


def check(program: ir.Program, args: list[np.ndarray], want: np.ndarray, target: str) -> None:
    pl.compile(program, target=target)(*args)
    np.testing.assert_array_equal(args[-1], want.astype(args[-1].dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "k", "n", "dtype"), SHAPES)
def test_products(m, k, n, dtype, target):
    program = product(m, k, n, dtype)
    assert tiled(program, "Ascend910B") is not program
    a, b, bias, out = operands(m, k, n, dtype)
    check(program, [a, b, bias, out], a.astype(np.float64) @ b.astype(np.float64), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "k", "n", "dtype"), SHAPES)
def test_products_with_a_bias(m, k, n, dtype, target):
    a, b, bias, out = operands(m, k, n, dtype, 1)
    want = a.astype(np.float64) @ b.astype(np.float64) + bias
    check(product(m, k, n, dtype, biased(n)), [a, b, bias, out], want, target)


ACCUMULATED = """
first = pl.tile.matmul(am, bm)
c = pl.tile.matmul_acc(first, am, bm)
"""
OVERWRITTEN = """
first = pl.tile.matmul(am, bm)
c = pl.tile.matmul_acc(first, am, bm, {cond})
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("k", [2048, 688, 272])
def test_accumulation(k, target):
    a, b, bias, out = operands(64, k, 64, "BF16", 2)
    want = 2 * (a.astype(np.float64) @ b.astype(np.float64))
    check(product(64, k, 64, "BF16", ACCUMULATED), [a, b, bias, out], want, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("cond", "times"), [("0 == 0", 1), ("0 == 1", 2)])
def test_an_accumulator_that_may_be_overwritten(cond, times, target):
    lines = f"i = {cond.split()[0]}\n" + OVERWRITTEN.format(cond=cond.replace("0 ==", "i =="))
    a, b, bias, out = operands(64, 688, 64, "BF16", 3)
    want = times * (a.astype(np.float64) @ b.astype(np.float64))
    program = product(64, 688, 64, "BF16", lines)
    assert str(tiled(program)).count("pl.pipeline(") == 2
    check(program, [a, b, bias, out], want, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("a_trans", "b_trans"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("m", "k", "n"), [(64, 512, 96), (256, 64, 320)])
def test_transposed_operands(m, k, n, a_trans, b_trans, target):
    a_shape, b_shape = [k, m] if a_trans else [m, k], [n, k] if b_trans else [k, n]
    text = f"""
import pypto.language as pl

@pl.program
class Kernel:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[{a_shape}, pl.FP16], b: pl.Tensor[{b_shape}, pl.FP16],
               out: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]) -> pl.Tensor[[{m}, {n}], pl.FP32]:
        c = pl.matmul(a, b, out_dtype=pl.FP32, a_trans={a_trans}, b_trans={b_trans})
        out = pl.assemble(out, c, [0, 0])
        return out
"""
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in (a_shape, b_shape))
    want = (a.T if a_trans else a).astype(np.float64) @ (b.T if b_trans else b).astype(np.float64)
    program = pl.parse(text)
    assert isinstance(program, ir.Program)
    check(program, [a, b, np.zeros((m, n), np.float32)], want, target)


CHAIN = """
import pypto.language as pl

@pl.program
class Kernel:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[{m}, {k}], pl.BF16], b: pl.Tensor[[{k}, {n}], pl.BF16],
               e: pl.Tensor[[{n}, 64], pl.BF16],
               out: pl.Out[pl.Tensor[[{m}, 64], pl.FP32]]) -> pl.Tensor[[{m}, 64], pl.FP32]:
        c = pl.matmul(a, b, out_dtype=pl.FP32)
        cb = pl.cast(c, pl.BF16, mode="rint")
        d = pl.matmul(cb, e, out_dtype=pl.FP32)
        out = pl.assemble(out, d, [0, 0])
        return out
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(256, 192, 256), (256, 32, 256), (128, 64, 272), (128, 64, 128), (128, 512, 128), (320, 64, 288)]
)
def test_products_of_products_stay_on_the_cube(m, k, n, target):
    program = pl.parse(CHAIN.format(m=m, k=k, n=n))
    assert isinstance(program, ir.Program)
    compiled = pl.compile(program, target=target)
    text = "\n".join(compiled.pto.values())
    assert "pto.tinsert" in text and "pto.tcvt" not in text
    rng = np.random.default_rng(5)
    dtype = DTYPES["BF16"]
    a, b, e = (rng.integers(-3, 4, s).astype(dtype) for s in ((m, k), (k, n), (n, 64)))
    out = np.zeros((m, 64), np.float32)
    compiled(a, b, e, out)
    between = (a.astype(np.float32) @ b.astype(np.float32)).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(out, between @ e.astype(np.float32))


def test_without_the_pass_large_products_do_not_fit(monkeypatch):
    from pypto.passes import pipeline

    program = product(256, 256, 256, "BF16")
    without = tuple(name for name in pipeline.PIPELINE if name != "auto_tile_matmul_l0")
    monkeypatch.setattr(pipeline, "PIPELINE", without)
    with pytest.raises(CapacityError, match="exceeds platform limit"):
        pl.compile(program, target="Ascend910B")


def test_an_accumulator_larger_than_l0c_is_refused():
    dtype = result_of("BF16")
    assert dtype == "FP32"
    with pytest.raises(CapacityError, match="exceeds platform limit"):
        pl.compile(product(512, 64, 512, "BF16", ACCUMULATED), target="Ascend910B")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("trips", "stage"), [(4, 2), (8, 4)])
def test_pipelines_with_two_accumulators(trips, stage, target):
    from test_auto_tile_matmul_l0 import pipelined

    a, b, _, out = operands(16, 128, 256 // stage * trips, "BF16", 6)
    check(pipelined(trips, stage=stage), [a, b, out], a.astype(np.float64) @ b.astype(np.float64), target)


SUMS = [
    (16, 512, 1152, 128, "INT8", 2),
    (272, 256, 160, 128, "INT8", 1),
    (256, 256, 256, 64, "FP16", 1),
    (272, 128, 544, 64, "BF16", 1),
    (64, 256, 64, 64, "BF16", 2),
]
IN_BOXES = [(272, 256, 144, 128), (272, 768, 144, 384), (576, 256, 48, 128)]


def check_sum(m: int, k: int, n: int, step: int, dtype: str, blocks: int, target: str) -> None:
    a, b, _, out = operands(m, k, n * blocks, dtype, 7)
    check(reduction(m, k, n, step, dtype, blocks), [a, b, out], a.astype(np.float64) @ b.astype(np.float64), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "k", "n", "step", "dtype", "blocks"), SUMS)
def test_sums_of_products(m, k, n, step, dtype, blocks, target):
    check_sum(m, k, n, step, dtype, blocks, target)


@pytest.mark.parametrize(("m", "k", "n", "step"), IN_BOXES)
def test_sums_whose_edge_ends_inside_a_box(m, k, n, step):
    check_sum(m, k, n, step, "INT8", 1, "Ascend910B")


def partly_valid(cols: str, more: str = "") -> ir.Program:
    text = f"""
import pypto.language as pl

@pl.program
class Kernel:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[512, 64], pl.INT8], b: pl.Tensor[[64, 288], pl.INT8],
               out: pl.Out[pl.Tensor[[512, 288], pl.INT32]]{more}) -> pl.Tensor[[512, 288], pl.INT32]:
        am = pl.tile.load(a, [0, 0], [512, 64], target_memory=pl.Mem.Mat)
        bm = pl.tile.load(b, [0, 0], [64, 288], valid_shape=[64, {cols}], target_memory=pl.Mem.Mat)
        c = pl.tile.matmul(am, bm)
        out = pl.tile.store(c, [0, 0], out)
        return out
"""
    parsed = pl.parse(text)
    assert isinstance(parsed, ir.Program)
    return parsed


@pytest.mark.parametrize("cols", [16, 200, 272])
def test_only_what_is_valid_is_stored(cols):
    a, b, _, out = operands(512, 64, 288, "INT8", 8)
    want = a.astype(np.int32) @ b.astype(np.int32)
    want[:, cols:] = -7
    check(partly_valid(str(cols)), [a, b, out], want, "Ascend910B")


def test_parts_of_what_is_valid_up_to_a_value_at_run_time_are_refused():
    with pytest.raises(CapacityError, match="exceeds platform limit"):
        pl.compile(partly_valid("n", ", n: pl.Scalar[pl.INDEX]"), target="Ascend910B")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "k", "n", "rows"), [(64, 1024, 64, 40), (384, 256, 256, 200), (512, 64, 256, 300)])
def test_only_valid_rows_are_stored(m, k, n, rows, target):
    a, b, bias, out = operands(m, k, n, "BF16", 9)
    want = a.astype(np.float64) @ b.astype(np.float64)
    want[rows:] = -7
    mat, acc = f"pl.Tile[[{m}, {k}], pl.BF16, pl.Mem.Mat", f"c__ssa_v0: pl.Tile[[{m}, {n}], pl.FP32, pl.Mem.Acc]"
    source = str(product(m, k, n)).replace(f"[{m}, {k}], target_memory", f"[{rows}, {k}], target_memory")
    source = source.replace(mat, f"{mat}, pl.TileView(valid_shape=[{rows}, {k}])").replace(acc, "c__ssa_v0")
    kernel = pl.parse(source)
    assert isinstance(kernel, ir.Program)
    check(kernel, [a, b, bias, out], want, target)


ROWS = pl.dynamic("ROWS")


@pl.jit
def ragged(
    a: pl.Tensor[[ROWS, 1024], pl.BF16],
    b: pl.Tensor[[128, 1024], pl.BF16],
    out: pl.Out[pl.Tensor[[ROWS, 128], pl.FP32]],
):
    for block in pl.spmd((pl.tensor.dim(a, 0) + 31) // 32):
        row = block * 32
        rows = pl.min(32, pl.tensor.dim(a, 0) - row)
        acc = pl.create_tensor([32, 128], dtype=pl.FP32)
        for k in pl.pipeline(0, 1024, 512, stage=2):
            left = pl.slice(a, [32, 512], [row, k], valid_shape=[rows, 512])
            right = b[0:128, k : k + 512]
            if k == 0:
                acc = pl.matmul(left, right, b_trans=True, out_dtype=pl.FP32)
            else:
                acc = pl.matmul_acc(acc, left, right, b_trans=True)
        out = pl.assemble(out, acc, [row, 0])
    return out


@pytest.mark.parametrize("rows", [1, 16, 21, 32, 40])
def test_operands_of_a_number_of_rows_known_at_run_time_are_cut_along_k(rows):
    rng = np.random.default_rng(rows)
    a, b = (rng.integers(-4, 5, (n, 1024)).astype(DTYPES["BF16"]) for n in (rows, 128))
    out = np.full((rows, 128), np.nan, np.float32)
    ragged(a, b, out)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)
