"""Sine and cosine from arithmetic, and casts by way of other types."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.dtypes import DataType
from pypto.ir.visitor import walk
from pypto.passes.legalize_tile_cast import cast_chain

A2A3, A5 = backend.ASCEND910B, backend.ASCEND950


def names(program: ir.Program) -> list[str]:
    return [n.op.name for f in program.functions.values() for n in walk(f) if isinstance(n, ir.Call)]


@pl.program
class Waves:
    @pl.function(type=pl.FunctionType.InCore)
    def waves(
        self,
        x: pl.Tensor[[16, 64], pl.FP32],
        s: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
        c: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        t = pl.load(x, [0, 0], [16, 64])
        s = pl.store(pl.sin(t), [0, 0], s)
        c = pl.store(pl.cos(t), [0, 0], c)


def test_nothing_composite_is_left_and_a_second_run_changes_nothing():
    once = passes.lower_composite_ops()(passes.flatten_call_expr()(Waves))
    assert {"tile.sin", "tile.cos"}.isdisjoint(names(once))
    assert passes.lower_composite_ops()(once) is once


def test_without_composites_the_program_is_the_same_object():
    program = passes.lower_composite_ops()(Waves)
    assert passes.lower_composite_ops()(program) is program


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("reach", [1.0, 2 * np.pi, 2 * np.pi * 1024])
def test_sine_and_cosine_are_those_of_numpy(target, reach):
    compiled = pl.compile(Waves, target=target, skip_ptoas=True)
    x = np.random.default_rng(3).uniform(-reach, reach, (16, 64)).astype(np.float32)
    x[0, :4] = [0.0, -0.0, np.pi, -np.pi / 2]
    x[1, 0] = np.nan
    s, c = np.zeros_like(x), np.zeros_like(x)
    compiled(x, s, c)
    wide = x.astype(np.float64)
    assert np.nanmax(np.abs(s - np.sin(wide))) < 1e-5
    assert np.nanmax(np.abs(c - np.cos(wide))) < 1e-5
    assert np.isnan(s[1, 0]) and np.isnan(c[1, 0]) and np.isnan(s).sum() == 1


D = DataType


@pytest.mark.parametrize(
    "target, source, wanted, chain",
    [
        (A5, D.INT32, D.FP16, (D.FP32, D.FP16)),
        (A2A3, D.INT32, D.FP16, (D.FP16,)),
        (A2A3, D.FP32, D.INT8, (D.INT16, D.FP16, D.INT8)),
        (A5, D.FP4, D.FP8E4M3FN, (D.BF16, D.FP32, D.FP8E4M3FN)),
        (A2A3, D.FP16, D.BF16, (D.FP32, D.BF16)),
        (A5, D.BF16, D.HF8, (D.FP32, D.HF8)),
        (A5, D.UINT32, D.FP32, None),
        (A2A3, D.HF8, D.FP32, None),
        (A5, D.FP16, D.INT4, None),
    ],
)
def test_the_shortest_chain_that_keeps_every_value(target, source, wanted, chain):
    assert cast_chain(target, source, wanted) == chain


def test_no_chain_narrows_on_the_way():
    for target in (A2A3, A5):
        for source in target.casts:
            for wanted in target.casts:
                chain = cast_chain(target, source, wanted)
                if chain is None or source.is_float() or wanted.is_float():
                    continue
                low = max(source.int_range()[0], wanted.int_range()[0])
                high = min(source.int_range()[1], wanted.int_range()[1])
                for step in chain[:-1]:
                    if not step.is_float():
                        assert step.int_range()[0] <= low and high <= step.int_range()[1], (source, chain)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_cast_in_steps_rounds_once(target):
    @pl.function(type=pl.FunctionType.InCore)
    def shrink(
        x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.INT8]]
    ) -> pl.Tensor[[16, 32], pl.INT8]:
        y = pl.store(pl.cast(pl.load(x, [0, 0], [16, 32]), pl.INT8, mode="rint"), [0, 0], y)
        return y

    compiled = pl.compile(shrink, target=target, skip_ptoas=True)
    assert compiled.pto["shrink"].count("pto.tcvt") == 3
    x = np.random.default_rng(5).uniform(-127, 127, (16, 32)).astype(np.float32)
    x[0, :6] = [0.5, -0.5, 1.5, 2.5, 100.5001, 0.50001]
    assert np.array_equal(compiled(x, np.zeros((16, 32), np.int8)), np.rint(x).astype(np.int8))


def test_a_cast_no_chain_makes_is_refused_at_its_line():
    @pl.function(type=pl.FunctionType.InCore)
    def widen(
        x: pl.Tensor[[16, 32], pl.UINT32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        y = pl.store(pl.cast(pl.load(x, [0, 0], [16, 32]), pl.FP32), [0, 0], y)
        return y

    with pytest.raises(ValueError, match="no native cast path from uint32 to fp32") as caught:
        pl.compile(widen, target="a5", skip_ptoas=True)
    assert "pl.cast(" in str(caught.value) and "uint32 converts to" in str(caught.value)


def test_without_a_target_casts_stay_as_written():
    @pl.program
    class Shrink:
        @pl.function(type=pl.FunctionType.InCore)
        def shrink(self, x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.INT8]]):
            pl.store(pl.cast(pl.load(x, [0, 0], [16, 32]), pl.INT8), [0, 0], y)

    assert passes.legalize_tile_cast()(Shrink) is Shrink
