"""Every tile gets a memory, and moves where an operator wants it elsewhere."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest
from text_programs import kernel

import pypto.language as pl
from pypto import backend, ir, passes
from pypto.backend import ASCEND910B, ASCEND950
from pypto.ir.printer import python_print
from pypto.ir.structural import assert_structural_equal
from pypto.ir.visitor import walk

Mem = ir.MemorySpace
R = np.random.default_rng(11)
MATRICES = "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]"


def program(params: str, lines: str) -> ir.Program:
    return passes.convert_to_ssa()(kernel(params, lines))


def block(lines: str) -> str:
    return dedent(lines).lstrip("\n")


def infer(params: str, lines: str, target: backend.Target | None = ASCEND910B) -> ir.Program:
    with passes.PassContext(target=target):
        return passes.infer_tile_memory_space()(program(params, lines))


def spaces(made: ir.Program) -> dict[str, Mem]:
    """The memory of each tile an assignment defines, by the name written."""
    found: dict[str, Mem] = {}
    for node in walk(made):
        if isinstance(node, ir.AssignStmt) and isinstance(node.var.type, ir.TileType):
            space = node.var.type.memory_space
            assert space is not None
            found[node.var.name_hint.replace("__ssa_v0", "")] = space
    return found


def moves(made: ir.Program) -> list[tuple[Mem, Mem]]:
    return [
        (n.args[0].type.memory_space, n.type.memory_space)  # pyright: ignore[reportAttributeAccessIssue]
        for n in walk(made)
        if isinstance(n, ir.Call) and n.op.name == "tile.move"
    ]


def refused(params: str, lines: str, target: backend.Target | None = ASCEND910B) -> str:
    with pytest.raises(ValueError) as caught:
        infer(params, lines, target)
    return str(caught.value)


MULTIPLY = "ta = pl.load(a, [0, 0], [16, 64])\ntb = pl.load(b, [0, 0], [64, 32])\nc = pl.matmul(ta, tb)\n"
STORE = "out = pl.store(c, [0, 0], out)\nreturn out"


def test_operands_are_loaded_to_mat_and_moved_to_the_cube() -> None:
    made = infer(MATRICES, MULTIPLY + STORE)
    assert spaces(made) == {
        "ta": Mem.Mat, "tb": Mem.Mat, "ta_Left": Mem.Left, "tb_Right": Mem.Right, "c": Mem.Acc,
    }  # fmt: skip
    assert moves(made) == [(Mem.Mat, Mem.Left), (Mem.Mat, Mem.Right)]


def test_without_a_target_a_load_stays_where_it_says() -> None:
    made = infer(MATRICES, MULTIPLY + STORE, None)
    assert moves(made) == [(Mem.Vec, Mem.Left), (Mem.Vec, Mem.Right)]


def test_vector_tiles_need_no_move() -> None:
    before = program(
        "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
        "t = pl.load(x, [0, 0], [16, 64])\nc = pl.exp(t)\n" + STORE,
    )
    made = passes.infer_tile_memory_space()(before)
    assert spaces(made) == {"t": Mem.Vec, "c": Mem.Vec} and moves(made) == []
    assert passes.infer_tile_memory_space()(made) is made


def test_demand_reaches_a_load_through_views() -> None:
    made = infer(
        "a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[32, 64], pl.FP16], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        block("""
        whole = pl.load(a, [0, 0], [32, 64])
        ta = pl.tile.slice(whole, [16, 64], [16, 0])
        tb = pl.load(b, [0, 0], [32, 64])
        c = pl.matmul(ta, pl.tile.transpose_view(tb))
        """) + STORE,
    )
    found = spaces(made)
    assert found["whole"] is found["ta"] is found["tb"] is Mem.Mat


def test_one_move_serves_every_consumer_in_sight() -> None:
    made = infer(
        MATRICES + ", flag: pl.Scalar[pl.INDEX]",
        block("""
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        first = pl.matmul(ta, tb)
        if flag == 0:
            c = pl.yield_(pl.matmul_acc(first, ta, tb))
        else:
            c = pl.yield_(first)
        """) + STORE,
    )
    assert moves(made) == [(Mem.Mat, Mem.Left), (Mem.Mat, Mem.Right)]


def test_a_move_inside_a_branch_does_not_leak() -> None:
    made = infer(
        MATRICES + ", flag: pl.Scalar[pl.INDEX]",
        block("""
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        if flag == 0:
            c = pl.yield_(pl.matmul(ta, tb))
        else:
            c = pl.yield_(pl.matmul(ta, tb))
        """) + STORE,
    )
    assert len(moves(made)) == 4


def test_an_accumulator_created_for_a_loop_is_in_acc() -> None:
    made = infer(
        MATRICES,
        block("""
        ta = pl.load(a, [0, 0], [16, 64])
        tb = pl.load(b, [0, 0], [64, 32])
        zero = pl.tile.create([16, 32], dtype=pl.FP32)
        for k, (acc,) in pl.range(4, init_values=(zero,)):
            more = pl.matmul_acc(acc, ta, tb)
            c = pl.yield_(more)
        """) + STORE,
    )
    assert spaces(made)["zero"] is Mem.Acc
    loop = next(n for n in walk(made) if isinstance(n, ir.ForStmt))
    assert loop.iter_args[0].type.memory_space is loop.return_vars[0].type.memory_space is Mem.Acc


def test_a_product_reaches_the_vector_core_where_the_target_has_a_way() -> None:
    made = infer(MATRICES, MULTIPLY + "c = pl.exp(c)\n" + STORE, ASCEND950)
    assert (Mem.Acc, Mem.Vec) in moves(made)
    text = python_print(made)
    assert "blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box" in text


def test_branches_meet_in_one_memory() -> None:
    lines = block("""
        ta = pl.load(a, [0, 0], [16, 64])
        tb = pl.load(b, [0, 0], [64, 32])
        v = pl.load(out, [0, 0], [16, 32])
        if flag == 0:
            c = pl.yield_(pl.matmul(ta, tb))
        else:
            c = pl.yield_(pl.exp(v))
        """) + STORE
    params = MATRICES.replace("pl.Out[pl.Tensor[[16, 32], pl.FP32]]", "pl.InOut[pl.Tensor[[16, 32], pl.FP32]]")
    params += ", flag: pl.Scalar[pl.INDEX]"
    for target in (ASCEND910B, ASCEND950):
        made = infer(params, lines, target)
        branch = next(n for n in walk(made) if isinstance(n, ir.IfStmt))
        assert branch.return_vars[0].type.memory_space is Mem.Vec and (Mem.Acc, Mem.Vec) in moves(made)


def test_attributes_follow_a_moved_argument() -> None:
    before = program(MATRICES, MULTIPLY + STORE)

    class Mark(ir.visitor.Rewriter):  # pyright: ignore[reportAttributeAccessIssue]
        def visit_call(self, op: ir.Call) -> ir.Expr:
            return op.replace(attrs={"dump_vars": [op.args[0]]}) if op.op.name == "tile.matmul" else op

    made = passes.infer_tile_memory_space()(Mark().rewrite(before))
    product = next(n for n in walk(made) if isinstance(n, ir.Call) and n.op.name == "tile.matmul")
    assert product.attrs["dump_vars"][0] is product.args[0]


def test_inserted_moves_point_at_the_consumer() -> None:
    made = infer(MATRICES, MULTIPLY + STORE)
    found = [n for n in walk(made) if isinstance(n, ir.AssignStmt)]
    product = next(n for n in found if isinstance(n.value, ir.Call) and n.value.op.name == "tile.matmul")
    for node in found:
        if isinstance(node.value, ir.Call) and node.value.op.name == "tile.move":
            assert node.span.begin_line == node.value.span.begin_line == product.span.begin_line


def test_the_result_satisfies_its_property_and_reads_back() -> None:
    made = infer(MATRICES, MULTIPLY + STORE)
    passes.verify_properties({passes.IRProperty.TileMemoryInferred}, made, "InferTileMemorySpace")
    again = pl.parse(python_print(made))
    assert isinstance(again, ir.Program)
    assert_structural_equal(made, again)


def test_a_written_move_does_not_say_where_its_tile_is_loaded() -> None:
    made = infer(
        "x: pl.Tensor[[16, 16], pl.FP16]",
        "t = pl.load(x, [0, 0], [16, 16])\nm = pl.move(t, target_memory=pl.Mem.Left)\nreturn x",
    )
    assert spaces(made) == {"t": Mem.Vec, "m": Mem.Left}


@pytest.mark.parametrize("target", [ASCEND910B, ASCEND950])
def test_tiles_go_from_core_to_core(target: backend.Target) -> None:
    made = infer(MATRICES, MULTIPLY + "c = pl.exp(c)\n" + STORE, target)
    assert moves(made) == [(Mem.Mat, Mem.Left), (Mem.Mat, Mem.Right), (Mem.Acc, Mem.Vec)]
    crossed = next(n for n in walk(made) if isinstance(n, ir.AssignStmt) and n.var.name_hint.endswith("_Vec"))
    assert crossed.var.type == ir.TileType([16, 32], pl.FP32, None, None, Mem.Vec)
    lines = MULTIPLY.replace("pl.load(a, [0, 0], [16, 64])", "pl.exp(pl.load(a, [0, 0], [16, 64]))") + STORE
    assert moves(infer(MATRICES, lines, target))[:2] == [(Mem.Vec, Mem.Mat), (Mem.Mat, Mem.Left)]


def test_a_tile_both_cores_read_is_loaded_for_the_vector_cores() -> None:
    made = infer(MATRICES, MULTIPLY + "e = pl.exp(ta)\n" + STORE)
    assert spaces(made)["ta"] is Mem.Vec and (Mem.Vec, Mem.Mat) in moves(made)


def test_products_are_joined_by_the_vector_cores_which_make_the_empty_tile() -> None:
    lines = """
    whole = pl.tile.create([16, 64], pl.FP32, target_memory=pl.Mem.Acc)
    whole = pl.tile.assemble(whole, c, [0, 8])
    wide = pl.store(whole, [0, 0], wide)
    return wide
    """
    params = MATRICES.replace("out: pl.Out[pl.Tensor[[16, 32]", "wide: pl.Out[pl.Tensor[[16, 64]")
    made = infer(params, MULTIPLY + dedent(lines))
    assert moves(made) == [(Mem.Mat, Mem.Left), (Mem.Mat, Mem.Right), (Mem.Acc, Mem.Vec)]
    joined = next(n for n in walk(made) if isinstance(n, ir.Call) and n.op.name == "tile.assemble")
    assert joined.type.memory_space is Mem.Vec  # pyright: ignore[reportAttributeAccessIssue]
    a, b = (R.standard_normal(s).astype(np.float16) for s in ((16, 64), (64, 32)))
    result = np.zeros((16, 64), np.float32)
    pl.compile(program(params, MULTIPLY + dedent(lines)))(a, b, result)
    assert np.allclose(result[:, 8:40], a.astype(np.float32) @ b.astype(np.float32), atol=1e-3)


ROWS = "a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[32, 64], pl.FP16], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]"


@pytest.mark.parametrize("target", [ASCEND910B, ASCEND950])
def test_a_tile_rows_are_gathered_into_as_columns_is_laid_out_for_it(target: backend.Target) -> None:
    """Whoever creates it need not say that it will be transposed, in a loop either."""
    lines = """
    turned = pl.tile.create([64, 32], pl.FP16, target_memory=pl.Mem.Mat)
    for i, (turned,) in pl.range(32, init_values=(turned,)):
        turned = pl.tile.gather_row(turned, b, [0, i], [i, 0], [1, 64], transpose=True)
        turned = pl.yield_(turned)
    out = pl.store(pl.matmul(pl.load(a, [0, 0], [32, 64]), turned), [0, 0], out)
    return out
    """
    made = infer(ROWS, dedent(lines), target)
    kinds = [n.var.type for n in walk(made) if isinstance(n, ir.AssignStmt) and n.var.name_hint.startswith("turned")]
    laid = [k.get_effective_tile_view() for k in kinds if isinstance(k, ir.TileType) and k.memory_space is Mem.Mat]
    assert laid and {(v.blayout, v.slayout) for v in laid} == {(ir.TileLayout.row_major, ir.TileLayout.col_major)}
    a, b = (R.standard_normal((32, 64)).astype(np.float16) for _ in range(2))
    result = np.zeros((32, 32), np.float32)
    pl.compile(program(ROWS, dedent(lines)), target=target.name)(a, b, result)
    assert np.allclose(result, a.astype(np.float32) @ b.astype(np.float32).T, atol=1e-2)


# What is refused.


def test_nothing_moves_into_an_accumulator() -> None:
    message = refused(
        MATRICES,
        "ta = pl.load(a, [0, 0], [16, 64])\ntb = pl.load(b, [0, 0], [64, 32])\n"
        "zero = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)\nc = pl.matmul_acc(zero, ta, tb)\n" + STORE,
        None,
    )
    assert "'zero' is in Vec and is needed in Acc" in message and "start it with pl.matmul" in message


def test_a_written_move_must_be_one_instruction() -> None:
    lines = MULTIPLY + "m = pl.move(c, target_memory=pl.Mem.Left)\n" + STORE
    assert "move it in steps: Acc -> Mat -> Left" in refused(MATRICES, lines)


def test_nothing_moves_out_of_an_operand_memory() -> None:
    lines = MULTIPLY + "l = pl.move(ta, target_memory=pl.Mem.Left)\ne = pl.exp(l)\n" + STORE
    assert "'l' is in Left and is needed in Vec, and nothing moves it there on Ascend910B" in refused(MATRICES, lines)


def test_a_tile_parameter() -> None:
    x = ir.Var("x", ir.TileType([16, 16], pl.FP32))
    before = ir.Program([ir.Function("kernel", [x], [], ir.ReturnStmt([]), type=ir.FunctionType.InCore)])
    with pytest.raises(ValueError, match="parameter 'x' of kernel 'kernel' is a Tile"):
        passes.infer_tile_memory_space()(before)


VECTOR = MATRICES + ", copy: pl.Out[pl.Tensor[[16, 64], pl.FP16]]"
IN_MAT = """
ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
tb = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
{}
copy = pl.store(v, [0, 0], copy)
c = pl.matmul(ta, tb)
"""


@pytest.mark.parametrize("target", [ASCEND910B, ASCEND950])
@pytest.mark.parametrize("use", ["v = pl.exp(ta)", "v = pl.move(ta, target_memory=pl.Mem.Vec)"])
def test_the_vector_cores_load_for_themselves_what_the_cube_loaded(target: backend.Target, use: str) -> None:
    made = infer(VECTOR, IN_MAT.format(use) + STORE, target)
    assert (Mem.Mat, Mem.Vec) not in moves(made)
    loads = [n for n in walk(made) if isinstance(n, ir.Call) and n.op.name == "tile.load"]
    assert [(n.args[0].name_hint, n.kwargs["target_memory"]) for n in loads] == [  # pyright: ignore[reportAttributeAccessIssue]
        ("a__ssa_v0", Mem.Mat), ("b__ssa_v0", Mem.Mat), ("a__ssa_v0", Mem.Vec),
    ]  # fmt: skip
    with passes.PassContext(target=target):
        assert passes.infer_tile_memory_space()(made) is made


def test_one_second_load_serves_all_uses_in_a_block() -> None:
    made = infer(VECTOR, IN_MAT.format("w = pl.exp(ta)\nv = pl.mul(w, ta)") + STORE)
    assert sum(isinstance(n, ir.Call) and n.op.name == "tile.load" for n in walk(made)) == 3


@pytest.mark.parametrize(
    "use",
    [
        "a = pl.store(pl.tile.full([16, 64], pl.FP16, 0.0), [0, 0], a)\nv = pl.exp(ta)",
        "s = pl.tensor.view(a, [32, 32])\ns = pl.store(pl.tile.full([16, 32], pl.FP16, 0.0), [0, 0], s)\n"
        "v = pl.exp(ta)",
        "v = pl.exp(pl.slice(ta, [16, 64], [0, 0]))",
    ],
)
def test_what_cannot_be_loaded_again_is_moved(use: str) -> None:
    params = VECTOR.replace("a: pl.Tensor[[16, 64], pl.FP16]", "a: pl.InOut[pl.Tensor[[16, 64], pl.FP16]]")
    assert (Mem.Mat, Mem.Vec) in moves(infer(params, IN_MAT.format(use) + STORE))


def test_rows_of_a_product_are_cut_out_of_a_copy_in_vec() -> None:
    wide = "ta = pl.load(a, [0, 0], [32, 64])\ntb = pl.load(b, [0, 0], [64, 32])\nc = pl.matmul(ta, tb)\n"
    params = (
        "a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]"
    )
    store = "out = pl.store(d, [0, 0], out)\nreturn out"
    rows = infer(params, wide + "d = pl.tile.slice(c, [16, 32], [16, 0])\n" + store)
    assert (Mem.Acc, Mem.Vec) in moves(rows) and spaces(rows)["d"] is Mem.Vec
    columns = infer(params, wide + "d = pl.tile.slice(c, [32, 16], [0, 16])\n" + store)
    assert (Mem.Acc, Mem.Vec) not in moves(columns) and spaces(columns)["d"] is Mem.Acc


@pl.jit
def halves(
    a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.matmul(a, b)
        for i in pl.unroll(2):
            out[(1 - i) * 16 : (1 - i) * 16 + 16, 0:32] = c[i * 16 : i * 16 + 16, 0:32]
    return out


def test_halves_of_a_product_change_places() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((32, 64)).astype(np.float32), rng.standard_normal((64, 32)).astype(np.float32)
    out = np.zeros((32, 32), np.float32)
    halves(a, b, out)
    product = a @ b
    np.testing.assert_allclose(out, np.concatenate([product[16:], product[:16]]), rtol=1e-4, atol=1e-4)
