"""A comparing gather: two results of one instruction, and scratch that one target uses more of than its tile says."""

import numpy as np
import pytest

import pypto.language as pl
from pypto import backend, codegen, ir, passes
from pypto.ir.pass_manager import OptimizationStrategy, PassManager
from pypto.pto import PtoError, parse_module, verify_module

HEAD = """import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 64], pl.{T}], n: pl.Scalar[pl.{T}], y: pl.Out[pl.Tensor[[16, 8], pl.INT32]], \
z: pl.Out[pl.Tensor[[1, 16], pl.INT32]]):
    t = pl.load(x, [0, 0], [16, 64])
"""


def kernel(lines, scratch="[1, 8192]", mode="eq", dtype="FP32"):
    call = f"pl.tile.gather_compare(t, n, pl.create_tile({scratch}, dtype=pl.UINT8), cmp_mode='{mode}', out_cols=8)"
    body = "".join(f"    {line.format(call=call)}\n" for line in lines)
    return pl.parse(HEAD.replace("{T}", dtype) + body)


BOTH = ["found, counts = {call}", "pl.store(found, [0, 0], y)", "pl.store(counts, [0, 0], z)"]


def text_of(program, target="Ascend910B"):
    (text,) = pl.compile(program, target=target, skip_ptoas=True, emit_source_loc=False).pto.values()
    verify_module(parse_module(text))
    return text


def refusal(program, target="Ascend910B"):
    with pytest.raises(ValueError) as caught:
        pl.compile(program, target=target, skip_ptoas=True)
    assert caught.value.span.begin_line > 4
    return str(caught.value)


def line_with(text, word):
    (found,) = [line.strip() for line in text.splitlines() if word in line]
    return found


def test_both_results_are_written_by_one_instruction():
    gather = line_with(text_of(kernel(BOTH, mode="gt")), "pto.tgather")
    assert gather.startswith("pto.tgather ins(%t, %arg3, %gather_room : ")
    assert " outs(%found, %counts : " in gather
    assert gather.endswith("{cmpMode = #pto<cmp gt>, offset = 0 : i32}")


def test_a_result_nobody_reads_has_a_place_of_its_own():
    text = text_of(kernel(["found, counts = {call}", "pl.store(found, [0, 0], y)"]))
    places = {line_with(text, f"%{name} = ").split("addr = ")[1].split()[0] for name in ("t", "found", "counts")}
    assert len(places) == 3


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["found = {call}[0]", "pl.store(found, [0, 0], y)"], "result 1 of tile.gather_compare is taken nowhere"),
        (
            ["both = {call}", "a = both[0]", "b = both[0]", "c = both[1]", "pl.store(a, [0, 0], y)",
             "pl.store(b, [0, 0], y)", "pl.store(c, [0, 0], z)"],
            "result 0 of tile.gather_compare is taken more than once",
        ),
    ],
)  # fmt: skip
def test_each_result_is_taken_once(lines, message):
    assert message in refusal(kernel(lines))


def test_scratch_has_room_for_all_that_one_target_keeps():
    needed = 16 * 32 + 16 * 64 * 4 + 16 * 4
    room = line_with(text_of(kernel(BOTH, f"[1, {needed}]")), "%gather_room = ")
    assert "rows=16, cols=32" in room
    message = refusal(kernel(BOTH, f"[1, {needed - 32}]"))
    assert f"{needed} bytes, and tmp has {needed - 32}" in message and f"create_tile([1, {needed}]" in message
    assert "%gather_room" not in text_of(kernel(BOTH, "[16, 32]"), "Ascend950")


def test_one_target_needs_planned_memory():
    backend.set_backend_type(backend.BackendType.Ascend910B)
    with passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS):
        made = kernel(BOTH)
        program = ir.Program([made], made.name, made.span)
        lowered = PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)
        with pytest.raises(ValueError, match="works behind its scratch tile"):
            codegen.PTOCodegen().generate(lowered, emit_tile_addr=False)


def test_comparisons_a_target_has():
    assert "compares for eq or gt, not lt" in refusal(kernel(BOTH, mode="lt"))
    assert "compares INT32 elements for eq only" in refusal(kernel(BOTH, mode="gt", dtype="INT32"))
    assert "not INT16" in refusal(kernel(BOTH, dtype="INT16"))
    text_of(kernel(BOTH, mode="gt", dtype="INT32"), "Ascend950")


def test_a_row_with_more_matches_than_columns_is_reported():
    compiled = pl.compile(kernel(BOTH), skip_ptoas=True)
    x = np.zeros((16, 64), np.float32)
    x[3, ::7] = 1
    with pytest.raises(PtoError, match="row 3 has 10 matches, and 'dst' has room for 8"):
        compiled(x, 1.0, np.zeros((16, 8), np.int32), np.zeros((1, 16), np.int32))
