"""How each operator is written: one function a form, `dps` for every plain instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import AtomicType, MemorySpace
from ..ir.expr import Call, ConstBool, ConstInt, Expr, MakeTuple, Var, index_const
from ..ir.naming import written_name
from ..ir.types import ArrayType, TensorType, TileType, Type
from ..ops.regions import read_region
from ..ops.registry import Bound, Pto, rebind
from .context import Op, Value
from .forms_cross import CROSS_FORMS
from .forms_dist import DIST_FORMS
from .forms_fixpipe import FIX_PIPE_FORMS
from .forms_gather import GATHER_FORMS
from .forms_numeric import NUMERIC_FORMS
from .forms_sync import SYNC_FORMS
from .instructions import destination, dps, generic, instruction, operand, refuse_gaps
from .tensors import flat_offset, is_empty, read_element, tensor_view_op, window, write_element, written_extents
from .types import array_text, scalar_text, tile_text
from .windows import extracted, inserted

if TYPE_CHECKING:
    from .kernel import KernelBuilder


def emit_form(kernel: KernelBuilder, pto: Pto, call: Call, result: Var | None) -> Value | None:
    """Write ``call`` as ``pto``; its value, when it has one, becomes ``result``'s."""
    form = _FORMS.get(pto.form)
    if form is None:
        raise user_error(ValueError, f"{call.op.name} parses, but cannot be written as PTO", call.span)
    return form(kernel, pto, rebind(call), call, result)


def has_form(form: str) -> bool:
    """Whether codegen writes operators of this form."""
    return form in _FORMS


def load(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tensor into a tile."""
    if result is None:
        return None
    tensor, sizes = bound["tensor"], _extents_read(bound)
    if is_empty(sizes):
        return kernel.handle(result)
    source = window(kernel, tensor, bound.dims("offsets"), sizes, tensor.name_hint)
    out = kernel.handle(result)
    instruction(kernel, pto.mnemonic, [source], out)
    return out


def _extents_read(bound: Bound) -> Sequence[Expr]:
    """What a load reads: the extents asked for, less what a clamped or partly valid tensor does not have."""
    tensor, shapes = bound.type("tensor"), bound.dims("shapes")
    asked = bound.dims("valid_shape") or shapes
    if len(asked) != len(shapes):
        return shapes  # of boxes of MX scales whole ones are read, and valid_shape is of the tile
    if not bound["clamp"] and tensor.valid_shape is tensor.shape:
        return asked
    return read_region(
        bound, tensor.shape, tensor.valid_shape, bound.dims("offsets"), shapes, asked, clamp=bound["clamp"]
    )


def store(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A tile's valid region into a window of a tensor; the value is the tensor."""
    tile, tensor, offsets = bound["tile"], bound["output_tensor"], bound.dims("offsets")
    sizes = bound.dims("shapes") or written_extents(tile.type.valid_shape, len(offsets))
    if not is_empty(sizes):
        target = window(kernel, tensor, offsets, sizes, tensor.name_hint, written=True)
        attrs = [("atomicType", "#pto<atomic_type atomic_add>")] if bound["atomic"] is AtomicType.Add else []
        instruction(kernel, "pto.tstore", [kernel.value(tile)], target, attrs)
    if result is None:
        return None
    kernel.pointers[result] = kernel.pointers[tensor]
    return kernel.handle(tensor)


def move(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A copy. No instruction copies a tile onto itself."""
    if result is not None and kernel.options.addresses:
        source, wanted = _place(bound["src"].type), _place(result.type)
        both = None if source is None or source != wanted else f"{source[1]} in {source[0].name}"
    else:
        both = "in one buffer" if result is not None and kernel.value(bound["src"]) == kernel.handle(result) else None
    if both is not None:
        raise user_error(
            ValueError,
            f"tile.move requires distinct source and destination addresses, and both are {both}",
            call.span,
            "drop the move, or let the compiler place one of the tiles",
        )
    if result is not None and extracted(kernel, bound["src"], result, kernel.handle(result)):
        return kernel.handle(result)
    return dps(kernel, pto, bound, call, result)


def _place(type: Type) -> tuple[MemorySpace, int] | None:
    """The memory and address of a tile, where both are known."""
    if not isinstance(type, TileType) or type.memref is None or type.memory_space is None:
        return None
    address = type.memref.byte_offset
    return (type.memory_space, int(address.value)) if isinstance(address, ConstInt) else None


def _in_place(kernel: KernelBuilder, source: TileType, result: TileType) -> bool:
    """Whether two tiles are planned to be at one address."""
    if not kernel.options.addresses or source.memref is None or result.memref is None:
        return False
    left, right = _place(source), _place(result)
    return left == right if left is not None else source.memref.byte_offset is result.memref.byte_offset


def create(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A buffer without contents."""
    return kernel.handle(result) if result is not None else None


def slice_tile(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tile, sharing its bytes."""
    if result is None:
        return None
    type, owner = result.type, bound.type("tile")
    assert isinstance(type, TileType)
    if is_empty(type.valid_shape) and kernel.options.addresses and owner.memref is not None:
        # PTOAS compiles no view without elements. Where an empty tile is does not matter.
        return kernel.buffers.at(type, owner.memref.byte_offset, index_const(0), result.name_hint)
    source = kernel.value(bound["tile"])
    offsets = [kernel.scalars.index(o) for o in bound.dims("offset")]
    sizes = [str(getattr(d, "value", d)) for d in type.shape]
    valid = [kernel.scalars.index(d) for d in type.valid_shape] if bound.dims("valid_shape") else []
    made = kernel.fresh(result.name_hint, tile_text(type, kernel.target))
    kernel.slices[result] = call
    kernel.add(Op("subview", result=made, source=source, offsets=offsets, sizes=sizes, valid=valid))
    return made


def reshape(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """The same bytes under another shape: at the same address, where memory is planned."""
    if result is None:
        return None
    refuse_gaps(kernel, bound.decl, bound.arg(0))
    assert isinstance(result.type, TileType)
    if kernel.options.addresses and _aligned(kernel, result.type):
        return kernel.handle(result)
    source = kernel.value(bound.arg(0))
    made = kernel.fresh(result.name_hint, tile_text(result.type, kernel.target))
    kernel.add(Op("treshape", result=made, source=source))
    return made


def _aligned(kernel: KernelBuilder, type: TileType) -> bool:
    """Whether a tile has an address at which a buffer may be."""
    if type.memref is None:
        return False
    address = type.memref.byte_offset
    return not isinstance(address, ConstInt) or int(address.value) % kernel.target.vector_address_alignment == 0


def set_validshape(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """The same bytes with another valid region, by a handle of its own where the tile's is still needed as it is.

    Where types state extents, the handle is one with the region in its type or operands, and nothing is set.
    """
    source = bound["tile"]
    if isinstance(source, Var) and source in kernel.slices:
        raise user_error(
            ValueError,
            "tile.set_validshape cannot narrow a tile view: the valid region of slice "
            f"{written_name(source.name_hint)!r} is part of it",
            call.span,
            "give the slice a valid_shape=, or set the valid shape of the tile before slicing it",
        )
    if result is None:
        return None
    if source in kernel.splits:
        return _shown_in_slot(kernel, source, result)
    if kernel.options.constant_extents and kernel.options.addresses:
        return kernel.handle(result)
    own = kernel.buffers.own.get(source)
    made = kernel.buffers.open(result) if own is None else own._replace(known="")
    extents = [kernel.scalars.index(bound[n]) for n in ("valid_rows", "valid_cols")]
    kernel.add(Op("set_validshape", source=made, extents=extents))
    return made


def _shown_in_slot(kernel: KernelBuilder, popped: Var, result: Var) -> Value:
    """A popped tile lies where the pipe put it: a view of it has another region, or its own is set."""
    assert isinstance(result.type, TileType)
    kernel.splits[result] = kernel.splits[popped]
    source = kernel.value(popped)
    if popped in kernel.reshown:
        extents = [kernel.scalars.index(d) for d in result.type.valid_shape]
        kernel.add(Op("set_validshape", source=source, extents=extents))
        return source
    if not all(isinstance(d, ConstInt) and d.value for d in result.type.valid_shape):
        raise user_error(
            ValueError,
            f"{written_name(popped.name_hint)!r} is used in its slot as it came, and with a valid region known at run "
            "time only",
            result.span,
            "copy it first, pl.move(x, target_memory=pl.Mem.Vec), and use the copy for one of the two",
        )
    seen = kernel.fresh(result.name_hint, tile_text(result.type, kernel.target))
    kernel.add(Op("treshape", result=seen, source=source))
    return seen


def col_sum(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Column sums; with scratch, as a binary tree."""
    out = destination(kernel, bound, result)
    ins = [kernel.value(bound[n]) for n in ("tile", "tmp_tile") if bound[n] is not None]
    instruction(kernel, "pto.tcolsum", ins, out, [("isBinary", "true")] if len(ins) == 2 else [])
    return out


def matmul_acc(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Accumulate, or overwrite where the condition holds."""
    cond = bound["init_cond"]
    if cond is None:
        return dps(kernel, pto, bound, call, result)
    acc, left, right = (kernel.value(bound[n]) for n in ("acc", "lhs", "rhs"))

    def overwrite() -> None:
        instruction(kernel, "pto.tmatmul", [left, right], acc)

    def accumulate() -> None:
        instruction(kernel, "pto.tmatmul.acc", [acc, left, right], acc)

    if isinstance(cond, ConstBool):
        (overwrite if cond.value else accumulate)()
        return acc
    condition, then_body, else_body = kernel.scalars.emit(cond), kernel.region(overwrite), kernel.region(accumulate)
    kernel.add(Op("branch", condition=condition, then_body=then_body, else_body=else_body, results=[]))
    return acc


def extract(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tile copied into a buffer of its own."""
    if result is None:
        return None
    source = kernel.value(bound["src"])
    at = [kernel.scalars.index(bound[n]) for n in ("index_row", "index_col")]
    out = kernel.handle(result)
    instruction(kernel, "pto.textract", [source, *at], out)
    return out


def assemble(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """The valid part of a tile written over a window of another, in place."""
    out = destination(kernel, bound, result)
    target, source = kernel.value(bound["target"]), bound["source"]
    type = source.type
    assert isinstance(type, TileType) and result is not None and isinstance(result.type, TileType)
    if target != out and not _in_place(kernel, bound.type("target"), result.type):
        instruction(kernel, "pto.tmov", [target], out)
    if bound["source"] in kernel.windows:
        return out
    offsets = [kernel.scalars.index(o) for o in bound.dims("offset")]
    if type.dtype is not result.type.dtype:
        # An accumulator is converted as it drains; a view of its target has the target's element type.
        instruction(kernel, "pto.tinsert", [kernel.value(source), *offsets], out)
        return out
    if inserted(kernel, source, offsets, result, out):
        return out
    region = result.type.get_effective_tile_view().replace(valid_shape=type.valid_shape)
    part = TileType(type.shape, type.dtype, None, region, result.type.memory_space)
    view = kernel.fresh(f"{written_name(result.name_hint)}_part", tile_text(part, kernel.target))
    sizes = [str(getattr(d, "value", d)) for d in type.shape]
    valid = [kernel.scalars.index(d) for d in type.valid_shape]
    kernel.add(Op("subview", result=view, source=out, offsets=offsets, sizes=sizes, valid=valid))
    instruction(kernel, "pto.tmov", [kernel.value(source)], view)
    return out


def tile_offset(tile: Expr, indices: Sequence[Expr]) -> Expr:
    """Flat row-major element offset of ``indices`` in a tile."""
    assert isinstance(tile.type, TileType)
    strides, step = [], 1
    for dim in reversed(tile.type.shape):
        strides.insert(0, index_const(step))
        step *= getattr(dim, "value", 1)
    return flat_offset(indices, strides)


def read(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """One element of a tile or tensor."""
    source, indices = bound.arg(0), _indices(bound)
    if isinstance(source.type, TensorType):
        return read_element(kernel, source, indices)
    offset = kernel.scalars.index(tile_offset(source, indices))
    made = Value(kernel.names.number(), scalar_text(source.type.dtype))
    kernel.add(Op("tgetval", ins=[kernel.value(source), offset], result=made))
    return made


def write(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Set one element of a tile or tensor; the value is the tile or tensor."""
    target, indices, value = bound.arg(0), _indices(bound), bound.arg(2)
    if isinstance(target.type, TensorType):
        write_element(kernel, target, indices, value)
        if result is not None:
            kernel.pointers[result] = kernel.pointers[target]
        return kernel.handle(target)
    offset = kernel.scalars.index(tile_offset(target, indices))
    made = operand(kernel, value, target.type.dtype)
    instruction(kernel, "pto.tsetval", [offset, made], kernel.value(target))
    return kernel.value(target)


def _indices(bound: Bound) -> Sequence[Expr]:
    value = bound.arg(1)
    return value.elements if isinstance(value, MakeTuple) else (value,)


def tensor_dim(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A dimension of a tensor, from its type."""
    shape = bound.type("tensor").shape
    axis = bound["axis"].value % len(shape)
    return kernel.scalars.convert(kernel.scalars.index(shape[axis]), DataType.INDEX, call.dtype)


def array_create(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A stack array."""
    type = call.type
    assert isinstance(type, ArrayType) and isinstance(type.extent, ConstInt)
    made = kernel.fresh(result.name_hint if result is not None else "array", array_text(type.extent.value, type.dtype))
    kernel.add(Op("declare_array", result=made))
    return made


def array_get(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """One element of a stack array."""
    array, index = bound.arg(0), kernel.scalars.index(bound.arg(1))
    made = Value(kernel.names.number(), scalar_text(array.type.dtype))
    kernel.add(Op("array_get", source=kernel.value(array), offset=index, result=made))
    return made


def array_set(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Set one element of a stack array in place; the value is the array."""
    array, index = bound.arg(0), kernel.scalars.index(bound.arg(1))
    value = operand(kernel, bound.arg(2), array.type.dtype)
    kernel.add(Op("array_set", source=kernel.value(array), offset=index, value=value))
    return kernel.value(array)


def tensor_view(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """The same memory with another shape or layout."""
    if result is None or not isinstance(call.type, TensorType):
        return None
    pointer, _ = kernel.pointers[bound["input"]]
    kernel.pointers[result] = pointer, call.type
    op = tensor_view_op(kernel, result.name_hint, pointer, call.type)
    kernel.add(op)
    return op.result


_FORMS: dict[str, Callable[[KernelBuilder, Pto, Bound, Call, Var | None], Any]] = {
    "dps": dps, "generic": generic, "load": load, "store": store, "create": create, "slice": slice_tile,
    "reshape": reshape,
    "set_validshape": set_validshape, "extract": extract, "assemble": assemble, "tile_read": read,
    "tile_write": write, "tensor_read": read, "tensor_write": write, "full": dps, "move": move, "cast": dps,
    "transpose": dps, "fillpad": dps, "col_sum": col_sum, "tensor_dim": tensor_dim, "tensor_view": tensor_view,
    "matmul_acc": matmul_acc,
    "array_create": array_create, "array_get": array_get, "array_set": array_set,
    **GATHER_FORMS, **SYNC_FORMS, **CROSS_FORMS, **DIST_FORMS, **NUMERIC_FORMS,
    **FIX_PIPE_FORMS,
}  # fmt: skip
