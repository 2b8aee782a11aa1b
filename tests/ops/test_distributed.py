"""Distributed operators: what they give, what they do to their arguments, what they refuse and how they say so."""

import pytest
from operands import refused

import pypto.language.distributed as pld
from pypto import ir
from pypto.dtypes import DataType
from pypto.errors import InternalError
from pypto.ir.enums import AtomicType, MemorySpace, NotifyOp, ReduceOp, TensorLayout, TileLayout, WaitCmp
from pypto.ir.expr import ConstInt, MakeTuple, Mul, Var
from pypto.ir.op.distributed import tensor_ops, tile_ops
from pypto.ir.types import (
    CommCtxType,
    DistributedTensorType,
    PtrType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    UnknownType,
)
from pypto.ops.registry import ArgEffect, Core, WriteChannel, all_decls, arg_effect, decl_of, get_decl, rebind, reinfer

FP16, FP32, INT32 = DataType.FP16, DataType.FP32, DataType.INT32


def window(*shape, dtype=FP16, name="w", view=None):
    return Var(name, DistributedTensorType(shape, dtype, None, view))


def tensor(*shape, dtype=FP16, name="x"):
    return Var(name, TensorType(shape, dtype))


def tile(*shape, dtype=FP16, name="t", space=None):
    return Var(name, TileType(shape, dtype, None, None, space))


def scalar(name="n", dtype=INT32):
    return Var(name, ScalarType(dtype))


PEER = scalar("peer")
SIGNAL = window(4, 1, dtype=INT32, name="signal")


# All of them.

DISTRIBUTED = [d for d in all_decls() if d.name.startswith(("pld.", "builtin.", "dist."))]


@pytest.mark.parametrize("decl", DISTRIBUTED, ids=lambda d: d.name)
def test_a_declaration_states_effects_meaning_and_whether_calls_may_go(decl):
    assert decl.doc.strip().endswith(".")
    writes = [p.name for p in decl.args if p.effect is not ArgEffect.Read]
    assert not writes or not decl.pure
    assert set(writes) >= {decl.reuses} - {None}
    assert all("tile" in decl.param(name).kinds for name in decl.spaces)
    assert decl.internal is not decl.name.startswith("pld.")


def test_there_are_the_documented_ones():
    names = {d.name for d in DISTRIBUTED}
    assert {f"pld.{level}.{op}" for level in ("tile", "tensor") for op in ("put", "get", "remote_store")} <= names
    assert {f"pld.system.{op}" for op in ("notify", "wait", "defer_wait", "rank", "nranks", "world_size")} <= names
    collectives = "allreduce barrier broadcast reduce_scatter allgather all_to_all all_to_all_v"
    assert {f"pld.tensor.{op}" for op in collectives.split()} <= names


# Windows.


def test_a_window_is_allocated_in_bytes():
    call = pld.tensor.alloc_window_buffer(1024, name="buf")
    assert call.type == PtrType() and call.kwargs == {"name": "buf"} and call.args[0].value == 1024


def test_a_window_is_allocated_for_a_shape():
    call = pld.alloc_window_buffer([3, 5], dtype=FP16, name="buf")
    assert isinstance(call.args[0], ConstInt) and (call.args[0].value, call.args[0].dtype) == (30, DataType.INT64)
    ranks = pld.world_size()
    made = pld.alloc_window_buffer([3, ranks], dtype=DataType.INT8, name="buf").args[0]
    assert isinstance(made, Mul) and made.left is ranks and made.right.value == 3 and made.dtype is DataType.INT64


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((0,), {"name": "b"}, "positive size in bytes, got 0"),
        ((8,), {"name": ""}, "non-empty 'name'"),
        ((8,), {}, "missing required positional argument 'name'"),
        ((8,), {"name": "b", "dtype": FP16}, "dtype= is only valid when the first argument is a shape"),
        (([4],), {"name": "b"}, "a shape requires dtype="),
        (([],), {"name": "b", "dtype": FP16}, "shape must be non-empty"),
        (([4, -1],), {"name": "b", "dtype": FP16}, "all dimensions must be positive, got -1"),
        (([4, 2.0],), {"name": "b", "dtype": FP16}, "dimensions must be integers, got 2.0"),
        (([4],), {"name": "b", "dtype": DataType.INT4}, "no whole number of bytes"),
        ((8,), {"name": "b", "align": 4}, "unexpected keyword argument 'align'"),
        ((8, "b"), {"name": "c"}, "multiple values for 'name'"),
        ((8, "b", FP16), {}, "at most 2 positional arguments, got 3"),
        ((1.5,), {"name": "b"}, "size must be an integer scalar"),
    ],
)
def test_a_bad_allocation(args, kwargs, message):
    refused(message, pld.alloc_window_buffer, *args, **kwargs)


def test_a_window_becomes_a_tensor():
    buffer, rows = Var("buf", PtrType()), scalar("rows", DataType.INDEX)
    made = pld.window(buffer, [rows, 64], dtype=FP32).type
    assert type(made) is DistributedTensorType and made.dtype is FP32 and made.window_buffer is None
    assert made.shape[0] is rows and made.shape[1].value == 64
    refused("buf must be a Ptr handle, got .*Tensor", pld.window, tensor(8), [8], dtype=FP32)
    refused("missing required keyword argument 'dtype'", pld.window, buffer, [8])
    refused("at most|exactly 2 positional", pld.window, buffer, [8], FP32)
    refused("requires a non-empty shape", pld.window, buffer, [], dtype=FP32)
    refused("shape dimension 1 must be a positive integer", pld.window, buffer, [8, 0], dtype=FP32)


# Ranks and signals.


def test_ranks():
    assert pld.world_size().type.dtype is DataType.INT64
    ctx = pld.get_comm_ctx(window(8))
    assert ctx.type is CommCtxType.get()
    assert pld.rank(ctx).type.dtype is INT32 and pld.nranks(ctx).type.dtype is INT32
    refused("ctx must be a CommCtx, got a value of type pl.Scalar", pld.rank, PEER)
    refused("must be a window-bound DistributedTensor, got .*Tensor", pld.get_comm_ctx, tensor(8))
    refused("takes no positional argument", pld.world_size, 4)
    refused("exactly 1 positional argument, got 2", pld.get_comm_ctx, window(8), PEER)
    refused("'root', it has no kwargs", ir.create_op_call, "pld.system.rank", [ctx], {"root": 0})


def test_a_notification_adds_unless_it_sets():
    added = pld.system.notify(SIGNAL, PEER, [0, 0], 1)
    assert added.kwargs["op"] is NotifyOp.AtomicAdd and isinstance(added.type, UnknownType)
    assert arg_effect(added, 0) is ArgEffect.ReadWrite
    made = pld.system.notify(SIGNAL, PEER, [0, 0], 1, op=NotifyOp.Set)
    assert arg_effect(made, 0) is ArgEffect.Write and made.kwargs["op"] == 1
    assert not decl_of(made).duplicable and decl_of(made).channel is None


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((tensor(4, 1, dtype=INT32), PEER, [0, 0], 1), {}, "target must be a window-bound DistributedTensor"),
        ((SIGNAL, PEER, [0], 1), {}, r"offsets rank \(1\) must match the rank \(2\) of target \[4, 1\] int32"),
        ((SIGNAL, PEER, [0, -2], 1), {}, "offsets dimension 1 must be non-negative, got -2"),
        ((SIGNAL, [0], [0, 0], 1), {}, "peer must be a scalar"),
        ((SIGNAL, 0.5, [0, 0], 1), {}, "peer to be an integer rank"),
        ((SIGNAL, PEER, 0, 1), {}, "offsets must be a tuple"),
        ((SIGNAL, PEER, [0, 0], 0.5), {}, "value must be an integer or index scalar"),
        ((SIGNAL, PEER, [0, 0], 1), {"op": AtomicType.Add}, "op must be NotifyOp.AtomicAdd or NotifyOp.Set"),
        ((SIGNAL, PEER, [0, 0], 1), {"op": 2}, "op must be NotifyOp.AtomicAdd or NotifyOp.Set, got 2"),
    ],
)
def test_a_bad_notification(args, kwargs, message):
    refused(message, pld.system.notify, *args, **kwargs)


def test_waiting_reads_and_is_never_dropped():
    made = pld.system.wait(SIGNAL, [scalar("i", DataType.INDEX), 0], 3, cmp=WaitCmp.Eq)
    assert arg_effect(made, 0) is ArgEffect.Read and not decl_of(made).pure
    refused("missing required positional argument 'cmp'", pld.system.wait, SIGNAL, [0, 0], 1)
    refused("requires a 'cmp' kwarg", ir.create_op_call, "pld.system.wait", made.args)
    refused("offset 0 must be an integer or index", pld.system.wait, SIGNAL, [0.5, 0], 1, cmp=WaitCmp.Ge)


def test_testing_a_signal_gives_a_truth_value_and_does_not_wait():
    made = pld.system.test(SIGNAL, [0, 0], 3, cmp=WaitCmp.Ge)
    assert made.type.dtype is DataType.BOOL and not decl_of(made).pure
    refused("offset 0 must be an integer or index", pld.system.test, SIGNAL, [0.5, 0], 1, cmp=WaitCmp.Ge)


NZ_SIGNAL = window(4, 1, dtype=INT32, view=TensorView(layout=TensorLayout.NZ))


@pytest.mark.parametrize(
    ("signal", "offsets", "expected", "cmp", "message"),
    [
        (SIGNAL, [0, 0], 1, WaitCmp.Eq, r"only supports WaitCmp\.Ge"),
        (SIGNAL, [0, 0], -1, WaitCmp.Ge, r"expected must be in \[0, INT32_MAX\], got -1"),
        (SIGNAL, [0, 0], 2**31, WaitCmp.Ge, r"expected must be in \[0, INT32_MAX\]"),
        (SIGNAL, [0, 0], 1.0, WaitCmp.Ge, "expected must be an integer or index scalar"),
        (window(dtype=INT32), [], 1, WaitCmp.Ge, "signal rank must be at least 1"),
        (window(4), [0], 1, WaitCmp.Ge, r"signal dtype must be INT32, got \[4\] fp16"),
        (NZ_SIGNAL, [0, 0], 1, WaitCmp.Ge, "laid out ND or DN, got NZ"),
    ],
)
def test_a_bad_deferred_wait(signal, offsets, expected, cmp, message):
    refused(message, pld.system.defer_wait, signal, offsets, expected, cmp)


def test_a_deferred_wait_takes_bounds_of_the_range():
    for expected in (0, 2**31 - 1, scalar("e", DataType.INDEX)):
        assert isinstance(pld.system.defer_wait(SIGNAL, [0, 0], expected, cmp=WaitCmp.Ge).type, UnknownType)


# Remote loads and stores.


def test_a_remote_load_is_a_tile_of_the_peers_elements():
    made = pld.remote_load(window(64, 32), PEER, [8, 0], [16, 32])
    assert made.type == TileType([16, 32], FP16, None, None, MemorySpace.Vec)
    ragged = pld.remote_load(window(1, 17), PEER, [0, 0], [1, 64], valid_shape=[1, 17])
    assert ragged.type.shape == [1, 64] and ragged.type.valid_shape == [1, 17] and len(ragged.args) == 5
    partial = window(16, 16, view=TensorView(valid_shape=[9, 16]))
    assert pld.remote_load(partial, PEER, [4, 0], [8, 16]).type.valid_shape == [5, 16]
    assert decl_of(made).core is Core.MOVE


def test_a_column_is_column_major_unless_the_window_says_nd():
    column = pld.remote_load(window(8, 1), PEER, [0, 0], [8, 1]).type
    assert column.get_effective_tile_view().blayout is TileLayout.col_major
    stated = window(8, 1, view=TensorView(stride=[1, 8], layout=TensorLayout.ND))
    row = pld.remote_load(stated, PEER, [0, 0], [8, 1]).type
    assert row.get_effective_tile_view().blayout is TileLayout.row_major


def test_passes_may_read_a_block_past_the_end():
    refused(
        "reads past the end of dimension 1.*does not clamp",
        pld.remote_load,
        window(1, 17),
        PEER,
        [0, 0],
        [1, 32],
    )
    made = tile_ops._remote_load_with_physical_tail_padding(window(1, 17), PEER, [0, 0], [1, 32], [1, 32])
    assert made.type.valid_shape == [1, 32] and made.kwargs == {"allow_physical_tail_padding": True}
    refused(
        "reads past the end",
        tile_ops._remote_load_with_physical_tail_padding,
        window(1, 17),
        PEER,
        [0, 0],
        [1, 48],
        [1, 48],
    )
    ragged = window(1, scalar("n", DataType.INDEX))
    assert tile_ops._remote_load_with_physical_tail_padding(ragged, PEER, [0, 0], [1, 32]).type.shape == [1, 32]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((tensor(64), PEER, [0], [32]), "target must be a window-bound DistributedTensor"),
        ((window(64), [0], [0], [32]), "peer must be a scalar"),
        ((window(64), PEER, [0, 0], [32]), r"offsets rank \(2\)"),
        ((window(64), PEER, [0], [32, 1]), r"shape rank \(2\)"),
        ((window(64), PEER, [0], [32], [32, 1]), r"valid_shape rank \(2\)"),
        ((window(64), PEER, [0], [32], [-1]), "valid_shape 0 is provably negative: -1"),
        ((window(64), PEER, [-1], [32]), "provably negative in dimension 0: -1"),
        ((window(64), PEER, [40], [32]), r"offset 40 \+ 32 = 72 of 64"),
        ((window(64), PEER, [0], [scalar()]), "every element of 'shape' to be a compile-time constant"),
        ((window(64), PEER, [0]), "missing required positional argument 'shape'"),
        ((window(64), PEER, [0], [32], [17], 9), "at most 5 positional arguments, got 6"),
        ((window(8, 8, view=TensorView(layout=TensorLayout.MX_A_ZZ)), PEER, [0, 0], [8, 8]), "MX-layout"),
    ],
)
def test_a_bad_remote_load(args, message):
    refused(message, pld.remote_load, *args)


@pytest.mark.parametrize(("op", "make"), [(pld.tile.remote_store, tile), (pld.tensor.remote_store, tensor)])
def test_a_push_lands_in_the_last_two_dimensions(op, make):
    made = op(make(16, 32), window(4, 16, 32), PEER, [3, 0, 0])
    assert isinstance(made.type, UnknownType) and made.kwargs == {}
    assert arg_effect(made, 1) is ArgEffect.Write and decl_of(made).channel is WriteChannel.Dma
    added = op(make(1, 16, 32), window(1, 16, 32), PEER, [0, 0, 0], atomic=AtomicType.Add)
    assert arg_effect(added, 1) is ArgEffect.ReadWrite and added.kwargs == {"atomic": 1}
    assert op(make(16, 32), window(16, 32), PEER, [scalar(), 0]).args[3].elements[1].value == 0


@pytest.mark.parametrize(("op", "make"), [(pld.tile.remote_store, tile), (pld.tensor.remote_store, tensor)])
@pytest.mark.parametrize(
    ("shape", "dtype", "target", "offsets", "atomic", "message"),
    [
        ((8, 8), FP32, window(64, 32), [0, 0], 0, r"same element type \(dtype\)"),
        ((8, 8), FP16, window(64), [0], 0, "target rank must be >= 2"),
        ((8,), FP16, window(64, 32), [0, 0], 0, "src must be at least 2-D"),
        ((2, 8, 8), FP16, window(2, 64, 32), [0, 0, 0], 0, "src leading dimension 0 must be 1"),
        ((8, 8), FP16, window(64, 32), [57, 0], 0, r"target region in dimension 0: offset 57 \+ 8 of 64"),
        ((8, 8), FP16, window(4, 64, 32), [4, 0, 0], 0, "target region in dimension 0"),
        ((8, 8), FP16, window(64, 32), [0, -1], 0, "provably negative in dimension 1"),
        ((8, 8), FP16, window(64, 32), [0], 0, r"offsets rank \(1\)"),
        ((8, 8), FP16, tensor(64, 32), [0, 0], 0, "window-bound DistributedTensor"),
        ((8, 8), FP16, window(64, 32), [0, 0], 7, "atomic must be AtomicType.None_ or AtomicType.Add, got 7"),
        ((8, 8), DataType.UINT8, window(64, 32, dtype=DataType.UINT8), [0, 0], 1, "fp32/bf16/fp16/int32/int16/int8"),
    ],
)
def test_a_bad_push(op, make, shape, dtype, target, offsets, atomic, message):
    refused(message, op, make(*shape, dtype=dtype), target, PEER, offsets, atomic=atomic)


def test_a_push_of_the_other_level_is_named():
    refused("pld.tile.remote_store", pld.tensor.remote_store, tile(8, 8), window(8, 8), PEER, [0, 0])
    refused(
        "src_tile must be a TileType.*\n.*pld.tensor", pld.tile.remote_store, tensor(8, 8), window(8, 8), PEER, [0, 0]
    )
    refused("pld.tensor.put", pld.tensor.remote_store, window(8, 8), window(8, 8), PEER, [0, 0])


def test_the_short_push_takes_either_level():
    assert pld.remote_store(tile(8, 8), window(8, 8), PEER, [0, 0]).op.name == "pld.tile.remote_store"
    made = pld.remote_store(tensor(8, 8), target=window(8, 8), peer=PEER, offsets=[0, 0], atomic=AtomicType.Add)
    assert made.op.name == "pld.tensor.remote_store" and made.kwargs["atomic"] is AtomicType.Add
    refused("at most 4 positional arguments, got 5", pld.remote_store, tile(8, 8), window(8, 8), PEER, [0, 0], 1)
    refused("multiple values for 'src'", pld.remote_store, tile(8, 8), src=tile(8, 8))


# Put and get.


def transfers():
    for level in ("tensor", "tile"):
        for name in ("put", "get"):
            op = getattr(getattr(pld, level), name)
            yield pytest.param(op, [tile(1, 64)] if level == "tile" else [], id=f"{level}.{name}")


@pytest.mark.parametrize(("op", "stage"), list(transfers()))
def test_a_transfer_of_all_or_of_a_part(op, stage):
    dst, src = window(16, 64), window(8, 64)
    part = op(dst, PEER, src, *stage, dst_offsets=[15, 0], src_offsets=[0, 0], shape=[1, 64])
    assert isinstance(part.type, UnknownType) and arg_effect(part, 0) is ArgEffect.Write
    assert [a.elements[0].value for a in part.args[-3:]] == [15, 0, 1]
    assert decl_of(part).core is Core.VECTOR and not decl_of(part).pure
    refused(r"static shape, got \[16, 64\] fp16 and \[8, 64\] fp16", op, dst, PEER, src, *stage)
    refused("shape together, got only shape", op, dst, PEER, src, *stage, shape=[1, 64])


@pytest.mark.parametrize(("op", "stage"), list(transfers()))
@pytest.mark.parametrize(
    ("dst", "peer", "src", "part", "message"),
    [
        (window(16, 64), PEER, window(16, 64, dtype=FP32), None, "same element type"),
        (window(16, 64), PEER, window(16, 64, 4), None, "same rank"),
        (window(16, 0), PEER, window(16, 0), None, "dst dimension 1 must be positive"),
        (window(16, 64), window(4), window(16, 64), None, "peer must be a scalar"),
        (window(16, 64), PEER, window(16, 64), ([0], [0, 0], [1, 64]), r"dst_offsets rank \(1\)"),
        (window(16, 64), PEER, window(16, 64), ([-1, 0], [0, 0], [1, 64]), "dst_offsets dimension 0 must be non-neg"),
        (window(16, 64), PEER, window(16, 64), ([0, 0], [0, 0], [0, 64]), "shape dimension 0 must be positive"),
        (window(16, 64), PEER, window(16, 64), ([15, 0], [0, 0], [2, 64]), "dst subregion dimension 0 exceeds dst"),
        (window(16, 64), PEER, window(16, 64), ([0, 0], [15, 0], [2, 64]), "src subregion dimension 0 exceeds src"),
        (window(16, 64), PEER, window(16, 64), ([scalar(), 0], [0, 0], [17, 64]), "dst subregion dimension 0"),
    ],
)
def test_a_bad_transfer(op, stage, dst, peer, src, part, message):
    names = ("dst_offsets", "src_offsets", "shape")
    refused(message, op, dst, peer, src, *stage, **dict(zip(names, part or ())))


def test_the_near_side_may_be_any_tensor_and_the_far_side_only_a_window():
    assert pld.tensor.put(window(16), PEER, tensor(16)).kwargs == {"atomic": AtomicType.None_}
    assert pld.tensor.get(tensor(16), PEER, window(16)).kwargs == {}
    refused("dst must be a window-bound DistributedTensor", pld.tensor.put, tensor(16), PEER, window(16))
    refused("src must be a window-bound DistributedTensor", pld.tensor.get, window(16), PEER, tensor(16))
    refused("unexpected keyword argument 'atomic'", pld.tensor.get, window(16), PEER, window(16), atomic=0)


def test_a_put_that_adds_reads_what_it_adds_to():
    made = tensor_ops.put(window(16), PEER, tensor(16), AtomicType.Add)
    assert arg_effect(made, 0) is ArgEffect.ReadWrite and made.kwargs["atomic"] is AtomicType.Add
    wide = window(16, dtype=DataType.INT64)
    refused("hardware atomic-add dtypes FP32, BF16", pld.tensor.put, wide, PEER, wide, atomic=AtomicType.Add)
    assert pld.tensor.put(wide, PEER, wide).kwargs["atomic"] == 0


def test_chunks_bound_what_is_not_known():
    n = scalar()
    rows, columns = window(n, 64), window(16, n)
    refused("dynamic leading transfer dim needs a static chunk_rows", pld.tensor.put, rows, PEER, rows)
    refused("dynamic innermost transfer dim needs a static chunk_cols", pld.tensor.get, columns, PEER, columns)
    assert pld.tensor.put(rows, PEER, rows, chunk_rows=4).kwargs["chunk_rows"] == 4
    assert pld.tensor.get(columns, PEER, columns, chunk_cols=32).kwargs == {"chunk_cols": 32}
    other = window(scalar("m"), 64)
    refused("must have the same shape", pld.tensor.put, rows, PEER, other, chunk_rows=4)
    refused("chunk_rows must be non-negative, got -1", pld.tensor.put, window(4), PEER, window(4), chunk_rows=-1)
    refused(
        "'chunk_cols' has incompatible type",
        pld.tensor.put,
        window(4),
        PEER,
        window(4),
        error=TypeError,
        chunk_cols=1.5,
    )
    refused(
        "pipeline=True requires both chunk_rows>0 and chunk_cols>0, got 4 and 0",
        pld.tensor.get,
        window(4, 4),
        PEER,
        window(4, 4),
        chunk_rows=4,
        pipeline=True,
    )


@pytest.mark.parametrize("op", [pld.tile.put, pld.tile.get], ids=["put", "get"])
def test_staging_tiles(op):
    dst = window(16, 64)
    refused("stage must be a 2D VEC staging tile", op, dst, PEER, dst, tile(1, 4, 64))
    refused("stage must be a 2D VEC staging tile", op, dst, PEER, dst, tile(4, 64, space=MemorySpace.Mat))
    refused("stage dtype must match dst dtype", op, dst, PEER, dst, tile(4, 64, dtype=FP32))
    refused("stage2 dtype must match dst dtype", op, dst, PEER, dst, tile(4, 64), tile(4, 64, dtype=FP32))
    refused("ping/pong staging tiles must have identical shape", op, dst, PEER, dst, tile(4, 64), tile(8, 64))
    for shape in ((17, 64), (16, 65)):
        refused("must fit within the transfer", op, dst, PEER, dst, tile(*shape), error=InternalError)
    assert len(op(window(8), PEER, window(8), tile(1, 8)).args) == 4


def test_a_second_stage_leaves_no_gap():
    dst, parts = window(16, 64), ([1, 0], [0, 0], [4, 64])
    one = pld.tile.put(dst, PEER, dst, tile(4, 64, name="a"), *parts)
    two = pld.tile.put(dst, PEER, dst, tile(4, 64, name="a"), tile(4, 64, name="b"), *parts)
    assert (len(one.args), len(two.args)) == (7, 8)
    assert rebind(one)["stage2"] is None and rebind(two)["stage2"] is two.args[4]
    for made in (one, two):
        assert [e.value for e in rebind(made)["shape"].elements] == [4, 64]
        assert isinstance(made.args[-1], MakeTuple) and arg_effect(made, len(made.args) - 1) is ArgEffect.Read
        again = reinfer(made, made.args)
        assert list(again.args) == list(made.args) and again.kwargs == made.kwargs
        assert list(ir.create_op_call(made.op.name, made.args, dict(made.kwargs)).args) == list(made.args)
    assert arg_effect(two, 4) is ArgEffect.Write


# Collectives.


@pytest.mark.parametrize("op", list(ReduceOp))
def test_an_allreduce_is_the_window_it_changes(op):
    data = window(16, dtype=FP32)
    made = pld.tensor.allreduce(data, SIGNAL, op=op)
    assert made.type is data.type and made.kwargs == {"op": op, "core_num": 1}
    assert [arg_effect(made, i) for i in (0, 1)] == [ArgEffect.ReadWrite] * 2
    assert decl_of(made).reuses == "src" and decl_of(made).channel is None


def test_an_allreduce_without_a_signal():
    made = pld.tensor.allreduce(window(16), core_num=4)
    assert len(made.args) == 1 and made.kwargs == {"op": ReduceOp.Sum, "core_num": 4}
    refused("signal cannot be None: leave it out", pld.tensor.allreduce, window(16), None, error=TypeError)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"op": 99}, ValueError, r"op must be ReduceOp\.Sum, Max, Min, or Prod, got 99"),
        ({"op": NotifyOp.Set}, ValueError, r"op must be ReduceOp\.Sum"),
        ({"core_num": True}, TypeError, "compile-time int"),
        ({"core_num": 1.5}, TypeError, "compile-time int"),
        ({"core_num": 0}, ValueError, "core_num must be positive, got 0"),
        ({"mode": 1}, TypeError, "'mode' has incompatible type int"),
    ],
)
def test_a_bad_keyword_of_an_allreduce(kwargs, error, message):
    refused(message, pld.tensor.allreduce, window(16), SIGNAL, error=error, **kwargs)


FLOATS, BYTES = window(4, 1, name="f"), window(4, 16, dtype=DataType.BF16)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pld.tensor.allreduce(window(16), FLOATS), "signal must have INT32 element type"),
        (lambda: pld.tensor.allreduce(BYTES, SIGNAL), "target dtype must be FP16 or FP32, got bfloat16"),
        (lambda: pld.tensor.allreduce(tensor(16), SIGNAL), "src must be a window-bound DistributedTensor"),
        (lambda: pld.tensor.barrier(FLOATS), "signal must have INT32 element type"),
        (lambda: pld.tensor.broadcast(window(4, 8), SIGNAL), "missing required keyword argument 'root'"),
        (lambda: pld.tensor.broadcast(window(4, 8), SIGNAL, root=-1), "root must be a rank, at least 0, got -1"),
        (
            lambda: pld.tensor.reduce_scatter(window(4, 8), SIGNAL, op=ReduceOp.Max),
            "ReduceOp.Sum only, got ReduceOp.Max",
        ),
        (lambda: pld.tensor.reduce_scatter(BYTES, SIGNAL), "target dtype must be FP16 or FP32"),
        (lambda: pld.tensor.allgather(tensor(1, 8), window(4, 9), SIGNAL), r"local_data \[1, 8\] fp16 does not fit"),
        (lambda: pld.tensor.allgather(tensor(8), window(4, 8), SIGNAL), "does not fit target"),
        (lambda: pld.tensor.allgather(tensor(1, 8, dtype=FP32), window(4, 8), SIGNAL), "same element type"),
        (lambda: pld.tensor.all_to_all(tensor(3, 8), window(4, 8), SIGNAL), r"input \[3, 8\] fp16 does not fit"),
    ],
)
def test_a_bad_collective(call, message):
    refused(message, call)


def test_what_collectives_do_to_their_arguments():
    data, rows = window(4, 8), tensor(1, 8)
    gathered = pld.tensor.allgather(rows, data, SIGNAL)
    exchanged = pld.tensor.all_to_all(tensor(4, 8), data, SIGNAL)
    read, write, both = ArgEffect.Read, ArgEffect.Write, ArgEffect.ReadWrite
    for made in (gathered, exchanged):
        assert made.type is data.type and [arg_effect(made, i) for i in range(3)] == [read, write, both]
    assert pld.tensor.barrier(SIGNAL).type is SIGNAL.type
    assert pld.tensor.broadcast(data, SIGNAL, root=0).kwargs == {"root": 0}
    assert pld.tensor.reduce_scatter(data, SIGNAL).type is data.type
    assert pld.tensor.allgather(tile(1, 8), data, SIGNAL).type is data.type


def exchange(data=(8, 64), target=(8, 64), signal=(2, 1), send=(2, 1), recv=(2, 1), counts=INT32, where=tensor):
    return pld.tensor.all_to_all_v(
        where(*data),
        window(*target),
        window(*signal, dtype=INT32),
        where(*send, dtype=counts),
        window(*recv, dtype=INT32),
    )


def test_a_ragged_exchange():
    for made in (exchange(), exchange(send=(2,)), exchange(where=window)):
        assert made.type == DistributedTensorType([8, 64], FP16)
    effects = [arg_effect(exchange(), i) for i in range(5)]
    assert effects == [ArgEffect.Read, ArgEffect.Write, ArgEffect.ReadWrite, ArgEffect.Read, ArgEffect.Write]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"signal": (2,)}, "signal must be 2D"),
        ({"recv": (2, 8)}, "recv_counts second dimension must be 1"),
        ({"recv": (3, 1)}, "recv_counts dim 0 must be the rank count 2"),
        ({"send": (3, 1)}, "send_counts dim 0 must be the rank count 2"),
        ({"send": (2, 1, 1)}, "send_counts must be 1D"),
        ({"send": (2, 2)}, "send_counts must be 1D"),
        ({"counts": FP16}, "send_counts must have INT32 element type"),
        ({"data": (9, 64), "target": (9, 64)}, "rank count 2 must divide target dim 0, 9"),
        ({"data": (8, 32)}, "does not fit target"),
        ({"data": (8, 4, 16), "target": (8, 4, 16)}, "target must be 2D"),
    ],
)
def test_a_bad_ragged_exchange(change, message):
    refused(message, exchange, **change)


def test_a_ragged_exchange_needs_all_five():
    args = exchange().args[:4]
    refused("requires 5 args, missing required positional argument 'recv_counts'", pld.tensor.all_to_all_v, *args)


# What only passes write.


def test_internal_operators_are_not_for_programs():
    data = window(16)
    refused("internal-only", ir.create_op_call, "builtin.tensor.allreduce", [data, SIGNAL], {"op": 0, "dtype": FP16})
    assert get_decl("builtin.tensor.broadcast").channel is None
    assert ir.get_op("dist.submit_worker").name == "dist.submit_worker"


def test_passes_write_internal_operators():
    from pypto.ops.registry import call

    data = window(16)
    made = call("builtin.tensor.allreduce", data, SIGNAL, op=ReduceOp.Max, dtype=FP16)
    assert made.kwargs == {"op": ReduceOp.Max, "dtype": FP16, "core_num": 1}
    refused("states dtype fp32, but src holds fp16", call, "builtin.tensor.allreduce", data, SIGNAL, dtype=FP32)


# As Python.


def test_functions_document_themselves():
    assert "remote_load(target, peer, offsets, shape" in pld.remote_load.__doc__
    assert {"rank", "remote_store", "tensor"} <= set(dir(pld))
    with pytest.raises(AttributeError, match="pld has no 'put'") as info:
        pld.put  # noqa: B018
    assert info.value.hint == "write its level too: pld.tensor.put"
    with pytest.raises(AttributeError, match=r"no operator pld\.tensor\.bcast; did you mean pld\.tensor\.broadcast"):
        pld.tensor.bcast  # noqa: B018


def test_results_on_wrapped_windows_are_wrapped():
    data = pld.DistributedTensor(expr=window(16))
    made = pld.tensor.allreduce(data)
    assert type(made) is pld.DistributedTensor and made.unwrap().op.name == "pld.tensor.allreduce"
