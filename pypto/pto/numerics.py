"""Arithmetic of the element types: rounding modes, saturation, and functions computed in f32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray

_F16 = np.dtype(np.float16)
_F32 = np.dtype(np.float32)


def is_floating(dtype: np.dtype) -> bool:
    """Whether ``dtype`` is a float, those of ml_dtypes included."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def in_f32(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """``function`` evaluated in f32 and rounded to the element type it was given."""

    def evaluate(values: Array) -> Array:
        if values.dtype == _F32:
            return function(values)
        return function(values.astype(np.float32)).astype(values.dtype)

    return evaluate


def _bits(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")


def narrow(values: Array, dtype: np.dtype, mode: str) -> Array:
    """Floats rounded to a narrower float type.

    Modes: RINT, CAST_RINT, NONE to nearest, ties to even; ROUND to nearest, ties away from zero;
    FLOOR, CEIL, TRUNC directed; ODD makes an inexact result's last bit 1. Overflow gives infinity
    in the modes that round away from zero at that point, else the largest finite value. 4-bit floats have neither
    infinity nor NaN: overflow gives the largest value in every mode, NaN gives 0.
    """
    four = dtype.name.startswith("float4")
    if four:
        values = np.clip(np.where(np.isnan(values), values.dtype.type(0), values), -6, 6)
    nearest = values.astype(dtype)
    if mode in ("RINT", "CAST_RINT", "NONE"):
        return nearest
    wide = values.astype(np.float64)
    rounded = nearest.astype(np.float64)
    inexact = np.isfinite(wide) & (rounded != wide)
    if not inexact.any():
        return nearest
    unsigned = _bits(dtype)
    one = unsigned.type(1)
    away = inexact & (np.abs(rounded) > np.abs(wide))
    raw = nearest.view(unsigned)
    toward_zero = np.where(away, raw - one, raw)
    truncated = toward_zero.view(dtype)
    # A result of magnitude zero keeps the sign of its source.
    width = 4 if four else 8 * unsigned.itemsize
    sign = np.where(np.signbit(wide), unsigned.type(1 << (width - 1)), unsigned.type(0))
    toward_zero = toward_zero | sign
    outward = toward_zero + one
    if mode == "TRUNC":
        chosen = toward_zero
    elif mode == "ODD":
        chosen = toward_zero | one
    elif mode == "ROUND":
        low = np.abs(truncated.astype(np.float64))
        high = np.abs(outward.view(dtype).astype(np.float64))
        below = np.abs((toward_zero - one).view(dtype).astype(np.float64))
        high = np.where(np.isfinite(high), high, 2 * low - below)
        chosen = np.where(np.abs(wide) - low >= high - np.abs(wide), outward, toward_zero)
    else:
        grows = (wide > 0) if mode == "CEIL" else (wide < 0)
        chosen = np.where(grows, outward, toward_zero)
    return np.where(inexact, chosen.astype(unsigned), raw).astype(unsigned).view(dtype)


_TO_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "NONE": np.rint,
    "RINT": np.rint,
    "CAST_RINT": np.rint,
    "ROUND": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "TRUNC": np.trunc,
    "ODD": lambda x: np.where(np.trunc(x) == x, x, np.trunc(x) + np.where(np.trunc(x) % 2 == 0, np.sign(x), 0)),
}


def to_integer(values: Array, dtype: np.dtype, mode: str, saturate: bool) -> Array:
    """Floats rounded to integers.

    Out of range: clamped when ``saturate`` or when ``dtype`` has 32 bits or more; otherwise
    converted to i32 first and truncated to the low bits. NaN gives 0.
    """
    integral = _TO_INTEGRAL[mode](values.astype(np.float64))
    integral = np.where(np.isnan(integral), 0.0, integral)
    if saturate or dtype.itemsize >= 4:
        return _clamp(integral, dtype)
    return _clamp(integral, np.dtype(np.int32)).astype(dtype)


def _clamp(values: Array, dtype: np.dtype) -> Array:
    info = np.iinfo(dtype)
    inside = (values > info.min) & (values < info.max)
    edge = np.where(values >= info.max, info.max, info.min).astype(dtype)
    return np.where(inside, np.where(inside, values, 0).astype(dtype), edge)


def convert(values: Array, dtype: np.dtype, mode: str = "CAST_RINT", saturate: bool = False) -> Array:
    """Elements of one type as another, by the rules of ``pto.tcvt``."""
    source = values.dtype
    if source == dtype:
        return values
    if is_floating(source) and is_floating(dtype):
        if dtype.itemsize >= source.itemsize and dtype == _F32:
            return values.astype(dtype)
        wide = values if source == _F32 else values.astype(np.float32)
        out = narrow(wide, dtype, mode)
        return _finite(out, wide, dtype) if saturate else out
    if is_floating(source):
        return to_integer(values, dtype, mode, saturate)
    if is_floating(dtype):
        exact = _sticky(values) if source.itemsize == 8 else values.astype(np.float64)
        out = narrow(exact, dtype, mode)
        return _finite(out, exact, dtype) if saturate else out
    if saturate and dtype.itemsize <= source.itemsize:
        info = np.iinfo(dtype)
        values = np.clip(values, max(info.min, np.iinfo(source).min), min(info.max, np.iinfo(source).max))
    return values.astype(dtype)


def pack_pairs(values: Array) -> Array:
    """4-bit elements, one a byte, packed two a byte along rows, the first in the low half."""
    raw = np.ascontiguousarray(values).view(np.uint8) & 0xF
    return raw[..., ::2] | raw[..., 1::2] << 4


def unpack_pairs(data: Array, dtype: np.dtype) -> Array:
    """What `pack_pairs` packed, as elements of ``dtype``."""
    return np.stack((data & 0xF, data >> 4), axis=-1).reshape(*data.shape[:-1], 2 * data.shape[-1]).view(dtype)


def _sticky(values: Array) -> Array:
    """64-bit integers in f64, the last bit set where bits were lost: enough to round them to f32 in any mode."""
    high = (values >> 32).astype(np.float64) * 2.0**32
    low = (values & 0xFFFFFFFF).astype(np.float64)
    total = high + low
    lost = low - (total - high)
    even = total.view(np.int64) % 2 == 0
    return np.where((lost != 0) & even, np.nextafter(total, np.where(lost > 0, np.inf, -np.inf)), total)


def _finite(rounded: Array, source: Array, dtype: np.dtype) -> Array:
    import ml_dtypes

    largest = dtype.type(ml_dtypes.finfo(dtype).max)
    wide = rounded.astype(np.float32)
    over = np.isinf(wide) & ~np.isnan(source.astype(np.float32))
    return np.where(over, np.where(wide > 0, largest, dtype.type(-largest)), rounded).astype(dtype)


def limits(dtype: np.dtype) -> tuple[object, object]:
    """Smallest and largest value of an element type, infinities for floats."""
    if is_floating(dtype):
        return dtype.type(-np.inf), dtype.type(np.inf)
    info = np.iinfo(dtype)
    return dtype.type(info.min), dtype.type(info.max)
