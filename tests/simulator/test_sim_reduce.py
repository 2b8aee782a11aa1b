"""Reductions and broadcasts: only valid elements count, whatever lies beside them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pto_text import COL, ND, Kernel, equal, names, tile_type

F16, F32 = np.float16, np.float32
ROWS, COLS = 16, 64
VALID = (13, 50)


def source(dtype, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-300, 300, VALID).astype(dtype)
    return rng.normal(0, 2, VALID).astype(dtype)


def reduce(op: str, data: np.ndarray, out_shape: tuple[int, int], out_dtype=None, arch: str = "a2a3") -> np.ndarray:
    kernel = Kernel(arch)
    kind, out_kind = names(data.dtype), names(out_dtype or data.dtype)
    view = kernel.tensor(*data.shape, kind)
    tile = kernel.tile(tile_type(ROWS, COLS, kind, valid=data.shape))
    scratch = kernel.tile(tile_type(ROWS, COLS, kind))
    row_wise = out_shape[1] == 1
    shape = (ROWS, 1) if row_wise else (1, COLS)
    out_view = kernel.tensor(*out_shape, out_kind, "dn" if row_wise else "nd")
    dst = kernel.tile(tile_type(*shape, out_kind, valid=out_shape, layout=COL if row_wise else ND))
    kernel.load(view, tile)
    if op in ("tcolmax", "tcolmin", "tcolprod"):
        kernel.op(op, [tile], [dst])
    else:
        kernel.op(op, [tile, scratch], [dst], "isBinary = true" if op == "tcolsum" else "")
    kernel.store(dst, out_view)
    out = np.zeros(out_shape, out_dtype or data.dtype)
    kernel.run(data, out)
    return out


@pytest.mark.parametrize("dtype", [F16, F32, np.int16, np.int32])
@pytest.mark.parametrize("axis", ["row", "col"])
def test_max_and_min(dtype, axis):
    data = source(dtype)
    shape = (VALID[0], 1) if axis == "row" else (1, VALID[1])
    lines = data if axis == "row" else data.T
    for word, pick in (("max", max), ("min", min)):
        want = np.array([pick(line.tolist()) for line in lines], dtype).reshape(shape)
        equal(reduce(f"t{axis}{word}", data, shape), want)


@pytest.mark.parametrize("dtype", [F16, F32])
@pytest.mark.parametrize("axis", ["row", "col"])
def test_float_sum_and_product(dtype, axis):
    data = source(dtype)
    data[data == 0] = 1
    shape = (VALID[0], 1) if axis == "row" else (1, VALID[1])
    lines = (data if axis == "row" else data.T).astype(np.float64)
    eps = float(np.finfo(dtype).eps)
    total = reduce(f"t{axis}sum", data, shape).ravel()
    for line, got in zip(lines, total, strict=True):
        assert abs(math.fsum(line) - float(got)) <= eps / 2 * abs(math.fsum(line)) + 2e-7 * np.abs(line).sum()
    small = (data / 8 + 1).astype(dtype)
    got = reduce(f"t{axis}prod", small, shape).ravel()
    want = [math.prod(line) for line in (small if axis == "row" else small.T).astype(np.float64)]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=4 * eps, atol=1e-6)


def test_f16_sums_are_accumulated_wider_and_rounded_once():
    data = np.full(VALID, 1, F16)
    data[:, 0] = 2048
    equal(reduce("trowsum", data, (VALID[0], 1)), np.full((VALID[0], 1), 2048 + 49, F32).astype(F16))


@pytest.mark.parametrize("dtype", [np.int16, np.int32])
def test_integer_sums_wrap(dtype):
    data = np.full(VALID, np.iinfo(dtype).max, dtype)
    total = (VALID[1] * int(np.iinfo(dtype).max)) % (1 << 8 * np.dtype(dtype).itemsize)
    want = np.array(total).astype(np.int64).astype(dtype)
    equal(reduce("trowsum", data, (VALID[0], 1)), np.full((VALID[0], 1), want, dtype))


def test_nan_and_infinities_in_reductions():
    data = source(F32)
    data[0, 3], data[1, 4], data[2, :2] = np.nan, np.inf, [np.inf, -np.inf]
    got = reduce("trowsum", data, (VALID[0], 1)).ravel()
    assert np.isnan(got[0]) and got[1] == np.inf and np.isnan(got[2]) and np.isfinite(got[3:]).all()
    top = reduce("trowmax", data, (VALID[0], 1)).ravel()
    assert np.isnan(top[0]) and top[1] == np.inf


def test_positions_of_extremes():
    data = source(F32)
    data[:, 7] = data.max() + 1
    equal(reduce("trowargmax", data, (VALID[0], 1), np.int32), np.full((VALID[0], 1), 7, np.int32))
    data[5, :] = data.min() - 1
    equal(reduce("tcolargmin", data, (1, VALID[1]), np.int32), np.full((1, VALID[1]), 5, np.int32))


OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": np.fmax,
    "min": np.fmin,
    "expdif": lambda a, b: np.exp(a - b),
}


@pytest.mark.parametrize("op", OPERATIONS)
@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("dtype", [F16, F32])
def test_broadcast_operations(op, axis, dtype):
    data = source(dtype, 1)
    vector = source(dtype, 2)[:, :1] if axis == "row" else source(dtype, 2)[:1]
    vector = np.where(np.abs(vector) < 0.2, dtype(1), vector)
    kernel = Kernel()
    kind = names(dtype)
    wide, narrow = kernel.tensor(*VALID, kind), kernel.tensor(*vector.shape, kind, "dn" if axis == "row" else "nd")
    tile = kernel.tile(tile_type(ROWS, COLS, kind, valid=VALID))
    line = kernel.tile(
        tile_type(ROWS, 1, kind, valid=vector.shape, layout=COL)
        if axis == "row"
        else tile_type(1, COLS, kind, valid=vector.shape)
    )
    kernel.load(wide, tile)
    kernel.load(narrow, line)
    out_view = kernel.tensor(*VALID, kind)
    kernel.op(f"t{axis}expand{op}", [tile, line], [tile])
    kernel.store(tile, out_view)
    out = np.zeros(VALID, dtype)
    kernel.run(data, np.ascontiguousarray(vector), out)
    if op == "expdif":
        difference = (data - vector).astype(dtype).astype(np.float64)
        np.testing.assert_allclose(out.astype(np.float64), np.exp(difference), rtol=2 * float(np.finfo(dtype).eps))
    else:
        equal(out, OPERATIONS[op](data.astype(np.float64), vector.astype(np.float64)).astype(dtype))


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("dtype", [np.int8, np.int32, F16])
def test_broadcast_alone(axis, dtype):
    kind = names(dtype)
    shape = (32, 1) if axis == "row" else (1, 32)
    vector = np.arange(32).astype(dtype).reshape(shape)
    kernel = Kernel()
    view = kernel.tensor(*shape, kind, "dn" if axis == "row" else "nd")
    line = kernel.tile(tile_type(*shape, kind, layout=COL) if axis == "row" else tile_type(*shape, kind))
    tile = kernel.tile(tile_type(32, 32, kind))
    kernel.load(view, line)
    kernel.op(f"t{axis}expand", [line], [tile])
    out = np.zeros((32, 32), dtype)
    kernel.store(tile, kernel.tensor(32, 32, kind))
    kernel.run(vector, out)
    equal(out, np.tile(vector, (1, 32) if axis == "row" else (32, 1)))


def test_partial_operation_takes_the_only_element_there_is():
    kernel = Kernel()
    a, b, o = kernel.tensor(8, 16, "f32"), kernel.tensor(5, 11, "f32"), kernel.tensor(8, 16, "f32")
    ta, td = kernel.tile(tile_type(8, 16, "f32")), kernel.tile(tile_type(8, 16, "f32"))
    tb = kernel.tile(tile_type(8, 16, "f32", valid=(5, 11)))
    kernel.load(a, ta)
    kernel.load(b, tb)
    kernel.op("tpartadd", [tb, ta], [td])
    kernel.store(td, o)
    x, y = np.full((8, 16), 2, F32), np.full((5, 11), 3, F32)
    out = np.zeros((8, 16), F32)
    kernel.run(x, y, out)
    want = x.copy()
    want[:5, :11] += 3
    equal(out, want)
