"""A second name of a tensor, read after the tensor was overwritten."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto.errors import KernelValueError


def program(*lines: str):
    body = "\n    ".join(lines)
    return pl.parse(f"""
import pypto.language as pl

@pl.function
def k(x: pl.Tensor[[8, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]],
      o: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):
    {body}
    return o
""")


AT = "with pl.at(level=pl.Level.CORE_GROUP):"
WRITE, READ = "y = pl.assemble(y, x, [0, 0])", "o = pl.assemble(o, pl.neg(t), [0, 0])"
STALE = {
    "in one region": [AT, "    t = y", f"    {WRITE}", f"    {READ}"],
    "in the next region": [AT, "    t = y", f"    {WRITE}", AT, f"    {READ}"],
    "named outside": ["t = y", AT, f"    {WRITE}", AT, f"    {READ}"],
    "a name of a name": ["t = y", "u = t", AT, f"    {WRITE}", AT, f"    {READ.replace('neg(t)', 'neg(u)')}"],
    "overwritten in a branch": [AT, "    t = y", "    if n > 0:", f"        {WRITE}", f"    {READ}"],
    "overwritten by the iteration before": [AT, "    t = y", "    for i in pl.range(2):", f"        {READ}",
                                            f"        {WRITE}"],
    "a part": [AT, "    t = y", f"    {WRITE}", "    u = pl.slice(t, [8, 64], [0, 0])",
               "    o = pl.assemble(o, u, [0, 0])"],
}  # fmt: skip


@pytest.mark.parametrize("case", STALE)
def test_a_name_of_what_was_overwritten_is_refused(case: str) -> None:
    with pytest.raises(KernelValueError, match=r"is another name of 'y', whose memory is overwritten \(line") as caught:
        pl.compile(program(*STALE[case]))
    text = str(caught.value)
    assert ("pl.slice(t," if case == "a part" else "pl.neg(") in text and "a tensor of its own" in text


FRESH = {
    "read before": [AT, "    t = y", f"    {READ}", f"    {WRITE}"],
    "named afterwards": [AT, f"    {WRITE}", "    t = y", f"    {READ}"],
    "named anew in each iteration": [AT, "    for i in pl.range(2):", "        t = y", f"        {READ}",
                                     f"        {WRITE}"],
    "overwritten on the other way": [AT, "    t = y", "    if n > 5:", f"        {WRITE}", "    else:",
                                     f"        {READ}"],
    "carried on": [AT, "    t = y", "    for i in pl.range(2):",
                   "        t = pl.assemble(t, pl.slice(x, [8, 64], [0, 0]), [0, 0])", f"    {READ}"],
    "its own name": [AT, f"    {WRITE}", "    y = y", f"    {READ.replace('neg(t)', 'neg(y)')}"],
}  # fmt: skip


@pytest.mark.parametrize("case", FRESH)
def test_what_is_read_in_time_runs(case: str) -> None:
    x, y, o = np.ones((8, 64), np.float32), np.full((32, 64), 2, np.float32), np.zeros((32, 64), np.float32)
    pl.compile(program(*FRESH[case]))(x, 0, y, o)
    first = {"read before": -2, "overwritten on the other way": -2}.get(case, -1)
    assert (o[:8] == first).all() and (o[8:] == -2).all()


@pl.jit
def written_by_its_second_name(x: pl.Tensor[[4, 64], pl.FP32], y: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
    rows = y
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(2):
            for j in pl.range(2):
                rows[i * 2 + j : i * 2 + j + 1, :] = pl.neg(x[i * 2 + j : i * 2 + j + 1, :])
    return y


def test_a_loop_may_write_a_tensor_by_its_second_name():
    x, y = np.arange(256, dtype=np.float32).reshape(4, 64), np.zeros((4, 64), np.float32)
    written_by_its_second_name(x, y)
    np.testing.assert_array_equal(y, -x)
