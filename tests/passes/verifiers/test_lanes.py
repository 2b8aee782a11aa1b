"""AivSplitValid: what goes into a `pl.split_aiv` region, what stays out, and how values cross."""

import pytest

from pypto import DataType, ir, passes

P = passes.IRProperty
M = ir.MemorySpace
FP32 = DataType.FP32


def tile(name, shape, space):
    return ir.Var(name, ir.TileType(shape, FP32, None, None, space))


def call(name, *args, **kwargs):
    return ir.create_op_call(name, list(args), kwargs, ir.Span.unknown())


def let(name, value):
    var = ir.Var(name, value.type)
    return var, ir.AssignStmt(var, value)


def region(mode, *stmts):
    return ir.SplitAivScopeStmt(split=mode, body=ir.SeqStmts(list(stmts)))


def found(*stmts, kind=ir.FunctionType.AIV, attrs=None):
    program = ir.Program([ir.Function("main", [], [], ir.SeqStmts(list(stmts)), type=kind, attrs=attrs)])
    return [d.message for d in passes.PropertyVerifierRegistry.verify(passes.IRPropertySet([P.AivSplitValid]), program)]


VEC = tile("v", [16, 128], M.Vec)
ADD = let("sum", call("tile.add", VEC, VEC))
MATMUL = let("product", call("tile.matmul", tile("l", [16, 128], M.Left), tile("r", [128, 128], M.Right)))
NONE, ROWS, COLUMNS = ir.SplitMode.NONE, ir.SplitMode.UP_DOWN, ir.SplitMode.LEFT_RIGHT


def test_cube_work_is_outside_and_vector_work_inside():
    assert found(MATMUL[1], region(ROWS, ADD[1])) == []
    (text,) = found(region(ROWS, MATMUL[1]))
    assert text.startswith("cube op tile.matmul in a pl.split_aiv region: the region body is AIV work, and each lane")
    (text,) = found(region(NONE, MATMUL[1]))
    assert text.endswith("the region body is AIV work")
    (text,) = found(ADD[1], region(NONE))
    assert text.startswith("vector op tile.add is outside every pl.split_aiv region of 'main'")


def test_a_function_without_regions_is_left_alone():
    product, made = MATMUL
    assert found(made, ADD[1], ir.EvalStmt(call("tile.add", product, product))) == []


@pytest.mark.parametrize(
    ("name", "mode", "bad"),
    [
        ("col_max", ROWS, True), ("col_sum", ROWS, True), ("col_max", COLUMNS, False), ("col_max", NONE, False),
        ("row_max", COLUMNS, True), ("row_max", ROWS, False),
    ],
)  # fmt: skip
def test_a_lane_does_not_reduce_over_the_axis_it_has_half_of(name, mode, bad):
    args = (VEC,) if name.startswith("col_max") else (VEC, VEC)
    texts = found(region(mode, ir.EvalStmt(call(f"tile.{name}", *args))))
    assert [("reduces over the split axis" in t) for t in texts] == [True] * bad


@pytest.mark.parametrize("mode", [NONE, ROWS])
def test_crossings_join_the_memories_they_join(mode):
    acc, split = tile("acc", [16, 128], M.Acc), mode.value
    good = [call("tile.aiv_shard", acc, split=split), call("tile.aic_gather", VEC, split=split)]
    assert found(region(mode, *map(ir.EvalStmt, good))) == []
    bad = [call("tile.aiv_shard", VEC, split=split), call("tile.aic_gather", acc, split=split)]
    assert found(region(mode, *map(ir.EvalStmt, bad))) == [
        "tile.aiv_shard: the operand is in Vec, it requires Acc",
        "tile.aic_gather: the operand is in Acc, it requires Vec",
    ]
    assert found(*map(ir.EvalStmt, good)) == [
        "tile.aiv_shard must appear inside a pl.split_aiv region",
        "tile.aic_gather must appear inside a pl.split_aiv region",
    ]
    moved = good[1].replace(type=ir.TileType(good[1].type.shape, FP32, None, None, M.Vec))
    assert found(region(mode, ir.EvalStmt(moved))) == ["tile.aic_gather: the result is in Vec, it must be Mat"]


def test_values_cross_by_name_only():
    product, made = MATMUL
    uses = ir.EvalStmt(call("tile.add", product, product))
    (text,) = found(made, region(NONE, uses))
    assert text.startswith("'product' is made by the cube outside") and "pl.aiv_shard(product)" in text
    shared, shard = let("shared", call("tile.aiv_shard", product, split=0))
    assert found(made, region(NONE, shard, ir.EvalStmt(call("tile.add", shared, shared)))) == []

    total, added = ADD
    right = tile("r", [128, 128], M.Right)
    (text,) = found(region(NONE, added), ir.EvalStmt(call("tile.matmul", total, right)))
    assert text.startswith("'sum' is made in a pl.split_aiv region") and "pl.aic_gather(sum)" in text
    joined, gather = let("joined", call("tile.aic_gather", total, split=0))
    assert found(region(NONE, added, gather), ir.EvalStmt(call("tile.matmul", joined, right))) == []


def test_regions_are_not_written_in_kernels():
    (text,) = found(region(NONE), kind=ir.FunctionType.InCore)
    assert "CORE_GROUP-level region" in text
    assert found(region(NONE), kind=ir.FunctionType.InCore, attrs={"split_aiv": True}) == []


def test_contexts_are_asked_for_on_the_host():
    data = ir.Var("data", ir.DistributedTensorType([4], FP32))
    ask = ir.EvalStmt(call("pld.system.get_comm_ctx", data))

    def errors(**kind):
        program = ir.Program([ir.Function("main", [data], [], ask, **kind)])
        properties = passes.IRPropertySet([P.DistTensorCtxMaterialized])
        return len(passes.PropertyVerifierRegistry.verify(properties, program))

    assert errors(type=ir.FunctionType.InCore) == errors(type=ir.FunctionType.Orchestration) == 1
    assert errors(level=ir.Level.HOST, role=ir.Role.Orchestrator) == 0
