"""Tensors an orchestration makes, looks at through windows, and reads and writes single elements of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dtypes import DataType
from ...ir.enums import TensorLayout
from ...ir.expr import Call, Expr, Var, const_value, tensor_type_of
from ...ir.types import TensorType
from ...ir.visitor import find_all
from ...ops.registry import rebind
from ..context import Op
from . import packed
from .blocks import Handle
from .cpp import cpp, element_type, float_text, scalar_type
from .kernels import Workspace
from .names import written

if TYPE_CHECKING:
    from .builder import OrchestrationBuilder


def create_info(
    builder: OrchestrationBuilder, name: str, type: TensorType, call: Call | None, room: Workspace | None = None
) -> list[Op]:
    """The declarations that describe a tensor to be made; one that stands for a buffer of pipes gets its ``room``."""
    shapes = builder.names.take(f"{name}_shapes")
    ops, items = packed.extents(builder, type, type.shape)
    if room is not None:
        items = [_room(builder, room)]
    kwargs = call.kwargs if call is not None else {}
    info = Op(
        "create_info", name=name, shapes=shapes, rank=len(items), dtype=element_type(type.dtype),
        manual_dep=bool(kwargs.get("manual_dep")), initial=_initial(builder, type, call),
    )  # fmt: skip
    return [*ops, Op("extents", name=shapes, items=items), info]


def _room(builder: OrchestrationBuilder, room: Workspace) -> str:
    """The extent of a buffer of pipes: each block has a part of it."""
    if room.blocks is None:
        return str(room.elements)
    return cpp("cast", "uint32_t", cpp("product", room.elements, builder.scalars.text(room.blocks)))


def _initial(builder: OrchestrationBuilder, type: TensorType, call: Call | None) -> str | None:
    """What a tensor is filled with: zero for any type, other values for types C++ has."""
    value = call.kwargs.get("init_value") if call is not None else None
    if call is None or value is None:
        return None
    if value == 0:
        return "0"
    dtype = type.dtype
    if dtype.is_float():
        if dtype is not DataType.FP32:
            raise builder.refused(
                f"a non-zero init_value is not supported for {dtype}, which the host has no type for",
                call,
                "create it with init_value=0, or fill it in a kernel",
            )
        return cpp("cast", "float", float_text(float(value)))
    if value != int(value):
        raise builder.refused(f"init_value {value} is not an integer but the tensor holds {dtype}", call)
    return cpp("cast", scalar_type(dtype, call.span), str(int(value)))


def _create(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    """Room at the head of the block, together with the block's others, unless its size is computed in the block."""
    type, home = tensor_type_of(var), builder.block.home
    room = builder.workspaces.get(var)
    dims = [*type.shape, room.blocks] if room is not None and room.blocks is not None else type.shape
    sizes = [builder.handle(n, call) for d in dims for n in find_all(d, Var)]
    name = builder.names.take(var.name_hint)
    declarations = create_info(builder, builder.names.take(f"{name}_ci"), type, call, room)
    if any(s.block is home or s.block.depth > home.depth for s in sizes if s.block is not builder.root):
        allocation = builder.new_allocation(builder.block)
        made_in = builder.block
    else:
        allocation, made_in = builder.allocation(home), home
    allocation.declarations.extend(declarations)
    allocation.infos.append(declarations[-1].name)
    allocation.made.append(name)
    if allocation not in made_in.allocations:
        builder.block.ops.extend((*allocation.declarations, allocation.op))
    builder.bind(var, Handle(name, made_in))


# Windows


def _source(builder: OrchestrationBuilder, call: Call) -> tuple[Handle, TensorType]:
    return builder.tensor(call.args[0]), tensor_type_of(call.args[0])


def _slice(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    """A window, cut at the tensor's edge; axes of size 1 may be left out of it."""
    given = rebind(call)
    source, type = _source(builder, call)
    dropped = sorted(int(const_value(d) or 0) for d in given.dims("drop_dims") or ())
    name = builder.names.take(var.name_hint)
    offsets, shapes = builder.names.take(f"{name}_offsets"), builder.names.take(f"{name}_shapes")
    begins = packed.offsets(builder, type, given.dims("offset"), name, call)
    ops, sizes = packed.extents(builder, type, given.dims("shape"))
    for op in (*ops, Op("extents", name=offsets, items=begins)):
        builder.emit(op)
    builder.unit.uses.add("algorithm")
    clamped = [cpp("clamped", size, source.text, offsets, axis) for axis, size in enumerate(sizes)]
    builder.emit(Op("extents", name=shapes, items=clamped))
    window = cpp("method", source.text, "view", [shapes, offsets])
    at = (source.text, tuple(begins))
    if not dropped:
        builder.emit(Op("declare", type="ChipTensor", name=name, value=window))
        builder.bind(var, Handle(name, builder.block, view=at))
        return
    view = builder.names.take(f"{name}_view")
    builder.emit(Op("declare", type="ChipTensor", name=view, value=window))
    axes = [i for i in range(len(sizes)) if i not in dropped]
    builder.emit(Op("drop_axes", name=name, view=view, axes=axes))
    builder.bind(var, Handle(name, builder.block))


def _reshape(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    source, _ = _source(builder, call)
    _reshaped(builder, source, var)


def _reshaped(builder: OrchestrationBuilder, source: Handle, var: Var) -> None:
    type, name = tensor_type_of(var), builder.names.take(var.name_hint)
    shapes = builder.names.take(f"{name}_shapes")
    ops, items = packed.extents(builder, type, type.shape)
    for op in (*ops, Op("extents", name=shapes, items=items)):
        builder.emit(op)
    value = cpp("method", source.text, "reshape", [shapes, len(items)])
    builder.emit(Op("declare", type="ChipTensor", name=name, value=value))
    builder.bind(var, Handle(name, builder.block))


def _transpose(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    source, type = _source(builder, call)
    rank = len(type.shape)
    axes = [int(const_value(a) or 0) % rank for a in call.args[1:3]]
    _transposed(builder, source, type, axes, call, var)


def _transposed(
    builder: OrchestrationBuilder, source: Handle, type: TensorType, axes: Sequence[int], call: Call, var: Var
) -> None:
    packed.check_axes(builder, type, axes, call)
    builder.declare(var, "ChipTensor", cpp("method", source.text, "transpose", list(axes)))


def _view(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    """The same memory in another shape or in another layout: the runtime does one or the other."""
    given = rebind(call)
    source, type = _source(builder, call)
    layout = given["layout"] if given["layout"] is not None else type.layout
    if given["shape"] is None:
        if layout is type.layout:
            builder.declare(var, "ChipTensor", source.text)
            return
        rank = len(type.shape)
        _transposed(builder, source, type, (rank - 2, rank - 1), call, var)
        return
    hint = "make two views, one for the shape and one for the layout"
    if layout is not type.layout:
        raise builder.refused("an orchestration cannot combine shape reinterpret and a change of layout", call, hint)
    if layout is not TensorLayout.ND:
        raise builder.refused(
            f"an orchestration only supports shape reinterpret for ND layout, not {layout.name}", call, hint
        )
    _reshaped(builder, source, var)


def _reinterpret(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    raise builder.refused(
        "tensor.reinterpret_view is not supported in Orchestration functions, only in InCore ones: the host cannot "
        "change a tensor's dtype",
        call,
        "use it inside `with pl.at(level=pl.Level.CORE_GROUP):`",
    )


def _assemble(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    """Nothing to write when the source is the window it goes to: a kernel wrote it there."""
    given = rebind(call)
    target, source = builder.tensor(call.args[0]), builder.tensor(call.args[1])
    begins = packed.offsets(builder, tensor_type_of(call.args[0]), given.dims("offset"), "", call)
    if source.view != (target.text, tuple(begins)):
        raise builder.refused(
            "an orchestration does not copy: pl.assemble here needs a source that is a window of the target",
            call,
            "assemble inside `with pl.at(level=pl.Level.CORE_GROUP):`, or let the kernel write to a pl.slice of the "
            "target",
        )
    builder.bind(var, target)


# Elements and extents


def indices_of(call: Call) -> list[Expr]:
    """The indices of the element a call reads or writes."""
    return list(rebind(call).dims("indices"))


def _indices(builder: OrchestrationBuilder, call: Call, hint: str) -> tuple[str, int]:
    """An array that holds the indices of an element."""
    items = indices_of(call)
    name = builder.names.take(f"indices_{hint}")
    builder.emit(Op("extents", name=name, items=[builder.scalars.word(i) for i in items]))
    return name, len(items)


def _read(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    source, type = _source(builder, call)
    packed.check_elements(builder, type, call)
    name, rank = _indices(builder, call, written(var.name_hint))
    kind = scalar_type(type.dtype, call.span)
    builder.assign_scalar(var, cpp("generic", "get_tensor_data", kind, [source.text, rank, name]))


def _write(builder: OrchestrationBuilder, call: Call, var: Var | None = None) -> None:
    source, type = _source(builder, call)
    packed.check_elements(builder, type, call)
    given = rebind(call)
    root = call.args[0]
    name, rank = _indices(builder, call, written(getattr(root, "name_hint", "tensor")))
    kind, value = scalar_type(type.dtype, call.span), builder.scalars.text(given["value"])
    builder.emit(Op("evaluate", value=cpp("generic", "set_tensor_data", kind, [source.text, rank, name, value])))
    if var is not None and isinstance(var.type, TensorType):
        builder.bind(var, source)


def _dim(builder: OrchestrationBuilder, call: Call) -> str:
    """An extent: as the type states it, or as the runtime knows it."""
    source, type = _source(builder, call)
    axis = int(const_value(rebind(call)["axis"]) or 0) % len(type.shape)
    extent = type.shape[axis]
    if all(builder.is_known(n) for n in find_all(extent, Var)):
        return builder.scalars.text(extent)
    packed.check_axis(builder, type, axis, call)
    return cpp("extent_of", source.text, axis)


def _dim_into(builder: OrchestrationBuilder, call: Call, var: Var) -> None:
    builder.assign_scalar(var, _dim(builder, call), natural=True)


OPERATORS: dict[str, Any] = {
    "tensor.create": _create,
    "tensor.slice": _slice,
    "tensor.reshape": _reshape,
    "tensor.transpose": _transpose,
    "tensor.view": _view,
    "tensor.reinterpret_view": _reinterpret,
    "tensor.assemble": _assemble,
    "tensor.read": _read,
    "tensor.write": _write,
    "tensor.dim": _dim_into,
}
EFFECTS: dict[str, Any] = {"tensor.write": _write}
SCALARS: dict[str, Any] = {"tensor.dim": _dim}
