"""Kernels that load NZ tensors, and what BlockNzTensorViews makes of them."""

from __future__ import annotations

import pytest
import text_programs

from pypto import ir, passes
from pypto.errors import Diagnosed
from pypto.passes.pipeline import check_roundtrip

WEIGHT = "pl.Tensor[[256, 512], pl.INT8, pl.NZ]"


def kernel(body, tensor=WEIGHT):
    """A kernel of a weight ``w``, a scalar ``n`` and a tensor ``out``."""
    params = f"w: {tensor}, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 32], pl.INT8]]"
    return text_programs.kernel(params, body if isinstance(body, str) else "\n".join(body))


def load(offsets, window="[16, 32]", memory="pl.Mem.Mat"):
    return f"wt = pl.tile.load(w, {offsets}, {window}, target_memory={memory})"


def run(program):
    made = passes.block_nz_tensor_views()(run_to_flat(program))
    check_roundtrip("BlockNzTensorViews", made)
    return made


def loads(program):
    found = []
    for function in program.functions.values():
        found += [
            node for node in ir.visitor.walk(function.body) if isinstance(node, ir.Call) and node.name == "tile.load"
        ]
    return found


def offsets_of(program):
    (call,) = loads(program)
    return list(call.args[1].elements)


def values(dims):
    return [d.value for d in dims]


def becomes(before, expected):
    ir.assert_structural_equal(run(before), passes.convert_to_ssa()(expected))


def refused(program, message):
    with pytest.raises(ValueError, match=message) as caught:
        run(program)
    assert isinstance(caught.value, Diagnosed) and caught.value.hint
    return caught.value


def with_load(program, call):
    """``program`` with its one load, a statement of its own, replaced by ``call``."""
    function = program.get_function("kernel")
    stmts = [
        ir.AssignStmt(ir.Var("t", call.type), call, s.span)
        if isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.Call) and s.value.name == "tile.load"
        else s
        for s in ir.flatten_to_stmts(function.body)
    ]
    return program.with_functions([function.replace(body=ir.seq(stmts))])


def run_to_flat(program):
    return passes.flatten_tile_nd_to_2d()(passes.convert_to_ssa()(program))
