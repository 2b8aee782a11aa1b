"""Forms of what passes between cores: pipes, their buffers, tiles pushed and popped; and of prefetches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dtypes import DataType
from ..errors import InternalError, user_error
from ..ir.enums import FunctionType, MemorySpace
from ..ir.expr import Call, ConstInt, Expr, Var, index_const
from ..ir.types import TileType
from ..ops.registry import Bound, Pto
from ..ops.rules import dim_text, same
from ..passes.packed_products import is_whole, lies_as
from ..passes.pipe_workspace import buffer_of, offset_of
from .context import Op, Value
from .forms_gather import Form, whole
from .instructions import operand
from .types import scalar_text, tile_text

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_BUFFERS = ("c2v_consumer_buf", "v2c_consumer_buf")
_BY_ROWS = (1, 3)
"""Splits of pipes that divide rows between the lanes."""


def reserve_buffer(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value:
    """A ring buffer in the consumer's own memory. Without addresses PTOAS places it."""
    made = kernel.fresh(result.name_hint if result is not None else bound["name"], "i32")
    location = "mat" if kernel.function.func_type is FunctionType.AIC else "vec"
    placed = kernel.options.addresses
    if placed and bound["base"] < 0:
        raise InternalError(f"buffer {bound['name']!r} reaches codegen without an address", call.span)
    attrs = [
        ("name", f'"{bound["name"]}"'),
        ("size", bound["size"]),
        ("location", f"#pto.address_space<{location}>"),
        ("auto", "false" if placed else "true"),
    ]
    if placed:
        attrs.append(("base", bound["base"]))
    kernel.add(Op("attributed", result=made, mnemonic="pto.reserve_buffer", attrs=attrs))
    return made


def import_peer_buffer(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value:
    """The address of a buffer another function reserves."""
    made = kernel.fresh(result.name_hint if result is not None else bound["name"], "i32")
    attrs = [("name", f'"{bound["name"]}"'), ("peer_func", f"@{bound['peer_func']}")]
    kernel.add(Op("attributed", result=made, mnemonic="pto.import_reserved_buffer", attrs=attrs))
    return made


def _pipe_id(call: Call, bound: Bound) -> list[tuple[str, int]]:
    return [("id", bound["id"])] if "id" in call.kwargs else []


def initialize_pipe(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """One side of a pipe; where it goes through global memory, with its part of the buffer there."""
    attrs = _pipe_id(call, bound)
    for name in ("dir_mask", "slot_size", "slot_num", "local_slot_num"):
        if bound[name] is not None:
            attrs.append((name, bound[name]))
    buffers = [(name, operand(kernel, bound[name], DataType.INT32)) for name in _BUFFERS]
    buffer = buffer_of(kernel.function)
    if buffer is not None:
        ring = _ring(kernel, kernel.pointers[buffer][0], offset_of(call, kernel.function))
        buffers.insert(0, ("gm_slot_buffer", ring))
    kernel.add(Op("initialize_pipe", mnemonic=pto.mnemonic, attrs=attrs, buffers=buffers))


def _ring(kernel: KernelBuilder, pointer: Value, offset: int) -> Value:
    """The address ``offset`` bytes into the buffer of pipes."""
    if offset == 0:
        return pointer
    made = kernel.fresh("ring", pointer.type)
    moved = kernel.scalars.index(index_const(offset // DataType.FP32.storage_bytes(1)))
    kernel.add(Op("addptr", result=made, source=pointer, offset=moved))
    return made


def tpush(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """A tile to the other core, seen as the region that crosses."""
    attrs = [*_pipe_id(call, bound), ("split", bound["split"])]
    type = bound.type("tile")
    to_cube = type.memory_space is MemorySpace.Vec
    together = to_cube and bool(kernel.function.attrs.get("dual_aiv_dispatch"))
    region = _crossing_region(type, bound["split"], to_cube, together)
    if region is None or not isinstance(bound["tile"], Var):
        kernel.add(Op("apply", result=None, mnemonic=pto.mnemonic, operands=[kernel.value(bound["tile"])], attrs=attrs))
        return
    if not lies_as(type, region[0]):
        raise user_error(
            ValueError,
            f"a product of which {dim_text(type.valid_shape[0])} of {dim_text(type.shape[0])} rows are valid lies "
            "packed in Acc: lanes cannot take halves of the tile",
            call.span,
            "divide it by columns, or make the ragged operand whole before the product",
        )
    tile = kernel.buffers.open(bound["tile"])
    for extents, pushes in ((region, True), (type.valid_shape, False)):
        kernel.add(Op("set_validshape", source=tile, extents=[kernel.scalars.index(d) for d in extents]))
        if pushes:
            kernel.add(Op("apply", result=None, mnemonic=pto.mnemonic, operands=[tile], attrs=attrs))


def _crossing_region(type: TileType, split: int, to_cube: bool, together: bool) -> Sequence[Expr] | None:
    """The region that crosses where it is not the valid one: whole rows, and where lanes divide rows, all of them.

    Both ends say the same of a tile. Without a split it is so of products of known extents, and of what lanes hand over
    ``together``.
    """
    known = [d.value for d in type.valid_shape if isinstance(d, ConstInt)]
    rows, cols = type.valid_shape
    if is_whole(type) or 0 in known:
        return None
    if not split:
        whole_rows = together if to_cube else len(known) == len(type.valid_shape)
        return [rows, type.shape[1]] if whole_rows and not (to_cube and same(cols, type.shape[1])) else None
    rows = type.shape[0] if split in _BY_ROWS or to_cube else rows
    return None if same(rows, type.valid_shape[0]) and same(cols, type.shape[1]) else [rows, type.shape[1]]


def tpop(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A tile from the other core, in the slot it came in. Extents below its shape are operands.

    What crossed beyond known valid extents is then seen as what is valid.
    """
    if result is None:
        return None
    assert isinstance(result.type, TileType)
    type = result.type
    partial = not is_whole(type)
    for d in type.valid_shape:
        if d.dtype.is_float() or d.dtype is DataType.BOOL:
            kind = scalar_text(d.dtype)
            message = f"tpop valid_shape operand must be integer or index type, got {kind}"
            raise user_error(ValueError, message, call.span, "give the extents as pl.INDEX")
    region = _popped_region(kernel, type, bound["split"])
    opened = partial or result in kernel.reshown
    extents = [kernel.scalars.index(d) for d in region or type.valid_shape] if opened else []
    made = kernel.fresh(result.name_hint, tile_text(type, kernel.target, open_valid=opened))
    attrs = [*_pipe_id(call, bound), ("split", bound["split"])]
    kernel.add(Op("tpop", result=made, mnemonic=pto.mnemonic, extents=extents, attrs=attrs))
    kernel.splits[result] = bound["split"]
    if region is None:
        return made
    if type.memory_space is MemorySpace.Mat:
        kernel.add(Op("set_validshape", source=made, extents=[kernel.scalars.index(d) for d in type.valid_shape]))
        return made
    seen = kernel.fresh(result.name_hint, tile_text(type, kernel.target))
    kernel.add(Op("treshape", result=seen, source=made))
    return seen


def _popped_region(kernel: KernelBuilder, type: TileType, split: int) -> Sequence[Expr] | None:
    if type.memory_space is MemorySpace.Vec:
        known = all(isinstance(d, ConstInt) for d in type.valid_shape)
        return _crossing_region(type, split, False, False) if known else None
    together = not split and kernel.target.quirks.no_split_dual_aiv_dispatch
    return _crossing_region(type, split, True, True) if together else None


def tfree(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Give the slot of a popped tile back; its split is the pop's."""
    split: int | None = bound["split"]
    if split is None:
        split = kernel.splits.get(bound["tile"])
    if split is None:
        raise kernel.unsupported(call, f"{bound.decl.name} of a tile that no pop of this function gave")
    kernel.add(Op("plain", mnemonic=pto.mnemonic, attrs=[*_pipe_id(call, bound), ("split", split)]))


_CONTEXT, _SESSION, _EVENT = "!pto.prefetch_async_context", "!pto.async_session", "!pto.async_event"


def prefetch(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value:
    """One step of an asynchronous prefetch. The context is made from a workspace the kernel is launched with."""
    hint = result.name_hint if result is not None else bound.decl.name.partition(".")[2]
    operands, kind = _prefetch_parts(kernel, bound.decl.name, bound)
    made = kernel.fresh(hint, kind)
    if bound.decl.name == "prefetch.session":
        kernel.add(Op("projection", result=made, mnemonic=pto.mnemonic, source=operands[0]))
    else:
        kernel.add(Op("apply", result=made, mnemonic=pto.mnemonic, operands=operands, attrs=[]))
    return made


def _prefetch_parts(kernel: KernelBuilder, name: str, bound: Bound) -> tuple[list[Value], str]:
    if name == "prefetch.make_context":
        return [kernel.prefetch_workspace()], _CONTEXT
    if name == "prefetch.session":
        return [kernel.handle(bound["ctx"])], _SESSION
    if name == "prefetch.async_prefetch":
        return [whole(kernel, bound["src"]), kernel.handle(bound["ctx"])], _EVENT
    return [kernel.handle(bound["evt"]), kernel.handle(bound["session"])], "i1"


CROSS_FORMS: dict[str, Form] = {
    "reserve_buffer": reserve_buffer,
    "import_peer_buffer": import_peer_buffer,
    "initialize_pipe": initialize_pipe,
    "tpush": tpush,
    "tpop": tpop,
    "tfree": tfree,
    "prefetch": prefetch,
}
