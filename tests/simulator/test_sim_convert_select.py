"""Conversions between types with every rounding mode, comparisons, selections, sequences and permutations."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from pto_text import Kernel, equal, names, tile_type

F16, F32, BF16 = np.float16, np.float32, ml_dtypes.bfloat16
N = 64


def cast(data: np.ndarray, dtype, mode: str = "CAST_RINT", saturate: str = "OFF", arch: str = "a2a3") -> np.ndarray:
    kernel = Kernel(arch)
    data = np.pad(data.reshape(1, -1), ((0, 0), (0, N - data.size)))
    view, out_view = kernel.tensor(1, N, names(data.dtype)), kernel.tensor(1, N, names(dtype))
    src, dst = kernel.tile(tile_type(1, N, names(data.dtype))), kernel.tile(tile_type(1, N, names(dtype)))
    kernel.load(view, src)
    attrs = f"rmode = #pto<round_mode {mode}>, satmode = #pto<saturation_mode {saturate}>"
    kernel.op("tcvt", [src], [dst], attrs)
    kernel.store(dst, out_view)
    out = np.zeros((1, N), dtype)
    kernel.run(data, out)
    return out.ravel()


def round_exactly(value: Fraction, mode: str) -> int:
    floor, fraction = math.floor(value), value - math.floor(value)
    if fraction == 0:
        return floor
    up = {
        "FLOOR": False,
        "CEIL": True,
        "TRUNC": value < 0,
        "ODD": floor % 2 == 0,
        "ROUND": fraction > Fraction(1, 2) or (fraction == Fraction(1, 2) and value > 0),
    }.get(mode, fraction > Fraction(1, 2) or (fraction == Fraction(1, 2) and floor % 2 == 1))
    return floor + up


MODES = ["NONE", "RINT", "CAST_RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"]
HALVES = np.array([-3.5, -2.5, -1.5, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1.5, 2.5, 3.5, 100.49, -100.51], F32)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_float_to_integer(mode, dtype):
    got = cast(HALVES, dtype, mode)[: HALVES.size]
    assert got.tolist() == [round_exactly(Fraction(float(x)), mode) for x in HALVES]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("dtype", "kept"), [(F16, 10), (BF16, 7)])
def test_narrowing_floats(mode, dtype, kept):
    rng = np.random.default_rng(0)
    data = (rng.normal(0, 1, 40) * 10.0 ** rng.integers(-3, 4, 40)).astype(F32)
    step = 2.0**-kept
    data[:8] = [
        1 + step / 2,
        1 + 3 * step / 2,
        -1 - step / 2,
        1 + step / 4,
        1 + 3 * step / 4,
        -1 - 3 * step / 4,
        2,
        -0.0,
    ]
    got = cast(data, dtype, mode)[: data.size]
    for x, y in zip(data.tolist(), got.astype(np.float64).tolist(), strict=True):
        exponent = math.frexp(x)[1] - 1 if x else 0
        if dtype is F16:
            exponent = max(exponent, -14)
        unit = Fraction(2) ** (exponent - kept)
        assert Fraction(y) == round_exactly(Fraction(x) / unit, mode) * unit, (x, y)


def test_overflow_wraps_saturates_or_becomes_infinite():
    data = np.array([40000, -40000, 1e10, np.inf, -np.inf, np.nan], F32)
    assert cast(data, np.int16, saturate="ON")[:6].tolist() == [32767, -32768, 32767, 32767, -32768, 0]
    assert cast(data, np.int16)[:3].tolist() == [40000 - 65536, 65536 - 40000, -1]
    assert cast(data, np.int32)[2:6].tolist() == [2**31 - 1, 2**31 - 1, -(2**31), 0]
    big = np.array([1e6, -1e6, np.nan, np.inf], F32)
    got = cast(big, F16)
    assert got[0] == np.inf and got[1] == -np.inf and np.isnan(got[2])
    got = cast(big, F16, saturate="ON")
    assert got[0] == 65504 and got[1] == -65504 and np.isnan(got[2]) and got[3] == 65504


@pytest.mark.parametrize(("source", "result"), [(np.int16, F16), (np.int32, F32), (np.int8, F16), (np.uint8, F16)])
def test_integers_to_floats(source, result):
    info = np.iinfo(source)
    data = np.array([0, 1, info.max, info.min, 3, info.max // 3], source)
    want = [float(np.float64(int(x)).astype(result)) for x in data]
    assert cast(data, result)[:6].astype(float).tolist() == want


@pytest.mark.parametrize(("source", "result"), [(F16, F32), (BF16, F32), (np.int16, F32), (np.int32, np.int64)])
def test_widening_is_exact(source, result):
    data = np.array([-3, -1, 0, 2, 5, 100]).astype(source)
    assert cast(data, result)[:6].astype(float).tolist() == [-3, -1, 0, 2, 5, 100]


def test_wider_integers_keep_their_low_bits_or_saturate():
    data = np.array([70000, -70000, 5], np.int32)
    assert cast(data, np.int16)[:3].tolist() == [70000 - 65536, 65536 - 70000, 5]
    assert cast(data, np.int16, saturate="ON")[:3].tolist() == [32767, -32768, 5]


COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def data_for(dtype, seed):
    rng = np.random.default_rng(seed)
    data = rng.integers(-2, 3, (4, 45)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        data[0, :3] = [np.nan, np.inf, -np.inf]
    return data


@pytest.mark.parametrize("mode", COMPARE)
@pytest.mark.parametrize("dtype", [F16, F32])
def test_compare_then_select(mode, dtype):
    kind = names(dtype)
    a, b = data_for(dtype, 1), data_for(dtype, 2)
    kernel = Kernel()
    va, vb, vo = (kernel.tensor(4, 45, kind) for _ in range(3))
    ta, tb, to = (kernel.tile(tile_type(4, 64, kind, valid=(4, 45))) for _ in range(3))
    mask = kernel.tile(tile_type(4, 64, "ui8"))
    kernel.load(va, ta)
    kernel.load(vb, tb)
    kernel.op("tcmp", [ta, tb], [mask], f"cmpMode = #pto<cmp {mode}>")
    kernel.op("tsel", [mask, ta, tb], [to])
    kernel.store(to, vo)
    out = np.zeros((4, 45), dtype)
    kernel.run(a, b, out)
    equal(out, np.where(COMPARE[mode](a, b), a, b))


@pytest.mark.parametrize("dtype", [np.int16, F32])
def test_compare_with_scalar_then_select_scalar(dtype):
    kind = names(dtype)
    a = data_for(dtype, 3)
    kernel = Kernel()
    va, vo = kernel.tensor(4, 45, kind), kernel.tensor(4, 45, kind)
    zero, fill = kernel.param(kind), kernel.param(kind)
    ta, to = (kernel.tile(tile_type(4, 64, kind, valid=(4, 45))) for _ in range(2))
    mask, scratch = kernel.tile(tile_type(4, 64, "i8")), kernel.tile(tile_type(1, 64, kind))
    kernel.load(va, ta)
    kernel.op("tcmps", [ta, f"{zero}:{kind}"], [mask], "cmpMode = #pto<cmp gt>")
    kernel.op("tsels", [mask, ta, scratch, f"{fill}:{kind}"], [to])
    kernel.store(to, vo)
    out = np.zeros((4, 45), dtype)
    kernel.run(a, out, 0, -9)
    equal(out, np.where(a > 0, a, dtype(-9)))


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
@pytest.mark.parametrize("descending", [False, True])
def test_sequence(dtype, descending):
    kernel = Kernel()
    kind = names(dtype)
    out_view = kernel.tensor(3, 10, kind)
    tile = kernel.tile(tile_type(4, 16, kind, valid=(3, 10)))
    start = kernel.param("i" + kind.lstrip("ui"))
    kernel.op("tci", [f"{start}:{'i' + kind.lstrip('ui')}"], [tile], f"descending = {str(descending).lower()}")
    kernel.store(tile, out_view)
    out = np.zeros((3, 10), dtype)
    kernel.run(out, 100)
    assert out.ravel().tolist() == [100 + (-k if descending else k) for k in range(30)]


@pytest.mark.parametrize("dtype", [np.int8, F16, BF16, F32])
def test_transpose(dtype):
    kind = names(dtype)
    data = np.arange(7 * 19).reshape(7, 19).astype(dtype)
    kernel = Kernel()
    view, out_view = kernel.tensor(7, 19, kind), kernel.tensor(19, 7, kind)
    src = kernel.tile(tile_type(32, 32, kind, valid=(7, 19)))
    dst = kernel.tile(tile_type(32, 32, kind, valid=(19, 7)))
    kernel.load(view, src)
    kernel.op("ttrans", [src, kernel.tile(tile_type(32, 32, kind))], [dst])
    kernel.store(dst, out_view)
    out = np.zeros((19, 7), dtype)
    kernel.run(data, out)
    equal(out, np.ascontiguousarray(data.T))


def test_concatenation_gather_and_triangle():
    kernel = Kernel()
    va, vi, vo, vt = (
        kernel.tensor(2, 16, "i32"),
        kernel.tensor(2, 16, "i32"),
        kernel.tensor(2, 32, "i32"),
        kernel.tensor(8, 8, "i32"),
    )
    ta, ti, tg = (kernel.tile(tile_type(2, 16, "i32")) for _ in range(3))
    tc = kernel.tile(tile_type(2, 32, "i32"))
    tt = kernel.tile(tile_type(8, 8, "i32"))
    diagonal = kernel.param("i32")
    kernel.load(va, ta)
    kernel.load(vi, ti)
    kernel.op("tgather", [ta, ti, kernel.tile(tile_type(2, 16, "i32"))], [tg])
    kernel.op("tconcat", [ta, tg], [tc])
    kernel.op("ttri", [f"{diagonal}:i32"], [tt], "upperOrLower = 1 : i32")
    kernel.store(tc, vo)
    kernel.store(tt, vt)
    a = np.arange(32, dtype=np.int32).reshape(2, 16) * 3
    index = np.random.default_rng(0).integers(0, 32, (2, 16)).astype(np.int32)
    out, tri = np.zeros((2, 32), np.int32), np.zeros((8, 8), np.int32)
    kernel.run(a, index, out, tri, 1)
    equal(out, np.hstack([a, index * 3]))
    assert all(tri[i, j] == (j >= i + 1) for i in range(8) for j in range(8))


@pytest.mark.parametrize("dtype", [F16, F32])
def test_sort_of_blocks_and_their_merge(dtype):
    kind, factor = names(dtype), 8 // np.dtype(dtype).itemsize
    cols = 32 * 4
    kernel = Kernel()
    vs, vi, vo, vm = (
        kernel.tensor(1, cols, kind),
        kernel.tensor(1, cols, "ui32"),
        kernel.tensor(1, cols * factor, kind),
        kernel.tensor(1, cols * factor, kind),
    )
    ts, ti = kernel.tile(tile_type(1, cols, kind)), kernel.tile(tile_type(1, cols, "ui32"))
    to, tm = (kernel.tile(tile_type(1, cols * factor, kind)) for _ in range(2))
    kernel.load(vs, ts)
    kernel.load(vi, ti)
    kernel.op("tsort32", [ts, ti], [to])
    kernel.op("tmrgsort", [to, f"{kernel.const(32 * factor, 'i32')}:i32"], [tm])
    kernel.store(to, vo)
    kernel.store(tm, vm)
    data = np.random.default_rng(1).permutation(cols).astype(dtype).reshape(1, cols)
    labels = np.arange(cols, dtype=np.uint32).reshape(1, cols)
    sorted_, merged = (np.zeros((1, cols * factor), dtype) for _ in range(2))
    kernel.run(data, labels, sorted_, merged)
    words = sorted_.reshape(cols, factor)
    for block in range(4):
        part = data[0, block * 32 : block * 32 + 32]
        order = sorted(range(32), key=lambda k: -part[k])
        assert words[block * 32 : block * 32 + 32, 0].tolist() == [part[k] for k in order]
        indices = np.ascontiguousarray(words[block * 32 : block * 32 + 32, factor // 2 :]).view(np.uint32).ravel()
        assert indices.tolist() == [block * 32 + k for k in order]
    assert merged.reshape(cols, factor)[:, 0].tolist() == sorted(data.ravel().tolist(), reverse=True)


@pytest.mark.parametrize(
    ("pattern", "step", "first"), [("P0101", 2, 0), ("P1010", 2, 1), ("P0100", 4, 2), ("P1111", 1, 0)]
)
def test_patterns_take_and_spread_elements(pattern, step, first):
    kernel = Kernel()
    wide, narrow = 64, 64 // step
    va, vo, vs = kernel.tensor(4, wide, "f32"), kernel.tensor(4, narrow, "f32"), kernel.tensor(4, wide, "f32")
    ta, to, ts = (kernel.tile(tile_type(4, n, "f32")) for n in (wide, narrow, wide))
    kernel.load(va, ta)
    for op, src, dst in (("tgather", ta, to), ("tscatter", to, ts)):
        kernel.emit(
            f'pto.{op} ins({src}, {{maskPattern = #pto.mask_pattern<{pattern}>}} : {kernel.types[src]}, "row") '
            f"outs({dst} : {kernel.types[dst]})"
        )
    kernel.store(to, vo)
    kernel.store(ts, vs)
    data = np.arange(4 * wide, dtype=F32).reshape(4, wide)
    out, spread = np.zeros((4, narrow), F32), np.ones((4, wide), F32)
    kernel.run(data, out, spread)
    equal(out, np.ascontiguousarray(data[:, first::step]))
    kept = (np.arange(wide) % step) == first
    equal(spread, np.where(kept, data, 0).astype(F32))
