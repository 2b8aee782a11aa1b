"""Element values that matter, arithmetic of the element types worked out without PyPTO, and comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from pypto.dtypes import DataType

Array = np.ndarray
INTEGERS = (DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT32, DataType.UINT32)
FLOATS = (DataType.FP16, DataType.BF16, DataType.FP32)
NUMPY = {
    DataType.INT8: np.dtype(np.int8), DataType.UINT8: np.dtype(np.uint8), DataType.INT16: np.dtype(np.int16),
    DataType.UINT16: np.dtype(np.uint16), DataType.INT32: np.dtype(np.int32), DataType.UINT32: np.dtype(np.uint32),
    DataType.INT64: np.dtype(np.int64), DataType.FP16: np.dtype(np.float16), DataType.FP32: np.dtype(np.float32),
    DataType.BF16: np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
_MANTISSA = {np.dtype(np.float16): 10, np.dtype(ml_dtypes.bfloat16): 7, np.dtype(np.float32): 23}


def is_float(dtype: np.dtype) -> bool:
    return dtype in _MANTISSA


def specials(dtype: np.dtype) -> Array:
    """Values at which arithmetic goes wrong."""
    if not is_float(dtype):
        info = np.iinfo(dtype)
        chosen = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2 + 1, 100]
        chosen += [-1, -2, -7] if info.min < 0 else [5]
        return np.array(chosen, dtype)
    info = ml_dtypes.finfo(dtype)
    largest, tiny, least, eps = (float(v) for v in (info.max, info.tiny, info.smallest_subnormal, info.eps))
    chosen = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 7.0, np.inf, -np.inf, np.nan, largest, -largest, tiny, -least,
              least * 3, 1.0 + eps, 1.0 - eps / 2, -1.0 / 3.0]  # fmt: skip
    return np.array(chosen, np.float64).astype(dtype)


def ordinary(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Random values: of moderate size in floats, over the whole range in integers."""
    if is_float(dtype):
        return (rng.standard_normal(shape) * 4).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def mixed(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Ordinary values, and every special one: down a column (``along`` even) or across a row (odd).

    Two operands of different ``along`` meet in every pair of special values.
    """
    out, values = ordinary(dtype, shape, rng), specials(dtype)
    part = out[:, : max(1, shape[1] * 3 // 4)]
    if along % 2 == 0:
        part[...] = np.resize(values, part.shape[1])[None, :]
    else:
        part[...] = np.resize(values, part.shape[0])[:, None]
    return out


def raw(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Every pattern of bits, for what moves elements without looking at them."""
    return rng.integers(0, 256, (shape[0], shape[1] * dtype.itemsize), np.uint8).view(dtype)


def small(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Multiples of 1/8 (integers: all) small enough that sums of a few hundred are exact in f32."""
    if is_float(dtype):
        return (rng.integers(-32, 33, shape) / 8).astype(dtype)
    return ordinary(dtype, shape, rng)


def factors(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator, along: int = 0) -> Array:
    """Powers of two and signs, so that products are exact."""
    if is_float(dtype):
        return rng.choice(np.array([0.5, 1, 1, 1, 2, -1]), shape).astype(dtype)
    return ordinary(dtype, shape, rng)


def wrap(values: Any, dtype: np.dtype) -> Array:
    """Exact integers reduced to the range of ``dtype`` modulo its width."""
    info = np.iinfo(dtype)
    span = int(info.max) - int(info.min) + 1
    exact = np.asarray(values, dtype=object)
    return np.asarray((exact - int(info.min)) % span + int(info.min)).astype(dtype)


def rounded(values: Array, dtype: np.dtype) -> Array:
    """f64 or f32 values rounded once to ``dtype``, ties to even."""
    if dtype != NUMPY[DataType.BF16]:
        return values.astype(dtype)
    single = np.ascontiguousarray(values.astype(np.float32))
    bits = single.view(np.uint32)
    kept = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    kept = np.where(np.isnan(single), np.uint16(0x7FC0), kept).astype(np.uint16)
    return kept.view(dtype)


def arithmetic(exact: Callable[..., Any], floating: Callable[..., Any] | None = None) -> Callable[..., Array]:
    """An operation as exact integer arithmetic that wraps, or as float arithmetic rounded once an operation.

    f32 holds the result of one operation on two f16 or bf16 values closely enough that rounding it again gives what
    rounding the exact result would.
    """

    def evaluate(*operands: Array) -> Array:
        dtype = operands[0].dtype
        if is_float(dtype):
            wide = [o.astype(np.float32) for o in operands]
            return rounded((floating or exact)(*wide), dtype)
        return wrap(exact(*(o.astype(object) for o in operands)), dtype)

    return evaluate


def in_double(function: Callable[..., Array]) -> Callable[..., Array]:
    """A float function evaluated in f64 and rounded once."""

    def evaluate(*operands: Array) -> Array:
        return rounded(function(*(o.astype(np.float64) for o in operands)), operands[0].dtype)

    return evaluate


def _ordered(values: Array) -> Array:
    """Floats as integers whose differences count representable values between them."""
    width = values.dtype.itemsize * 8
    bits = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}").astype(np.int64)
    return np.where(bits < 0, -(bits & ((1 << (width - 1)) - 1)), bits)


def assert_same(got: Array, want: Array, ulp: float = 0, what: str = "") -> None:
    """Bit for bit equal, NaN for NaN; ``ulp`` allows that many representable values between, or either zero for 0.

    Raises AssertionError naming the first place that differs.
    """
    assert got.dtype == want.dtype and got.shape == want.shape, (what, got.dtype, want.dtype, got.shape, want.shape)
    if got.size == 0:
        return
    if got.dtype.kind not in "iub" and not is_float(got.dtype):
        got, want = (np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}") for x in (got, want))
    if not is_float(got.dtype):
        bad = got != want
    else:
        nan_got, nan_want = np.isnan(got.astype(np.float32)), np.isnan(want.astype(np.float32))
        distance = np.abs(_ordered(got) - _ordered(want))
        raw = f"u{got.dtype.itemsize}"
        differ = np.ascontiguousarray(got).view(raw) != np.ascontiguousarray(want).view(raw)
        bad = (nan_got != nan_want) | (~nan_want & (differ if ulp == 0 else distance > ulp))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise AssertionError(
            f"{what}: {int(bad.sum())} of {got.size} elements differ, first at {at}: got {got[at]!r}, want {want[at]!r}"
        )


def fill(dtype: np.dtype, shape: tuple[int, ...]) -> Array:
    """An output before a kernel ran: a value no test computes."""
    return np.full(shape, 113, np.float64).astype(dtype)
