"""Numeric cases of FP4 elements, two of which share a byte: loads, stores and conversions of pairs."""

from __future__ import annotations

import numpy as np
from cast_cases import MODES, to_float
from operator_harness import Case, run_op
from operator_values import Array, assert_same, fill, ordinary, specials

from pypto.backend import Target
from pypto.dtypes import DataType
from pypto.layouts import to_mx_a, to_mx_b

D = DataType
_FP4, _BF16 = D.FP4.numpy, D.BF16.numpy
_MOVE = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 256], pl.FP4], m: pl.Scalar[pl.INDEX], h: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INDEX],
      y: pl.Out[pl.Tensor[[16, 256], {T}]]):
    t = pl.load(x, [0, 64 * j], [16, 128], valid_shape=[m, 2 * h])
    pl.store({made}, [0, 64 * j], y)
"""
_ROUND = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 128], pl.BF16], m: pl.Scalar[pl.INDEX], h: pl.Scalar[pl.INDEX],
      y: pl.Out[pl.Tensor[[16, 128], pl.FP4]]):
    t = pl.load(x, [0, 0], [16, 128], valid_shape=[m, 2 * h])
    pl.store(pl.tile.cast(t, pl.FP4, mode={mode!r}), [0, 0], y)
"""
_REGIONS = ((16, 64), (5, 9), (1, 1), (0, 64))


def every_pair(shape: tuple[int, int]) -> Array:
    """All 256 pairs of elements, over and over."""
    pairs = np.arange(256).repeat(2)
    return np.resize(np.where(np.arange(512) % 2, pairs // 16, pairs % 16), shape).astype(np.uint8).view(_FP4)


def moved(op: str, to: DataType, made: str, target: Target) -> None:
    x = every_pair((16, 256))
    for m, h in _REGIONS:
        for j in (0, 1, 2):
            y = fill(to.numpy, (16, 256))
            want = y.copy()
            window = slice(0, m), slice(64 * j, 64 * j + 2 * h)
            want[window] = x[window].astype(to.numpy)
            run_op(op, _MOVE.format(T=f"pl.{to.name}", made=made), [x, m, h, j, y], target)
            assert_same(y, want, 0, f"{op} of FP4, {m} x {2 * h} valid at {64 * j}")


def rounded(value: float, mode: str) -> Array:
    """One number in FP4, which has neither infinity nor NaN."""
    return to_float(0.0 if np.isnan(value) else min(max(value, -6.0), 6.0), _FP4, mode)


def narrowed(target: Target) -> None:
    rng = np.random.default_rng(4)
    x = ordinary(_BF16, (16 * 128,), rng)
    near = np.array([s * (v + d) for v in np.arange(0, 7, 0.25) for d in (-2.0**-6, 0, 2.0**-6) for s in (1, -1)])
    x[: near.size] = near.astype(_BF16)
    x[near.size : near.size + specials(_BF16).size] = specials(_BF16)
    x = x.reshape(16, 128)
    for mode in MODES:
        exact = [rounded(v, mode) for v in x.astype(np.float64).ravel().tolist()]
        whole = np.array(exact, _FP4).reshape(x.shape)
        for m, h in _REGIONS:
            y = fill(_FP4, (16, 128))
            want = y.copy()
            want[:m, : 2 * h] = whole[:m, : 2 * h]
            run_op("tile.cast", _ROUND.format(mode=mode), [x, m, h, y], target)
            assert_same(y, want, 0, f"BF16 to FP4, {mode}, {m} x {2 * h} valid")


_PRODUCT = """
@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[128, 64], pl.FP4], a_s: pl.Tensor[[128, 2], pl.FP8E8M0, pl.MX_A_ZZ],
      b: pl.Tensor[[64, 64], pl.FP8E4M3FN], b_s: pl.Tensor[[2, 64], pl.FP8E8M0, pl.MX_B_NN],
      y: pl.Out[pl.Tensor[[128, 64], pl.FP32]]):
    left = pl.move(pl.cast(pl.load(a, [0, 0], [128, 64]), pl.FP8E4M3FN), target_memory=pl.Mem.Left)
    left_s = pl.move(pl.load(a_s, [0, 0], [128, 2], target_memory=pl.Mem.Mat), target_memory=pl.Mem.LeftScale)
    right = pl.move(pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
    right_s = pl.move(pl.load(b_s, [0, 0], [2, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.RightScale)
    pl.store(pl.matmul_mx(left, left_s, right, right_s), [0, 0], y)
"""


def product(target: Target) -> None:
    """FP4 elements widened on the vector cores and multiplied on the cube, in one kernel."""
    rng = np.random.default_rng(5)
    a, b = every_pair((128, 64)), (rng.integers(-14, 15, (64, 64)) / 4).astype(D.FP8E4M3FN.numpy)
    scales = [np.exp2(rng.integers(-2, 3, shape)).astype(D.FP8E8M0.numpy) for shape in ((128, 2), (2, 64))]
    y = np.zeros((128, 64), np.float32)
    run_op("tile.matmul_mx", _PRODUCT, [a, to_mx_a(scales[0]), b, to_mx_b(scales[1]), y], target)
    left, right = (np.repeat(s.astype(np.float64), 32, axis) for s, axis in zip(scales, (1, 0)))
    want = (a.astype(np.float64) * left) @ (b.astype(np.float64) * right)
    assert_same(y, want.astype(np.float32), 0, "FP4 by FP8")


def program(target: Target) -> None:
    """FP4 elements of a tensor an orchestration slices."""
    source = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def widen(self, x: pl.Tensor[[32, 128], pl.FP4], y: pl.Out[pl.Tensor[[32, 128], pl.FP8E4M3FN]]
              ) -> pl.Tensor[[32, 128], pl.FP8E4M3FN]:
        return pl.store(pl.cast(pl.load(x, [0, 0], [32, 128]), pl.FP8E4M3FN), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 128], pl.FP4], y: pl.Out[pl.Tensor[[32, 128], pl.FP8E4M3FN]]
             ) -> pl.Tensor[[32, 128], pl.FP8E4M3FN]:
        half = pl.slice(x, [32, 128], [32, 0])
        y = self.widen(half, y)
        return y
"""
    x = every_pair((64, 128))
    y = np.zeros((32, 128), D.FP8E4M3FN.numpy)
    run_op("tile.cast", source, [x, y], target)
    assert_same(y, x[32:].astype(np.float32).astype(y.dtype), 0, "FP4 rows of a larger tensor")


def _case(op: str, name: str, run, dtype: DataType) -> Case:
    covers = frozenset({"full", "ragged", "empty"})
    return Case(op, name, lambda _, t: run(t), lambda t: (dtype,) if t.module_arch == "a5" else (), covers=covers)


CASES = [
    _case("tile.load", "fp4", lambda t: moved("tile.load", D.FP4, "t", t), D.FP4),
    _case("tile.cast", "fp4", lambda t: moved("tile.cast", D.BF16, "pl.tile.cast(t, pl.BF16)", t), D.FP4),
    _case("tile.cast", "to-fp4", narrowed, D.BF16),
    _case("tile.cast", "fp4-program", program, D.FP4),
    _case("tile.matmul_mx", "fp4", product, D.FP8E4M3FN),
]
