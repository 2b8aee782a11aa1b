"""With `memory_planner=PTOAS` tiles have no addresses: PTOAS places them, and the simulator where it runs the text."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import backend, ir, passes

BACKENDS = [backend.BackendType.Ascend910B, backend.BackendType.Ascend950]


@pl.program
class Pipeline:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.pipeline(4, stage=2):
                a = pl.slice(x, [16, 64], [i * 16, 0])
                y = pl.assemble(y, pl.add(pl.mul(a, 2.0), pl.exp(a)), [i * 16, 0])
        return y


@pl.program
class Carried:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.full([64, 64], dtype=pl.FP32, value=1.0)
            for _ in pl.range(3):
                acc = pl.add(acc, x)
            y = pl.assemble(y, acc, [0, 0])
        return y


@pl.program
class Product:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.assemble(y, pl.matmul(x, x), [0, 0])
        return y


PROGRAMS = {
    "a pipeline": (Pipeline, lambda x: 2 * x + np.exp(x)),
    "a carried tile": (Carried, lambda x: 1 + 3 * x),
    "a product": (Product, lambda x: x @ x),
}


@pytest.mark.parametrize("chip", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_tile_has_an_address_and_none_overlap(name, chip):
    program, expected = PROGRAMS[name]
    compiled = ir.compile(program, skip_ptoas=True, memory_planner=passes.MemoryPlanner.PTOAS, backend_type=chip)
    compiled.sanitize = True
    x = np.random.default_rng(1).random((64, 64)).astype(np.float32)
    y = np.zeros_like(x)
    compiled(x, y)
    np.testing.assert_allclose(y, expected(x), rtol=1e-5)
    text = "".join(compiled.pto.values())
    assert "pto.alloc_tile" in text and "addr =" not in text
    placed = ir.compile(program, skip_ptoas=True, backend_type=chip)
    assert "pto.alloc_tile addr =" in "".join(placed.pto.values())


def test_the_pass_context_says_who_plans():
    with passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS):
        compiled = pl.compile(Carried, skip_ptoas=True)
    assert "addr =" not in "".join(compiled.pto.values())
