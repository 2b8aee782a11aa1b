"""What types refuse, and when two are one."""

import pytest

from pypto import DataType, ir

N = ir.Var("n", ir.ScalarType(DataType.INDEX))


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.UINT8, DataType.INDEX, DataType.BOOL, DataType.TASK_ID])
def test_arrays_hold_whole_numbers(dtype):
    assert ir.ArrayType(dtype, 4).extent.value == 4


@pytest.mark.parametrize(
    ("dtype", "extent", "message"),
    [
        (DataType.FP32, 4, "element dtype must be"),
        (DataType.BF16, 4, "element dtype must be"),
        (DataType.INT32, 0, "extent must be positive, got 0"),
        (DataType.INT32, -1, "extent must be positive, got -1"),
        (DataType.INT32, N, "extent must be a compile-time ConstInt"),
        (DataType.INT32, [2, 3], "extent must be a compile-time ConstInt"),
    ],
)
def test_what_arrays_refuse(dtype, extent, message):
    with pytest.raises(ValueError, match=message):
        ir.ArrayType(dtype, extent)


@pytest.mark.parametrize("make", [ir.TensorType, ir.TileType, ir.DistributedTensorType])
def test_rows_of_fp4_hold_whole_bytes(make):
    assert make([8, 16], DataType.FP4).dtype is DataType.FP4
    assert make([8, N], DataType.FP4).shape[1] is N
    for shape in ([8, 0], [8, 15], [7]):
        with pytest.raises(ValueError, match="positive even logical last dimension"):
            make(shape, DataType.FP4)
    with pytest.raises(ValueError, match="rank >= 1"):
        make([], DataType.FP4)


def test_a_region_written_like_the_shape_is_the_whole():
    def twice():
        return ir.Mul(N, ir.ConstInt(2, DataType.INDEX), DataType.INDEX)

    whole = ir.TileType([twice(), 64], DataType.FP32, None, ir.TileView(valid_shape=[twice(), 64]))
    assert whole.tile_view is None
    part = ir.TileType([twice(), 64], DataType.FP32, None, ir.TileView(valid_shape=[N, 64]))
    assert part.tile_view is not None
    tensor = ir.TensorType([twice()], DataType.FP32, None, ir.TensorView(valid_shape=[twice()]))
    assert tensor.tensor_view is None


def test_a_pipe_is_a_number_with_a_name():
    assert int(ir.PipeType.FIX) == 6 and ir.PipeType(6) is ir.PipeType.FIX
    assert str(ir.Call(ir.get_op("system.sync_src"), [], {"set_pipe": ir.PipeType.V})).count("pl.PipeType.V") == 1
    call = ir.create_op_call("system.bar_all", [], {}, ir.Span.unknown()).replace(kwargs={"pipe": ir.PipeType.V})
    assert ir.deserialize(ir.serialize(call)).kwargs["pipe"] is ir.PipeType.V
