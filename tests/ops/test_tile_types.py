"""Result types of tile operators: shape, dtype, valid region, layout, memory; and what is refused."""

import pytest
from operands import index, refused, shape, tensor, tile, valid, values

from pypto.dtypes import DataType
from pypto.ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from pypto.ir.expr import Min, Var, index_const
from pypto.ir.types import PtrType, ScalarType
from pypto.ops.functions import tile as T

D = DataType
M = MemorySpace
ROW, COL, FLAT = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box


def layout(call):
    view = call.type.get_effective_tile_view()
    return view.blayout, view.slayout, view.fractal


# Loads and stores.


def test_a_load_is_valid_where_it_read():
    assert valid(T.load(tensor(64, 64), [8, 0], [16, 64])) == [16, 64]
    assert valid(T.load(tensor(100, 64), [64, 0], [64, 64], valid_shape=[36, 64])) == [36, 64]
    assert valid(T.load(tensor(100, 64), [64, 0], [64, 64], clamp=True)) == [36, 64]
    assert valid(T.load(tensor(64, 64, valid=[40, 64]), [0, 0], [64, 64])) == [40, 64]


def test_a_load_keeps_a_runtime_extent():
    rows = index("rows")
    assert T.load(tensor(64, 64), [0, 0], [64, 64], valid_shape=[rows, 64]).type.valid_shape[0] is rows
    symbolic = T.load(tensor(index("M"), 64), [64, 0], [64, 64], clamp=True).type.valid_shape[0]
    assert isinstance(symbolic, Min)


def test_a_load_records_what_it_reads():
    assert values(T.load(tensor(64, 64), [0, 0], [16, 64]).args[3].elements) == [16, 64]


def test_loads_that_leave_the_tensor_are_refused():
    text = refused("reads past the end of dimension 0: offset 64 [+] 64 = 128 of 100", T.load,
                   tensor(100, 64), [64, 0], [64, 64])  # fmt: skip
    assert "read 36 there with valid_shape, or pass clamp=True" in text
    refused("provably negative in dimension 1", T.load, tensor(64, 64), [0, -1], [16, 16])
    refused("exceeds the window extent in dimension 0", T.load, tensor(256, 64), [0, 0], [64, 64], [128, 64])
    refused("must be positive", T.load, tensor(64, 64), [0, 0], [0, 64])
    refused("compile-time constant", T.slice, tile(64, 64), [index(), 64], [0, 0])
    refused("one offset a dimension", T.load, tensor(64, 64), [0], [16, 16])
    refused("same rank as the window", T.load, tensor(64, 64), [0, 0], [16, 16], [16])
    window = ([0, 0], [16, 16])
    refused("cannot load into Left.*\n  hint: .*pl.move", T.load, tensor(64, 64), *window, target_memory=M.Left)
    scales = tensor(64, 64, layout=TensorLayout.MX_A_ZZ)
    refused("requires explicit target_memory=MemorySpace.Mat", T.load, scales, *window)


def test_a_window_of_another_rank_is_taken_as_stated():
    assert valid(T.load(tensor(4, 128, 64), [0, 0, 0], [16, 64])) == [16, 64]


def test_a_store_gives_the_tensor_with_the_union_written():
    out = tensor(64, 128, valid=[20, 128])
    assert valid(T.store(tile(16, 128, valid=[12, 128]), [20, 0], out)) == [32, 128]
    whole = tensor(64, 128)
    assert T.store(tile(16, 128), [0, 0], whole).type is whole.type
    assert T.store(tile(64, 128, valid=[8, 128]), [56, 0], whole).type is whole.type


def test_stores_that_leave_the_tensor_or_a_hole_are_refused():
    refused("writes past the end of dimension 0.*no layout conversion", T.store, tile(16, 8), [0, 0], tensor(8, 16))
    refused("leaves a gap in dimension 0.*\n  hint: start it at 20", T.store, tile(16, 128), [24, 0],
            tensor(64, 128, valid=[20, 128]))  # fmt: skip
    refused("same dtype.*\n  hint: cast one", T.store, tile(8, 8, space=M.Vec), [0, 0], tensor(8, 8, dtype=D.FP16))
    refused("third argument to be a TensorType", T.store, tile(8, 8), [0, 0], tile(8, 8))


def test_an_accumulator_converts_on_its_way_out():
    out = tensor(16, 16, dtype=D.FP16)
    assert T.store(tile(16, 16, space=M.Acc), [0, 0], out).type is out.type


# Allocation and moves.


def test_a_column_is_column_major_without_being_told():
    assert layout(T.create([32, 1], D.FP32, M.Vec)) == (COL, FLAT, 512)
    assert layout(T.create([1, 32], D.FP32, M.Vec)) == (ROW, FLAT, 512)
    assert T.create([32, 1], D.FP32, M.Vec).type.tile_view is None


def test_create_in_l1_may_state_a_layout():
    assert layout(T.create([16, 128], D.BF16, M.Mat)) == (COL, ROW, 512)
    assert layout(T.create([16, 128], D.BF16, M.Mat, transpose=True)) == (ROW, COL, 512)
    assert layout(T.create([16, 128], D.BF16, M.Mat, flat_layout=True)) == (ROW, FLAT, 512)
    refused("2D tile with target_memory=Mat, got .* in Vec", T.create, [16, 16], D.FP32, M.Vec, transpose=True)
    refused("does not support target_memory=LeftScale", T.create, [16, 16], D.FP8E8M0, M.LeftScale)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (M.Mat, (COL, ROW, 512)),
        (M.Left, (COL, ROW, 512)),
        (M.Right, (ROW, COL, 512)),
        (M.Acc, (COL, ROW, 1024)),
        (M.Vec, (ROW, FLAT, 512)),
    ],
)
def test_a_move_takes_the_destinations_layout(space, expected):
    for source in (tile(64, 64), tile(64, 64, valid=[64, 48])):
        made = T.move(source, target_memory=space)
        assert layout(made) == expected and made.type.memory_space is space
        assert valid(made) == values(source.type.valid_shape)


def test_a_move_within_flat_memory_keeps_the_layout_unless_told():
    source = tile(64, 64, blayout=COL)
    assert layout(T.move(source, target_memory=M.Vec)) == (COL, FLAT, 512)
    assert layout(T.move(source, target_memory=M.Vec, blayout=ROW)) == (ROW, FLAT, 512)
    refused("cannot move to DDR", T.move, source, target_memory=M.DDR)


def test_an_extraction_is_packed_where_its_operand_is_partial():
    partial = tile(384, 32, dtype=D.INT8, valid=[384, 16], space=M.Mat)
    made = T.extract(partial, 0, 0, [192, 32], target_memory=M.Right)
    assert valid(made) == [192, 16] and made.type.tile_view.compact is CompactMode.normal
    assert layout(T.extract(tile(64, 64), 0, 0, [16, 16], target_memory=M.Left)) == (ROW, ROW, 512)
    refused("exceeds src row extent: 60 [+] 16 > 64", T.extract, tile(64, 64), 60, 0, [16, 16])
    refused("index_col must be >= 0", T.extract, tile(64, 64), 0, -1, [16, 16])
    refused("compile-time ConstInt", T.extract, tile(64, 64), 0, 0, [index(), 16])
    refused("INT64/UINT64/INDEX", T.extract, tile(64, 64), Var("f", ScalarType(D.FP32)), 0, [16, 16])


def test_alloc_is_an_address():
    made = T.alloc(M.Vec, 4096)
    assert isinstance(made.type, PtrType) and made.kwargs == {"memory_space": M.Vec, "size": 4096}


# Element by element.


@pytest.mark.parametrize("name", ["neg", "abs", "exp", "sqrt", "relu", "log", "recip", "rsqrt"])
def test_one_operand_keeps_the_valid_region_and_nothing_of_the_view(name):
    source = tile(8, 16, valid=[8, 4], pad=PadValue.zero)
    made = getattr(T, name)(source)
    assert valid(made) == [8, 4] and made.type.tile_view.pad is PadValue.null
    assert made.type.memory_space is M.Vec and getattr(T, name)(tile(8, 16)).type.tile_view is None


@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum", "fmod"])
def test_two_operands_are_valid_where_both_are(name):
    apply = getattr(T, name)
    assert valid(apply(tile(8, 16, valid=[6, 16]), tile(8, 16, valid=[8, 4]))) == [6, 4]
    rows = index("rows")
    assert apply(tile(8, 16, valid=[rows, 16]), tile(8, 16)).type.valid_shape[0] is rows
    assert isinstance(apply(tile(8, 16, valid=[rows, 16]), tile(8, 16, valid=[5, 16])).type.valid_shape[0], Min)


def test_operands_of_another_shape_or_dtype_are_refused_with_a_way_out():
    text = refused(r"same physical shape .* got \[16, 16\] and \[32, 16\]", T.add, tile(16, 16), tile(32, 16))
    assert "row_expand_" in text
    refused(r"\[M, 16\].*\[N, 16\]", T.add, tile(index("M"), 16), tile(index("N"), 16))
    refused("same dtype.*\n  hint: cast one: pl.cast.rhs, pl.FP32.", T.mul, tile(8, 8), tile(8, 8, dtype=D.FP16))
    refused("same valid_shape", T.div, tile(8, 16, valid=[7, 16]), tile(8, 16))
    refused("INT16, INT32, FP16, FP32", T.div, tile(8, 8, dtype=D.INT8), tile(8, 8, dtype=D.INT8))
    refused("high_precision only for FP16 or FP32", T.div, tile(8, 8, dtype=D.INT32), tile(8, 8, dtype=D.INT32),
            high_precision=True)  # fmt: skip
    refused("requires scalar dtype in", T.subs, tile(8, 8), Var("s", ScalarType(D.UINT32)))


def test_a_boxed_operand_gives_a_flat_result():
    assert layout(T.exp(tile(16, 16, space=M.Acc))) == (ROW, FLAT, 512)
    assert layout(T.exp(tile(16, 16, blayout=COL))) == (COL, FLAT, 512)


def test_casts():
    assert T.cast(tile(8, 16, valid=[8, 4]), D.FP16).type.dtype is D.FP16
    assert valid(T.cast(tile(8, 16, valid=[8, 4]), D.FP16)) == [8, 4]
    refused("same-dtype cast is not a valid operation", T.cast, tile(8, 8), D.FP32)


def test_comparisons_make_byte_masks():
    assert T.cmps(tile(8, 32), 0.0, cmp_type=4).type.dtype is D.UINT8
    refused(r"cmp_type in \[0, 5\] \(0 eq, 1 ne", T.cmp, tile(8, 8), tile(8, 8), cmp_type=6)


@pytest.mark.parametrize(("number", "stored"), [(0x8007, -32761), (3, 3)])
def test_an_unsigned_selection_takes_the_signed_bits(number, stored):
    made = T.sels(tile(16, 32, dtype=D.UINT8), tile(16, 16, dtype=D.UINT16), tile(1, 32, dtype=D.UINT8), number)
    assert made.args[3].value == stored and made.args[3].type.dtype is D.INT16


def test_a_mask_must_cover_its_tile():
    scratch = tile(1, 32, dtype=D.UINT8)
    refused("each mask carrier row", T.sels, tile(8, 32, dtype=D.UINT8), tile(8, 257), scratch, 1.0)
    refused("mask carrier rows", T.sels, tile(7, 64, dtype=D.UINT8), tile(8, 16), scratch, 1.0)
    refused("non-integral -1.5", T.sels, tile(8, 32, dtype=D.UINT8), tile(8, 16, dtype=D.INT32), scratch, -1.5)


# Reductions and expansions.


@pytest.mark.parametrize("name", ["row_sum", "row_max", "row_min", "row_prod"])
def test_a_row_reduction_is_a_column(name):
    made = getattr(T, name)(tile(8, 32, valid=[4, 16]), tile(8, 32))
    assert shape(made) == [8, 1] and valid(made) == [4, 1] and layout(made) == (COL, FLAT, 512)
    ragged = getattr(T, name)(tile(8, 32, valid=[8, index()]), tile(8, 64))
    assert valid(ragged) == [8, 1] and ragged.type.tile_view is None


@pytest.mark.parametrize("name", ["col_sum", "col_max", "col_min", "col_prod"])
def test_a_column_reduction_is_a_row(name):
    made = getattr(T, name)(tile(8, 32, valid=[4, 16]))
    assert shape(made) == [1, 32] and valid(made) == [1, 16]
    assert shape(getattr(T, name)(tile(4, 8, 32))) == [4, 1, 32]


def test_argument_reductions_give_indices():
    assert T.row_argmax(tile(8, 32), tile(8, 32)).type.dtype is D.INT32
    assert shape(T.col_argmin(tile(8, 32), tile(8, 32))) == [1, 32]


def test_what_cannot_be_reduced_is_refused():
    refused("the valid extent on axis 1 is 0", T.row_sum, tile(8, 32, valid=[8, 0]), tile(8, 32))
    text = refused(r"at least the input shape \[8, 512\], got \[8, 64\]", T.row_sum, tile(8, 512), tile(8, 64))
    assert "pl.create_tile([8, 512], dtype=pl.FP32)" in text
    refused("exactly match the input shape", T.row_argmax, tile(8, 512), tile(8, 640))
    refused("tmp_tile dtype to match input dtype", T.row_max, tile(8, 8), tile(8, 8, dtype=D.FP16))
    refused(r"valid_shape rank \(1\) must match the rank \(2\)", T.col_sum, tile(8, 32, valid=[4]))
    refused("INT16, INT32, FP16, FP32", T.row_min, tile(8, 8, dtype=D.BF16), tile(8, 8, dtype=D.BF16))
    refused("ND input layout", T.row_min, tile(8, 32, blayout=COL), tile(8, 32))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "max", "min", "expdif"])
def test_expansions_keep_the_tiles_valid_region(op):
    assert valid(getattr(T, f"row_expand_{op}")(tile(8, 16, valid=[8, 4]), tile(8, 1))) == [8, 4]
    assert valid(getattr(T, f"col_expand_{op}")(tile(8, 16, valid=[8, 4]), tile(1, 16, valid=[1, 4]))) == [8, 4]


def test_expansions_are_valid_where_the_vector_is():
    assert valid(T.row_expand_mul(tile(8, 16, valid=[8, 12]), tile(8, 1, valid=[4, 1]))) == [4, 12]
    assert valid(T.col_expand(tile(8, 16, valid=[6, 16]), tile(1, 16, valid=[1, 4]))) == [6, 4]


def test_vectors_of_the_wrong_shape_are_refused():
    refused(r"requires row_vec \[M, 1\]", T.row_expand_mul, tile(8, 16), tile(8, 16))
    refused(r"requires col_vec \[1, N\]", T.col_expand_mul, tile(8, 16), tile(8, 16))
    refused("the tile's columns", T.col_expand, tile(8, 16), tile(1, 8))
    refused("the tile's rows", T.row_expand_mul, tile(16, 16), tile(8, 1))
    refused("valid row extent to match", T.row_expand_add, tile(8, 16, valid=[6, 16]), tile(8, 1, valid=[5, 1]))
    refused("valid last dimension to be 8", T.row_expand_add, tile(8, 32), tile(8, 16, valid=[8, 7]))
    refused("same dtype", T.row_expand_mul, tile(8, 16), tile(8, 1, dtype=D.FP16))


# Products.


def test_a_product_is_an_accumulator():
    made = T.matmul(tile(16, 128, dtype=D.INT8), tile(128, 32, dtype=D.INT8, valid=[128, 16]))
    assert shape(made) == [16, 32] and valid(made) == [16, 16] and made.type.dtype is D.INT32
    assert made.type.memory_space is M.Acc and layout(made) == (COL, ROW, 1024)
    assert T.matmul(tile(16, 16, dtype=D.BF16), tile(16, 16, dtype=D.BF16)).type.dtype is D.FP32


def test_an_accumulator_with_runtime_rows_is_packed():
    rows = index("rows")
    left = tile(64, 128, dtype=D.FP16, valid=[rows, 128])
    made = T.matmul(left, tile(128, 32, dtype=D.FP16))
    assert made.type.tile_view.compact is CompactMode.normal
    assert T.matmul_acc(made, left, tile(128, 32, dtype=D.FP16)).type == made.type
    plain = tile(64, 32, valid=[rows, 32], space=M.Acc)
    kept = T.matmul_acc(plain, left, tile(128, 32, dtype=D.FP16)).type
    assert kept.get_effective_tile_view().compact is CompactMode.null


def test_operands_that_do_not_multiply_are_refused():
    refused(r"physical K.*\[16, 32\] @ \[16, 32\]", T.matmul, tile(16, 32), tile(16, 32))
    refused("rhs valid K to cover lhs valid K=32", T.matmul, tile(16, 32), tile(32, 16, valid=[31, 16]))
    refused("identical lhs and rhs data types", T.matmul, tile(16, 16, dtype=D.FP16), tile(16, 16))
    refused("2D tiles", T.matmul, tile(2, 16, 16), tile(2, 16, 16))
    refused("physical M", T.matmul_acc, tile(32, 16), tile(16, 16), tile(16, 16))
    refused("acc valid N", T.matmul_acc, tile(16, 16, valid=[16, 8]), tile(16, 16), tile(16, 16))
    refused("accumulator dtype fp32", T.matmul_acc, tile(16, 16, dtype=D.FP16), tile(16, 16), tile(16, 16))
    refused("init_cond to have dtype BOOL", T.matmul_acc, tile(16, 16), tile(16, 16), tile(16, 16), init_cond=index())
    short = tile(1, 16, valid=[1, 8])
    refused("bias valid N to cover output valid N=16", T.matmul_bias, tile(16, 16), tile(16, 16), short)


def test_a_vector_product_has_one_valid_row_of_sixteen():
    made = T.gemv(tile(1, 64, valid=[1, 48]), tile(64, 32, valid=[64, 16]))
    assert shape(made) == [16, 32] and valid(made) == [1, 16]
    refused("physical row extent to be exactly 1", T.gemv, tile(16, 64, valid=[1, 64]), tile(64, 32))
    refused("acc_phase to be one of", T.gemv, tile(1, 64), tile(64, 32), acc_phase="last")


def test_batches_broadcast():
    assert shape(T.batch_matmul(tile(1, 16, 32), tile(4, 32, 64))) == [4, 16, 64]
    refused("acc batch dim", T.batch_matmul_acc, tile(2, 16, 64), tile(4, 16, 32), tile(4, 32, 64))


# Views and padding.


def test_a_slice_sees_what_its_source_holds():
    assert valid(T.slice(tile(64, 64, valid=[40, 50]), [32, 32], [24, 32])) == [16, 18]
    assert valid(T.slice(tile(64, 64, valid=[20, 64]), [32, 32], [0, 0], [32, 32])) == [20, 32]
    padded = tile(64, 64, valid=[40, 64], pad=PadValue.zero)
    assert T.slice(padded, [32, 64], [0, 0]).type.tile_view.pad is PadValue.zero
    assert isinstance(T.slice(tile(64, 64, valid=[40, 64]), [16, 64], [index(), 0]).type.valid_shape[0], Min)


def test_a_slice_may_lose_unit_dimensions_but_two_remain():
    assert shape(T.slice(tile(64, 64, 64), [1, 8, 64], [3, 0, 0], drop_dims=[0])) == [8, 64]
    assert shape(T.slice(tile(64, 64, 64), [1, 1, 64], [1, 2, 0], drop_dims=[0, 1])) == [1, 64]
    refused("static unit dimension", T.slice, tile(64, 64), [8, 64], [0, 0], drop_dims=[0])
    refused("not provably 1", T.slice, tile(64, 64, valid=[8, 64]), [1, 64], [16, 0], drop_dims=[0])


def test_a_window_outside_its_tile_is_refused():
    refused("reads past the end of dimension 0.*no clamping mechanism", T.slice, tile(96, 64), [64, 64], [64, 0])
    refused("provably negative", T.slice, tile(64, 64), [16, 64], [index_const(-8), 0])
    refused("the tile's rank 2", T.slice, tile(64, 64), [64], [0])


@pytest.mark.parametrize(
    ("source", "region", "target", "expected"),
    [
        ([8, 16], [5, 16], [16, 8], [10, 8]),
        ([8, 16], [5, 16], [128], [80]),
        ([1, 8, 16], [1, 8, 5], [8, 16], [8, 5]),
        ([8, 16], [8, 5], [1, 8, 16], [1, 8, 5]),
        ([8, 16], [0, 16], [16, 8], [0, 0]),
        ([8, 16], [1, 16], [2, 2, 32], [1, 1, 16]),
    ],
)
def test_a_reshape_maps_the_valid_region_exactly(source, region, target, expected):
    assert valid(T.reshape(tile(*source, valid=region), target)) == expected


def test_a_region_that_is_no_rectangle_there_is_refused():
    refused("scattered across the buffer", T.reshape, tile(8, 16, valid=[8, 5]), [16, 8])
    refused("do not fill a whole number of rows", T.reshape, tile(8, 16, valid=[5, 16]), [4, 32])
    refused("not stored row-major", T.reshape, tile(2, 3, valid=[1, 3], blayout=COL), [1, 6])
    refused("128 elements.*64 elements", T.reshape, tile(8, 16), [8, 8])


def test_transposes():
    assert shape(T.transpose(tile(8, 16, valid=[8, 4]), 0, 1)) == [16, 8]
    assert valid(T.transpose(tile(8, 16, valid=[8, 4]), -2, -1)) == [4, 8]
    assert layout(T.transpose_view(tile(8, 16, space=M.Mat))) == (ROW, COL, 512)
    assert layout(T.transpose_view(tile(8, 16))) == (COL, FLAT, 512)
    refused("at least 2 dimensions", T.transpose_view, tile(16))
    refused(r"axis2 to be a constant in \[-2, 1\]", T.transpose, tile(8, 16), 0, 2)


def test_set_validshape_changes_nothing_else():
    made = T.set_validshape(tile(16, 128, space=M.Acc), 5, 128)
    assert valid(made) == [5, 128] and layout(made) == (COL, ROW, 1024) and made.type.memory_space is M.Acc
    refused("must be >= 0", T.set_validshape, tile(16, 16), -1, 8)
    refused("exceeds tile bound 16", T.set_validshape, tile(16, 16), 32, 8)


def test_reinterpreting_scales_the_contiguous_dimension():
    assert shape(T.reinterpret_view(tile(8, 16), D.INT16)) == [8, 32]
    assert shape(T.reinterpret_view(tile(8, 16, blayout=COL), D.INT16)) == [16, 16]
    assert valid(T.reinterpret_view(tile(8, 16, valid=[4, 12]), D.INT16)) == [4, 24]
    refused("dimension 1 .*not divisible by 2", T.reinterpret_view, tile(8, 15, dtype=D.INT16), D.FP32)
    refused("512 bytes and 256 bytes", T.reinterpret_view, tile(8, 16), D.INT16, shape=[8, 16])


def test_filled_tiles_are_valid_everywhere():
    made = T.fillpad(tile(8, 16, valid=[8, 4]), pad_value=float("-inf"))
    assert valid(made) == [8, 16] and made.type.tile_view.pad is PadValue.min
    assert shape(T.fillpad_expand(tile(8, 16), [16, 16])) == [16, 16]
    refused("must be >= source dimension 8", T.fillpad_expand, tile(8, 16), [4, 16])
    refused("pl.PadValue, 0, math.inf", T.fillpad, tile(8, 8), pad_value=5)


def test_assembling_grows_the_targets_region():
    target = tile(64, 128, valid=[20, 128], blayout=COL)
    made = T.assemble(target, tile(12, 128), [20, 0])
    assert valid(made) == [32, 128] and layout(made)[0] is COL
    assert T.assemble(tile(64, 128), tile(16, 128, valid=[8, 128]), [0, 0]).type.tile_view is None
    refused("in dimensions 0 and 1 at once", T.assemble, tile(64, 256, valid=[20, 64]), tile(12, 80), [20, 0])
    refused("copies the whole source subview", T.assemble, tile(64, 128), tile(48, 128, valid=[8, 128]), [56, 0])
    refused("leaves a gap", T.assemble, tile(64, 128, valid=[20, 128]), tile(12, 128), [24, 0])


def test_concat_needs_a_full_left_side():
    assert shape(T.concat(tile(32, 16), tile(32, 8))) == [32, 24]
    refused("row count must match", T.concat, tile(32, 16), tile(8, 16))
    refused("valid to its last column", T.concat, tile(32, 16, valid=[32, 8]), tile(32, 16))


# Elements, sequences, gathers, scatters, sorts.


def test_elements():
    assert T.read(tile(8, 8, dtype=D.INT16), [0, 7]).type is ScalarType(D.INT16)
    assert T.write(tile(8, 8, dtype=D.FP16), [0, 1], 2).args[2].type.dtype is D.FP16
    refused("index 8 is outside dimension 1", T.read, tile(8, 8), [0, 8])
    refused("one index for each dimension", T.read, tile(8, 8), [0])
    refused("scalar dtype of 'value' to be fp32", T.write, tile(8, 8), [0, 0], Var("v", ScalarType(D.FP16)))


def test_sequences_and_masks_are_generated():
    assert T.ci(0, [1, 32], dtype=D.INT16).args[0].type.dtype is D.INT16
    assert valid(T.tri(1, [16, 32], valid_shape=[9, 21])) == [9, 21]
    assert valid(T.random(1, 2, 3, 4, 5, 6, [16, 128], valid_shape=[10, 80])) == [10, 80]
    refused("leading dimensions must be 1", T.ci, 0, [4, 32])
    refused("rounds to be 7 or 10", T.random, 1, 2, 3, 4, 5, 6, [4, 64], rounds=5)


def test_gathers():
    assert shape(T.gather(tile(1, 128), tile(1, 16, dtype=D.INT32), tile(1, 16))) == [1, 16]
    assert shape(T.gather_mask(tile(8, 64), 3)) == [8, 16]
    assert shape(T.gatherb(tile(16, 64, dtype=D.FP16), tile(8, 16, dtype=D.UINT32))) == [8, 256]
    assert shape(T.mgather(tensor(64, 32), tile(1, 16, dtype=D.INT32))) == [16, 32]
    refused("16-bit src only", T.gather, tile(1, 8), tile(1, 8, dtype=D.INT16), tile(1, 8))
    refused("divisible by 2", T.gather_mask, tile(2, 33), 1)
    fifteen = tensor(1, 15, dtype=D.INT32)
    refused("rows must be a multiple of 16", T.mgather, tensor(64, 32), fifteen, target_memory=M.Mat)


def test_scatters_return_their_target():
    target = tile(16, 32, space=M.Vec)
    assert T.scatter(target, tile(4, 32), tile(4, 32, dtype=D.INT32)).type is target.type
    assert shape(T.scatter_mask(tile(4, 16), tile(4, 8), 1)) == [4, 16]
    refused("requires indexes dtype int16", T.scatter, tile(16, 32, dtype=D.FP16), tile(4, 32, dtype=D.FP16),
            tile(4, 32, dtype=D.INT32))  # fmt: skip
    refused("mask_pattern=1", T.scatter_mask, tile(4, 24), tile(4, 8), 1)


def test_sorts_make_pairs():
    assert shape(T.sort32(tile(8, 32), tile(8, 32, dtype=D.UINT32))) == [8, 64]
    assert shape(T.mrgsort(tile(1, 128), tile(1, 128), tile(1, 64))) == [1, 320]
    refused("multiple of 64", T.mrgsort, tile(1, 128), block_len=63)
    refused("matching dtype", T.mrgsort, tile(1, 128), tile(1, 128, dtype=D.FP16))


def test_an_extraction_of_all_rows_keeps_how_many_are_valid():
    n = index("n")
    source = tile(16, 64, valid=[n, 64], space=M.Mat)
    taken = T.extract(source, 0, 32, [16, 32], target_memory=M.Left)
    assert valid(taken)[0] is n and valid(taken)[1] == 32
    assert valid(T.extract(source, 0, 0, [8, 64], target_memory=M.Left)) == [8, 64]
