"""TypeChecked finds valid regions that do not lie inside their shape."""

import pytest

from pypto import DataType, ir, passes

INDEX = ir.ScalarType(DataType.INDEX)
N = ir.Var("n", INDEX)


def tensor(shape, valid=()):
    return ir.TensorType(shape, DataType.FP32, None, ir.TensorView(valid_shape=valid))


def tile(shape, valid):
    return ir.TileType(shape, DataType.FP32, None, ir.TileView(valid_shape=valid))


def found(params=(), results=(), stmts=()):
    body = ir.SeqStmts([*stmts, ir.ReturnStmt([])])
    program = ir.Program([ir.Function("main", [ir.Var(f"p{i}", t) for i, t in enumerate(params)], results, body)])
    properties = passes.IRPropertySet([passes.IRProperty.TypeChecked])
    return [(d.error_code, d.message) for d in passes.PropertyVerifierRegistry.verify(properties, program)]


@pytest.mark.parametrize(
    "type",
    [
        tensor([16]), tensor([16], [16]), tensor([16], [0]), tensor([16], [N]), tensor([N], [N]), tensor([N], [8]),
        tensor([16], [ir.ConstFloat(1.0, DataType.FP32)]), tensor([64], [N + 64 - N]), tile([8, 16], [8, 3]),
    ],
)  # fmt: skip
def test_regions_that_fit_or_may_fit(type):
    assert found([type]) == []


@pytest.mark.parametrize(
    ("type", "code", "message"),
    [
        (tensor([16], [-1]), 104, "TensorType valid_shape dimension 0 has negative extent -1"),
        (tile([8, 16], [8, 17]), 104, "TileType valid_shape dimension 1 extent 17 exceeds physical shape extent 16"),
        (tensor([8, 16], [8]), 103, "TensorType valid_shape rank mismatch: got rank 1, physical shape has rank 2"),
        (tensor([64], [N + 65 - N]), 104, "dimension 0 extent n + 65 - n exceeds physical shape extent 64"),
        (tensor([64], [N - N - 1]), 104, "has provably negative extent n - n - 1"),
        (tensor([N], [N + 1]), 104, "extent n + 1 exceeds physical shape extent n"),
    ],
)
def test_regions_that_do_not(type, code, message):
    ((have, text),) = found([type])
    assert have == code and message in text and text.startswith("Var 'p0' has invalid")


def test_every_place_a_type_stands_in_is_looked_at():
    bad = tensor([8], [9])
    ((_, text),) = found(results=[ir.TupleType([INDEX, bad])])
    assert text.startswith("Function 'main' return type[0] TupleType element[1] has invalid TensorType")
    ((_, text),) = found(stmts=[ir.AssignStmt(ir.Var("y", bad), N)])
    assert text.startswith("Var 'y' has invalid")
    ((_, text),) = found(stmts=[ir.EvalStmt(ir.Call(ir.Op("test.call"), [], bad, ir.Span.unknown()))])
    assert text.startswith("Call result has invalid")


def test_a_type_shared_by_many_is_reported_once():
    bad = tensor([8], [9])
    assert len(found([bad, bad, bad])) == 1
