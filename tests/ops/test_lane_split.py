"""`aiv_shard` and `aic_gather`."""

import pytest

import pypto.language as pl
from pypto import DataType, ir

FP32 = DataType.FP32
N = ir.Var("n", ir.ScalarType(DataType.INDEX))


def tile(shape, valid=()):
    view = ir.TileView(valid_shape=valid) if valid else None
    return ir.Var("t", ir.TileType(shape, FP32, None, view))


def cross(name, value, split):
    return ir.create_op_call(name, [value], {"split": split}, ir.Span.unknown()).type


@pytest.mark.parametrize(
    ("shape", "split", "shard", "gather"),
    [
        ([16, 64], 0, [16, 64], [16, 64]),
        ([16, 64], 1, [8, 64], [32, 64]),
        ([16, 64], 2, [16, 32], [16, 128]),
        ([15, 64], 1, [8, 64], [30, 64]),
    ],
)
@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_sizes(level, shape, split, shard, gather):
    value = tile(shape) if level == "tile" else ir.Var("t", ir.TensorType(shape, FP32))
    assert cross(f"{level}.aiv_shard", value, split).shape == shard
    assert cross(f"{level}.aic_gather", value, split).shape == gather


def test_a_shard_is_in_vector_memory_and_a_gather_in_the_cubes():
    assert cross("tile.aiv_shard", tile([16, 64]), 1).memory_space is ir.MemorySpace.Vec
    assert cross("tile.aic_gather", tile([16, 64]), 1).memory_space is ir.MemorySpace.Mat


def test_symbolic_extents_and_valid_regions_are_divided_too():
    half = cross("tile.aiv_shard", tile([N, 64]), 1).shape[0]
    assert isinstance(half, ir.FloorDiv)
    narrowed = cross("tile.aiv_shard", tile([16, 64], [13, 64]), 1)
    assert narrowed.valid_shape == [7, 64]
    assert cross("tile.aic_gather", tile([16, 64], [13, 64]), 0).valid_shape == [13, 64]


@pytest.mark.parametrize(
    ("value", "split", "message"),
    [
        (tile([2, 16, 64]), 1, "2D tile"),
        (tile([16, 64]), 3, "split must be 0"),
        (tile([16, 64]), -1, "split must be 0"),
        (tile([16, 64], [16, 30]), 2, "LEFT_RIGHT splits the column axis"),
        (tile([16, 64], [5, 30]), 1, "cannot both cross"),
        (tile([16, 64], [16, N]), 1, "runtime value narrower"),
    ],
)
def test_what_cannot_cross_is_refused(value, split, message):
    with pytest.raises(ValueError, match=message):
        cross("tile.aiv_shard", value, split)


def test_levels_do_not_mix():
    window = ir.Var("w", ir.DistributedTensorType([16, 64], FP32))
    with pytest.raises(ValueError, match="non-distributed"):
        cross("tensor.aiv_shard", window, 1)
    with pytest.raises(ValueError, match="TensorType"):
        cross("tensor.aiv_shard", tile([16, 64]), 1)


def test_there_is_no_mode_outside_a_kernel():
    for function in (pl.aiv_shard, pl.aic_gather):
        with pytest.raises(RuntimeError, match="pl.split_aiv"):
            function(tile([16, 64]))


def test_events_are_numbers_or_index_values():
    fixed = pl.system.sync_set(3, pipe=ir.PipeType.FIX, ffts_mode=1)
    assert fixed.args == [] and fixed.kwargs == {"pipe": ir.PipeType.FIX, "event_id": 3, "ffts_mode": 1}
    moving = pl.system.sync_wait(N, pipe=ir.PipeType.MTE2)
    assert moving.args == [N] and "event_id" not in moving.kwargs
    assert str(fixed) == "pl.system.sync_set(pipe=pl.PipeType.FIX, event_id=3, ffts_mode=1)"
    with pytest.raises(ValueError, match=r"ScalarType\(INDEX\)"):
        pl.system.sync_wait(ir.Var("e", ir.ScalarType(DataType.INT32)), pipe=ir.PipeType.MTE2)
    with pytest.raises(ValueError, match="one event_id"):
        ir.create_op_call("system.sync_wait", [], {"pipe": ir.PipeType.V}, ir.Span.unknown())
