"""Block-scaled products, with exact sums: every valid region, special elements and scales, accumulation and bias."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from operator_harness import Case, compile_text, run_op
from operator_values import Array, assert_same, fill

from pypto.backend import Target
from pypto.dtypes import DataType
from pypto.layouts import to_mx_a, to_mx_b

M, K, N, GROUPS = 32, 128, 64, 4
_FP8, _E8 = DataType.FP8E4M3FN.numpy, DataType.FP8E8M0.numpy
_F32 = np.dtype(np.float32)

_LOADS = """
a = pl.load(xa, [0, 0], [{M}, 128], valid_shape=[m, k], target_memory=pl.Mem.Mat)
a_s = pl.load(xas, [0, 0], [{M}, 4], valid_shape=[m, 4], target_memory=pl.Mem.Mat)
b = pl.load(xb, [0, 0], [128, 64], valid_shape=[k, n], target_memory=pl.Mem.Mat)
b_s = pl.load(xbs, [0, 0], [4, 64], valid_shape=[4, n], target_memory=pl.Mem.Mat)
left = pl.move(a, target_memory=pl.Mem.Left)
left_s = pl.move(a_s, target_memory=pl.Mem.LeftScale)
right = pl.move(b, target_memory=pl.Mem.Right)
right_s = pl.move(b_s, target_memory=pl.Mem.RightScale)
"""
_BODIES = {
    "": "pl.store(pl.tile.{kind}_mx(left, left_s, right, right_s), [0, 0], y)",
    "_acc": "acc = pl.tile.{kind}_mx(left, left_s, right, right_s)\n"
    "pl.store(pl.tile.{kind}_mx_acc(acc, left, left_s, right, right_s), [0, 0], y)",
    "_bias": "bias = pl.move(pl.load(xc, [0, 0], [1, 64], valid_shape=[1, n], target_memory=pl.Mem.Mat), "
    "target_memory=pl.Mem.Bias)\n"
    "pl.store(pl.tile.{kind}_mx_bias(left, left_s, right, right_s, bias), [0, 0], y)",
}


def source(kind: str, form: str) -> str:
    rows = M if kind == "matmul" else 16
    loads = _LOADS if kind == "matmul" else _LOADS.replace("[m, ", "[1, ")
    body = (loads.format(M=rows) + _BODIES[form].format(kind=kind)).strip().replace("\n", "\n    ")
    return f"""
@pl.function(type=pl.FunctionType.InCore)
def k(xa: pl.Tensor[[{rows}, 128], pl.FP8E4M3FN], xas: pl.Tensor[[{rows}, 4], pl.FP8E8M0, pl.MX_A_ZZ],
      xb: pl.Tensor[[128, 64], pl.FP8E4M3FN], xbs: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
      xc: pl.Tensor[[1, 64], pl.FP32], m: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX],
      y: pl.Out[pl.Tensor[[{rows}, 64], pl.FP32]]):
    {body}
"""


def ordinary(rng: np.random.Generator, rows: int) -> list[Array]:
    """Operands whose products have sums that f32 holds exactly."""
    return [
        (rng.integers(-14, 15, (rows, K)) / 4).astype(_FP8),
        np.exp2(rng.integers(-2, 3, (rows, GROUPS))).astype(_E8),
        (rng.integers(-14, 15, (K, N)) / 4).astype(_FP8),
        np.exp2(rng.integers(-2, 3, (GROUPS, N))).astype(_E8),
        (rng.integers(-64, 65, (1, N)) / 8).astype(np.float32),
    ]


def special(rng: np.random.Generator, rows: int) -> list[Array]:
    """NaN and the ends of the range, in elements and in scales; each row and column has one term that is not zero."""
    a, a_s, b, b_s, c = ordinary(rng, rows)
    a[:], b[:] = 0, 0
    row, column = np.arange(rows), np.arange(N)
    a[row, row % K] = np.resize(np.array([1, -448, 2.0**-9, -0.0, np.nan, 448, -1.5]), rows).astype(_FP8)
    b[:] = np.resize(np.array([1, -1, 448, 2.0**-9, 3]), N).astype(_FP8)[None, :]
    a_s[:] = np.resize(np.array([1, 2.0**127, 2.0**-127, np.nan, 2]), rows).astype(_E8)[:, None]
    b_s[:] = np.resize(np.array([1, 2.0**-127, 2.0**127, 4]), column.size).astype(_E8)[None, :]
    return [a, a_s, b, b_s, c]


def product(a: Array, a_s: Array, b: Array, b_s: Array) -> Array:
    """Element by element in f64, where every scaled product is exact."""
    rows, depth = a.shape
    left = a.astype(np.float64) * np.repeat(a_s.astype(np.float64), 32, axis=1)[:, :depth]
    right = b.astype(np.float64) * np.repeat(b_s.astype(np.float64), 32, axis=0)[:depth]
    out = np.zeros((rows, b.shape[1]))
    for i in range(depth):
        out += left[:, i : i + 1] * right[i]
    return out.astype(np.float32)


def finished(form: str, exact: Array, c: Array) -> Array:
    return exact + exact if form == "_acc" else c + exact if form == "_bias" else exact


def check(kind: str, form: str, target: Target, operands: list[Array], region: tuple[int, int, int]) -> None:
    m, k, n = region
    a, a_s, b, b_s, c = operands
    y = fill(_F32, (a.shape[0], N))
    want = y.copy()
    with np.errstate(all="ignore"):
        exact = product(a[:m, :k], a_s[:m], b[:k, :n], b_s[:, :n])
        want[:m, :n] = finished(form, exact, c[:, :n])
    op = f"tile.{kind}_mx{form}"
    run_op(op, source(kind, form), [a, to_mx_a(a_s), b, to_mx_b(b_s), c, m, k, n, y], target)
    assert_same(y, want, 0, f"{op} on {target.name}, {m} x {k} x {n} valid")


REGIONS = {"matmul": ((M, K, N), (5, K, 19), (M, 100, N), (1, 97, 1)), "gemv": ((1, K, N), (1, 100, 19), (1, 97, 1))}
EMPTY = {"matmul": ((0, K, N), (M, K, 0)), "gemv": ((1, K, 0),)}


def runner(kind: str, form: str) -> Callable[[DataType, Target], None]:
    rows = M if kind == "matmul" else 16

    def run(dtype: DataType, target: Target) -> None:
        rng = np.random.default_rng(len(kind + form))
        for region in REGIONS[kind]:
            check(kind, form, target, ordinary(rng, rows), region)
        check(kind, form, target, special(rng, rows), REGIONS[kind][0])
        for region in EMPTY[kind]:
            with pytest.raises(ValueError, match="must be 1..4095"):
                check(kind, form, target, ordinary(rng, rows), region)

    return run


def attempt(kind: str, form: str) -> Callable[[DataType, Target], None]:
    """Compile with elements of another dtype."""

    def refuse(dtype: DataType, target: Target) -> None:
        compile_text(source(kind, form).replace("pl.FP8E4M3FN", f"pl.{dtype.name}"), target)

    return refuse


def on_a5(*dtypes: DataType) -> Callable[[Target], Iterable[DataType]]:
    return lambda target: dtypes if target.module_arch == "a5" else ()


def bound(dtype: DataType, target: Target) -> None:
    """Scales bound by hand to where their data is: nothing moves."""
    bind = "left_s = pl.tile.tget_scale_addr(left_s, left)\n    right_s = pl.tile.tget_scale_addr(right_s, right)\n    "
    text = source("matmul", "").replace("pl.store(", f"{bind}pl.store(")
    a, a_s, b, b_s, c = ordinary(np.random.default_rng(7), M)
    y = fill(_F32, (M, N))
    run_op("tile.tget_scale_addr", text, [a, to_mx_a(a_s), b, to_mx_b(b_s), c, M, K, N, y], target)
    assert_same(y, product(a, a_s, b, b_s), 0, "scales bound by hand")


CASES = [
    Case(f"tile.{kind}_mx{form}", "", runner(kind, form), on_a5(DataType.FP8E4M3FN), attempt(kind, form),
         covers=frozenset({"full", "ragged", "empty"}))  # fmt: skip
    for kind in ("matmul", "gemv")
    for form in _BODIES
] + [Case("tile.tget_scale_addr", "", bound, on_a5(DataType.FP8E8M0))]
