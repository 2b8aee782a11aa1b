"""Numeric cases of conversions: every pair of dtypes a target converts, in every rounding mode.

The reference finds the two neighbours of the exact value and chooses between them, one element at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from operator_harness import Case, run_op
from operator_values import NUMPY, Array, assert_same, fill, is_float, ordinary, specials, wrap

from pypto.backend import Target
from pypto.dtypes import DataType

MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
ROWS, COLS = 16, 32


def _choose(mode: str, value: Fraction, low: Fraction, high: Fraction, low_is_even: bool) -> bool:
    """Whether ``value``, strictly between two neighbours, becomes the upper one."""
    if mode in ("floor", "ceil"):
        return mode == "ceil"
    if mode == "trunc":
        return value < 0
    if mode == "odd":
        return low_is_even
    if value - low != high - value:
        return value - low > high - value
    return value > 0 if mode == "round" else not low_is_even


def to_integer(value: Any, dtype: np.dtype, mode: str) -> int:
    """One float as an integer: 8 and 16 bits keep the low bits of the i32 it converts to, wider ones clamp."""
    wide = np.iinfo(dtype if dtype.itemsize >= 4 else np.int32)
    if isinstance(value, float) and not math.isfinite(value):
        found = 0 if math.isnan(value) else int(wide.max) if value > 0 else int(wide.min)
    else:
        exact = Fraction(value)
        found = math.floor(exact)
        if found != exact and _choose(mode, exact, Fraction(found), Fraction(found + 1), found % 2 == 0):
            found += 1
        found = min(max(found, int(wide.min)), int(wide.max))
    bits = dtype.itemsize * 8
    kept = found % 2**bits
    return kept - 2**bits if dtype.kind == "i" and kept >= 2 ** (bits - 1) else kept


@cache
def _largest(dtype: np.dtype) -> Fraction:
    return Fraction(float(ml_dtypes.finfo(dtype).max))


def _bits(value: Any, dtype: np.dtype) -> int:
    return int(np.asarray(value, dtype).reshape(1).view(f"u{dtype.itemsize}")[0])


def to_float(value: Any, dtype: np.dtype, mode: str) -> Any:
    """One number as a float of ``dtype``; what follows the largest value counts as infinity."""
    if isinstance(value, float) and (not math.isfinite(value) or value == 0):
        return dtype.type(value)
    exact = Fraction(value)
    largest = _largest(dtype)
    info = ml_dtypes.finfo(dtype)
    # Neighbours differ by a power of two that the magnitude gives, no smaller than the smallest subnormal.
    exponent = max(math.frexp(float(abs(exact)))[1] - 1, int(info.minexp)) if exact else int(info.minexp)
    while exponent > int(info.minexp) and Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(exact):
        exponent += 1
    unit = Fraction(2) ** (exponent - int(info.nmant))
    steps = math.floor(exact / unit)
    low, high = steps * unit, (steps + 1) * unit
    chosen = low
    if low != exact and _choose(mode, exact, low, high, steps % 2 == 0):
        chosen = high
    if abs(chosen) > largest:
        inward = mode in ("trunc", "odd") or (mode == "floor" and exact > 0) or (mode == "ceil" and exact < 0)
        finite = float(largest) * (1 if exact > 0 else -1)
        return dtype.type(finite if inward else math.copysign(math.inf, float(finite)))
    result = dtype.type(float(chosen))
    return dtype.type(-0.0) if chosen == 0 and exact < 0 else result


def converted(values: Array, dtype: np.dtype, mode: str) -> Array:
    if not is_float(values.dtype) and not is_float(dtype):
        return wrap(values.astype(object), dtype)
    source = values.astype(np.float64) if is_float(values.dtype) else values
    one = to_float if is_float(dtype) else to_integer
    return np.array([one(v, dtype, mode) for v in source.ravel().tolist()], dtype).reshape(values.shape)


@np.errstate(over="ignore")
def _values(source: np.dtype, target: np.dtype) -> Array:
    """Special and ordinary values, and ties and edges of ``target``."""
    rng = np.random.default_rng([source.itemsize, target.itemsize])
    picked = [specials(source)]
    if is_float(source):
        halves = np.array(
            [
                0.5,
                1.5,
                2.5,
                -0.5,
                -1.5,
                -2.5,
                0.49999997,
                126.5,
                127.5,
                255.5,
                256.5,
                -128.5,
                -129.0,
                32767.5,
                32768.5,
                65535.5,
                70000.0,
                -32769.0,
                2.0**31,
                -(2.0**31),
                3e9,
                1e19,
                -1e19,
            ]
        )
        picked.append(halves.astype(np.float32).astype(source))
    if is_float(source) and is_float(target) and target.itemsize < source.itemsize:
        info = ml_dtypes.finfo(target)
        unit, top, least = float(info.eps), float(info.max), float(info.smallest_subnormal)
        near = [
            1 + unit / 2,
            1 + 1.5 * unit,
            1 + unit / 4,
            top * (1 + unit / 4),
            top * (1 + unit),
            least / 2,
            least / 4,
            least * 1.5,
            least * 0.75,
        ]
        picked.append(np.array([s * v for v in near for s in (1.0, -1.0)]).astype(source))
    if not is_float(source):
        shifts = range(min(8 * source.itemsize - 1, 62))
        picked.append(np.array([(1 << k) + d for k in shifts for d in (-1, 0, 1)], np.int64).astype(source))
    found = np.concatenate(picked)[: ROWS * COLS]
    out = ordinary(source, (ROWS * COLS,), rng)
    if is_float(source):
        out = (out.astype(np.float32) * 40).astype(source)
    out[: len(found)] = found
    return out.reshape(ROWS, COLS)


def targets_of(source: DataType, target: Target) -> Iterable[DataType]:
    return [d for d in target.casts.get(source, ()) if d in NUMPY]


def _kernel(source: DataType, to: DataType, modes: Iterable[str]) -> str:
    shape, modes = f"[{ROWS}, {COLS}]", list(modes)
    outs = ", ".join(f"y{i}: pl.Out[pl.Tensor[{shape}, pl.{to.name}]]" for i in range(len(modes)))
    lines = [
        f"@pl.function(type=pl.FunctionType.InCore)\ndef k(x: pl.Tensor[{shape}, pl.{source.name}], "
        f"m: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX], {outs}):",
        f"    t = pl.load(x, [0, 0], {shape}, valid_shape=[m, n])",
    ]
    lines += [f"    pl.store(pl.tile.cast(t, pl.{to.name}, mode={m!r}), [0, 0], y{i})" for i, m in enumerate(modes)]
    return "\n".join(lines) + "\n"


def run(source: DataType, target: Target) -> None:
    for to in targets_of(source, target):
        x = _values(NUMPY[source], NUMPY[to])
        want = [converted(x, NUMPY[to], mode) for mode in MODES]
        for m, n in ((ROWS, COLS), (5, 19), (0, COLS)):
            outs = [fill(NUMPY[to], x.shape) for _ in MODES]
            run_op("tile.cast", _kernel(source, to, MODES), [x, m, n, *outs], target)
            for mode, out, expected in zip(MODES, outs, want):
                whole = fill(NUMPY[to], x.shape)
                whole[:m, :n] = expected[:m, :n]
                assert_same(out, whole, 0, f"{source.name} to {to.name}, {mode}, {m}x{n} on {target.name}")


CASES = [
    Case(
        "tile.cast",
        "",
        run,
        lambda target: [d for d in target.casts if d in NUMPY and targets_of(d, target)],
        per_target=True,
    )
]
