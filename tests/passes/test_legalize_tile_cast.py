"""Chains of casts give what one instruction would: for every 16-bit value, and at the edges of wider ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pypto.language as pl
from pypto.backend import ASCEND910B, ASCEND950, Target
from pypto.dtypes import DataType
from pypto.passes.legalize_tile_cast import cast_chain
from pypto.pto.numerics import convert, is_floating, to_integer

MODES = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")
INTEGERS = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "INT64")
SOURCES = ("FP32", "FP16", "BF16", *INTEGERS)


def values(dtype: DataType) -> np.ndarray[Any, Any]:
    """All values of 16 bits and less; of wider types those around the edges of narrower ones."""
    kind = dtype.numpy
    if kind.itemsize <= 2:
        return np.arange(1 << 8 * kind.itemsize, dtype=f"u{kind.itemsize}").view(kind)
    edges = [s * (1 << b) for b in (0, 7, 8, 11, 15, 16, 24, 31) for s in (1, -1)]
    near = np.array([e + d for e in edges for d in range(-260, 261)], np.int64)
    if dtype is not DataType.FP32:
        return near.astype(kind)
    halves = near.astype(np.float32) / np.float32(2)
    up, down = (np.nextafter(halves, np.float32(s * np.inf)) for s in (1, -1))
    special = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e10, -0.0], np.float32)
    return np.concatenate([halves, up, down, special])


def through(chain: tuple[DataType, ...], found: Any, wanted: DataType, mode: str, saturate: bool) -> Any:
    for dtype in chain:
        if dtype is DataType.FP16 and found.dtype == np.int16 and wanted.is_int() and not saturate:
            found = found & 0xFF
        found = convert(found, dtype.numpy, mode, saturate)
    return found


def expected(given: Any, wanted: DataType, mode: str, saturate: bool) -> Any:
    if not saturate:
        return convert(given, wanted.numpy, mode)
    if is_floating(given.dtype):
        return to_integer(given, wanted.numpy, mode, True)
    low, high = wanted.int_range()
    return np.array([min(max(int(v), low), high) for v in given], wanted.numpy)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("target", [ASCEND910B, ASCEND950])
def test_chains_to_integers_are_exact(target: Target, saturate: bool):
    for source in (DataType[n] for n in SOURCES):
        given = values(source)
        for wanted in (DataType[n] for n in INTEGERS if n != source.name):
            chain = cast_chain(target, source, wanted, saturate)
            if chain is None or len(chain) == 1:
                continue
            for mode in MODES if source.is_float() else MODES[:1]:
                got, want = through(chain, given, wanted, mode, saturate), expected(given, wanted, mode, saturate)
                bad = got != want
                assert not bad.any(), f"{source} to {wanted} {mode}: {given[bad][0]} gives {got[bad][0]}"


def test_a_float_to_8_bits_is_rounded_once():
    assert cast_chain(ASCEND910B, DataType.FP32, DataType.INT8) == (DataType.INT16, DataType.FP16, DataType.INT8)
    assert cast_chain(ASCEND950, DataType.FP32, DataType.UINT8) == (DataType.INT16, DataType.UINT8)


def run(dtype: str, to: str, given: Any, target: str, **options: Any) -> Any:
    keywords = "".join(f", {k}={v!r}" for k, v in options.items())
    program = pl.parse(
        f"""
import pypto.language as pl
@pl.function
def f(x: pl.Tensor[[16, 32], pl.{dtype}], out: pl.Out[pl.Tensor[[16, 32], pl.{to}]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.cast(x, pl.{to}{keywords}), [0, 0])
    return out
"""
    )
    out = np.zeros((16, 32), DataType[to].numpy)
    pl.compile(program, target=target, dump_passes=False)(given, out)
    return out


EDGES = np.resize(
    np.array([2.4999999, 2.5, -2.5, 127.5, 128, 255.49998, 256, -129, 1000.7, -70000.3, 3e9, 2049, 4097.5, np.nan]), 512
).reshape(16, 32).astype(np.float32)  # fmt: skip


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
@pytest.mark.parametrize("to", ["INT8", "UINT8"])
def test_casts_to_8_bits_keep_the_low_bits(to: str, target: str):
    low_bits = convert(EDGES, DataType[to].numpy, "RINT")
    assert np.array_equal(run("FP32", to, EDGES, target, mode="rint"), low_bits)
    whole = np.arange(-32768, 32768, 128, dtype=np.int16).reshape(16, 32) + np.int16(1)
    assert np.array_equal(run("INT16", to, whole, target), whole.astype(DataType[to].numpy))


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
@pytest.mark.parametrize("to", ["INT8", "UINT8", "INT16"])
def test_casts_that_saturate_clamp(to: str, target: str):
    made = run("FP32", to, EDGES, target, mode="floor", saturate=True)
    low, high = DataType[to].int_range()
    assert np.array_equal(made, np.clip(np.floor(np.nan_to_num(EDGES, nan=0.0)), low, high).astype(made.dtype))


def test_a_float_out_of_range_is_infinite_or_the_largest():
    given = np.full((16, 32), 1e6, np.float32)
    assert np.isinf(run("FP32", "FP16", given, "Ascend910B")).all()
    assert (run("FP32", "FP16", given, "Ascend910B", saturate=True) == 65504).all()
