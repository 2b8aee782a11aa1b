"""What goes wrong without CanonicalizeTileSlice, and right with it, on the simulator.

A copy "inside the source" is the emitted text with the copy's buffer moved to where the slice lies: what codegen would
have to do for an operator that reads no view, had the pass not given the copy a buffer of its own.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from tile_slice_programs import mat, program, text_of, vec

from pypto import ir
from pypto.errors import InternalError, KernelValueError
from pypto.pto.errors import PtoError
from pypto.simulator import load

TARGETS = ("Ascend910B", "Ascend950")
PASS = "CanonicalizeTileSlice"


def execute(text: str, *args: np.ndarray | int, sanitize: bool = True) -> None:
    load(text).kernels["kernel"].run(list(args), sanitize=sanitize)


def moved(text: str, buffer: str, address: int) -> str:
    """``text`` with a buffer at another address."""
    made, count = re.subn(rf"(%{buffer} = pto\.alloc_tile addr = )%\w+", r"\1%moved", text)
    assert count == 1
    return re.sub(r"(func\.func [^\n]*\n)", rf"\1    %moved = arith.constant {address} : i64\n", made, count=1)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


# Column expansion. The kernels store the source after the copy, to show what became of it.

EXPAND = """
g = pl.tile.load(gamma, [0, 0], [1, 64], target_memory=pl.Mem.Vec)
s = pl.tile.slice(t, [{rows}, 64], [{row}, {col}])
z = pl.tile.col_expand_mul(s, g)
kept = pl.tile.store(t, [0, 0], kept)
y = z
"""
MORE = "gamma: pl.Tensor[[1, 64], pl.FP32], i: pl.Scalar[pl.INDEX], kept: pl.InOut[pl.Tensor[[16, 128], pl.FP32]], "


def expand(rows: int, row: object, col: object) -> ir.Program:
    return vec(EXPAND.format(rows=rows, row=row, col=col), "[16, 128], pl.FP32", f"[{rows}, 64], pl.FP32", MORE)


def expand_args(rng: np.random.Generator, rows: int, i: int = 0) -> list:
    """x, gamma, i, kept, out in the order of the kernel's parameters in PTO: tensors before scalars."""
    x, gamma = rng.standard_normal((16, 128), np.float32), rng.standard_normal((1, 64), np.float32)
    return [x, gamma, np.zeros((16, 128), np.float32), np.zeros((rows, 64), np.float32), i]


@pytest.mark.parametrize("target", TARGETS)
def test_column_window_repacked_over_its_source(target, rng):
    text = text_of(expand(16, 0, 64), target)
    args = expand_args(rng, 16)
    x, gamma, kept, out, _ = args
    execute(text, *args)
    np.testing.assert_array_equal(out, x[:, 64:] * gamma)
    np.testing.assert_array_equal(kept, x)

    inside = moved(text, "s_ext", 64 * 4)
    execute(inside, *args, sanitize=False)
    right = (kept == x).all(axis=1)
    assert right[15] and not right[1:9].any(), "the copy has overwritten rows 1 to 8 of its source"
    with pytest.raises(PtoError, match="overlap|overwrit"):
        execute(inside, *args)


@pytest.mark.parametrize("target", TARGETS)
def test_dynamic_window_at_the_source_base(target, rng):
    text = text_of(expand(1, "i", 0), target)
    args = expand_args(rng, 1, 5)
    x, gamma, kept, out, _ = args
    execute(text, *args)
    np.testing.assert_array_equal(out, x[5:6, :64] * gamma)
    np.testing.assert_array_equal(kept, x)

    execute(moved(text, "s_ext", 0), *args, sanitize=False)
    np.testing.assert_array_equal(kept[0, :64], x[5, :64], "row 0 of the source holds row 5")
    np.testing.assert_array_equal(kept[1:], x[1:])


@pytest.mark.parametrize(("rows", "row", "col"), [(1, 5, 0), (1, 3, 64)])
@pytest.mark.parametrize("target", TARGETS)
def test_identity_copies_are_right_as_views(target, rows, row, col, rng):
    text = text_of(expand(rows, row, col), target)
    assert "%s_ext" not in text
    args = expand_args(rng, rows)
    x, gamma, kept, out, _ = args
    execute(text, *args)
    np.testing.assert_array_equal(out, x[row : row + rows, col : col + 64] * gamma)
    np.testing.assert_array_equal(kept, x)


@pytest.mark.parametrize("target", TARGETS)
def test_identity_copy_of_whole_rows(target, rng):
    lines = EXPAND.format(rows=8, row=4, col=0).replace("[8, 64]", "[8, 128]").replace("[1, 64]", "[1, 128]")
    more = MORE.replace("[1, 64]", "[1, 128]")
    text = text_of(vec(lines, "[16, 128], pl.FP32", "[8, 128], pl.FP32", more), target)
    assert re.search(r"pto\.tmov ins\(%s ", text)
    x, gamma, kept, _, i = expand_args(rng, 8)
    gamma, out = np.repeat(gamma, 2, axis=1), np.zeros((8, 128), np.float32)
    execute(text, x, gamma, kept, out, i)
    np.testing.assert_array_equal(out, x[4:12] * gamma)
    np.testing.assert_array_equal(kept, x)


REPACKED = [(16, 0, 64, "rows lie apart"), (1, "i", 0, "a dynamic-offset tile.slice")]


@pytest.mark.parametrize(("rows", "row", "col", "reason"), REPACKED)
@pytest.mark.parametrize("target", TARGETS)
def test_codegen_refuses_to_repack_over_the_source(target, rows, row, col, reason):
    with pytest.raises(InternalError, match=reason):
        text_of(expand(rows, row, col), target, PASS)
    narrowed = EXPAND.format(rows=rows, row=row, col=col).replace(f"{col}])", f"{col}], valid_shape=[1, 64])")
    with pytest.raises(InternalError, match=reason):
        text_of(vec(narrowed, "[16, 128], pl.FP32", f"[{rows}, 64], pl.FP32", MORE), target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_column_where_it_must_lie_as_a_row_is_refused_with_a_form_that_works(target, rng):
    sliced = "s = pl.tile.slice(t, [16, 1], [0, 8])"
    lines = sliced + "\ny = pl.tile.muls(s, 2.0)"
    with pytest.raises(KernelValueError, match="'s', whose rows lie apart in the tile it is a slice of\n") as caught:
        text_of(vec(lines, "[16, 64], pl.FP32", "[16, 1], pl.FP32"), target)
    assert "valid_shape=[N, 1]), tmp)" in str(caught.value)
    reduced = (
        "w = pl.tile.slice(t, [16, 8], [0, 8], valid_shape=[16, 1])\n"
        "tmp = pl.tile.create([16, 8], dtype=pl.FP32, target_memory=pl.Mem.Vec)\ns = pl.tile.row_max(w, tmp)"
    )
    text = text_of(vec(lines.replace(sliced, reduced), "[16, 64], pl.FP32", "[16, 1], pl.FP32"), target)
    x, out = rng.standard_normal((16, 64), np.float32), np.zeros((16, 1), np.float32)
    execute(text, x, out)
    np.testing.assert_array_equal(out, x[:, 8:9] * np.float32(2))


# Alignment.


@pytest.mark.parametrize(("dtype", "numpy"), [("FP32", np.float32), ("FP16", np.float16)])
@pytest.mark.parametrize("target", TARGETS)
def test_misaligned_operand_is_reported_without_the_pass(target, dtype, numpy, rng):
    kernel = vec(
        "s = pl.tile.slice(t, [16, 64], [0, 4])\ny = pl.tile.muls(s, 2.0)",
        f"[16, 128], pl.{dtype}", f"[16, 64], pl.{dtype}",
    )  # fmt: skip
    x, out = rng.standard_normal((16, 128)).astype(numpy), np.zeros((16, 64), numpy)
    execute(text_of(kernel, target), x, out)
    np.testing.assert_array_equal(out, x[:, 4:68] * numpy(2))
    with pytest.raises(PtoError, match="32 bytes|align"):
        execute(text_of(kernel, target, PASS), x, out)


@pytest.mark.parametrize("target", TARGETS)
def test_aligned_dynamic_operand_is_right_as_a_view(target, rng):
    kernel = vec(
        "s = pl.tile.slice(t, [16, 64], [0, i * 8])\ny = pl.tile.muls(s, 2.0)\nkept = pl.tile.store(t, [0, 0], kept)",
        "[16, 128], pl.FP32",
        "[16, 64], pl.FP32",
        "i: pl.Scalar[pl.INDEX], kept: pl.Out[pl.Tensor[[16, 128], pl.FP32]], ",
    )
    text = text_of(kernel, target)
    assert "pto.textract" not in text
    x, out = rng.standard_normal((16, 128), np.float32), np.zeros((16, 64), np.float32)
    for i in (0, 3, 8):
        execute(text, x, np.zeros_like(x), out, i)
        np.testing.assert_array_equal(out, x[:, 8 * i : 8 * i + 64] * np.float32(2))


@pytest.mark.parametrize("target", TARGETS)
def test_carried_misaligned_window(target, rng):
    """A loop that starts from a window, and one that yields it."""
    kernel = vec(
        """
h = pl.tile.slice(t, [16, 64], [0, 4])
for i, (carried,) in pl.range(3, init_values=(h,)):
    step = pl.tile.adds(carried, 1.0)
    last = pl.yield_(step)
w = pl.tile.slice(t, [16, 64], [0, 12])
alias: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec] = w
y = pl.tile.mul(last, alias)
""",
        "[16, 128], pl.FP32", "[16, 64], pl.FP32",
    )  # fmt: skip
    x, out = rng.standard_normal((16, 128), np.float32), np.zeros((16, 64), np.float32)
    execute(text_of(kernel, target), x, out)
    one = np.float32(1)
    np.testing.assert_array_equal(out, (x[:, 4:68] + one + one + one) * x[:, 12:76])


# Matmul operands.


@pytest.mark.parametrize("target", TARGETS)
def test_windows_of_mat_tiles(target, rng):
    kernel = mat(
        """
s = pl.tile.slice(a, [16, 256], [16, 256])
w = pl.tile.slice(b, [256, 64], [256, 0])
p = pl.tile.matmul(s, w)
u = pl.tile.slice(a, [16, 512], [0, 0])
l = pl.tile.extract(u, 0, 128, shape=[16, 256], target_memory=pl.Mem.Left)
r = pl.tile.extract(b, 0, 0, shape=[256, 64], target_memory=pl.Mem.Right)
c = pl.tile.matmul_acc(p, l, r)
""",
        dtype="FP16",
    )
    a, b = rng.standard_normal((32, 512)).astype(np.float16), rng.standard_normal((512, 64)).astype(np.float16)
    out = np.zeros((16, 64), np.float32)
    execute(text_of(kernel, target), a, b, out)
    x, y = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_allclose(out, x[16:, 256:] @ y[256:] + x[:16, 128:384] @ y[:256], rtol=1e-4, atol=1e-3)


# Accumulators.

ACC = """
xm = pl.tile.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
wm = pl.tile.load(w, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
a = pl.tile.move(xm, target_memory=pl.Mem.Left)
b = pl.tile.move(wm, target_memory=pl.Mem.Right)
acc = pl.tile.create({whole}, pl.FP32, target_memory=pl.Mem.Acc)
win = pl.tile.slice(acc, [16, 32], {offset})
p = pl.tile.matmul_acc(win, a, b, True)
q = pl.tile.matmul_acc(p, a, b)
out = pl.tile.store(q, [0, 0], out)
return out
"""


def accumulator(whole: str, offset: str) -> ir.Program:
    tensor = "pl.Tensor[[16, 32], pl.FP32]"
    params = f"x: pl.Tensor[[16, 64], pl.FP16], w: pl.Tensor[[64, 32], pl.FP16], out: pl.Out[{tensor}]"
    return program(params, ACC.format(whole=whole, offset=offset), tensor)


@pytest.mark.parametrize("offset", ["[0, 0]", "[0, 32]"])
@pytest.mark.parametrize("target", TARGETS)
def test_column_packed_accumulator(target, offset, rng):
    x, w = rng.standard_normal((16, 64)).astype(np.float16), rng.standard_normal((64, 32)).astype(np.float16)
    out = np.zeros((16, 32), np.float32)
    execute(text_of(accumulator("[16, 64]", offset), target), x, w, out)
    np.testing.assert_allclose(out, 2 * (x.astype(np.float64) @ w), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_strided_accumulator_is_refused(target):
    kernel = accumulator("[32, 32]", "[16, 0]")
    with pytest.raises(ValueError, match="not contiguous in L0C's block layout"):
        text_of(kernel, target)
    with pytest.raises(ValueError, match="a boxed col_major tile keeps all its rows"):
        text_of(kernel, target, PASS)


def tile(loc: str, dtype: str, rows: int, cols: int, boxes: str, fractal: int = 512) -> str:
    blayout, slayout = boxes.split("/")
    layout = f"blayout={blayout}, slayout={slayout}, fractal={fractal}, pad=0"
    return f"!pto.tile_buf<loc={loc}, dtype={dtype}, rows={rows}, cols={cols}, v_row={rows}, v_col={cols}, {layout}>"


def two_products(second: int) -> str:
    """a @ b into a compact [16, 32] tile at L0C byte 0, twice that at ``second``; the [32, 32] tile at 0 is stored."""
    mat_a, mat_b = (tile("mat", "f16", r, c, "col_major/row_major") for r, c in ((16, 64), (64, 32)))
    left, right = (
        tile("left", "f16", 16, 64, "row_major/row_major"),
        tile("right", "f16", 64, 32, "row_major/col_major"),
    )
    part, whole = (tile("acc", "f32", rows, 32, "col_major/row_major", 1024) for rows in (16, 32))
    constants = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 16, 32, 64))
    addresses = "".join(f"%a{n} = arith.constant {n} : i64\n" for n in {0, 2048, second})
    views = "".join(
        f"%v{i} = pto.make_tensor_view %arg{i}, shape = [%c{r}, %c{c}], strides = [%c{c}, %c1] "
        f"{{layout = #pto.layout<nd>}} : !pto.tensor_view<?x?x{t}>\n"
        f"%p{i} = pto.partition_view %v{i}, offsets = [%c0, %c0], sizes = [%c{r}, %c{c}] : "
        f"!pto.tensor_view<?x?x{t}> -> !pto.partition_tensor_view<{r}x{c}x{t}>\n"
        for i, (r, c, t) in enumerate(((16, 64, "f16"), (64, 32, "f16"), (32, 32, "f32")))
    )
    tiles = (("xm", 0, mat_a), ("wm", 2048, mat_b), ("l", 0, left), ("r", 0, right), ("first", 0, part),
             ("second", second, part), ("whole", 0, whole))  # fmt: skip
    allocs = "".join(f"%{n} = pto.alloc_tile addr = %a{at} : {t}\n" for n, at, t in tiles)
    body = (
        f"pto.tload ins(%p0 : !pto.partition_tensor_view<16x64xf16>) outs(%xm : {mat_a})\n"
        f"pto.tload ins(%p1 : !pto.partition_tensor_view<64x32xf16>) outs(%wm : {mat_b})\n"
        f"pto.tmov ins(%xm : {mat_a}) outs(%l : {left})\npto.tmov ins(%wm : {mat_b}) outs(%r : {right})\n"
        f"pto.tmatmul ins(%l, %r : {left}, {right}) outs(%first : {part})\n"
        f"pto.tmatmul ins(%l, %r : {left}, {right}) outs(%second : {part})\n"
        f"pto.tmatmul.acc ins(%second, %l, %r : {part}, {left}, {right}) outs(%second : {part})\n"
        f"pto.tstore ins(%whole : {whole}) outs(%p2 : !pto.partition_tensor_view<32x32xf32>)\nreturn\n"
    )
    return (
        'module attributes {pto.target_arch = "a2a3"} {\nfunc.func @kernel(%arg0: !pto.ptr<f16>, %arg1: !pto.ptr<f16>, '
        "%arg2: !pto.ptr<f32>) attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {\n"
        f"{constants}{addresses}{views}{allocs}{body}}}\n}}\n"
    )


def test_what_a_strided_accumulator_would_do(rng):
    """The matmul writes compactly from the address of row 16: only the first block column of each row tile is right."""
    x, w = rng.standard_normal((16, 64)).astype(np.float16), rng.standard_normal((64, 32)).astype(np.float16)
    out = np.zeros((32, 32), np.float32)
    execute(two_products(second=16 * 16 * 4), x, w, out, sanitize=False)
    product = x.astype(np.float64) @ w
    expected = np.concatenate([product, 2 * product])
    right = np.isclose(out, expected, rtol=1e-4, atol=1e-3)
    assert right[:, :16].all()
    assert not right[:, 16:].all(axis=1).any()
