"""How each operator is written: one function a form, `dps` for every plain instruction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from ..errors import InternalError
from ..ir.enums import AtomicType
from ..ir.expr import Call, ConstFloat, ConstInt, Expr, MakeTuple, Var, index_const
from ..ir.naming import written_name
from ..ir.types import ArrayType, ScalarType, TensorType, TileType
from ..ops.kinds import ROUND_MODES
from ..ops.registry import Bound, OpDecl, Pto, rebind
from ..passes.canonicalize_tile_slice.hazards import reads_no_view, repack_hazard
from .context import Op, Value
from .tensors import flat_offset, read_element, tensor_view_op, window, write_element
from .types import array_text, scalar_text, tile_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_INLINE_ATTRS = frozenset({"pto.tcmp", "pto.tcmps", "pto.tcvt", "pto.tcolsum", "pto.tgather", "pto.tmrgsort"})
"""Instructions whose attributes stand inside ``ins(..)``; elsewhere they follow ``outs(..)``."""


def emit_form(kernel: KernelBuilder, decl: OpDecl, call: Call, result: Var | None) -> Value | None:
    """Write ``call``; its value, when it has one, becomes ``result``'s."""
    assert decl.pto is not None
    form = _FORMS.get(decl.pto.form)
    if form is None:
        raise kernel.unsupported(call, f"{decl.name}: there is no form {decl.pto.form!r}")
    return form(kernel, decl, rebind(call), call, result)


def destination(kernel: KernelBuilder, decl: OpDecl, bound: Bound, result: Var | None) -> Value:
    """The buffer an operator writes: its result's, or the argument's it overwrites."""
    if result is not None and isinstance(result.type, TileType):
        return kernel.handle(result)
    written = decl.reuses or decl.inherits
    if written is None:
        raise kernel.unsupported(bound[decl.args[0].name], f"{decl.name} without a result")
    return kernel.value(bound[written])


def operand(kernel: KernelBuilder, value: Expr, element: DataType | None) -> Value:
    """An instruction operand; a scalar takes the element type it meets."""
    if not isinstance(value.type, ScalarType):
        return kernel.value(value)
    if element is None or element is value.dtype:
        return kernel.scalars.emit(value)
    if isinstance(value, (ConstInt, ConstFloat)) and not (isinstance(value, ConstFloat) and not element.is_float()):
        return kernel.scalars.constant(value.value, element)
    return kernel.scalars.convert(kernel.scalars.emit(value), value.dtype, element)


def own_buffer(kernel: KernelBuilder, value: Expr, element: DataType | None) -> Value:
    """An operand of an instruction that reads no view: a slice is first copied onto itself, as a tile of its own.

    Raises InternalError where that would not be a copy onto itself and destroy the slice's source.
    """
    call = kernel.slices.get(value) if isinstance(value, Var) else None
    if call is None or not isinstance(value, Var):
        return operand(kernel, value, element)
    hazard = repack_hazard(call, kernel.slices.get)
    if hazard is not None:
        name = written_name(value.name_hint)
        raise InternalError(f"slice {name!r} must be copied out of its source for its reader, but {hazard}", call.span)
    copy = kernel.tile_buffer(value)
    instruction(kernel, "pto.tmov", [kernel.value(value)], copy)
    return copy


def element_of(bound: Bound, names: Sequence[str]) -> DataType | None:
    """Element type of the first tile among the named arguments."""
    for name in names:
        value = bound[name]
        if value is not None and isinstance(value.type, TileType):
            return value.type.dtype
    return None


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ATTRIBUTES: dict[str, Callable[[Any, Pto], str]] = {
    "rmode": lambda v, _: f"#pto<round_mode {ROUND_MODES[v].upper()}>",
    "cmpMode": lambda v, _: f"#pto<cmp {_COMPARISONS[v]}>",
    "accPhase": lambda v, _: f"#pto<acc_phase {v}>",
    "precisionType": lambda v, pto: f"#pto<{pto.mnemonic.removeprefix('pto.t')}_precision high_precision>",
}
"""How the value of an instruction attribute is written."""


def attributes(decl: OpDecl, bound: Bound) -> list[tuple[str, str]]:
    """The instruction's attributes that the call states, as text."""
    assert decl.pto is not None
    made = []
    for key, name in decl.pto.attrs.items():
        value = bound.values.get(name)
        if value is None or value is False:
            continue
        if key not in _ATTRIBUTES:
            raise InternalError(f"{decl.name}: codegen does not know how to write {key}", bound.span)
        made.append((key, _ATTRIBUTES[key](value, decl.pto)))
    return made


def dps(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """``pto.x ins(operands) outs(result) {attrs}``."""
    assert decl.pto is not None
    names = [n for n in decl.pto.operands if bound[n] is not None]
    element = element_of(bound, names)
    if element is None and isinstance(call.type, TileType):
        element = call.type.dtype
    read = own_buffer if reads_no_view(decl.name) else operand
    ins = [read(kernel, bound[n], element) for n in names]
    out = destination(kernel, decl, bound, result) if decl.pto.out == "result" else kernel.value(bound[decl.pto.out])
    instruction(kernel, decl.pto.mnemonic, ins, out, attributes(decl, bound))
    return out if result is not None else None


def instruction(
    kernel: KernelBuilder, mnemonic: str, ins: Sequence[Value], out: Value, attrs: Sequence[tuple[str, str]] = ()
) -> None:
    """One instruction in destination-passing style."""
    inline = mnemonic in _INLINE_ATTRS
    kernel.add(Op("dps", mnemonic=mnemonic, ins=ins, outs=[out], attrs=attrs, inline_attrs=inline))


def load(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tensor into a tile."""
    if result is None:
        return None
    tensor, sizes = bound["tensor"], bound.dims("valid_shape") or bound.dims("shapes")
    source = window(kernel, tensor, bound.dims("offsets"), sizes, tensor.name_hint)
    out = kernel.handle(result)
    instruction(kernel, "pto.tload", [source], out)
    return out


def store(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A tile's valid region into a window of a tensor; the value is the tensor."""
    tile, tensor, offsets = bound["tile"], bound["output_tensor"], bound.dims("offsets")
    sizes: Sequence[Expr] = bound.dims("shapes")
    if not sizes:
        valid = tile.type.valid_shape
        sizes = (*(index_const(1) for _ in range(len(offsets) - len(valid))), *valid[-len(offsets) :])
    target = window(kernel, tensor, offsets, sizes, tensor.name_hint)
    attrs = [("atomicType", "#pto<atomic_type atomic_add>")] if bound["atomic"] is AtomicType.Add else []
    instruction(kernel, "pto.tstore", [kernel.value(tile)], target, attrs)
    if result is None:
        return None
    kernel.pointers[result] = kernel.pointers[tensor]
    return kernel.handle(tensor)


def create(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A buffer without contents."""
    return kernel.handle(result) if result is not None else None


def slice_tile(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tile, sharing its bytes."""
    if result is None:
        return None
    type, source = result.type, kernel.value(bound["tile"])
    assert isinstance(type, TileType)
    offsets = [kernel.scalars.index(o) for o in bound.dims("offset")]
    sizes = [str(getattr(d, "value", d)) for d in type.shape]
    valid = [kernel.scalars.index(d) for d in type.valid_shape] if bound.dims("valid_shape") else []
    made = kernel.fresh(result.name_hint, tile_text(type, kernel.target))
    kernel.slices[result] = call
    kernel.add(Op("subview", result=made, source=source, offsets=offsets, sizes=sizes, valid=valid))
    return made


def reshape(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """The same bytes under another shape."""
    if result is None:
        return None
    source = kernel.value(bound[decl.args[0].name])
    assert isinstance(result.type, TileType)
    made = kernel.fresh(result.name_hint, tile_text(result.type, kernel.target))
    kernel.add(Op("treshape", result=made, source=source))
    return made


def set_validshape(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """The same buffer with another valid region: a handle of its own at the same address."""
    return kernel.handle(result) if result is not None else None


def col_sum(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Column sums; with scratch, as a binary tree."""
    out = destination(kernel, decl, bound, result)
    ins = [kernel.value(bound[n]) for n in ("tile", "tmp_tile") if bound[n] is not None]
    instruction(kernel, "pto.tcolsum", ins, out, [("isBinary", "true")] if len(ins) == 2 else [])
    return out


def matmul_acc(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Accumulate, or overwrite where the condition holds."""
    cond = bound["init_cond"]
    if cond is None:
        return dps(kernel, decl, bound, call, result)
    acc, left, right = (kernel.value(bound[n]) for n in ("acc", "lhs", "rhs"))
    condition = kernel.scalars.emit(cond)
    then_body = kernel.region(lambda: instruction(kernel, "pto.tmatmul", [left, right], acc))
    else_body = kernel.region(lambda: instruction(kernel, "pto.tmatmul.acc", [acc, left, right], acc))
    kernel.add(Op("branch", condition=condition, then_body=then_body, else_body=else_body, results=[]))
    return acc


def extract(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a tile copied into a buffer of its own."""
    if result is None:
        return None
    source = kernel.value(bound["src"])
    at = [kernel.scalars.index(bound[n]) for n in ("index_row", "index_col")]
    out = kernel.handle(result)
    instruction(kernel, "pto.textract", [source, *at], out)
    return out


def assemble(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A tile written over a window of another, in place."""
    out = destination(kernel, decl, bound, result)
    target, source = kernel.value(bound["target"]), bound["source"]
    if target != out:
        instruction(kernel, "pto.tmov", [target], out)
    type = source.type
    assert isinstance(type, TileType) and result is not None and isinstance(result.type, TileType)
    offsets = [kernel.scalars.index(o) for o in bound.dims("offset")]
    part = TileType(type.shape, type.dtype, result.type.memref, result.type.tile_view and
                    result.type.tile_view.replace(valid_shape=type.shape), result.type.memory_space)  # fmt: skip
    view = kernel.fresh(f"{written_name(result.name_hint)}_part", tile_text(part, kernel.target))
    sizes = [str(getattr(d, "value", d)) for d in type.shape]
    kernel.add(Op("subview", result=view, source=out, offsets=offsets, sizes=sizes, valid=[]))
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


def read(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """One element of a tile or tensor."""
    source, indices = bound[decl.args[0].name], _indices(bound, decl)
    if isinstance(source.type, TensorType):
        return read_element(kernel, source, indices)
    offset = kernel.scalars.index(tile_offset(source, indices))
    made = kernel.fresh("elem", scalar_text(source.type.dtype))
    kernel.add(Op("tgetval", ins=[kernel.value(source), offset], result=made))
    return made


def write(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Set one element of a tile or tensor; the value is the tile or tensor."""
    target, indices, value = bound[decl.args[0].name], _indices(bound, decl), bound[decl.args[2].name]
    if isinstance(target.type, TensorType):
        write_element(kernel, target, indices, value)
        if result is not None:
            kernel.pointers[result] = kernel.pointers[target]
        return kernel.handle(target)
    offset = kernel.scalars.index(tile_offset(target, indices))
    made = operand(kernel, value, target.type.dtype)
    instruction(kernel, "pto.tsetval", [offset, made], kernel.value(target))
    return kernel.value(target)


def _indices(bound: Bound, decl: OpDecl) -> Sequence[Expr]:
    value = bound[decl.args[1].name]
    return value.elements if isinstance(value, MakeTuple) else (value,)


def tensor_dim(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A dimension of a tensor, from its type."""
    shape = bound.type("tensor").shape
    axis = bound["axis"].value % len(shape)
    return kernel.scalars.convert(kernel.scalars.index(shape[axis]), DataType.INDEX, call.dtype)


def array_create(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A stack array."""
    type = call.type
    assert isinstance(type, ArrayType) and isinstance(type.extent, ConstInt)
    made = kernel.fresh(result.name_hint if result is not None else "array", array_text(type.extent.value, type.dtype))
    kernel.add(Op("declare_array", result=made))
    return made


def array_get(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """One element of a stack array."""
    array, index = bound[decl.args[0].name], kernel.scalars.index(bound[decl.args[1].name])
    made = kernel.fresh("elem", scalar_text(array.type.dtype))
    kernel.add(Op("array_get", source=kernel.value(array), offset=index, result=made))
    return made


def array_set(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Set one element of a stack array in place; the value is the array."""
    array, index = bound[decl.args[0].name], kernel.scalars.index(bound[decl.args[1].name])
    value = operand(kernel, bound[decl.args[2].name], array.type.dtype)
    kernel.add(Op("array_set", source=kernel.value(array), offset=index, value=value))
    return kernel.value(array)


def tensor_view(kernel: KernelBuilder, decl: OpDecl, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """The same memory with another shape or layout."""
    if result is None or not isinstance(call.type, TensorType):
        return None
    pointer, _ = kernel.pointers[bound["input"]]
    kernel.pointers[result] = pointer, call.type
    op = tensor_view_op(kernel, result.name_hint, pointer, call.type)
    kernel.add(op)
    return op.result


_FORMS: dict[str, Callable[[KernelBuilder, OpDecl, Bound, Call, Var | None], Any]] = {
    "dps": dps, "load": load, "store": store, "create": create, "slice": slice_tile, "reshape": reshape,
    "set_validshape": set_validshape, "extract": extract, "assemble": assemble, "tile_read": read,
    "tile_write": write, "tensor_read": read, "tensor_write": write, "full": dps, "move": dps, "cast": dps,
    "transpose": dps, "fillpad": dps, "col_sum": col_sum, "tensor_dim": tensor_dim, "tensor_view": tensor_view,
    "matmul_acc": matmul_acc,
    "array_create": array_create, "array_get": array_get, "array_set": array_set,
}  # fmt: skip
