"""LowerPipelineLoops and CanonicalizeIOOrder: what pipelined loops become, and that they compute what they say."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.passes.pipeline import PIPELINE, check_roundtrip

ROUNDTRIP = passes.VerificationLevel.ROUNDTRIP


def flat(kernel):
    """A kernel as a program whose calls are statements of their own."""
    return passes.flatten_call_expr()(passes.convert_to_ssa()(ir.Program([kernel])))


def lowered(program):
    made = passes.lower_pipeline_loops()(program)
    check_roundtrip("LowerPipelineLoops", made)
    return made


def ordered(program):
    made = passes.canonicalize_io_order()(program)
    check_roundtrip("CanonicalizeIOOrder", made)
    return made


def calls(program, prefix="tile."):
    (function,) = program.functions.values()
    return [n for n in ir.visitor.walk(function.body) if isinstance(n, ir.Call) and n.name.startswith(prefix)]


def names(program):
    return [c.name.removeprefix("tile.") for c in calls(program)]


def loops(program):
    (function,) = program.functions.values()
    return [n for n in ir.visitor.walk(function.body) if isinstance(n, ir.ForStmt)]


def copying(*bounds, stage):
    """A kernel that copies the row blocks ``pl.pipeline`` visits, adding the index to each."""
    visited = range(*bounds)
    first, last, by = visited.start, visited.stop, visited.step

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(x: pl.Tensor[[96, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[96, 16], pl.FP32]]):
        for i in pl.pipeline(first, last, by, stage=stage):
            t = pl.load(x, [i * 8, 0], [8, 16])
            pl.store(pl.add(t, pl.cast(i, pl.FP32)), [i * 8, 0], y)

    return kernel


def test_place_in_the_pipeline():
    at = PIPELINE.index("lower_pipeline_loops")
    assert PIPELINE[at : at + 3] == ("lower_pipeline_loops", "canonicalize_io_order", "materialize_tensor_strides")
    assert at > PIPELINE.index("infer_tile_memory_space")


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
@pytest.mark.parametrize("bounds", [(8,), (1, 8), (0, 12, 5), (3, 3), (5, 2), (2, 3)])
def test_constant_bounds(bounds, stage):
    x = np.arange(96 * 16, dtype=np.float32).reshape(96, 16)
    y, want = np.zeros_like(x), np.zeros_like(x)
    compiled = pl.compile(copying(*bounds, stage=stage), verification_level=ROUNDTRIP)
    compiled(x, 0, y)
    for i in range(*bounds):
        want[i * 8 : i * 8 + 8] = x[i * 8 : i * 8 + 8] + i
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("stage", [2, 3, 4])
@pytest.mark.parametrize("step", [1, 2])
def test_bounds_known_at_run_time(stage, step):
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        x: pl.Tensor[[96, 16], pl.FP32],
        first: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[96, 16], pl.FP32]],
    ):
        for i in pl.pipeline(first, n, step, stage=stage):
            pl.store(pl.mul(pl.load(x, [i * 8, 0], [8, 16]), 2.0), [i * 8, 0], y)

    compiled = pl.compile(kernel, verification_level=ROUNDTRIP)
    x = np.random.default_rng(stage).standard_normal((96, 16), dtype=np.float32)
    # A stop below the start runs nothing, whatever its remainder.
    for first, n in [(0, n) for n in range(-5, 10)] + [(2, 9), (7, 3), (5, 5)]:
        y, want = np.zeros_like(x), np.zeros_like(x)
        compiled(x, first, n, y)
        for i in range(first, n, step):
            want[i * 8 : i * 8 + 8] = 2 * x[i * 8 : i * 8 + 8]
        np.testing.assert_array_equal(y, want, err_msg=f"{first}..{n}")


@pytest.mark.parametrize("stage", [2, 3, 4])
def test_carried_tiles_go_through_the_copies_in_order(stage):
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(x: pl.Tensor[[64, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        acc = pl.load(x, [0, 0], [8, 16])
        for i in pl.pipeline(1, 8, stage=stage):
            acc = pl.add(pl.mul(acc, 0.5), pl.load(x, [i * 8, 0], [8, 16]))
        pl.store(acc, [0, 0], y)
        late = pl.load(x, [0, 0], [8, 16])
        for i in pl.pipeline(1, n, stage=stage):
            late = pl.add(pl.mul(late, 0.5), pl.load(x, [i * 8, 0], [8, 16]))
        pl.store(late, [8, 0], y)

    compiled = pl.compile(kernel, verification_level=ROUNDTRIP)
    x = np.random.default_rng(stage).standard_normal((64, 16), dtype=np.float32)
    for n in range(9):
        y = np.zeros((16, 16), np.float32)
        compiled(x, n, y)
        for at, stop in ((0, 8), (8, n)):
            want = x[:8]
            for i in range(1, stop):
                want = want * np.float32(0.5) + x[i * 8 : i * 8 + 8]
            np.testing.assert_array_equal(y[at : at + 8], want)


@pytest.mark.parametrize("stage", [1, 2, 4])
def test_loads_do_not_overtake_stores_they_read(stage):
    """Each row block is the sum of itself and the one before, which the iteration before stored."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(y: pl.InOut[pl.Tensor[[72, 16], pl.FP32]]):
        for i in pl.pipeline(8, stage=stage):
            before = pl.load(y, [i * 8, 0], [8, 16])
            here = pl.load(y, [i * 8 + 8, 0], [8, 16])
            pl.store(pl.add(before, here), [i * 8 + 8, 0], y)

    y = np.random.default_rng(stage).standard_normal((72, 16), dtype=np.float32)
    want = y.copy()
    for i in range(8):
        want[i * 8 + 8 : i * 8 + 16] += want[i * 8 : i * 8 + 8]
    pl.compile(kernel, verification_level=ROUNDTRIP)(y)
    np.testing.assert_array_equal(y, want)


def test_nested_pipelines():
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(x: pl.Tensor[[96, 64], pl.FP32], y: pl.Out[pl.Tensor[[96, 64], pl.FP32]]):
        for i in pl.pipeline(0, 96, 32, stage=2):
            for j in pl.pipeline(0, 64, 16, stage=3):
                t = pl.load(x, [i, j], [32, 16])
                pl.store(pl.add(t, 1.0), [i, j], y)

    x = np.random.default_rng(0).standard_normal((96, 64), dtype=np.float32)
    y = np.zeros_like(x)
    pl.compile(kernel, verification_level=ROUNDTRIP)(x, y)
    np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("pl.pipeline(0, 8, n, stage=2)", "a pipelined loop needs a constant step"),
        ("pl.pipeline(n, 0, -1, stage=2)", "a pipelined loop that counts down needs constant bounds"),
    ],
)
def test_loops_without_a_form_are_refused(loop, message):
    program = pl.parse(f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[64, 16], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[64, 16], pl.FP32]]):
        for i in {loop}:
            pl.store(pl.load(x, [i * 8, 0], [8, 16]), [i * 8, 0], y)
""")
    with pytest.raises(ValueError, match=message) as caught:
        passes.lower_pipeline_loops()(program)
    assert f"for i in {loop}" in str(caught.value) and "= hint:" in str(caught.value)


# What the passes write.


def test_the_body_is_written_out_and_the_rest_follows():
    made = lowered(flat(copying(0, 8, 1, stage=3)))
    (loop,) = loops(made)
    assert (loop.kind, loop.attrs["pipeline_stages"]) == (ir.ForKind.Pipeline, 1)
    assert (loop.start.value, loop.stop.value, loop.step.value) == (0, 6, 3)
    assert names(made) == ["load", "adds", "store"] * 5
    assert lowered(made) is made


def test_a_loop_may_count_down():
    made = lowered(flat(copying(10, -4, -3, stage=2)))
    (loop,) = loops(made)
    assert (loop.start.value, loop.stop.value, loop.step.value) == (10, -2, -6)
    made = lowered(flat(copying(10, 2, -3, stage=4)))
    assert not loops(made)
    assert [c.args[1].elements[0].left.value for c in calls(made, "tile.load")] == [10, 7, 4]


def test_a_loop_of_one_stage_is_kept_and_one_of_no_iterations_is_plain():
    before = flat(copying(0, 8, 1, stage=1))
    assert lowered(before) is before
    (loop,) = loops(lowered(flat(copying(4, 4, 1, stage=2))))
    assert loop.kind is ir.ForKind.Sequential and "pipeline_stages" not in loop.attrs


def test_every_tile_but_a_product_says_its_pipeline_and_stage():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore, strict_ssa=True)
        def kernel(
            self,
            a: pl.Tensor[[64, 32], pl.FP16],
            b: pl.Tensor[[32, 32], pl.FP16],
            y: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
        ):
            for i in pl.pipeline(0, 64, 32, stage=2):
                am = pl.tile.load(a, [i, 0], [32, 32], target_memory=pl.Mem.Mat)
                bm = pl.tile.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
                left = pl.tile.move(am, target_memory=pl.Mem.Left)
                right = pl.tile.move(bm, target_memory=pl.Mem.Right)
                pl.store(pl.tile.matmul(left, right), [i, 0], y)

    made = lowered(passes.flatten_call_expr()(Before))
    places = [(c.name, c.attrs.get("pipeline_membership")) for c in calls(made)]
    tagged = [("tile.load", "0:{}")] * 2 + [("tile.move", "0:{}")] * 2
    stage = [(n, p.format(k)) for k in (0, 1) for n, p in tagged]
    products = [("tile.matmul", None), ("tile.store", None)]
    assert places == [*stage[:4], *products, *stage[4:], *products]


def test_tiles_in_nested_pipelines_say_both():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
            for i in pl.pipeline(0, 64, 32, stage=2):
                for j in pl.pipeline(0, 64, 32, stage=2):
                    t = pl.load(x, [i, j], [32, 32])
                    pl.store(t, [i, j], y)

    places = [c.attrs["pipeline_membership"] for c in calls(lowered(Before), "tile.load")]
    assert places == ["0:0,1:0", "0:1,1:0", "0:0,1:1", "0:1,1:1"]


def test_loads_go_first_and_each_stage_stores_what_it_computed():
    made = ordered(lowered(flat(copying(0, 8, 1, stage=2))))
    assert names(made) == ["load", "load", "adds", "store", "adds", "store"]
    (loop,) = loops(made)
    assert loop.kind is ir.ForKind.Sequential and not loop.attrs
    assert ordered(made) is made
    found = passes.IRPropertySet([passes.IRProperty.PipelineResolved, passes.IRProperty.SSAForm])
    passes.verify_properties(found, made, "test")


def body(*lines):
    indented = "\n".join("            " + line for line in lines)
    return pl.parse(f"""
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore, strict_ssa=True)
    def kernel(
        self, x: pl.Tensor[[64, 16], pl.FP32], y: pl.InOut[pl.Tensor[[64, 16], pl.FP32]], s: pl.Scalar[pl.INDEX]
    ):
        for i in pl.pipeline(0, 2, 1, stage=1):
{indented}
""")


@pytest.mark.parametrize(
    ("lines", "order"),
    [
        # Independent reads of another tensor pass the store.
        (("t = pl.load(x, [0, 0], [8, 16])", "pl.store(t, [0, 0], y)", "u = pl.load(x, [8, 0], [8, 16])"),
         ["load", "load", "store"]),
        # What reads the stored tensor waits for the store.
        (("t = pl.load(x, [0, 0], [8, 16])", "pl.store(t, [0, 0], y)", "u = pl.load(y, [8, 0], [8, 16])"),
         ["load", "store", "load"]),
        (("t = pl.load(x, [0, 0], [8, 16])", "z = pl.store(t, [0, 0], y)", "u = pl.load(y, [8, 0], [8, 16])"),
         ["load", "store", "load"]),
        # Also through a view.
        (("v = pl.tensor.view(y, [16, 64])", "t = pl.load(x, [0, 0], [8, 16])", "pl.store(t, [0, 0], y)",
          "u = pl.load(v, [0, 0], [8, 16])"), ["load", "store", "load"]),
        # A store waits for what reads the old contents.
        (("t = pl.load(x, [0, 0], [8, 16])", "u = pl.load(y, [0, 0], [8, 16])", "pl.store(t, [0, 0], y)",
          "w = pl.add(u, 1.0)"), ["load", "load", "adds", "store"]),
        # An element is written before it is read.
        (("t = pl.load(x, [0, 0], [8, 16])", "pl.tile.write(t, [0, 0], 7.0)", "e = pl.tile.read(t, [0, 0])",
          "u = pl.load(x, [8, 0], [8, 16])"), ["load", "load", "write", "read"]),
        # Nothing crosses an operator of the system.
        (("t = pl.load(x, [0, 0], [8, 16])", "pl.system.bar_all()", "u = pl.load(x, [8, 0], [8, 16])"),
         ["load", "load"]),
    ],
)  # fmt: skip
def test_order(lines, order):
    before = body(*lines)
    made = ordered(before)
    assert names(made) == order
    if any("system" in line for line in lines):
        assert [c.name for c in calls(made, "")] == [c.name for c in calls(before, "")]


def test_tiles_in_one_declared_buffer_keep_their_order():
    lines = (
        't: pl.Tile[[8, 16], pl.FP32, pl.MemRef("shared", 0, 512), pl.Mem.Vec] = pl.load(x, [0, 0], [8, 16])',
        "u = pl.add(t, 1.0)",
        'v: pl.Tile[[8, 16], pl.FP32, pl.MemRef("shared", 0, 512), pl.Mem.Vec] = pl.load(x, [8, 0], [8, 16])',
        "w = pl.add(v, 1.0)",
    )
    assert names(passes.canonicalize_io_order()(body(*lines))) == ["load", "adds", "load", "adds"]
    apart = tuple(line.replace("shared", f"own{i}") for i, line in enumerate(lines))
    assert names(passes.canonicalize_io_order()(body(*apart))) == ["load", "load", "adds", "adds"]


def test_outside_pipelines_nothing_moves():
    @pl.program
    class Before:
        @pl.function(type=pl.FunctionType.InCore, strict_ssa=True)
        def kernel(self, x: pl.Tensor[[64, 16], pl.FP32], y: pl.Out[pl.Tensor[[64, 16], pl.FP32]]):
            for i in pl.range(0, 8, 2):
                t = pl.load(x, [i * 8, 0], [8, 16])
                pl.store(t, [i * 8, 0], y)
                u = pl.load(x, [i * 8 + 8, 0], [8, 16])
                pl.store(u, [i * 8 + 8, 0], y)

    assert ordered(Before) is Before


def test_operands_of_the_cube_stay_behind_an_inner_loop():
    take = "pl.tile.extract({0}, 0, {1}, [16, 16], target_memory=pl.Mem.{2})"
    lines = (
        "a = pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat)",
        "b = pl.load(x, [16, 0], [16, 16], target_memory=pl.Mem.Mat)",
        f"first = pl.matmul({take.format('a', 0, 'Left')}, {take.format('b', 0, 'Right')})",
        "for k, (acc,) in pl.range(2, init_values=(first,)):",
        f"    left = {take.format('a', 0, 'Left')}",
        f"    right = {take.format('b', 0, 'Right')}",
        "    more = pl.matmul_acc(acc, left, right)",
        "    total = pl.yield_(more)",
        f"last = {take.format('b', 0, 'Right')}",
        "c = pl.load(x, [32, 0], [16, 16], target_memory=pl.Mem.Mat)",
        f"rest = pl.matmul_acc(total, {take.format('c', 0, 'Left')}, last)",
        "pl.store(rest, [0, 0], y)",
    )
    made = names(passes.canonicalize_io_order()(passes.flatten_call_expr()(body(*lines))))
    inner = made.index("matmul_acc")
    assert made[:inner].count("load") == 3, "a load from global memory passes the loop"
    assert made[inner + 1 :].count("extract") == 2 and made[inner + 1 :].index("matmul_acc") == 2


@pl.jit
def remainder(
    a: pl.Tensor[[16, 512], pl.INT8], b: pl.Tensor[[512, 512], pl.INT8], out: pl.Out[pl.Tensor[[16, 512], pl.INT32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tensor([16, 512], dtype=pl.INT32)
        for k in pl.pipeline(0, 512, 256, stage=2):
            left = pl.slice(a, [16, 256], [0, k], valid_shape=[8, 256])
            if k == 0:
                acc = pl.matmul(left, b[k : k + 256, 0:512], out_dtype=pl.INT32)
            else:
                acc = pl.matmul_acc(acc, left, b[k : k + 256, 0:512])
        out = pl.assemble(out, acc, [0, 0])
    return out


def test_blocks_that_fill_an_operand_memory_by_twos_leave_room_for_the_rest():
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-9, 9, shape).astype(np.int8) for shape in ((16, 512), (512, 512)))
    out = np.full((16, 512), -1, np.int32)
    remainder(a, b, out)
    np.testing.assert_array_equal(out[:8], a[:8].astype(np.int32) @ b.astype(np.int32))
    assert (out[8:] == -1).all()
