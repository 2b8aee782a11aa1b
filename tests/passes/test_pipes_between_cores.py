"""The buffer of pipes in global memory, lane 1 of a kernel without a split, frees that say their pop's split."""

from __future__ import annotations

import pytest
from checking import check, run, unchanged

import pypto.language as pl
from pypto import backend, codegen, ir, passes
from pypto.errors import KernelValueError
from pypto.ir.visitor import walk
from pypto.passes.pipe_workspace import ring_offsets

pytestmark = pytest.mark.usefixtures("on_910b")


CALLERS = """
    @pl.function(type=pl.FunctionType.Group)
    def both(self, x: pl.Tensor[[16, 16], pl.FP32]{param}):
        self.vector(x{arg})

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32]):
        {first}self.both(x{a})
        {second}self.both(x{b})
"""
VECTOR = """
import pypto.language as pl

@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, x: pl.Tensor[[16, 16], pl.FP32]{param}):
        ring = pl.reserve_buffer(name="ring", size=2048)
        pl.aiv_initialize_pipe(ring, dir_mask=1, slot_size=1024, slot_num=2)
        t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        pl.tfree_to_aic(t)
"""


def program(text: str) -> ir.Program:
    made = pl.parse(text)
    assert isinstance(made, ir.Program)
    return made


def test_each_launch_has_a_buffer_of_its_own() -> None:
    bare = dict.fromkeys(("param", "arg", "first", "second", "a", "b"), "")
    buffer = "pl.tensor.create([1], dtype=pl.FP32, manual_dep=True)\n        "
    filled = {
        "param": ", __gm_pipe_buffer: pl.Out[pl.Tensor[[1], pl.FP32]]", "arg": ", __gm_pipe_buffer",
        "first": f"p = {buffer}", "second": f"q = {buffer}", "a": ", p", "b": ", q",
    }  # fmt: skip
    before, expected = (program((VECTOR + CALLERS).format(**values)) for values in (bare, filled))
    check(before, expected, passes.inject_gm_pipe_buffer)
    backend.reset_for_testing()
    backend.set_backend_type(backend.BackendType.Ascend950)
    unchanged(before, passes.inject_gm_pipe_buffer)


TWO_PIPES = """
import pypto.language as pl

@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, x: pl.Tensor[[16, 16], pl.FP32], __gm_pipe_buffer: pl.Out[pl.Tensor[[1], pl.FP32]]):
        one = pl.import_peer_buffer(name="one", peer_func="cube")
        two = pl.reserve_buffer(name="two", size=4096, base=0)
        pl.aiv_initialize_pipe(0, one, dir_mask=2, slot_size=512, id=1)
        pl.aiv_initialize_pipe(two, 0, dir_mask=3, slot_size=1024, slot_num=3, id=0)
"""


def test_pipes_lie_one_after_the_other_in_the_buffer() -> None:
    made = program(TWO_PIPES)
    vector = made.get_function("vector")
    assert vector is not None
    assert ring_offsets(vector) == ({(0, 3): 0, (1, 2): 2 * 3 * 1024}, 2 * 3 * 1024 + 8 * 512)
    text = codegen.generate_pto(made, backend.ASCEND910B, locations=False)["vector"]
    assert "%ring = pto.addptr %arg1, %c1536_index : !pto.ptr<f32> -> !pto.ptr<f32>" in text
    assert "(gm_slot_buffer = %ring : !pto.ptr<f32>, c2v_consumer_buf" in text
    assert "slot_num = 3} (gm_slot_buffer = %arg1 : !pto.ptr<f32>, c2v_consumer_buf" in text


DUAL = """
import pypto.language as pl

@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.AIV, attrs={"dual_aiv_dispatch": True})
    def vector(self, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
        ring = pl.reserve_buffer(name="ring", size=2048)
        back = pl.import_peer_buffer(name="back", peer_func="cube")
        pl.aiv_initialize_pipe(ring, back, dir_mask=3, slot_size=1024, slot_num=2)
        acc = pl.tile.full([16, 16], dtype=pl.FP32, value=0.0)
        for i, (total,) in pl.range(n, init_values=(acc,)):
            t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
            more = pl.add(total, t)
            pl.tfree_to_aic(t)
            pl.tpush_to_aic(more, split=0)
            total = pl.yield_(more)
        done = pl.store(total, [0, 0], out)
        return done
"""


def names(body: ir.Stmt | None) -> list[str]:
    assert body is not None
    return [n.op.name.partition(".")[2] for n in walk(body) if isinstance(n, ir.Call)]


@pytest.mark.parametrize("annotation", ["", " -> pl.Tensor[[16, 16], pl.FP32]"])
def test_lane_1_only_keeps_up_the_handshakes(annotation: str) -> None:
    text = DUAL.replace(" -> pl.Tensor[[16, 16], pl.FP32]", annotation)
    after = run(program(text), passes.split_vector_kernel)
    with passes.PassContext([]):
        assert passes.split_vector_kernel()(after) is after
    vector = after.get_function("vector")
    assert vector is not None
    first, *rest = ir.flatten_to_stmts(vector.body)
    assert names(first) == ["get_subblock_idx"] and names(rest[0]) == ["reserve_buffer"]
    branch, last = rest[3:]
    assert isinstance(branch, ir.IfStmt) and isinstance(last, ir.ReturnStmt) and last.value[0] is vector.params[1]
    assert names(branch.then_body) == ["full", "tpop_from_aic", "add", "tfree_to_aic", "tpush_to_aic", "store"]
    assert names(branch.else_body) == ["tpop_from_aic", "tfree_to_aic", "create", "tpush_to_aic"]
    assert branch.else_body is not None
    made = [n.var.type for n in walk(branch.else_body) if isinstance(n, ir.AssignStmt)]
    tiles = [t for t in made if isinstance(t, ir.TileType)]
    assert tiles and all([d.value for d in t.valid_shape] == [0, 0] for t in tiles)


def test_lane_1_cannot_know_what_lane_0_reads_from_a_tile() -> None:
    text = DUAL.replace("for i, (total,) in pl.range(n,", "many = pl.cast(pl.tile.read(acc, [0, 0]), pl.INDEX)\n"
                        "        for i, (total,) in pl.range(many,")  # fmt: skip
    with pytest.raises(KernelValueError, match="only one of the two vector cores that run it has the tile"):
        run(program(text), passes.flatten_call_expr, passes.split_vector_kernel)


def test_a_divided_kernel_only_gets_its_mark() -> None:
    marks = '{"split": 1, "split_aiv": True}'
    text = VECTOR.format(param="").replace("pl.FunctionType.AIV)", f"pl.FunctionType.AIV, attrs={marks})")
    after = run(program(text), passes.split_vector_kernel)
    vector = after.get_function("vector")
    assert vector is not None and vector.attrs == {"split": 1, "split_aiv": True, "dual_aiv_dispatch": True}
    assert "get_subblock_idx" not in names(vector.body)


def test_a_free_takes_split_and_pipe_of_its_pop() -> None:
    text = VECTOR.format(param="").replace("split=0)", "split=2, id=3)").replace("slot_num=2)", "slot_num=2, id=3)")
    check(program(text), program(text.replace("tfree_to_aic(t)", "tfree_to_aic(t, split=2, id=3)")),
          passes.stamp_tfree_split)  # fmt: skip


@pytest.mark.parametrize(
    ("free", "message"),
    [
        ("tfree_to_aic(t, id=1)", "system.tfree_to_aic id=1 does not match originating tile.tpop_from_aic id=0"),
        ("tfree_to_aic(t, split=1)", "split=1 does not match originating tile.tpop_from_aic split=0"),
        ("tfree_to_aiv(t)", "requires its tile argument to come from tile.tpop_from_aiv, 't' comes from"),
    ],
)
def test_a_free_that_does_not_fit_its_pop(free: str, message: str) -> None:
    with pytest.raises(KernelValueError) as caught:
        run(program(VECTOR.format(param="").replace("tfree_to_aic(t)", free)), passes.stamp_tfree_split)
    assert message in str(caught.value) and free in str(caught.value)


PIPED = """
import pypto.language as pl

@pl.program
class Kernels:
    @pl.function(type=pl.FunctionType.AIV)
    def vector(self, x: pl.Tensor[[16, 16], pl.FP32]):
        ring = pl.reserve_buffer(name="ring", size=2048)
        pl.aiv_initialize_pipe(ring, dir_mask=1, slot_size=1024, slot_num=2)
        t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split={first})
        pl.tfree_to_aic(t, split={first})
        u: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split={second})
        pl.tfree_to_aic(u, split={second})
"""


@pytest.mark.parametrize(
    ("first", "second", "split", "both"),
    [(1, 1, ir.SplitMode.UP_DOWN, True), (2, 2, ir.SplitMode.LEFT_RIGHT, True), (0, 0, None, None)],
)
def test_a_kernel_takes_the_split_that_all_its_pipes_have(first: int, second: int, split: object, both: object) -> None:
    made = passes.split_vector_kernel()(program(PIPED.format(first=first, second=second)))
    vector = made.get_function("vector")
    assert vector is not None and vector.split is split and vector.attrs.get("dual_aiv_dispatch") is both
    assert passes.split_vector_kernel()(made) is made
