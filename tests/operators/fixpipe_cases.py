"""Numeric cases of quantization on the way out of the accumulator: pairs of dtypes, offsets, signs, special values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from operator_harness import Case, compile_text, run_op
from operator_values import Array, assert_same, fill, raw, small

from pypto.backend import Target
from pypto.dtypes import DataType
from pypto.layouts import fix_pipe_words

M, K, N = 32, 128, 64
D = DataType
_BODIES = {
    "tile.store_fp": "pl.tile.store_fp(acc, words, [0, 0], y)",
    "tile.move_fp": "pl.store(pl.tile.matmul(pl.tile.move_fp(acc, words, dtype={Q}), one), [0, 0], y)",
    "tile.extract_fp": "part = pl.tile.extract_fp(acc, words, 16, 32, [16, 32], dtype={Q})\n"
    "pl.store(pl.tile.matmul(part, one), [16, 32], y)",
    "tile.assemble_fp": "two = pl.create_tile([2 * {M}, {N}], dtype={Q}, target_memory=pl.Mem.Mat)\n"
    "two = pl.tile.assemble_fp(two, acc, words, [0, 0])\n"
    "two = pl.tile.assemble_fp(two, acc, words, [{M}, 0])\n"
    "pl.store(pl.tile.matmul(pl.tile.extract(two, {M}, 0, [{M}, {N}], target_memory=pl.Mem.Left), one), [0, 0], y)",
}
_HEAD = """
@pl.function(type=pl.FunctionType.InCore)
def k(xa: pl.Tensor[[{M}, {K}], {T}], xb: pl.Tensor[[{K}, {N}], {T}], xw: pl.Tensor[[1, {N}], pl.UINT64],
      xi: pl.Tensor[[{N}, {N}], {Q}], m: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX],
      y: pl.Out[pl.Tensor[[{M}, {N}], {Y}]]):
    a = pl.load(xa, [0, 0], [{M}, {K}], valid_shape=[{m}, k], target_memory=pl.Mem.Mat)
    b = pl.load(xb, [0, 0], [{K}, {N}], valid_shape=[k, {n}], target_memory=pl.Mem.Mat)
    acc = pl.tile.matmul(a, b)
    words = pl.load(xw, [0, 0], [1, {N}], target_memory=pl.Mem.Mat)
    {more}
    {body}
"""
_IDENTITY = "one = pl.load(xi, [0, 0], [{W}, {W}], target_memory=pl.Mem.Mat)"


def read_back(to: DataType) -> DataType:
    """A quantized tile in L1 is seen through its product with the identity."""
    return D.FP32 if to.is_float() else D.INT32


def source(op: str, operand: DataType, to: DataType) -> str:
    plain = op == "tile.store_fp"
    names = {"M": M, "K": K, "N": N, "T": f"pl.{operand.name}", "Q": f"pl.{to.name}"}
    names |= {"m": "m" if plain else M, "n": "n" if plain else N}
    names["W"] = 32 if op == "tile.extract_fp" else N
    names["Y"] = names["Q"] if plain else f"pl.{read_back(to).name}"
    body = _BODIES[op].format(**names).replace("\n", "\n    ")
    return _HEAD.format(**names, body=body, more="" if plain else _IDENTITY.format(**names))


def one(value: Any, scale: float, offset: int, signed: bool, dtype: np.dtype) -> Any:
    """One element, as the fix pipe is said to compute it."""
    with np.errstate(all="ignore"):
        product = np.float32(value) * np.float32(scale)
    if dtype.kind not in "iu":
        most = float(ml_dtypes.finfo(dtype).max)
        return dtype.type(product if np.isnan(product) else min(max(float(product), -most), most))
    nine = 0 if np.isnan(product) else round(min(max(float(product), -256.0), 255.0))
    low, high = (-128, 127) if signed else (0, 255)
    return np.uint8(min(max(nine + offset, low), high) % 256).view(dtype)


def quantized(acc: Array, scale: Array, offset: Array, signed: bool, dtype: np.dtype) -> Array:
    out = np.zeros(acc.shape, dtype)
    for i, j in np.ndindex(*acc.shape):
        out[i, j] = one(acc[i, j], float(scale[j]), int(offset[j]), signed, dtype)
    return out


def operands(operand: DataType, rng: np.random.Generator) -> tuple[Array, Array]:
    """Small enough for exact sums."""
    make = small if operand is D.FP32 else raw
    return make(operand.numpy, (M, K), rng), make(operand.numpy, (K, N), rng)


def special(operand: DataType, rng: np.random.Generator) -> tuple[Array, Array]:
    """Of the first term alone: ties, the ends of every range, infinities and NaN, times a sign for each column."""
    a, b = operands(operand, rng)
    if operand is not D.INT8:
        values = [0.0, -0.0, 0.5, 1.5, 2.5, 126.5, 127.5, 255.5, 256.0, 65504.0, 65520.0, 448.0, 464.0, 480.0, 2.0**-10]
        a[:, 0] = np.resize(np.array([*values, 3e38, 1e-44, np.inf, np.nan], np.float32), M)
        b[0] = np.resize(np.array([1, -1], np.float32), N)
    return a, b


def check(op: str, target: Target, to: DataType, signed: bool, made: Any, region: Sequence[int]) -> None:
    operand, (a, b), scale, offset = made
    m, depth, n = region
    wide = np.float32 if operand is D.FP32 else np.int32
    with np.errstate(all="ignore"):
        acc = a[:m, :depth].astype(wide) @ b[:depth, :n].astype(wide)
    want_q = quantized(acc, scale[:n], offset[:n], signed, to.numpy)
    plain = op == "tile.store_fp"
    y = fill(to.numpy if plain else read_back(to).numpy, (M, N))
    want = y.copy()
    rows, columns = (slice(16, 32), slice(32, 64)) if op == "tile.extract_fp" else (slice(0, m), slice(0, n))
    want[rows, columns] = want_q[rows, columns].astype(want.dtype)
    if not plain:
        want[rows, columns] += 0  # a sum of products that starts at 0 is never -0
    words, identity = fix_pipe_words(scale, offset, signed=signed), np.eye(N).astype(to.numpy)
    run_op(op, source(op, operand, to), [a, b, words, identity, *region, y], target)
    assert_same(y, want, 0, f"{op} of {operand} to {to} on {target.name}, {m} x {depth} x {n}, signed {signed}")


def scales(rng: np.random.Generator) -> Array:
    """Eleven significant bits, of both signs, small and large, and zero."""
    whole = rng.integers(1024, 2048, N) * rng.choice([-1, 1], N)
    found = np.ldexp(whole.astype(np.float32), rng.integers(-22, -8, N))
    found[:4] = 0, 1, -1, 2.0**20
    return found


def accumulators(target: Target, to: DataType) -> Iterable[tuple[DataType, DataType]]:
    """The operand dtypes whose accumulators become ``to``."""
    for acc, dtypes in target.quantized_drains.items():
        if to in dtypes:
            yield acc, (D.FP32 if acc is D.FP32 else D.INT8)


def runner(op: str) -> Callable[[DataType, Target], None]:
    plain = op == "tile.store_fp"

    def run(to: DataType, target: Target) -> None:
        rng = np.random.default_rng(to.code())
        signed = to is not D.UINT8
        for _, operand in accumulators(target, to):
            offset = rng.integers(-256, 256, N) if not to.is_float() else np.zeros(N, int)
            made = operand, operands(operand, rng), scales(rng), offset
            for region in ((M, K, N), (5, K, 19), (M, 100, N), (1, 1, 1)) if plain else ((M, K, N),):
                check(op, target, to, signed, made, region)
            if plain:
                check(op, target, to, signed, (operand, special(operand, rng), *made[2:]), (M, 1, N))
                ones = operand, special(operand, rng), np.ones(N, np.float32), np.zeros(N, int)
                check(op, target, to, signed, ones, (M, 1, N))

    return run


def readable(op: str) -> Callable[[Target], Iterable[DataType]]:
    """The dtypes quantized accumulators have; the cube multiplies those of them that go through L1."""
    multiplied = (D.INT8, D.FP16, D.BF16)

    def dtypes(target: Target) -> Iterable[DataType]:
        every = dict.fromkeys(d for to in target.quantized_drains.values() for d in to)
        return [d for d in every if op == "tile.store_fp" or d in multiplied]

    return dtypes


def attempt(op: str) -> Callable[[DataType, Target], None]:
    def refuse(to: DataType, target: Target) -> None:
        compile_text(source(op, D.FP32, to), target)

    return refuse


CASES = [
    Case(op, "", runner(op), readable(op), attempt(op) if op == "tile.store_fp" else None, per_target=True,
         covers=frozenset({"full", "ragged"}) if op == "tile.store_fp" else frozenset({"full"}))  # fmt: skip
    for op in _BODIES
]
