"""The vector work of a mixed kernel is divided between the lanes, by the compiler or by its author."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
import text_programs
from checking import run, unchanged

import pypto.language as pl
from pypto import ir, passes
from pypto.errors import KernelValueError

SEED = "seed: pl.Tensor[[16, 64], pl.FP16], w: pl.Tensor[[64, 32], pl.FP16], "
CUBE = """
l = pl.move(pl.load(seed, [0, 0], [16, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
r = pl.move(pl.load(w, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
c = pl.matmul(l, r)
v = pl.move(c, target_memory=pl.Mem.Vec, blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box)
"""
OUT = "out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]"
UP_DOWN, LEFT_RIGHT = '"split": pl.SplitMode.UP_DOWN', '"split": pl.SplitMode.LEFT_RIGHT'


pytestmark = pytest.mark.usefixtures("on_950")
STEPS = (passes.convert_to_ssa, passes.flatten_call_expr, passes.infer_tile_memory_space)


def parsed(body: str, attrs: str, params: str) -> ir.Program:
    return text_programs.kernel(
        params, body, decorator=f"@pl.function(type=pl.FunctionType.InCore, attrs={{{attrs}}})"
    )


def kernel(body: str, attrs: str, params: str = SEED + OUT) -> ir.Program:
    return run(parsed(body, attrs, params), *STEPS)


def divided(body: str, attrs: str, params: str = SEED + OUT) -> ir.Program:
    return run(kernel(body, attrs, params), passes.lower_auto_vector_split)


def by_hand(body: str, attrs: str, params: str = SEED + OUT) -> ir.Program:
    """What the compiler should make of it, written out."""
    made = parsed("lane = pl.tile.get_subblock_idx()\n" + dedent(body).strip(), attrs + ', "split_aiv": True', params)
    with passes.PassContext([]):  # The crossings stand outside a region, as only passes write them.
        for step in STEPS:
            made = step()(made)
    return made


def shard(mode: int) -> str:
    return CUBE[: CUBE.index("v = ")] + f"v = pl.tile.aiv_shard(c, split={mode})\n"


def test_rows_are_divided() -> None:
    rest = "e = pl.exp(v)\nb = pl.load(bias, [0, 0], [{}, 1])\ns = pl.row_expand_add(e, b)\n"
    params = SEED + "bias: pl.Tensor[[16, 1], pl.FP32], " + OUT
    after = divided(CUBE + rest.format(16) + "out = pl.store(s, [0, 0], out)\nreturn out", UP_DOWN, params)
    own = rest.format(8).replace("[0, 0]", "[0 + lane * 8, 0]")
    expected = by_hand(shard(1) + own + "out = pl.store(s, [0 + lane * 8, 0], out)\nreturn out", UP_DOWN, params)
    ir.assert_structural_equal(after, expected)
    unchanged(after, passes.lower_auto_vector_split)


def test_columns_are_divided() -> None:
    rest = "z = pl.tile.full([{}], dtype=pl.FP32, value=1.0)\ne = pl.add(v, z)\n"
    after = divided(CUBE + rest.format("16, 32") + "out = pl.store(e, [0, 0], out)\nreturn out", LEFT_RIGHT)
    own = "out = pl.store(e, [0, 0 + lane * 16], out)\nreturn out"
    ir.assert_structural_equal(after, by_hand(shard(2) + rest.format("16, 16") + own, LEFT_RIGHT))


def test_what_goes_back_to_the_cube_is_joined() -> None:
    back = "m = pl.move(e, target_memory=pl.Mem.Mat)\nout = pl.store(e, [0, 0], out)\nreturn out"
    after = divided(CUBE + "e = pl.exp(v)\n" + back, UP_DOWN)
    calls = {n.var.name_hint: n for n in ir.visitor.walk(after) if isinstance(n, ir.AssignStmt)}  # pyright: ignore
    joined = next(n for name, n in calls.items() if name.endswith("_mat"))
    assert isinstance(joined.value, ir.Call) and joined.value.op.name == "tile.aic_gather"
    assert joined.var.type == ir.TileType([16, 32], pl.FP32, None, None, ir.MemorySpace.Mat)


def test_a_loop_carries_the_part() -> None:
    body = CUBE + """
for i, (t,) in pl.range(3, init_values=(v,)):
    n = pl.exp(t)
    t = pl.yield_(n)
out = pl.store(t, [0, 0], out)
return out
"""
    own = body[body.index("for i"):].replace("[0, 0], out)", "[0 + lane * 8, 0], out)")
    ir.assert_structural_equal(divided(body, UP_DOWN), by_hand(shard(1) + own, UP_DOWN))


def test_a_ragged_product_is_handed_over_whole_and_then_seen_as_what_is_valid() -> None:
    body = CUBE.replace("v = pl.move(c,", "c = pl.tile.set_validshape(c, 13, 32)\nv = pl.move(c,")
    text = str(divided(body + "out = pl.store(v, [0, 0], out)\nreturn out", UP_DOWN))
    assert "pl.tile.set_validshape(c__ssa_v1, 16, 32)" in text and "aiv_shard" in text and "lane_stride" not in text
    rows = "pl.min(pl.max(13, subblock_idx * 8) - subblock_idx * 8, 8)"
    assert f"pl.tile.set_validshape(v__ssa_v0_part, {rows}, 32)" in text


def test_a_ragged_product_of_several_boxes_is_made_one_of_all_rows() -> None:
    body = """
l = pl.load(a, [0, 0], [32, 64], valid_shape=[n, 64], target_memory=pl.Mem.Mat)
c = pl.matmul(pl.move(l, target_memory=pl.Mem.Left), pl.move(m, target_memory=pl.Mem.Right))
v = pl.move(c, target_memory=pl.Mem.Vec)
out = pl.store(v, [0, 0], out)
return out
"""
    params = "a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], n: pl.Scalar[pl.INDEX], "
    params += "out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]"
    load = "m = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)"
    text = str(divided(load + body, UP_DOWN, params))
    assert ", 32, 64)" in text and "compact" not in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("s = pl.col_sum(e)", "reduces on the split axis"),
        ("s = pl.transpose(e, axis1=0, axis2=1)", "swaps the split axis: the kernel is split UP_DOWN"),
        ("s = pl.tile.slice(e, [8, 32], [4, 0])", "which is not all of it"),
        ("s = pl.read(e, [0, 0])", "needs all of 'e', which the lanes divide"),
        ("s = pl.concat(e, e)", "is not known to work on parts of its tiles"),
    ],
)
def test_work_that_cannot_be_divided(line: str, message: str) -> None:
    with pytest.raises(KernelValueError) as caught:
        divided(CUBE + f"e = pl.exp(v)\n{line}\nout = pl.store(e, [0, 0], out)\nreturn out", UP_DOWN)
    assert message in str(caught.value) and line.rpartition("= ")[2].rpartition("(")[0] in str(caught.value)


def test_kernels_of_one_core_and_divided_ones_are_left() -> None:
    vector = kernel("out = pl.store(pl.exp(pl.load(out, [0, 0], [16, 32])), [0, 0], out)\nreturn out", UP_DOWN,
                    OUT.replace("pl.Out", "pl.InOut"))  # fmt: skip
    unchanged(vector, passes.lower_auto_vector_split)


def region(mode: str, lines: str) -> ir.Program:
    params = f"a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], {OUT}"
    body = f"""
with pl.at(level=pl.Level.CORE_GROUP):
    c = pl.matmul(a, b, out_dtype=pl.FP32)
    for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
{indent(dedent(lines).strip(), " " * 8)}
return out
"""
    made = text_programs.program(text_programs.method("main", params, body, decorator="@pl.function"))
    pipeline = passes.PIPELINE[: passes.PIPELINE.index("lower_auto_vector_split") + 1]
    for name in pipeline:
        made = getattr(passes, name)()(made)
    return made


def test_a_region_its_author_divided_is_taken_as_it_is() -> None:
    lines = "h = pl.exp(pl.aiv_shard(c))\nout = pl.assemble(out, h, [lane * 8, 0])"
    made = region("UP_DOWN", lines)
    function = next(f for f in made.functions.values() if f.is_incore)
    assert function.attrs["split_aiv"] and function.attrs["split_aiv_region_validated"]
    text = str(function)
    assert "split_aiv(" not in text and text.count("get_subblock_idx") == 1 and text.count("aiv_shard") == 1


def test_a_region_that_mixes_parts_and_wholes() -> None:
    lines = """
    h = pl.exp(pl.aiv_shard(c))
    x = pl.exp(pl.slice(out, [8, 32], [0, 0]))
    out = pl.assemble(out, pl.add(h, x), [lane * 8, 0])
    """
    with pytest.raises(KernelValueError, match="mixes explicit crossings with vector work on whole tiles"):
        region("UP_DOWN", lines)
