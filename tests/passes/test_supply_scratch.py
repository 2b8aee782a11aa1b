"""The 910B is given scratch for sequences and for conversions that keep the low bits; the 950 needs none."""

from __future__ import annotations

import numpy as np
import pytest
from text_programs import kernel

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import ASCEND910B, ASCEND950
from pypto.backend.scratch import narrowing_bytes
from pypto.dtypes import DataType
from pypto.ir.structural import assert_structural_equal


def supplied(before: ir.Program, target=ASCEND910B) -> ir.Program:
    with passes.PassContext([passes.VerificationInstrument(), ir.make_roundtrip_instrument()], target=target):
        return passes.supply_scratch()(before)


def params(source: str, out: str) -> str:
    return f"x: pl.Tensor[[16, 64], pl.{source}], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 64], pl.{out}]]"


LOAD, STORE = "t = pl.load(x, [0, 0], [16, 64])\n", "done = pl.store(y, [0, 0], out)\nreturn done"
TMP = "s = pl.tile.create([1, {}], dtype=pl.INT32)\n"


@pytest.mark.parametrize(("dtype", "words"), [("INT32", 192), ("UINT32", 192), ("INT16", 448), ("UINT16", 448)])
def test_a_sequence(dtype, words):
    head = f"out: pl.Out[pl.Tensor[[1, 64], pl.{dtype}]]"
    before = kernel(head, f"y = pl.tile.ci(3, [1, 64], dtype=pl.{dtype}, descending=True)\n" + STORE)
    after = kernel(
        head, TMP.format(words) + f"y = pl.tile.ci(3, [1, 64], dtype=pl.{dtype}, descending=True, tmp=s)\n" + STORE
    )
    made = supplied(before)
    assert_structural_equal(made, after)
    assert supplied(made) is made and supplied(before, ASCEND950) is before


@pytest.mark.parametrize(
    ("source", "target", "load", "words"),
    [
        ("FP32", "INT16", LOAD, 64),
        ("FP32", "INT16", LOAD.replace("64])", "64], [5, 19])"), 4 * 64 + 24),
        ("FP32", "INT16", LOAD.replace("64])", "64], [16, n])"), 15 * 64 + 64),
        ("FP16", "INT16", LOAD, 64),
        ("FP16", "INT8", LOAD.replace("64])", "64], [16, 10])"), 40),
        ("FP16", "INT8", LOAD, 64),
        ("FP16", "UINT8", LOAD, 64),
    ],
)
def test_a_conversion_that_keeps_low_bits(source, target, load, words):
    use = f"y = pl.tile.cast(t, target_type=pl.{target}, mode='rint'"
    made = supplied(kernel(params(source, target), load + use + ")\n" + STORE))
    expected = kernel(params(source, target), load + TMP.format(words) + use + ", tmp=s)\n" + STORE)
    assert_structural_equal(made, expected)


@pytest.mark.parametrize(("source", "target"), [("FP32", "INT32"), ("FP16", "FP32")])
def test_other_conversions_take_none(source, target):
    before = kernel(params(source, target), LOAD + f"y = pl.tile.cast(t, pl.{target}, 'rint')\n" + STORE)
    assert supplied(before) is before


def test_scratch_of_rows_that_are_longer_than_a_repeat():
    def bytes_of(rows, cols, stride):
        return narrowing_bytes(DataType.FP32, DataType.INT16, rows, cols, stride)

    assert bytes_of(1, 64 * 300, 64 * 300) == 256 * 255
    assert bytes_of(300, 65, 72) == 254 * 72 * 4 + 32
    assert bytes_of(1, 0, 64) == 32


@pytest.mark.parametrize("target", [ASCEND910B, ASCEND950], ids=lambda t: t.name)
def test_kernels_compute_the_same_with_it(target):
    text = (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def k(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 64], pl.INT16]], "
        "z: pl.Out[pl.Tensor[[1, 64], pl.INT32]]):\n"
        "    t = pl.load(x, [0, 0], [16, 64], valid_shape=[16, n])\n"
        "    pl.store(pl.cast(t, pl.INT16, 'rint'), [0, 0], y)\n"
        "    pl.store(pl.tile.ci(7, [1, 64], dtype=pl.INT32), [0, 0], z)\n"
    )
    compiled = pl.compile(pl.parse("import pypto.language as pl\n" + text), target=target, skip_ptoas=True)
    assert ("_tmp" in compiled.pto["k"]) is (target is ASCEND910B)
    x = np.array([0.5, 1.5, -2.5, 32768, 65536 + 3, -32769, np.inf, np.nan], np.float32)[None].repeat(16, 0)
    x, y, z = np.tile(x, (1, 8)), np.full((16, 64), 9, np.int16), np.zeros((1, 64), np.int32)
    compiled(x, 40, y, z)
    want = np.array([0, 2, -2, -32768, 3, 32767, -1, 0], np.int16)
    assert (y[:, :40] == np.tile(want, 5)).all() and (y[:, 40:] == 9).all() and (z == np.arange(7, 71)).all()


def test_scratch_that_is_too_small_is_replaced():
    text = (
        "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"
        "def k(x: pl.Tensor[[16, 64], pl.FP16], y: pl.Out[pl.Tensor[[16, 64], pl.INT8]], "
        "z: pl.Out[pl.Tensor[[1, 64], pl.INT16]]):\n"
        "    tmp = pl.create_tile([1, {words}], dtype=pl.INT32)\n"
        "    t = pl.load(x, [0, 0], [16, 64])\n"
        "    pl.store(pl.tile.cast(t, pl.INT8, 'rint', tmp={cast}), [0, 0], y)\n"
        "    pl.store(pl.tile.ci(7, [1, 64], dtype=pl.INT16, tmp={ci}), [0, 0], z)\n"
    )

    def compiled(target="Ascend910B", **given):
        return pl.compile(pl.parse(text.format(**{"cast": None, "ci": None, **given})), target=target, skip_ptoas=True)

    compiled(words=56, cast="tmp", ci="tmp", target="Ascend950")
    compiled(words=448, cast="tmp", ci="tmp")
    assert "cast_tmp" not in compiled(words=448, cast="tmp").pto["k"]
    assert "cast_tmp" in compiled(words=56, cast="tmp").pto["k"]
    assert "ci_tmp" in compiled(words=440, ci="tmp").pto["k"]
