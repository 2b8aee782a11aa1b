"""Every elementwise instruction against numpy, for every type it takes, ragged, with awkward values."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from pto_text import Kernel, equal, names, tile_type

F16, F32, BF16 = np.float16, np.float32, ml_dtypes.bfloat16
ROWS, COLS, VALID_ROWS, VALID_COLS = 5, 32, 3, 29
AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-4, -1e4, np.inf, -np.inf, np.nan, 6.0e-8, 60000.0]


def values(dtype, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        data = rng.integers(info.min, info.max, (VALID_ROWS, VALID_COLS), dtype=dtype, endpoint=True)
        data[0, :6] = [0, 1, info.max, info.min, 7, info.max - 1]
        rng.shuffle(data[0, :6])
        return data
    data = rng.normal(0, 4, (VALID_ROWS, VALID_COLS)).astype(np.float32)
    data[0, : len(AWKWARD)] = rng.permutation(AWKWARD)
    return data.astype(dtype)


def run(op: str, inputs: list, out_dtype, *, scalars: str = "", arch: str = "a2a3", tmp: bool = False, attrs: str = ""):
    """Run one instruction on tiles larger than their valid regions."""
    kernel = Kernel(arch)
    words, args = [], []
    for value in inputs:
        if isinstance(value, np.ndarray):
            kind = names(value.dtype)
            view = kernel.tensor(*value.shape, kind)
            tile = kernel.tile(tile_type(ROWS, COLS, kind, valid=value.shape))
            kernel.load(view, tile)
            words.append(tile)
        else:
            words.append(f"{kernel.param(scalars)}:{scalars}")
        args.append(value)
    if tmp:
        words.append(kernel.tile(tile_type(ROWS, COLS, names(out_dtype))))
    out = np.zeros((VALID_ROWS, VALID_COLS), out_dtype)
    view = kernel.tensor(*out.shape, names(out.dtype))
    result = kernel.tile(tile_type(ROWS, COLS, names(out.dtype), valid=out.shape))
    kernel.op(op, words, [result], attrs)
    kernel.store(result, view)
    kernel.run(*args, out)
    return out


def as_f32(function, *arrays):
    """The function in f64, rounded to f32 and then to the type of the first array."""
    with np.errstate(all="ignore"):
        wide = function(*[array.astype(np.float64) for array in arrays])
        return wide.astype(arrays[0].dtype) if arrays[0].dtype == F32 else wide.astype(F32).astype(arrays[0].dtype)


def maximum(a, b):
    return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a > b, a, b))


FLOAT = {
    "tadd": lambda a, b: a + b,
    "tsub": lambda a, b: a - b,
    "tmul": lambda a, b: a * b,
    "tdiv": lambda a, b: a / b,
}


@pytest.mark.parametrize("op", FLOAT)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_float_arithmetic_rounds_once(op, dtype):
    a, b = values(dtype, 1), values(dtype, 2)
    with np.errstate(all="ignore"):
        want = FLOAT[op](a.astype(np.float64), b.astype(np.float64)).astype(dtype)
    equal(run(op, [a, b], dtype), want)


def test_bf16_addition_on_a5():
    a, b = values(BF16, 1), values(BF16, 2)
    with np.errstate(all="ignore"):
        want = (a.astype(F32) + b.astype(F32)).astype(BF16)
    equal(run("tadd", [a, b], BF16, arch="a5"), want)


@pytest.mark.parametrize("op", ["tmax", "tmin"])
@pytest.mark.parametrize("dtype", [F16, F32, np.int16, np.int32])
def test_extremes_keep_nan(op, dtype):
    a, b = values(dtype, 3), values(dtype, 4)
    sign = 1 if op == "tmax" else -1
    wide = sign * maximum(sign * a.astype(np.float64), sign * b.astype(np.float64))
    got = run(op, [a, b], dtype)
    np.testing.assert_array_equal(got.astype(np.float64), wide)


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
@pytest.mark.parametrize("op", ["tadd", "tsub", "tmul"])
def test_integers_wrap(op, dtype):
    a, b = values(dtype, 5), values(dtype, 6)
    exact = {"tadd": lambda x, y: x + y, "tsub": lambda x, y: x - y, "tmul": lambda x, y: x * y}[op]
    bits = np.dtype(dtype).itemsize * 8

    def wrapped(x: int, y: int) -> int:
        low = exact(x, y) % (1 << bits)
        return low - (1 << bits) if low >> (bits - 1) else low

    want = np.array([[wrapped(int(x), int(y)) for x, y in zip(r, s, strict=True)] for r, s in zip(a, b, strict=True)])
    equal(run(op, [a, b], dtype), want.astype(dtype))


def test_integer_division_truncates_toward_zero():
    a = np.array([[7, -7, 7, -7, 0, 5]], np.int32).repeat(VALID_ROWS, 0)
    a = np.pad(a, ((0, 0), (0, VALID_COLS - 6)), constant_values=9)
    b = np.pad(
        np.array([[2, 2, -2, -2, 3, 0]], np.int32).repeat(VALID_ROWS, 0),
        ((0, 0), (0, VALID_COLS - 6)),
        constant_values=4,
    )
    got = run("tdiv", [a, b], np.int32, arch="a5")
    assert got[0, :7].tolist() == [3, -3, -3, 3, 0, -1, 2]


SCALARS = {
    "tadds": lambda a, s: a + s,
    "tsubs": lambda a, s: a - s,
    "tmuls": lambda a, s: a * s,
    "tdivs": lambda a, s: a / s,
}


@pytest.mark.parametrize("op", SCALARS)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_tile_and_scalar(op, dtype):
    a, scalar = values(dtype, 7), dtype(-1.3)
    with np.errstate(all="ignore"):
        want = SCALARS[op](a.astype(np.float64), np.float64(scalar)).astype(dtype)
    equal(run(op, [a, scalar], dtype, scalars=names(dtype)), want)


@pytest.mark.parametrize("op", ["tadds", "tsubs", "tmuls", "tmaxs", "tmins"])
@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_tile_and_integer_scalar(op, dtype):
    a, scalar = values(dtype, 8), -3
    with np.errstate(over="ignore"):
        want = {
            "tadds": lambda: a + dtype(scalar),
            "tsubs": lambda: a - dtype(scalar),
            "tmuls": lambda: a * dtype(scalar),
            "tmaxs": lambda: np.where(a > scalar, a, dtype(scalar)),
            "tmins": lambda: np.where(a < scalar, a, dtype(scalar)),
        }[op]()
    equal(run(op, [a, scalar], dtype, scalars=names(dtype)), want)


@pytest.mark.parametrize("dtype", [F16, F32])
def test_scalar_divided_by_tile(dtype):
    a = values(dtype, 9)
    with np.errstate(all="ignore"):
        want = (2.0 / a.astype(np.float64)).astype(dtype)
    equal(run("tdivs", [dtype(2), a], dtype, scalars=names(dtype)), want)


UNARY = {
    "tabs": np.abs,
    "tneg": np.negative,
    "tsqrt": np.sqrt,
    "trecip": lambda x: 1 / x,
    "trelu": lambda x: np.where(np.isnan(x), np.nan, np.where(x > 0, x, 0)),
}


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_exactly_rounded_functions(op, dtype):
    a = values(dtype, 10)
    got, want = run(op, [a], dtype), as_f32(UNARY[op], a)
    if op == "trelu":
        np.testing.assert_array_equal(got, want)
    else:
        equal(got, want)


@pytest.mark.parametrize(("op", "function"), [("texp", math.exp), ("tlog", math.log), ("trsqrt", lambda x: x**-0.5)])
@pytest.mark.parametrize("dtype", [F16, F32])
def test_transcendental_functions(op, function, dtype):
    a = np.abs(values(dtype, 11)) if op != "texp" else values(dtype, 11)
    got = run(op, [a], dtype)
    for x, y in zip(a.astype(np.float64).ravel(), got.astype(np.float64).ravel(), strict=True):
        if math.isnan(x) or (x < 0 and op != "texp"):
            assert math.isnan(y)
        elif x == 0 and op != "texp":
            assert y == (-math.inf if op == "tlog" else math.inf)
        elif math.isinf(x):
            assert y == {"texp": math.inf if x > 0 else 0.0, "tlog": math.inf, "trsqrt": 0.0}[op]
        else:
            exact = min(function(min(x, 700) if op == "texp" else x), 1e300)
            with np.errstate(over="ignore"):
                want = float(np.array(exact).astype(dtype).astype(np.float64))
            tolerance = 4 * float(ml_dtypes.finfo(dtype).eps)
            assert y == want or abs(y - want) <= tolerance * abs(want) + 1e-7


def test_negation_and_relu_of_integers():
    a = values(np.int32, 12)
    with np.errstate(over="ignore"):
        equal(run("tneg", [a], np.int32), (0 - a).astype(np.int32))
    equal(run("trelu", [a], np.int32), np.where(a > 0, a, 0).astype(np.int32))


@pytest.mark.parametrize("dtype", [F16, F32])
def test_leaky_relu(dtype):
    a, slope = values(dtype, 13), F32(0.1)
    with np.errstate(all="ignore"):
        want = np.where(a > 0, a, (a * dtype(slope)).astype(dtype))
    equal(run("tlrelu", [a, slope], dtype, scalars="f32"), want)
    b = values(dtype, 14)
    with np.errstate(all="ignore"):
        equal(run("tprelu", [a, b], dtype), np.where(a > 0, a, a * b))


def test_fused_additions():
    a, b, c = (values(F32, seed) for seed in (15, 16, 17))
    with np.errstate(all="ignore"):
        equal(run("taddc", [a, b, c], F32), (a + b) + c)
        equal(run("tsubc", [a, b, c], F32), (a - b) + c)
        equal(run("taddsc", [a, F32(2), b], F32, scalars="f32"), (a + F32(2)) + b)
        equal(run("tsubsc", [a, F32(2), b], F32, scalars="f32"), (a - F32(2)) + b)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
@pytest.mark.parametrize("op", ["tand", "tor", "txor"])
def test_bitwise(op, dtype):
    a, b = values(dtype, 18), values(dtype, 19)
    function = {"tand": np.bitwise_and, "tor": np.bitwise_or, "txor": np.bitwise_xor}[op]
    equal(run(op, [a, b], dtype), function(a, b))
    kind = "i" + names(dtype).lstrip("ui")
    arch = "a5" if np.dtype(dtype).itemsize == 4 else "a2a3"
    equal(run(op + "s", [a, 0x35], dtype, scalars=kind, arch=arch), function(a, dtype(0x35)))


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32])
def test_shifts(dtype):
    a = values(dtype, 20)
    bits = np.dtype(dtype).itemsize * 8
    counts = np.random.default_rng(0).integers(0, bits, a.shape).astype(dtype)
    shifted = (a.astype(np.int64) << counts.astype(np.int64)).astype(dtype)
    equal(run("tshl", [a, counts], dtype), shifted)
    equal(run("tshr", [a, counts], dtype), (a.astype(np.int64) >> counts.astype(np.int64)).astype(dtype))
    kind = "i" + names(dtype).lstrip("ui")
    equal(run("tshls", [a, 3], dtype, scalars=kind), (a.astype(np.int64) << 3).astype(dtype))
    equal(run("tshrs", [a, 3], dtype, scalars=kind), (a.astype(np.int64) >> 3).astype(dtype))


def test_shift_by_the_width_empties_a_word_or_leaves_its_sign():
    a = np.full((VALID_ROWS, VALID_COLS), -5, np.int32)
    equal(run("tshls", [a, 32], np.int32, scalars="i32"), np.zeros_like(a))
    equal(run("tshrs", [a, 32], np.int32, scalars="i32"), np.full_like(a, -1))


def test_not():
    a = values(np.int16, 21)
    equal(run("tnot", [a], np.int16), -1 - a)


def test_remainders_take_the_sign_of_the_divisor_and_fmod_that_of_the_dividend():
    a, b = values(F32, 22), values(F32, 23)
    a[~np.isfinite(a)] = 5
    b[~np.isfinite(b) | (b == 0)] = -3
    got = run("trem", [a, b], F32, tmp=True)
    assert ((np.sign(got) == np.sign(b)) | (got == 0)).all() and (np.abs(got) <= np.abs(b)).all()
    equal(run("tfmod", [a, b], F32), np.fmod(a, b))
    small = np.clip(values(np.int32, 24), -100, 100)
    equal(run("trems", [small, 7], np.int32, scalars="i32"), ((small % 7) + 7) % 7)


@pytest.mark.parametrize(("dtype", "value"), [(F32, -1.5), (F16, np.inf), (np.int32, -7), (BF16, 3.25)])
def test_broadcast_of_a_scalar(dtype, value):
    kind = names(dtype)
    got = run("texpands", [dtype(value)], dtype, scalars=kind)
    equal(got, np.full(got.shape, value, dtype))


def test_power():
    a = np.abs(values(F32, 25))
    a[~np.isfinite(a)] = 2
    got = run("tpows", [a, F32(2), a], F32, scalars="f32")
    np.testing.assert_allclose(got, a.astype(np.float64) ** 2, rtol=1e-6)


def test_axpy_adds_into_its_destination():
    kernel = Kernel()
    src, dst = np.float32([[1.5, -2, 3, 0] * 8]), np.float32([[10, 20, 30, 40] * 8])
    a, d = kernel.tensor(1, 32, "f32"), kernel.tensor(1, 32, "f32")
    ta, td = (kernel.tile(tile_type(1, 32, "f32")) for _ in range(2))
    kernel.load(a, ta)
    kernel.load(d, td)
    kernel.op("taxpy", [ta, f"{kernel.param('f32')}:f32"], [td])
    kernel.store(td, d)
    want = dst + 2 * src
    kernel.run(src, dst, 2.0)
    equal(dst, want)
