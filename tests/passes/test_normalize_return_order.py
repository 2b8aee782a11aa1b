"""NormalizeReturnOrder: kernels return their parameters, in order, and callers pick the right elements."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes

from .checking import findings, run, unchanged
from .orchestration_programs import CREATE, calls, program

P = passes.IRProperty


def normalized(body, more=""):
    before = program(body, more)
    made = run(before, passes.normalize_return_order)
    assert findings(made, P.ReturnParamsExplicit) == []
    unchanged(made, passes.normalize_return_order)
    return made


def returned(function):
    return [v.name_hint for v in ir.flatten_to_stmts(function.body)[-1].values]


def picks(function):
    return [n.index for n in ir.visitor.walk(function.body) if isinstance(n, ir.TupleGetItemExpr)]


def test_results_are_parameters_in_order():
    made = normalized("p, q = self.both(x, out, io)\nreturn p")
    assert returned(made.get_function("both")) == ["a", "b"] and returned(made.get_function("fill")) == ["out"]
    assert picks(made.get_function("main")) == [1, 0]
    assert len(findings(program("return out"), P.ReturnParamsExplicit)) == 4


def test_a_task_id_stays_last():
    made = normalized("with pl.manual_scope():\n    (p, q), tid = pl.submit(self.both, x, out, io)\nreturn p")
    assert picks(made.get_function("main")) == [1, 0, 2]


TYPES = """
    @pl.function(type=pl.FunctionType.InCore)
    def mixed(self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX],
              a: pl.Out[pl.Tensor[[16, 16], pl.FP32]], b: pl.Out[pl.Tensor[[16, 16], pl.FP16]]
              ) -> tuple[pl.Scalar[pl.INDEX], pl.Tensor[[16, 16], pl.FP16], pl.Tensor[[16, 16], pl.FP32]]:
        t = pl.load(x, [0, 0], [16, 16])
        b1 = pl.store(pl.cast(t, pl.FP16), [0, 0], b)
        a1 = pl.store(t, [0, 0], a)
        m = n + 1
        return m, b1, a1
"""


def test_types_move_with_their_values():
    body = "h = pl.create_tensor([16, 16], dtype=pl.FP16)\nk, q, p = self.mixed(x, n, out, h)\nreturn p"
    made = normalized(body, TYPES)
    function = made.get_function("mixed")
    assert [str(getattr(t, "dtype", t)) for t in function.return_types] == ["fp32", "fp16", "index"]
    assert picks(made.get_function("main")) == [2, 1, 0]
    assert findings(made, P.TypeChecked, P.AssignTypeSymmetry) == []


def test_a_result_handed_on_as_a_whole_keeps_its_order():
    wrapper = """
    @pl.function(type=pl.FunctionType.Group)
    def wrapper(self, x: pl.Tensor[[16, 16], pl.FP32], a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
                b: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
                ) -> pl.Tuple[pl.Tensor[[16, 16], pl.FP32], pl.Tensor[[16, 16], pl.FP32]]:
        packed = self.both(x, a, b)
        return packed
"""
    made = normalized("p = self.wrapper(x, out, io)\nreturn x", wrapper)
    assert returned(made.get_function("both")) == ["b", "a"] and returned(made.get_function("wrapper")) == ["packed"]


def test_a_forwarded_tuple_becomes_parameters():
    wrapper = """
    @pl.function(type=pl.FunctionType.Group)
    def wrapper(self, x: pl.Tensor[[16, 16], pl.FP32], a: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
                b: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
                ) -> tuple[pl.Tensor[[16, 16], pl.FP32], pl.Tensor[[16, 16], pl.FP32]]:
        packed = self.both(x, a, b)
        return packed
"""
    made = normalized("p, q = self.wrapper(x, out, io)\nreturn p", wrapper)
    # The wrapper's callers know its results by position, so it keeps its own order.
    assert returned(made.get_function("wrapper")) == ["b", "a"] and picks(made.get_function("main")) == [0, 1]


def test_a_fresh_result_keeps_its_name():
    kernel = """
    @pl.function(type=pl.FunctionType.InCore)
    def other(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
              ) -> tuple[pl.Tensor[[16, 16], pl.FP32], pl.Tensor[[16, 16], pl.FP32]]:
        written = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)
        return x, written
"""
    made = normalized("p, q = self.other(x, out)\nreturn q", kernel)
    assert returned(made.get_function("other")) == ["out", "x"] and picks(made.get_function("main")) == [1, 0]


@pytest.mark.parametrize("twice", [False, True])
def test_swapped_results_reach_the_right_tensors(twice):
    body = f"t = {CREATE}\np, q = self.both(x, t, io)\n"
    body += "out = self.fill(p, out)\nio = self.bump(q, 1.0)\n" if twice else "out = self.fill(q, out)\n"
    compiled = pl.compile(program(body + "return out, io" if twice else body + "return out"))
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    out, io = np.zeros_like(x), np.zeros_like(x)
    compiled(x, out, io, 3)
    np.testing.assert_array_equal(out, 3 * x if twice else 2 * x)


def test_calls_carry_the_new_type():
    made = normalized("p, q = self.both(x, out, io)\nreturn p")
    (call,) = calls(made.get_function("main"))
    assert isinstance(call.type, ir.TupleType) and len(call.type.types) == 2
