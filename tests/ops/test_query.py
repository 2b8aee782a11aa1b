"""Questions about operators by name."""

import pytest

from pypto.dtypes import DataType
from pypto.ir.enums import AtomicType, MemorySpace
from pypto.ir.expr import Var
from pypto.ir.span import Span
from pypto.ir.types import ScalarType, TensorType, TileType
from pypto.ops import query
from pypto.ops.registry import ArgEffect, WriteChannel

M = MemorySpace
TENSOR = Var("x", TensorType([8], DataType.FP32))


def test_operators_are_found_by_name():
    assert query.is_op_registered("tensor.add") and not query.is_op_registered("tensor.addd")
    assert query.get_op("tensor.add").name == "tensor.add"
    with pytest.raises(ValueError, match="no operator 'tensor.addd'"):
        query.get_op("tensor.addd")


def test_calls_are_built_with_their_type():
    span = Span("kernel.py", 12, 15)
    made = query.create_op_call("tensor.add", [TENSOR, TENSOR], span)
    assert made.span is span and made.type == TENSOR.type
    made = query.create_op_call("tensor.cast", [TENSOR], {"target_type": DataType.FP16, "mode": 2}, span)
    assert made.type.dtype is DataType.FP16


def test_errors_end_with_the_place_where_it_is_known():
    with pytest.raises(ValueError, match="missing.*'rhs'.* at kernel.py:12:15$"):
        query.create_op_call("tensor.add", [TENSOR], {}, Span("kernel.py", 12, 15))
    with pytest.raises(ValueError) as info:
        query.create_op_call("tensor.add", [TENSOR])
    assert str(info.value).endswith("add(lhs, rhs)")
    with pytest.raises(ValueError, match="Unknown kwarg 'layuot'"):
        query.create_op_call("tensor.add", [TENSOR, TENSOR], {"layuot": 0})


@pytest.mark.parametrize(
    ("name", "inputs", "output"),
    [
        ("tile.matmul", [[M.Left], [M.Right]], M.Acc),
        ("tile.matmul_acc", [[M.Acc], [M.Left], [M.Right]], M.Acc),
        ("tile.matmul_bias", [[M.Left], [M.Right], [M.Bias]], M.Acc),
        ("tile.load", [], "deferred"),
        ("tile.create", [], "deferred"),
        ("tile.store", [[M.Vec, M.Acc]], None),
        ("tile.move", [], M.Vec),
        ("tile.adds", [[M.Vec]], M.Vec),
        ("tile.row_sum", [[M.Vec], [M.Vec]], M.Vec),
        ("tile.reshape", [], "inherit_from_input"),
        ("tile.transpose", [], "inherit_from_input"),
        ("tile.full", [], M.Vec),
    ],
)
def test_memories(name, inputs, output):
    assert query.get_op_memory_spec(name) == {"input_constraints": inputs, "output_memory": output}


@pytest.mark.parametrize("name", ["tensor.add", "tile.get_block_idx", "tile.alloc", "no.such"])
def test_operators_without_tiles_have_no_memories(name):
    assert query.get_op_memory_spec(name) is None


@pytest.mark.parametrize(
    ("name", "index", "attrs", "effect"),
    [
        ("tile.store", 0, {}, ArgEffect.Read),
        ("tile.store", 2, {}, ArgEffect.Write),
        ("tile.store", 2, {"atomic": AtomicType.Add}, ArgEffect.ReadWrite),
        ("tensor.assemble", 0, {"atomic": 1}, ArgEffect.ReadWrite),
        ("tile.matmul_acc", 0, {}, ArgEffect.ReadWrite),
        ("tile.write", 0, {}, ArgEffect.ReadWrite),
        ("tensor.write", 0, {}, ArgEffect.Write),
        ("tile.row_sum", 1, {}, ArgEffect.Write),
        ("tile.mgather", 2, {}, ArgEffect.Read),
        ("tile.mgather", 2, {"target_memory": M.Mat, "coalesce": 1}, ArgEffect.Write),
        ("system.syncall", 0, {"mode": "soft"}, ArgEffect.ReadWrite),
        ("tile.add", 99, {}, ArgEffect.Read),
    ],
)
def test_effects(name, index, attrs, effect):
    assert query.get_op_arg_effect(name, index, **attrs) is effect


def test_what_is_stated_of_arguments():
    assert not query.op_has_declared_arg_effects("tensor.add")
    assert query.op_has_declared_arg_effects("system.set_ffts")
    assert query.op_has_declared_arg_effect("tile.store", 2) and not query.op_has_declared_arg_effect("tile.store", 0)


def test_write_channels_and_cores():
    assert query.get_op_write_channel("tile.store") is WriteChannel.Dma
    assert query.get_op_write_channel("tensor.write") is WriteChannel.Scalar
    assert query.get_op_write_channel("tile.add") is None
    assert query.get_declared_core_affinity("tile.matmul") == "cube"
    assert query.get_declared_core_affinity("tile.store") is None
    assert not query.is_no_duplicate_op("tile.add")


def test_an_operator_lists_its_keywords():
    assert query.get_op("tensor.matmul").get_attr_keys() == ["out_dtype", "a_trans", "b_trans", "c_matrix_nz"]
    assert query.get_op("tile.slice").has_attr("pad_value") and not query.get_op("tile.batch_matmul").get_attr_keys()


def test_a_tile_is_not_a_scalar():
    wrong = Var("s", ScalarType(DataType.FP32))
    with pytest.raises(ValueError, match="requires first argument to be a TileType"):
        query.create_op_call("tile.exp", [wrong])
    assert query.create_op_call("tile.exp", [Var("t", TileType([8, 8], DataType.FP32))]).op.name == "tile.exp"
