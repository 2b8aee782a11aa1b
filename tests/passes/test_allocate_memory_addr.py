"""AllocateMemoryAddr: addresses, alignment, and what is said when a memory is too small."""

from __future__ import annotations

import pytest
from memory_programs import places, variables

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import get_target
from pypto.dtypes import DataType
from pypto.errors import CapacityError, KernelValueError
from pypto.ops import registry

Vec = pl.Mem.Vec


def run(program, reuse=True, target=None, planner=passes.MemoryPlanner.PYPTO):
    with passes.PassContext([], target=target, memory_planner=planner):
        program = passes.materialize_semantic_aliases()(passes.init_mem_ref()(program))
        if reuse:
            program = passes.memory_reuse()(program)
        return passes.allocate_memory_addr()(program)


def kernel(*tiles, kind=ir.FunctionType.InCore, at_once=True):
    """Loads tiles of the given (shape, dtype, memory), then uses them all."""
    stmts, made = [], []
    for i, (shape, dtype, space) in enumerate(tiles):
        a = ir.Var("a", ir.TensorType(shape, dtype))
        call = registry.call("tile.load", a, [0, 0], shape, target_memory=space)
        made.append(ir.Var(f"t{i}", call.type, ir.Span("kernel.py", i + 1, 5, i + 1, 9)))
        stmts.append(ir.AssignStmt(made[-1], call, made[-1].span))
        if not at_once:
            stmts.append(ir.EvalStmt(registry.call("tile.exp", made[-1])))
    if at_once:
        stmts += [ir.EvalStmt(ir.Call(ir.Op("tile.any"), [t])) for t in made]
    body = ir.seq([*stmts, ir.ReturnStmt([])])
    return ir.Program([ir.Function("kernel", [], [], body, type=kind)])


def addresses(program):
    return {name: address for name, (_, address, _) in places(program).items()}


def test_addresses_follow_one_another_in_each_memory():
    after = run(
        kernel(
            ([1, 3], DataType.FP32, Vec),
            ([16, 16], DataType.FP16, pl.Mem.Mat),
            ([64, 64], DataType.FP32, Vec),
            ([1, 100], DataType.INT8, Vec),
            ([32, 16], DataType.FP16, pl.Mem.Mat),
        )
    )
    assert addresses(after) == {"t0": 0, "t2": 128, "t3": 16512, "t1": 0, "t4": 512}
    with passes.PassContext([]):
        assert passes.allocate_memory_addr()(after) is after
    props = passes.IRPropertySet([passes.IRProperty.AllocatedMemoryAddr])
    assert passes.PropertyVerifierRegistry.verify(props, after) == []


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_each_memory_has_its_alignment(target):
    stmts, tiles = [], []
    for i, space in enumerate((pl.Mem.Left, pl.Mem.Left, pl.Mem.Bias, pl.Mem.Bias, Vec, Vec)):
        type = ir.TileType([1, 1], DataType.FP32, memory_space=space)
        tiles.append(ir.Var(f"t{i}", type))
        stmts.append(ir.AssignStmt(tiles[-1], ir.Call(ir.Op("tile.any"), [], type)))
    stmts += [ir.EvalStmt(ir.Call(ir.Op("tile.any"), tiles)), ir.ReturnStmt([])]
    program = ir.Program([ir.Function("f", [], [], ir.seq(stmts), type=ir.FunctionType.InCore)])
    found = addresses(run(program, target=get_target(target)))
    assert (found["t3"], found["t5"]) == (64, 128)
    assert found["t1"] % 64 == 0 < found["t1"]


def test_views_keep_their_distance():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[16, 64], pl.FP32], i: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
        ) -> pl.Tensor[[16, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
            y = pl.tile.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Vec)
            row = pl.tile.slice(y, [1, 64], [3, 0])
            moving = pl.tile.slice(y, [1, 64], [i, 0])
            r0 = pl.tile.store(row, [0, 0], out)
            r1 = pl.tile.store(moving, [0, 0], r0)
            r2 = pl.tile.store(x, [0, 0], r1)
            return r2

    after = run(Before)
    found = addresses(after)
    assert (found["x"], found["y"], found["row"]) == (0, 4096, 4096 + 768)
    moving = variables(after)["moving"].type.memref.byte_offset
    assert isinstance(moving, ir.Add)
    assert moving.right.value == 4096
    with passes.PassContext([]):
        assert passes.allocate_memory_addr()(after) is after
    ir.assert_structural_equal(pl.parse(ir.python_print(after)), after)


def test_slots_keep_their_distance_even_when_chosen_at_run_time():
    index = ir.Var("i", ir.ScalarType(DataType.INDEX))
    base, a = ir.Var("pair", ir.PtrType()), ir.Var("a", ir.TensorType([64, 64], DataType.FP32))
    load = registry.call("tile.load", a, [0, 0], [64, 64], target_memory=Vec)
    stmts, tiles = [], []
    for name, slot in (("plain", None), ("fixed", 1), ("chosen", index)):
        memref = None if slot is None else ir.MemRef(base, 0, 0, is_pinned=True, slot_count=2, slot_index=slot)
        tiles.append(ir.Var(name, ir.TileType([64, 64], DataType.FP32, memref, None, Vec)))
        stmts.append(ir.AssignStmt(tiles[-1], load))
    body = ir.seq([*stmts, ir.EvalStmt(ir.Call(ir.Op("tile.any"), tiles)), ir.ReturnStmt([])])
    after = run(ir.Program([ir.Function("f", [a, index], [], body, type=ir.FunctionType.InCore)]))
    offset = variables(after)["chosen"].type.memref.byte_offset
    assert (addresses(after)["plain"], addresses(after)["fixed"]) == (0, 16384 + 16384)
    assert isinstance(offset, ir.Add)
    assert (offset.left.left, offset.left.right.value, offset.right.value) == (index, 16384, 16384)
    with passes.PassContext([]):
        assert passes.allocate_memory_addr()(after) is after


def test_a_function_without_tiles_is_left_alone():
    program = ir.Program([ir.Function("f", [], [], ir.ReturnStmt([]), type=ir.FunctionType.InCore)])
    assert run(program) is program


def test_ptoas_assigns_its_own():
    tiles = [([64, 64], DataType.FP32, Vec)] * 2
    after = run(kernel(*tiles), planner=passes.MemoryPlanner.PTOAS)
    assert set(addresses(after).values()) == {0}


def test_one_tile_too_large():
    with pytest.raises(CapacityError) as caught:
        run(kernel(([64, 752], DataType.FP32, Vec)))
    message = str(caught.value)
    assert "Vec buffer usage (192512 bytes) exceeds platform limit (188416 bytes) of Ascend910B" in message
    assert "in function 'kernel'" in message
    assert "--> kernel.py:1:5" in message
    assert "hint: 't0' alone is larger than Vec" in message
    assert isinstance(caught.value, ValueError)
    assert run(kernel(([64, 752], DataType.FP32, Vec)), target=get_target("a5"))


def test_too_many_tiles_at_once():
    tiles = [([64, 64], DataType.FP32, Vec)] * 4 + [([128, 128], DataType.FP32, Vec)] * 2
    with pytest.raises(CapacityError) as caught:
        run(kernel(*tiles))
    message = str(caught.value)
    assert "(196608 bytes)" in message
    assert "tiles in Vec needed at once:" in message
    assert "65536 bytes: 't4' [128, 128] fp32, kernel.py:5:5" in message
    assert message.index("'t5'") < message.index("'t0'")
    assert "hint: use smaller tiles, or split the loop" in message


def test_a_long_list_is_cut():
    with pytest.raises(CapacityError, match="and 32 more"):
        run(kernel(*[([16, 80], DataType.FP32, Vec)] * 40))


def test_tiles_used_in_turn_fit():
    after = run(kernel(*[([64, 512], DataType.FP32, Vec)] * 3, at_once=False))
    assert set(addresses(after).values()) == {0}


def test_the_cube_memories_have_limits_too():
    with pytest.raises(CapacityError, match=r"Mat buffer usage \(1048576 bytes\) exceeds platform limit"):
        run(kernel(([512, 1024], DataType.FP16, pl.Mem.Mat)))


def broken(*places):
    """Two live tiles at the given byte offsets."""
    stmts, tiles = [], []
    for i, offset in enumerate(places):
        base = ir.Var(f"mem_vec_{i}", ir.PtrType())
        type = ir.TileType([64, 64], DataType.FP32, ir.MemRef(base, offset, 16384), memory_space=Vec)
        tiles.append(ir.Var(f"t{i}", type))
        stmts.append(ir.AssignStmt(tiles[-1], ir.Call(ir.Op("tile.any"), [], type)))
    stmts += [ir.EvalStmt(ir.Call(ir.Op("tile.any"), tiles)), ir.ReturnStmt([])]
    return ir.Program([ir.Function("f", [], [], ir.seq(stmts), type=ir.FunctionType.InCore)])


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ((0, 8192), "tiles 't0' and 't1' overlap"),
        ((-1, 16384), "'t0' has no address"),
        ((0, 188416), "Vec buffer usage (204800 bytes) exceeds platform limit (188416 bytes)"),
        ((0, 16384), None),
    ],
)
def test_the_verifier_looks_at_the_addresses(offsets, reason):
    props = passes.IRPropertySet([passes.IRProperty.AllocatedMemoryAddr])
    found = passes.PropertyVerifierRegistry.verify(props, broken(*offsets))
    assert [reason in d.message for d in found] == ([] if reason is None else [True])


def reserving(*buffers, name="kernel", kind=ir.FunctionType.AIV, tile=([64, 64], DataType.FP32, Vec)):
    """A kernel that reserves (name, size, base) buffers and loads one tile."""
    stmts = []
    for i, (label, size, base) in enumerate(buffers):
        span = ir.Span("kernel.py", i + 1, 1)
        call = registry.call("system.reserve_buffer", label, size, base, span=span)
        stmts.append(ir.AssignStmt(ir.Var(f"b{i}", call.type), call))
    shape, dtype, space = tile
    load = registry.call("tile.load", ir.Var("a", ir.TensorType(shape, dtype)), [0, 0], shape, target_memory=space)
    var = ir.Var("t", load.type)
    stmts += [ir.AssignStmt(var, load), ir.EvalStmt(ir.Call(ir.Op("tile.any"), [var])), ir.ReturnStmt([])]
    return ir.Program([ir.Function(name, [], [], ir.seq(stmts), type=kind)])


def reserved_at(program):
    body = next(iter(program.functions.values())).body
    calls = [s.value for s in body.stmts if isinstance(s, ir.AssignStmt) and s.value.op.name == "system.reserve_buffer"]
    return [c.kwargs["base"] for c in calls]


@pytest.mark.parametrize(
    ("buffers", "at", "tile"),
    [
        ([("a", 4096, -1)], [0], 4096),
        ([("a", 4096, 8192)], [8192], 12288),
        ([("a", 100, -1), ("b", 64, -1)], [0, 128], 256),
        ([("a", 64, 1024), ("b", 64, 0), ("c", 64, -1)], [1024, 0, 1152], 1280),
    ],
)
def test_reserved_buffers_come_before_tiles(buffers, at, tile):
    after = run(reserving(*buffers))
    assert reserved_at(after) == at
    assert addresses(after)["t"] == tile
    with passes.PassContext([]):
        assert passes.allocate_memory_addr()(after) is after


def test_a_cube_kernel_reserves_in_mat():
    cube = {"kind": ir.FunctionType.AIC, "tile": ([64, 64], DataType.BF16, pl.Mem.Mat)}
    assert addresses(run(reserving(("a", 4096, -1), **cube)))["t"] == 4096
    vector = {"kind": ir.FunctionType.AIV, "tile": ([64, 64], DataType.BF16, pl.Mem.Mat)}
    assert addresses(run(reserving(("a", 4096, -1), **vector)))["t"] == 0


def test_reserved_buffers_must_not_overlap():
    with pytest.raises(KernelValueError, match="overlapping reserve_buffer ranges: 'b' at 2048..3072") as caught:
        run(reserving(("a", 4096, -1), ("b", 1024, 2048)))
    assert "kernel.py:2" in str(caught.value)


@pytest.mark.parametrize(
    ("label", "ring"),
    [("kernel_v2c_slot_buffer", True), ("mine", False), ("scratch_v2c_slot_buffer", False)],
)
def test_a_full_memory_names_what_is_reserved_in_it(label, ring):
    cube = {"name": "kernel_aic", "kind": ir.FunctionType.AIC, "tile": ([64, 64], DataType.BF16, pl.Mem.Mat)}
    with pytest.raises(CapacityError) as caught:
        run(reserving((label, 524288, -1), **cube))
    message = str(caught.value)
    assert "Mat buffer usage (532480 bytes) exceeds platform limit (524288 bytes)" in message
    assert "The first 524288 bytes of that space are reserved by system.reserve_buffer" in message
    assert ("pl.cross_core_slot(slot_num=N)" in message) is ring


def test_a_full_memory_does_not_blame_another_one_s_buffers():
    vector = {"name": "kernel_aic", "kind": ir.FunctionType.AIC, "tile": ([64, 752], DataType.FP32, Vec)}
    with pytest.raises(CapacityError) as caught:
        run(reserving(("kernel_v2c_slot_buffer", 4096, -1), **vector))
    assert "reserved by" not in str(caught.value)
