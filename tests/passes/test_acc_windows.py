"""Products made in their windows of an accumulator, and those that the vector cores join instead."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from texts import text_of

import pypto.language as pl
from pypto import ir, passes
from pypto.passes.acc_windows import acc_windows

R = np.random.default_rng(3)
A, B = (R.integers(-9, 9, s).astype(np.int8) for s in ((32, 64), (64, 192)))
WANT = A.astype(np.int32) @ B.astype(np.int32)


def product(name: str, start: int, width: int) -> list[str]:
    load = f"pl.load(b, [0, {start}], [64, {width}], target_memory=pl.Mem.Mat)"
    return [f"{name}_b = {load}", f"{name} = pl.matmul(ta, {name}_b)"]


def kernel(*lines: str) -> ir.Program:
    body = "\n        ".join(["ta = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)", *lines, "return out"])
    made = pl.parse(f"""
import pypto.language as pl

@pl.program
class Joined:
    @pl.function(type=pl.FunctionType.InCore)
    def joined(self, a: pl.Tensor[[32, 64], pl.INT8], b: pl.Tensor[[64, 192], pl.INT8], n: pl.Scalar[pl.INDEX],
               other: pl.InOut[pl.Tensor[[32, 192], pl.INT32]], out: pl.InOut[pl.Tensor[[32, 192], pl.INT32]]
               ) -> pl.Tensor[[32, 192], pl.INT32]:
        {body}
""")
    assert isinstance(made, ir.Program)
    return made


def run(program: ir.Program, target: str = "Ascend910B", n: int = 0) -> tuple[np.ndarray, np.ndarray]:
    other, out = (np.full((32, 192), -1, np.int32) for _ in range(2))
    pl.compile(program, target=target)(A, B, n, other, out)
    return other, out


CREATE = "whole = pl.tile.create([32, 192], pl.INT32, target_memory=pl.Mem.Acc)"
STORE = "out = pl.store(whole, [0, 0], out)"


def assemble(name: str, at: int | str, row: int = 0) -> str:
    return f"whole = pl.tile.assemble(whole, {name}, [{row}, {at}])"


THREE = [*product("p", 0, 64), *product("q", 64, 64), *product("r", 128, 64)]


@pytest.mark.parametrize("target", ["Ascend910B", "Ascend950"])
@pytest.mark.parametrize("first", [True, False], ids=["created first", "created last"])
def test_products_are_made_where_they_are_assembled(target: str, first: bool) -> None:
    joins = [assemble("p", 0), assemble("q", 64), assemble("r", 128)]
    program = kernel(*([CREATE, *THREE] if first else [*THREE, CREATE]), *joins, STORE)
    assert np.array_equal(run(program, target)[1], WANT)
    text = text_of(program)
    assert "tpush" not in text and text.count("outs(%whole") == 0
    views = [line.split(" = ")[0].strip() for line in text.splitlines() if "pto.subview" in line]
    assert views == ["%p", "%q", "%r"] and all(f"outs({v} : " in text for v in views)
    # All three lie in the accumulator: L0C holds 24 KiB of them, not twice that.
    assert text.count("loc=acc, dtype=i32, rows=32, cols=192") > 0 and "cols=64, v_row" not in "".join(
        line for line in text.splitlines() if "alloc_tile" in line and "loc=acc" in line
    )


def test_an_accumulator_that_is_created_late_is_not_shared_before() -> None:
    """``x`` is alive between the product and the creation of what it is made in."""
    between = [*product("x", 0, 192), "other = pl.store(x, [0, 0], other)"]
    program = kernel(*product("p", 64, 64), *between, CREATE, assemble("p", 64), STORE)
    other, out = run(program)
    assert np.array_equal(other, WANT) and np.array_equal(out[:, 64:128], WANT[:, 64:128])


JOINED_BY_VECTOR_CORES = {
    "at a column known at run time": [CREATE, *product("p", 0, 64), assemble("p", "n")],
    "used twice": [CREATE, *product("p", 0, 64), assemble("p", 0), assemble("p", 64)],
    "columns within a block": [CREATE, *product("p", 0, 64), assemble("p", 8)],
    "over another one": [CREATE, *product("q", 64, 64), *product("p", 0, 64), assemble("p", 0), assemble("q", 32)],
    "into a tile that is read before": [
        CREATE, *product("p", 0, 64), assemble("p", 0), "other = pl.store(whole, [0, 0], other)",
        *product("q", 64, 64), assemble("q", 64),
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", JOINED_BY_VECTOR_CORES)
def test_other_products_are_joined_by_the_vector_cores(case: str) -> None:
    program = kernel(*JOINED_BY_VECTOR_CORES[case], STORE)
    ssa = passes.convert_to_ssa()(program)
    (function,) = ssa.functions.values()
    assert len(acc_windows(function)) == (1 if case in ("over another one", "into a tile that is read before") else 0)
    text = text_of(program)
    assert "tpush_to_aiv" in text


def test_what_the_vector_cores_join_is_right() -> None:
    over = kernel(*JOINED_BY_VECTOR_CORES["over another one"], STORE)
    want = np.concatenate([WANT[:, :32], WANT[:, 64:128]], 1)
    assert np.array_equal(run(over)[1][:, :96], want)
    moving = kernel(*JOINED_BY_VECTOR_CORES["at a column known at run time"], STORE)
    assert np.array_equal(run(moving, n=96)[1][:, 96:160], WANT[:, :64])


@st.composite
def joins(draw: st.DrawFn) -> tuple[list[str], dict[int, tuple[int, int]]]:
    """Products of some columns, made and assembled in any order; which columns of the result they are."""
    widths = draw(st.lists(st.sampled_from([32, 64]), min_size=1, max_size=3))
    places = draw(st.permutations(range(len(widths))))
    starts: dict[int, int] = {}
    at = 0
    for i in places:
        starts[i], at = at, at + widths[i]
    made = {i: product(f"p{i}", 32 * i, widths[i]) for i in range(len(widths))}
    order = draw(st.permutations([("make", i) for i in made] + [("join", i) for i in made] + [("create", 0)]))
    lines: list[str] = []
    done: set[tuple[str, int]] = set()

    def write(what: str, i: int) -> None:
        if (what, i) in done:
            return
        if what == "join":
            write("make", i)
            write("create", 0)
        done.add((what, i))
        lines.extend({"make": made[i], "create": [CREATE], "join": [assemble(f"p{i}", starts[i])]}[what])

    for what, i in order:
        write(what, i)
    return lines, {starts[i]: (32 * i, widths[i]) for i in made}


@settings(max_examples=15, deadline=None)
@given(joins())
def test_products_in_any_order(case: tuple[list[str], dict[int, tuple[int, int]]]) -> None:
    lines, columns = case
    program = kernel(*lines, STORE)
    out = run(program)[1]
    for place, (start, width) in columns.items():
        assert np.array_equal(out[:, place : place + width], WANT[:, start : start + width])
    assert "tpush" not in text_of(program)
