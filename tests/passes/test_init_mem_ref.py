"""InitMemRef: an allocation for every tile, shared where a tile is a view or an in-place result of another."""

from __future__ import annotations

import pytest
from memory_programs import allocated, bases, offset, places, variables

import pypto.language as pl
from pypto import ir, passes
from pypto.backend import get_target
from pypto.dtypes import DataType
from pypto.errors import InternalError, KernelValueError, UnsupportedError
from pypto.ops import registry
from pypto.passes.memory_model import shown, tile_bytes

Vec, Mat, Acc = pl.Mem.Vec, pl.Mem.Mat, pl.Mem.Acc
A3, A5 = get_target("a2a3"), get_target("a5")
SPAN = ir.Span("kernel.py", 3, 5)


def run(program, target=None):
    with passes.PassContext([], target=target):
        return passes.init_mem_ref()(program)


def test_each_tile_gets_an_allocation_and_tensors_global_memory():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[64, 64], pl.FP32],
            n: pl.Scalar[pl.INDEX],
            out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            y = pl.tile.add(x, x)
            result = pl.tile.store(y, [0, 0], out)
            return result

    @pl.program
    class Expected:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[64, 64], pl.FP32, pl.MemRef("mem_ddr_0", 0, 16384)],
            n: pl.Scalar[pl.INDEX],
            out: pl.Out[pl.Tensor[[64, 64], pl.FP32, pl.MemRef("mem_ddr_1", 0, 16384)]],
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 16384)
            mem_vec_3: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 16384)
            x: pl.Tile[[64, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 16384), pl.Mem.Vec] = pl.tile.load(
                a, [0, 0], [64, 64], target_memory=pl.Mem.Vec
            )
            y: pl.Tile[[64, 64], pl.FP32, pl.MemRef(mem_vec_3, 0, 16384), pl.Mem.Vec] = pl.tile.add(x, x)
            result: pl.Tensor[[64, 64], pl.FP32, pl.MemRef("mem_ddr_1", 0, 16384)] = pl.tile.store(y, [0, 0], out)
            return result

    after = run(Before)
    ir.assert_structural_equal(after, Expected)
    assert run(after) is after
    props = passes.IRPropertySet([passes.IRProperty.HasMemRefs])
    assert passes.PropertyVerifierRegistry.verify(props, after) == []
    missing = passes.PropertyVerifierRegistry.verify(props, Before)
    assert [d.message for d in missing] == [
        "tile 'x' in function 'kernel' has no MemRef",
        "tile 'y' in function 'kernel' has no MemRef",
    ]


def test_the_cube_path_uses_every_memory():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            a: pl.Tensor[[32, 64], pl.FP16],
            b: pl.Tensor[[64, 32], pl.FP16],
            out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            am = pl.tile.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
            bm = pl.tile.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
            al = pl.tile.move(am, target_memory=pl.Mem.Left)
            br = pl.tile.move(bm, target_memory=pl.Mem.Right)
            acc = pl.tile.matmul(al, br)
            more = pl.tile.matmul_acc(acc, al, br)
            return pl.tile.store(more, [0, 0], out)

    after = run(Before)
    assert allocated(after) == {
        "mem_mat_3": ("Mat", 4096),
        "mem_mat_4": ("Mat", 4096),
        "mem_left_5": ("Left", 4096),
        "mem_right_6": ("Right", 4096),
        "mem_acc_7": ("Acc", 4096),
    }
    assert places(after)["more"] == places(after)["acc"] == ("mem_acc_7", 0, 4096)


@pytest.mark.parametrize(
    ("shape", "dtype", "space", "target", "size"),
    [
        ([64, 64], DataType.FP32, Vec, A3, 16384),
        ([1, 7], DataType.FP16, Vec, A3, 14),
        ([5], DataType.INT32, Vec, A3, 20),
        ([2, 3, 8], DataType.INT8, Vec, A3, 48),
        ([8, 16], DataType.FP4, Vec, A3, 64),
        ([16, 1], DataType.FP32, Vec, A3, 64),
        ([16, 128], DataType.FP32, Acc, A3, 8192),
        ([4, 64], DataType.FP32, Acc, A3, 4096),
        ([16, 128], DataType.INT32, Acc, A3, 16384),
        ([16, 128], DataType.INT32, Acc, A5, 8192),
        ([4, 128], DataType.BF16, Mat, A3, 4096),
        ([20, 20], DataType.FP16, Mat, A3, 2048),
        ([32, 33], DataType.INT8, Mat, A3, 2048),
    ],
)
def test_bytes_of_the_physical_buffer(shape, dtype, space, target, size):
    assert tile_bytes(ir.TileType(shape, dtype, memory_space=space), target) == size


def test_a_dynamic_extent_has_no_size():
    rows = ir.Var("rows", ir.ScalarType(DataType.INDEX))
    assert tile_bytes(ir.TileType([rows, 8], DataType.FP32, memory_space=Vec), A3) is None


def test_views_lie_inside_what_they_are_views_of():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[16, 16], pl.FP32], i: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Vec)
            row = pl.tile.slice(x, [1, 16], [3, 0])
            block = pl.tile.slice(x, [4, 8], [2, 8])
            corner = pl.tile.slice(block, [1, 8], [2, 0])
            column = pl.tile.reshape(row, [16, 1])
            moving = pl.tile.slice(x, [1, 16], [i, 0])
            alias = column
            r0 = pl.tile.store(alias, [0, 0], out)
            r1 = pl.tile.store(corner, [0, 0], r0)
            r2 = pl.tile.store(moving, [0, 0], r1)
            return r2

    after = run(Before)
    found = places(after)
    assert allocated(after) == {"mem_vec_2": ("Vec", 1024)}
    assert found["row"] == ("mem_vec_2", 192, 64)
    assert found["block"] == ("mem_vec_2", 160, (3 * 16 + 8) * 4)
    assert found["corner"] == ("mem_vec_2", 160 + 2 * 64, 32)
    assert found["column"] == found["alias"] == found["row"]
    moving = variables(after)["moving"].type.memref
    assert isinstance(moving.byte_offset, ir.Mul)
    assert moving.size == 64
    ir.assert_structural_equal(pl.parse(ir.python_print(after)), after)


def test_a_view_of_boxed_tiles_starts_at_its_first_box():
    """A [16, 32] window at row 16, column 32 of a [32, 64] f16 NZ tile: boxes of 512 bytes, two of them a column."""
    tile = ir.Var("tile", ir.TileType([32, 64], DataType.FP16, memory_space=Mat), SPAN)
    window = registry.call("tile.slice", tile, [16, 32], [16, 32], span=SPAN)
    view = ir.Var("view", window.type, SPAN)
    a = ir.Var("a", ir.TensorType([32, 64], DataType.FP16))
    load = registry.call("tile.load", a, [0, 0], [32, 64], target_memory=Mat)
    body = ir.seq([ir.AssignStmt(tile, load), ir.AssignStmt(view, window), ir.ReturnStmt([])])
    after = run(ir.Program([ir.Function("f", [], [], body, type=ir.FunctionType.InCore)]))
    assert places(after)["view"] == ("mem_mat_0", 2 * 1024 + 512, 1024 + 512)


def test_four_bit_views_start_on_a_byte():
    def program(column):
        a = ir.Var("a", ir.TensorType([8, 16], DataType.FP4))
        load = registry.call("tile.load", a, [0, 0], [8, 16], target_memory=Vec)
        tile = ir.Var("tile", load.type)
        window = registry.call("tile.slice", tile, [1, 14], [1, column], span=SPAN)
        view = ir.Var("view", window.type)
        body = ir.seq([ir.AssignStmt(tile, load), ir.AssignStmt(view, window), ir.ReturnStmt([])])
        return ir.Program([ir.Function("f", [a], [], body, type=ir.FunctionType.InCore)])

    assert places(run(program(2)))["view"] == ("mem_vec_1", 9, 7)
    with pytest.raises(KernelValueError, match=r"byte-aligned[\s\S]*kernel\.py:3"):
        run(program(1))


def test_loops_and_branches_share_with_the_values_they_receive():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
        ) -> pl.Tensor[[64, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Vec)
            for _i, (c,) in pl.range(4, init_values=(x,)):
                y = pl.tile.add(c, c)
                r = pl.yield_(y)
            if n < 2:
                p = pl.tile.exp(r)
                q = pl.yield_(p)
            else:
                s = pl.tile.neg(r)
                q = pl.yield_(s)
            result = pl.tile.store(q, [0, 0], out)
            return result

    found = bases(run(Before))
    assert found["c"] == found["x"] == "mem_vec_2"
    assert found["r"] == found["y"] == "mem_vec_3"
    assert found["q"] == found["p"] == "mem_vec_4"
    assert found["s"] == "mem_vec_5"


def test_a_carried_variable_does_not_start_inside_another_tile():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, a: pl.Tensor[[4, 64], pl.FP32], out: pl.Out[pl.Tensor[[1, 64], pl.FP32]]
        ) -> pl.Tensor[[1, 64], pl.FP32]:
            x = pl.tile.load(a, [0, 0], [4, 64], target_memory=pl.Mem.Vec)
            row = pl.tile.slice(x, [1, 64], [2, 0])
            for _i, (c,) in pl.range(4, init_values=(row,)):
                y = pl.tile.add(c, c)
                r = pl.yield_(y)
            result = pl.tile.store(r, [0, 0], out)
            return result

    found = places(run(Before))
    assert found["row"] == ("mem_vec_2", 512, 256)
    assert found["c"] == ("mem_vec_3", 0, 256)


def test_a_window_that_cannot_be_copied_is_not_carried():
    tile = ir.Var("tile", ir.TileType([32, 64], DataType.FP16, memory_space=Mat), SPAN)
    a = ir.Var("a", ir.TensorType([32, 64], DataType.FP16))
    load = registry.call("tile.load", a, [0, 0], [32, 64], target_memory=Mat)
    window = registry.call("tile.slice", tile, [16, 32], [16, 32], span=SPAN)
    view = ir.Var("view", window.type, SPAN)
    carried = ir.IterArg("c", window.type, view, SPAN)
    result = ir.Var("r", window.type)
    index = ir.Var("i", ir.ScalarType(DataType.INDEX))
    loop = ir.ForStmt(
        index, ir.index_const(0), ir.index_const(2), ir.index_const(1), [carried],
        ir.YieldStmt([carried]), [result], SPAN,
    )  # fmt: skip
    body = ir.seq([ir.AssignStmt(tile, load), ir.AssignStmt(view, window), loop, ir.ReturnStmt([])])
    with pytest.raises(UnsupportedError, match=r"cannot reconcile divergent Mat buffers: 'view'[\s\S]*kernel\.py:3"):
        run(ir.Program([ir.Function("f", [a], [], body, type=ir.FunctionType.InCore)]))


def test_popped_tiles_have_no_place_and_neither_have_their_views():
    type = ir.TileType([16, 16], DataType.FP32, memory_space=Vec)
    popped, view, alias, made = (ir.Var(n, type) for n in ("popped", "view", "alias", "made"))
    reshape = registry.call("tile.reshape", popped, [16, 16])
    body = ir.seq(
        [
            ir.AssignStmt(popped, ir.Call(ir.Op("tile.tpop_from_aic"), [], {"split": 0}, type)),
            ir.AssignStmt(view, reshape),
            ir.AssignStmt(alias, view),
            ir.AssignStmt(made, registry.call("tile.exp", alias)),
            ir.ReturnStmt([made]),
        ]
    )
    after = run(ir.Program([ir.Function("f", [], [type], body, type=ir.FunctionType.AIV)]))
    assert set(places(after)) == {"made"}
    props = passes.IRPropertySet([passes.IRProperty.HasMemRefs])
    assert passes.PropertyVerifierRegistry.verify(props, after) == []


def test_orchestration_is_left_alone():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:
            return a

    assert run(Before) is Before


def test_sizes_must_be_known():
    rows = ir.Var("rows", ir.ScalarType(DataType.INDEX))
    for span, error, message in (
        (SPAN, KernelValueError, "the extents of a tile are constants, 'tile' has .rows, 8.(?s:.*kernel.py:3.*hint)"),
        (ir.Span.unknown(), InternalError, "requires static shape, tile 'tile'"),
    ):
        tile = ir.Var("tile", ir.TileType([rows, 8], DataType.FP32, memory_space=Vec), span)
        body = ir.AssignStmt(tile, ir.Call(ir.Op("tile.tpop_from_aic"), [], tile.type))
        program = ir.Program([ir.Function("f", [rows], [], body, type=ir.FunctionType.InCore)])
        with pytest.raises(error, match=message):
            run(program)


def declared(**tiles):
    """A kernel assigning tiles of the given (rows, MemRef, memory) and storing none."""
    a = ir.Var("a", ir.TensorType([64, 64], DataType.FP32))
    stmts = []
    for i, (name, (rows, memref, space)) in enumerate(tiles.items()):
        load = registry.call("tile.load", a, [0, 0], [rows, 64], target_memory=space)
        type = ir.TileType([rows, 64], DataType.FP32, memref, load.type.tile_view, space)
        stmts.append(ir.AssignStmt(ir.Var(name, type, ir.Span("kernel.py", 10 + i, 1)), load))
    body = ir.seq([*stmts, ir.ReturnStmt([])])
    return ir.Program([ir.Function("f", [a], [], body, type=ir.FunctionType.InCore)])


def pinned(base, **facts):
    return ir.MemRef(base, 0, 0, is_pinned=True, **facts)


def test_declared_allocations_hold_their_largest_tile_in_each_slot():
    ping, pair = ir.Var("ping", ir.PtrType()), ir.Var("pair", ir.PtrType())
    after = run(
        declared(
            small=(8, pinned(ping), Vec),
            large=(32, pinned(ping), Vec),
            first=(4, pinned(pair, slot_count=3, slot_index=0), Vec),
            last=(2, pinned(pair, slot_count=3, slot_index=2), Vec),
            free=(8, None, Vec),
        )
    )
    assert allocated(after) == {"ping": ("Vec", 8192), "pair": ("Vec", 3072), "mem_vec_1": ("Vec", 2048)}
    found = places(after)
    assert found["small"] == found["large"] == ("ping", 0, 8192)
    assert found["first"] == ("pair", 0, 1024)
    assert found["last"] == ("pair", 2048, 1024)
    last = variables(after)["last"].type.memref
    assert (last.is_pinned, last.slot_count, offset(last), last.slot_index.value) == (False, 3, 2048, 2)
    printed = ir.python_print(after)
    assert "ping: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 8192, pinned=True)" in printed
    ir.assert_structural_equal(pl.parse(printed), after)


def test_a_runtime_slot_becomes_a_runtime_offset():
    index = ir.Var("i", ir.ScalarType(DataType.INDEX))
    base = ir.Var("pair", ir.PtrType())
    program = declared(tile=(4, pinned(base, slot_count=2, slot_index=index), Vec))
    memref = variables(run(program))["tile"].type.memref
    assert isinstance(memref.byte_offset, ir.Mul)
    assert memref.byte_offset.left is index
    assert memref.byte_offset.right.value == 1024


@pytest.mark.parametrize(
    ("tiles", "reason"),
    [
        (
            lambda b: {"a": (4, pinned(b), Vec), "m": (16, pinned(b), Mat)},
            "same memory space: 'ping' holds a tile in Vec and 'm' in Mat",
        ),
        (lambda b: {"a": (4, pinned(b, slot_count=2, slot_index=2), Vec)}, "slot 2"),
        (
            lambda b: {
                "a": (4, pinned(b, slot_count=2, slot_index=0), Vec),
                "c": (4, pinned(b, slot_count=3, slot_index=0), Vec),
            },
            "disagree on how many slots",
        ),
    ],
)
def test_declarations_that_cannot_be_met(tiles, reason):
    with pytest.raises(KernelValueError, match=reason) as caught:
        run(declared(**tiles(ir.Var("ping", ir.PtrType()))))
    assert "kernel.py:1" in str(caught.value)


def test_a_view_cannot_be_bound():
    tile = ir.Var("tile", ir.TileType([4, 64], DataType.FP32, memory_space=Vec))
    a = ir.Var("a", ir.TensorType([64, 64], DataType.FP32))
    bound = ir.TileType([1, 64], DataType.FP32, pinned(ir.Var("ping", ir.PtrType())), None, Vec)
    view = ir.Var("view", bound, SPAN)
    body = ir.seq(
        [
            ir.AssignStmt(tile, registry.call("tile.load", a, [0, 0], [4, 64], target_memory=Vec)),
            ir.AssignStmt(view, registry.call("tile.slice", tile, [1, 64], [0, 0])),
            ir.ReturnStmt([]),
        ]
    )
    with pytest.raises(KernelValueError, match="bind the tile it is a view"):
        run(ir.Program([ir.Function("f", [a], [], body, type=ir.FunctionType.InCore)]))


@pytest.mark.parametrize(
    ("name", "written"),
    [("x", "x"), ("x__ssa_v0", "x"), ("x__tile__ssa_v12", "x"), ("a__b", "a__b"), ("c__iter_v1_mv", "c")],
)
def test_names_in_messages_are_the_author_s(name, written):
    assert shown(ir.Var(name, ir.PtrType())) == written
