"""BlockMxScaleTensorViews: scales take the shape of their boxes, and loads follow, or are refused."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import ASCEND910B, ASCEND950
from pypto.errors import Diagnosed
from pypto.ir.visitor import walk
from pypto.layouts import to_mx_a, to_mx_b
from pypto.passes.pipeline import check_roundtrip

PAGE = Path(__file__).parents[2] / "docs" / "passes" / "block_mx_scale_tensor_views.md"
BLOCKS = re.findall(r"```python (\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
LEFT, RIGHT = "pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ]", "pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN]"


def kernel(*lines, tensor=LEFT):
    body = "\n".join(f"        {line}" for line in lines)
    return pl.parse(
        "import pypto.language as pl\n@pl.program\nclass Before:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def kernel(self, s: {tensor}, n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX]):\n{body}\n"
    )


def load(offsets, window="[16, 2]", more="", memory="pl.Mem.Mat"):
    return f"t = pl.tile.load(s, {offsets}, {window}, target_memory={memory}{more})"


def flat(program):
    return passes.flatten_tile_nd_to_2d()(passes.convert_to_ssa()(program))


def run(program, target=ASCEND950):
    with passes.PassContext(target=target):
        made = passes.block_mx_scale_tensor_views()(flat(program))
    check_roundtrip("BlockMxScaleTensorViews", made)
    return made


def the_load(program):
    calls = [n for f in program.functions.values() for n in walk(f) if isinstance(n, ir.Call)]
    (call,) = [c for c in calls if c.op.name == "tile.load"]
    return call


def numbers(dims):
    return [d.value for d in dims.elements]


@pytest.mark.parametrize(
    ("tensor", "offsets", "window", "at", "taken"),
    [
        (LEFT, "[16, 4]", "[32, 4]", [0, 1, 2, 0, 0], [1, 2, 2, 16, 2]),
        (RIGHT, "[4, 16]", "[4, 32]", [0, 1, 2, 0, 0], [1, 2, 2, 16, 2]),
        (LEFT, "[0, 0]", "[64, 8]", [0, 0, 0, 0, 0], [1, 4, 4, 16, 2]),
        (RIGHT, "[6, 48]", "[2, 16]", [0, 3, 3, 0, 0], [1, 1, 1, 16, 2]),
    ],
)
def test_loads_take_boxes_and_keep_their_tile(tensor, offsets, window, at, taken):
    before = kernel(load(offsets, window), tensor=tensor)
    made = run(before)
    call, old = the_load(made), the_load(flat(before))
    assert numbers(call.args[1]) == at and numbers(call.args[2]) == numbers(call.args[3]) == taken
    assert [d.value for d in call.args[0].type.shape] == [1, 4, 4, 16, 2]
    ir.assert_structural_equal(call.type, old.type)


def test_a_narrowed_load_reads_whole_boxes_and_keeps_what_counts():
    call = the_load(run(kernel(load("[0, 0]", more=", valid_shape=[n, 2]"))))
    assert numbers(call.args[2]) == [1, 1, 1, 16, 2]
    assert call.args[3].elements[0] is call.type.valid_shape[0] and call.type.valid_shape[1].value == 2


@pytest.mark.parametrize(
    ("lines", "tensor"),
    [
        (("for k0 in pl.range(0, 256, 64):", "    " + load("[0, k0 // 32]")), LEFT),
        (("for k0 in pl.range(0, 256, 64):", "    " + load("[k0 // 32, 0]", "[2, 16]")), RIGHT),
        (("m0 = pl.tile.get_block_idx() * 16", load("[m0, 0]")), LEFT),
    ],
)
def test_computed_offsets_are_divided_as_a_whole(lines, tensor):
    call = the_load(run(kernel(*lines, tensor=tensor)))
    assert sum(isinstance(o, ir.FloorDiv) for o in call.args[1].elements) == 1


def test_a_second_run_changes_nothing():
    once = run(kernel(load("[0, 0]")))
    assert run(once) is once
    assert once.get_function("kernel").attrs["mx_tensor_views_blocked"]


def test_a_program_without_scales_is_the_same_object():
    plain = flat(kernel(load("[0, 0]"), tensor="pl.Tensor[[64, 8], pl.FP16]"))
    with passes.PassContext(target=ASCEND910B):
        assert passes.block_mx_scale_tensor_views()(plain) is plain


@pytest.mark.parametrize(
    ("lines", "tensor", "message"),
    [
        ((load("[n, 0]"),), LEFT, "offset 'n' of its rows is not provably a multiple of 16"),
        ((load("[0, n]", "[2, 16]"),), RIGHT, "offset 'n' of its columns is not provably a multiple of 16"),
        ((load("[0, n]"),), LEFT, "offset 'n' of its groups is not provably a multiple of 2"),
        (("m0 = pl.tile.get_block_idx() * 16 - 64", load("[m0, 0]")), LEFT, "not provably non-negative"),
        ((load("[8, 0]"),), LEFT, "offset 8 of its rows is not a multiple of 16"),
        ((load("[0, 1]"),), LEFT, "offset 1 of its groups is not a multiple of 2"),
        ((load("[0, 0]", "[8, 2]"),), LEFT, "not made of whole boxes, 16 in dimension 0"),
        ((load("[0, 0]", "[1, 16]"),), RIGHT, "not made of whole boxes, 2 in dimension 0"),
        ((load("[0, 0]"),), LEFT.replace("64, 8", "40, 8"), "'s': .40, 8. is not made of whole boxes, 16"),
        ((load("[0, 0]"),), LEFT.replace("64, 8", "64, 7"), "not made of whole boxes, 2 in dimension 1"),
    ],
)
def test_what_is_not_addressed_in_boxes_is_refused(lines, tensor, message):
    with pytest.raises(ValueError, match=message) as caught:
        run(kernel(*lines, tensor=tensor))
    assert isinstance(caught.value, Diagnosed) and caught.value.hint


def test_scales_are_read_by_loads_only():
    with pytest.raises(ValueError, match="tensor.read uses MX tensor 's': here MX is read-only"):
        run(kernel("t = pl.tensor.read(s, [0, 0])"))


@pl.program
class Product:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self,
        a: pl.Tensor[[64, 256], pl.FP8E4M3FN],
        a_s: pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 64], pl.FP8E4M3FN],
        b_s: pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        for m0 in pl.range(0, 64, 32):
            left = pl.load(a, [m0, 64], [32, 128], target_memory=pl.Mem.Mat)
            left_s = pl.load(a_s, [m0, 2], [32, 4], target_memory=pl.Mem.Mat)
            right = pl.load(b, [64, 0], [128, 64], target_memory=pl.Mem.Mat)
            right_s = pl.load(b_s, [2, 0], [4, 64], target_memory=pl.Mem.Mat)
            pl.store(pl.matmul_mx(left, left_s, right, right_s), [m0, 0], out)


def test_windows_of_scales_reach_the_product_of_their_data():
    rng = np.random.default_rng(3)
    a, b = ((rng.integers(-14, 15, shape) / 4).astype(ml_dtypes.float8_e4m3fn) for shape in ((64, 256), (256, 64)))
    a_s, b_s = (np.exp2(rng.integers(-2, 3, shape)).astype(ml_dtypes.float8_e8m0fnu) for shape in ((64, 8), (8, 64)))
    out = np.zeros((64, 64), np.float32)
    pl.compile(Product, target=ASCEND950, dump_passes=False)(a, to_mx_a(a_s), b, to_mx_b(b_s), out)
    left = a.astype(float) * np.repeat(a_s.astype(float), 32, axis=1)
    right = b.astype(float) * np.repeat(b_s.astype(float), 32, axis=0)
    np.testing.assert_array_equal(out, left[:, 64:192] @ right[64:192])


def test_a_target_without_scale_memories_refuses_products_first_then_loads():
    with pytest.raises(ValueError, match=r"tile.matmul_mx is only supported on Ascend950 \(a5\): Ascend910B") as caught:
        run(Product, ASCEND910B)
    assert caught.value.span.begin_line == Path(__file__).read_text().split("pl.store(pl.matmul_mx")[0].count("\n") + 1
    with pytest.raises(ValueError, match="tile.load of MX scales is only supported on Ascend950"):
        run(kernel(load("[0, 0]")), ASCEND910B)


def test_the_page_has_every_kind_of_example():
    assert [kind for kind, _ in BLOCKS] == ["before", "after", "refused", "accepted", "arrays"]


def test_the_examples_of_the_page():
    examples = dict(BLOCKS)
    made = run(pl.parse(examples["before"]))
    ir.assert_structural_equal(made, passes.convert_to_ssa()(pl.parse(examples["after"])))
    with pytest.raises(ValueError, match="'k0' of its groups is not provably a multiple of 2"):
        run(pl.parse(examples["refused"]))
    assert run(pl.parse(examples["accepted"]))
    exec(examples["arrays"], {"np": np, "to_mx_a": to_mx_a, "to_mx_b": to_mx_b})
