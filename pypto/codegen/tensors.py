"""Tensors in global memory: views, windows, and single elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import TensorLayout
from ..ir.expr import ConstInt, Expr, Var, index_const, tensor_type_of
from ..ir.naming import written_name
from ..ir.scalar import build_scalar
from ..ir.span import UNKNOWN_SPAN
from ..ir.tensor_view_semantics import build_logical_strides_from_layout
from ..ir.types import TensorType
from ..ir.visitor import find_all
from ..ops.rules import dim_text
from .context import Op, Value
from .pairs import in_pairs, tensor_in_pairs
from .types import partition_text, scalar_text, tensor_view_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_LAYOUTS = {
    TensorLayout.ND: "nd",
    TensorLayout.DN: "dn",
    TensorLayout.NZ: "nz",
    TensorLayout.MX_A_ZZ: "mx_a_zz",
    TensorLayout.MX_B_NN: "mx_b_nn",
}


def strides_of(type: TensorType) -> tuple[Sequence[Expr], TensorLayout]:
    """Element strides and layout of a tensor's view.

    A column ``[.., M, 1]`` without a view is stated as DN with strides ``[.., 1, M]``: the bytes are the same, and a
    column tile, which is column major, is loaded from a DN view.
    """
    view = type.tensor_view
    if view is not None and view.stride:
        return view.stride, view.layout
    layout, shape = type.layout, type.shape
    is_column = len(shape) > 1 and isinstance(shape[-1], ConstInt) and shape[-1].value == 1
    if layout is TensorLayout.ND and is_column:
        strides = build_logical_strides_from_layout(shape, layout)
        return (*strides[:-1], shape[-2]), TensorLayout.DN
    return build_logical_strides_from_layout(shape, layout), layout


def collect_vars_from_shape_expr(expr: Expr) -> list[Var]:
    """The symbols a dimension is an expression of, in order of appearance."""
    return list(dict.fromkeys(find_all(expr, Var)))


def tensor_view_op(
    kernel: KernelBuilder, name: str, pointer: Value, type: TensorType, extents: Sequence[Expr] | None = None
) -> Op:
    """The view of a whole tensor, or of ``extents`` from its start."""
    strides, layout = strides_of(type)
    extents, strides = tensor_in_pairs(extents or type.shape, strides, layout, type, kernel.span)
    shape = [kernel.scalars.index(d) for d in extents]
    stride_values = [kernel.scalars.index(s) for s in strides]
    result = kernel.fresh(f"{written_name(name)}_view", tensor_view_text(len(shape), type.dtype))
    return Op(
        "make_tensor_view", result=result, source=pointer, shape=shape, strides=stride_values, layout=_LAYOUTS[layout]
    )


def window(
    kernel: KernelBuilder,
    tensor: Var,
    offsets: Sequence[Expr],
    sizes: Sequence[Expr],
    name: str,
    view: Value | None = None,
    written: bool = False,
) -> Value:
    """The window of ``sizes`` at ``offsets`` of a tensor's view, or of another ``view``; a store has it ``written``.

    Raises ValueError for a window known to have no elements, of which PTO has none.
    """
    if is_empty(sizes):
        raise user_error(
            ValueError,
            f"this takes a window of {written_name(tensor.name_hint)!r} without elements: "
            f"[{', '.join(map(dim_text, sizes))}]",
            kernel.span,
            hint="leave it out, or give it extents above 0",
        )
    view, dtype = view or kernel.handle(tensor), tensor_type_of(tensor).dtype
    offsets = in_pairs(offsets, dtype, "an offset", kernel.span)
    sizes = in_pairs(sizes, dtype, "an extent", kernel.span)
    extents = tuple(d.value if isinstance(d, ConstInt) else None for d in sizes)
    offset_values = [kernel.scalars.written_at(o) if written else kernel.scalars.index(o) for o in offsets]
    size_values = [kernel.scalars.index(d) for d in sizes]
    result = kernel.fresh(f"{written_name(name)}_pview", partition_text(extents, tensor.dtype))
    kernel.add(Op("partition_view", result=result, source=view, offsets=offset_values, sizes=size_values))
    return result


def is_empty(sizes: Sequence[Expr]) -> bool:
    """Whether a window is known to have no elements: nothing is loaded from or stored to it."""
    return any(isinstance(d, ConstInt) and d.value == 0 for d in sizes)


def written_extents(valid: Sequence[Expr], rank: int) -> Sequence[Expr]:
    """The window of a tensor of ``rank`` that a tile whose valid extents are ``valid`` fills."""
    return *(index_const(1) for _ in range(rank - len(valid))), *valid[-rank:]


def flat_offset(indices: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    """``sum(index * stride)`` as one expression: a constant where all of it is, else left to PTOAS to simplify."""
    pairs = list(zip(indices, strides))
    known = [(i.value, s.value) for i, s in pairs if isinstance(i, ConstInt) and isinstance(s, ConstInt)]
    if len(known) == len(pairs):
        return index_const(sum(i * s for i, s in known))
    terms = [i if getattr(s, "value", 0) == 1 else build_scalar("Mul", (i, s), UNKNOWN_SPAN) for i, s in pairs]
    return reduce(lambda total, term: build_scalar("Add", (total, term), UNKNOWN_SPAN), terms)


def _check_scalar_access(tensor: Var, dtype: DataType) -> None:
    """PTO moves a scalar of the pointer's own element type, and its arithmetic has no unsigned or one-bit types."""
    if dtype.is_unsigned_int() or dtype is DataType.BOOL:
        raise user_error(
            ValueError,
            f"single elements of {written_name(tensor.name_hint)!r} cannot be read or written: its dtype is {dtype}",
            tensor.span,
            hint="declare the tensor with a signed integer dtype of the same width",
        )


def read_element(kernel: KernelBuilder, tensor: Var, indices: Sequence[Expr]) -> Value:
    """One element of a tensor, by its flat offset."""
    pointer, type = kernel.pointers[tensor]
    offset = kernel.scalars.index(flat_offset(indices, strides_of(type)[0]))
    _check_scalar_access(tensor, type.dtype)
    result = Value(kernel.names.number(), scalar_text(type.dtype))
    kernel.add(Op("load_scalar", result=result, source=pointer, offset=offset))
    return result


def write_element(kernel: KernelBuilder, tensor: Var, indices: Sequence[Expr], value: Expr) -> None:
    """Set one element of a tensor, by its flat offset."""
    pointer, type = kernel.pointers[tensor]
    offset = kernel.scalars.index(flat_offset(indices, strides_of(type)[0]))
    _check_scalar_access(tensor, type.dtype)
    made = kernel.scalars.convert(kernel.scalars.emit(value), value.dtype, type.dtype)
    kernel.add(Op("store_scalar", source=pointer, offset=offset, value=made))
