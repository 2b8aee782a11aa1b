"""Tile operators that change shape, layout or valid region, and those that fill what is not valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.enums import CompactMode, MemorySpace, PadValue, TileLayout
from ..ir.expr import Expr, index_const
from ..ir.types import TileType, Type, dim_list, implicit_layout
from .regions import read_region, reshape_region
from .registry import Bound, Core, Pto, declare
from .rules import (
    Layout,
    check_fill,
    check_same_dtype,
    dim_text,
    dims_text,
    exceeds,
    layout_of,
    plus,
    product,
    same,
    shaped,
    static_shape,
    tile_type,
    valid_of,
    value,
)
from .tile_elementwise import vec

_M = MemorySpace
_OPPOSITE = {
    TileLayout.row_major: TileLayout.col_major,
    TileLayout.col_major: TileLayout.row_major,
    TileLayout.none_box: TileLayout.none_box,
}


def own_layout(t: TileType) -> Layout | None:
    """The layout of a tile where it is not the one its shape and memory imply."""
    layout = layout_of(t)
    return None if layout == implicit_layout(t.shape, t.memory_space) else layout


def pad_of(t: Any) -> PadValue:
    """The padding mode of a tile or tensor."""
    view = t.tile_view if isinstance(t, TileType) else t.tensor_view
    return PadValue.null if view is None else view.pad


# Windows.


def dropped_axes(b: Bound, shape: Sequence[Expr], region: Sequence[Expr]) -> list[int]:
    """The axes ``drop_dims`` erases. Raises OpError unless each is a fully valid static dimension of size 1."""
    axes = []
    for item in b.dims("drop_dims"):
        axis = value(item)
        if axis is None or not 0 <= axis < len(shape):
            raise b.fail(f"drop_dims axis {dim_text(item)} is out of range for {dims_text(shape)}")
        if value(shape[axis]) != 1:
            raise b.fail(f"drop_dims erases a static unit dimension only, dimension {axis} is {dim_text(shape[axis])}")
        if value(region[axis]) != 1:
            raise b.fail(
                f"drop_dims cannot erase dimension {axis}: its valid extent {dim_text(region[axis])} is not provably 1"
            )
        axes.append(axis)
    return axes


def without(dims: Sequence[Expr], axes: Sequence[int]) -> list[Expr]:
    return [d for i, d in enumerate(dims) if i not in axes]


def pad_without_region(b: Bound) -> str | None:
    """A padding mode says what lies outside the valid region, so it needs one."""
    if b["pad_value"] is PadValue.null or b.dims("valid_shape"):
        return None
    return "pad_value has no effect without valid_shape: the whole window is valid"


def _slice(b: Bound) -> Type:
    source = b.type("tile")
    static_shape(b, "shape")
    shape, offsets = b.dims("shape"), b.dims("offset")
    if len(shape) != len(source.shape) or len(offsets) != len(source.shape):
        raise b.fail(
            f"requires shape and offset of the tile's rank {len(source.shape)}, got {dims_text(shape)} at "
            f"{dims_text(offsets)}"
        )
    region = read_region(
        b, source.shape, valid_of(b, "tile"), offsets, shape, b.dims("valid_shape") or shape, extent=shape,
        no_clamp="a tile window has no clamping mechanism",
    )  # fmt: skip
    axes = dropped_axes(b, shape, region)
    shape, region = without(shape, axes), without(region, axes)
    while axes and len(shape) < 2:
        shape, region = [index_const(1), *shape], [index_const(1), *region]
    pad = b["pad_value"] if b["pad_value"] is not PadValue.null else pad_of(source)
    return tile_type(shape, source.dtype, region, source.memory_space, own_layout(source), pad)


declare(
    "tile.slice",
    "in tile: tile, in shape: dims, in offset: dims, in valid_shape: dims?, in drop_dims: dims?, "
    "attr pad_value: PadValue = PadValue.null",
    _slice,
    "The window of static ``shape`` at ``offset``: a view of the tile, copied where an instruction cannot address "
    "it.\n\n"
    "``valid_shape`` narrows it, ``drop_dims`` erases axes of size 1 (two dimensions always remain).",
    inherits="tile",
    notice=pad_without_region,
    pto=Pto("pto.subview", form="slice"),
)


# Views.


def check_element_count(b: Bound, source: Sequence[Expr], shape: Sequence[Expr]) -> None:
    """Raise OpError when two shapes provably have different numbers of elements."""
    have, want = value(product(source)), value(product(shape))
    if have is not None and want is not None and have != want:
        raise b.fail(f"cannot reshape {dims_text(source)} ({have} elements) to {dims_text(shape)} ({want} elements)")


def _reshape(b: Bound) -> Type:
    source, shape = b.type("tile"), b.dims("shape")
    static_shape(b, "shape")
    check_element_count(b, source.shape, shape)
    blayout, slayout, _ = layout_of(source)
    one_axis = sum(1 for d in source.shape if value(d) != 1) <= 1
    ordered = slayout is TileLayout.none_box and (blayout is TileLayout.row_major or one_axis)
    region = reshape_region(b, source.shape, valid_of(b, "tile"), shape, ordered)
    view = source.tile_view
    compact = view.compact if view is not None else CompactMode.null
    layout = layout_of(source) if slayout is not TileLayout.none_box else None
    return tile_type(shape, source.dtype, region, source.memory_space, layout, pad_of(source), compact)


declare(
    "tile.reshape",
    "in tile: tile, in shape: dims",
    _reshape,
    "The same elements with another shape, without moving them. The valid region must be a rectangle there too.",
    inherits="tile",
    pto=Pto("pto.treshape", ("tile",), form="reshape"),
)


def _transpose_view(b: Bound) -> Type:
    source = b.type("tile")
    if len(source.shape) < 2:
        raise b.fail(f"requires at least 2 dimensions, got {shaped(source)}")
    blayout, slayout, fractal = layout_of(source)
    layout = (_OPPOSITE[blayout], _OPPOSITE[slayout], fractal)
    region = swapped(valid_of(b, "tile"), -2, -1)
    return tile_type(
        swapped(source.shape, -2, -1), source.dtype, region, source.memory_space, layout, pad_of(source)
    )


def swapped(dims: Sequence[Expr], first: int, second: int) -> list[Expr]:
    """Dimensions with two exchanged."""
    made = list(dims)
    made[first], made[second] = made[second], made[first]
    return made


declare(
    "tile.transpose_view",
    "in tile: tile",
    _transpose_view,
    "The last two dimensions exchanged, without moving data: each order of the layout turns into the other.",
    inherits="tile",
    pto=Pto("pto.treshape", ("tile",), form="reshape"),
)


def axis_of(b: Bound, name: str, rank: int) -> int:
    """A constant axis, counted from the end when negative. Raises OpError when it is none."""
    axis = value(b[name])
    if axis is None or not -rank <= axis < rank:
        raise b.fail(f"requires {name} to be a constant in [{-rank}, {rank - 1}], got {dim_text(b[name])}")
    return axis % rank


def _transpose(b: Bound) -> Type:
    source = b.type("tile")
    rank = len(source.shape)
    first, second = axis_of(b, "axis1", rank), axis_of(b, "axis2", rank)
    region = swapped(valid_of(b, "tile"), first, second)
    return tile_type(swapped(source.shape, first, second), source.dtype, region, source.memory_space)


declare(
    "tile.transpose",
    "in tile: tile, in axis1: index, in axis2: index, out tmp: tile?",
    _transpose,
    "A copy with ``axis1`` and ``axis2`` exchanged. `FlattenTileNdTo2D` supplies the scratch ``tmp``.",
    core=Core.VECTOR,
    result_space="tile",
    pto=Pto("pto.ttrans", ("tile", "tmp"), form="transpose"),
)


def check_valid_extents(b: Bound, extents: Sequence[Expr], shape: Sequence[Expr], what: str) -> None:
    """Raise OpError for a constant valid extent that is negative or beyond its dimension."""
    for axis, (extent, size) in enumerate(zip(extents, shape)):
        known = value(extent)
        if known is not None and known < 0:
            raise b.fail(f"valid extents must be >= 0, got {known} in dimension {axis}")
        if exceeds(extent, size):
            raise b.fail(f"valid extent {dim_text(extent)} exceeds {what} bound {dim_text(size)} in dimension {axis}")


def _set_validshape(b: Bound) -> Type:
    t = b.type("tile")
    if len(t.shape) != 2:
        raise b.fail(f"requires a 2D tile, got {shaped(t)}")
    region = (b["valid_rows"], b["valid_cols"])
    check_valid_extents(b, region, t.shape, "tile")
    view = t.get_effective_tile_view().replace(valid_shape=dim_list(region))
    return TileType(t.shape, t.dtype, None, view, t.memory_space)


declare(
    "tile.set_validshape",
    "in tile: tile, in valid_rows: index, in valid_cols: index",
    _set_validshape,
    "The same 2D tile with ``valid_rows`` x ``valid_cols`` of it holding data. Nothing moves.",
    inherits="tile",
    pto=Pto("pto.set_validshape", form="set_validshape"),
)

_VIEWABLE = (
    *(DataType.INT8, DataType.UINT8, DataType.INT16, DataType.UINT16, DataType.INT32, DataType.UINT32),
    *(DataType.INT64, DataType.UINT64, DataType.FP16, DataType.BF16, DataType.FP32),
)


def viewed_shape(
    b: Bound, source: Any, valid: Sequence[Expr], axis: int
) -> tuple[Sequence[Expr], Sequence[Expr]]:
    """Shape and valid region of ``data`` read as another dtype, whose width scales dimension ``axis``."""
    target: DataType = b["dtype"]
    if target is source.dtype:
        raise b.fail(f"requires source and target dtypes to differ, both are {target}", "use pl.reshape")
    for which, dtype in (("source", source.dtype), ("target", target)):
        if dtype not in _VIEWABLE:
            raise b.fail(f"does not support {which} dtype {dtype}")
    old, new = source.dtype.get_byte(), target.get_byte()
    explicit = b.dims("shape")
    full = all(same(v, s) for v, s in zip(valid, source.shape))
    auto = None
    if not explicit or not full or any(value(d) is None for d in (*source.shape, *explicit)):
        auto = [scaled(b, d, old, new, i) if i == axis else d for i, d in enumerate(source.shape)]
    if explicit and auto is not None and (not full or any(value(d) is None for d in (*source.shape, *explicit))):
        if len(explicit) != len(auto) or not all(same(x, y) for x, y in zip(explicit, auto)):
            raise b.fail(
                f"requires shape to be {dims_text(auto)} for a partially valid or dynamic source, got "
                f"{dims_text(explicit)}"
            )
    elif explicit:
        have = (value(product(source.shape)) or 0) * old
        want = (value(product(explicit)) or 0) * new
        if have != want:
            raise b.fail(f"requires equal source and target byte sizes, got {have} bytes and {want} bytes")
        return explicit, explicit
    region = [scaled(b, d, old, new, i) if i == axis else d for i, d in enumerate(valid)]
    return auto or [], region


def scaled(b: Bound, dim: Expr, old: int, new: int, axis: int) -> Expr:
    """An extent of ``old``-byte elements counted in ``new``-byte ones."""
    if old >= new:
        known = value(dim)
        return index_const(known * (old // new)) if known is not None else dim * index_const(old // new)
    ratio, known = new // old, value(dim)
    if known is None:
        return dim // index_const(ratio)
    if known % ratio:
        raise b.fail(f"dimension {axis} of extent {known} is not divisible by {ratio}")
    return index_const(known // ratio)


def viewed_pad(pad: PadValue) -> PadValue:
    """Zero bits are zero in every dtype; the greatest and smallest values are not."""
    return pad if pad is PadValue.zero else PadValue.null


def _reinterpret(b: Bound) -> Type:
    source = b.type("data")
    blayout, slayout, fractal = layout_of(source)
    if slayout is not TileLayout.none_box:
        raise b.fail(f"only supports flat tiles (slayout none_box), got {slayout.name}")
    rank = len(source.shape)
    axis = rank - 2 if blayout is TileLayout.col_major and rank > 1 else rank - 1
    shape, region = viewed_shape(b, source, valid_of(b, "data"), axis)
    own = own_layout(source)
    layout = (blayout, slayout, fractal) if own is not None else None
    return tile_type(shape, b["dtype"], region, source.memory_space, layout, viewed_pad(pad_of(source)))


declare(
    "tile.reinterpret_view",
    "in data: tile, attr dtype: DataType!, in shape: dims?",
    _reinterpret,
    "The same bytes as elements of ``dtype``, without moving them; the contiguous dimension scales unless ``shape`` "
    "says "
    "otherwise.",
    inherits="data",
    pto=Pto("pto.treshape", ("data",), form="reshape"),
)


# Padding.


def _fillpad(b: Bound) -> Type:
    t = b.type("tile")
    valid_of(b, "tile")
    check_fill(b)
    return tile_type(t.shape, t.dtype, t.shape, _M.Vec, own_flat_layout(t), b["pad_value"])


def own_flat_layout(t: TileType) -> Layout | None:
    layout = own_layout(t)
    return layout if layout is not None and layout[1] is TileLayout.none_box else None


_PAD = "attr pad_value: PadValue! = PadValue.zero"
declare(
    "tile.fillpad",
    f"in tile: tile, {_PAD}",
    _fillpad,
    "A copy in which the cells outside the valid region hold ``pad_value`` (zero, max or min of the dtype), all valid.",
    core=Core.VECTOR,
    spaces=vec("tile"),
    result_space=_M.Vec,
    pto=Pto("pto.tfillpad", ("tile",), form="fillpad"),
)
declare(
    "tile.fillpad_inplace",
    f"inout tile: tile, {_PAD}",
    _fillpad,
    "Fill the cells outside the valid region with ``pad_value`` in place.",
    core=Core.VECTOR,
    spaces=vec("tile"),
    result_space=_M.Vec,
    reuses="tile",
    pto=Pto("pto.tfillpad", ("tile",), form="fillpad"),
)


def check_expansion(b: Bound, name: str) -> None:
    """Raise OpError unless ``shape`` has the rank of argument ``name`` and is at least as large everywhere."""
    source, shape = b.type(name), b.dims("shape")
    if len(shape) != len(source.shape):
        raise b.fail(f"requires a shape of rank {len(source.shape)}, got {dims_text(shape)}")
    for axis, (have, want) in enumerate(zip(source.shape, shape)):
        if exceeds(have, want):
            raise b.fail(
                f"dimension {axis} of shape, {dim_text(want)}, must be >= source dimension {dim_text(have)}"
            )


def _fillpad_expand(b: Bound) -> Type:
    t, shape = b.type("tile"), b.dims("shape")
    static_shape(b, "shape")
    check_expansion(b, "tile")
    check_fill(b)
    return tile_type(shape, t.dtype, shape, _M.Vec, own_flat_layout(t), b["pad_value"])


declare(
    "tile.fillpad_expand",
    f"in tile: tile, in shape: dims, {_PAD}",
    _fillpad_expand,
    "A larger copy of ``shape`` whose cells outside the source's valid region hold ``pad_value``, all valid.",
    core=Core.VECTOR,
    spaces=vec("tile"),
    result_space=_M.Vec,
    pto=Pto("pto.tfillpad", ("tile",), form="fillpad"),
)


def _concat(b: Bound) -> Type:
    left, right = b.type("src0"), b.type("src1")
    check_same_dtype(b, "src0", "src1")
    if len(left.shape) != 2 or len(right.shape) != 2:
        raise b.fail(f"requires 2D tiles, got {shaped(left)} and {shaped(right)}")
    if not same(left.shape[0], right.shape[0]):
        raise b.fail(f"row count must match, got {shaped(left)} and {shaped(right)}")
    rows, columns = valid_of(b, "src0")
    if not same(columns, left.shape[1]):
        raise b.fail(f"requires src0 to be valid to its last column, got {shaped(left)}", "pl.fillpad it first")
    if not same(rows, valid_of(b, "src1")[0]):
        raise b.fail(f"requires the same valid rows, got {shaped(left)} and {shaped(right)}")
    shape = [left.shape[0], plus(left.shape[1], right.shape[1])]
    return tile_type(shape, left.dtype, [rows, plus(columns, valid_of(b, "src1")[1])], _M.Vec)


declare(
    "tile.concat",
    "in src0: tile, in src1: tile",
    _concat,
    "Two tiles of the same rows side by side.",
    core=Core.VECTOR,
    spaces=vec("src0", "src1"),
    result_space=_M.Vec,
    pto=Pto("pto.tconcat", ("src0", "src1")),
)
