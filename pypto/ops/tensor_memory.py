"""Tensor operators that allocate, address and view global memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.enums import PadValue, TensorLayout
from ..ir.expr import Expr, index_const
from ..ir.types import DistributedTensorType, ScalarType, TensorType, TensorView, Type
from .regions import read_region, reshape_region, write_region
from .registry import ArgEffect, Bound, Pto, WriteChannel, attr_kind, declare, no_result
from .rules import (
    all_same,
    at_most,
    check_fill,
    check_same_dtype,
    dim_text,
    dims_text,
    exceeds,
    plus,
    product,
    same,
    scalar_result,
    shaped,
    tensor_type,
    times,
    valid_of,
    value,
)
from .tile_layout import (
    axis_of,
    check_element_count,
    check_expansion,
    check_valid_extents,
    dropped_axes,
    pad_of,
    pad_without_region,
    swapped,
    viewed_pad,
    viewed_shape,
    without,
)
from .tile_memory import atomic_effect, check_element, check_indices

_ND, _DN = TensorLayout.ND, TensorLayout.DN
_MX = (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)


def packed_strides(shape: Sequence[Expr], layout: TensorLayout = _ND) -> list[Expr]:
    """The strides, in elements, of a tensor without gaps. DN exchanges the last two dimensions."""
    order = list(shape)
    if layout is _DN and len(order) > 1:
        order[-1], order[-2] = order[-2], order[-1]
    strides: list[Expr] = []
    step: Expr = index_const(1)
    for dim in reversed(order):
        strides.insert(0, step)
        step = times(dim, step)
    return swapped(strides, -2, -1) if layout is _DN and len(order) > 1 else strides


def strides_of(t: TensorType) -> Sequence[Expr]:
    """The strides of a tensor, in elements."""
    view = t.tensor_view
    return view.stride if view is not None and view.stride else packed_strides(t.shape, t.layout)


def check_no_mx(b: Bound, name: str) -> None:
    """Raise OpError for MX scale tensors: their layout has no subviews."""
    layout = b.type(name).layout
    if layout in _MX:
        raise b.fail(f"does not support MX-layout tensors, got {layout.name}: their scales have no views")


# Allocation.


@attr_kind("number")
def _number(v: Any) -> Any:
    if isinstance(v, bool) or not isinstance(v, (int, float)):
        raise TypeError(f"init_value has incompatible type {type(v).__name__}: it must be a number")
    if not math.isfinite(v):
        raise ValueError(f"init_value must be finite, got {v}")
    if isinstance(v, int) and abs(v) > 2**53:
        raise ValueError(f"init_value {v} is beyond the exactly-representable integers, 2**53")
    return v


def _create(b: Bound) -> Type:
    layout = b["layout"]
    for dim in b.dims("shape"):
        known = value(dim)
        if known is not None and known < 0:
            raise b.fail(f"requires dimensions to be >= 0, got {dims_text(b.dims('shape'))}")
    first, dtype = b["init_value"], b["dtype"]
    low, high = dtype.int_range() if dtype.is_int() else (0, 0)
    if first is not None and dtype.is_int() and not (first == int(first) and low <= first <= high):
        raise b.fail(f"cannot fill {dtype} elements with init_value={first}")
    view = None if layout is _ND else TensorView((), layout)
    return TensorType(b.dims("shape"), dtype, None, view)


declare(
    "tensor.create",
    "in shape: dims, attr dtype: DataType!, attr layout: TensorLayout = TensorLayout.ND, "
    "attr manual_dep: bool = False, attr init_value: number? = None",
    _create,
    "Allocate a tensor in global memory, filled with ``init_value`` if one is given.\n\n"
    "``manual_dep`` keeps it out of automatic dependency tracking.",
    inplace_safe=False,
    tile_form="tile.create",
)


def _create_l1(b: Bound) -> Type:
    shape = b.dims("shape")
    if len(shape) != 2 or any((value(d) or 0) <= 0 for d in shape):
        raise b.fail(f"requires a 2D shape of positive compile-time ConstInt, got {dims_text(shape)}")
    return TensorType(shape, b["dtype"])


declare(
    "tensor.create_l1",
    "in shape: dims, attr dtype: DataType!, attr transpose: bool = False",
    _create_l1,
    "Allocate a 2D tile in L1, named at tensor level; ``transpose`` lays it out as a transposed matmul operand.",
    inplace_safe=False,
    tile_form="tile.create",
)


def _full(b: Bound) -> Type:
    scalar = b.type("value").dtype
    if scalar.is_float() and not b["dtype"].is_float():
        raise b.fail(f"cannot fill {b['dtype']} elements with a {scalar} value", "pass an integer")
    return TensorType(b.dims("shape"), b["dtype"])


declare(
    "tensor.full",
    "in shape: dims, attr dtype: DataType!, in value: scalar",
    _full,
    "A tensor of ``shape`` filled with the constant ``value``.",
    tile_form="tile.full",
)


# Windows.


def _slice(b: Bound) -> Type:
    source = b.type("input")
    check_no_mx(b, "input")
    shape, offsets = b.dims("shape"), b.dims("offset")
    if len(offsets) != len(source.shape) or len(shape) > len(source.shape):
        raise b.fail(
            f"requires one offset for each dimension of {shaped(source)}, got {dims_text(shape)} at "
            f"{dims_text(offsets)}"
        )
    region = read_region(
        b, source.shape, valid_of(b, "input"), offsets, shape, b.dims("valid_shape") or shape, clamp=b["clamp"]
    )
    axes = dropped_axes(b, shape, region)
    if axes and len(axes) == len(shape):
        raise b.fail("drop_dims cannot erase every dimension: a tensor keeps at least one")
    pad = b["pad_value"] if b["pad_value"] is not PadValue.null else pad_of(source)
    same_rank = len(shape) == len(source.shape)
    stride = source.tensor_view.stride if source.tensor_view is not None and same_rank else ()
    layout = source.layout if same_rank and not axes else _ND
    shape, region, stride = without(shape, axes), without(region, axes), without(stride, axes)
    return _with_view(source, shape, TensorView(stride, layout, region, pad))


declare(
    "tensor.slice",
    "in input: tensor, in shape: dims, in offset: dims, in valid_shape: dims?, in drop_dims: dims?, "
    "attr pad_value: PadValue = PadValue.null, attr clamp: bool = False",
    _slice,
    "The window of ``shape`` at ``offset``: a view of the tensor.\n\n"
    "``valid_shape`` narrows it, ``clamp`` cuts it at the tensor's edge, ``drop_dims`` erases axes of size 1.",
    inherits="input",
    notice=pad_without_region,
    tile_form="tile.slice",
)

_ASSEMBLE_NOTE = "only the source's valid region moves, and it must fit"


def _assemble(b: Bound) -> Type:
    target, source = b.type("target"), b.type("source")
    check_same_dtype(b, "target", "source")
    offsets = b.dims("offset")
    if len(offsets) != len(target.shape):
        raise b.fail(f"requires one offset for each dimension of {shaped(target)}, got {dims_text(offsets)}")
    if len(source.shape) != len(target.shape):
        return target
    moved, held = valid_of(b, "source"), valid_of(b, "target")
    region = write_region(b, target.shape, held, offsets, moved, moved, _ASSEMBLE_NOTE)
    return _narrowed(target, region)


def _narrowed(t: TensorType, region: Sequence[Expr]) -> TensorType:
    """The tensor ``t`` with another valid region, everything else as it is."""
    if all_same(region, t.valid_shape):
        return t
    view = t.tensor_view or TensorView()
    return t.replace(tensor_view=_view(t, view, region))


def _view(t: TensorType, view: TensorView, region: Sequence[Expr]) -> TensorView | None:
    made = TensorView(view.stride, view.layout, () if all_same(region, t.shape) else region, view.pad)
    return None if made == TensorView() else made


declare(
    "tensor.assemble",
    "out target: tensor, in source: tensor, in offset: dims, attr atomic: AtomicType = AtomicType.None_",
    _assemble,
    "Write ``source`` into ``target`` at ``offset``; the value is the target as written. "
    "``atomic=pl.AtomicType.Add`` adds instead of overwriting.",
    reuses="target",
    effects={"target": atomic_effect},
    channel=WriteChannel.Dma,
    tile_form="tile.assemble",
)


# Views.


def _is_row_major(t: TensorType) -> bool:
    view = t.tensor_view
    if view is None:
        return True
    return view.layout is _ND and (not view.stride or all_same(view.stride, packed_strides(t.shape)))


def _check_narrower(b: Bound, asked: Sequence[Expr], derived: Sequence[Expr], shape: Sequence[Expr]) -> None:
    if len(asked) != len(shape):
        raise b.fail(f"requires a valid_shape rank of {len(shape)}, got {dims_text(asked)}")
    for axis, (want, have) in enumerate(zip(asked, derived)):
        known = value(want)
        if known is not None and known < 0:
            raise b.fail(f"valid_shape[{axis}] must be provably >= 0, got {known}")
        if not at_most(want, have) and (known is not None or not same(have, shape[axis])):
            raise b.fail(
                f"valid_shape[{axis}] = {dim_text(want)} is not provably within the source-derived extent "
                f"{dim_text(have)}"
            )


def _reshape(b: Bound) -> Type:
    source, shape = b.type("input"), b.dims("shape")
    check_no_mx(b, "input")
    check_element_count(b, source.shape, shape)
    region = reshape_region(b, source.shape, valid_of(b, "input"), shape, _is_row_major(source))
    asked = b.dims("valid_shape")
    if asked:
        _check_narrower(b, asked, region, shape)
        region = asked
    pad = pad_of(source)
    view = TensorView((), _ND, region, pad) if pad is not PadValue.null else None
    return tensor_type(shape, source.dtype, region, view)


declare(
    "tensor.reshape",
    "in input: tensor, in shape: dims, in valid_shape: dims?",
    _reshape,
    "The same elements with another shape, without moving them. ``valid_shape`` may narrow the valid region only.",
    inherits="input",
    tile_form="tile.reshape",
)


def _transpose(b: Bound) -> Type:
    source = b.type("input")
    check_no_mx(b, "input")
    rank = len(source.shape)
    first, second = axis_of(b, "axis1", rank), axis_of(b, "axis2", rank)
    shape = swapped(source.shape, first, second)
    stride = swapped(strides_of(source), first, second)
    layout: TensorLayout = source.layout
    if {first, second} == {rank - 1, rank - 2} and layout in (_ND, _DN):
        layout = _DN if layout is _ND else _ND
    asked = b.dims("valid_shape")
    if asked and len(asked) != rank:
        raise b.fail(f"requires a valid_shape rank of {rank}, got {dims_text(asked)}")
    region = asked or swapped(valid_of(b, "input"), first, second)
    if layout is _ND and all_same(stride, packed_strides(shape)):
        stride = []
    return TensorType(shape, source.dtype, None, TensorView(stride, layout, region, pad_of(source)))


declare(
    "tensor.transpose",
    "in input: tensor, in axis1: index, in axis2: index, in valid_shape: dims?",
    _transpose,
    "A view with ``axis1`` and ``axis2`` exchanged; ``valid_shape`` is in the result's coordinates.",
    inherits="input",
    tile_form="tile.transpose",
)


_NO_NZ_VIEW = (
    "NZ layout is not allowed for a tensor view: NZ states the order of bytes, and another shape or layout of them has "
    "none\n  hint: annotate the tensor with the shape its loads use, or keep it pl.ND"
)


def _view_rule(b: Bound) -> Type:
    source = b.type("input")
    check_no_mx(b, "input")
    layout: TensorLayout = b["layout"] or source.layout
    if TensorLayout.NZ in (layout, source.layout):
        raise b.fail(_NO_NZ_VIEW)
    view = source.tensor_view or TensorView()
    shape = b.dims("shape")
    if not shape and b["layout"] is None:
        raise b.fail("requires another shape or layout, and a target shape must have rank >= 1")
    if not shape:
        return _relaid(b, source, view, layout)
    return _reshaped_view(b, source, view, shape, layout)


def _with_view(source: TensorType, shape: Sequence[Expr], view: TensorView) -> TensorType:
    if isinstance(source, DistributedTensorType):
        return DistributedTensorType(shape, source.dtype, source.memref, view, source.window_buffer)
    return TensorType(shape, source.dtype, None, view)


def _relaid(b: Bound, source: TensorType, view: TensorView, layout: TensorLayout) -> TensorType:
    """The same memory in another layout: the last two dimensions change places with it."""
    _check_canonical(b, source, view)
    stride, region, shape = strides_of(source), valid_of(b, "input"), source.shape
    if layout is not source.layout:
        if len(shape) < 2:
            raise b.fail(f"requires rank >= 2 to change the layout, got {shaped(source)}")
        stride, region, shape = swapped(stride, -2, -1), swapped(region, -2, -1), swapped(shape, -2, -1)
    return _with_view(source, shape, TensorView(stride, layout, region, view.pad))


def _check_canonical(b: Bound, source: TensorType, view: TensorView) -> None:
    unit = -2 if view.layout is _DN and len(source.shape) > 1 else -1
    if view.stride and value(view.stride[unit]) not in (1, None):
        raise b.fail(f"requires a source whose innermost stride is 1: {dims_text(view.stride)} is not canonical")


def _reshaped_view(
    b: Bound, source: TensorType, view: TensorView, shape: Sequence[Expr], layout: TensorLayout
) -> TensorType:
    for dim in shape:
        known = value(dim)
        if known is not None and known <= 0:
            raise b.fail(f"target dimensions must be positive, got {dims_text(shape)}")
    if layout is _DN and len(shape) < 2:
        raise b.fail(f"requires rank >= 2 for layout DN, got {dims_text(shape)}")
    if view.stride and not all_same(view.stride, packed_strides(source.shape, source.layout)):
        raise b.fail(f"requires a packed source to change its shape, got strides {dims_text(view.stride)}")
    have, want = value(product(source.shape)), value(product(shape))
    if have is not None and want is not None and have != want:
        raise b.fail(f"cannot reinterpret {shaped(source)} as {dims_text(shape)}: {have} elements are not {want}")
    asked = b.dims("valid_shape")
    region = _viewed_region(b, source, shape, asked, layout)
    pad = view.pad if region else PadValue.null
    return _with_view(source, shape, TensorView(packed_strides(shape, layout), layout, region, pad))


def _viewed_region(
    b: Bound, source: TensorType, shape: Sequence[Expr], asked: Sequence[Expr], layout: TensorLayout
) -> Sequence[Expr]:
    held = valid_of(b, "input")
    if asked:
        if len(asked) != len(shape):
            raise b.fail(f"requires a valid_shape rank of {len(shape)}, got {dims_text(asked)}")
        if any(exceeds(a, s) for a, s in zip(asked, shape)):
            raise b.fail(f"valid_shape {dims_text(asked)} exceeds target shape {dims_text(shape)}")
    if all_same(held, source.shape):
        return asked
    if not asked:
        raise b.fail(
            f"cannot reinterpret the partial valid_shape {dims_text(held)} of {dims_text(source.shape)}",
            "state the target valid_shape",
        )
    if layout is not _ND or source.layout is not _ND:
        raise b.fail("only supports ND layout for a partially valid source")
    collapse = len(shape) == 2 and same(shape[1], source.shape[-1]) and same(asked[1], held[-1])
    prefix = len(shape) == 2 and value(shape[0]) == 1 and value(asked[0]) == 1
    if not (collapse or prefix) or value(product(asked)) != value(product(held)):
        raise b.fail(
            "requires a leading-dimension collapse to 2D or a linear collapse to [1, N] of the same cells for a "
            "partially "
            f"valid source, got {dims_text(held)} to {dims_text(asked)}"
        )
    return asked


declare(
    "tensor.view",
    "in input: tensor, in shape: dims?, in valid_shape: dims?, attr layout: TensorLayout? = None",
    _view_rule,
    "The same memory with another shape, another layout (ND and DN exchange the last two dimensions), or both.",
    inherits="input",
    pto=Pto("pto.make_tensor_view", form="tensor_view"),
)


def _reinterpret(b: Bound) -> Type:
    source = b.type("data")
    check_no_mx(b, "data")
    if source.layout is TensorLayout.NZ:
        raise b.fail(_NO_NZ_VIEW)
    view = source.tensor_view
    if view is not None and view.stride and not all_same(view.stride, packed_strides(source.shape, source.layout)):
        raise b.fail(f"only supports packed tensors, got strides {dims_text(view.stride)}")
    rank = len(source.shape)
    axis = rank - 2 if source.layout is _DN and rank > 1 else rank - 1
    shape, region = viewed_shape(b, source, valid_of(b, "data"), axis)
    pad = viewed_pad(pad_of(source))
    stride = packed_strides(shape, source.layout) if view is not None and view.stride else ()
    made = TensorView(stride, source.layout, region, pad)
    return TensorType(shape, b["dtype"], None, made)


declare(
    "tensor.reinterpret_view",
    "in data: tensor, attr dtype: DataType!, in shape: dims?",
    _reinterpret,
    "The same bytes as elements of ``dtype``, without moving them; the contiguous dimension scales unless ``shape`` "
    "says "
    "otherwise.",
    inherits="data",
    tile_form="tile.reinterpret_view",
)


def _set_validshape(b: Bound) -> Type:
    t = b.type("input")
    if len(t.shape) != 2:
        raise b.fail(f"requires a 2D tensor, got {shaped(t)}")
    region = (b["valid_rows"], b["valid_cols"])
    check_valid_extents(b, region, t.shape, "tensor")
    view = t.tensor_view or TensorView()
    return t.replace(tensor_view=_view(t, view, region))


declare(
    "tensor.set_validshape",
    "in input: tensor, in valid_rows: index, in valid_cols: index",
    _set_validshape,
    "The same 2D tensor with ``valid_rows`` x ``valid_cols`` of it holding data. Nothing moves.",
    inherits="input",
    # The tensor's description changes, its data does not.
    effects={"input": lambda _: ArgEffect.Read},
    tile_form="tile.set_validshape",
)


# Padding and joining.

_PAD = "attr pad_value: PadValue! = PadValue.zero"


def _fillpad(b: Bound) -> Type:
    t = b.type("input")
    valid_of(b, "input")
    check_fill(b)
    return TensorType(t.shape, t.dtype)


declare(
    "tensor.fillpad",
    f"in input: tensor, {_PAD}",
    _fillpad,
    "A copy in which the cells outside the valid region hold ``pad_value`` (zero, max or min of the dtype), all valid.",
    tile_form="tile.fillpad",
)


def _fillpad_expand(b: Bound) -> Type:
    check_expansion(b, "input")
    check_fill(b)
    return TensorType(b.dims("shape"), b.type("input").dtype, None, TensorView((), _ND, (), b["pad_value"]))


declare(
    "tensor.fillpad_expand",
    f"in input: tensor, in shape: dims, {_PAD}",
    _fillpad_expand,
    "A larger copy of ``shape`` whose cells outside the source's valid region hold ``pad_value``, all valid.",
    tile_form="tile.fillpad_expand",
)


def _concat(b: Bound) -> Type:
    left, right = b.type("src0"), b.type("src1")
    check_same_dtype(b, "src0", "src1")
    if len(left.shape) != 2 or len(right.shape) != 2:
        raise b.fail(f"requires 2D tensors, got {shaped(left)} and {shaped(right)}")
    if not same(left.shape[0], right.shape[0]):
        raise b.fail(f"row count must match, got {shaped(left)} and {shaped(right)}")
    if not all_same(valid_of(b, "src0"), left.shape) or not all_same(valid_of(b, "src1"), right.shape):
        raise b.fail(f"requires fully valid tensors, got {shaped(left)} and {shaped(right)}", "pl.fillpad them first")
    return TensorType([left.shape[0], plus(left.shape[1], right.shape[1])], left.dtype)


declare(
    "tensor.concat",
    "in src0: tensor, in src1: tensor",
    _concat,
    "Two tensors of the same rows side by side.",
    tile_form="tile.concat",
)


# Single elements and facts.


def _dim(b: Bound) -> Type:
    axis_of(b, "axis", len(b.type("tensor").shape))
    return ScalarType(DataType.INDEX)


declare(
    "tensor.dim",
    "in tensor: tensor, in axis: index",
    _dim,
    "The tensor's size in dimension ``axis``.",
    pto=Pto(form="tensor_dim"),
)


def _read(b: Bound) -> Type:
    check_indices(b, b.type("tensor"))
    return ScalarType(b.type("tensor").dtype)


declare(
    "tensor.read",
    "in tensor: tensor, in indices: dims|index",
    _read,
    "The element of ``tensor`` at ``indices``.",
    pto=Pto("pto.load_scalar", form="tensor_read"),
)


def _write(b: Bound) -> Type:
    check_indices(b, b.type("tensor"))
    check_element(b, b.type("tensor"))
    return no_result(b)


declare(
    "tensor.write",
    "out tensor: tensor, in indices: dims|index, in value: element like tensor",
    _write,
    "Set the element of ``tensor`` at ``indices`` to ``value``.",
    pure=False,
    channel=WriteChannel.Scalar,
    pto=Pto("pto.store_scalar", out="tensor", form="tensor_write"),
)

for _name, _doc in (
    ("get_block_idx", "Index of the executing block."),
    ("get_block_num", "Number of blocks running."),
    ("get_subblock_idx", "Index of the executing vector core in its core group."),
):
    declare(f"tensor.{_name}", "", scalar_result(DataType.INDEX), _doc, tile_form=f"tile.{_name}")

