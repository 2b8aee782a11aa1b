"""What goes wrong without CanonicalizeTileSlice, and right with it, on the simulator.

A copy "inside the source" is the emitted text with the copy's buffer moved to where the slice lies: what codegen would
have to do for an operator that reads no view, had the pass not given the copy a buffer of its own.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from pypto import ir
from pypto.backend import get_target
from pypto.codegen import generate_pto
from pypto.passes import PassContext, PassPipeline
from pypto.passes.pipeline import default_passes
from pypto.pto.errors import PtoError
from pypto.simulator import load
from tile_slice_programs import mat, program, vec

TARGETS = ("Ascend910B", "Ascend950")
PASS = "CanonicalizeTileSlice"


def text_of(kernel: ir.Program, target: str, without: str | None = None) -> str:
    """The PTO text of a kernel, with a pass left out."""
    chosen = get_target(target)
    with PassContext([], target=chosen):
        made = PassPipeline([p for p in default_passes() if p.name != without]).run(kernel)
    return generate_pto(made, chosen, locations=False)["kernel"]


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
    assert "pto.textract ins(%t" not in text or "%s_ext" not in text
    args = expand_args(rng, rows)
    x, gamma, kept, out, _ = args
    execute(text, *args)
    np.testing.assert_array_equal(out, x[row : row + rows, col : col + 64] * gamma)
    np.testing.assert_array_equal(kept, x)


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
        "s = pl.tile.slice(t, [16, 64], [0, i * 8])\ny = pl.tile.muls(s, 2.0)",
        "[16, 128], pl.FP32", "[16, 64], pl.FP32", "i: pl.Scalar[pl.INDEX], ",
    )  # fmt: skip
    text = text_of(kernel, target)
    assert "pto.textract" not in text
    x, out = rng.standard_normal((16, 128), np.float32), np.zeros((16, 64), np.float32)
    for i in (0, 3, 8):
        execute(text, x, out, i)
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
vm = pl.tile.load(v, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
a = pl.tile.move(xm, target_memory=pl.Mem.Left)
b = pl.tile.move(wm, target_memory=pl.Mem.Right)
acc = pl.tile.create({whole}, pl.FP32, target_memory=pl.Mem.Acc)
win0 = pl.tile.slice(acc, [16, 32], [0, 0])
p = pl.tile.matmul_acc(win0, a, b, True)
d = pl.tile.move(vm, target_memory=pl.Mem.Right)
win1 = pl.tile.slice(acc, [16, 32], {second})
q = pl.tile.matmul_acc(win1, a, d, True)
out = pl.tile.store(p, [0, 0], out)
out = pl.tile.store(q, [16, 0], out)
return out
"""


def accumulators(whole: str, second: str) -> ir.Program:
    tensor = "pl.Tensor[[32, 32], pl.FP32]"
    weights = "w: pl.Tensor[[64, 32], pl.FP16], v: pl.Tensor[[64, 32], pl.FP16]"
    return program(
        f"x: pl.Tensor[[16, 64], pl.FP16], {weights}, out: pl.Out[{tensor}]",
        ACC.format(whole=whole, second=second), tensor,
    )  # fmt: skip


def acc_args(rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
    x, w, v = (rng.standard_normal(s).astype(np.float16) for s in ((16, 64), (64, 32), (64, 32)))
    wide = x.astype(np.float64)
    return [x, w, v, np.zeros((32, 32), np.float32)], np.concatenate([wide @ w, wide @ v])


@pytest.mark.parametrize("target", TARGETS)
def test_column_packed_accumulator(target, rng):
    args, expected = acc_args(rng)
    execute(text_of(accumulators("[16, 64]", "[0, 32]"), target), *args)
    np.testing.assert_allclose(args[-1], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_strided_accumulator(target, rng):
    """The matmul writes compactly from the window's address: here the views are what it makes of them."""
    kernel = accumulators("[32, 32]", "[16, 0]")
    with pytest.raises(ValueError, match="not contiguous in L0C's block layout"):
        text_of(kernel, target)
    text = text_of(kernel, target, PASS)
    for name, address in (("win0", 0), ("win1", 16 * 16 * 4)):
        view = rf"%{name} = pto\.subview [^\n]* -> (![^\n]*)"
        text, count = re.subn(view, rf"%at_{name} = arith.constant {address} : i64\n    %{name} = pto.alloc_tile addr = %at_{name} : \1", text)  # fmt: skip
        assert count == 1
    args, expected = acc_args(rng)
    execute(text, *args, sanitize=False)
    first = args[-1][:16]
    np.testing.assert_allclose(first[:, :16], expected[:16, :16], rtol=1e-4, atol=1e-3)
    assert not np.isclose(first[:, 16:], expected[:16, 16:]).all(axis=0).any(), "the second block is the next tile's"
