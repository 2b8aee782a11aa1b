"""Matrix products through L1, L0A, L0B and L0C in their fractal layouts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from pto_text import ACC, ND, NZ, ZN, ZZ, Kernel, equal, names, tile_type

F16, F32, BF16 = np.float16, np.float32, ml_dtypes.bfloat16


def cube(arch: str = "a2a3") -> tuple[Kernel, str]:
    return Kernel(arch, "cube"), NZ if arch == "a5" else ZZ


def product(a, b, out_dtype, *, arch="a2a3", pad=(0, 0, 0), bias=None, attrs=""):
    """One product of whole matrices, in tiles ``pad`` larger than their valid regions."""
    (m, k), n = a.shape, b.shape[1]
    rows, depth, cols = m + pad[0], k + pad[1], n + pad[2]
    kernel, left = cube(arch)
    kind = names(a.dtype)
    acc_kind = "i32" if kind == "i8" else "f32"
    va, vb, vo = kernel.tensor(m, k, kind), kernel.tensor(k, n, kind), kernel.tensor(m, n, names(out_dtype))
    ma = kernel.tile(tile_type(rows, depth, kind, valid=(m, k), loc="mat", layout=NZ))
    mb = kernel.tile(tile_type(depth, cols, kind, valid=(k, n), loc="mat", layout=NZ))
    la = kernel.tile(tile_type(rows, depth, kind, valid=(m, k), loc="left", layout=left))
    rb = kernel.tile(tile_type(depth, cols, kind, valid=(k, n), loc="right", layout=ZN))
    acc = kernel.tile(tile_type(rows, cols, acc_kind, valid=(m, n), loc="acc", layout=ACC))
    kernel.load(va, ma)
    kernel.load(vb, mb)
    kernel.op("tmov", [ma], [la])
    kernel.op("tmov", [mb], [rb])
    args = [a, b]
    out = np.zeros((m, n), out_dtype)
    if bias is None:
        kernel.op("tmatmul", [la, rb], [acc])
        args += [out]
    else:
        vc = kernel.tensor(1, n, names(bias.dtype))
        mc = kernel.tile(tile_type(1, cols, names(bias.dtype), valid=(1, n), loc="mat", layout=ND))
        bc = kernel.tile(tile_type(1, cols, acc_kind, valid=(1, n), loc="bias", layout=ND))
        kernel.load(vc, mc)
        kernel.op("tmov", [mc], [bc])
        kernel.op("tmatmul.bias", [la, rb, bc], [acc])
        args += [out, bias]
    kernel.store(acc, vo, attrs=attrs)
    kernel.run(*args)
    return out


def matrices(dtype, m, k, n, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "i":
        return rng.integers(-128, 128, (m, k)).astype(dtype), rng.integers(-128, 128, (k, n)).astype(dtype)
    return rng.normal(0, 1, (m, k)).astype(dtype), rng.normal(0, 1, (k, n)).astype(dtype)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("dtype", [F16, BF16, F32])
def test_float_products(dtype, arch):
    a, b = matrices(dtype, 32, 64, 48)
    got = product(a, b, F32, arch=arch)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)


def test_integer_products_are_exact():
    a, b = matrices(np.int8, 16, 64, 32)
    equal(product(a, b, np.int32), a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("shape", [(13, 40, 9), (1, 16, 1), (16, 17, 31)])
def test_ragged_products_ignore_the_padding(shape):
    m, k, n = shape
    a, b = matrices(F16, m, k, n)
    pad = (-m % 16, -k % 16, -n % 16)
    got = product(a, b, F32, pad=pad)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("out", [F16, BF16])
def test_the_accumulator_is_rounded_to_nearest_even_on_the_way_out(out):
    a = np.eye(16, dtype=F32)
    step = float(ml_dtypes.finfo(out).eps)
    b = np.full((16, 16), 1 + step / 2, F32)
    b[0] = 1 + 3 * step / 2
    b[1], b[2] = -1e30, np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        want = b.astype(out)
    b2 = np.where(np.isfinite(b), b, 0).astype(F32)
    b2[1] = -3.0
    equal(product(a, b2, out), b2.astype(out))
    assert want[0, 0] == 1 + 2 * step


def test_bias_and_relu_on_the_way_out():
    a, b = matrices(F16, 16, 32, 32)
    bias = np.linspace(-3, 3, 32, dtype=F32).reshape(1, 32)
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(product(a, b, F32, bias=bias), exact, rtol=1e-5, atol=1e-4)
    got = product(a, b, F32, bias=bias, attrs="reluPreMode = #pto<relu_pre_mode normal_relu>")
    np.testing.assert_allclose(got, np.maximum(exact, 0), rtol=1e-5, atol=1e-4)


def test_accumulation_over_a_loop_of_k_blocks():
    kernel, left = cube()
    va, vb, vo = kernel.tensor(32, 128, "f16"), kernel.tensor(128, 32, "f16"), kernel.tensor(32, 32, "f32")
    ma = kernel.tile(tile_type(32, 32, "f16", loc="mat", layout=NZ))
    mb = kernel.tile(tile_type(32, 32, "f16", loc="mat", layout=NZ))
    la = kernel.tile(tile_type(32, 32, "f16", loc="left", layout=left))
    rb = kernel.tile(tile_type(32, 32, "f16", loc="right", layout=ZN))
    acc = kernel.tile(tile_type(32, 32, "f32", loc="acc", layout=ACC))
    for first in (True, False):
        if not first:
            step = kernel.const(32)
            kernel.lines.append(f"scf.for %k = {step} to {kernel.const(128)} step {step} {{")
        start = 0 if first else "%k"
        kernel.load(va, ma, (0, start, 32, 32))
        kernel.load(vb, mb, (start, 0, 32, 32))
        kernel.op("tmov", [ma], [la])
        kernel.op("tmov", [mb], [rb])
        if first:
            kernel.op("tmatmul", [la, rb], [acc])
        else:
            kernel.op("tmatmul.acc", [acc, la, rb], [acc])
            kernel.lines.append("}")
    kernel.store(acc, vo)
    a, b = matrices(F16, 32, 128, 32)
    out = np.zeros((32, 32), F32)
    report = kernel.run(a, b, out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)
    assert report.instructions["tmatmul.acc"] == 3 and report.instructions["tload"] == 8
    assert report.high_water["acc"] == 32 * 32 * 4 and report.cycles["M"] > 0


def test_parts_of_l1_tiles_feed_the_cube():
    kernel, left = cube()
    va, vb, vo = kernel.tensor(64, 64, "bf16"), kernel.tensor(64, 64, "bf16"), kernel.tensor(16, 32, "f32")
    ma, mb = (kernel.tile(tile_type(64, 64, "bf16", loc="mat", layout=NZ)) for _ in range(2))
    la = kernel.tile(tile_type(16, 32, "bf16", loc="left", layout=left))
    rb = kernel.tile(tile_type(32, 32, "bf16", loc="right", layout=ZN))
    acc = kernel.tile(tile_type(16, 32, "f32", loc="acc", layout=ACC))
    kernel.load(va, ma)
    kernel.load(vb, mb)
    kernel.op("textract", [ma, f"{kernel.const(48)}:index", f"{kernel.const(16)}:index"], [la])
    kernel.op("textract", [mb, f"{kernel.const(16)}:index", f"{kernel.const(32)}:index"], [rb])
    kernel.op("tmatmul", [la, rb], [acc])
    kernel.store(acc, vo)
    a, b = matrices(BF16, 64, 64, 64)
    out = np.zeros((16, 32), F32)
    kernel.run(a, b, out)
    want = a[48:, 16:48].astype(np.float64) @ b[16:48, 32:].astype(np.float64)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)


def test_a_row_vector_times_a_matrix():
    kernel, left = cube()
    va, vb, vo = kernel.tensor(1, 256, "f16"), kernel.tensor(256, 32, "f16"), kernel.tensor(1, 32, "f32")
    ma = kernel.tile(tile_type(1, 256, "f16", loc="mat", layout=ND))
    mb = kernel.tile(tile_type(256, 32, "f16", loc="mat", layout=NZ))
    la = kernel.tile(tile_type(1, 256, "f16", loc="left", layout=left))
    rb = kernel.tile(tile_type(256, 32, "f16", loc="right", layout=ZN))
    acc = kernel.tile(tile_type(1, 32, "f32", loc="acc", layout=ACC))
    kernel.load(va, ma)
    kernel.load(vb, mb)
    kernel.op("tmov", [ma], [la])
    kernel.op("tmov", [mb], [rb])
    kernel.op("tgemv", [la, rb], [acc])
    kernel.store(acc, vo)
    a, b = matrices(F16, 1, 256, 32)
    out = np.zeros((1, 32), F32)
    kernel.run(a, b, out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)


def test_the_accumulator_goes_back_to_l1_narrowed():
    kernel, left = cube()
    va, vb, vo = kernel.tensor(32, 32, "f16"), kernel.tensor(32, 32, "f16"), kernel.tensor(32, 32, "f16")
    ma, mb, mc = (kernel.tile(tile_type(32, 32, "f16", loc="mat", layout=NZ)) for _ in range(3))
    la = kernel.tile(tile_type(32, 32, "f16", loc="left", layout=left))
    rb = kernel.tile(tile_type(32, 32, "f16", loc="right", layout=ZN))
    acc = kernel.tile(tile_type(32, 32, "f32", loc="acc", layout=ACC))
    kernel.load(va, ma)
    kernel.load(vb, mb)
    kernel.op("tmov", [ma], [la])
    kernel.op("tmov", [mb], [rb])
    kernel.op("tmatmul", [la, rb], [acc])
    zero = f"{kernel.const(0)}:index"
    kernel.op("tinsert", [acc, zero, zero], [mc])
    kernel.op("tmov", [mc], [la])
    kernel.op("tmatmul", [la, rb], [acc])
    kernel.store(acc, vo)
    a, b = matrices(F16, 32, 32, 32)
    out = np.zeros((32, 32), F16)
    kernel.run(a, b, out)
    middle = (a.astype(F32) @ b.astype(F32)).astype(F16)
    np.testing.assert_allclose(
        out.astype(float), middle.astype(np.float64) @ b.astype(np.float64), rtol=2e-3, atol=1e-2
    )
