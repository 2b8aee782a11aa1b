"""CanonicalizeTileSlice: windows that become extractions, and those that stay views.

Alignment is in test_canonicalize_tile_slice_alignment.py, the accumulator check in .._acc.py, runs in .._numeric.py.
"""

from __future__ import annotations

import pytest
from tile_slice_programs import becomes, mat, program, run, untouched, vec

from pypto import ir
from pypto.ops import registry
from pypto.passes.canonicalize_tile_slice.hazards import repack_hazard

SPECIFICATION = {
    "collect: a slice of a slice is peeled, offsets accumulate": "test_chained_mat_slices_accumulate",
    "collect: valid_shape and drop_dims are no plain windows": "test_slice_with_more_than_a_window_is_skipped",
    "extract reads the base, indices summed": "test_extract_reads_the_base",
    "extract: constant sums are folded": "test_extract_reads_the_base",
    "matmul, matmul_acc, matmul_bias operands become Left / Right extractions": "test_matmul_operands",
    "the accumulator and the bias are no operands": "test_matmul_operands",
    "col_expand: dynamic offset is copied": "test_col_expand_dynamic_offset",
    "col_expand: strided window is copied": "test_col_expand_column_window",
    "col_expand: both operands are looked at": "test_col_expand_both_operands",
    "col_expand: constant, dense window stays": "test_col_expand_identity_copy_stays",
    "dead slices: to a fixed point": "test_dead_chain_goes",
    "dead slices: one still used stays": "test_mat_slice_with_another_consumer_stays",
    "codegen refuses a skipped slice that would corrupt its source": "test_refusal_for_codegen",
    "Left / Right / Acc slices stay": "test_slice_elsewhere_stays",
    "no plain slice, or no InCore function: same object": "test_nothing_to_do",
}
"""Rows of the specification, and the test of each."""


def test_every_row_has_its_test():
    assert set(SPECIFICATION.values()) <= set(globals())


# Extractions.

LEFT = "pl.Tile[[16, 256], pl.BF16, pl.Mem.Left]"
RIGHT = "pl.Tile[[256, 64], pl.BF16, pl.Mem.Right]"


def left(source: str, row: object, col: object) -> str:
    return f"l = pl.tile.extract({source}, {row}, {col}, shape=[16, 256], target_memory=pl.Mem.Left)\n"


def right(source: str, row: object, col: object) -> str:
    return f"r = pl.tile.extract({source}, {row}, {col}, shape=[256, 64], target_memory=pl.Mem.Right)\n"


PRODUCT = "c = pl.tile.matmul(l, r)\n"


@pytest.mark.parametrize(
    ("offset", "index", "folded"),
    [
        ("[0, 0]", (0, 0), (0, 0)),
        ("[16, 0]", (0, 0), (16, 0)),
        ("[0, 256]", (0, 0), (0, 256)),
        ("[8, 128]", (0, 0), (8, 128)),
        ("[8, 0]", (4, 0), (12, 0)),
        ("[0, 0]", ("i", "j"), ("i", "j")),
        ("[8, 128]", ("i", "j"), ("i + 8", "j + 128")),
        ("[i, 0]", (8, "j"), ("8 + i", "j")),
        ("[i, j]", (0, 0), ("i", "j")),
    ],
)
def test_extract_reads_the_base(offset, index, folded):
    scalars = "i: pl.Scalar[pl.INDEX], j: pl.Scalar[pl.INDEX], "
    window = f"s = pl.tile.slice(a, [24, 384], {offset})\n"
    kernel = dict(lhs="[64, 768]", more=scalars)
    becomes(
        mat(window + left("s", *index) + right("b", 0, 0) + PRODUCT, **kernel),
        mat(left("a", *folded) + right("b", 0, 0) + PRODUCT, **kernel),
    )


def test_extract_of_both_operands_and_twice():
    windows = "s = pl.tile.slice(a, [16, 512], [16, 0])\nw = pl.tile.slice(b, [512, 64], [0, 0])\n"
    lines = """
l0 = pl.tile.extract({s}, {r}, 0, shape=[16, 256], target_memory=pl.Mem.Left)
r0 = pl.tile.extract({w}, 0, 0, shape=[256, 64], target_memory=pl.Mem.Right)
l1 = pl.tile.extract({s}, {r}, 256, shape=[16, 256], target_memory=pl.Mem.Left)
r1 = pl.tile.extract({w}, 256, 0, shape=[256, 64], target_memory=pl.Mem.Right)
c0 = pl.tile.matmul(l0, r0)
c = pl.tile.matmul_acc(c0, l1, r1)
"""
    becomes(mat(windows + lines.format(s="s", w="w", r=0)), mat(lines.format(s="a", w="b", r=16)))


def test_extract_inside_a_loop_of_a_slice_outside():
    loop = """
start = pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)
for k, (carried,) in pl.pipeline(0, 256, 128, init_values=(start,), stage=2):
    l = pl.tile.extract({0}, {1}, {2}, shape=[16, 128], target_memory=pl.Mem.Left)
    r = pl.tile.extract(b, k, 0, shape=[128, 64], target_memory=pl.Mem.Right)
    step = pl.tile.matmul_acc(carried, l, r)
    c = pl.yield_(step)
"""
    becomes(
        mat("s = pl.tile.slice(a, [16, 256], [16, 256])\n" + loop.format("s", 0, "k")),
        mat(loop.format("a", 16, "k + 256")),
    )


def test_chained_mat_slices_accumulate():
    chain = "s = pl.tile.slice(a, [24, 384], [8, 128])\nv = pl.tile.slice(s, [16, 256], [4, 0])\n"
    becomes(
        mat(chain + left("v", 0, 0) + right("b", 0, 0) + PRODUCT), mat(left("a", 12, 128) + right("b", 0, 0) + PRODUCT)
    )


def test_extract_of_an_alias_reads_the_base():
    lines = "s = pl.tile.slice(a, [16, 256], [16, 0])\nother: pl.Tile[[16, 256], pl.BF16, pl.Mem.Mat] = s\n"
    becomes(
        mat(lines + left("other", 0, 0) + right("b", 0, 0) + PRODUCT),
        mat(left("a", 16, 0) + right("b", 0, 0) + PRODUCT),
    )


# Matmul operands.


@pytest.mark.parametrize(
    "product",
    [
        "c = pl.tile.matmul({l}, {r})",
        "z = pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)\n{pre}"
        "c = pl.tile.matmul_acc(z, {l}, {r})",
        "q = pl.tile.load(bias, [0, 0], [1, 64], target_memory=pl.Mem.Mat)\n{pre}c = pl.tile.matmul_bias({l}, {r}, q)",
    ],
)
def test_matmul_operands(product):
    windows = "s = pl.tile.slice(a, [16, 256], [16, 256])\nw = pl.tile.slice(b, [256, 64], [256, 0])\n"
    before, after = windows + product.format(l="s", r="w", pre=""), product.format(l="l", r="r", pre="{pre}")
    copies = left("a", 16, 256) + right("b", 256, 0)
    after = after.format(pre=copies) if "{pre}" in after else copies + after
    bias = "bias: pl.Tensor[[1, 64], pl.FP32], "
    becomes(mat(before, more=bias), mat(after, more=bias))


def test_matmul_operand_of_a_chain_of_slices():
    lines = (
        "s = pl.tile.slice(a, [32, 256], [0, 128])\nw = pl.tile.slice(s, [16, 256], [i, 0])\nc = pl.tile.matmul(w, b)\n"
    )
    index = "i: pl.Scalar[pl.INDEX], "
    becomes(
        mat(lines, rhs="[256, 64]", more=index),
        mat(left("a", "i", 128) + "c = pl.tile.matmul(l, b)\n", rhs="[256, 64]", more=index),
    )


def test_mat_slice_with_another_consumer_stays():
    untouched(
        program(
            "x: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
            """
t = pl.tile.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
s = pl.tile.slice(t, [16, 64], [16, 0])
y = pl.tile.move(s, target_memory=pl.Mem.Vec)
out = pl.tile.store(y, [0, 0], out)
return out
""",
        )
    )


def test_mat_slice_stays_for_the_consumer_that_needs_it():
    lines = """
s = pl.tile.slice(a, [16, 256], [16, 0])
{}
r = pl.tile.extract(b, 0, 0, shape=[256, 64], target_memory=pl.Mem.Right)
m = pl.tile.move(s, target_memory=pl.Mem.Left)
c0 = pl.tile.matmul(l, r)
c = pl.tile.matmul_acc(c0, m, r)
"""
    becomes(mat(lines.format(left("s", 0, 0))), mat(lines.format(left("a", 16, 0))))


# Column expansion.

GAMMA = "g = pl.tile.load(gamma, [0, 0], [1, 64], target_memory=pl.Mem.Vec)\n"
GAMMA_PARAM = "gamma: pl.Tensor[[1, 64], pl.FP32], i: pl.Scalar[pl.INDEX], "
EXPANSIONS = sorted(d.name for d in registry.all_decls() if d.name.startswith("tile.col_expand_"))


def expansion(
    window: str, use: str = "pl.tile.col_expand_mul({0}, g)", rows: int = 1, source: str = "[16, 64]"
) -> ir.Program:
    name, _, value = window.partition(" = ")
    lines = f"{GAMMA}{name} = {value}\ny = {use.format(name)}"
    return vec(lines, source=f"{source}, pl.FP32", out=f"[{rows}, 64], pl.FP32", more=GAMMA_PARAM)


def test_there_are_column_expansions():
    assert {"tile.col_expand_mul", "tile.col_expand_add"} <= set(EXPANSIONS)


@pytest.mark.parametrize("name", EXPANSIONS)
def test_col_expand_dynamic_offset(name):
    use = f"pl.{name}({{0}}, g)"
    becomes(
        expansion("s = pl.tile.slice(t, [1, 64], [i, 0])", use),
        expansion("e = pl.tile.extract(t, i, 0, shape=[1, 64], target_memory=pl.Mem.Vec)", use),
    )


def test_col_expand_column_window():
    becomes(
        expansion("s = pl.tile.slice(t, [16, 64], [0, 64])", rows=16, source="[16, 128]"),
        expansion(
            "e = pl.tile.extract(t, 0, 64, shape=[16, 64], target_memory=pl.Mem.Vec)", rows=16, source="[16, 128]"
        ),
    )


def test_col_expand_both_operands():
    use = "pl.tile.col_expand_mul(t, {0})"
    becomes(
        expansion("s = pl.tile.slice(t, [1, 64], [i, 0])", use, rows=16),
        expansion("e = pl.tile.extract(t, i, 0, shape=[1, 64], target_memory=pl.Mem.Vec)", use, rows=16),
    )


@pytest.mark.parametrize(
    ("shape", "offset", "source"),
    [
        ([1, 64], [5, 0], "[16, 64]"),
        ([1, 64], [3, 64], "[16, 128]"),
        ([16, 64], [16, 0], "[32, 64]"),
        ([16, 64], [0, 0], "[16, 64]"),
    ],
)
def test_col_expand_identity_copy_stays(shape, offset, source):
    untouched(expansion(f"s = pl.tile.slice(t, {shape}, {offset})", rows=shape[0], source=source))


def test_col_expand_misaligned_row_is_copied():
    """Reading it in place would be an identity copy, but not from an address the vector unit can read."""
    becomes(
        expansion("s = pl.tile.slice(t, [1, 64], [0, 4])", source="[16, 128]"),
        expansion("e = pl.tile.extract(t, 0, 4, shape=[1, 64], target_memory=pl.Mem.Vec)", source="[16, 128]"),
    )


def test_col_expand_window_of_a_strided_window_is_copied():
    """All columns of the slice it is cut from, but not of the tile: the rows still lie apart."""
    lines = "{}" + GAMMA + "y = pl.tile.col_expand_mul({}, g)"
    chain = "s = pl.tile.slice(t, [16, 64], [0, 64])\nw = pl.tile.slice(s, [8, 64], [8, 0])\n"
    copy = "e = pl.tile.extract(t, 8, 64, shape=[8, 64], target_memory=pl.Mem.Vec)\n"
    kernel = dict(source="[16, 128], pl.FP32", out="[8, 64], pl.FP32", more=GAMMA_PARAM)
    made = run(vec(lines.format(chain, "w"), **kernel))
    ir.assert_structural_equal(made, vec(GAMMA + copy + "y = pl.tile.col_expand_mul(e, g)", **kernel))


def test_col_expand_constant_by_way_of_a_variable():
    """The address of a slice that stays must be a constant in the slice itself."""
    lines = GAMMA + "{}s = pl.tile.slice(t, [1, 64], [{}, 0])\ny = pl.tile.col_expand_mul(s, g)"
    kernel = dict(source="[16, 64], pl.FP32", out="[1, 64], pl.FP32", more=GAMMA_PARAM)
    constant = "row: pl.Scalar[pl.INDEX] = 5\n"
    becomes(vec(lines.format(constant, "row"), **kernel), vec(lines.format(constant, 5), **kernel))


# What stays, and what goes.


def test_dead_chain_goes():
    lines = "s = pl.tile.slice(t, [16, 32], [0, 8])\nv = pl.tile.slice(s, [16, 16], [0, 8])\ny = pl.tile.muls(t, 2.0)"
    becomes(vec(lines), vec("y = pl.tile.muls(t, 2.0)"))


@pytest.mark.parametrize(
    "rest", ["valid_shape=[8, 1]", "drop_dims=[1]", "valid_shape=[8, 1], pad_value=pl.PadValue.zero"]
)
def test_slice_with_more_than_a_window_is_skipped(rest):
    shape = "[1, 16]" if rest.startswith("drop") else "[16, 1]"
    untouched(vec(f"s = pl.tile.slice(t, [16, 1], [0, 1], {rest})\ny = pl.tile.muls(s, 2.0)", out=f"{shape}, pl.FP32"))


def test_mat_slice_with_a_valid_shape_is_skipped():
    lines = "s = pl.tile.slice(a, [16, 256], [0, 0], valid_shape=[16, 256])\n"
    untouched(mat(lines + left("s", 0, 0) + right("b", 0, 0) + PRODUCT))


def test_slice_elsewhere_stays():
    untouched(
        mat(
            "m = pl.tile.move(a, target_memory=pl.Mem.Left)\ns = pl.tile.slice(m, [16, 512], [0, 0])\n"
            "r = pl.tile.move(b, target_memory=pl.Mem.Right)\nc = pl.tile.matmul(s, r)"
        )
    )


def test_nothing_to_do():
    untouched(vec("y = pl.tile.muls(t, 2.0)"))
    untouched(vec("y = pl.tile.slice(t, [16, 64], [0, 0])"))


@pytest.mark.parametrize("kind", ["Opaque", "Orchestration"])
def test_function_off_the_cores_stays(kind):
    untouched(
        program(
            "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]",
            "t = pl.tile.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Vec)\ns = pl.tile.slice(t, [16, 1], [0, 1])\n"
            "y = pl.tile.muls(s, 2.0)\nout = pl.tile.store(y, [0, 0], out)\nreturn out",
            "pl.Tensor[[16, 1], pl.FP32]",
            kind,
        )
    )


def test_copies_carry_the_position_of_the_slice():
    before = vec("s = pl.tile.slice(t, [16, 1], [0, 1])\ny = pl.tile.muls(s, 2.0)", out="[16, 1], pl.FP32")
    made = run(before)
    copy, sliced = assignments(made)[1], assignments(before)[1]
    assert copy.var.name_hint == "s_ext"
    assert copy.span.begin_line == copy.value.span.begin_line == sliced.span.begin_line


# What codegen must refuse.


def assignments(kernel: ir.Program) -> list[ir.AssignStmt]:
    stmts = ir.flatten_to_stmts(next(iter(kernel.functions.values())).body)
    return [s for s in stmts if isinstance(s, ir.AssignStmt)]


def slices(kernel: ir.Program) -> dict[ir.Var, ir.Call]:
    return {s.var: s.value for s in assignments(kernel) if getattr(s.value, "name", "") == "tile.slice"}


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        ("pl.tile.slice(t, [1, 64], [i, 0], valid_shape=[1, 32])", "a dynamic-offset tile.slice"),
        ("pl.tile.slice(t, [1, 64], [i, 0], drop_dims=[0])", "a dynamic-offset tile.slice"),
        ("pl.tile.slice(t, [8, 64], [0, 64], valid_shape=[8, 32])", "rows lie apart"),
        ("pl.tile.slice(t, [1, 64], [3, 64], valid_shape=[1, 32])", None),
        ("pl.tile.slice(t, [8, 128], [8, 0], valid_shape=[8, 32])", None),
    ],
)
def test_refusal_for_codegen(window, reason):
    lines = f"s = {window}\ny = pl.tile.add(s, s)"
    kernel = vec(lines, source="[16, 128], pl.FP32", out="[16, 128], pl.FP32", more="i: pl.Scalar[pl.INDEX], ")
    untouched(kernel)
    found = slices(kernel)
    ((var, call),) = found.items()
    why = repack_hazard(call, found.get)
    assert why is None if reason is None else reason in (why or "")


def test_refusal_for_codegen_follows_chains():
    kernel = vec(
        "s = pl.tile.slice(t, [16, 64], [0, 64], valid_shape=[16, 32])\n"
        "w = pl.tile.slice(s, [8, 64], [8, 0], valid_shape=[8, 32])\ny = pl.tile.add(w, w)",
        source="[16, 128], pl.FP32", out="[8, 64], pl.FP32",
    )  # fmt: skip
    found = slices(kernel)
    inner = next(c for v, c in found.items() if v.name_hint == "w")
    assert "rows lie apart" in (repack_hazard(inner, found.get) or "")


def test_extract_of_a_tile_without_a_memory_yet():
    lines = """
t = pl.tile.load(x, [0, 0], [32, 64])
b = pl.tile.load(w, [0, 0], [64, 64])
{}r = pl.tile.move(b, target_memory=pl.Mem.Right)
y = pl.tile.matmul(l, r)
out = pl.tile.store(y, [0, 0], out)
return out
"""
    params = "x: pl.Tensor[[32, 64], pl.FP16], w: pl.Tensor[[64, 64], pl.FP16], "
    params += "out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    extract = "l = pl.tile.extract({}, {}, 0, shape=[16, 64], target_memory=pl.Mem.Left)\n"
    window = "s = pl.tile.slice(t, [16, 64], [16, 0])\n"
    becomes(
        program(params, lines.format(window + extract.format("s", 0))),
        program(params, lines.format(extract.format("t", 16))),
    )
