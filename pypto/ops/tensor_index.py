"""Tensor operators that generate indices, gather, scatter and sort."""

from __future__ import annotations

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import index_const
from ..ir.types import TensorType, TupleType, Type
from .registry import Bound, declare
from .rules import FLOATS, INT_OR_FLOAT, check_dtype, dims_text, same, shaped, tensor_type, times, value
from .tile_gather import COMPARE, ROW_COPY, check_gather_index, check_row_copy, compacted, gathered_pair
from .tile_generate import RANDOM, SEQUENCE, check_random, check_sequence, narrowed_valid, sequence_start
from .tile_scatter import check_scatter, check_scatter_mask, check_scatter_update
from .tile_sort import check_block_len, check_sort32, merged


def _ci(b: Bound) -> Type:
    check_sequence(b)
    sequence_start(b)
    return TensorType(b.dims("shape"), b["dtype"])


declare(
    "tensor.ci",
    SEQUENCE,
    _ci,
    "One row of consecutive integers from ``start``, up or ``descending``.",
    tile_form="tile.ci",
)


def _random(b: Bound) -> Type:
    check_random(b)
    return tensor_type(b.dims("shape"), b["dtype"], narrowed_valid(b))


declare(
    "tensor.random",
    RANDOM,
    _random,
    "Random 32-bit integers of a counter-based generator: two key words, four counter words, 7 or 10 rounds.",
    tile_form="tile.random",
)

# Gathers.


def check_last_axis(b: Bound, rank: int) -> None:
    if b["dim"] not in (-1, rank - 1):
        raise b.fail(f"supports dim=-1 only, got {b['dim']}")


def _gather(b: Bound) -> Type:
    source, index = b.type("input"), b.type("index")
    if source.dtype not in INT_OR_FLOAT:
        raise b.fail(f"requires an input of FP16, FP32, INT16, or INT32, got {shaped(source)}")
    check_gather_index(b, "input", "index", "index")
    if len(index.shape) != len(source.shape):
        raise b.fail(f"requires index of the input's rank, got {shaped(index)} and {shaped(source)}")
    check_last_axis(b, len(source.shape))
    if not all(same(x, y) for x, y in zip(index.shape[:-1], source.shape[:-1])):
        raise b.fail(f"requires index to match the input on non-gather axes, got {shaped(index)} and {shaped(source)}")
    return tensor_type(index.shape, source.dtype)


declare(
    "tensor.gather",
    "in input: tensor, attr dim: int! = -1, in index: tensor",
    _gather,
    "Row by row, the elements of ``input`` at ``index`` in the last dimension.",
    tile_form="tile.gather",
)


def _gather_mask(b: Bound) -> Type:
    shape, dtype = compacted(b, "input")
    return tensor_type(shape, dtype)


declare(
    "tensor.gather_mask",
    "in input: tensor, attr mask_pattern: MaskPattern!, attr output_dtype: DataType? = None",
    _gather_mask,
    "The columns `MaskPattern` marks, side by side; ``output_dtype`` of the same width reinterprets them.",
    tile_form="tile.gather_mask",
)


def _gather_compare(b: Bound) -> Type:
    found, counts = gathered_pair(b, "input")
    return TupleType([TensorType(found, DataType.INT32), TensorType(counts, DataType.INT32)])


declare(
    "tensor.gather_compare",
    f"in input: tensor, in kvalue: scalar like input, {COMPARE}",
    _gather_compare,
    "Row by row, the indices (plus ``offset``) of elements that compare with ``kvalue``, and how many they are: at "
    "most ``out_cols``. What follows them in a row is not written.",
    tile_form="tile.gather_compare",
)


def _row_copy(b: Bound) -> Type:
    check_row_copy(b)
    return b.type("acc")


declare(
    "tensor.gather_row",
    f"inout acc: tensor, in src: tensor, {ROW_COPY}",
    _row_copy,
    "Load the window of ``src`` at ``src_offset`` into ``acc`` (of `create_l1`) at ``dst_offset``, as columns when "
    "``transpose``.",
    reuses="acc",
    tile_form="tile.gather_row",
)


def _paged_gather(b: Bound) -> Type:
    src, indices, table = b.type("src"), b.type("indices"), b.type("block_table")
    if len(src.shape) != 2:
        raise b.fail(f"requires a 2D src, got {shaped(src)}")
    for name, t in (("indices", indices), ("block_table", table)):
        if t.dtype not in (DataType.INT32, DataType.INT64):
            raise b.fail(f"requires {name} dtype INT32 or INT64, got {shaped(t)}")
    if b["space"] not in (MemorySpace.Mat, MemorySpace.Vec):
        raise b.fail(f"gathers into Mat or Vec, not {b['space'].name}")
    rows, size = b["max_indices"], b["size"]
    if rows <= 0 or size <= 0 or b["block_size"] <= 0:
        raise b.fail(f"requires positive block_size, size and max_indices, got {b['block_size']}, {size}, {rows}")
    shape = [index_const(size), index_const(rows)] if b["is_trans"] else [index_const(rows), index_const(size)]
    return TensorType(shape, src.dtype)


declare(
    "tensor.paged_gather",
    "in src: tensor, in indices: tensor, in block_table: tensor, attr block_size: int!, attr size: int!, "
    "attr max_indices: int!, attr space: MemorySpace! = MemorySpace.Mat, attr is_trans: bool! = False",
    _paged_gather,
    "Rows of a paged pool on chip: row ``block_table[i // block_size] * block_size + i % block_size`` of ``src`` for "
    "each "
    "of ``indices``, ``size`` columns wide.",
)

# Scatters.


def _scatter(b: Bound) -> Type:
    source = b.type("input")
    if b["dim"] not in (-1, len(source.shape) - 1):
        raise b.fail(f"supports dim=-1 only, got {b['dim']}")
    check_scatter(b, "input", "src", "index")
    return tensor_type(source.shape, source.dtype)


declare(
    "tensor.scatter",
    "in input: tensor, attr dim: int! = -1, in index: tensor, in src: tensor",
    _scatter,
    "A copy of ``input`` with the elements of ``src`` written at ``index`` in the last dimension.",
    tile_form="tile.scatter",
)


def _scatter_mask(b: Bound) -> Type:
    check_scatter_mask(b, "dst", "input")
    return tensor_type(b.type("dst").shape, b.type("dst").dtype)


declare(
    "tensor.scatter_mask",
    "in input: tensor, in dst: tensor, attr mask_pattern: MaskPattern!",
    _scatter_mask,
    "A copy of ``dst`` with the columns of ``input`` written where `MaskPattern` marks.",
    tile_form="tile.scatter_mask",
)


def _scatter_update(b: Bound) -> Type:
    check_scatter_update(b)
    return tensor_type(b.type("input").shape, b.type("input").dtype)


declare(
    "tensor.scatter_update",
    "in input: tensor, attr dim: int!, in index: tensor, in src: tensor",
    _scatter_update,
    "A copy of ``input`` whose rows that ``index`` names are the rows of ``src``, ``dim`` -2.",
    tile_form="tile.scatter_update",
)

# Sorting.


def _sort32(b: Bound) -> Type:
    check_sort32(b)
    src = b.type("src")
    factor = 2 if src.dtype is DataType.FP32 else 4
    return TensorType([*src.shape[:-1], times(src.shape[-1], index_const(factor))], src.dtype)


declare(
    "tensor.sort32",
    "in src: tensor, in idx: tensor",
    _sort32,
    "Sort each block of 32 elements in descending order to pairs of value and ``idx``.",
    tile_form="tile.sort32",
)


def _mrgsort1(b: Bound) -> Type:
    check_dtype(b, "src", FLOATS, "src")
    check_block_len(b)
    return TensorType(b.type("src").shape, b.type("src").dtype)


declare(
    "tensor.mrgsort_format1",
    "in src: tensor, in block_len: index",
    _mrgsort1,
    "Merge each four sorted runs of ``block_len`` elements of value-index pairs to one.",
    tile_form="tile.mrgsort_format1",
)


def _mrgsort2(b: Bound) -> Type:
    check_dtype(b, "src0", FLOATS, "src0")
    shape, names = merged(b)
    if value(shape[-1]) == 0:
        raise b.fail(f"has nothing to merge: {', '.join(names)} make {dims_text(shape)}")
    return TensorType(shape, b.type("src0").dtype)


declare(
    "tensor.mrgsort_format2",
    "in src0: tensor, in src1: tensor, in src2: tensor?, in src3: tensor?",
    _mrgsort2,
    "Merge two to four sorted tensors of value-index pairs to one.",
    tile_form="tile.mrgsort_format2",
)
