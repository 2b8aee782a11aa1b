"""CanonicalizeTileSlice refuses accumulators that are strided windows of an Acc tile."""

from __future__ import annotations

import pytest
from tile_slice_programs import acc, program, run, untouched

from pypto import ir
from pypto.errors import KernelValueError

SPECIFICATION = {
    "rows of several block columns: refused": "test_strided_windows_are_refused",
    "narrow window across two blocks: refused": "test_strided_windows_are_refused",
    "all rows, or one block column: accepted": "test_contiguous_windows_are_accepted",
    "matmul_acc, gemv_acc, matmul_mx_acc": "test_every_accumulating_operator",
    "bound or bare": "test_bare_call_is_checked",
    "valid_shape and drop_dims do not hide a window": "test_slice_that_is_no_plain_window_is_checked",
    "unprovable: symbolic extent, other layout, dynamic column": "test_unprovable_windows_are_accepted",
    "edge: slice, chained slices": "test_chained_slices",
    "edge: plain alias": "test_window_is_followed",
    "edge: result on an input's storage": "test_window_is_followed",
    "edge: IterArg of for and while": "test_window_is_followed",
    "edge: loop result, same window": "test_loop_result",
    "edge: loop result, another window: not recorded": "test_loop_result_of_another_window_is_silent",
    "edge: branches that agree": "test_branches_that_agree",
    "edge: branches that differ: not recorded": "test_branches_that_differ_are_silent",
    "extent: changed shape, dtype, order: not recorded": "test_changed_extent_is_silent",
    "extent: new buffer: not recorded": "test_new_buffer_is_silent",
    "extent: square transposed view is harmless": "test_square_transposed_view",
    "back edge: checked": "test_back_edge",
    "back edge: only values accumulated into": "test_back_edge_of_a_value_only_read_is_silent",
    "back edge: only loops that provably repeat": "test_back_edge_of_a_loop_that_may_not_repeat_is_silent",
    "back edge: checked, not recorded": "test_back_edge_records_nothing",
    "limit: windows do not cross functions": "test_parameters_carry_no_window",
    "the error names the column-packed form": "test_error_names_the_form_that_works",
    "windows of the compiler's own": "test_error_does_not_presume_a_slice_in_the_kernel",
}
"""Rows of the specification, and the test of each."""

STRIDED = "win = pl.tile.slice(acc, [16, 32], [16, 0])\n"
DENSE = "win = pl.tile.slice(acc, [16, 32], [0, 32])\n"
WIDE = "[16, 64]"
MATMUL = "made = pl.tile.matmul_acc(win, a, b)"
MESSAGE = "not contiguous in L0C's block layout"


def test_every_row_has_its_test():
    assert set(SPECIFICATION.values()) <= set(globals())


def refused(kernel: ir.Program) -> KernelValueError:
    with pytest.raises(ValueError, match=MESSAGE) as caught:
        run(kernel)
    assert isinstance(caught.value, KernelValueError)
    return caught.value


@pytest.mark.parametrize(
    ("whole", "shape", "offset"),
    [
        ([32, 32], [16, 32], [16, 0]),
        ([32, 32], [16, 32], [0, 0]),
        ([32, 32], [16, 16], [16, 8]),
        ([64, 64], [32, 32], ["n", 32]),
        ([64, 64], [32, 32], [0, "n"]),
        ([32, 48], [16, 16], [0, "n * 16 + 8"]),
    ],
)
def test_strided_windows_are_refused(whole, shape, offset):
    at = f"[{offset[0]}, {offset[1]}]"
    refused(acc(f"win = pl.tile.slice(acc, {shape}, {at})\n{MATMUL}", *shape, whole=str(whole)))


@pytest.mark.parametrize(
    ("whole", "shape", "offset"),
    [
        ([16, 64], [16, 32], [0, 32]),
        ([16, 64], [16, 32], [0, "n"]),
        ([32, 16], [16, 16], [16, 0]),
        ([32, 32], [16, 16], [16, 16]),
        ([32, 32], [16, 16], [16, "n * 16"]),
        ([32, 32], [32, 32], [0, 0]),
    ],
)
def test_contiguous_windows_are_accepted(whole, shape, offset):
    at = f"[{offset[0]}, {offset[1]}]"
    untouched(acc(f"win = pl.tile.slice(acc, {shape}, {at})\n{MATMUL}", *shape, whole=str(whole)))


def test_unprovable_windows_are_accepted():
    untouched(acc("win = pl.tile.slice(acc, [16, 16], [16, n])\n" + MATMUL, 16, 16))


def test_bare_call_is_checked():
    refused(acc(STRIDED + "pl.tile.matmul_acc(win, a, b)"))


def test_every_accumulating_operator():
    gemv = "v = pl.tile.slice(a, [1, 64], [0, 0])\nmade = pl.tile.gemv_acc(win, v, b)"
    window = "win = pl.tile.slice(acc, [16, 32], {}, valid_shape=[1, 32])\n"
    refused(acc(window.format("[16, 0]") + gemv))
    untouched(acc(window.format("[0, 32]") + gemv, whole=WIDE))
    mx = """
la = pl.tile.create([16, 64], pl.FP8E4M3FN, target_memory=pl.Mem.Left)
sa = pl.tile.move(pl.tile.create([16, 2], pl.FP8E8M0, target_memory=pl.Mem.Mat), target_memory=pl.Mem.LeftScale)
rb = pl.tile.create([64, 32], pl.FP8E4M3FN, target_memory=pl.Mem.Right)
sb = pl.tile.move(pl.tile.create([2, 32], pl.FP8E8M0, target_memory=pl.Mem.Mat), target_memory=pl.Mem.RightScale)
made = pl.tile.matmul_mx_acc(win, la, sa, rb, sb)
"""
    refused(acc(STRIDED + mx))
    untouched(acc(DENSE + mx, whole=WIDE))


@pytest.mark.parametrize("rest", ["valid_shape=[16, 32]", "valid_shape=[16, 32], drop_dims=[]"])
def test_slice_that_is_no_plain_window_is_checked(rest):
    refused(acc(f"win = pl.tile.slice(acc, [16, 32], [16, 0], {rest})\n{MATMUL}"))


def test_chained_slices():
    chain = "part = pl.tile.slice(acc, [32, 32], [{0}, {1}])\nwin = pl.tile.slice(part, [16, 32], [16, 0])\n"
    refused(acc(chain.format(0, 32) + MATMUL, whole="[32, 64]"))
    narrow = "part = pl.tile.slice(acc, [16, 24], [16, {0}])\nwin = pl.tile.slice(part, [16, 16], [0, {1}])\n"
    untouched(acc(narrow.format(8, 8) + MATMUL, 16, 16))
    refused(acc(narrow.format(0, 8) + MATMUL, 16, 16))


EDGES = {
    "alias": "v: pl.Tile[[16, 32], pl.FP32, pl.Mem.Acc] = win\nmade = pl.tile.matmul_acc(v, a, b)",
    "reshape": "v = pl.tile.reshape(win, [16, 32])\nmade = pl.tile.matmul_acc(v, a, b)",
    "set_validshape": "v = pl.tile.set_validshape(win, 16, 32)\nmade = pl.tile.matmul_acc(v, a, b)",
    "chained matmul_acc": "u = win\nv = pl.tile.reshape(u, [16, 32])\nw2 = pl.tile.reshape(v, [16, 32])\n"
    "made = pl.tile.matmul_acc(w2, a, b)",
    "for": "for i, (c,) in pl.range(4, init_values=(win,)):\n    d = pl.tile.matmul_acc(c, a, b)\n"
    "    made = pl.yield_(d)",
    "nested for": "for i, (c,) in pl.range(4, init_values=(win,)):\n"
    "    for j, (d,) in pl.range(n, init_values=(c,)):\n        e = pl.tile.matmul_acc(d, a, b)\n"
    "        f = pl.yield_(e)\n    made = pl.yield_(f)",
    "while": "k: pl.Scalar[pl.INDEX] = 0\nfor (c, count) in pl.while_(init_values=(win, k)):\n    pl.cond(count < n)\n"
    "    d = pl.tile.matmul_acc(c, a, b)\n    more: pl.Scalar[pl.INDEX] = count + 1\n"
    "    made, last = pl.yield_(d, more)",
}


@pytest.mark.parametrize("edge", EDGES)
def test_window_is_followed(edge):
    refused(acc(STRIDED + EDGES[edge]))
    untouched(acc(DENSE + EDGES[edge], whole=WIDE))


def test_result_of_an_accumulation_is_the_window():
    """Here the first accumulator is dense and only a window of its result is not."""
    lines = "win = pl.tile.slice(acc, [32, 32], [0, 32])\nu = pl.tile.matmul_acc(win, wide, b)\n"
    operand = "wide = pl.tile.create([32, 64], pl.FP16, target_memory=pl.Mem.Left)\n"
    part = "part = pl.tile.slice(u, [16, 32], [16, 0])\nmade = pl.tile.matmul_acc(part, a, b)"
    error = refused(acc(operand + lines + part, whole="[32, 64]"))
    assert "[16, 32] window at [16, 32] of the [32, 64] Acc tile 'acc'" in error.message


CHANGED = {
    "reshape": ("v = pl.tile.reshape(win, [32, 16])", (32, 16)),
    "transpose_view": ("v = pl.tile.transpose_view(win)", (32, 16)),
}


@pytest.mark.parametrize("change", CHANGED)
def test_changed_extent_is_silent(change):
    view, (rows, cols) = CHANGED[change]
    untouched(acc(f"{STRIDED}{view}\nmade = pl.tile.matmul_acc(v, a, b)", rows, cols))


def test_square_transposed_view():
    lines = (
        "win = pl.tile.slice(acc, [32, 32], {})\nv = pl.tile.transpose_view(win)\nmade = pl.tile.matmul_acc(v, a, b)"
    )
    refused(acc(lines.format("[32, 0]"), 32, 32, whole="[64, 64]"))
    untouched(acc(lines.format("[0, 32]"), 32, 32, whole="[32, 64]"))


def test_new_buffer_is_silent():
    untouched(acc(STRIDED + "v = pl.tile.move(win, target_memory=pl.Mem.Acc)\nmade = pl.tile.matmul_acc(v, a, b)"))


LOOP = """
for i, (c,) in pl.range({}, init_values=(win,)):
    {}
    after = pl.yield_(u)
made = pl.tile.matmul_acc(after, a, b)
"""


def test_loop_result():
    body = "u = pl.tile.reshape(c, [16, 32])"
    refused(acc(STRIDED + LOOP.format("n", body)))
    untouched(acc(DENSE + LOOP.format("n", body), whole=WIDE))


def test_loop_result_of_another_window_is_silent():
    """A loop that runs no iteration returns its initial value, which is another window."""
    untouched(acc(STRIDED + LOOP.format("n", "u = pl.tile.slice(acc, [16, 32], [0, 0])")))


BRANCH = """
if n < 4:
    p = {}
    v = pl.yield_(p)
else:
    q = {}
    v = pl.yield_(q)
made = pl.tile.matmul_acc(v, a, b)
"""


def test_branches_that_agree():
    refused(acc(BRANCH.format(*["pl.tile.slice(acc, [16, 32], [16, 0])"] * 2)))
    refused(acc(BRANCH.format(*["pl.tile.slice(acc, [16, 32], [n * 16, 0])"] * 2), whole="[64, 32]"))


def test_branches_that_differ_are_silent():
    untouched(acc(BRANCH.format("pl.tile.slice(acc, [16, 32], [16, 0])", "pl.tile.slice(acc, [16, 32], [0, 0])")))


BACK = """
start = pl.tile.slice(acc, [16, 32], [0, 0])
free = pl.tile.create([16, 32], pl.FP32, target_memory=pl.Mem.Acc)
for i, (c,) in pl.range({range}, init_values=(free,)):
    {use}
    nxt = pl.tile.slice(acc, [16, 32], [16, 0])
    made = pl.yield_(nxt)
"""
USE = "d = pl.tile.matmul_acc(c, a, b)"


@pytest.mark.parametrize(
    "use",
    [USE, "pl.tile.matmul_acc(c, a, b)", "e = pl.tile.reshape(c, [16, 32])\n    d = pl.tile.matmul_acc(e, a, b)"],
)
@pytest.mark.parametrize("trips", ["2", "0, 64, 32", "1, 10, 8"])
def test_back_edge(use, trips):
    error = refused(acc(BACK.format(range=trips, use=use)))
    assert "next iteration" in error.message


def test_back_edge_through_an_inner_loop():
    inner = """for j, (e,) in pl.range(n, init_values=(c,)):
        d = pl.tile.matmul_acc(e, a, b)
        f = pl.yield_(d)"""
    refused(acc(BACK.format(range="2", use=inner)))


def test_back_edge_of_a_value_only_read_is_silent():
    untouched(acc(BACK.format(range="2", use="d = pl.tile.move(c, target_memory=pl.Mem.Vec)")))


@pytest.mark.parametrize("trips", ["1", "n", "0, n, 1", "0, 32, 32", "0, 32, 64", "n, 32, 1", "5, 5, 1"])
def test_back_edge_of_a_loop_that_may_not_repeat_is_silent(trips):
    untouched(acc(BACK.format(range=trips, use=USE)))


def test_back_edge_of_while_is_silent():
    untouched(
        acc(
            """
free = pl.tile.create([16, 32], pl.FP32, target_memory=pl.Mem.Acc)
k: pl.Scalar[pl.INDEX] = 0
for (c, count) in pl.while_(init_values=(free, k)):
    pl.cond(count < 4)
    d = pl.tile.matmul_acc(c, a, b)
    nxt = pl.tile.slice(acc, [16, 32], [16, 0])
    more: pl.Scalar[pl.INDEX] = count + 1
    made, last = pl.yield_(nxt, more)
"""
        )
    )


def test_back_edge_records_nothing():
    """The carried value is read as the initial window only: a slice of it lies in that one."""
    untouched(
        acc(
            """
win = pl.tile.slice(acc, [32, 32], [0, 32])
for i, (c,) in pl.range(2, init_values=(win,)):
    part = pl.tile.slice(c, [32, 16], [0, 16])
    d = pl.tile.matmul_acc(part, a, b)
    nxt = pl.tile.slice(acc, [32, 32], [0, 0])
    made = pl.yield_(nxt)
""",
            32, 16, whole="[32, 64]",
        )
    )  # fmt: skip


def test_back_edge_to_the_same_window_is_accepted():
    lines = (
        "for i, (c,) in pl.range(8, init_values=(win,)):\n    d = pl.tile.matmul_acc(c, a, b)\n    made = pl.yield_(d)"
    )
    untouched(acc(DENSE + lines, whole=WIDE))


def test_parameters_carry_no_window():
    untouched(
        program(
            "acc: pl.Tile[[16, 32], pl.FP32, pl.Mem.Acc], a: pl.Tile[[16, 64], pl.FP16, pl.Mem.Left], "
            "b: pl.Tile[[64, 32], pl.FP16, pl.Mem.Right]",
            "v = pl.tile.slice(acc, [16, 32], [0, 0])\nmade = pl.tile.matmul_acc(v, a, b)",
            "",
        )
    )


def test_error_names_the_form_that_works():
    error = refused(acc(STRIDED + MATMUL))
    assert "pl.tile.matmul_acc" in error.message
    assert "[16, 32] window at [16, 0] of the [32, 32] Acc tile 'acc'" in error.message
    assert "[rows, N * tiles]" in (error.hint or "") and "[16, 64]" in (error.hint or "")
    assert "pl.tile.slice(acc, [16, 32], [0, i * 32])" in (error.hint or "")
    assert error.span.begin_line > 0 and "matmul_acc" in str(error)


def test_the_form_the_error_names_is_accepted():
    """[rows, N * tiles], sliced by columns."""
    untouched(acc("win = pl.tile.slice(acc, [16, 32], [0, n * 32])\n" + MATMUL, whole="[16, 64]"))


def test_error_does_not_presume_a_slice_in_the_kernel():
    assert "where the kernel has no slice" in (refused(acc(STRIDED + MATMUL)).note or "")


def test_reading_a_strided_window_is_fine():
    untouched(acc(STRIDED + "made = pl.tile.move(win, target_memory=pl.Mem.Vec)"))
