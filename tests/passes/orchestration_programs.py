"""Kernels that the tests of the orchestration passes share, and what they look for."""

from __future__ import annotations

import text_programs
from text_programs import ORCHESTRATION, method

from pypto import ir

KERNELS = """
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
             ) -> pl.Tensor[[16, 16], pl.FP32]:
        written = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
        return written

    @pl.function(type=pl.FunctionType.InCore)
    def bump(self, acc: pl.InOut[pl.Tensor[[16, 16], pl.FP32]], by: pl.Scalar[pl.FP32]
             ) -> pl.Tensor[[16, 16], pl.FP32]:
        written = pl.store(pl.add(pl.load(acc, [0, 0], [16, 16]), by), [0, 0], acc)
        return written

    @pl.function(type=pl.FunctionType.InCore)
    def both(self, x: pl.Tensor[[16, 16], pl.FP32], a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
             b: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
             ) -> tuple[pl.Tensor[[16, 16], pl.FP32], pl.Tensor[[16, 16], pl.FP32]]:
        t = pl.load(x, [0, 0], [16, 16])
        b1 = pl.store(pl.mul(t, 3.0), [0, 0], b)
        a1 = pl.store(pl.mul(t, 2.0), [0, 0], a)
        return b1, a1
"""

PARAMS = (
    "x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]], "
    "io: pl.InOut[pl.Tensor[[16, 16], pl.FP32]], n: pl.Scalar[pl.INDEX]"
)
CREATE = "pl.create_tensor([16, 16], dtype=pl.FP32)"


def program(body: str, more: str = "", header: str = ORCHESTRATION):
    """The kernels above, ``more`` functions, and ``main`` of `PARAMS` with ``body``."""
    return text_programs.program(KERNELS, more, method("main", PARAMS, body, decorator=header))


def calls(function):
    """The calls and launches of functions in a function's body, in order."""
    nodes = ir.visitor.walk(function.body)
    return [n for n in nodes if isinstance(n, (ir.Call, ir.Submit)) and isinstance(n.op, ir.GlobalVar)]
