"""CanonicalizeTileSlice: Vec windows that start off a 32-byte boundary, and how they leave a scope."""

from __future__ import annotations

import pytest
from tile_slice_programs import becomes, program, run, untouched, vec

from pypto import ir

SPECIFICATION = {
    "collect: constants and their aliases through SSA": "test_offset_that_is_a_constant_variable",
    "collect: modular facts of scalar arithmetic": "test_offset_with_a_known_multiple",
    "other calls: misaligned address is copied": "test_misaligned_operand",
    "other calls: storage bits of the dtype": "test_alignment_counts_storage_bits",
    "other calls: MemRef byte offsets count, planner sentinels are aligned": "test_base_byte_offset",
    "other calls: EvalStmt": "test_misaligned_operand_of_a_statement",
    "other calls: aligned address stays": "test_aligned_operand_stays",
    "other calls: dynamic offset is copied": "test_dynamic_column",
    "escape: plain alias": "test_alias_is_the_copy",
    "escape: loop initial value": "test_loop_starts_from_the_copy",
    "escape: yield": "test_yield_hands_on_the_copy",
}
"""Rows of the specification, and the test of each."""


def test_every_row_has_its_test():
    assert set(SPECIFICATION.values()) <= set(globals())


# Alignment.


def column(
    window: str, dtype: str = "FP32", source: str = "[16, 64]", shape: str = "[16, 1]", more: str = "", pre: str = ""
):
    """A kernel that doubles a window ``s`` of ``t``."""
    name = window.partition(" ")[0]
    lines = f"{pre}{window}\ny = pl.tile.muls({name}, 2)"
    return vec(lines, source=f"{source}, pl.{dtype}", out=f"{shape}, pl.{dtype}", more=more)


def copied(row: object, col: object, shape: str = "[16, 1]") -> str:
    return f"e = pl.tile.extract(t, {row}, {col}, shape={shape}, target_memory=pl.Mem.Vec)"


@pytest.mark.parametrize("offset", [1, 4, 7, 9, 60])
def test_misaligned_operand(offset):
    becomes(column(f"s = pl.tile.slice(t, [16, 1], [0, {offset}])"), column(copied(0, offset)))


@pytest.mark.parametrize(
    ("row", "col", "source"), [(0, 0, "[16, 64]"), (0, 8, "[16, 64]"), (1, 8, "[16, 64]"), (2, 0, "[16, 12]")]
)
def test_aligned_operand_stays(row, col, source):
    untouched(column(f"s = pl.tile.slice(t, [8, 4], [{row}, {col}])", source=source, shape="[8, 4]"))


def test_row_stride_counts():
    becomes(
        column("s = pl.tile.slice(t, [8, 4], [1, 0])", source="[16, 12]", shape="[8, 4]"),
        column(copied(1, 0, "[8, 4]"), source="[16, 12]", shape="[8, 4]"),
    )


@pytest.mark.parametrize(("dtype", "aligned"), [("FP32", 8), ("INT32", 8), ("FP16", 16), ("INT16", 16)])
def test_alignment_counts_storage_bits(dtype, aligned):
    for offset in (aligned, 2 * aligned):
        untouched(column(f"s = pl.tile.slice(t, [16, 16], [0, {offset}])", dtype, shape="[16, 16]"))
    offset = aligned // 2
    becomes(
        column(f"s = pl.tile.slice(t, [16, 16], [0, {offset}])", dtype, shape="[16, 16]"),
        column(copied(0, offset, "[16, 16]"), dtype, shape="[16, 16]"),
    )


def test_store_of_a_misaligned_window():
    becomes(
        vec("y = pl.tile.slice(t, [16, 32], [0, 4])", out="[16, 32], pl.FP32"),
        vec("y = pl.tile.extract(t, 0, 4, shape=[16, 32], target_memory=pl.Mem.Vec)", out="[16, 32], pl.FP32"),
    )


def test_misaligned_operand_of_a_statement():
    """A call nothing binds."""
    kernel = """
t = pl.tile.load(x, [0, 0], [16, 8], target_memory=pl.Mem.Vec)
s = {}
pl.tile.store(s, [0, 0], out)
"""
    params = "x: pl.Tensor[[16, 8], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]"
    copy = "pl.tile.extract(t, 0, 1, shape=[16, 1], target_memory=pl.Mem.Vec)"
    before = program(params, kernel.format("pl.tile.slice(t, [16, 1], [0, 1])"), "")
    becomes(before, program(params, kernel.format(copy), ""))


INDEX = "i: pl.Scalar[pl.INDEX], "


def test_dynamic_column():
    becomes(column("s = pl.tile.slice(t, [16, 1], [0, i])", more=INDEX), column(copied(0, "i"), more=INDEX))


def test_dynamic_row_of_aligned_rows_stays():
    untouched(column("s = pl.tile.slice(t, [1, 16], [i, 8])", shape="[1, 16]", more=INDEX))


def test_offset_that_is_a_constant_variable():
    pre = "first: pl.Scalar[pl.INDEX] = {}\ncol: pl.Scalar[pl.INDEX] = first\n"
    window = "s = pl.tile.slice(t, [16, 1], [0, col])"
    untouched(column(window, pre=pre.format(16)))
    becomes(column(window, pre=pre.format(3)), column(copied(0, 3), pre=pre.format(3)))


@pytest.mark.parametrize(
    "col",
    ["i * 8", "8 * i", "i * 4 * 2", "i * 16 + 24", "24 - i * 8", "(i + 1) * 8", "i * 8 + i * 16", "(2 * i) * (4 * i)"],
)
def test_offset_with_a_known_multiple(col):
    untouched(column("s = pl.tile.slice(t, [16, 1], [0, col])", more=INDEX, pre=f"col: pl.Scalar[pl.INDEX] = {col}\n"))


@pytest.mark.parametrize("col", ["i * 4", "i + 8", "i * 8 + 4", "8 - i", "i * 2 * i"])
def test_offset_without_a_sufficient_multiple(col):
    pre = f"col: pl.Scalar[pl.INDEX] = {col}\n"
    becomes(
        column("s = pl.tile.slice(t, [16, 1], [0, col])", more=INDEX, pre=pre),
        column(copied(0, "col"), more=INDEX, pre=pre),
    )


def test_multiple_through_several_definitions():
    names = {"block": "i * 16", "other": "block", "col": "other * 2"}
    pre = "".join(f"{name}: pl.Scalar[pl.INDEX] = {value}\n" for name, value in names.items())
    untouched(column("s = pl.tile.slice(t, [16, 16], [0, col])", "INT32", shape="[16, 16]", more=INDEX, pre=pre))


LOOP = """
z = pl.tile.create([16, 1], dtype=pl.FP32, target_memory=pl.Mem.Vec)
for col, (carried,) in pl.range(0, 64, {}, init_values=(z,)):
    {}
    next_ = pl.tile.add(carried, s)
    y = pl.yield_(next_)
"""
COLUMN = "s = pl.tile.slice(t, [16, 1], [0, col])"


def test_offset_that_is_a_loop_variable():
    out = "[16, 1], pl.FP32"
    untouched(vec(LOOP.format(8, COLUMN), out=out))
    copy = "s = pl.tile.extract(t, 0, col, shape=[16, 1], target_memory=pl.Mem.Vec)"
    becomes(vec(LOOP.format(4, COLUMN), out=out), vec(LOOP.format(4, copy), out=out))


def test_chain_of_misaligned_slices_can_be_aligned():
    """What counts is where the last window starts."""
    untouched(
        column(
            "s = pl.tile.slice(h, [16, 16], [0, 4])", shape="[16, 16]", pre="h = pl.tile.slice(t, [16, 32], [0, 4])\n"
        )
    )


def test_chain_of_aligned_slices_can_be_misaligned():
    """Row 1 of a window of 8 columns lies where row 1 of the 12-column tile does."""
    kernel = dict(source="[16, 12]", shape="[8, 8]")
    made = run(column("s = pl.tile.slice(h, [8, 8], [1, 0])", pre="h = pl.tile.slice(t, [16, 8], [0, 0])\n", **kernel))
    ir.assert_structural_equal(made, column(copied(1, 0, "[8, 8]"), **kernel))


@pytest.mark.parametrize(("offset", "aligned"), [(0, True), (64, True), (-1, True), (4, False), (16, False)])
def test_base_byte_offset(offset, aligned):
    """A known offset of the base counts; -1 stands for an allocation that has no address yet."""
    memref = f'pl.MemRef("mem_vec_0", {offset}, 4096)'
    lines = f"""
t: pl.Tile[[16, 64], pl.FP32, {memref}, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
s = pl.tile.slice(t, [16, 8], [0, 8])
y = pl.tile.muls(s, 2.0)
out = pl.tile.store(y, [0, 0], out)
return out
"""
    tensor = "pl.Tensor[[16, 8], pl.FP32]"
    before = program(f"x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[{tensor}]", lines, tensor)
    assert (run(before) is before) == aligned


def test_unknown_base_byte_offset():
    """An offset that is no constant proves nothing."""
    lines = """
n: pl.Scalar[pl.INDEX] = i * 32
t: pl.Tile[[16, 64], pl.FP32, pl.MemRef("mem_vec_0", n, 4096), pl.Mem.Vec] = pl.tile.load(
    x, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
s = pl.tile.slice(t, [16, 8], [0, 8])
y = pl.tile.muls(s, 2.0)
out = pl.tile.store(y, [0, 0], out)
return out
"""
    tensor = "pl.Tensor[[16, 8], pl.FP32]"
    before = program(f"x: pl.Tensor[[16, 64], pl.FP32], {INDEX}out: pl.Out[{tensor}]", lines, tensor)
    assert run(before) is not before


def test_tile_without_a_memory_yet_is_a_vector_tile():
    lines = """
t = pl.tile.load(x, [0, 0], [16, 64])
s = {}
y = pl.tile.muls(s, 2.0)
out = pl.tile.store(y, [0, 0], out)
return out
"""
    params, result = (
        "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]",
        "pl.Tensor[[16, 1], pl.FP32]",
    )
    becomes(
        program(params, lines.format("pl.tile.slice(t, [16, 1], [0, 1])"), result),
        program(params, lines.format("pl.tile.extract(t, 0, 1, shape=[16, 1], target_memory=pl.Mem.Vec)"), result),
    )


def test_tile_without_a_memory_yet_that_a_matmul_reads_is_none():
    untouched(
        program(
            "x: pl.Tensor[[32, 64], pl.FP16], w: pl.Tensor[[64, 64], pl.FP16], "
            "out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
            """
t = pl.tile.load(x, [0, 0], [32, 64])
b = pl.tile.load(w, [0, 0], [64, 64])
s = pl.tile.slice(t, [16, 64], [16, 0])
y = pl.tile.matmul(s, b)
out = pl.tile.store(y, [0, 0], out)
return out
""",
        )
    )


# Escape.

SEED = "seed = pl.tile.create([16, 1], dtype=pl.FP32, target_memory=pl.Mem.Vec)\n"
OUT = "[16, 1], pl.FP32"
WINDOW = "pl.tile.slice(t, [16, 1], [0, 1])"
COPY = "pl.tile.extract(t, 0, 1, shape=[16, 1], target_memory=pl.Mem.Vec)"


def test_alias_is_the_copy():
    lines = "h = {}\n{}y = pl.tile.muls(other, 0.5)"
    alias = "other: pl.Tile[[16, 1], pl.FP32, pl.Mem.Vec] = h\n"
    after = f"other = {COPY}\ny = pl.tile.muls(other, 0.5)"
    becomes(vec(lines.format(WINDOW, alias), out=OUT), vec(after, out=OUT))


def test_aligned_alias_stays():
    untouched(
        vec(
            "h = pl.tile.slice(t, [16, 1], [0, 8])\nother: pl.Tile[[16, 1], pl.FP32, pl.Mem.Vec] = h\n"
            "y = pl.tile.muls(other, 0.5)",
            out=OUT,
        )
    )


def test_loop_starts_from_the_copy():
    lines = """
h = {}
for i, (carried,) in pl.range(1, init_values=(h,)):
    step = pl.tile.muls(carried, 0.5)
    y = pl.yield_(step)
"""
    becomes(vec(lines.format(WINDOW), out=OUT), vec(lines.format(COPY), out=OUT))


def test_while_starts_from_the_copy():
    lines = """
k: pl.Scalar[pl.INDEX] = 0
h = {}
for (carried, count) in pl.while_(init_values=(h, k)):
    pl.cond(count < 4)
    step = pl.tile.muls(carried, 0.5)
    more: pl.Scalar[pl.INDEX] = count + 1
    y, last = pl.yield_(step, more)
"""
    becomes(vec(lines.format(WINDOW), out=OUT), vec(lines.format(COPY), out=OUT))


def test_yield_hands_on_the_copy():
    lines = (
        SEED
        + """
for i, (carried,) in pl.range(1, init_values=(seed,)):
    h = {}
    y = pl.yield_(h)
"""
    )
    becomes(vec(lines.format(WINDOW), out=OUT), vec(lines.format(COPY), out=OUT))


def test_branch_yields_the_copy():
    lines = """
if i < 4:
    h = {}
    y = pl.yield_(h)
else:
    g = {}
    y = pl.yield_(g)
"""
    aligned = "pl.tile.slice(t, [16, 1], [0, 8])"
    becomes(
        vec(lines.format(WINDOW, aligned), out=OUT, more=INDEX), vec(lines.format(COPY, aligned), out=OUT, more=INDEX)
    )


def test_slice_of_a_carried_window_knows_its_stride():
    """The carried value may be the 12-column window, whose second row is misaligned, or a tile of 8 columns."""
    loop = """
h = pl.tile.slice(t, [16, 8], [0, 0])
for i, (carried,) in pl.range(2, init_values=(h,)):
    s = {}
    u = pl.tile.muls(s, 0.5)
    step = pl.tile.add(carried, carried)
    y = pl.yield_(step)
"""
    kernel = dict(source="[16, 12], pl.FP32", out="[16, 8], pl.FP32")
    becomes(
        vec(loop.format("pl.tile.slice(carried, [8, 8], [1, 0])"), **kernel),
        vec(loop.format("pl.tile.extract(carried, 1, 0, shape=[8, 8], target_memory=pl.Mem.Vec)"), **kernel),
    )
