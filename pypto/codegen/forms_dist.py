"""Forms of communication between ranks: signals, transfers, and windows of a peer's memory.

Every rank has a window of the same layout. A communication context holds where each rank's starts, so a tensor's slice
on a peer is as far from the peer's start as it is from this rank's own: its address is found where it is needed, from
the pointer the kernel was given and the two starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dtypes import DataType
from ..errors import user_error
from ..ir.comm_layout import RANK_ID_OFFSET, RANK_NUM_OFFSET, WINDOW_SLOT_STRIDE, WINDOWS_IN_OFFSET
from ..ir.enums import AtomicType, NotifyOp
from ..ir.expr import Call, Expr, Var, index_const
from ..ir.naming import written_name
from ..ops.dist_remote import readable_shape, remote_region
from ..ops.registry import Bound, Pto
from ..ops.rules import product
from .context import Op, Value
from .forms_gather import Form
from .instructions import instruction, operand
from .tensors import is_empty, tensor_view_op, window

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_RANK_SLOT = RANK_ID_OFFSET // WINDOW_SLOT_STRIDE
_RANKS_SHIFT = 8 * (RANK_NUM_OFFSET - RANK_ID_OFFSET)
_WINDOWS_SLOT = WINDOWS_IN_OFFSET // WINDOW_SLOT_STRIDE
_NO_ATOMIC, _ATOMIC_ADD = "#pto<atomic_type atomic_none>", "#pto<atomic_type atomic_add>"


def _index(kernel: KernelBuilder, value: int) -> Value:
    return kernel.scalars.constant(value, DataType.INDEX)


def _slot(kernel: KernelBuilder, context: Value, slot: Value, name: str) -> Value:
    """One 64-bit word of a communication context."""
    made = kernel.fresh(name, "i64")
    kernel.add(Op("load_scalar", result=made, source=context, offset=slot))
    return made


def _rank(kernel: KernelBuilder, context: Value, name: str) -> Value:
    """This rank's number: the low half of its word, the high half being how many there are."""
    word = _slot(kernel, context, _index(kernel, _RANK_SLOT), "ranks")
    made = kernel.fresh(name, "i32")
    kernel.add(Op("cast", mnemonic="arith.trunci", operands=(word,), result=made))
    return made


def _window_start(kernel: KernelBuilder, context: Value, rank: Value, name: str) -> Value:
    """The address of a rank's window."""
    slot = kernel.scalars.sum(_index(kernel, _WINDOWS_SLOT), rank)
    return _slot(kernel, context, slot, name)


def _peer_view(
    kernel: KernelBuilder, tensor: Var, peer: Expr, call: Call, extents: Sequence[Expr] | None = None
) -> Value:
    """The view of a tensor's slice on rank ``peer``, or of ``extents`` from the slice's start."""
    pointer, type = kernel.pointers[tensor]
    size, odd = divmod(type.dtype.bits, 8)
    if odd:
        raise user_error(
            ValueError,
            f"{call.op.name} cannot reach {written_name(tensor.name_hint)!r} on a peer: {type.dtype} elements have no "
            "whole number of bytes",
            call.span,
            "communicate the bytes: a window of pl.UINT8",
        )
    context, scalars = kernel.context_of(tensor), kernel.scalars
    mine = scalars.convert(_rank(kernel, context, "my_rank"), DataType.INT32, DataType.INDEX)
    here = _window_start(kernel, context, mine, "my_window")
    there = _window_start(kernel, context, scalars.index(peer), "peer_window")
    distance = scalars.arith("arith.subi", (there, here))
    elements = scalars.arith("arith.divsi", (distance, scalars.constant(size, DataType.INT64)))
    offset = scalars.convert(elements, DataType.INT64, DataType.INDEX)
    moved = Value(kernel.names.number(), pointer.type)
    kernel.add(Op("addptr", result=moved, source=pointer, offset=offset))
    view = tensor_view_op(kernel, f"{written_name(tensor.name_hint)}_peer", moved, type, extents)
    kernel.add(view)
    return view.result


def _peer_window(
    kernel: KernelBuilder, tensor: Var, bound: Bound, call: Call, at: str, sizes: list[Expr],
    extents: Sequence[Expr] | None = None,
) -> Value:  # fmt: skip
    view = _peer_view(kernel, tensor, bound["peer"], call, extents)
    name = f"{written_name(tensor.name_hint)}_peer"
    return window(kernel, tensor, bound.dims(at) or _zeros(sizes), sizes, name, view)


def _local_window(kernel: KernelBuilder, tensor: Var, bound: Bound, at: str, sizes: list[Expr]) -> Value:
    name = f"{written_name(tensor.name_hint)}_local"
    return window(kernel, tensor, bound.dims(at) or _zeros(sizes), sizes, name)


def _zeros(dims: list[Expr]) -> list[Expr]:
    return [index_const(0)] * len(dims)


def _ones(tensor: Var) -> list[Expr]:
    return [index_const(1)] * len(tensor.type.shape)  # pyright: ignore[reportAttributeAccessIssue]


def comm_ctx(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value:
    """The context a tensor came with; nothing is written."""
    return kernel.context_of(bound["dist_tensor"])


def comm_rank(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value:
    """Which rank this is, or how many there are."""
    context = kernel.value(bound["ctx"])
    hint = result.name_hint if result is not None else call.op.name.rpartition(".")[2]
    if call.op.name == "pld.system.rank":
        return _rank(kernel, context, hint)
    word = _slot(kernel, context, _index(kernel, _RANK_SLOT), "ranks")
    shift = kernel.scalars.constant(_RANKS_SHIFT, DataType.INT64)
    made = kernel.fresh(hint, "i32")
    high = kernel.scalars.arith("arith.shrui", (word, shift))
    kernel.add(Op("cast", mnemonic="arith.trunci", operands=(high,), result=made))
    return made


def notify(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """Change one element of a peer's slice, once everything before has been carried out."""
    target = bound["target"]
    signal = _peer_window(kernel, target, bound, call, "offsets", _ones(target))
    value = operand(kernel, bound["value"], DataType.INT32)
    attrs = [("notifyOp", f"#pto<notify_op {'set' if bound['op'] is NotifyOp.Set else 'atomic_add'}>")]
    kernel.add(Op("barrier", pipe="ALL"))
    kernel.add(Op("apply", result=None, mnemonic=pto.mnemonic, operands=[signal, value], attrs=attrs))


def wait(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """Compare one element of this rank's slice, and hold the core until it compares so (wait) or say whether (test)."""
    signal = bound["signal"]
    slot = _local_window(kernel, signal, bound, "offsets", _ones(signal))
    expected = operand(kernel, bound["expected"], DataType.INT32)
    attrs = [("cmp", f"#pto<wait_cmp {bound['cmp'].name.lower()}>")]
    made = None
    if pto.mnemonic.endswith("ttest"):
        made = kernel.fresh(result.name_hint if result is not None else "arrived", "i1")
    kernel.add(Op("apply", result=made, mnemonic=pto.mnemonic, operands=[slot, expected], attrs=attrs))
    return made


def remote_load(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> Value | None:
    """A window of a peer's slice into a tile."""
    if result is None:
        return None
    region, extents = list(remote_region(bound)), readable_shape(bound)
    if is_empty(region):
        return kernel.handle(result)
    source = _peer_window(kernel, bound["target"], bound, call, "offsets", region, extents)
    out = kernel.handle(result)
    instruction(kernel, pto.mnemonic, [source], out)
    return out


def remote_store(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """A tile's valid region into a peer's slice, whose cache line is then written back."""
    tile, target = bound["src_tile"], bound["target"]
    leading = len(target.type.shape) - 2
    sizes = [*(index_const(1) for _ in range(leading)), *tile.type.valid_shape[-2:]]
    if is_empty(sizes):
        return
    region = _peer_window(kernel, target, bound, call, "offsets", sizes)
    attrs = [("atomicType", _ATOMIC_ADD)] if bound["atomic"] is AtomicType.Add else []
    instruction(kernel, pto.mnemonic, [kernel.value(tile)], region, attrs)
    kernel.add(Op("cacheinvalid", source=region))


def _stage(kernel: KernelBuilder, tile: Var, moved: list[Expr]) -> Value:
    """The staging tile; where its extents do not divide those of the transfer, the last chunk sets its own."""
    extents = [getattr(e, "value", None) for e in (product(moved[:-1]), moved[-1])]
    chunk = [d.value for d in tile.type.shape]  # pyright: ignore[reportAttributeAccessIssue]
    divides = all(e is not None and e % c == 0 for e, c in zip(extents, chunk))
    return kernel.value(tile) if divides else kernel.buffers.open(tile)


def transfer(kernel: KernelBuilder, pto: Pto, bound: Bound, call: Call, result: Var | None) -> None:
    """A bulk transfer to (put) or from (get) a peer's memory, through staging tiles; done when the pipes are."""
    dst, src = bound["dst"], bound["src"]
    putting = call.op.name == "pld.tile.put"
    moved = list(bound.dims("shape")) or list((src if putting else dst).type.shape)
    if putting:
        target = _peer_window(kernel, dst, bound, call, "dst_offsets", moved)
        source = _local_window(kernel, src, bound, "src_offsets", moved)
        mode = _ATOMIC_ADD if bound["atomic"] is AtomicType.Add else _NO_ATOMIC
        attrs = [("atomicType", mode)]
    else:
        target = _local_window(kernel, dst, bound, "dst_offsets", moved)
        source = _peer_window(kernel, src, bound, call, "src_offsets", moved)
        attrs = []
    stages = [_stage(kernel, bound[n], moved) for n in ("stage", "stage2") if bound[n] is not None]
    parts = {"mnemonic": pto.mnemonic, "operands": [target, source], "stages": stages, "attrs": attrs}
    kernel.add(Op("barrier", pipe="ALL"))
    kernel.add(Op("transfer", **parts))
    kernel.add(Op("barrier", pipe="ALL"))
    if putting:
        kernel.add(Op("cacheinvalid", source=target))


DIST_FORMS: dict[str, Form] = {
    "comm_ctx": comm_ctx,
    "comm_rank": comm_rank,
    "notify": notify,
    "wait": wait,
    "remote_load": remote_load,
    "remote_store": remote_store,
    "transfer": transfer,
}
