"""What type rules share: dimensions and their proofs, descriptions for messages, and result types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..dtypes import DataType
from ..ir import expr as E
from ..ir.enums import CompactMode, MemorySpace, PadValue, TileLayout
from ..ir.expr import ConstInt, Expr, index_const
from ..ir.naming import written_name
from ..ir.scalar import binary, cast_scalar
from ..ir.types import (
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    Type,
    implicit_layout,
    same_dims,
)
from .registry import Bound

Layout = tuple[TileLayout, TileLayout, int]
VEC = (MemorySpace.Vec,)
ND = (TileLayout.row_major, TileLayout.none_box)
FLOATS = (DataType.FP16, DataType.FP32)
INT_OR_FLOAT = (DataType.INT16, DataType.INT32, DataType.FP16, DataType.FP32)


# Dimensions.


def value(dim: Any) -> int | None:
    """The value of a constant dimension."""
    return dim.value if isinstance(dim, ConstInt) else None


def same(a: Expr, b: Expr) -> bool:
    """Whether two dimensions are provably equal."""
    if a is b:
        return True
    x, y = value(a), value(b)
    if x is not None or y is not None:
        return x == y
    from ..ir.structural import structural_equal

    return structural_equal(a, b)


def all_same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether two dimension lists are provably equal."""
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))


def exceeds(a: Expr, b: Expr) -> bool:
    """Whether ``a`` is provably greater than ``b``."""
    x, y = value(a), value(b)
    return x is not None and y is not None and x > y


def at_most(a: Expr, b: Expr) -> bool:
    """Whether ``a`` is provably at most extent ``b``, which is never negative."""
    x, y = value(a), value(b)
    if x == 0 or (isinstance(a, E.Min) and (at_most(a.left, b) or at_most(a.right, b))):
        return True
    return x <= y if x is not None and y is not None else same(a, b)


def _fold(cls: Any, fold: Callable[[int, int], int]) -> Callable[[Expr, Expr], Expr]:
    def apply(a: Expr, b: Expr) -> Expr:
        x, y = value(a), value(b)
        return index_const(fold(x, y)) if x is not None and y is not None else binary(cls, index(a), index(b))

    return apply


def index(dim: Expr) -> Expr:
    """A dimension as an INDEX (or INT64, the same representation) value."""
    return cast_scalar(dim, DataType.INDEX)


_add = _fold(E.Add, lambda x, y: x + y)
_sub = _fold(E.Sub, lambda x, y: x - y)
_mul = _fold(E.Mul, lambda x, y: x * y)
_min = _fold(E.Min, min)
_max = _fold(E.Max, max)


def plus(a: Expr, b: Expr) -> Expr:
    if value(a) == 0:
        return b
    return a if value(b) == 0 else _add(a, b)


def minus(a: Expr, b: Expr) -> Expr:
    if same(a, b):
        return index_const(0)
    return a if value(b) == 0 else _sub(a, b)


def times(a: Expr, b: Expr) -> Expr:
    if value(a) == 1:
        return b
    return a if value(b) == 1 else _mul(a, b)


def least(a: Expr, b: Expr) -> Expr:
    return a if same(a, b) else _min(a, b)


def greatest(a: Expr, b: Expr) -> Expr:
    return a if same(a, b) else _max(a, b)


def product(dims: Iterable[Expr]) -> Expr:
    """The product of dimensions, 1 for none."""
    total: Expr = index_const(1)
    for dim in dims:
        total = times(total, dim)
    return total


# Words for messages.


def dim_text(dim: Expr) -> str:
    known = value(dim)
    if known is not None:
        return str(known)
    if isinstance(dim, E.Var):
        return written_name(dim.name_hint)
    from ..ir.printer import python_print

    return python_print(dim)


def dims_text(dims: Iterable[Expr]) -> str:
    """Dimensions as a user writes them, ``[16, M]``."""
    return f"[{', '.join(dim_text(d) for d in dims)}]"


def shaped(t: Any) -> str:
    """Shape, dtype and a narrower valid region of a type, for a message."""
    text = f"{dims_text(t.shape)} {t.dtype}"
    return text if t.valid_shape is t.shape else f"{text} (valid {dims_text(t.valid_shape)})"


def dtype_names(dtypes: Iterable[DataType]) -> str:
    return ", ".join(d.name for d in dtypes)


def common_region(a: Sequence[Expr], b: Sequence[Expr], shape: Sequence[Expr]) -> list[Expr]:
    """What is valid in both of two valid regions of one shape."""
    return [y if same(x, size) or at_most(y, x) else x if same(y, size) or at_most(x, y) else least(x, y)
            for x, y, size in zip(a, b, shape)]  # fmt: skip


# Checks.


def valid_of(b: Bound, name: str) -> Sequence[Expr]:
    """The valid region of argument ``name``. Raises OpError when its rank is not the shape's."""
    t = b.type(name)
    valid = t.valid_shape
    if len(valid) != len(t.shape):
        raise b.fail(
            f"valid_shape rank ({len(valid)}) must match the rank ({len(t.shape)}) of {name!r}: {dims_text(valid)} in "
            f"{dims_text(t.shape)}"
        )
    return valid


def check_dtype(b: Bound, name: str, dtypes: Sequence[DataType], what: str | None = None) -> DataType:
    """The dtype of argument ``name``. Raises OpError when it is none of ``dtypes``."""
    dtype = b.type(name).dtype
    if dtype not in dtypes:
        raise b.fail(
            f"requires {what or name} dtype in {{{dtype_names(dtypes)}}}, got {dtype}",
            f"cast it: pl.cast({name}, pl.{dtypes[-1].name})",
        )
    return dtype


def check_same_dtype(b: Bound, *names: str) -> DataType:
    """The common dtype of arguments. Raises OpError when they differ."""
    first = b.type(names[0])
    for name in names[1:]:
        other = b.type(name)
        if other.dtype is not first.dtype:
            raise b.fail(
                f"requires the same dtype for {names[0]} and {name}, got {shaped(first)} and {shaped(other)}",
                f"cast one: pl.cast({name}, pl.{first.dtype.name})",
            )
    return first.dtype


def check_rank(b: Bound, name: str, rank: int, what: str | None = None) -> None:
    """Raise OpError unless argument ``name`` has ``rank`` dimensions."""
    t = b.type(name)
    if len(t.shape) != rank:
        raise b.fail(f"requires a rank-{rank} {what or name}, got {shaped(t)}")


def check_positive(b: Bound, name: str) -> None:
    """Raise OpError for an extent that is provably not positive, or an empty shape."""
    for dim in b.dims(name):
        known = value(dim)
        if known is not None and known <= 0:
            raise b.fail(f"extents of {name!r} must be positive, got {dims_text(b.dims(name))}")
    if not b.dims(name):
        raise b.fail(f"requires a non-empty {name!r}")


def check_fill(b: Bound) -> None:
    """Raise OpError for a fillpad that does not say what to fill with."""
    if b["pad_value"] is PadValue.null:
        raise b.fail("fillpad pad_value must say what to fill with, got PadValue.null", "pl.PadValue.zero, max or min")


def static_shape(b: Bound, name: str) -> list[int]:
    """The values of a list of compile-time constants. Raises OpError for symbolic or non-positive ones."""
    values = []
    for i, dim in enumerate(b.dims(name)):
        known = value(dim)
        if known is None:
            raise b.fail(
                f"requires every element of {name!r} to be a compile-time constant, element {i} is {dim_text(dim)}",
                "allocate the largest size and narrow it with valid_shape",
            )
        if known <= 0:
            raise b.fail(f"extents of {name!r} must be positive, got {dims_text(b.dims(name))}")
        values.append(known)
    if not values:
        raise b.fail(f"requires a non-empty {name!r}")
    return values


# Result types.


def layout_of(t: TileType) -> Layout:
    """The (blayout, slayout, fractal) of a tile."""
    return t.order


def tile_type(
    shape: Sequence[Expr],
    dtype: DataType,
    valid: Sequence[Expr] = (),
    space: MemorySpace | None = None,
    layout: Layout | None = None,
    pad: PadValue = PadValue.null,
    compact: CompactMode = CompactMode.null,
) -> TileType:
    """A dense tile; without ``layout`` the one ``space`` implies."""
    whole = not valid or valid is shape or same_dims(valid, shape)
    if whole and layout is None and pad is PadValue.null and compact is CompactMode.null:
        return TileType(shape, dtype, None, None, space)
    blayout, slayout, fractal = layout or implicit_layout(shape, space)
    view = TileView(valid, (), None, blayout, slayout, fractal, pad, compact)
    return TileType(shape, dtype, None, view, space)


def fresh_like(t: TileType, dtype: DataType | None = None, valid: Sequence[Expr] | None = None) -> TileType:
    """A new vector tile of ``t``'s shape and valid region.

    It is laid out as ``t`` is when that is flat; a boxed tile reaches a vector unit through a move that unboxes it.
    """
    layout = layout_of(t) if t.tile_view is not None else None
    if layout is not None and layout[1] is not TileLayout.none_box:
        layout = None
    region = t.valid_shape if valid is None else valid
    return tile_type(t.shape, dtype or t.dtype, region, MemorySpace.Vec, layout)


def tensor_type(
    shape: Sequence[Expr], dtype: DataType, valid: Sequence[Expr] = (), view: TensorView | None = None
) -> TensorType:
    """A tensor with storage of its own, narrowed to ``valid``."""
    if view is None and valid and valid is not shape:
        view = TensorView(valid_shape=valid)
    return TensorType(shape, dtype, None, view)


def scalar_result(dtype: DataType) -> Callable[[Bound], Type]:
    """Rule of an operator whose value is one scalar."""
    result = ScalarType(dtype)
    return lambda b: result
