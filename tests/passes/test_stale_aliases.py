"""A second name of a tensor, read after the tensor was overwritten."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.errors import KernelValueError
from pypto.passes import convert_to_ssa, stale_aliases


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


OLD = {
    "a region's result, in the next region": [
        AT, "    v = pl.mul(y, 2.0)", AT, "    t = pl.assemble(v, x, [0, 0])",
        AT, "    o = pl.assemble(o, pl.sub(t, v), [0, 0])"],
    "a parameter, in the next region": [
        AT, "    t = pl.assemble(y, x, [0, 0])", AT, "    o = pl.assemble(o, pl.sub(t, y), [0, 0])"],
    "a parameter, assembled in the same region": [
        AT, "    t = pl.assemble(y, x, [0, 0])", "    o = pl.assemble(o, y, [0, 0])"],
    "a window of it in the same region": [
        AT, "    t = pl.assemble(y, x, [0, 0])", "    o = pl.assemble(o, y[0:8, :], [8, 0])"],
    "as a target again": [
        AT, "    t = pl.assemble(y, x, [0, 0])", "    u = pl.assemble(y, x, [8, 0])",
        "    o = pl.assemble(o, u[0:8, :], [0, 0])"],
    "as a target in the next iteration": [
        AT, "    for i in pl.range(2):", "        t = pl.assemble(y, x, [i * 8, 0])",
        "        o = pl.assemble(o, t[0:8, :], [0, 0])"],
    "in the next iteration of the host": [
        "for i in pl.range(2):", f"    {AT}", "        t = pl.assemble(y, x, [0, 0])",
        "        o = pl.assemble(o, pl.add(t, y), [0, 0])"],
    "after one branch wrote": [
        AT, "    t = pl.mul(y, 2.0)", "    if n > 0:", "        t = pl.assemble(y, x, [0, 0])",
        AT, "    o = pl.assemble(o, pl.add(t, y), [0, 0])"],
    "a view of the host": [
        "v = pl.slice(y, [8, 64], [0, 0])", AT, "    y = pl.assemble(y, x, [0, 0])",
        AT, "    o = pl.assemble(o, pl.neg(v), [0, 0])"],
    "written through a view of the host": [
        "v = pl.slice(y, [8, 64], [0, 0])", AT, "    t = pl.assemble(v, x, [0, 0])",
        AT, "    o = pl.assemble(o, pl.add(t, y[0:8, :]), [0, 0])"],
    "a matrix operand": [
        AT, "    v = pl.mul(y, 2.0)", AT, "    t = pl.assemble(v, x, [0, 0])", "    u = pl.matmul(v, x, b_trans=True)",
        "    o = pl.assemble(o, u, [0, 0])"],
    "stored to, then loaded": [
        AT, "    t = pl.store(pl.load(x, [0, 0], [8, 64]), [0, 0], y)",
        "    o = pl.store(pl.load(y, [0, 0], [8, 64]), [0, 0], o)"],
    "carried": [
        AT, "    for i in pl.range(2):", "        t = pl.assemble(y, x, [0, 0])", AT,
        "    for i in pl.range(2):", "        o = pl.assemble(o, pl.add(y, 1.0), [0, 0])"],
}  # fmt: skip


@pytest.mark.parametrize("case", OLD)
def test_the_old_name_of_what_was_written_in_place_is_refused_where_it_is_read(case: str) -> None:
    with pytest.raises(KernelValueError, match="is overwritten .*, under another name, before '[yv]' is read here"):
        pl.compile(program(*OLD[case]))


def test_returning_an_old_name_is_refused() -> None:
    with pytest.raises(KernelValueError, match="the memory of 'o' is overwritten"):
        pl.compile(program(AT, "    t = pl.assemble(o, x, [0, 0])"))


COPIES = {
    "an operator in the same region": [
        AT, "    t = pl.assemble(y, x, [0, 0])", "    o = pl.assemble(o, pl.sub(t, y), [0, 0])"],
    "all in one region": [
        AT, "    v = pl.mul(y, 1.0)", "    t = pl.assemble(v, x, [0, 0])",
        "    o = pl.assemble(o, pl.sub(t, v), [0, 0])"],
    "computed and assembled in one region, read in the next": [
        AT, "    v = pl.mul(y, 1.0)", "    t = pl.assemble(v, x, [0, 0])",
        AT, "    o = pl.assemble(o, pl.sub(t, v), [0, 0])"],
    "a copy, as the message says": [
        AT, "    v = pl.mul(y, 1.0)", AT, "    copy = pl.add(v, 0.0)", "    copy = pl.assemble(copy, x, [0, 0])",
        AT, "    o = pl.assemble(o, pl.sub(copy, v), [0, 0])"],
}  # fmt: skip


@pytest.mark.parametrize("case", COPIES)
def test_old_names_that_are_right(case: str) -> None:
    x, y, o = np.ones((8, 64), np.float32), np.full((32, 64), 3, np.float32), np.zeros((32, 64), np.float32)
    pl.compile(program(*COPIES[case]))(x, 0, y, o)
    assert (o[:8] == -2).all() and (o[8:] == 0).all()


def test_the_check_is_linear_in_the_depth_of_loops() -> None:
    seen = []

    class Counting(stale_aliases._Names):
        def visit_assign_stmt(self, op):
            seen.append(op)
            super().visit_assign_stmt(op)

    depth = 12
    loops = [f"{'    ' * i}for i{i} in pl.range(2):" for i in range(depth)]
    lines = [*loops, f"{'    ' * depth}{AT}", f"{'    ' * depth}    {WRITE}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stale_aliases, "_Names", Counting)
        convert_to_ssa()(ir.Program([program(*lines)], "p"))
    assert len(seen) == len(set(seen)) == 1


def test_a_store_of_its_own_is_seen_by_operators_after_it() -> None:
    kernel = pl.parse("""
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[8, 64], pl.FP32], y: pl.InOut[pl.Tensor[[32, 64], pl.FP32]],
      o: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):
    pl.store(pl.load(x, [0, 0], [8, 64]), [0, 0], y)
    o = pl.assemble(o, pl.add(y, 1.0), [0, 0])
    return o
""")
    x, y, o = np.ones((8, 64), np.float32), np.full((32, 64), 3, np.float32), np.zeros((32, 64), np.float32)
    pl.compile(kernel)(x, y, o)
    assert (o[:8] == 2).all() and (o[8:] == 4).all()


VIEW, PART = "v = pl.reshape(y, [32, 64])", "v[0:8, :] = x"
BY_PART = {
    "by its name, in the next region": [VIEW, AT, f"    {PART}", AT, "    o[:, :] = pl.add(y, 1.0)"],
    "by windows, in the same region": [
        VIEW, AT, f"    {PART}", "    for i in pl.range(4):",
        "        o[i * 8 : i * 8 + 8, :] = pl.add(y[i * 8 : i * 8 + 8, :], 1.0)"],
    "by a view, when the tensor was assigned to": [
        VIEW, AT, "    y[0:8, :] = x", AT, "    o[:, :] = pl.add(v, 1.0)"],
    "written by iterations": [
        VIEW, AT, "    for i in pl.range(8):", "        v[i : i + 1, :] = x[i : i + 1, :]",
        AT, "    o[:, :] = pl.add(y, 1.0)"],
}  # fmt: skip


@pytest.mark.parametrize("case", BY_PART)
def test_assigned_parts_are_seen_by_every_name(case: str) -> None:
    x, y, o = np.ones((8, 64), np.float32), np.full((32, 64), 3, np.float32), np.zeros((32, 64), np.float32)
    pl.compile(program(*BY_PART[case]))(x, 0, y, o)
    assert (o[:8] == 2).all() and (o[8:] == 4).all()


LOADED = {
    "after it": [VIEW, AT, f"    {PART}", "    o[:, :] = pl.add(y, 1.0)"],
    "in the next iteration": [
        VIEW, AT, "    for i in pl.range(2):", "        o[:, :] = pl.add(y, 1.0)", f"        {PART}"],
}  # fmt: skip


@pytest.mark.parametrize("case", LOADED)
def test_assigned_parts_of_what_the_region_has_loaded_are_refused(case: str) -> None:
    with pytest.raises(KernelValueError, match="is overwritten .*, under another name, before 'y' is read here"):
        pl.compile(program(*LOADED[case]))


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
