"""Weights in NZ from Python to numbers: the text of kernels, the products they give, what goes wrong without."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pypto.language as pl
from pypto import passes, simulator
from pypto.errors import InternalError
from pypto.layouts import from_nz, to_nz
from pypto.passes.pipeline import PIPELINE, PassPipeline
from pypto.pto.errors import PtoError
from pypto.pto.parser import parse_module
from pypto.pto.verify import verify_module

VERIFY = passes.VerificationLevel.ROUNDTRIP


def compiled(program):
    made = pl.compile(program, emit_source_loc=False, skip_ptoas=True, verification_level=VERIFY)
    for text in made.pto.values():
        verify_module(parse_module(text))
    return made


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, shape, np.int8)


def product(x, w):
    """``x @ w.T`` in int32."""
    return x.astype(np.int32) @ w.astype(np.int32).T


def only(made):
    (text,) = made.pto.values()
    return text


def line(text, start):
    """The one line of ``text`` that defines or does what ``start`` says, with constants as numbers."""
    found = [s.strip() for s in text.splitlines() if s.strip().startswith(start)]
    assert len(found) == 1, found
    return re.sub(r"%c(\d+)_(index|i64)", r"%c\1", found[0])


def grouped(experts, rows, depth, n_tile, k_tile, m=16, expert=1):
    """``x @ w[expert].T`` with the columns of the result over blocks, and the depth in a pipeline."""

    @pl.function
    def matmul(
        x: pl.Tensor[[m, depth], pl.INT8],
        w: pl.Tensor[[experts, rows, depth], pl.INT8, pl.NZ],
        y: pl.Out[pl.Tensor[[m, rows], pl.INT32]],
    ) -> pl.Tensor[[m, rows], pl.INT32]:
        for nb in pl.spmd(rows // n_tile):
            n0 = nb * n_tile
            acc = pl.matmul(x[:, 0:k_tile], w[expert, n0 : n0 + n_tile, 0:k_tile], b_trans=True, out_dtype=pl.INT32)
            for k0 in pl.pipeline(k_tile, depth, k_tile, stage=2):
                acc = pl.matmul_acc(
                    acc, x[:, k0 : k0 + k_tile], w[expert, n0 : n0 + n_tile, k0 : k0 + k_tile], b_trans=True
                )
            y = pl.assemble(y, acc, [0, n0])
        return y

    return matmul


# Text.


def test_the_text_of_the_specification():
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[16, 128], pl.INT8],
        w: pl.Tensor[[256, 512], pl.INT8, pl.NZ],
        y: pl.Out[pl.Tensor[[16, 256], pl.INT32]],
    ):
        wt = pl.tile.load(w, [0, 0], [256, 512], target_memory=pl.Mem.Mat)
        xt = pl.tile.load(x, [0, 0], [16, 128], target_memory=pl.Mem.Mat)
        right = pl.tile.extract(pl.tile.transpose_view(wt), 0, 0, [128, 256], target_memory=pl.Mem.Right)
        pl.store(pl.tile.matmul(pl.tile.move(xt, target_memory=pl.Mem.Left), right), [0, 0], y)

    text = only(compiled(kernel))
    assert line(text, "%w_view") == (
        "%w_view = pto.make_tensor_view %arg1, shape = [%c1, %c16, %c16, %c16, %c32], "
        "strides = [%c131072, %c8192, %c512, %c32, %c1] {layout = #pto.layout<nz>} : !pto.tensor_view<?x?x?x?x?xi8>"
    )
    assert line(text, "%w_pview") == (
        "%w_pview = pto.partition_view %w_view, offsets = [%c0, %c0, %c0, %c0, %c0], "
        "sizes = [%c1, %c16, %c16, %c16, %c32] : "
        "!pto.tensor_view<?x?x?x?x?xi8> -> !pto.partition_tensor_view<1x16x16x16x32xi8>"
    )
    assert line(text, "pto.tload ins(%w_pview").startswith(
        "pto.tload ins(%w_pview : !pto.partition_tensor_view<1x16x16x16x32xi8>) outs(%wt : !pto.tile_buf<loc=mat, "
        "dtype=i8, rows=256, cols=512, v_row=256, v_col=512, blayout=col_major, slayout=row_major, fractal=512"
    )


def test_grouped_matmul_text():
    text = only(compiled(grouped(32, 2048, 4096, n_tile=128, k_tile=512, expert=7)))
    assert line(text, "%w_view") == (
        "%w_view = pto.make_tensor_view %arg1, shape = [%c32, %c128, %c128, %c16, %c32], "
        "strides = [%c8388608, %c65536, %c512, %c32, %c1] {layout = #pto.layout<nz>} : !pto.tensor_view<?x?x?x?x?xi8>"
    )
    views = re.findall(r"partition_view %w_view, offsets = \[(.*?)\], sizes = \[(.*?)\] : .* -> (.*)", text)
    assert len(views) >= 2
    for offsets, sizes, kind in views:
        expert, columns, rows, *inner = offsets.split(", ")
        assert expert == "%c7_index" and inner == ["%c0_index"] * 2
        assert re.search(rf"{rows} = arith.floordivsi %\w+, %c16_index", text)
        if columns.removeprefix("%").isdigit():
            # Simplify may have taken the constant part of an index, which does not wrap, out of the quotient.
            added = re.search(rf"{columns} = arith.addi (%\w+), %c16_index", text)
            quotient = added[1] if added else columns
            assert re.search(rf"{quotient} = arith.floordivsi %\w+, %c32_index", text)
        else:
            assert columns in ("%c0_index", "%c112_index")
        assert sizes == "%c1_index, %c16_index, %c8_index, %c16_index, %c32_index"
        assert kind == "!pto.partition_tensor_view<1x16x8x16x32xi8>"
    assert any(offsets.split(", ")[1] != "%c0_index" for offsets, _, _ in views)


# Numbers.


@pytest.mark.parametrize("expert", [0, 1, 3])
def test_grouped_matmul(expert):
    made = compiled(grouped(4, 64, 256, n_tile=32, k_tile=64, expert=expert))
    x, w, y = numbers(16, 256), numbers(4, 64, 256, seed=1), np.zeros((16, 64), np.int32)
    assert made(x, to_nz(w), y) is y
    np.testing.assert_array_equal(y, product(x, w[expert]))
    assert len(made.reports) == 2


def test_every_expert_in_one_kernel():
    @pl.function
    def matmul(
        x: pl.Tensor[[3, 16, 64], pl.INT8],
        w: pl.Tensor[[3, 32, 64], pl.INT8, pl.NZ],
        y: pl.Out[pl.Tensor[[48, 32], pl.INT32]],
    ) -> pl.Tensor[[48, 32], pl.INT32]:
        for e in pl.spmd(3):
            y = pl.assemble(y, pl.matmul(x[e], w[e], b_trans=True, out_dtype=pl.INT32), [e * 16, 0])
        return y

    x, w, y = numbers(3, 16, 64), numbers(3, 32, 64, seed=1), np.zeros((48, 32), np.int32)
    compiled(matmul)(x, to_nz(w), y)
    np.testing.assert_array_equal(y.reshape(3, 16, 32), np.stack([product(a, b) for a, b in zip(x, w)]))


def rank_two(layout_is_nz):
    """``x @ w.T`` with ``w`` ``[256, 512]``; by tiles of 64 rows and 128 columns."""
    kind = pl.Tensor[[256, 512], pl.INT8, pl.NZ] if layout_is_nz else pl.Tensor[[256, 512], pl.INT8]

    @pl.function
    def matmul(
        x: pl.Tensor[[16, 512], pl.INT8], w: kind, y: pl.Out[pl.Tensor[[16, 256], pl.INT32]]
    ) -> pl.Tensor[[16, 256], pl.INT32]:
        for nb in pl.spmd(4):
            n0 = nb * 64
            acc = pl.matmul(x[:, 0:128], w[n0 : n0 + 64, 0:128], b_trans=True, out_dtype=pl.INT32)
            for k0 in pl.pipeline(128, 512, 128, stage=2):
                acc = pl.matmul_acc(acc, x[:, k0 : k0 + 128], w[n0 : n0 + 64, k0 : k0 + 128], b_trans=True)
            y = pl.assemble(y, acc, [0, n0])
        return y

    return matmul


def test_rank_two_weight():
    x, w, y = numbers(16, 512), numbers(256, 512, seed=1), np.zeros((16, 256), np.int32)
    made = compiled(rank_two(True))
    made(x, to_nz(w), y)
    np.testing.assert_array_equal(y, product(x, w))
    assert made.entry.params[1].type.shape[0].value == 1


@pytest.mark.parametrize(("dtype", "out"), [("FP16", "FP32"), ("BF16", "FP32"), ("FP32", "FP32")])
def test_other_dtypes(dtype, out):
    kind, result = getattr(pl, dtype), getattr(pl, out)

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[16, 64], kind], w: pl.Tensor[[2, 64, 96], kind, pl.NZ], y: pl.Out[pl.Tensor[[16, 64], result]]
    ):
        wt: pl.Tile[[64, 64], kind, pl.Mem.Mat] = pl.tile.load(w, [1, 0, 32], [1, 64, 64], target_memory=pl.Mem.Mat)
        xt = pl.tile.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        pl.store(pl.matmul(xt, wt), [0, 0], y)

    rng = np.random.default_rng(3)
    x, w = (rng.integers(-4, 5, s).astype(kind.numpy) for s in ((16, 64), (2, 64, 96)))
    y = np.zeros((16, 64), np.float32)
    compiled(kernel)(x, to_nz(w), y)
    np.testing.assert_array_equal(y, x.astype(np.float32) @ w[1, :, 32:].astype(np.float32))


def test_an_array_in_rows_is_not_taken_for_blocks():
    made = compiled(rank_two(True))
    with pytest.raises(ValueError, match=r"argument 'w' must have shape \[1, 16, 16, 16, 32\]") as caught:
        made(numbers(16, 512), numbers(256, 512), np.zeros((16, 256), np.int32))
    assert "pypto.layouts.to_nz" in str(caught.value)


@pytest.mark.parametrize("left_out, columns, loads", [(65_535 // 16 * 16, 64, True), (65_552, 64, False),
                                                      (65_552, 32, True)])  # fmt: skip
def test_rows_left_out_between_columns_of_boxes_are_as_many_as_a_load_holds(left_out, columns, loads):
    rows = left_out + 16

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[16, 64], pl.INT8], w: pl.Tensor[[rows, 64], pl.INT8, pl.NZ],
        y: pl.Out[pl.Tensor[[16, 16], pl.INT32]],
    ):  # fmt: skip
        xt = pl.tile.load(x, [0, 0], [16, columns], target_memory=pl.Mem.Mat)
        wt = pl.tile.load(w, [0, 0], [16, columns], target_memory=pl.Mem.Mat)
        pl.store(pl.matmul(xt, pl.tile.transpose_view(wt)), [0, 0], y)

    if loads:
        assert compiled(kernel).pto
        return
    with pytest.raises(ValueError, match="leaves out 65552 rows between .* at most 65535") as caught:
        compiled(kernel)
    assert "wt = pl.tile.load(w" in str(caught.value)


# Without the pass.


@pl.program
class Kernel:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, w: pl.Tensor[[32, 64], pl.INT8, pl.NZ], y: pl.Out[pl.Tensor[[32, 64], pl.INT8]]):
        wt = pl.tile.load(w, [0, 0], [32, 64], target_memory=pl.Mem.Mat)  # noqa: F841


def test_without_the_pass_nothing_runs():
    left_out = [getattr(passes, name)() for name in PIPELINE if name != "block_nz_tensor_views"]
    for level in (passes.VerificationLevel.NONE, passes.VerificationLevel.BASIC):
        with (
            passes.PassContext([], verification_level=level),
            pytest.raises(InternalError, match="BlockNzTensorViews has not run") as caught,
        ):
            PassPipeline(left_out).run(Kernel)
        assert caught.value.span.filename == __file__


def test_bytes_in_nz_order_read_as_rows_give_wrong_numbers():
    """Leaving the layout out of the tensor view is what a compiler without the pass would have to do."""
    x, w = numbers(16, 512), numbers(256, 512, seed=1)
    right, wrong = np.zeros((16, 256), np.int32), np.zeros((16, 256), np.int32)
    packed = to_nz(w)
    compiled(rank_two(True))(x, packed, right)
    compiled(rank_two(False))(x, packed.reshape(256, 512), wrong)
    np.testing.assert_array_equal(right, product(x, w))
    assert (wrong != right).mean() > 0.99
    np.testing.assert_array_equal(wrong, product(x, packed.reshape(256, 512)))


VIEW = "!pto.tensor_view<?x?x?x?x?xi8>"
FRACTAL = "!pto.partition_tensor_view<1x1x1x16x32xi8>"
TILE = (
    "!pto.tile_buf<loc=mat, dtype=i8, rows=16, cols=32, v_row=16, v_col=32, blayout=col_major, slayout=row_major, "
    "fractal=512, pad=0>"
)


def pick_text(row, block):
    """A kernel that copies the fractal at row ``row`` of a ``[64, 128]`` weight; ``block`` makes the row a block."""
    nz = f"{{layout = #pto.layout<nz>}} : {VIEW}"
    numbers = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 16, 32, 512, 2048, 8192))
    one = "sizes = [%c1, %c1, %c1, %c16, %c32]"
    return f"""module attributes {{pto.target_arch = "a2a3"}} {{
  func.func @pick(%w: !pto.ptr<i8>, %y: !pto.ptr<i8>) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    {numbers}
    %row = arith.constant {row} : index
    %a = arith.constant 0 : i64
    %v = pto.make_tensor_view %w, shape = [%c1, %c4, %c4, %c16, %c32],
      strides = [%c8192, %c2048, %c512, %c32, %c1] {nz}
    %o = pto.make_tensor_view %y, shape = [%c1, %c1, %c1, %c16, %c32],
      strides = [%c512, %c512, %c512, %c32, %c1] {nz}
    %t = pto.alloc_tile addr = %a : {TILE}
    %block = {block}
    %p = pto.partition_view %v, offsets = [%c0, %c0, %block, %c0, %c0], {one} : {VIEW} -> {FRACTAL}
    %q = pto.partition_view %o, offsets = [%c0, %c0, %c0, %c0, %c0], {one} : {VIEW} -> {FRACTAL}
    pto.tload ins(%p : {FRACTAL}) outs(%t : {TILE})
    pto.tstore ins(%t : {TILE}) outs(%q : {FRACTAL})
    return
  }}
}}
"""


def pick(row, block):
    w = numbers(64, 128)
    y = np.zeros((1, 1, 1, 16, 32), np.int8)
    simulator.load(pick_text(row, block)).kernels["pick"].run([to_nz(w), y])
    return w, from_nz(y)


def test_a_guessed_block_reads_the_wrong_fractal():
    divided = "arith.floordivsi %row, %c16 : index"
    w, tile = pick(32, divided)
    np.testing.assert_array_equal(tile, w[32:48, :32])
    # An offset that is no multiple, divided all the same: rows 32 to 47 are not rows 40 to 55.
    w, tile = pick(40, divided)
    np.testing.assert_array_equal(tile, w[32:48, :32])
    assert not np.array_equal(tile, w[40:56, :32])
    # A negative offset is a negative block; clamped to 0 it reads other rows, here it is refused.
    with pytest.raises(PtoError, match="takes elements -1"):
        pick(-16, divided)
    w, tile = pick(-16, "arith.maxsi %row, %c0 : index")
    np.testing.assert_array_equal(tile, w[:16, :32])
    # An offset in elements, as the author wrote it, is outside: there are 4 blocks of rows.
    with pytest.raises(PtoError, match="axis 2, which has 4"):
        pick(32, "arith.addi %row, %c0 : index")
