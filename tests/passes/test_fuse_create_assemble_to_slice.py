"""FuseCreateAssembleToSlice: windows instead of copies, and only where nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest
import text_programs
from text_programs import ORCHESTRATION, method

import pypto.language as pl
from pypto import passes
from pypto.ir.program import summarize

from .checking import findings, run, unchanged

P = passes.IRProperty

KERNELS = """
    @pl.function(type=pl.FunctionType.InCore)
    def row(self, x: pl.Tensor[[4, 16], pl.FP32], r: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]
            ) -> pl.Tensor[[1, 16], pl.FP32]:
        written = pl.store(pl.mul(pl.load(x, [r, 0], [1, 16]), 2.0), [0, 0], out)
        return written

    @pl.function(type=pl.FunctionType.InCore)
    def total(self, x: pl.Tensor[[4, 16], pl.FP32], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]
              ) -> pl.Tensor[[1, 16], pl.FP32]:
        written = pl.store(pl.load(x, [1, 0], [1, 16]), [0, 0], out)
        return written

    @pl.function(type=pl.FunctionType.InCore)
    def half(self, x: pl.Tensor[[4, 16], pl.FP32], c: pl.Scalar[pl.INDEX],
             out: pl.Out[pl.Tensor[[2, 8], pl.FP32]]) -> pl.Tensor[[2, 8], pl.FP32]:
        written = pl.store(pl.load(x, [0, c], [2, 8]), [0, 0], out)
        return written
"""
ROW = "pl.create_tensor([1, 16], dtype=pl.FP32)"


def program(body, params="out: pl.Out[pl.Tensor[[4, 16], pl.FP32]], n: pl.Scalar[pl.INDEX]"):
    main = method("main", f"x: pl.Tensor[[4, 16], pl.FP32], {params}", body, decorator=ORCHESTRATION)
    return text_programs.program(KERNELS, main)


def fused(body, **options):
    """``main`` after the pass, and how many creates, slices and assembles it has."""
    prepared = run(program(body, **options), passes.convert_to_ssa, passes.normalize_stmt_structure)
    made = run(prepared, passes.fuse_create_assemble_to_slice)
    assert findings(made, P.SSAForm, P.TypeChecked) == []
    unchanged(made, passes.fuse_create_assemble_to_slice)
    text = str(made.get_function("main"))
    return text, tuple(text.count(f"tensor.{op}(") for op in ("create", "slice", "assemble"))


X = np.arange(64, dtype=np.float32).reshape(4, 16)

LOOP = f"""
for r in pl.range(4):
    t = {ROW}
    t = self.row(x, r, t)
    out = pl.assemble(out, t, [r, 0])
return out
"""
LATE = f"""
for r in pl.range(4):
    t = {ROW}
    q = 3 - r
    t = self.row(x, q, t)
    out = pl.assemble(out, t, [q, 0])
return out
"""
TWO = f"""
t = {ROW}
u = {ROW}
t = self.row(x, 1, t)
u = self.row(x, 2, u)
out = pl.assemble(out, t, [0, 0])
out = pl.assemble(out, u, [3, 0])
return out
"""


@pytest.mark.parametrize(
    ("body", "rows", "counts"),
    [(LOOP, [0, 1, 2, 3], (0, 1, 0)), (LATE, [0, 1, 2, 3], (0, 1, 0)), (TWO, [1, None, None, 2], (0, 2, 0))],
)
def test_what_is_assembled_is_written_in_place(body, rows, counts):
    text, found = fused(body)
    assert found == counts and "pl.yield_" not in text
    out = np.full((4, 16), -1, np.float32)
    pl.compile(program(body))(X, out, 0)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(out[i], 2 * X[row] if row is not None else -1)


def test_a_window_of_more_dimensions_drops_the_leading_ones():
    body = """
for b in pl.range(2):
    for c in pl.range(2):
        t = pl.create_tensor([2, 8], dtype=pl.FP32)
        t = self.half(x, c * 8, t)
        out = pl.assemble(out, t, [b, 0, c * 8])
return out
"""
    params = "out: pl.Out[pl.Tensor[[2, 2, 16], pl.FP32]]"
    text, found = fused(body, params=params)
    assert found == (0, 1, 0) and "[1, 2, 8]" in text
    out = np.zeros((2, 2, 16), np.float32)
    pl.compile(program(body, params))(X, out)
    np.testing.assert_array_equal(out, np.stack([X[:2], X[:2]]))


def test_other_carried_values_stay():
    body = f"""
k = n
while k < 4:
    t = {ROW}
    t = self.row(x, k, t)
    out = pl.assemble(out, t, [k, 0])
    k = k + 1
return out
"""
    text, found = fused(body)
    assert found == (0, 1, 0) and "out" not in text[text.index("while") : text.index("cond")]
    out = np.zeros((4, 16), np.float32)
    pl.compile(program(body))(X, out, 2)
    np.testing.assert_array_equal(out, np.where(np.arange(4)[:, None] < 2, 0, 2 * X))


FILLED = f"t = {ROW}\nt = self.row(x, 1, t)\n"
KEPT = {
    "assembled twice": f"{FILLED}out = pl.assemble(out, t, [0, 0])\nout = pl.assemble(out, t, [1, 0])\nreturn out",
    "read afterwards": f"""
{FILLED}
out = pl.assemble(out, t, [0, 0])
u = self.total(out, {ROW})
v = pl.assemble(out, u, [2, 0])
w = pl.assemble(v, t, [3, 0])
return w
""",
    "the target is read in between": f"""
t = {ROW}
t = self.total(out, t)
out = pl.assemble(out, t, [2, 0])
return out
""",
    "overlapping": f"""
{FILLED}
u = {ROW}
u = self.row(x, 2, u)
out = pl.assemble(out, u, [n, 0])
out = pl.assemble(out, t, [1, 0])
return out
""",
    "created outside": f"""
t = {ROW}
for r in pl.range(4):
    t = self.row(x, r, t)
    out = pl.assemble(out, t, [r, 0])
return out
""",
    "added": f"{FILLED}out = pl.assemble(out, t, [0, 0], atomic=pl.AtomicType.Add)\nreturn out",
    "a slice": "t = pl.slice(x, [1, 16], [0, 0])\nout = pl.assemble(out, t, [0, 0])\nreturn out",
}


@pytest.mark.parametrize("why", sorted(KEPT))
def test_copies_stay_where_a_window_would_be_seen(why):
    body = KEPT[why]
    _, (creates, slices, assembles) = fused(body)
    # In the case of two overlapping windows the one assembled first, right after its kernel, may still be fused.
    assert assembles == body.count("pl.assemble") - (why == "overlapping") and slices <= 1 and creates <= 2
    if why in ("added", "assembled twice", "a slice"):
        return
    out = np.arange(64, 128, dtype=np.float32).reshape(4, 16)
    expected = _reference(why, out.copy())
    pl.compile(program(body))(X, out, 1)
    np.testing.assert_array_equal(out, expected)


def _reference(why, out):
    if why == "read afterwards":
        out[0] = 2 * X[1]
        out[2], out[3] = out[1], 2 * X[1]
    elif why == "the target is read in between":
        out[2] = out[1]
    elif why == "overlapping":
        out[1] = 2 * X[2]
        out[1] = 2 * X[1]
    else:
        out[:] = 2 * X
    return out


def test_kernels_are_left_alone():
    made = run(program(LOOP), passes.convert_to_ssa, passes.fuse_create_assemble_to_slice)
    assert "tile.store" in summarize(made.get_function("row")).ops
