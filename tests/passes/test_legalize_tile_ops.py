"""Operators a target's instruction does not take as they are written: what they become, and that values stay right."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto.backend import ASCEND910B, ASCEND950

TARGETS = (ASCEND910B, ASCEND950)
HEAD = "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"
X = np.random.default_rng(5).integers(-50, 50, (16, 64))


def compiled(body, inputs, output, target, extra=""):
    params = [f"x{i}: pl.Tensor[{list(shape)}, pl.{dtype}]" for i, (shape, dtype) in enumerate(inputs)]
    params += [extra] * bool(extra) + [f"y: pl.Out[pl.Tensor[{list(output[0])}, pl.{output[1]}]]"]
    lines = "\n".join(f"    {line}" for line in body.strip().split("\n"))
    return pl.compile(pl.parse(f"{HEAD}def k({', '.join(params)}):\n{lines}\n"), target=target, skip_ptoas=True)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "UINT16", "UINT32"])
def test_constants_of_types_without_an_instruction_are_filled_in_as_others(target, dtype):
    y = np.zeros((16, 64), dtype.lower())
    compiled(f"pl.store(pl.tile.full([16, 64], dtype=pl.{dtype}, value=101), [0, 0], y)", [], (y.shape, dtype), target)(
        y
    )
    assert (y == 101).all()


@pytest.mark.parametrize("op", ["ands", "ors"])
@pytest.mark.parametrize("dtype", ["INT32", "UINT32"])
def test_bits_of_32_bit_tiles_and_a_scalar_are_combined_by_tiles(op, dtype):
    x, y = X.astype(dtype.lower()), np.zeros((16, 64), dtype.lower())
    body = f"a = pl.load(x0, [0, 0], [16, 64])\npl.store(pl.tile.{op}(a, 77), [0, 0], y)"
    kernel = compiled(body, [(x.shape, dtype)], (y.shape, dtype), ASCEND910B)
    kernel(x, y)
    assert (y == (x & 77 if op == "ands" else x | 77)).all() and f"pto.t{op} " not in kernel.pto["k"]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_sequences_of_unsigned_integers_are_counted_as_signed_ones(target):
    y = np.zeros((1, 64), np.uint16)
    body = "pl.store(pl.tile.ci(5, [1, 64], dtype=pl.UINT16, descending=True), [0, 0], y)"
    compiled(body, [], (y.shape, "UINT16"), target)(y)
    assert (y[0] == (5 - np.arange(64)).astype(np.uint16)).all()


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "FP32"])
def test_windows_of_columns_are_extracted_and_inserted_not_moved(dtype):
    x = X.astype("float32" if dtype == "FP32" else dtype.lower())
    y, part = np.zeros_like(x), np.zeros((8, 32), x.dtype)
    body = "a = pl.load(x0, [0, 0], [16, 64])\nb = pl.load(x1, [0, 0], [8, 32])\n"
    body += "pl.store(pl.tile.assemble(a, b, [4, 32]), [0, 0], y)"
    kernel = compiled(body, [(x.shape, dtype), ((8, 32), dtype)], (y.shape, dtype), ASCEND910B)
    kernel(x, x[:8, :32].copy(), y)
    want = x.copy()
    want[4:12, 32:] = x[:8, :32]
    assert (y == want).all() and "pto.tinsert" in kernel.pto["k"]
    body = "a = pl.load(x0, [0, 0], [16, 64])\npl.store(pl.move(a[4:12, 32:64], target_memory=pl.Mem.Vec), [0, 0], y)"
    kernel = compiled(body, [(x.shape, dtype)], (part.shape, dtype), ASCEND910B)
    kernel(x, part)
    assert (part == x[4:12, 32:]).all() and "pto.textract" in kernel.pto["k"]


@pytest.mark.parametrize(("source", "dtype"), [("FP16", "INT8"), ("FP16", "UINT8"), ("FP32", "INT16")])
def test_narrowing_casts_of_extents_known_at_run_time_convert_whole_tiles(source, dtype):
    x, y = X.astype("float16" if source == "FP16" else "float32"), np.zeros((16, 64), dtype.lower())
    body = f"v = pl.load(x0, [0, 0], [16, 64], valid_shape=[m, 64])\npl.store(pl.cast(v, pl.{dtype}), [0, 0], y)"
    compiled(body, [(x.shape, source)], (y.shape, dtype), ASCEND910B, "m: pl.Scalar[pl.INDEX]")(x, 5, y)
    assert (y[:5] == X[:5].astype(y.dtype)).all() and not y[5:].any()


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_masks_select_whatever_scratch_is_given(target):
    x, y = X.astype(np.float32), np.zeros((16, 64), np.float32)
    body = "a = pl.load(x0, [0, 0], [16, 64])\nb = pl.neg(a)\nm = pl.cmp(a, b, cmp_type=4)\n"
    body += "t = pl.tile.create([1, 32], dtype=pl.UINT8)\npl.store(pl.sel(m, a, b, t), [0, 0], y)"
    kernel = compiled(body, [(x.shape, "FP32")], (y.shape, "FP32"), target)
    kernel(x, y)
    assert (y == np.abs(x)).all()
    assert ("dtype=ui32" in kernel.pto["k"]) is (target is ASCEND910B)
