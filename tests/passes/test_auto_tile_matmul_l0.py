"""What becomes of products that do not fit L0, and which products are left alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from matmul_programs import before_the_pass, biased, hints, product, reduction, tiled

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import get_target
from pypto.errors import CapacityError


def k_loop(m: int, n: int, blocks: str, first: str, init: str = "") -> str:
    return f"""
init = pl.tile.create([{m}, {n}], dtype=pl.FP32, target_memory=pl.Mem.Acc)
{init}
for ko, (acc,) in pl.pipeline({blocks}, init_values=(init,), stage=2):
    l = pl.tile.extract(am, 0, ko, [{m}, 128], target_memory=pl.Mem.Left)
    r = pl.tile.extract(bm, ko, 0, [128, {n}], target_memory=pl.Mem.Right)
    if ko == 0:
        fresh = {first}
        both = pl.yield_(fresh)
    else:
        more = pl.tile.matmul_acc(acc, l, r)
        both = pl.yield_(more)
    c = pl.yield_(both)
"""


def becomes(before: ir.Program, after: ir.Program, **settings: Any) -> None:
    ir.assert_structural_equal(tiled(before, **settings), after)


def test_k_is_looped_over():
    before = product(64, 512, 128)
    becomes(before, product(64, 512, 128, lines=k_loop(64, 128, "0, 512, 128", "pl.tile.matmul(l, r)")))


def test_a_bias_is_added_once():
    move = (
        "bias_mat = pl.tile.load(bias, [0, 0], [1, 128], target_memory=pl.Mem.Mat)\n"
        "row = pl.tile.move(bias_mat, target_memory=pl.Mem.Bias)\n"
    )
    loop = k_loop(64, 128, "0, 512, 128", "pl.tile.matmul_bias(l, r, row)")
    becomes(product(64, 512, 128, lines=biased(128)), product(64, 512, 128, lines=move + loop))


def test_what_k_leaves_follows_the_loop():
    text = str(tiled(product(64, 688, 64), "Ascend950"))
    blocks = re.search(r"pl\.pipeline\(0, (\d+), (\d+),", text)
    assert blocks is not None and int(blocks[1]) < 688 and int(blocks[1]) % int(blocks[2]) == 0
    tail = 688 - int(blocks[1])
    assert f"[64, {tail}], target_memory=pl.Mem.Left" in text and f"[{tail}, 64], target_memory=pl.Mem.Right" in text


def test_a_result_too_large_for_l0c_is_stored_in_parts():
    made = tiled(product(256, 64, 256))
    loops = re.findall(r"in pl\.(pipeline|range)\(0, (\d+), (\d+)", str(made))
    assert loops == [("pipeline", "256", "256"), ("pipeline", "256", "128")]
    assert str(made).count("pl.tile.matmul(") == 1 and "pl.Tile[[256, 256], pl.FP32" not in str(made)


def test_edges_follow_the_loops():
    text = str(tiled(product(272, 64, 272)))
    assert text.count("pl.pipeline(") == 2
    assert text.count("pl.tile.matmul(") == text.count("pl.tile.store(") > 1


def test_one_operand_stays_while_the_other_goes_by():
    text = str(tiled(product(192, 64, 512)))
    loops = re.findall(r"in pl\.(pipeline|range)\(0, (\d+), (\d+)", text)
    assert loops == [("range", "512", "512"), ("pipeline", "192", "64")]


def test_bias_windows_replace_the_load():
    text = str(tiled(product(256, 64, 512, lines=biased(512))))
    windows = [int(n) for n in re.findall(r"pl\.tile\.load\(bias__ssa_v0, \[[^]]*\], \[1, (\d+)\]", text)]
    assert windows and max(windows) <= 256
    assert "bias_mat__ssa_v0:" not in text


def test_a_bias_another_statement_may_change_is_kept():
    lines = biased(512).replace("c = ", "am2 = pl.tile.create([16, 16], dtype=pl.BF16, target_memory=pl.Mem.Mat)\nc = ")
    told = hints(product(256, 64, 512, lines=lines))
    assert any("PH-AT-011" in line for line in told)


def test_two_accumulators_where_the_planner_has_room():
    before = product(256, 64, 256)
    single = str(tiled(before))
    assert "pipeline_double_buffer_c" not in single
    double = str(tiled(before, memory_planner=passes.MemoryPlanner.PTOAS))
    assert '"pipeline_double_buffer_c": True' in double
    assert double == str(tiled(before, enable_pypto_l0c_double_buffer=True))


def lowered_order(program: ir.Program, **settings: Any) -> str:
    """M for a product and S for a store, in the order they have at the end."""
    with passes.PassContext([], target=get_target("Ascend910B"), **settings):
        for factory in ("auto_tile_matmul_l0", "infer_tile_memory_space", "lower_pipeline_loops"):
            program = getattr(passes, factory)()(program)
        text = str(passes.canonicalize_io_order()(program))
    assert "pipeline_overlap_stores" not in text and "pipeline_double_buffer_c" not in text
    marks = {"matmul": "M", "store": "S"}
    return "".join(marks[name] for name in re.findall(r"pl\.tile\.(matmul|store)\(", text))


def test_one_accumulator_drains_before_the_next_product():
    assert set(re.findall("..", lowered_order(product(256, 64, 256)))) == {"MS"}


def test_two_accumulators_drain_while_the_others_fill():
    order = lowered_order(product(256, 64, 256), memory_planner=passes.MemoryPlanner.PTOAS)
    assert set(re.findall("....", order)) == {"MMSS"}


@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (16, 128, 128), (128, 128, 128), (16, 16, 16)])
def test_what_fits_is_the_same_object(m, k, n):
    program = product(m, k, n)
    with passes.PassContext([], target=get_target("Ascend910B")):
        assert passes.auto_tile_matmul_l0()(program) is program


def test_without_a_target_nothing_is_known():
    program = product(256, 256, 256)
    with passes.PassContext([]):
        assert passes.auto_tile_matmul_l0()(program) is program


def test_programs_without_products_are_not_looked_at():
    program = product(16, 16, 16, lines="c = pl.tile.create([16, 16], dtype=pl.FP32, target_memory=pl.Mem.Acc)")
    assert not passes.auto_tile_matmul_l0().applies_to(program)


@pytest.mark.parametrize(
    ("code", "program"),
    [
        ("PH-AT-003", lambda: product(16, 2048, 64, "INT4")),
        ("PH-AT-007", lambda: product(16, 2050, 64)),
        (
            "PH-AT-006",
            lambda: product(512, 64, 512, lines="d = pl.tile.matmul(am, bm)\nc = pl.tile.matmul_acc(d, am, bm)"),
        ),
    ],
)
def test_what_is_not_tiled_is_told(code, program, monkeypatch):
    import matmul_programs

    monkeypatch.setitem(matmul_programs.DTYPES, "INT4", None)
    monkeypatch.setattr(matmul_programs, "result_of", lambda d: "INT32" if d.startswith("INT") else "FP32")
    told = hints(program())
    assert told and all(code in line for line in told)


def test_operands_placed_in_l0_are_the_authors():
    lines = """
l = pl.tile.extract(am, 0, 0, [64, 256], target_memory=pl.Mem.Left)
r = pl.tile.extract(bm, 0, 0, [256, {n}], target_memory=pl.Mem.Right)
c = pl.tile.matmul(l, r)
"""
    fits = product(64, 256, 128, lines=lines.format(n=128))
    with passes.PassContext([], target=get_target("Ascend910B")):
        assert passes.auto_tile_matmul_l0()(fits) is fits
        with pytest.raises(CapacityError, match=r"right operand 'r' .*\[256, 256\].* requiring 131072 bytes") as caught:
            passes.auto_tile_matmul_l0()(product(64, 256, 256, lines=lines.format(n=256)))
    assert "c = pl.tile.matmul(l, r)" in str(caught.value) and "Keep this operand in Mat" in str(caught.value)


def test_a_vector_operand_is_staged_once():
    lines = """
av = pl.tile.load(a, [0, 0], [16, 2048], target_memory=pl.Mem.Vec)
c = pl.tile.matmul(av, bm)
"""
    text = str(tiled(product(16, 2048, 64, lines=lines)))
    assert text.count("pl.tile.move(") == 1 and text.index("pl.tile.move(") < text.index("pl.pipeline(")


def test_the_result_is_stored_where_it_was():
    source = str(product(256, 64, 256)).replace("[0, 0], out__ssa_v0)", "[32, 64], out__ssa_v0)")
    source = source.replace("pl.Out[pl.Tensor[[256, 256]", "pl.Out[pl.Tensor[[512, 512]")
    source = source.replace("pl.Tensor[[256, 256], pl.FP32]", "pl.Tensor[[512, 512], pl.FP32]")
    program = pl.parse(source)
    assert isinstance(program, ir.Program)
    text = str(tiled(program))
    assert re.search(r"\[32 \+ \w+, 64 \+ \w+\]", text)


def test_a_bias_in_bias_is_used_whole():
    lines = biased(256).replace("c = ", "row = pl.tile.move(bias_mat, target_memory=pl.Mem.Bias)\nc = ")
    text = str(tiled(product(528, 64, 256, lines=lines.replace("bm, bias_mat)", "bm, row)"))))
    assert "pl.pipeline(" in text and text.count("target_memory=pl.Mem.Bias") == 1
    told = hints(product(256, 64, 512, lines=lines.replace("256", "512").replace("bm, bias_mat)", "bm, row)")))
    assert all("PH-AT-006" in line for line in told)


# Pipelines whose author tiled the product.


def pipelined(
    trips: int = 4, rows: int = 16, stage: int = 2, extra: str = "", operand: str = "held", dtype: str = "BF16"
) -> ir.Program:
    """A product an iteration of ``held`` and a window of ``b``, stored to what the loop carries."""
    cols = 256 // stage
    width = cols * trips
    made = "INT32" if dtype == "INT8" else "FP32"
    text = f"""
import pypto.language as pl

@pl.program
class Kernel:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, a: pl.Tensor[[{rows}, 128], pl.{dtype}], b: pl.Tensor[[128, {width}], pl.{dtype}],
               out: pl.Out[pl.Tensor[[{rows}, {width}], pl.{made}]]) -> pl.Tensor[[{rows}, {width}], pl.{made}]:
        am = pl.tile.load(a, [0, 0], [{rows}, 128], target_memory=pl.Mem.Mat)
        bm = pl.tile.load(b, [0, 0], [128, {width}], target_memory=pl.Mem.Mat)
        held = pl.tile.move(am, target_memory=pl.Mem.Left)
        for j, (out_j,) in pl.pipeline(0, {width}, {cols}, init_values=(out,), stage={stage}):
            again = pl.tile.extract(am, 0, 0, [{rows}, 128], target_memory=pl.Mem.Left)
            r = pl.tile.extract(bm, 0, j, [128, {cols}], target_memory=pl.Mem.Right)
            {extra or "pass"}
            c = pl.tile.matmul({operand}, r)
            stored = pl.tile.store(c, [0, j], out_j)
            out = pl.yield_(stored)
        return out
"""
    text = text.replace("            pass\n", "")
    if operand == "held":
        text = "\n".join(line for line in text.splitlines() if "again" not in line)
    parsed = pl.parse(text)
    assert isinstance(parsed, ir.Program)
    return passes.convert_to_ssa()(parsed)


@pytest.mark.parametrize(
    "program",
    [
        lambda: pipelined(),
        lambda: pipelined(trips=8, stage=4),
        lambda: pipelined(rows=128),
        lambda: pipelined(rows=32, dtype="INT8"),
    ],
)
def test_a_second_accumulator_where_it_pays(program):
    before = program()
    assert '"pipeline_double_buffer_c": True' in str(tiled(before))
    assert tiled(before, memory_planner=passes.MemoryPlanner.PTOAS) is before


@pytest.mark.parametrize(
    "program",
    [
        lambda: pipelined(trips=2),
        lambda: pipelined(trips=5),
        lambda: pipelined(rows=144),
        lambda: pipelined(operand="again"),
        lambda: pipelined(extra="other = pl.tile.create([16, 16], dtype=pl.FP32, target_memory=pl.Mem.Acc)"),
        lambda: pipelined(extra="other = pl.tile.matmul(held, r)"),
    ],
)
def test_one_accumulator_otherwise(program):
    before = program()
    assert tiled(before) is before


@pytest.mark.parametrize(("trips", "stage", "order"), [(4, 2, "MMSS"), (8, 4, "MMSSMMSS")])
def test_stages_compute_and_drain_in_pairs(trips, stage, order):
    assert lowered_order(pipelined(trips=trips, stage=stage)).startswith(order)


# Sums of products over a loop.


def test_the_loop_runs_once_for_each_part():
    text = str(tiled(before_the_pass(reduction(272, 256, 144, 128))))
    assert text.count("in pl.pipeline(2, stage=2") == text.count("pl.tile.store(") >= 4
    assert "pl.Tile[[272, 144]" not in text
    # 16 columns of INT8 take a box of 32.
    assert "[128, 32], [128, 16], target_memory=pl.Mem.Mat" in text
    assert re.search(r"pl\.Tile\[\[\d+, 32\], pl\.INT32, pl\.Mem\.Acc, pl\.TileView\(valid_shape=\[\d+, 16\]", text)


def test_a_sum_that_fits_keeps_its_loop():
    program = before_the_pass(reduction(64, 256, 64, 64, "BF16"))
    with passes.PassContext([], target=get_target("Ascend910B")):
        assert passes.auto_tile_matmul_l0()(program) is program


def test_a_loop_of_another_form_is_kept():
    source = str(before_the_pass(reduction(272, 256, 160, 128)))
    again = "at2__tile = pl.tile.load(a__ssa_v0, [0, 0], [272, 128], target_memory=pl.Mem.Mat)\n"
    source = source.replace("            if k0__ssa_v0", f"            {again}            if k0__ssa_v0")
    program = pl.parse(source.replace("matmul_acc(acc__iter_v1, at__tile", "matmul_acc(acc__iter_v1, at2__tile"))
    assert isinstance(program, ir.Program)
    assert all("PH-AT-006" in line for line in hints(program))


def test_what_is_loaded_must_not_be_what_is_stored_to():
    source = str(before_the_pass(reduction(256, 256, 256, 32, "FP32")))
    apart, same = (pl.parse(source.replace("load(a__ssa_v0", f"load({name}__ssa_v0")) for name in "ac")
    assert isinstance(apart, ir.Program) and isinstance(same, ir.Program)
    assert str(tiled(apart)).count("pl.tile.store(") > 1
    assert all("PH-AT-006" in line for line in hints(same))


def test_a_bias_stored_to_is_not_loaded_in_windows():
    lines = biased(512).replace("load(bias,", "load(out,").replace("BF16", "FP32")
    told = hints(product(256, 64, 512, "FP32", lines))
    assert any("PH-AT-011" in line for line in told)
