"""Result types of tensor, array and system operators, and what is refused."""

import pytest
from operands import index, refused, shape, tensor, valid, values

from pypto.dtypes import DataType
from pypto.ir.enums import PadValue, TensorLayout
from pypto.ir.expr import Min, Var, index_const
from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TupleType,
)
from pypto.ops.functions import array as A, prefetch as P, system as S, tensor as T

D = DataType
ND, DN = TensorLayout.ND, TensorLayout.DN


# Element by element.


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([4, 8], [8], [4, 8]),
        ([4, 1], [8], [4, 8]),
        ([1, 8], [4, 8], [4, 8]),
        ([2, 1, 8], [4, 1], [2, 4, 8]),
        ([], [3], [3]),
    ],
)
def test_shapes_broadcast_from_the_right(left, right, expected):
    assert shape(T.add(tensor(*left), tensor(*right))) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(D.INT32, D.FP32, D.FP32), (D.INT32, D.INT64, D.INT64), (D.UINT32, D.INT32, D.INT32), (D.FP16, D.FP16, D.FP16)],
)
def test_dtypes_promote(left, right, expected):
    assert T.mul(tensor(8, dtype=left), tensor(8, dtype=right)).type.dtype is expected


def test_shapes_that_do_not_broadcast_are_refused():
    refused(r"\[4, 8\] with \[3, 8\]", T.add, tensor(4, 8), tensor(3, 8))
    refused(r"\[M, 8\] with \[N, 8\]", T.add, tensor(index("M"), 8), tensor(index("N"), 8))
    refused("first argument to be a TensorType", T.add, Var("t", TileType([8], D.FP32)), tensor(8))


def test_a_shared_valid_region_is_kept_and_others_are_not():
    assert valid(T.add(tensor(32, 64, valid=[28, 60]), tensor(32, 64, valid=[28, 60]))) == [28, 60]
    assert T.add(tensor(32, 64, valid=[28, 60]), tensor(32, 64, valid=[27, 60])).type.tensor_view is None
    assert T.add(tensor(32, 64, valid=[28, 60]), tensor(32, 1)).type.tensor_view is None
    window = Var("w", DistributedTensorType([8, 8], D.FP32, None, TensorView(valid_shape=[4, 8])))
    assert type(T.adds(window, 1).type) is TensorType and T.adds(window, 1).type.tensor_view is None


def test_a_fresh_result_keeps_nothing_of_the_view():
    source = tensor(64, 128, valid=[64, 40], stride=[1, 64], layout=DN, pad=PadValue.zero)
    view = T.exp(source).type.tensor_view
    assert values(view.valid_shape) == [64, 40]
    assert view.stride == [] and view.layout is ND and view.pad is PadValue.null


@pytest.mark.parametrize("name", ["exp", "sqrt", "rsqrt", "recip"])
def test_functions_with_fractions_give_floating_point(name):
    assert getattr(T, name)(tensor(8, dtype=D.INT32)).type.dtype is D.FP32
    assert getattr(T, name)(tensor(8, dtype=D.BF16)).type.dtype is D.BF16


def test_a_fractional_literal_makes_integers_floating_point():
    assert T.adds(tensor(8, dtype=D.INT32), 2.5).type.dtype is D.FP32
    assert T.adds(tensor(8, dtype=D.INT32), 2).type.dtype is D.INT32


def test_maximum_takes_a_scalar():
    assert T.maximum(tensor(8, 8), 0).args[1].type.dtype is D.FP32
    assert T.maximum(tensor(8, 8), tensor(8)).type.dtype is D.FP32


def test_bitwise_operands_are_integers_of_one_shape():
    assert T.and_(tensor(8, dtype=D.INT16), tensor(8, dtype=D.INT32)).type.dtype is D.INT32
    assert T.shl(tensor(8, dtype=D.INT16), tensor(8, dtype=D.INT32)).type.dtype is D.INT16
    refused("tensor.and requires an integer tensor dtype", T.and_, tensor(8), tensor(8))
    refused("both operands to have the same shape", T.or_, tensor(8, dtype=D.INT32), tensor(1, dtype=D.INT32))
    refused("non-negative shift count, got -1", T.shls, tensor(8, dtype=D.INT32), -1)
    refused("scalar to be an integer", T.ands, tensor(8, dtype=D.INT32), Var("f", ScalarType(D.FP32)))


# Reductions, expansions, products.


def test_reductions():
    assert shape(T.row_sum(tensor(64, 128, valid=[40, 128]))) == [64, 1]
    assert valid(T.row_sum(tensor(64, 128, valid=[40, 128]))) == [40, 1]
    assert valid(T.col_max(tensor(64, 128, valid=[64, 40]))) == [1, 40]
    assert T.row_argmax(tensor(8, 8)).type.dtype is D.INT32
    assert T.row_sum(tensor(64), keep_dim=False).type is ScalarType(D.FP32)
    refused("valid extent on axis 1 is 0", T.row_max, tensor(8, 8, valid=[8, 0]))
    refused("cannot reduce axis -2", T.col_sum, tensor(8))


def test_expansions():
    assert T.row_expand_mul(tensor(8, 16, dtype=D.FP16), tensor(8, 1)).type.dtype is D.FP32
    assert shape(T.col_expand_sub(tensor(8, 16), tensor(1, 16))) == [8, 16]
    assert shape(T.expand_clone(tensor(1, 4, 8), tensor(2, 4, 8))) == [2, 4, 8]
    refused(r"row_vec \[M, 1\]", T.row_expand_sub, tensor(8, 16), tensor(1, 16))
    refused("same dtype", T.row_expand_add, tensor(8, 16), tensor(8, 1, dtype=D.FP16))


@pytest.mark.parametrize(
    ("left", "right", "flags", "expected"),
    [
        ([4, 8], [8, 16], {}, [4, 16]),
        ([8, 4], [8, 16], {"a_trans": True}, [4, 16]),
        ([4, 8], [16, 8], {"b_trans": True}, [4, 16]),
        ([64, 128], [128], {}, [64]),
        ([128], [128, 64], {}, [64]),
        ([64], [64], {}, []),
        ([1, 16, 32], [4, 32, 8], {}, [4, 16, 8]),
    ],
)
def test_products(left, right, flags, expected):
    assert shape(T.matmul(tensor(*left), tensor(*right), **flags)) == expected


def test_a_product_has_the_dtype_asked_for_and_the_operands_region():
    made = T.matmul(tensor(8, 8, dtype=D.FP16, valid=[5, 8]), tensor(8, 8, dtype=D.FP16), out_dtype=D.FP32)
    assert made.type.dtype is D.FP32 and valid(made) == [5, 8]
    assert T.matmul(tensor(8, 8, dtype=D.FP16), tensor(8, 8, dtype=D.FP16)).type.dtype is D.FP16


def test_products_that_do_not_fit_are_refused():
    text = refused("lhs K=128 and rhs K=64", T.matmul, tensor(128, 64), tensor(64), a_trans=True)
    assert "a_trans and b_trans exchange" in text
    refused("b_trans does not apply to a 1D rhs", T.matmul, tensor(64, 128), tensor(128), b_trans=True)
    refused("one dtype", T.matmul, tensor(8, 8), tensor(8, 8, dtype=D.INT8))
    refused("acc batch dim", T.matmul_acc, tensor(3, 16, 64), tensor(2, 16, 32), tensor(1, 32, 64))
    refused("accumulator dtype fp32", T.matmul_acc, tensor(8, 8, dtype=D.FP16), tensor(8, 8), tensor(8, 8))


# Windows and views.


def test_slices():
    assert valid(T.slice(tensor(64, 64, valid=[40, 50]), [32, 32], [24, 32])) == [16, 18]
    assert valid(T.slice(tensor(64, 64, valid=[16, 64]), [16, 64], [32, 0])) == [0, 64]
    assert valid(T.slice(tensor(96, 64), [64, 64], [64, 0], clamp=True)) == [32, 64]
    assert shape(T.slice(tensor(64, 64), [1, 64], [index(), 0], drop_dims=[0])) == [64]
    assert T.slice(tensor(64, 64), [16, 64], [index(), 0]).type.tensor_view is None
    assert isinstance(T.slice(tensor(64, 64, valid=[40, 64]), [16, 64], [index(), 0]).type.valid_shape[0], Min)
    assert shape(T.slice(tensor(4, 128, 64), [16, 64], [0, 0, 0])) == [16, 64]


def test_a_padded_window_needs_only_its_declared_part_inside():
    assert valid(T.slice(tensor(96, 64), [64, 64], [64, 0], valid_shape=[32, 64])) == [32, 64]
    refused("reads past the end of dimension 0", T.slice, tensor(96, 64), [64, 64], [64, 0], valid_shape=[40, 64])
    refused("reads past the end of dimension 0", T.slice, tensor(64, 64), [32, 64], [48, 0])
    refused("provably negative", T.slice, tensor(64, 64), [16, 64], [index_const(-8), 0])
    refused("cannot erase every dimension", T.slice, tensor(4, 4), [1, 1], [0, 0], drop_dims=[0, 1])
    refused("out of range", T.slice, tensor(4, 4), [1, 4], [0, 0], drop_dims=[2])


def test_assembling():
    assert valid(T.assemble(tensor(64, 128, valid=[20, 128]), tensor(16, 128, valid=[12, 128]), [20, 0])) == [32, 128]
    assert valid(T.assemble(tensor(64, 128, valid=[0, 128]), tensor(12, 128), [0, 0])) == [12, 128]
    assert valid(T.assemble(tensor(64, 128, valid=[4, 8]), tensor(32, 128), [0, 0])) == [32, 128]
    whole = tensor(64, 128)
    assert T.assemble(whole, tensor(48, 128, valid=[8, 128]), [56, 0]).type is whole.type
    k, m = index("k"), index("m")
    grown = T.assemble(tensor(64, 128, valid=[k, 128]), tensor(32, 128, valid=[m, 128]), [k, 0])
    assert isinstance(grown.type.valid_shape[0], Min)


def test_writes_that_leave_no_rectangle_are_refused():
    target = tensor(64, 256, valid=[20, 128])
    refused("leaves a gap in dimension 0", T.assemble, target, tensor(16, 128), [24, 0])
    refused("dimensions 0 and 1 at once", T.assemble, tensor(64, 256, valid=[20, 64]), tensor(12, 80), [20, 0])
    refused("must provably equal the target valid extent 128", T.assemble, target, tensor(12, 64), [20, 0])
    refused("must span dimension 1 from the origin", T.assemble, target, tensor(12, 64), [20, 8])
    refused("does not start at the origin", T.assemble, tensor(64, 64, valid=[0, 64]), tensor(8, 64), [8, 0])
    refused("leaves a gap", T.assemble, tensor(64, 64, valid=[index("k"), 64]), tensor(8, 64), [index("j"), 0])
    refused("same dtype", T.assemble, tensor(8, 8), tensor(8, 8, dtype=D.FP16), [0, 0])


def test_transposing_swaps_strides_and_the_layout():
    view = T.transpose(tensor(8, 16), 0, 1).type.tensor_view
    assert values(view.stride) == [1, 16] and view.layout is DN
    outer = T.transpose(tensor(2, 3, 4), 0, 1).type.tensor_view
    assert values(outer.stride) == [4, 12, 1] and outer.layout is ND
    twice = T.transpose(Var("y", T.transpose(tensor(8, 16), 0, 1).type), 0, 1)
    assert twice.type.tensor_view is None and shape(twice) == [8, 16]
    n = index("N")
    assert T.transpose(tensor(index("M"), n), 0, 1).type.tensor_view.stride[1] is n


def test_viewing_another_layout_exchanges_the_last_two_dimensions():
    made = T.view(tensor(8, 4), layout=DN)
    assert shape(made) == [4, 8] and values(made.type.tensor_view.stride) == [1, 4]
    strided = T.view(tensor(4, 8, stride=[16, 1]), layout=DN)
    assert values(strided.type.tensor_view.stride) == [1, 16]
    assert values(T.view(tensor(2, 16), [4, 8]).type.tensor_view.stride) == [8, 1]
    refused("packed source", T.view, tensor(4, 8, stride=[16, 1]), [32])
    refused("NZ layout is not allowed", T.view, tensor(8, 4), layout=TensorLayout.NZ)
    refused("not canonical", T.view, tensor(4, 8, stride=[16, 2]), layout=DN)
    refused("partial valid_shape", T.view, tensor(4, 8, valid=[3, 8]), [32])
    refused("leading-dimension collapse", T.view, tensor(4, 8, valid=[3, 8]), [2, 16], [1, 16])


def test_reshapes_keep_the_region_or_are_refused():
    assert valid(T.reshape(tensor(8, 16, valid=[5, 16]), [128])) == [80]
    rows = index("rows")
    assert T.reshape(tensor(8, 16, valid=[rows, 16]), [8, 4, 4]).type.valid_shape[0] is rows
    assert valid(T.reshape(tensor(8, 16, valid=[5, 16]), [16, 8], valid_shape=[4, 8])) == [4, 8]
    partial = tensor(8, 16, valid=[5, 16])
    refused("not provably within the source-derived extent 10", T.reshape, partial, [16, 8], [12, 8])
    refused("must be provably >= 0", T.reshape, partial, [16, 8], [-1, 8])
    refused("matching row size", T.reshape, tensor(8, 16, valid=[rows, 16]), [32, 4])


def test_views_of_other_elements():
    assert shape(T.reinterpret_view(tensor(8, 16), D.INT16)) == [8, 32]
    assert shape(T.reinterpret_view(tensor(8, 16, layout=DN), D.INT16)) == [16, 16]
    refused("only supports packed tensors", T.reinterpret_view, tensor(8, 16, stride=[32, 1]), D.INT16)
    refused("does not support target dtype", T.reinterpret_view, tensor(8, 16), D.INT4)


def test_single_elements_and_sizes():
    assert T.dim(tensor(4, 8), -1).type is ScalarType(D.INDEX)
    assert T.read(tensor(4, 8, dtype=D.BF16), [3, 7]).type is ScalarType(D.BF16)
    refused("index 4 is outside dimension 0", T.read, tensor(4, 8), [4, 0])
    refused("axis to be a constant", T.dim, tensor(4, 8), 2)


def test_created_tensors():
    assert T.create([4, 8], D.FP32).type == TensorType([4, 8], D.FP32)
    assert T.create([4, 8], D.FP32, layout=DN).type.layout is DN
    refused("must be finite", T.create, [4], D.FP32, init_value=float("nan"))
    refused("exactly-representable", T.create, [4], D.INT64, init_value=2**53 + 1)
    assert valid(T.fillpad(tensor(8, 8, valid=[8, 4]), pad_value=PadValue.min)) == [8, 8]


# Gathers, scatters, sorts.


def test_indices_choose_elements():
    index_of = tensor(4, 3, dtype=D.INT32)
    assert shape(T.gather(tensor(4, 16), index=index_of)) == [4, 3]
    found = T.gather(tensor(32, 64), kvalue=1.0, cmp_mode="gt", out_cols=8).type
    assert isinstance(found, TupleType) and [values(t.shape) for t in found.types] == [[32, 8], [1, 32]]
    refused("non-gather axes", T.gather, tensor(5, 16), index=index_of)
    refused("supports dim=-1", T.gather, tensor(4, 16), dim=0, index=index_of)
    refused("cmp_mode must be one of eq", T.gather, tensor(4, 16), kvalue=1.0, cmp_mode="bogus", out_cols=8)
    assert shape(T.paged_gather(tensor(256, 128), tensor(16, dtype=D.INT32), tensor(8, dtype=D.INT32), block_size=128,
                                size=128, max_indices=16, is_trans=True)) == [128, 16]  # fmt: skip


def test_sorting():
    assert shape(T.sort32(tensor(8, 32), tensor(8, 32, dtype=D.UINT32))) == [8, 64]
    refused("FP16 or FP32", T.sort32, tensor(8, 32, dtype=D.INT32), tensor(8, 32, dtype=D.INT32))


# Arrays, system, prefetch.


def test_arrays():
    made = A.create(8, D.INT32)
    assert made.type == ArrayType(D.INT32, 8)
    assert A.get_element(made, 3).type is ScalarType(D.INT32)
    assert A.update_element(made, 0, 42).args[2].type.dtype is D.INT32
    refused("value dtype int64 must match array dtype int32", A.update_element, made, 0, Var("v", ScalarType(D.INT64)))
    refused("index 8 is outside an array of 8", A.get_element, made, 8)
    refused("compile-time ConstInt", A.create, index("n"), D.INT32)
    refused("element dtype must be an integer", A.create, 4, D.FP32)


def test_system_operators():
    assert S.task_invalid().type is ScalarType(D.TASK_ID)
    assert S.available_aiv_count().type is ScalarType(D.INT32)
    refused("requires core_type to be one of aiv_only", S.syncall, core_type="all")
    refused("mode soft needs gm_workspace", S.syncall, mode="soft")
    soft = {"mode": "soft", "gm_workspace": tensor(16, dtype=D.INT32)}
    refused("at least 16 INT32", S.syncall, mode="soft", gm_workspace=tensor(16, dtype=D.FP32), used_cores=0)
    refused("non-negative INT32 range, got -1", S.syncall, used_cores=-1, **soft)
    refused("mode soft needs explicit used_cores: how many cores, or 0 for all launched", S.syncall, **soft)
    refused("mode hard takes no used_cores", S.syncall, used_cores=4)
    assert values(S.syncall(used_cores=4, **soft).args[1:]) == [4]
    refused(r"event_id in \[0, 13\]", S.sync_wait, 14, pipe=0)
    sizes = {"dir_mask": 1, "slot_size": 512}
    refused("local_slot_num <= slot_num", S.aic_initialize_pipe, slot_num=2, local_slot_num=4, **sizes)


def test_prefetches_take_a_flat_named_source():
    context = P.make_context()
    assert isinstance(context.type, PrefetchAsyncContextType)
    assert isinstance(P.async_prefetch(tensor(1, 256), context).type, AsyncEventType)
    refused("flat contiguous logical 1D", P.async_prefetch, tensor(4, 32), context)
    refused("ctx to be a PrefetchAsyncContext", P.async_prefetch, tensor(32), tensor(32))
