"""MaterializeValidShapeSymbols: extents only the caller knows arrive as parameters."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes

from .checking import run, unchanged

TEXT = """
VALID = pl.dynamic("VALID")

@pl.program
class Prog:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self,
               x: pl.Tensor[[16, 64], pl.FP32, pl.TensorView(valid_shape=[16, {slot}], layout=pl.TensorLayout.ND)],
               {more}out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 64])
        return pl.store(t, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX],
             out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
        part = pl.slice(x, [16, 64], [0, 0], valid_shape=[16, n])
        other = pl.slice(x, [16, 64], [0, 0], valid_shape=[16, m])
        out = self.kernel(part, {arg}out)
        return out
"""
SECOND = "y: pl.Tensor[[16, 64], pl.FP32, pl.TensorView(valid_shape=[16, VALID], layout=pl.TensorLayout.ND)], "


def program(slot="VALID", more="", arg=""):
    return pl.parse_program(TEXT.format(slot=slot, more=more, arg=arg))


def test_the_symbol_is_the_first_parameter_and_argument():
    before = run(program(more=SECOND, arg="part, "), passes.derive_call_directions)
    made = run(before, passes.materialize_valid_shape_symbols)
    kernel, main = made.get_function("kernel"), made.get_function("main")
    assert kernel.params[1].type.tensor_view.valid_shape[1] is kernel.params[0]
    (call,) = [n for n in ir.visitor.walk(main.body) if isinstance(n, ir.Call) and isinstance(n.op, ir.GlobalVar)]
    assert call.args[0] is main.params[1] and call.arg_directions[0] is ir.ArgDirection.Scalar
    assert len(call.args) == len(kernel.params) == len(call.arg_directions) == 4
    unchanged(made, passes.materialize_valid_shape_symbols)


def test_the_extent_reaches_the_kernel():
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    out = np.full_like(x, -1)
    text = TEXT.format(slot="VALID", more="", arg="").replace("[16, 64])\n", "[16, 64], valid_shape=[16, VALID])\n", 1)
    pl.compile(pl.parse_program(text))(x, 40, 8, out)
    np.testing.assert_array_equal(out[:, :40], x[:, :40])
    np.testing.assert_array_equal(out[:, 40:], -1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slot": "VALID * 2"}, "only inside an expression"),
        ({"more": SECOND, "arg": "other, "}, "is one extent, but the arguments of this call have two"),
    ],
)
def test_what_cannot_be_known_is_refused(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        passes.materialize_valid_shape_symbols()(program(**options))
    assert "hint" in str(caught.value) and "'VALID'" in str(caught.value)


def test_a_launch_that_leaves_the_argument_out_is_refused():
    text = """
VALID = pl.dynamic("VALID")

@pl.program
class Prog:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[64], pl.FP32],
               o: pl.Out[pl.Tensor[[64], pl.FP32, pl.TensorView(valid_shape=[VALID], layout=pl.TensorLayout.ND)]]
               ) -> pl.Tensor[[64], pl.FP32]:
        return pl.store(pl.load(x, [0], [64]), [0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
        with pl.manual_scope():
            out, tid = pl.submit(self.kernel, x)
        return out
"""
    with pytest.raises(ValueError, match="does not supply that argument"):
        passes.materialize_valid_shape_symbols()(pl.parse_program(text))
