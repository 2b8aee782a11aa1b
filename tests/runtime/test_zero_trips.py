"""Host programs whose loops run no iteration, or whose branches are not taken, run against numpy."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

import pypto.language as pl

TENSOR = "pl.Tensor[[8, 64], pl.FP32]"
KERNELS = f"""
import pypto.language as pl

@pl.program
class k:
    @pl.function(type=pl.FunctionType.InCore)
    def acc(self, a: {TENSOR}, o: pl.InOut[{TENSOR}]) -> {TENSOR}:
        t = pl.add(pl.load(o, [0, 0], [8, 64]), pl.load(a, [0, 0], [8, 64]))
        o = pl.store(t, [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Inline)
    def inl(self, a: {TENSOR}, o: {TENSOR}) -> {TENSOR}:
        o = self.acc(a, o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], y: pl.InOut[{TENSOR}]) -> {TENSOR}:
        s = pl.create_tensor([8, 64], dtype=pl.FP32)
        for b in pl.spmd(1):
            s = pl.store(pl.mul(pl.load(x, [0, 0], [8, 64]), 0.5), [0, 0], s)
"""
AROUND = {
    "for i in pl.range(n):": lambda n: n,
    "for i in pl.range(0):": lambda n: 0,
    "for i in pl.range(n):\n    for j in pl.range(n):": lambda n: n * n,
    "if n > 1:": lambda n: n > 1,
    "if n > 1:\n    for i in pl.range(n):": lambda n: n if n > 1 else 0,
    "for i in pl.range(n):\n    if i > 0:": lambda n: max(n - 1, 0),
    "w = pl.const(0, pl.INDEX)\nwhile w < n:\n    w = w + 1": lambda n: n,
}
BODIES = {
    "s = self.inl(x, s)\ns = self.acc(x, s)": 2,
    "s = self.inl(x, s)\ns = self.inl(x, s)": 2,
    "s = self.acc(x, s)\ns = self.inl(x, s)\ns = self.inl(x, s)": 3,
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("around", AROUND)
def test_what_a_loop_or_branch_carries_keeps_its_contents(around: str, body: str):
    header, depth = around.splitlines(), sum(line.endswith(":") for line in around.splitlines())
    lines = [*header, *("    " * depth + line for line in body.splitlines()), "y = self.acc(s, y)", "return y"]
    compiled = pl.compile(pl.parse(KERNELS + textwrap.indent("\n".join(lines), " " * 8) + "\n"))
    for n in (0, 2):
        x, y = np.full((8, 64), 4, np.float32), np.full((8, 64), 100, np.float32)
        compiled(x, n, y)
        assert (y == 102 + 4 * BODIES[body] * AROUND[around](n)).all()


def test_a_name_first_assigned_in_a_loop_that_may_not_run_is_refused():
    source = f"""
import pypto.language as pl

@pl.function
def k(x: {TENSOR}, n: pl.Scalar[pl.INDEX], y: pl.InOut[{TENSOR}]) -> {TENSOR}:
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(n):
            t = pl.add(x, 1.0)
    return t
"""
    with pytest.raises(ValueError, match="'t' is first assigned inside the loop and read after it"):
        pl.compile(pl.parse(source))
