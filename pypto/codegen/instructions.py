"""Writing one instruction: its operands, attributes and destination. What every form is built from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from ..errors import InternalError, user_error
from ..ir.enums import MemorySpace
from ..ir.expr import Call, ConstFloat, ConstInt, Expr, Var, tile_type_of
from ..ir.naming import written_name
from ..ir.scalar import scalar_const
from ..ir.types import ScalarType, TileType, Type, static_dims
from ..ops.kinds import ROUND_MODES
from ..ops.registry import Bound, OpDecl, Pto
from ..passes.canonicalize_tile_slice.hazards import reads_no_view, repack_hazard
from .context import Op, Value
from .types import scalar_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_INLINE_ATTRS = frozenset(
    {"pto.tcmp", "pto.tcmps", "pto.tcvt", "pto.tcolsum", "pto.tmrgsort", "pto.trandom"}
)
"""Instructions whose attributes stand inside ``ins(..)``; elsewhere they follow ``outs(..)``."""


def destination(kernel: KernelBuilder, bound: Bound, result: Var | None) -> Value:
    """The buffer an operator writes: its result's, or the argument's it overwrites."""
    decl = bound.decl
    if decl.reuses is not None:
        refuse_gaps(kernel, decl, bound[decl.reuses])
    written = decl.reuses or decl.inherits
    if result is not None and isinstance(result.type, TileType):
        if written is not None and result.type.memref is None:
            return kernel.value(bound[written])
        return kernel.handle(result)
    if written is None:
        raise kernel.unsupported(bound.arg(0), f"{decl.name} without a result")
    return kernel.value(bound[written])


def operand(kernel: KernelBuilder, value: Expr, element: DataType | None) -> Value:
    """An instruction operand; a scalar takes the element type it meets."""
    if not isinstance(value.type, ScalarType):
        return kernel.value(value)
    if element is None or scalar_text(element) == scalar_text(value.dtype):
        return kernel.scalars.emit(value)
    if isinstance(value, ConstInt) and element.is_int():
        return kernel.scalars.emit(scalar_const(value.value, element, value.span))
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
    copy = kernel.buffers.of(value)
    instruction(kernel, "pto.tmov", [kernel.value(value)], copy)
    return copy


def refuse_gaps(kernel: KernelBuilder, decl: OpDecl, value: Any) -> None:
    """Raise for a slice with gaps between its rows where an operator takes a tile for all of its buffer.

    Plain slices have been copied by now where this would be so.
    """
    call = kernel.slices.get(value) if isinstance(value, Var) else None
    if call is None or not isinstance(call.type, TileType) or call.type.memory_space is not MemorySpace.Vec:
        return
    memref, dims = tile_type_of(value).memref, static_dims(call.type.shape)
    if memref is not None and dims is not None and memref.size > call.type.dtype.storage_bytes(prod(dims)):
        column = static_dims(call.type.shape[-1:]) == (1,) and len(call.args) == 3
        raise user_error(
            ValueError,
            f"{decl.name} cannot take slice {written_name(value.name_hint)!r}, whose rows lie apart in the tile it is "
            "a slice of" + ("" if column else " and which has a valid_shape"),
            call.span,
            "a column by itself is the maximum of rows of one valid element: "
            "pl.row_max(pl.slice(tile, [N, 8], [0, column], valid_shape=[N, 1]), tmp)"
            if column
            else "slice without valid_shape, or copy the slice first: pl.move(tile, target_memory=pl.Mem.Vec)",
        )


def scalar_dtype(decl: OpDecl, name: str, bound: Bound, result: Type) -> DataType | None:
    """The dtype in which an instruction takes scalar operand ``name``: as declared, else the result's elements'."""
    like = decl.param(name).like
    if like is None:
        return result.dtype if isinstance(result, TileType) else None
    beside = bound.values.get(like)
    return DataType[like] if beside is None else beside.type.dtype


def refuse_fraction(bound: Bound, name: str, element: DataType | None) -> None:
    """Raise ValueError for a floating-point scalar that would lose its fraction to become an integer element."""
    value = bound[name]
    if element is None or not element.is_int() or not isinstance(value.type, ScalarType):
        return
    whole = isinstance(value, ConstFloat) and math.isfinite(value.value) and value.value == int(value.value)
    if value.dtype.is_float() and not whole:
        shown = value.value if isinstance(value, ConstFloat) else value.dtype
        raise user_error(
            ValueError,
            f"{bound.decl.name} takes {name!r} as an element, {element}, and {shown} would lose its fraction",
            bound.span,
            f"cast the tile to floating point, or the scalar: pl.cast({name}, pl.{element.name})",
        )


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_OUTSIDE = ("undefined", "clamp", "wrap", "zero")
_ATTRIBUTES: dict[str, Callable[[Any, Pto], str]] = {
    "rmode": lambda v, _: f"#pto<round_mode {ROUND_MODES[v].upper()}>",
    "satmode": lambda v, _: "#pto<saturation_mode ON>",
    "cmpMode": lambda v, _: f"#pto<cmp {_COMPARISONS[v]}>",
    "accPhase": lambda v, _: f"#pto<acc_phase {v}>",
    "precisionType": lambda v, pto: f"#pto<{pto.mnemonic.removeprefix('pto.t')}_precision high_precision>",
    "descending": lambda v, _: "true",
    "rounds": lambda v, _: f"{v} : i32",
    "upperOrLower": lambda v, _: f"{int(v)} : i32",
    "offset": lambda v, _: f"{v} : i32",
    "coalesce": lambda v, _: f"#pto<coalesce {('row', 'elem')[v]}>",
    "gatherOob": lambda v, _: f"#pto<gather_oob {_OUTSIDE[v]}>",
    "byte": lambda v, _: f"{v} : i32",
    "printFormat": lambda v, _: f"#pto<print_format {v}>",
    "exhausted": lambda v, _: "true",
}
"""How the value of an instruction attribute is written."""


def attributes(pto: Pto, bound: Bound) -> list[tuple[str, str]]:
    """The instruction's attributes that the call states, as text."""
    made = []
    for key, name in pto.attrs.items():
        value = bound.values.get(name)
        if value is None or value is False:
            continue
        if key not in _ATTRIBUTES:
            raise InternalError(f"{bound.decl.name}: codegen does not know how to write {key}", bound.span)
        made.append((key, _ATTRIBUTES[key](value, pto)))
    return made


def dps(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """``pto.x ins(operands) outs(result) {attrs}``."""
    read = own_buffer if reads_no_view(bound.decl.name) else operand
    names = [n for n in pto.operands if bound[n] is not None]
    elements = [scalar_dtype(bound.decl, n, bound, call.type) for n in names]
    for name, element in zip(names, elements):
        refuse_fraction(bound, name, element)
    ins = [read(kernel, bound[n], element) for n, element in zip(names, elements)]
    out = destination(kernel, bound, result) if pto.out == "result" else kernel.value(bound[pto.out])
    instruction(kernel, pto.mnemonic, ins, out, attributes(pto, bound))
    return out if result is not None else None


def generic(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """``"pto.x"(operands, result) {attrs}``: MLIR's own syntax, which needs none from the dialect."""
    ins = [operand(kernel, bound[n], scalar_dtype(bound.decl, n, bound, call.type)) for n in pto.operands]
    out = destination(kernel, bound, result)
    kernel.add(Op("generic", mnemonic=pto.mnemonic, ins=ins, outs=[out], attrs=attributes(pto, bound)))
    return out if result is not None else None


def instruction(
    kernel: KernelBuilder, mnemonic: str, ins: Sequence[Value], out: Value, attrs: Sequence[tuple[str, str]] = ()
) -> None:
    """One instruction in destination-passing style."""
    inline = mnemonic in _INLINE_ATTRS
    kernel.add(Op("dps", mnemonic=mnemonic, ins=ins, outs=[out], attrs=attrs, inline_attrs=inline))
