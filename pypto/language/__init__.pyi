"""The kernel language, as type checkers see it. Written by ``python -m pypto.tools.stubs``; do not edit.

Shapes in annotations, ``pl.Tensor[[16, 64], pl.FP32]``, are values, not types: a file of kernels says
``# pyright: reportInvalidTypeArguments=false``.
"""

from collections.abc import Iterator, Sequence
from typing import Any, overload

from ..dtypes import DataType as DataType
from ..ir.enums import (
    ArgDirection as ArgDirection,
    AtomicType as AtomicType,
    CompactMode as CompactMode,
    ForKind as ForKind,
    FunctionType as FunctionType,
    Level as Level,
    MemorySpace as MemorySpace,
    PadValue as PadValue,
    ParamDirection as ParamDirection,
    PipeType as PipeType,
    Role as Role,
    SplitMode as SplitMode,
    TensorLayout as TensorLayout,
    TileLayout as TileLayout,
)
from ..ir.span import Span as Span
from ..ir.types import TensorView as TensorView, TileView as TileView
from ..jit import jit as jit
from . import parser as parser
from .annotations import (
    AsyncEvent as AsyncEvent,
    AsyncSession as AsyncSession,
    MemRefType as MemRefType,
    PrefetchAsyncContext as PrefetchAsyncContext,
    wrap as wrap,
)
from .arg_direction import adir as adir
from .decorators import InlineFunction as InlineFunction, function as function, inline as inline, program as program
from .dynamic import RUNTIME as RUNTIME, DynVar as DynVar, dynamic as dynamic
from .forms import (
    ScopeMode as ScopeMode,
    at as at,
    cluster as cluster,
    cond as cond,
    const as const,
    cross_core_slot as cross_core_slot,
    dump_tag as dump_tag,
    func_attr as func_attr,
    manual_scope as manual_scope,
    no_dep as no_dep,
    optimizations as optimizations,
    parallel as parallel,
    pipeline as pipeline,
    range as range,
    scope as scope,
    split as split,
    split_aiv as split_aiv,
    spmd as spmd,
    spmd_submit as spmd_submit,
    static_assert as static_assert,
    static_print as static_print,
    submit as submit,
    unroll as unroll,
    while_ as while_,
    yield_ as yield_,
)
from .memref import MemRef as MemRef
from .parser.text_parser import (
    loads as loads,
    loads_program as loads_program,
    parse as parse,
    parse_program as parse_program,
)

class _Value:
    """What tensors, tiles and scalars have in common in a kernel."""

    shape: Any
    dtype: Any
    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: Any) -> Any: ...
    def __ne__(self, other: Any) -> Any: ...
    def __neg__(self) -> Any: ...
    def __invert__(self) -> Any: ...
    def __lt__(self, other: Any) -> Any: ...
    def __le__(self, other: Any) -> Any: ...
    def __gt__(self, other: Any) -> Any: ...
    def __ge__(self, other: Any) -> Any: ...
    def __add__(self, other: Any) -> Any: ...
    def __radd__(self, other: Any) -> Any: ...
    def __sub__(self, other: Any) -> Any: ...
    def __rsub__(self, other: Any) -> Any: ...
    def __mul__(self, other: Any) -> Any: ...
    def __rmul__(self, other: Any) -> Any: ...
    def __truediv__(self, other: Any) -> Any: ...
    def __rtruediv__(self, other: Any) -> Any: ...
    def __floordiv__(self, other: Any) -> Any: ...
    def __rfloordiv__(self, other: Any) -> Any: ...
    def __mod__(self, other: Any) -> Any: ...
    def __rmod__(self, other: Any) -> Any: ...
    def __pow__(self, other: Any) -> Any: ...
    def __and__(self, other: Any) -> Any: ...
    def __rand__(self, other: Any) -> Any: ...
    def __or__(self, other: Any) -> Any: ...
    def __ror__(self, other: Any) -> Any: ...
    def __xor__(self, other: Any) -> Any: ...
    def __rxor__(self, other: Any) -> Any: ...
    def __lshift__(self, other: Any) -> Any: ...
    def __rshift__(self, other: Any) -> Any: ...
    def __matmul__(self, other: Any) -> Any: ...

class Tensor(_Value): ...
class Tile(_Value): ...
class Scalar(_Value): ...
class Array(_Value): ...
class Ptr(_Value): ...
class CommCtx(_Value): ...
class DistributedTensor(_Value): ...
class Tuple(_Value): ...
class WindowBuffer(_Value): ...

Out = Tensor
InOut = Tensor
ScalarLike = Scalar | int | float
Index = Scalar | int
Dims = Sequence[Index]
TaskId = Scalar

AUTO: int
Mem = MemorySpace
ND: TensorLayout
DN: TensorLayout
NZ: TensorLayout
MX_A_ZZ: TensorLayout
MX_B_NN: TensorLayout
BOOL: DataType
INT4: DataType
INT8: DataType
INT16: DataType
INT32: DataType
INT64: DataType
INDEX: DataType
UINT4: DataType
UINT8: DataType
UINT16: DataType
UINT32: DataType
UINT64: DataType
FP4: DataType
FP8E4M3FN: DataType
FP8E5M2: DataType
FP8E8M0: DataType
FP16: DataType
BF16: DataType
FP32: DataType
HF4: DataType
HF8: DataType
TASK_ID: DataType

def compile(kernel: Any, **options: Any) -> Any:
    """Compile a kernel to a `pypto.runtime.CompiledProgram`; options as of `pypto.runtime.compile`."""


@overload
def abs(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The absolute value of each element."""
@overload
def abs(input: Tensor, *, span: Span | None = ...) -> Tensor:
    """The absolute value of each element."""
@overload
def abs(tile: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def add(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs + rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is `adds`."""
@overload
def add(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Element by element, lhs + rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `adds`."""
@overload
def add(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

def add_relu(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs + rhs, or 0 where that is negative. `LegalizeTileOps` writes it out."""

def addc(lhs: Tile, rhs: Tile, rhs2: Tile, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs + rhs + rhs2."""

def addsc(lhs: Tile, rhs: ScalarLike, rhs2: Tile, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs + rhs + rhs2, where rhs is a scalar."""

def aic_gather(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
    """aic_gather(value), in a pl.split_aiv region.

    The lanes' shares of a value joined for the cube, twice the size where it is split.
    """

def aic_initialize_pipe(
    c2v_consumer_buf: ScalarLike = ...,
    v2c_consumer_buf: ScalarLike = ...,
    dir_mask: int = ...,
    slot_size: int = ...,
    slot_num: int | None = ...,
    local_slot_num: int | None = ...,
    id: int | None = ...,
    *,
    span: Span | None = ...,
) -> Any:
    """Set up the aic side of a cross-core pipe: ``dir_mask`` 1 cube to vector, 2 vector to cube, 3 both; a buffer for
    each direction used.
    """

def aiv_initialize_pipe(
    c2v_consumer_buf: ScalarLike = ...,
    v2c_consumer_buf: ScalarLike = ...,
    dir_mask: int = ...,
    slot_size: int = ...,
    slot_num: int | None = ...,
    local_slot_num: int | None = ...,
    id: int | None = ...,
    *,
    span: Span | None = ...,
) -> Any:
    """Set up the aiv side of a cross-core pipe: ``dir_mask`` 1 cube to vector, 2 vector to cube, 3 both; a buffer for
    each direction used.
    """

def aiv_shard(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
    """aiv_shard(value), in a pl.split_aiv region.

    This lane's share of a value the cube made, half of it where the region splits.
    """

@overload
def and_(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Bitwise and of two tiles, element by element."""
@overload
def and_(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Bitwise and of two integer tensors of one shape; a scalar ``rhs`` is `ands`."""
@overload
def and_(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def ands(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Bitwise and of a tile and a scalar."""
@overload
def ands(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Bitwise and of an integer tensor and a scalar."""

def arange(
    start: ScalarLike,
    shape: Dims,
    dtype: DataType = ...,
    descending: bool = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """One row of consecutive integers from ``start``, up or ``descending``."""

def assemble(
    target: Tensor,
    source: Tensor,
    offset: Dims,
    atomic: AtomicType = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """Write ``source`` into ``target`` at ``offset``; the value is the target as written. ``atomic=pl.AtomicType.Add``
    adds instead of overwriting.
    """

def axpy(acc: Tile, tile: Tile, factor: ScalarLike, *, span: Span | None = ...) -> Tile:
    """acc += tile * factor in place, rounded once. FP16 tiles may be added to an FP32 ``acc``."""

def batch_matmul(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
    """lhs @ rhs over broadcast leading batch dimensions. `FlattenTileNdTo2D` writes one `matmul` a batch."""

def batch_matmul_acc(
    acc: Tile,
    lhs: Tile,
    rhs: Tile,
    init_cond: ScalarLike | None = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """acc += lhs @ rhs over broadcast leading batch dimensions, which acc must have. Where ``init_cond`` (a BOOL
    scalar) holds, acc is overwritten instead.
    """

@overload
def cast(
    tile: Tile,
    target_type: DataType,
    mode: str | int = ...,
    saturate: bool = ...,
    *,
    tmp: Tile | None = ...,
    span: Span | None = ...,
) -> Tile:
    """Convert each element to ``target_type``, rounding as ``mode`` says: none, rint (ties to even), round (ties away
    from zero), floor, ceil, trunc or odd. Out of range an integer keeps the low bits (floats through INT32; NaN is
    0) and a float is infinite; with ``saturate`` each is the nearest there is. `SupplyScratch` makes ``tmp``.
    """
@overload
def cast(
    input: Tensor,
    target_type: DataType,
    mode: str | int = ...,
    saturate: bool = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """Convert each element to ``target_type``, rounding as ``mode`` says: none, rint (ties to even), round (ties away
    from zero), floor, ceil, trunc or odd. Out of range an integer keeps the low bits (floats through INT32; NaN is
    0) and a float is infinite; with ``saturate`` each is the nearest there is.
    """
@overload
def cast(tile: ScalarLike, target_type: DataType, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def cmp(lhs: Tile, rhs: Tile | ScalarLike, cmp_type: int = ..., *, span: Span | None = ...) -> Tile:
    """Compare two tiles: ``cmp_type`` 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge. The value is a packed mask, one bit an
    element.
    """
@overload
def cmp(lhs: Tensor, rhs: Tensor | ScalarLike, cmp_type: int = ..., *, span: Span | None = ...) -> Tensor:
    """1 where the comparison holds, 0 elsewhere, in the operands' dtype. ``cmp_type``: 0 to 5 are eq, ne, lt, le, gt,
    ge.
    """

def cmps(lhs: Tile, rhs: ScalarLike, cmp_type: int = ..., *, span: Span | None = ...) -> Tile:
    """Compare a tile with a scalar; modes and mask as `cmp`."""

@overload
def col_argmax(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, the index of the maximum of the valid part (INT32), the first of equals. ``tmp_tile`` is
    scratch.
    """
@overload
def col_argmax(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """In each column, the index of the maximum (INT32), the first of equals, as a row ``[1, N]``."""

@overload
def col_argmin(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, the index of the minimum of the valid part (INT32), the first of equals. ``tmp_tile`` is
    scratch.
    """
@overload
def col_argmin(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """In each column, the index of the minimum (INT32), the first of equals, as a row ``[1, N]``."""

@overload
def col_expand(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """A tile of ``tile``'s shape whose every row is ``col_vec`` ``[1, N]``."""
@overload
def col_expand(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """A tensor of ``input``'s shape whose every row is ``col_vec`` ``[1, N]``."""

@overload
def col_expand_add(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, tile + vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""
@overload
def col_expand_add(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Column by column, input + vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

@overload
def col_expand_div(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, tile / vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""
@overload
def col_expand_div(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Column by column, input / vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

@overload
def col_expand_expdif(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, exp(tile - vector), where vector is that column's element of ``col_vec`` ``[1, N]``."""
@overload
def col_expand_expdif(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Column by column, exp(input - vector), where vector is that column's element of ``col_vec`` ``[1, N]``."""

@overload
def col_expand_max(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, the greater of tile and vector, where vector is that column's element of ``col_vec`` ``[1,
    N]``.
    """
@overload
def col_expand_max(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Column by column, the greater of input and vector, where vector is that column's element of ``col_vec`` ``[1,
    N]``.
    """

@overload
def col_expand_min(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, the smaller of tile and vector, where vector is that column's element of ``col_vec`` ``[1,
    N]``.
    """
@overload
def col_expand_min(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Column by column, the smaller of input and vector, where vector is that column's element of ``col_vec`` ``[1,
    N]``.
    """

@overload
def col_expand_mul(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, tile * vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""
@overload
def col_expand_mul(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Column by column, input * vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

@overload
def col_expand_sub(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
    """Column by column, tile - vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""
@overload
def col_expand_sub(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Column by column, input - vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

@overload
def col_max(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The maximum of each column's valid part, as a row ``[1, N]``."""
@overload
def col_max(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The maximum along each column's valid part, as a row ``[1, N]``."""

@overload
def col_min(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The minimum of each column's valid part, as a row ``[1, N]``."""
@overload
def col_min(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The minimum along each column's valid part, as a row ``[1, N]``."""

@overload
def col_prod(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The product of each column's valid part, as a row ``[1, N]``."""
@overload
def col_prod(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The product along each column's valid part, as a row ``[1, N]``."""

@overload
def col_sum(tile: Tile, tmp_tile: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """The sum of each column's valid part, as a row ``[1, N]``: one row after the other, or as a binary tree when
    scratch ``tmp_tile`` of the tile's dtype and at least its shape is given.
    """
@overload
def col_sum(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The sum along each column's valid part, as a row ``[1, N]``."""

@overload
def concat(src0: Tile, src1: Tile, *, span: Span | None = ...) -> Tile:
    """Two tiles of the same rows side by side."""
@overload
def concat(src0: Tensor, src1: Tensor, *, span: Span | None = ...) -> Tensor:
    """Two tensors of the same rows side by side."""

def concat_idx(src0: Tile, src1: Tile, count0: Tile, count1: Tile, *, span: Span | None = ...) -> Tile:
    """Row by row, the first ``count0`` columns of ``src0`` and then the first ``count1`` of ``src1``.

    The counts are the first column of row-major INT8 tiles; what they leave of a row is not written.
    """

@overload
def cos(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The cosine of each element in radians (FP32). `LowerCompositeOps` writes it out."""
@overload
def cos(input: Tensor, *, span: Span | None = ...) -> Tensor:
    """The cosine of each element in radians (FP32)."""

def create_l1(shape: Dims, dtype: DataType, transpose: bool = ..., *, span: Span | None = ...) -> Tensor:
    """Allocate a 2D tile in L1, named at tensor level; ``transpose`` lays it out as a transposed matmul operand."""

def create_tensor(
    shape: Dims,
    dtype: DataType,
    layout: TensorLayout = ...,
    manual_dep: bool = ...,
    init_value: float | None = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """Allocate a tensor in global memory, filled with ``init_value`` if one is given.

    ``manual_dep`` keeps it out of automatic dependency tracking.
    """

def create_tile(
    shape: Dims,
    dtype: DataType,
    target_memory: MemorySpace = ...,
    transpose: bool = ...,
    flat_layout: bool = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """Allocate a tile of ``shape`` in ``target_memory``, contents undefined.

    In ``Mat``, ``transpose`` gives a 2D tile the layout of a transposed matmul operand and ``flat_layout`` an
    unboxed one.
    """

def dequant(tile: Tile, scale: Tile, offset: Tile, *, span: Span | None = ...) -> Tile:
    """(tile - offset) * scale in FP32.

    ``scale`` and ``offset`` are FP32 columns ``[M, 1]``, one value a row.
    """

def dim(tensor: Tensor, axis: Index, *, span: Span | None = ...) -> Any:
    """The tensor's size in dimension ``axis``."""

@overload
def div(lhs: Tile, rhs: Tile | ScalarLike, high_precision: bool = ..., *, span: Span | None = ...) -> Tile:
    """Element by element, lhs / rhs; a scalar ``rhs`` is `divs`. ``high_precision`` (FP16, FP32) is slower and closer.
    """
@overload
def div(lhs: Tensor, rhs: Tensor | ScalarLike, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
    """Element by element, lhs / rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `divs`."""
@overload
def div(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def exp(tile: Tile, *, span: Span | None = ...) -> Tile:
    """e to the power of each element."""
@overload
def exp(input: Tensor, *, span: Span | None = ...) -> Tensor:
    """e to the power of each element; FP32 for integers."""

def expand_clone(input: Tensor, target: Tensor, *, span: Span | None = ...) -> Tensor:
    """``input`` repeated along its dimension of size 1 to ``target``'s shape, written to ``target``."""

@overload
def expands(target: Tile, scalar: ScalarLike, *, span: Span | None = ...) -> Tile:
    """A tile of ``target``'s shape, dtype and valid region filled with ``scalar``."""
@overload
def expands(target: Tensor, scalar: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """A tensor of ``target``'s shape and dtype filled with ``scalar``."""

def extract(
    src: Tile,
    index_row: Index,
    index_col: Index,
    shape: Dims,
    target_memory: MemorySpace = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """Copy the ``shape`` window of a 2D tile at (``index_row``, ``index_col``) to another memory."""

@overload
def fillpad(tile: Tile, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tile:
    """A copy in which the cells outside the valid region hold ``pad_value`` (zero, max or min of the dtype), all valid.
    """
@overload
def fillpad(input: Tensor, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tensor:
    """A copy in which the cells outside the valid region hold ``pad_value`` (zero, max or min of the dtype), all valid.
    """

@overload
def fillpad_expand(tile: Tile, shape: Dims, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tile:
    """A larger copy of ``shape`` whose cells outside the source's valid region hold ``pad_value``, all valid."""
@overload
def fillpad_expand(input: Tensor, shape: Dims, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tensor:
    """A larger copy of ``shape`` whose cells outside the source's valid region hold ``pad_value``, all valid."""

def fillpad_inplace(tile: Tile, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tile:
    """Fill the cells outside the valid region with ``pad_value`` in place."""

@overload
def fmod(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, the remainder of lhs / rhs with the sign of lhs, of two tiles of one shape and dtype; a
    scalar ``rhs`` is `fmods`.
    """
@overload
def fmod(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Element by element, the remainder of lhs / rhs with the sign of lhs, broadcasting dimensions of size 1; a scalar
    ``rhs`` is `fmods`.
    """

@overload
def fmods(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, the remainder of lhs / rhs with the sign of lhs, of a tile and a scalar; a literal takes the
    tile's dtype.
    """
@overload
def fmods(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Element by element, the remainder of lhs / rhs with the sign of lhs, of a tensor and a scalar: FP32 with a
    floating-point literal.
    """

def full(shape: Dims, dtype: DataType, value: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """A tensor of ``shape`` filled with the constant ``value``."""

def gather(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
    """Elements at an ``index``, columns of a ``mask_pattern``, or indices of elements that compare with ``kvalue``."""

def gather_row(
    acc: Tensor,
    src: Tensor,
    dst_offset: Dims,
    src_offset: Dims,
    shapes: Dims,
    transpose: bool = ...,
    *,
    valid_shape: Dims | None = ...,
    span: Span | None = ...,
) -> Tensor:
    """Load the window of ``src`` at ``src_offset`` into ``acc`` (of `create_l1`) at ``dst_offset``, as columns when
    ``transpose``.
    """

def gatherb(src: Tile, offset: Tile, output_dtype: DataType | None = ..., *, span: Span | None = ...) -> Tile:
    """The 32-byte blocks of ``src`` at byte ``offset``\\ s (UINT32, a multiple of 8 a row), side by side."""

def gemv(lhs: Tile, rhs: Tile, acc_phase: str = ..., *, span: Span | None = ...) -> Tile:
    """lhs @ rhs of a one-row Left ``[1, K]`` and a Right ``[K, N]`` tile: one valid row of a 16-row accumulator.

    ``acc_phase`` is partial while more of K follows, final for the last part.
    """

def gemv_acc(acc: Tile, lhs: Tile, rhs: Tile, acc_phase: str = ..., *, span: Span | None = ...) -> Tile:
    """acc += lhs @ rhs in place, operands as `gemv`."""

def gemv_bias(lhs: Tile, rhs: Tile, bias: Tile, acc_phase: str = ..., *, span: Span | None = ...) -> Tile:
    """lhs @ rhs + bias, operands as `gemv` and `matmul_bias`."""

def gemv_mx(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile, *, span: Span | None = ...) -> Tile:
    """(lhs * lhs_scale) @ (rhs * rhs_scale) in FP32, one FP8E8M0 scale for each 32 of K. lhs has one valid row, of one
    or of sixteen; K is a multiple of 64, N of 32.
    """

def gemv_mx_acc(acc: Tile, lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile, *, span: Span | None = ...) -> Tile:
    """acc += the product of `gemv_mx`, in place."""

def gemv_mx_bias(
    lhs: Tile,
    lhs_scale: Tile,
    rhs: Tile,
    rhs_scale: Tile,
    bias: Tile,
    *,
    span: Span | None = ...,
) -> Tile:
    """The product of `gemv_mx` plus a ``[1, N]`` FP32 row in Bias."""

def get_block_idx(*, span: Span | None = ...) -> Scalar:
    """Index of the executing block."""

def get_block_num(*, span: Span | None = ...) -> Scalar:
    """Number of blocks running."""

def get_subblock_idx(*, span: Span | None = ...) -> Scalar:
    """Index of the executing vector core in its core group."""

def histogram(tile: Tile, index: Tile, byte: int = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, how often each value of byte ``byte`` (0 lowest) occurs, in 256 UINT32 columns (Ascend950).

    Only elements whose bytes above are those of ``index`` count: none for the highest byte. For UINT16 tiles
    ``index`` is a UINT8 column ``[M, 1]``; for UINT32 it has a row for each byte above, the highest first, the same
    for every row.
    """

def import_peer_buffer(name: str, peer_func: str, *, span: Span | None = ...) -> Scalar:
    """The address of buffer ``name`` that ``peer_func`` reserves."""

def load(
    tensor: Tensor,
    offsets: Dims,
    shapes: Dims,
    valid_shape: Dims | None = ...,
    target_memory: MemorySpace = ...,
    clamp: bool = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """Copy the window of ``tensor`` at ``offsets`` into a new tile of shape ``shapes``.

    ``valid_shape`` is what is read, the whole window by default, and must lie inside the tensor; ``clamp`` cuts it
    at the tensor's edge. A load into Vec, the default, goes to Mat where its consumers cannot be reached from Vec.
    """

@overload
def log(tile: Tile, high_precision: bool = ..., *, span: Span | None = ...) -> Tile:
    """The natural logarithm of each element (FP16, FP32)."""
@overload
def log(input: Tensor, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The natural logarithm of each element (FP16, FP32)."""

def lrelu(tile: Tile, slope: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Each element, or ``slope`` (an FP32 scalar) times it where it is negative."""

@overload
def matmul(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
    """lhs @ rhs of a Left ``[M, K]`` and a Right ``[K, N]`` tile: FP32 for floating point, INT32 for integers."""
@overload
def matmul(
    lhs: Tensor,
    rhs: Tensor,
    out_dtype: DataType | None = ...,
    a_trans: bool = ...,
    b_trans: bool = ...,
    c_matrix_nz: bool = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """lhs @ rhs, over broadcast leading batch dimensions. ``a_trans`` / ``b_trans`` exchange an operand's last two
    dimensions; ``out_dtype``, unless stated, is the operands' dtype for floating point and INT32 for integers.
    """

@overload
def matmul_acc(acc: Tile, lhs: Tile, rhs: Tile, init_cond: ScalarLike | None = ..., *, span: Span | None = ...) -> Tile:
    """acc += lhs @ rhs in place. Where ``init_cond`` (a BOOL scalar) holds, acc is overwritten instead."""
@overload
def matmul_acc(
    acc: Tensor,
    lhs: Tensor,
    rhs: Tensor,
    init_cond: ScalarLike | None = ...,
    a_trans: bool = ...,
    b_trans: bool = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """acc += lhs @ rhs. Where ``init_cond`` (a BOOL scalar) holds, acc is overwritten instead."""

def matmul_bias(lhs: Tile, rhs: Tile, bias: Tile, *, span: Span | None = ...) -> Tile:
    """lhs @ rhs + bias, where ``bias`` is a ``[1, N]`` row of the accumulator's dtype in Bias."""

def matmul_mx(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile, *, span: Span | None = ...) -> Tile:
    """(lhs * lhs_scale) @ (rhs * rhs_scale) in FP32, one FP8E8M0 scale for each 32 of K. M is a multiple of 16, K is a
    multiple of 64, N of 32.
    """

def matmul_mx_acc(
    acc: Tile,
    lhs: Tile,
    lhs_scale: Tile,
    rhs: Tile,
    rhs_scale: Tile,
    *,
    span: Span | None = ...,
) -> Tile:
    """acc += the product of `matmul_mx`, in place."""

def matmul_mx_bias(
    lhs: Tile,
    lhs_scale: Tile,
    rhs: Tile,
    rhs_scale: Tile,
    bias: Tile,
    *,
    span: Span | None = ...,
) -> Tile:
    """The product of `matmul_mx` plus a ``[1, N]`` FP32 row in Bias."""

def max(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
    """Scalar max of two values."""

@overload
def maximum(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, the greater of lhs and rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is
    `maximums`.
    """
@overload
def maximum(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """The greater of lhs and rhs, element by element; ``rhs`` may be a scalar."""
@overload
def maximum(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

def maximums(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, the greater of lhs and rhs, of a tile and a scalar; a literal takes the tile's dtype."""

def mgather(
    mem: Tensor,
    idx: Tile | Tensor,
    coalesce: str | int = ...,
    target_memory: MemorySpace = ...,
    gather_oob: str | int = ...,
    *,
    scratch: Tile | Tensor | None = ...,
    valid_shape: Dims | None = ...,
    span: Span | None = ...,
) -> Tile:
    """Gather from global memory: rows of ``mem`` (coalesce row) or flat elements (elem) at INT32 ``idx``.

    Into Vec with an index tile, into Mat with an index tensor; element gathers into Mat stage through ``scratch``.
    ``gather_oob`` says what an index outside gives: undefined, clamp, wrap or zero.
    """

def min(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
    """Scalar min of two values."""

@overload
def minimum(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, the smaller of lhs and rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is
    `minimums`.
    """
@overload
def minimum(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """The smaller of lhs and rhs, element by element; ``rhs`` may be a scalar."""
@overload
def minimum(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

def minimums(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, the smaller of lhs and rhs, of a tile and a scalar; a literal takes the tile's dtype."""

def move(
    src: Tile,
    target_memory: MemorySpace = ...,
    blayout: TileLayout | None = ...,
    slayout: TileLayout | None = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """Copy a tile to another on-chip memory, the only way into Left, Right and Bias.

    The result is laid out as its memory demands; ``blayout`` and ``slayout`` override that.
    """

def mrgsort(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
    """Merge the sorted runs of ``block_len`` in one operand, or two to four sorted operands."""

def mscatter(src: Tile, idx: Tile, output_tensor: Tensor, *, span: Span | None = ...) -> Tensor:
    """Write the elements of ``src`` into ``output_tensor`` at flat indices ``idx`` (INT32)."""

@overload
def mul(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs * rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is `muls`."""
@overload
def mul(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Element by element, lhs * rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `muls`."""
@overload
def mul(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def neg(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The negative of each element."""
@overload
def neg(input: Tensor, *, span: Span | None = ...) -> Tensor:
    """The negative of each element."""
@overload
def neg(tile: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def not_(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The bitwise complement of each element, an integer; 910B has 16-bit ones only."""
@overload
def not_(input: Tensor, *, span: Span | None = ...) -> Tensor:
    """The bitwise complement of each element (int16, uint16)."""
@overload
def not_(tile: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def or_(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Bitwise or of two tiles, element by element."""
@overload
def or_(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Bitwise or of two integer tensors of one shape; a scalar ``rhs`` is `ors`."""
@overload
def or_(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def ors(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Bitwise or of a tile and a scalar."""
@overload
def ors(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Bitwise or of an integer tensor and a scalar."""

def paged_gather(
    src: Tensor,
    indices: Tensor,
    block_table: Tensor,
    block_size: int,
    size: int,
    max_indices: int,
    space: MemorySpace = ...,
    is_trans: bool = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """Rows of a paged pool on chip: row ``block_table[i // block_size] * block_size + i % block_size`` of ``src`` for
    each of ``indices``, ``size`` columns wide.
    """

@overload
def part_add(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
    """The sum where both tiles hold data, the one that does elsewhere."""
@overload
def part_add(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
    """The sum where both tensors hold data, the one that does elsewhere."""

def part_argmax(
    lhs: Tile,
    rhs: Tile,
    lhs_index: Tile,
    rhs_index: Tile,
    index: Tile,
    *,
    span: Span | None = ...,
) -> Tile:
    """Element by element, the greater of lhs and rhs, or the one there is; its index goes into ``index``.

    Of equal elements the second is taken. Indices are INT32 or UINT32 tiles beside their values.
    """

def part_argmin(
    lhs: Tile,
    rhs: Tile,
    lhs_index: Tile,
    rhs_index: Tile,
    index: Tile,
    *,
    span: Span | None = ...,
) -> Tile:
    """Element by element, the smaller of lhs and rhs, or the one there is; its index goes into ``index``.

    Of equal elements the second is taken. Indices are INT32 or UINT32 tiles beside their values.
    """

@overload
def part_max(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
    """The maximum where both tiles hold data, the one that does elsewhere."""
@overload
def part_max(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
    """The maximum where both tensors hold data, the one that does elsewhere."""

@overload
def part_min(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
    """The minimum where both tiles hold data, the one that does elsewhere."""
@overload
def part_min(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
    """The minimum where both tensors hold data, the one that does elsewhere."""

@overload
def part_mul(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
    """The product where both tiles hold data, the one that does elsewhere."""
@overload
def part_mul(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
    """The product where both tensors hold data, the one that does elsewhere."""

def pow(lhs: Tile, rhs: Tile, tmp: Tile | None = ..., high_precision: bool = ..., *, span: Span | None = ...) -> Tile:
    """Element by element, lhs to the power rhs; a scalar exponent is `pows`.

    Floats need ``tmp``, a scratch tile of the base's shape and dtype; integers take none, wrap, and have no negative
    exponents. ``high_precision`` (floats, Ascend950) is slower and closer.
    """

def pows(
    lhs: Tile,
    rhs: ScalarLike,
    tmp: Tile | None = ...,
    high_precision: bool = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """Element by element, lhs to the power of a scalar.

    Floats need ``tmp``, a scratch tile of the base's shape and dtype; integers take none, wrap, and have no negative
    exponents. ``high_precision`` (floats, Ascend950) is slower and closer.
    """

def prelu(src: Tile, slope: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
    """Each element, or slope * element where it is negative; ``tmp`` is scratch."""

def quant(
    tile: Tile,
    scale: Tile,
    offset: Tile | None = ...,
    tmp: Tile | None = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """tile * scale rounded to the nearest even integer and clamped to INT8; with ``offset``, tile * scale + offset
    clamped to UINT8.

    ``scale`` and ``offset`` are FP32 columns ``[M, 1]``, one value a row: ``scale`` is the inverse of the
    quantization step. ``tmp`` is scratch of the tile's shape. NaN gives 0.
    """

def quant_mx(tile: Tile, exp: Tile, max: Tile, scaling: Tile, axis: int = ..., *, span: Span | None = ...) -> Tile:
    """The bytes of the FP8E4M3FN elements of a block-scaled (MX) operand, as INT8, and into ``exp`` those of its
    FP8E8M0 scales, as UINT8: one for each 32 elements along ``axis``.

    A scale is the exponent of the group's greatest magnitude less 8; elements are divided by it, rounded to the
    nearest, ties to even, and clamped to 448. ``max`` gets the magnitudes and ``scaling`` what elements were
    multiplied with, FP32. A group with NaN is all NaN.
    """

def random(
    key0: ScalarLike,
    key1: ScalarLike,
    counter0: ScalarLike,
    counter1: ScalarLike,
    counter2: ScalarLike,
    counter3: ScalarLike,
    shape: Dims,
    valid_shape: Dims | None = ...,
    dtype: DataType = ...,
    rounds: int = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """Random 32-bit integers of a counter-based generator: two key words, four counter words, 7 or 10 rounds."""

@overload
def read(tile: Tile, indices: Dims | Index, *, span: Span | None = ...) -> Any:
    """The element of ``tile`` at ``indices``."""
@overload
def read(tensor: Tensor, indices: Dims | Index, *, span: Span | None = ...) -> Any:
    """The element of ``tensor`` at ``indices``."""

@overload
def recip(tile: Tile, high_precision: bool = ..., *, span: Span | None = ...) -> Tile:
    """1 / each element; ``high_precision`` takes FP16 and FP32."""
@overload
def recip(input: Tensor, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
    """1 / each element; FP32 for integers. ``high_precision`` takes FP16 and FP32."""

@overload
def reinterpret_view(data: Tile, dtype: DataType, shape: Dims | None = ..., *, span: Span | None = ...) -> Tile:
    """The same bytes as elements of ``dtype``, without moving them; the contiguous dimension scales unless ``shape``
    says otherwise.
    """
@overload
def reinterpret_view(data: Tensor, dtype: DataType, shape: Dims | None = ..., *, span: Span | None = ...) -> Tensor:
    """The same bytes as elements of ``dtype``, without moving them; the contiguous dimension scales unless ``shape``
    says otherwise.
    """

def relu(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The greater of each element and 0."""

def rem(lhs: Tile, rhs: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
    """Element by element, the remainder of lhs / rhs with the sign of rhs, using ``tmp`` as scratch."""

def rems(lhs: Tile, rhs: ScalarLike, tmp: Tile, *, span: Span | None = ...) -> Tile:
    """Element by element, the remainder of lhs / rhs of a tile and a scalar, using ``tmp`` as scratch."""

def reserve_buffer(name: str, size: int, base: int = ..., *, span: Span | None = ...) -> Any:
    """Reserve ``size`` bytes on the consumer's core as ring buffer ``name``; ``base`` -1 lets the compiler place it."""

@overload
def reshape(tile: Tile, shape: Dims, *, span: Span | None = ...) -> Tile:
    """The same elements with another shape, without moving them. The valid region must be a rectangle there too."""
@overload
def reshape(input: Tensor, shape: Dims, valid_shape: Dims | None = ..., *, span: Span | None = ...) -> Tensor:
    """The same elements with another shape, without moving them. ``valid_shape`` may narrow the valid region only."""

@overload
def row_argmax(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """Row by row, the index of the maximum of the valid part (INT32), the first of equals. ``tmp_tile`` is scratch of
    the tile's dtype and shape.
    """
@overload
def row_argmax(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """In each row, the index of the maximum (INT32), the first of equals, as a column ``[M, 1]``."""

@overload
def row_argmin(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """Row by row, the index of the minimum of the valid part (INT32), the first of equals. ``tmp_tile`` is scratch of
    the tile's dtype and shape.
    """
@overload
def row_argmin(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """In each row, the index of the minimum (INT32), the first of equals, as a column ``[M, 1]``."""

@overload
def row_expand(tile: Tile, row_vec: Tile, *, span: Span | None = ...) -> Tile:
    """A tile of ``tile``'s shape whose rows repeat that row's element of ``row_vec`` ``[M, 1]``."""
@overload
def row_expand(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """A tensor of ``input``'s shape whose rows repeat that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_expand_add(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, tile + vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
    scratch.
    """
@overload
def row_expand_add(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Row by row, input + vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_expand_div(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, tile / vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
    scratch.
    """
@overload
def row_expand_div(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Row by row, input / vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_expand_expdif(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, exp(tile - vector), where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
    scratch.
    """
@overload
def row_expand_expdif(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Row by row, exp(input - vector), where vector is that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_expand_max(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, the greater of tile and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp``
    is optional scratch.
    """
@overload
def row_expand_max(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Row by row, the greater of input and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_expand_min(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, the smaller of tile and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp``
    is optional scratch.
    """
@overload
def row_expand_min(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Row by row, the smaller of input and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_expand_mul(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, tile * vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
    scratch.
    """
@overload
def row_expand_mul(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Row by row, input * vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_expand_sub(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Row by row, tile - vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
    scratch.
    """
@overload
def row_expand_sub(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
    """Row by row, input - vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

@overload
def row_max(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """The maximum of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and at
    least its shape.
    """
@overload
def row_max(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The maximum along each row's valid part, as a column ``[M, 1]``."""

@overload
def row_min(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """The minimum of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and at
    least its shape.
    """
@overload
def row_min(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The minimum along each row's valid part, as a column ``[M, 1]``."""

@overload
def row_prod(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """The product of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and at
    least its shape.
    """
@overload
def row_prod(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The product along each row's valid part, as a column ``[M, 1]``."""

@overload
def row_sum(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
    """The sum of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and at
    least its shape.
    """
@overload
def row_sum(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
    """The sum along each row's valid part, as a column ``[M, 1]``."""

@overload
def rsqrt(tile: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """1 / the square root of each element. A scratch tile ``tmp`` of the tile's shape selects the precise form."""
@overload
def rsqrt(input: Tensor, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
    """1 / the square root of each element; FP32 for integers. ``high_precision`` is slower and closer."""

def scatter(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
    """Elements of ``src`` written at an ``index``, or columns written into ``dst`` where ``mask_pattern`` marks."""

@overload
def scatter_update(input: Tile, dim: int, index: Tile, src: Tile, *, span: Span | None = ...) -> Tile:
    """Replace the rows of ``input`` that ``index`` names by the rows of ``src``, ``dim`` -2."""
@overload
def scatter_update(input: Tensor, dim: int, index: Tensor, src: Tensor, *, span: Span | None = ...) -> Tensor:
    """A copy of ``input`` whose rows that ``index`` names are the rows of ``src``, ``dim`` -2."""

def sel(mask: Tile, lhs: Tile, rhs: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
    """lhs where the packed mask's bit is set, rhs elsewhere; ``tmp`` is scratch."""

def sels(mask: Tile, src: Tile, tmp: Tile, scalar: ScalarLike, *, span: Span | None = ...) -> Tile:
    """src where the packed mask's bit is set, ``scalar`` elsewhere; ``tmp`` is scratch."""

@overload
def set_validshape(tile: Tile, valid_rows: Index, valid_cols: Index, *, span: Span | None = ...) -> Tile:
    """The same 2D tile with ``valid_rows`` x ``valid_cols`` of it holding data. Nothing moves."""
@overload
def set_validshape(input: Tensor, valid_rows: Index, valid_cols: Index, *, span: Span | None = ...) -> Tensor:
    """The same 2D tensor with ``valid_rows`` x ``valid_cols`` of it holding data. Nothing moves."""

@overload
def shl(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Left shift of two tiles, element by element."""
@overload
def shl(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Left shift of two integer tensors of one shape; a scalar ``rhs`` is `shls`."""
@overload
def shl(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def shls(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Left shift of a tile and a scalar."""
@overload
def shls(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Left shift of an integer tensor and a scalar."""

@overload
def shr(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Right shift, arithmetic for signed elements, of two tiles, element by element."""
@overload
def shr(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Right shift, arithmetic for signed elements, of two integer tensors of one shape; a scalar ``rhs`` is `shrs`."""
@overload
def shr(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

@overload
def shrs(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
    """Right shift, arithmetic for signed elements, of a tile and a scalar."""
@overload
def shrs(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Right shift, arithmetic for signed elements, of an integer tensor and a scalar."""

@overload
def sin(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The sine of each element in radians (FP32). `LowerCompositeOps` writes it out."""
@overload
def sin(input: Tensor, *, span: Span | None = ...) -> Tensor:
    """The sine of each element in radians (FP32)."""

@overload
def slice(
    tile: Tile,
    shape: Dims,
    offset: Dims,
    valid_shape: Dims | None = ...,
    drop_dims: Dims | None = ...,
    pad_value: PadValue | float = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """The window of static ``shape`` at ``offset``: a view of the tile, copied where an instruction cannot address it.

    ``valid_shape`` narrows it, ``drop_dims`` erases axes of size 1 (two dimensions always remain).
    """
@overload
def slice(
    input: Tensor,
    shape: Dims,
    offset: Dims,
    valid_shape: Dims | None = ...,
    drop_dims: Dims | None = ...,
    pad_value: PadValue | float = ...,
    clamp: bool = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """The window of ``shape`` at ``offset``: a view of the tensor.

    ``valid_shape`` narrows it, ``clamp`` cuts it at the tensor's edge, ``drop_dims`` erases axes of size 1.
    """

@overload
def sort32(src: Tile, idx: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """Sort each block of 32 elements in descending order to pairs of value and ``idx``."""
@overload
def sort32(src: Tensor, idx: Tensor, *, span: Span | None = ...) -> Tensor:
    """Sort each block of 32 elements in descending order to pairs of value and ``idx``."""

@overload
def sqrt(tile: Tile, *, span: Span | None = ...) -> Tile:
    """The square root of each element."""
@overload
def sqrt(input: Tensor, *, span: Span | None = ...) -> Tensor:
    """The square root of each element; FP32 for integers."""

def store(
    tile: Tile,
    offsets: Dims,
    output_tensor: Tensor,
    shapes: Dims | None = ...,
    atomic: AtomicType = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """Copy the valid part of ``tile`` into ``output_tensor`` at ``offsets``; the value is the tensor as written.

    ``shapes`` is the window's shape in the tensor where the tile has another rank. ``atomic=pl.AtomicType.Add`` adds
    instead of overwriting.
    """

@overload
def sub(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs - rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is `subs`."""
@overload
def sub(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Element by element, lhs - rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `subs`."""
@overload
def sub(lhs: ScalarLike, rhs: ScalarLike, *, span: Span | None = ...) -> Scalar:
    """The same of scalars."""

def subc(lhs: Tile, rhs: Tile, rhs2: Tile, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs - rhs + rhs2."""

def subsc(lhs: Tile, rhs: ScalarLike, rhs2: Tile, *, span: Span | None = ...) -> Tile:
    """Element by element, lhs - rhs + rhs2, where rhs is a scalar."""

def tfree_to_aic(tile: Tile, split: int | None = ..., id: int | None = ..., *, span: Span | None = ...) -> None:
    """Give the slot a popped tile is in back to aic."""

def tfree_to_aiv(tile: Tile, split: int | None = ..., id: int | None = ..., *, span: Span | None = ...) -> None:
    """Give the slot a popped tile is in back to aiv."""

def tpop_from_aic(
    shape: Dims | None = ...,
    dtype: DataType | None = ...,
    split: int = ...,
    id: int | None = ...,
    lane_stride: int | None = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """Pop the next tile the cube core pushed, into Vec; give its slot back with pl.system.tfree_to_aic."""

def tpop_from_aiv(
    shape: Dims | None = ...,
    dtype: DataType | None = ...,
    split: int = ...,
    id: int | None = ...,
    lane_stride: int | None = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """Pop the next tile the vector core pushed, into Mat; give its slot back with pl.system.tfree_to_aiv."""

def tpush_to_aic(
    tile: Tile,
    split: int = ...,
    id: int | None = ...,
    lane_stride: int | None = ...,
    *,
    span: Span | None = ...,
) -> Any:
    """Push a tile from the vector core to the cube core through pipe ``id``; ``split`` says how the lanes divide it: 0
    not at all, 1 by rows, 2 by columns.
    """

def tpush_to_aiv(
    tile: Tile,
    split: int = ...,
    id: int | None = ...,
    lane_stride: int | None = ...,
    *,
    span: Span | None = ...,
) -> Any:
    """Push a tile from the cube core to the vector core through pipe ``id``; ``split`` says how the lanes divide it: 0
    not at all, 1 by rows, 2 by columns.
    """

@overload
def transpose(tile: Tile, axis1: Index, axis2: Index, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
    """A copy with ``axis1`` and ``axis2`` exchanged. `FlattenTileNdTo2D` supplies the scratch ``tmp``."""
@overload
def transpose(
    input: Tensor,
    axis1: Index,
    axis2: Index,
    valid_shape: Dims | None = ...,
    *,
    span: Span | None = ...,
) -> Tensor:
    """A view with ``axis1`` and ``axis2`` exchanged; ``valid_shape`` is in the result's coordinates."""

def tri(
    diagonal: ScalarLike,
    shape: Dims,
    valid_shape: Dims | None = ...,
    dtype: DataType = ...,
    upper: bool = ...,
    *,
    span: Span | None = ...,
) -> Tile:
    """1 on and below the diagonal shifted by ``diagonal``, 0 elsewhere; ``upper`` takes the other side."""

@overload
def write(tile: Tile, indices: Dims | Index, value: ScalarLike, *, span: Span | None = ...) -> Any:
    """Set the element of ``tile`` at ``indices`` to ``value``."""
@overload
def write(tensor: Tensor, indices: Dims | Index, value: ScalarLike, *, span: Span | None = ...) -> Any:
    """Set the element of ``tensor`` at ``indices`` to ``value``."""

@overload
def xor(lhs: Tile, rhs: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
    """Bitwise exclusive or of two tiles, element by element, using ``tmp`` as scratch."""
@overload
def xor(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Bitwise exclusive or of two integer tensors of one shape; a scalar ``rhs`` is `xors`."""

@overload
def xors(lhs: Tile, rhs: ScalarLike, tmp: Tile, *, span: Span | None = ...) -> Tile:
    """Bitwise exclusive or of a tile and a scalar, using ``tmp`` as scratch."""
@overload
def xors(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
    """Bitwise exclusive or of an integer tensor and a scalar."""

class tile:
    """Operators ``pl.tile.*``."""

    MaskPattern: Any

    @staticmethod
    def abs(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The absolute value of each element."""

    @staticmethod
    def add(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs + rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is `adds`."""

    @staticmethod
    def add_relu(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs + rhs, or 0 where that is negative. `LegalizeTileOps` writes it out."""

    @staticmethod
    def addc(lhs: Tile, rhs: Tile, rhs2: Tile, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs + rhs + rhs2."""

    @staticmethod
    def adds(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs + rhs, of a tile and a scalar; a literal takes the tile's dtype."""

    @staticmethod
    def addsc(lhs: Tile, rhs: ScalarLike, rhs2: Tile, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs + rhs + rhs2, where rhs is a scalar."""

    @staticmethod
    def aic_gather(input: Tile, split: int, lane_stride: int | None = ..., *, span: Span | None = ...) -> Tile:
        """The lanes' shares of a value joined for the cube, twice the size where it is split."""

    @staticmethod
    def aiv_shard(input: Tile, split: int, lane_stride: int | None = ..., *, span: Span | None = ...) -> Tile:
        """This lane's share of a value the cube made, half of it where the region splits."""

    @staticmethod
    def alloc(
        memory_space: MemorySpace,
        size: int,
        pinned: bool = ...,
        slot_count: int = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """Declare an allocation of ``size`` bytes; `InitMemRef` writes these."""

    @staticmethod
    def and_(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Bitwise and of two tiles, element by element."""

    @staticmethod
    def ands(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Bitwise and of a tile and a scalar."""

    @staticmethod
    def arange(
        start: ScalarLike,
        shape: Dims,
        dtype: DataType = ...,
        descending: bool = ...,
        *,
        tmp: Tile | None = ...,
        span: Span | None = ...,
    ) -> Tile:
        """One row of consecutive integers from ``start``, up or ``descending``. `SupplyScratch` makes ``tmp`` where the
        target works in scratch.
        """

    @staticmethod
    def assemble(target: Tile, source: Tile, offset: Dims, *, span: Span | None = ...) -> Tile:
        """Write ``source`` into ``target`` at ``offset``; the value is the target as written."""

    @staticmethod
    def assemble_fp(target: Tile, source: Tile, scale: Tile, offset: Dims, *, span: Span | None = ...) -> Tile:
        """Quantize an accumulator to the dtype of ``target``, a tile in Mat, and write it there at ``offset``; the
        value is the target as written.

        ``scale`` is ``[1, N]`` in Scaling, one 64-bit word a column of the accumulator, which says factor, offset
        and sign: `pypto.layouts.fix_pipe_words` packs them.
        """

    @staticmethod
    def axpy(acc: Tile, tile: Tile, factor: ScalarLike, *, span: Span | None = ...) -> Tile:
        """acc += tile * factor in place, rounded once. FP16 tiles may be added to an FP32 ``acc``."""

    @staticmethod
    def batch_matmul(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
        """lhs @ rhs over broadcast leading batch dimensions. `FlattenTileNdTo2D` writes one `matmul` a batch."""

    @staticmethod
    def batch_matmul_acc(
        acc: Tile,
        lhs: Tile,
        rhs: Tile,
        init_cond: ScalarLike | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """acc += lhs @ rhs over broadcast leading batch dimensions, which acc must have. Where ``init_cond`` (a BOOL
        scalar) holds, acc is overwritten instead.
        """

    @staticmethod
    def cast(
        tile: Tile,
        target_type: DataType,
        mode: str | int = ...,
        saturate: bool = ...,
        *,
        tmp: Tile | None = ...,
        span: Span | None = ...,
    ) -> Tile:
        """Convert each element to ``target_type``, rounding as ``mode`` says: none, rint (ties to even), round (ties
        away from zero), floor, ceil, trunc or odd. Out of range an integer keeps the low bits (floats through INT32;
        NaN is 0) and a float is infinite; with ``saturate`` each is the nearest there is. `SupplyScratch` makes
        ``tmp``.
        """

    @staticmethod
    def ci(
        start: ScalarLike,
        shape: Dims,
        dtype: DataType = ...,
        descending: bool = ...,
        *,
        tmp: Tile | None = ...,
        span: Span | None = ...,
    ) -> Tile:
        """One row of consecutive integers from ``start``, up or ``descending``. `SupplyScratch` makes ``tmp`` where the
        target works in scratch.
        """

    @staticmethod
    def cmp(lhs: Tile, rhs: Tile | ScalarLike, cmp_type: int = ..., *, span: Span | None = ...) -> Tile:
        """Compare two tiles: ``cmp_type`` 0 eq, 1 ne, 2 lt, 3 le, 4 gt, 5 ge. The value is a packed mask, one bit an
        element.
        """

    @staticmethod
    def cmp_wide(lhs: Tile, rhs: Tile, cmp_type: int = ..., *, span: Span | None = ...) -> Tile:
        """`cmp` to a mask of the operands' shape."""

    @staticmethod
    def cmps(lhs: Tile, rhs: ScalarLike, cmp_type: int = ..., *, span: Span | None = ...) -> Tile:
        """Compare a tile with a scalar; modes and mask as `cmp`."""

    @staticmethod
    def col_argmax(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, the index of the maximum of the valid part (INT32), the first of equals. ``tmp_tile`` is
        scratch.
        """

    @staticmethod
    def col_argmin(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, the index of the minimum of the valid part (INT32), the first of equals. ``tmp_tile`` is
        scratch.
        """

    @staticmethod
    def col_expand(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """A tile of ``tile``'s shape whose every row is ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_add(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, tile + vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_div(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, tile / vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_expdif(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, exp(tile - vector), where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_max(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, the greater of tile and vector, where vector is that column's element of ``col_vec`` ``[1,
        N]``.
        """

    @staticmethod
    def col_expand_min(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, the smaller of tile and vector, where vector is that column's element of ``col_vec`` ``[1,
        N]``.
        """

    @staticmethod
    def col_expand_mul(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, tile * vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_sub(tile: Tile, col_vec: Tile, *, span: Span | None = ...) -> Tile:
        """Column by column, tile - vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_max(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The maximum of each column's valid part, as a row ``[1, N]``."""

    @staticmethod
    def col_min(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The minimum of each column's valid part, as a row ``[1, N]``."""

    @staticmethod
    def col_prod(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The product of each column's valid part, as a row ``[1, N]``."""

    @staticmethod
    def col_sum(tile: Tile, tmp_tile: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """The sum of each column's valid part, as a row ``[1, N]``: one row after the other, or as a binary tree when
        scratch ``tmp_tile`` of the tile's dtype and at least its shape is given.
        """

    @staticmethod
    def concat(src0: Tile, src1: Tile, *, span: Span | None = ...) -> Tile:
        """Two tiles of the same rows side by side."""

    @staticmethod
    def concat_idx(src0: Tile, src1: Tile, count0: Tile, count1: Tile, *, span: Span | None = ...) -> Tile:
        """Row by row, the first ``count0`` columns of ``src0`` and then the first ``count1`` of ``src1``.

        The counts are the first column of row-major INT8 tiles; what they leave of a row is not written.
        """

    @staticmethod
    def cos(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The cosine of each element in radians (FP32). `LowerCompositeOps` writes it out."""

    @staticmethod
    def create(
        shape: Dims,
        dtype: DataType,
        target_memory: MemorySpace = ...,
        transpose: bool = ...,
        flat_layout: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Allocate a tile of ``shape`` in ``target_memory``, contents undefined.

        In ``Mat``, ``transpose`` gives a 2D tile the layout of a transposed matmul operand and ``flat_layout`` an
        unboxed one.
        """

    @staticmethod
    def create_tile(
        shape: Dims,
        dtype: DataType,
        target_memory: MemorySpace = ...,
        transpose: bool = ...,
        flat_layout: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Allocate a tile of ``shape`` in ``target_memory``, contents undefined.

        In ``Mat``, ``transpose`` gives a 2D tile the layout of a transposed matmul operand and ``flat_layout`` an
        unboxed one.
        """

    @staticmethod
    def dequant(tile: Tile, scale: Tile, offset: Tile, *, span: Span | None = ...) -> Tile:
        """(tile - offset) * scale in FP32.

        ``scale`` and ``offset`` are FP32 columns ``[M, 1]``, one value a row.
        """

    @staticmethod
    def div(lhs: Tile, rhs: Tile | ScalarLike, high_precision: bool = ..., *, span: Span | None = ...) -> Tile:
        """Element by element, lhs / rhs; a scalar ``rhs`` is `divs`. ``high_precision`` (FP16, FP32) is slower and
        closer.
        """

    @staticmethod
    def divs(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs / rhs, of a tile and a scalar."""

    @staticmethod
    def exp(tile: Tile, *, span: Span | None = ...) -> Tile:
        """e to the power of each element."""

    @staticmethod
    def expands(target: Tile, scalar: ScalarLike, *, span: Span | None = ...) -> Tile:
        """A tile of ``target``'s shape, dtype and valid region filled with ``scalar``."""

    @staticmethod
    def extract(
        src: Tile,
        index_row: Index,
        index_col: Index,
        shape: Dims,
        target_memory: MemorySpace = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Copy the ``shape`` window of a 2D tile at (``index_row``, ``index_col``) to another memory."""

    @staticmethod
    def extract_fp(
        src: Tile,
        scale: Tile,
        index_row: Index,
        index_col: Index,
        shape: Dims,
        dtype: DataType,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Quantize the ``shape`` window of an accumulator at (``index_row``, ``index_col``) to ``dtype`` on its way to
        Mat.

        ``scale`` is ``[1, N]`` in Scaling, one 64-bit word a column of the accumulator, which says factor, offset
        and sign: `pypto.layouts.fix_pipe_words` packs them.
        """

    @staticmethod
    def fillpad(tile: Tile, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tile:
        """A copy in which the cells outside the valid region hold ``pad_value`` (zero, max or min of the dtype), all
        valid.
        """

    @staticmethod
    def fillpad_expand(tile: Tile, shape: Dims, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tile:
        """A larger copy of ``shape`` whose cells outside the source's valid region hold ``pad_value``, all valid."""

    @staticmethod
    def fillpad_inplace(tile: Tile, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tile:
        """Fill the cells outside the valid region with ``pad_value`` in place."""

    @staticmethod
    def fmod(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, the remainder of lhs / rhs with the sign of lhs, of two tiles of one shape and dtype; a
        scalar ``rhs`` is `fmods`.
        """

    @staticmethod
    def fmods(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, the remainder of lhs / rhs with the sign of lhs, of a tile and a scalar; a literal takes
        the tile's dtype.
        """

    @staticmethod
    def full(shape: Dims, dtype: DataType, value: ScalarLike, *, span: Span | None = ...) -> Tile:
        """A tile of ``shape`` filled with the constant ``value``."""

    @staticmethod
    def gather(src: Tile, indices: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
        """The elements of ``src`` at flat ``indices``, in the indices' shape, whose columns are all valid; ``tmp`` is
        scratch of the indices' dtype and shape.
        """

    @staticmethod
    def gather_compare(
        src: Tile,
        kvalue: ScalarLike,
        tmp: Tile,
        cmp_mode: str | int = ...,
        offset: int = ...,
        out_cols: int = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """Row by row, the indices (plus ``offset``) of elements that compare with ``kvalue``, and how many they are: at
        most ``out_cols``. What follows them in a row is not written. The 910B uses all of ``tmp``.
        """

    @staticmethod
    def gather_mask(
        src: Tile,
        mask_pattern: Any,
        output_dtype: DataType | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """The columns `MaskPattern` marks, side by side; ``output_dtype`` of the same width reinterprets them."""

    @staticmethod
    def gather_row(
        acc: Tile,
        src: Tensor,
        dst_offset: Dims,
        src_offset: Dims,
        shapes: Dims,
        transpose: bool = ...,
        *,
        valid_shape: Dims | None = ...,
        span: Span | None = ...,
    ) -> Tile:
        """Load the window of ``src`` at ``src_offset`` into ``acc`` at ``dst_offset``, as columns when ``transpose``.
        """

    @staticmethod
    def gatherb(src: Tile, offset: Tile, output_dtype: DataType | None = ..., *, span: Span | None = ...) -> Tile:
        """The 32-byte blocks of ``src`` at byte ``offset``\\ s (UINT32, a multiple of 8 a row), side by side."""

    @staticmethod
    def gemv(lhs: Tile, rhs: Tile, acc_phase: str = ..., *, span: Span | None = ...) -> Tile:
        """lhs @ rhs of a one-row Left ``[1, K]`` and a Right ``[K, N]`` tile: one valid row of a 16-row accumulator.

        ``acc_phase`` is partial while more of K follows, final for the last part.
        """

    @staticmethod
    def gemv_acc(acc: Tile, lhs: Tile, rhs: Tile, acc_phase: str = ..., *, span: Span | None = ...) -> Tile:
        """acc += lhs @ rhs in place, operands as `gemv`."""

    @staticmethod
    def gemv_bias(lhs: Tile, rhs: Tile, bias: Tile, acc_phase: str = ..., *, span: Span | None = ...) -> Tile:
        """lhs @ rhs + bias, operands as `gemv` and `matmul_bias`."""

    @staticmethod
    def gemv_mx(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile, *, span: Span | None = ...) -> Tile:
        """(lhs * lhs_scale) @ (rhs * rhs_scale) in FP32, one FP8E8M0 scale for each 32 of K. lhs has one valid row, of
        one or of sixteen; K is a multiple of 64, N of 32.
        """

    @staticmethod
    def gemv_mx_acc(
        acc: Tile,
        lhs: Tile,
        lhs_scale: Tile,
        rhs: Tile,
        rhs_scale: Tile,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """acc += the product of `gemv_mx`, in place."""

    @staticmethod
    def gemv_mx_bias(
        lhs: Tile,
        lhs_scale: Tile,
        rhs: Tile,
        rhs_scale: Tile,
        bias: Tile,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """The product of `gemv_mx` plus a ``[1, N]`` FP32 row in Bias."""

    @staticmethod
    def get_block_idx(*, span: Span | None = ...) -> Scalar:
        """Index of the executing block."""

    @staticmethod
    def get_block_num(*, span: Span | None = ...) -> Scalar:
        """Number of blocks running."""

    @staticmethod
    def get_subblock_idx(*, span: Span | None = ...) -> Scalar:
        """Index of the executing vector core in its core group."""

    @staticmethod
    def histogram(tile: Tile, index: Tile, byte: int = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, how often each value of byte ``byte`` (0 lowest) occurs, in 256 UINT32 columns (Ascend950).

        Only elements whose bytes above are those of ``index`` count: none for the highest byte. For UINT16 tiles
        ``index`` is a UINT8 column ``[M, 1]``; for UINT32 it has a row for each byte above, the highest first, the
        same for every row.
        """

    @staticmethod
    def load(
        tensor: Tensor,
        offsets: Dims,
        shapes: Dims,
        valid_shape: Dims | None = ...,
        target_memory: MemorySpace = ...,
        clamp: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Copy the window of ``tensor`` at ``offsets`` into a new tile of shape ``shapes``.

        ``valid_shape`` is what is read, the whole window by default, and must lie inside the tensor; ``clamp`` cuts
        it at the tensor's edge. A load into Vec, the default, goes to Mat where its consumers cannot be reached from
        Vec.
        """

    @staticmethod
    def log(tile: Tile, high_precision: bool = ..., *, span: Span | None = ...) -> Tile:
        """The natural logarithm of each element (FP16, FP32)."""

    @staticmethod
    def lrelu(tile: Tile, slope: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Each element, or ``slope`` (an FP32 scalar) times it where it is negative."""

    @staticmethod
    def matmul(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
        """lhs @ rhs of a Left ``[M, K]`` and a Right ``[K, N]`` tile: FP32 for floating point, INT32 for integers."""

    @staticmethod
    def matmul_acc(
        acc: Tile,
        lhs: Tile,
        rhs: Tile,
        init_cond: ScalarLike | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """acc += lhs @ rhs in place. Where ``init_cond`` (a BOOL scalar) holds, acc is overwritten instead."""

    @staticmethod
    def matmul_bias(lhs: Tile, rhs: Tile, bias: Tile, *, span: Span | None = ...) -> Tile:
        """lhs @ rhs + bias, where ``bias`` is a ``[1, N]`` row of the accumulator's dtype in Bias."""

    @staticmethod
    def matmul_mx(lhs: Tile, lhs_scale: Tile, rhs: Tile, rhs_scale: Tile, *, span: Span | None = ...) -> Tile:
        """(lhs * lhs_scale) @ (rhs * rhs_scale) in FP32, one FP8E8M0 scale for each 32 of K. M is a multiple of 16, K
        is a multiple of 64, N of 32.
        """

    @staticmethod
    def matmul_mx_acc(
        acc: Tile,
        lhs: Tile,
        lhs_scale: Tile,
        rhs: Tile,
        rhs_scale: Tile,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """acc += the product of `matmul_mx`, in place."""

    @staticmethod
    def matmul_mx_bias(
        lhs: Tile,
        lhs_scale: Tile,
        rhs: Tile,
        rhs_scale: Tile,
        bias: Tile,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """The product of `matmul_mx` plus a ``[1, N]`` FP32 row in Bias."""

    @staticmethod
    def maximum(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, the greater of lhs and rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is
        `maximums`.
        """

    @staticmethod
    def maximums(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, the greater of lhs and rhs, of a tile and a scalar; a literal takes the tile's dtype."""

    @staticmethod
    def mgather(
        mem: Tensor,
        idx: Tile | Tensor,
        coalesce: str | int = ...,
        target_memory: MemorySpace = ...,
        gather_oob: str | int = ...,
        *,
        scratch: Tile | Tensor | None = ...,
        valid_shape: Dims | None = ...,
        span: Span | None = ...,
    ) -> Tile:
        """Gather from global memory: rows of ``mem`` (coalesce row) or flat elements (elem) at INT32 ``idx``.

        Into Vec with an index tile, into Mat with an index tensor; element gathers into Mat stage through
        ``scratch``. ``gather_oob`` says what an index outside gives: undefined, clamp, wrap or zero.
        """

    @staticmethod
    def minimum(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, the smaller of lhs and rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is
        `minimums`.
        """

    @staticmethod
    def minimums(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, the smaller of lhs and rhs, of a tile and a scalar; a literal takes the tile's dtype."""

    @staticmethod
    def move(
        src: Tile,
        target_memory: MemorySpace = ...,
        blayout: TileLayout | None = ...,
        slayout: TileLayout | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Copy a tile to another on-chip memory, the only way into Left, Right and Bias.

        The result is laid out as its memory demands; ``blayout`` and ``slayout`` override that.
        """

    @staticmethod
    def move_fp(src: Tile, scale: Tile, dtype: DataType, *, span: Span | None = ...) -> Tile:
        """Quantize an accumulator to ``dtype`` on its way to Mat.

        ``scale`` is ``[1, N]`` in Scaling, one 64-bit word a column of the accumulator, which says factor, offset
        and sign: `pypto.layouts.fix_pipe_words` packs them.
        """

    @staticmethod
    def mrgsort(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
        """Merge the sorted runs of ``block_len`` in one operand, or two to four sorted operands."""

    @staticmethod
    def mrgsort_format1(src: Tile, block_len: Index, *, span: Span | None = ...) -> Tile:
        """Merge each four sorted runs of ``block_len`` elements of value-index pairs to one."""

    @staticmethod
    def mrgsort_format2(
        src0: Tile,
        src1: Tile,
        src2: Tile | None = ...,
        src3: Tile | None = ...,
        tmp: Tile | None = ...,
        executed: Tile | None = ...,
        exhausted: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Merge two to four sorted tiles of value-index pairs to one."""

    @staticmethod
    def mscatter(src: Tile, idx: Tile, output_tensor: Tensor, *, span: Span | None = ...) -> Tensor:
        """Write the elements of ``src`` into ``output_tensor`` at flat indices ``idx`` (INT32)."""

    @staticmethod
    def mul(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs * rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is `muls`."""

    @staticmethod
    def muls(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs * rhs, of a tile and a scalar; a literal takes the tile's dtype."""

    @staticmethod
    def neg(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The negative of each element."""

    @staticmethod
    def not_(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The bitwise complement of each element, an integer; 910B has 16-bit ones only."""

    @staticmethod
    def or_(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Bitwise or of two tiles, element by element."""

    @staticmethod
    def ors(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Bitwise or of a tile and a scalar."""

    @staticmethod
    def part_add(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
        """The sum where both tiles hold data, the one that does elsewhere."""

    @staticmethod
    def part_argmax(
        lhs: Tile,
        rhs: Tile,
        lhs_index: Tile,
        rhs_index: Tile,
        index: Tile,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Element by element, the greater of lhs and rhs, or the one there is; its index goes into ``index``.

        Of equal elements the second is taken. Indices are INT32 or UINT32 tiles beside their values.
        """

    @staticmethod
    def part_argmin(
        lhs: Tile,
        rhs: Tile,
        lhs_index: Tile,
        rhs_index: Tile,
        index: Tile,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Element by element, the smaller of lhs and rhs, or the one there is; its index goes into ``index``.

        Of equal elements the second is taken. Indices are INT32 or UINT32 tiles beside their values.
        """

    @staticmethod
    def part_max(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
        """The maximum where both tiles hold data, the one that does elsewhere."""

    @staticmethod
    def part_min(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
        """The minimum where both tiles hold data, the one that does elsewhere."""

    @staticmethod
    def part_mul(lhs: Tile, rhs: Tile, *, span: Span | None = ...) -> Tile:
        """The product where both tiles hold data, the one that does elsewhere."""

    @staticmethod
    def pow(
        lhs: Tile,
        rhs: Tile,
        tmp: Tile | None = ...,
        high_precision: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Element by element, lhs to the power rhs; a scalar exponent is `pows`.

        Floats need ``tmp``, a scratch tile of the base's shape and dtype; integers take none, wrap, and have no
        negative exponents. ``high_precision`` (floats, Ascend950) is slower and closer.
        """

    @staticmethod
    def pows(
        lhs: Tile,
        rhs: ScalarLike,
        tmp: Tile | None = ...,
        high_precision: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Element by element, lhs to the power of a scalar.

        Floats need ``tmp``, a scratch tile of the base's shape and dtype; integers take none, wrap, and have no
        negative exponents. ``high_precision`` (floats, Ascend950) is slower and closer.
        """

    @staticmethod
    def prefetch(
        tensor: Tensor,
        offsets: Dims,
        shapes: Dims,
        valid_shape: Dims | None = ...,
        target_memory: MemorySpace = ...,
        clamp: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Start copying a window of ``tensor`` into a tile, as `load` does, without later operators waiting for it.

        A hint: load the window before computing with it.
        """

    @staticmethod
    def prelu(src: Tile, slope: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
        """Each element, or slope * element where it is negative; ``tmp`` is scratch."""

    @staticmethod
    def print(tile: Tile, format: str = ..., *, span: Span | None = ...) -> Any:
        """Print a tile, its whole buffer, with what is outside the valid region behind a bar.

        ``format`` is width8_precision4, width8_precision2 or width10_precision6. A device prints only where the
        kernel was built for it.
        """

    @staticmethod
    def quant(
        tile: Tile,
        scale: Tile,
        offset: Tile | None = ...,
        tmp: Tile | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """tile * scale rounded to the nearest even integer and clamped to INT8; with ``offset``, tile * scale + offset
        clamped to UINT8.

        ``scale`` and ``offset`` are FP32 columns ``[M, 1]``, one value a row: ``scale`` is the inverse of the
        quantization step. ``tmp`` is scratch of the tile's shape. NaN gives 0.
        """

    @staticmethod
    def quant_mx(tile: Tile, exp: Tile, max: Tile, scaling: Tile, axis: int = ..., *, span: Span | None = ...) -> Tile:
        """The bytes of the FP8E4M3FN elements of a block-scaled (MX) operand, as INT8, and into ``exp`` those of its
        FP8E8M0 scales, as UINT8: one for each 32 elements along ``axis``.

        A scale is the exponent of the group's greatest magnitude less 8; elements are divided by it, rounded to the
        nearest, ties to even, and clamped to 448. ``max`` gets the magnitudes and ``scaling`` what elements were
        multiplied with, FP32. A group with NaN is all NaN.
        """

    @staticmethod
    def random(
        key0: ScalarLike,
        key1: ScalarLike,
        counter0: ScalarLike,
        counter1: ScalarLike,
        counter2: ScalarLike,
        counter3: ScalarLike,
        shape: Dims,
        valid_shape: Dims | None = ...,
        dtype: DataType = ...,
        rounds: int = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Random 32-bit integers of a counter-based generator: two key words, four counter words, 7 or 10 rounds."""

    @staticmethod
    def read(tile: Tile, indices: Dims | Index, *, span: Span | None = ...) -> Any:
        """The element of ``tile`` at ``indices``."""

    @staticmethod
    def recip(tile: Tile, high_precision: bool = ..., *, span: Span | None = ...) -> Tile:
        """1 / each element; ``high_precision`` takes FP16 and FP32."""

    @staticmethod
    def reinterpret_view(data: Tile, dtype: DataType, shape: Dims | None = ..., *, span: Span | None = ...) -> Tile:
        """The same bytes as elements of ``dtype``, without moving them; the contiguous dimension scales unless
        ``shape`` says otherwise.
        """

    @staticmethod
    def relu(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The greater of each element and 0."""

    @staticmethod
    def rem(lhs: Tile, rhs: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
        """Element by element, the remainder of lhs / rhs with the sign of rhs, using ``tmp`` as scratch."""

    @staticmethod
    def rems(lhs: Tile, rhs: ScalarLike, tmp: Tile, *, span: Span | None = ...) -> Tile:
        """Element by element, the remainder of lhs / rhs of a tile and a scalar, using ``tmp`` as scratch."""

    @staticmethod
    def reshape(tile: Tile, shape: Dims, *, span: Span | None = ...) -> Tile:
        """The same elements with another shape, without moving them. The valid region must be a rectangle there too."""

    @staticmethod
    def row_argmax(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """Row by row, the index of the maximum of the valid part (INT32), the first of equals. ``tmp_tile`` is scratch
        of the tile's dtype and shape.
        """

    @staticmethod
    def row_argmin(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """Row by row, the index of the minimum of the valid part (INT32), the first of equals. ``tmp_tile`` is scratch
        of the tile's dtype and shape.
        """

    @staticmethod
    def row_expand(tile: Tile, row_vec: Tile, *, span: Span | None = ...) -> Tile:
        """A tile of ``tile``'s shape whose rows repeat that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_add(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, tile + vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
        scratch.
        """

    @staticmethod
    def row_expand_div(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, tile / vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
        scratch.
        """

    @staticmethod
    def row_expand_expdif(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, exp(tile - vector), where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is
        optional scratch.
        """

    @staticmethod
    def row_expand_max(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, the greater of tile and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``;
        ``tmp`` is optional scratch.
        """

    @staticmethod
    def row_expand_min(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, the smaller of tile and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``;
        ``tmp`` is optional scratch.
        """

    @staticmethod
    def row_expand_mul(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, tile * vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
        scratch.
        """

    @staticmethod
    def row_expand_sub(tile: Tile, row_vec: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Row by row, tile - vector, where vector is that row's element of ``row_vec`` ``[M, 1]``; ``tmp`` is optional
        scratch.
        """

    @staticmethod
    def row_max(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """The maximum of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and
        at least its shape.
        """

    @staticmethod
    def row_min(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """The minimum of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and
        at least its shape.
        """

    @staticmethod
    def row_prod(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """The product of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and
        at least its shape.
        """

    @staticmethod
    def row_sum(tile: Tile, tmp_tile: Tile, *, span: Span | None = ...) -> Tile:
        """The sum of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype and at
        least its shape.
        """

    @staticmethod
    def rsqrt(tile: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """1 / the square root of each element. A scratch tile ``tmp`` of the tile's shape selects the precise form."""

    @staticmethod
    def scatter(dst: Tile, src: Tile, indexes: Tile, *, span: Span | None = ...) -> Tile:
        """Write the elements of ``src`` into ``dst`` at flat ``indexes``, zeros elsewhere; the value is ``dst`` as
        written. `scatter_update` and `tensor.scatter` keep the other elements.
        """

    @staticmethod
    def scatter_mask(dst: Tile, src: Tile, mask_pattern: Any, *, span: Span | None = ...) -> Tile:
        """Write the columns of ``src`` into those of ``dst`` that `MaskPattern` marks; the others become zero."""

    @staticmethod
    def scatter_update(input: Tile, dim: int, index: Tile, src: Tile, *, span: Span | None = ...) -> Tile:
        """Replace the rows of ``input`` that ``index`` names by the rows of ``src``, ``dim`` -2."""

    @staticmethod
    def sel(mask: Tile, lhs: Tile, rhs: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
        """lhs where the packed mask's bit is set, rhs elsewhere; ``tmp`` is scratch."""

    @staticmethod
    def sels(mask: Tile, src: Tile, tmp: Tile, scalar: ScalarLike, *, span: Span | None = ...) -> Tile:
        """src where the packed mask's bit is set, ``scalar`` elsewhere; ``tmp`` is scratch."""

    @staticmethod
    def set_validshape(tile: Tile, valid_rows: Index, valid_cols: Index, *, span: Span | None = ...) -> Tile:
        """The same 2D tile with ``valid_rows`` x ``valid_cols`` of it holding data. Nothing moves."""

    @staticmethod
    def shl(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Left shift of two tiles, element by element."""

    @staticmethod
    def shls(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Left shift of a tile and a scalar."""

    @staticmethod
    def shr(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Right shift, arithmetic for signed elements, of two tiles, element by element."""

    @staticmethod
    def shrs(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Right shift, arithmetic for signed elements, of a tile and a scalar."""

    @staticmethod
    def sin(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The sine of each element in radians (FP32). `LowerCompositeOps` writes it out."""

    @staticmethod
    def slice(
        tile: Tile,
        shape: Dims,
        offset: Dims,
        valid_shape: Dims | None = ...,
        drop_dims: Dims | None = ...,
        pad_value: PadValue | float = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """The window of static ``shape`` at ``offset``: a view of the tile, copied where an instruction cannot address
        it.

        ``valid_shape`` narrows it, ``drop_dims`` erases axes of size 1 (two dimensions always remain).
        """

    @staticmethod
    def sort32(src: Tile, idx: Tile, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """Sort each block of 32 elements in descending order to pairs of value and ``idx``."""

    @staticmethod
    def sqrt(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The square root of each element."""

    @staticmethod
    def store(
        tile: Tile,
        offsets: Dims,
        output_tensor: Tensor,
        shapes: Dims | None = ...,
        atomic: AtomicType = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Copy the valid part of ``tile`` into ``output_tensor`` at ``offsets``; the value is the tensor as written.

        ``shapes`` is the window's shape in the tensor where the tile has another rank. ``atomic=pl.AtomicType.Add``
        adds instead of overwriting.
        """

    @staticmethod
    def store_fp(tile: Tile, scale: Tile, offsets: Dims, output_tensor: Tensor, *, span: Span | None = ...) -> Tensor:
        """Quantize an accumulator to the dtype of ``output_tensor`` and write it there at ``offsets``; the value is the
        tensor as written.

        ``scale`` is ``[1, N]`` in Scaling, one 64-bit word a column of the accumulator, which says factor, offset
        and sign: `pypto.layouts.fix_pipe_words` packs them.
        """

    @staticmethod
    def sub(lhs: Tile, rhs: Tile | ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs - rhs, of two tiles of one shape and dtype; a scalar ``rhs`` is `subs`."""

    @staticmethod
    def subc(lhs: Tile, rhs: Tile, rhs2: Tile, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs - rhs + rhs2."""

    @staticmethod
    def subs(lhs: Tile, rhs: ScalarLike, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs - rhs, of a tile and a scalar; a literal takes the tile's dtype."""

    @staticmethod
    def subsc(lhs: Tile, rhs: ScalarLike, rhs2: Tile, *, span: Span | None = ...) -> Tile:
        """Element by element, lhs - rhs + rhs2, where rhs is a scalar."""

    @staticmethod
    def tget_scale_addr(dst_scale: Tile, src: Tile, *, span: Span | None = ...) -> Tile:
        """Bind a scale tile to the address the hardware reads for ``src``. `InsertMxScaleAddr` writes these."""

    @staticmethod
    def tpop_from_aic(
        shape: Dims | None = ...,
        dtype: DataType | None = ...,
        split: int = ...,
        id: int | None = ...,
        lane_stride: int | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Pop the next tile the cube core pushed, into Vec; give its slot back with pl.system.tfree_to_aic."""

    @staticmethod
    def tpop_from_aiv(
        shape: Dims | None = ...,
        dtype: DataType | None = ...,
        split: int = ...,
        id: int | None = ...,
        lane_stride: int | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """Pop the next tile the vector core pushed, into Mat; give its slot back with pl.system.tfree_to_aiv."""

    @staticmethod
    def tpush_to_aic(
        tile: Tile,
        split: int = ...,
        id: int | None = ...,
        lane_stride: int | None = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """Push a tile from the vector core to the cube core through pipe ``id``; ``split`` says how the lanes divide
        it: 0 not at all, 1 by rows, 2 by columns.
        """

    @staticmethod
    def tpush_to_aiv(
        tile: Tile,
        split: int = ...,
        id: int | None = ...,
        lane_stride: int | None = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """Push a tile from the cube core to the vector core through pipe ``id``; ``split`` says how the lanes divide
        it: 0 not at all, 1 by rows, 2 by columns.
        """

    @staticmethod
    def transpose(tile: Tile, axis1: Index, axis2: Index, tmp: Tile | None = ..., *, span: Span | None = ...) -> Tile:
        """A copy with ``axis1`` and ``axis2`` exchanged. `FlattenTileNdTo2D` supplies the scratch ``tmp``."""

    @staticmethod
    def transpose_view(tile: Tile, *, span: Span | None = ...) -> Tile:
        """The last two dimensions exchanged, without moving data: each order of the layout turns into the other."""

    @staticmethod
    def tri(
        diagonal: ScalarLike,
        shape: Dims,
        valid_shape: Dims | None = ...,
        dtype: DataType = ...,
        upper: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tile:
        """1 on and below the diagonal shifted by ``diagonal``, 0 elsewhere; ``upper`` takes the other side."""

    @staticmethod
    def write(tile: Tile, indices: Dims | Index, value: ScalarLike, *, span: Span | None = ...) -> Any:
        """Set the element of ``tile`` at ``indices`` to ``value``."""

    @staticmethod
    def xor(lhs: Tile, rhs: Tile, tmp: Tile, *, span: Span | None = ...) -> Tile:
        """Bitwise exclusive or of two tiles, element by element, using ``tmp`` as scratch."""

    @staticmethod
    def xors(lhs: Tile, rhs: ScalarLike, tmp: Tile, *, span: Span | None = ...) -> Tile:
        """Bitwise exclusive or of a tile and a scalar, using ``tmp`` as scratch."""

class tensor:
    """Operators ``pl.tensor.*``."""

    @staticmethod
    def abs(input: Tensor, *, span: Span | None = ...) -> Tensor:
        """The absolute value of each element."""

    @staticmethod
    def add(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs + rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `adds`."""

    @staticmethod
    def adds(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs + rhs, of a tensor and a scalar: FP32 with a floating-point literal."""

    @staticmethod
    def aic_gather(input: Tensor, split: int, lane_stride: int | None = ..., *, span: Span | None = ...) -> Tensor:
        """The lanes' shares of a value joined for the cube, twice the size where it is split."""

    @staticmethod
    def aiv_shard(input: Tensor, split: int, lane_stride: int | None = ..., *, span: Span | None = ...) -> Tensor:
        """This lane's share of a value the cube made, half of it where the region splits."""

    @staticmethod
    def and_(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Bitwise and of two integer tensors of one shape; a scalar ``rhs`` is `ands`."""

    @staticmethod
    def ands(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Bitwise and of an integer tensor and a scalar."""

    @staticmethod
    def arange(
        start: ScalarLike,
        shape: Dims,
        dtype: DataType = ...,
        descending: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """One row of consecutive integers from ``start``, up or ``descending``."""

    @staticmethod
    def assemble(
        target: Tensor,
        source: Tensor,
        offset: Dims,
        atomic: AtomicType = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Write ``source`` into ``target`` at ``offset``; the value is the target as written.
        ``atomic=pl.AtomicType.Add`` adds instead of overwriting.
        """

    @staticmethod
    def cast(
        input: Tensor,
        target_type: DataType,
        mode: str | int = ...,
        saturate: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Convert each element to ``target_type``, rounding as ``mode`` says: none, rint (ties to even), round (ties
        away from zero), floor, ceil, trunc or odd. Out of range an integer keeps the low bits (floats through INT32;
        NaN is 0) and a float is infinite; with ``saturate`` each is the nearest there is.
        """

    @staticmethod
    def ci(
        start: ScalarLike,
        shape: Dims,
        dtype: DataType = ...,
        descending: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """One row of consecutive integers from ``start``, up or ``descending``."""

    @staticmethod
    def cmp(lhs: Tensor, rhs: Tensor | ScalarLike, cmp_type: int = ..., *, span: Span | None = ...) -> Tensor:
        """1 where the comparison holds, 0 elsewhere, in the operands' dtype. ``cmp_type``: 0 to 5 are eq, ne, lt, le,
        gt, ge.
        """

    @staticmethod
    def col_argmax(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """In each column, the index of the maximum (INT32), the first of equals, as a row ``[1, N]``."""

    @staticmethod
    def col_argmin(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """In each column, the index of the minimum (INT32), the first of equals, as a row ``[1, N]``."""

    @staticmethod
    def col_expand(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """A tensor of ``input``'s shape whose every row is ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_add(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Column by column, input + vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_div(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Column by column, input / vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_expdif(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Column by column, exp(input - vector), where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_max(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Column by column, the greater of input and vector, where vector is that column's element of ``col_vec`` ``[1,
        N]``.
        """

    @staticmethod
    def col_expand_min(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Column by column, the smaller of input and vector, where vector is that column's element of ``col_vec`` ``[1,
        N]``.
        """

    @staticmethod
    def col_expand_mul(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Column by column, input * vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_expand_sub(input: Tensor, col_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Column by column, input - vector, where vector is that column's element of ``col_vec`` ``[1, N]``."""

    @staticmethod
    def col_max(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The maximum along each column's valid part, as a row ``[1, N]``."""

    @staticmethod
    def col_min(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The minimum along each column's valid part, as a row ``[1, N]``."""

    @staticmethod
    def col_prod(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The product along each column's valid part, as a row ``[1, N]``."""

    @staticmethod
    def col_sum(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The sum along each column's valid part, as a row ``[1, N]``."""

    @staticmethod
    def concat(src0: Tensor, src1: Tensor, *, span: Span | None = ...) -> Tensor:
        """Two tensors of the same rows side by side."""

    @staticmethod
    def cos(input: Tensor, *, span: Span | None = ...) -> Tensor:
        """The cosine of each element in radians (FP32)."""

    @staticmethod
    def create(
        shape: Dims,
        dtype: DataType,
        layout: TensorLayout = ...,
        manual_dep: bool = ...,
        init_value: float | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Allocate a tensor in global memory, filled with ``init_value`` if one is given.

        ``manual_dep`` keeps it out of automatic dependency tracking.
        """

    @staticmethod
    def create_l1(shape: Dims, dtype: DataType, transpose: bool = ..., *, span: Span | None = ...) -> Tensor:
        """Allocate a 2D tile in L1, named at tensor level; ``transpose`` lays it out as a transposed matmul operand."""

    @staticmethod
    def create_tensor(
        shape: Dims,
        dtype: DataType,
        layout: TensorLayout = ...,
        manual_dep: bool = ...,
        init_value: float | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Allocate a tensor in global memory, filled with ``init_value`` if one is given.

        ``manual_dep`` keeps it out of automatic dependency tracking.
        """

    @staticmethod
    def dim(tensor: Tensor, axis: Index, *, span: Span | None = ...) -> Any:
        """The tensor's size in dimension ``axis``."""

    @staticmethod
    def div(lhs: Tensor, rhs: Tensor | ScalarLike, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs / rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `divs`."""

    @staticmethod
    def divs(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs / rhs, of a tensor and a scalar: FP32 with a floating-point literal."""

    @staticmethod
    def exp(input: Tensor, *, span: Span | None = ...) -> Tensor:
        """e to the power of each element; FP32 for integers."""

    @staticmethod
    def expand_clone(input: Tensor, target: Tensor, *, span: Span | None = ...) -> Tensor:
        """``input`` repeated along its dimension of size 1 to ``target``'s shape, written to ``target``."""

    @staticmethod
    def expands(target: Tensor, scalar: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """A tensor of ``target``'s shape and dtype filled with ``scalar``."""

    @staticmethod
    def fillpad(input: Tensor, pad_value: PadValue | float = ..., *, span: Span | None = ...) -> Tensor:
        """A copy in which the cells outside the valid region hold ``pad_value`` (zero, max or min of the dtype), all
        valid.
        """

    @staticmethod
    def fillpad_expand(
        input: Tensor,
        shape: Dims,
        pad_value: PadValue | float = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """A larger copy of ``shape`` whose cells outside the source's valid region hold ``pad_value``, all valid."""

    @staticmethod
    def fmod(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, the remainder of lhs / rhs with the sign of lhs, broadcasting dimensions of size 1; a
        scalar ``rhs`` is `fmods`.
        """

    @staticmethod
    def fmods(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, the remainder of lhs / rhs with the sign of lhs, of a tensor and a scalar: FP32 with a
        floating-point literal.
        """

    @staticmethod
    def full(shape: Dims, dtype: DataType, value: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """A tensor of ``shape`` filled with the constant ``value``."""

    @staticmethod
    def gather(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
        """Elements at an ``index``, columns of a ``mask_pattern``, or indices of elements that compare with ``kvalue``.
        """

    @staticmethod
    def gather_compare(
        input: Tensor,
        kvalue: ScalarLike,
        cmp_mode: str | int = ...,
        offset: int = ...,
        out_cols: int = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Row by row, the indices (plus ``offset``) of elements that compare with ``kvalue``, and how many they are: at
        most ``out_cols``. What follows them in a row is not written.
        """

    @staticmethod
    def gather_mask(
        input: Tensor,
        mask_pattern: Any,
        output_dtype: DataType | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """The columns `MaskPattern` marks, side by side; ``output_dtype`` of the same width reinterprets them."""

    @staticmethod
    def gather_row(
        acc: Tensor,
        src: Tensor,
        dst_offset: Dims,
        src_offset: Dims,
        shapes: Dims,
        transpose: bool = ...,
        *,
        valid_shape: Dims | None = ...,
        span: Span | None = ...,
    ) -> Tensor:
        """Load the window of ``src`` at ``src_offset`` into ``acc`` (of `create_l1`) at ``dst_offset``, as columns when
        ``transpose``.
        """

    @staticmethod
    def get_block_idx(*, span: Span | None = ...) -> Scalar:
        """Index of the executing block."""

    @staticmethod
    def get_block_num(*, span: Span | None = ...) -> Scalar:
        """Number of blocks running."""

    @staticmethod
    def get_subblock_idx(*, span: Span | None = ...) -> Scalar:
        """Index of the executing vector core in its core group."""

    @staticmethod
    def log(input: Tensor, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The natural logarithm of each element (FP16, FP32)."""

    @staticmethod
    def matmul(
        lhs: Tensor,
        rhs: Tensor,
        out_dtype: DataType | None = ...,
        a_trans: bool = ...,
        b_trans: bool = ...,
        c_matrix_nz: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """lhs @ rhs, over broadcast leading batch dimensions. ``a_trans`` / ``b_trans`` exchange an operand's last two
        dimensions; ``out_dtype``, unless stated, is the operands' dtype for floating point and INT32 for integers.
        """

    @staticmethod
    def matmul_acc(
        acc: Tensor,
        lhs: Tensor,
        rhs: Tensor,
        init_cond: ScalarLike | None = ...,
        a_trans: bool = ...,
        b_trans: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """acc += lhs @ rhs. Where ``init_cond`` (a BOOL scalar) holds, acc is overwritten instead."""

    @staticmethod
    def maximum(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """The greater of lhs and rhs, element by element; ``rhs`` may be a scalar."""

    @staticmethod
    def minimum(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """The smaller of lhs and rhs, element by element; ``rhs`` may be a scalar."""

    @staticmethod
    def mrgsort(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
        """Merge the sorted runs of ``block_len`` in one operand, or two to four sorted operands."""

    @staticmethod
    def mrgsort_format1(src: Tensor, block_len: Index, *, span: Span | None = ...) -> Tensor:
        """Merge each four sorted runs of ``block_len`` elements of value-index pairs to one."""

    @staticmethod
    def mrgsort_format2(
        src0: Tensor,
        src1: Tensor,
        src2: Tensor | None = ...,
        src3: Tensor | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Merge two to four sorted tensors of value-index pairs to one."""

    @staticmethod
    def mul(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs * rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `muls`."""

    @staticmethod
    def muls(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs * rhs, of a tensor and a scalar: FP32 with a floating-point literal."""

    @staticmethod
    def neg(input: Tensor, *, span: Span | None = ...) -> Tensor:
        """The negative of each element."""

    @staticmethod
    def not_(input: Tensor, *, span: Span | None = ...) -> Tensor:
        """The bitwise complement of each element (int16, uint16)."""

    @staticmethod
    def or_(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Bitwise or of two integer tensors of one shape; a scalar ``rhs`` is `ors`."""

    @staticmethod
    def ors(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Bitwise or of an integer tensor and a scalar."""

    @staticmethod
    def paged_gather(
        src: Tensor,
        indices: Tensor,
        block_table: Tensor,
        block_size: int,
        size: int,
        max_indices: int,
        space: MemorySpace = ...,
        is_trans: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Rows of a paged pool on chip: row ``block_table[i // block_size] * block_size + i % block_size`` of ``src``
        for each of ``indices``, ``size`` columns wide.
        """

    @staticmethod
    def part_add(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
        """The sum where both tensors hold data, the one that does elsewhere."""

    @staticmethod
    def part_max(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
        """The maximum where both tensors hold data, the one that does elsewhere."""

    @staticmethod
    def part_min(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
        """The minimum where both tensors hold data, the one that does elsewhere."""

    @staticmethod
    def part_mul(lhs: Tensor, rhs: Tensor, *, span: Span | None = ...) -> Tensor:
        """The product where both tensors hold data, the one that does elsewhere."""

    @staticmethod
    def random(
        key0: ScalarLike,
        key1: ScalarLike,
        counter0: ScalarLike,
        counter1: ScalarLike,
        counter2: ScalarLike,
        counter3: ScalarLike,
        shape: Dims,
        valid_shape: Dims | None = ...,
        dtype: DataType = ...,
        rounds: int = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """Random 32-bit integers of a counter-based generator: two key words, four counter words, 7 or 10 rounds."""

    @staticmethod
    def read(tensor: Tensor, indices: Dims | Index, *, span: Span | None = ...) -> Any:
        """The element of ``tensor`` at ``indices``."""

    @staticmethod
    def recip(input: Tensor, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
        """1 / each element; FP32 for integers. ``high_precision`` takes FP16 and FP32."""

    @staticmethod
    def reinterpret_view(data: Tensor, dtype: DataType, shape: Dims | None = ..., *, span: Span | None = ...) -> Tensor:
        """The same bytes as elements of ``dtype``, without moving them; the contiguous dimension scales unless
        ``shape`` says otherwise.
        """

    @staticmethod
    def reshape(input: Tensor, shape: Dims, valid_shape: Dims | None = ..., *, span: Span | None = ...) -> Tensor:
        """The same elements with another shape, without moving them. ``valid_shape`` may narrow the valid region only.
        """

    @staticmethod
    def row_argmax(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """In each row, the index of the maximum (INT32), the first of equals, as a column ``[M, 1]``."""

    @staticmethod
    def row_argmin(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """In each row, the index of the minimum (INT32), the first of equals, as a column ``[M, 1]``."""

    @staticmethod
    def row_expand(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """A tensor of ``input``'s shape whose rows repeat that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_add(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Row by row, input + vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_div(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Row by row, input / vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_expdif(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Row by row, exp(input - vector), where vector is that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_max(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Row by row, the greater of input and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_min(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Row by row, the smaller of input and vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_mul(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Row by row, input * vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_expand_sub(input: Tensor, row_vec: Tensor, *, span: Span | None = ...) -> Tensor:
        """Row by row, input - vector, where vector is that row's element of ``row_vec`` ``[M, 1]``."""

    @staticmethod
    def row_max(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The maximum along each row's valid part, as a column ``[M, 1]``."""

    @staticmethod
    def row_min(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The minimum along each row's valid part, as a column ``[M, 1]``."""

    @staticmethod
    def row_prod(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The product along each row's valid part, as a column ``[M, 1]``."""

    @staticmethod
    def row_sum(input: Tensor, axis: int | None = ..., keep_dim: bool = ..., *, span: Span | None = ...) -> Tensor:
        """The sum along each row's valid part, as a column ``[M, 1]``."""

    @staticmethod
    def rsqrt(input: Tensor, high_precision: bool = ..., *, span: Span | None = ...) -> Tensor:
        """1 / the square root of each element; FP32 for integers. ``high_precision`` is slower and closer."""

    @staticmethod
    def scatter(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
        """Elements of ``src`` written at an ``index``, or columns written into ``dst`` where ``mask_pattern`` marks."""

    @staticmethod
    def scatter_mask(input: Tensor, dst: Tensor, mask_pattern: Any, *, span: Span | None = ...) -> Tensor:
        """A copy of ``dst`` with the columns of ``input`` written where `MaskPattern` marks."""

    @staticmethod
    def scatter_update(input: Tensor, dim: int, index: Tensor, src: Tensor, *, span: Span | None = ...) -> Tensor:
        """A copy of ``input`` whose rows that ``index`` names are the rows of ``src``, ``dim`` -2."""

    @staticmethod
    def set_validshape(input: Tensor, valid_rows: Index, valid_cols: Index, *, span: Span | None = ...) -> Tensor:
        """The same 2D tensor with ``valid_rows`` x ``valid_cols`` of it holding data. Nothing moves."""

    @staticmethod
    def shl(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Left shift of two integer tensors of one shape; a scalar ``rhs`` is `shls`."""

    @staticmethod
    def shls(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Left shift of an integer tensor and a scalar."""

    @staticmethod
    def shr(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Right shift, arithmetic for signed elements, of two integer tensors of one shape; a scalar ``rhs`` is `shrs`.
        """

    @staticmethod
    def shrs(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Right shift, arithmetic for signed elements, of an integer tensor and a scalar."""

    @staticmethod
    def sin(input: Tensor, *, span: Span | None = ...) -> Tensor:
        """The sine of each element in radians (FP32)."""

    @staticmethod
    def slice(
        input: Tensor,
        shape: Dims,
        offset: Dims,
        valid_shape: Dims | None = ...,
        drop_dims: Dims | None = ...,
        pad_value: PadValue | float = ...,
        clamp: bool = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """The window of ``shape`` at ``offset``: a view of the tensor.

        ``valid_shape`` narrows it, ``clamp`` cuts it at the tensor's edge, ``drop_dims`` erases axes of size 1.
        """

    @staticmethod
    def sort32(src: Tensor, idx: Tensor, *, span: Span | None = ...) -> Tensor:
        """Sort each block of 32 elements in descending order to pairs of value and ``idx``."""

    @staticmethod
    def sqrt(input: Tensor, *, span: Span | None = ...) -> Tensor:
        """The square root of each element; FP32 for integers."""

    @staticmethod
    def sub(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs - rhs, broadcasting dimensions of size 1; a scalar ``rhs`` is `subs`."""

    @staticmethod
    def subs(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Element by element, lhs - rhs, of a tensor and a scalar: FP32 with a floating-point literal."""

    @staticmethod
    def transpose(
        input: Tensor,
        axis1: Index,
        axis2: Index,
        valid_shape: Dims | None = ...,
        *,
        span: Span | None = ...,
    ) -> Tensor:
        """A view with ``axis1`` and ``axis2`` exchanged; ``valid_shape`` is in the result's coordinates."""

    @staticmethod
    def view(
        input: Tensor,
        shape: Dims | None = ...,
        valid_shape: Dims | None = ...,
        layout: TensorLayout | None = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """The same memory with another shape, another layout (ND and DN exchange the last two dimensions), or both."""

    @staticmethod
    def write(tensor: Tensor, indices: Dims | Index, value: ScalarLike, *, span: Span | None = ...) -> Any:
        """Set the element of ``tensor`` at ``indices`` to ``value``."""

    @staticmethod
    def xor(lhs: Tensor, rhs: Tensor | ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Bitwise exclusive or of two integer tensors of one shape; a scalar ``rhs`` is `xors`."""

    @staticmethod
    def xors(lhs: Tensor, rhs: ScalarLike, *, span: Span | None = ...) -> Tensor:
        """Bitwise exclusive or of an integer tensor and a scalar."""

class array:
    """Operators ``pl.array.*``."""

    @staticmethod
    def create(extent: Index, dtype: DataType, *, span: Span | None = ...) -> Any:
        """An array of ``extent`` zeros (a compile-time constant) on the core's stack."""

    @staticmethod
    def get_element(array: Array, index: Index, *, span: Span | None = ...) -> Any:
        """The array's element ``index``."""

    @staticmethod
    def update_element(array: Array, index: Index, value: ScalarLike, *, span: Span | None = ...) -> Array:
        """The array with element ``index`` set to ``value``."""

class system:
    """Operators ``pl.system.*``."""

    @staticmethod
    def aic_initialize_pipe(
        c2v_consumer_buf: ScalarLike = ...,
        v2c_consumer_buf: ScalarLike = ...,
        dir_mask: int = ...,
        slot_size: int = ...,
        slot_num: int | None = ...,
        local_slot_num: int | None = ...,
        id: int | None = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """Set up the aic side of a cross-core pipe: ``dir_mask`` 1 cube to vector, 2 vector to cube, 3 both; a buffer
        for each direction used.
        """

    @staticmethod
    def aiv_initialize_pipe(
        c2v_consumer_buf: ScalarLike = ...,
        v2c_consumer_buf: ScalarLike = ...,
        dir_mask: int = ...,
        slot_size: int = ...,
        slot_num: int | None = ...,
        local_slot_num: int | None = ...,
        id: int | None = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """Set up the aiv side of a cross-core pipe: ``dir_mask`` 1 cube to vector, 2 vector to cube, 3 both; a buffer
        for each direction used.
        """

    @staticmethod
    def available_aiv_count(*, span: Span | None = ...) -> Scalar:
        """How many vector cores the run has: a launch width that fills the device."""

    @staticmethod
    def available_cluster_count(*, span: Span | None = ...) -> Scalar:
        """How many core groups the run has: a launch width that fills the device."""

    @staticmethod
    def bar_all(*, span: Span | None = ...) -> None:
        """Wait for every pipe of the core."""

    @staticmethod
    def bar_m(*, span: Span | None = ...) -> None:
        """Wait for pipe M of the core."""

    @staticmethod
    def bar_v(*, span: Span | None = ...) -> None:
        """Wait for pipe V of the core."""

    @staticmethod
    def cacheinvalid(
        tensor: Tensor | None = ...,
        shapes: Dims | None = ...,
        offsets: Dims | None = ...,
        *,
        span: Span | None = ...,
    ) -> Any:
        """Invalidate the cache line at the start of a region of ``tensor``, or, without one, all global memory's lines.
        """

    @staticmethod
    def fence(*, span: Span | None = ...) -> None:
        """Order this core's accesses to global memory."""

    @staticmethod
    def import_peer_buffer(name: str, peer_func: str, *, span: Span | None = ...) -> Scalar:
        """The address of buffer ``name`` that ``peer_func`` reserves."""

    @staticmethod
    def reserve_buffer(name: str, size: int, base: int = ..., *, span: Span | None = ...) -> Any:
        """Reserve ``size`` bytes on the consumer's core as ring buffer ``name``; ``base`` -1 lets the compiler place
        it.
        """

    @staticmethod
    def set_ffts(workspace: Tensor, *, span: Span | None = ...) -> Any:
        """Name the workspace of the cross-core event unit, before the first event of a function."""

    @staticmethod
    def sync_dst(set_pipe: PipeType, wait_pipe: PipeType, event_id: int, *, span: Span | None = ...) -> None:
        """Wait for flag ``event_id`` from pipe ``set_pipe`` to ``wait_pipe`` of the core."""

    @staticmethod
    def sync_set(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
        """sync_set of cross-core event ``event_id``: a number from 0 to 13, or an index value."""

    @staticmethod
    def sync_src(set_pipe: PipeType, wait_pipe: PipeType, event_id: int, *, span: Span | None = ...) -> None:
        """Set flag ``event_id`` from pipe ``set_pipe`` to ``wait_pipe`` of the core."""

    @staticmethod
    def sync_wait(*args: Any, span: Span | None = ..., **kwargs: Any) -> Any:
        """sync_wait of cross-core event ``event_id``: a number from 0 to 13, or an index value."""

    @staticmethod
    def syncall(
        mode: str = ...,
        core_type: str = ...,
        *,
        gm_workspace: Tensor | None = ...,
        used_cores: ScalarLike | None = ...,
        span: Span | None = ...,
    ) -> Any:
        """Wait for all cores of ``core_type``: by hardware at full occupancy (hard), or through zeroed ``gm_workspace``
        (soft). ``used_cores`` says how many cores a soft one waits for, 0 all that were launched.
        """

    @staticmethod
    def task_dummy(*, span: Span | None = ...) -> Any:
        """A task that does nothing but wait for its dependencies."""

    @staticmethod
    def task_invalid(*, span: Span | None = ...) -> Any:
        """The id of no task."""

    @staticmethod
    def task_is_valid(task: ScalarLike, *, span: Span | None = ...) -> Any:
        """Whether ``task`` names a task."""

    @staticmethod
    def tfree_to_aic(tile: Tile, split: int | None = ..., id: int | None = ..., *, span: Span | None = ...) -> None:
        """Give the slot a popped tile is in back to aic."""

    @staticmethod
    def tfree_to_aiv(tile: Tile, split: int | None = ..., id: int | None = ..., *, span: Span | None = ...) -> None:
        """Give the slot a popped tile is in back to aiv."""

class prefetch:
    """Operators ``pl.prefetch.*``."""

    @staticmethod
    def async_prefetch(src: Tensor, ctx: Any, *, span: Span | None = ...) -> Any:
        """Start pulling flat ``src`` into L2; the value is the event of its completion."""

    @staticmethod
    def make_context(*, span: Span | None = ...) -> Any:
        """State of asynchronous prefetches; one kernel needs one."""

    @staticmethod
    def session(ctx: Any, *, span: Span | None = ...) -> Any:
        """The session `wait` needs."""

    @staticmethod
    def wait(evt: Any, session: Any, *, span: Span | None = ...) -> Any:
        """Wait until a prefetch has landed."""
