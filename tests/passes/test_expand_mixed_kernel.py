"""Kernels for both cores become one for each, with a pipe between them."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from checking import findings, run
from text_programs import method, program

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.errors import KernelValueError
from pypto.ir.visitor import walk

P = passes.IRProperty
ABC = "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]"
MADE = "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], made: pl.Out[pl.Tensor[[16, 64], pl.FP16]]"
LOADS = """
ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
c = pl.matmul(ta, tb)
"""


@pytest.fixture(params=[backend.BackendType.Ascend910B, backend.BackendType.Ascend950], ids=["910B", "950"])
def target(request: pytest.FixtureRequest) -> backend.Target:
    backend.set_backend_type(request.param)
    return request.param.target


def kernel(body: str, params: str = ABC, options: str = "type=pl.FunctionType.InCore", more: str = "") -> ir.Program:
    made = method("kernel", params, body, decorator=f"@pl.function({options})")
    return program(made, indent(dedent(more), " " * 4))


def expand(before: ir.Program) -> ir.Program:
    after = run(before, passes.convert_to_ssa, passes.flatten_call_expr, passes.infer_tile_memory_space,
                passes.expand_mixed_kernel)  # fmt: skip
    with passes.PassContext([]):
        assert passes.expand_mixed_kernel()(after) is after
    return after


def function(program: ir.Program, name: str) -> ir.Function:
    found = program.get_function(name)
    assert found is not None
    return found


def ops(made: ir.Function | ir.Stmt) -> list[str]:
    """The operators of a function in order, without the set-up of its pipe."""
    body = made.body if isinstance(made, ir.Function) else made
    names = [n.op.name for n in walk(body) if isinstance(n, ir.Call)]
    return [n.partition(".")[2] for n in names if not n.endswith(("_buffer", "_pipe"))]


def refused(body: str, params: str = ABC) -> str:
    with pytest.raises(KernelValueError) as caught:
        expand(kernel(body, params))
    return str(caught.value)


CUBE_TO_VECTOR = LOADS + "out = pl.store(pl.exp(c), [0, 0], out)\nreturn out"


def test_a_product_that_the_vector_core_goes_on_with(target: backend.Target) -> None:
    after = expand(kernel(CUBE_TO_VECTOR))
    cube, vector, group = (function(after, n) for n in ("kernel_aic", "kernel_aiv", "kernel"))
    assert ops(cube) == ["load", "load", "move", "move", "matmul", "tpush_to_aiv"]
    assert ops(vector) == ["tpop_from_aic", "exp", "tfree_to_aic", "store"]
    assert (cube.func_type, vector.func_type, group.func_type) == (
        ir.FunctionType.AIC, ir.FunctionType.AIV, ir.FunctionType.Group,
    )  # fmt: skip
    assert cube.return_types == [] and vector.return_types == group.return_types
    dual = target.quirks.no_split_dual_aiv_dispatch
    assert vector.attrs.get("dual_aiv_dispatch", False) is dual
    calls = [n.op.name for n in walk(group.body) if isinstance(n, ir.Call)]
    assert calls == ["kernel_aic", "kernel_aiv"]
    last = ir.flatten_to_stmts(group.body)[-1]
    assert isinstance(last, ir.ReturnStmt) and last.value[0] is group.params[2]
    assert not {id(p) for p in cube.params} & {id(p) for p in vector.params}


def test_the_pipe_is_set_up_on_both_sides(target: backend.Target) -> None:
    after = expand(kernel(CUBE_TO_VECTOR, options='type=pl.FunctionType.InCore, attrs={"slot_num": 3}'))
    setup = {n.op.name: n for f in after.functions.values() for n in walk(f.body) if isinstance(n, ir.Call)}
    ring = setup["system.reserve_buffer"]
    assert ring.kwargs == {"name": "kernel_c2v_slot_buffer", "size": 3 * 16 * 32 * 4, "base": -1}
    assert setup["system.import_peer_buffer"].kwargs == {"name": "kernel_c2v_slot_buffer", "peer_func": "kernel_aiv"}
    for side in ("aic", "aiv"):
        found = setup[f"system.{side}_initialize_pipe"].kwargs
        assert found == {"dir_mask": 1, "slot_size": 16 * 32 * 4, "slot_num": 3}


def test_both_directions_share_a_pipe_with_slots_for_the_larger_tile(target: backend.Target) -> None:
    body = LOADS.replace("ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)",
                         "ta = pl.exp(pl.load(a, [0, 0], [16, 64]))")  # fmt: skip
    after = expand(kernel(body + "out = pl.store(pl.exp(c), [0, 0], out)\nreturn out"))
    setups = [n for f in after.functions.values() for n in walk(f.body)
              if isinstance(n, ir.Call) and n.op.name.endswith("_initialize_pipe")]  # fmt: skip
    assert [s.kwargs["dir_mask"] for s in setups] == [3, 3] and {s.kwargs["slot_size"] for s in setups} == {2048}
    adapted = ["move"] if target.quirks.vector_to_cube_fractal else []
    vector = ops(function(after, "kernel_aiv"))
    assert vector == ["load", "exp", *adapted, "tpush_to_aic", "tpop_from_aic", "exp", "tfree_to_aic", "store"]
    assert ops(function(after, "kernel_aic")) == [
        "load", "tpop_from_aiv", "move", "tfree_to_aiv", "move", "matmul", "tpush_to_aiv",
    ]  # fmt: skip


def test_a_written_move_to_an_operand_memory_goes_through_mat(target: backend.Target) -> None:
    body = """
    left = pl.move(pl.load(a, [0, 0], [16, 64]), target_memory=pl.Mem.Left)
    right = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
    out = pl.store(pl.matmul(left, right), [0, 0], out)
    return out
    """
    after = expand(kernel(body))
    cube = function(after, "kernel_aic")
    popped = next(n for n in walk(cube.body) if isinstance(n, ir.AssignStmt) and "left" in n.var.name_hint)
    kind = popped.var.type
    assert isinstance(kind, ir.TileType) and kind.memory_space is ir.MemorySpace.Mat
    vector = function(after, "kernel_aiv")
    last = ir.flatten_to_stmts(vector.body)[-1]
    assert isinstance(last, ir.ReturnStmt) and last.value[0] is vector.params[2]


def test_kernels_of_one_core_keep_their_body(target: backend.Target) -> None:
    vector = kernel("out = pl.store(pl.exp(pl.load(out, [0, 0], [16, 32])), [0, 0], out)\nreturn out",
                    ABC.replace("pl.Out[", "pl.InOut["),
                    'type=pl.FunctionType.InCore, attrs={"split": pl.SplitMode.UP_DOWN}')  # fmt: skip
    made = function(expand(vector), "kernel")
    assert made.func_type is ir.FunctionType.AIV and made.split is None
    cube = function(expand(kernel(LOADS + "out = pl.store(c, [0, 0], out)\nreturn out")), "kernel")
    assert cube.func_type is ir.FunctionType.AIC and ops(cube)[-1] == "store"


def test_loops_carry_on_each_core_what_it_needs(target: backend.Target) -> None:
    body = """
    acc = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)
    for i, (total,) in pl.range(4, init_values=(acc,)):
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        total = pl.yield_(pl.add(total, pl.matmul(ta, tb)))
    out = pl.store(total, [0, 0], out)
    return out
    """
    after = expand(kernel(body))
    loops = {n: next(s for s in ir.flatten_to_stmts(function(after, n).body) if isinstance(s, ir.ForStmt))
             for n in ("kernel_aic", "kernel_aiv")}  # fmt: skip
    assert loops["kernel_aic"].iter_args == [] and len(loops["kernel_aiv"].iter_args) == 1
    assert ops(loops["kernel_aiv"].body) == ["tpop_from_aic", "add", "tfree_to_aic"]
    assert "full" not in ops(function(after, "kernel_aic"))


def test_a_popped_tile_that_leaves_its_branch_is_copied(target: backend.Target) -> None:
    body = LOADS + """
    if flag == 0:
        v = pl.move(c, target_memory=pl.Mem.Vec, blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box)
    else:
        v = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)
    out = pl.store(v, [0, 0], out)
    return out
    """.replace("\n    ", "\n")
    vector = function(expand(kernel(body, ABC + ", flag: pl.Scalar[pl.INDEX]")), "kernel_aiv")
    branch = next(n for n in walk(vector.body) if isinstance(n, ir.IfStmt))
    assert ops(branch.then_body) == ["tpop_from_aic", "move", "tfree_to_aic"]


@pytest.mark.parametrize(
    ("use", "dtype"),
    [
        ("v = pl.slice(ta, [16, 32], [0, 0])\nv = pl.exp(v)", "FP16"),
        ("v = pl.exp(pl.slice(ta, [16, 32], [0, 32]))", "FP16"),
    ],
)
def test_a_tile_in_mat_is_refused_where_its_push_is_written(target: backend.Target, use: str, dtype: str) -> None:
    body = LOADS + use + "\nmade = pl.store(v, [0, 0], made)\nout = pl.store(c, [0, 0], out)\nreturn out"
    mixed = kernel(body, ABC + f", made: pl.Out[pl.Tensor[[16, 32], pl.{dtype}]]")
    assert "tpush_to_aiv" in ops(function(expand(mixed), "kernel_aic"))
    with pytest.raises(KernelValueError) as caught:
        pl.compile(mixed, target=target.name)
    message = str(caught.value)
    assert "is in Mat, and the cube hands the vector cores only what it multiplied (Acc)" in message
    assert "pl.exp(" in message and "load it a second time with target_memory=pl.Mem.Vec" in message


def test_an_operand_of_the_cube_is_not_pushed(target: backend.Target) -> None:
    left = LOADS + "l = pl.move(ta, target_memory=pl.Mem.Left)\nv = pl.move(l, target_memory=pl.Mem.Vec)\n"
    assert "'l' is in Left" in refused(left + "made = pl.store(v, [0, 0], made)\nreturn made", MADE)


EXCHANGE = ABC + ", tmp: pl.Out[pl.Tensor[[16, 32], pl.FP32]]"


def test_global_memory_written_by_one_core_and_read_by_the_other_is_ordered(target: backend.Target) -> None:
    body = LOADS + "tmp = pl.store(c, [0, 0], tmp)\nv = pl.load(tmp, [0, 0], [16, 32])\n"
    after = expand(kernel(body + "out = pl.store(v, [0, 0], out)\nreturn out", EXCHANGE))
    assert ops(function(after, "kernel_aic"))[-2:] == ["store", "tpush_to_aiv"]
    vector = function(after, "kernel_aiv")
    assert ops(vector) == ["tpop_from_aic", "tfree_to_aic", "load", "store"]
    load = next(n for n in walk(vector.body) if isinstance(n, ir.Call) and n.op.name == "tile.load")
    assert load.args[0] is vector.params[3]


def test_global_memory_the_vector_core_writes_for_the_cube_is_ordered(target: backend.Target) -> None:
    body = """
    w = pl.exp(pl.load(a, [0, 0], [16, 64]))
    scratch = pl.store(w, [0, 0], scratch)
    ta = pl.load(scratch, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
    tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
    out = pl.store(pl.matmul(ta, tb), [0, 0], out)
    return out
    """
    after = expand(kernel(body, ABC + ", scratch: pl.Out[pl.Tensor[[16, 64], pl.FP16]]"))
    assert ops(function(after, "kernel_aiv"))[-1] == "tpush_to_aic"
    assert ops(function(after, "kernel_aic"))[:3] == ["tpop_from_aiv", "tfree_to_aiv", "load"]


@pytest.mark.parametrize(
    ("stored", "loaded"),
    [("scratch", "pl.tensor.view(kept, [16, 128])"), ("flat", "kept")],
)
def test_an_exchange_through_a_view_is_ordered(target: backend.Target, stored: str, loaded: str) -> None:
    body = f"""
    flat = pl.tensor.view(scratch, [16, 128])
    kept = pl.store(pl.exp(pl.load(a, [0, 0], [16, 64])), [0, 0], {stored})
    ta = pl.load({loaded}, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
    tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
    out = pl.store(pl.matmul(ta, tb), [0, 0], out)
    return out
    """
    after = expand(kernel(body, ABC + ", scratch: pl.Out[pl.Tensor[[32, 64], pl.FP16]]"))
    vector = [op for op in ops(function(after, "kernel_aiv")) if op != "move"]
    assert vector[-2:] == ["store", "tpush_to_aic"]
    cube = ops(function(after, "kernel_aic"))
    assert cube.index("tfree_to_aiv") < cube.index("load")


@pytest.mark.parametrize("read", ["scratch", "either"])
def test_the_old_name_of_what_a_view_wrote_is_not_read(target: backend.Target, read: str) -> None:
    body = f"""
    flat = pl.tensor.view(scratch, [16, 128])
    kept = pl.store(pl.exp(pl.load(a, [0, 0], [16, 64])), [0, 0], flat)
    if flag > 0:
        either = pl.yield_(other)
    else:
        either = pl.yield_(scratch)
    ta = pl.load({read}, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
    tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
    out = pl.store(pl.matmul(ta, tb), [0, 0], out)
    return out
    """
    params = ABC + ", scratch: pl.Out[pl.Tensor[[32, 64], pl.FP16]], other: pl.Tensor[[32, 64], pl.FP16]"
    assert f"under another name, before {read!r} is read here" in refused(body, params + ", flag: pl.Scalar[pl.INDEX]")


def test_overwriting_through_a_view_is_refused(target: backend.Target) -> None:
    body = """
    for i in pl.range(4):
        flat = pl.tensor.view(tmp, [8, 64])
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        tmp = pl.store(pl.matmul(ta, tb), [0, 0], tmp)
        out = pl.store(pl.exp(pl.load(flat, [0, 0], [8, 32])), [0, 0], out)
    return out
    """
    message = refused(body, EXCHANGE)
    assert "the memory of 'flat' is overwritten (line 12), under another name, before 'flat' is read here" in message


def test_overwriting_what_the_other_core_may_still_read_is_refused(target: backend.Target) -> None:
    body = """
    for i in pl.range(4):
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        tmp = pl.store(pl.matmul(ta, tb), [0, 0], tmp)
        out = pl.store(pl.exp(pl.load(tmp, [0, 0], [16, 32])), [0, 0], out)
    return out
    """
    message = refused(body, EXCHANGE)
    assert "'tmp' is written here by one core of a mixed kernel while the other may still be reading it" in message
    assert "pl.move" in message and "pl.store(pl.matmul(ta, tb)" in message


def test_a_scalar_the_vector_core_reads_cannot_steer_the_cube(target: backend.Target) -> None:
    body = """
    v = pl.load(n, [0, 0], [1, 8])
    count = pl.cast(pl.tile.read(v, [0, 0]), pl.INDEX)
    for i in pl.range(count):
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        c = pl.matmul(ta, tb)
        out = pl.store(c, [0, 0], out)
    return out
    """
    message = refused(body, ABC + ", n: pl.Tensor[[1, 8], pl.INT32]")
    assert "computed by the vector cores and needed by the cube" in message and "pl.tile.read(v, [0, 0])" in message


def test_a_transpose_of_the_split_axis_is_refused(target: backend.Target) -> None:
    body = LOADS + "v = pl.exp(c)\nout = pl.store(pl.transpose(v, axis1=0, axis2=1), [0, 0], out)\nreturn out"
    before = kernel(body, ABC.replace("[16, 32]", "[32, 16]"),
                    'type=pl.FunctionType.InCore, attrs={"split": pl.SplitMode.UP_DOWN}')  # fmt: skip
    steps = (passes.convert_to_ssa, passes.flatten_call_expr, passes.flatten_tile_nd_to_2d)
    with pytest.raises(KernelValueError, match="swaps the split axis: the kernel is split UP_DOWN"):
        expand(run(before, *steps))


def test_a_group_that_calls_a_mixed_kernel_calls_both_parts(target: backend.Target) -> None:
    group = f"""
    @pl.function(type=pl.FunctionType.Group)
    def both(self, {ABC}) -> pl.Tensor[[16, 32], pl.FP32]:
        made = self.kernel(a, b, out)
        return made
    """
    before = kernel(CUBE_TO_VECTOR, ABC, "type=pl.FunctionType.InCore", group)
    after = expand(before)
    assert sorted(f.name for f in after.functions.values()) == ["both", "kernel_aic", "kernel_aiv"]
    calls = [n.op.name for n in walk(function(after, "both").body) if isinstance(n, ir.Call)]
    assert calls == ["kernel_aic", "kernel_aiv"]


def test_names_of_the_parts_that_are_taken(target: backend.Target) -> None:
    taken = """
    @pl.function(type=pl.FunctionType.AIV)
    def kernel_aiv(self, x: pl.Tensor[[8], pl.FP32]):
        return x
    """
    with pytest.raises(KernelValueError, match="there is a function 'kernel_aiv' already"):
        expand(kernel(CUBE_TO_VECTOR, ABC, "type=pl.FunctionType.InCore", taken))


def test_the_verifier_finds_pipes_used_wrongly() -> None:
    params = "x: pl.Tensor[[16, 16], pl.FP32]"
    bare = kernel("t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\nreturn x", params,
                  "type=pl.FunctionType.AIV")  # fmt: skip
    found = findings(bare, P.MixedKernelExpanded)
    assert len(found) == 2 and "has no 'system.aiv_initialize_pipe' call before them" in found[0]
    assert "no matching 'system.tfree_to_aic' call" in found[1]
    mixed = run(kernel(CUBE_TO_VECTOR), passes.convert_to_ssa, passes.infer_tile_memory_space)
    assert "contains both cube and vector tile ops" in findings(mixed, P.MixedKernelExpanded)[0]
