"""Remote loads and stores: a tile's worth of another rank's slice of a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import expr as E
from ..ir.enums import MemorySpace, TensorLayout, TileLayout
from ..ir.expr import Expr, index_const, is_integer
from ..ir.scalar import binary
from ..ir.tensor_view_semantics import MX_LAYOUTS
from ..ir.types import DistributedTensorType, TensorType, TileType, Type, implicit_layout
from .dist_rules import ATOMIC_DTYPES, check_coordinates, check_peer, check_same_elements
from .regions import check_offsets, read_region
from .registry import Bound, Core, Pto, WriteChannel, declare, no_result
from .rules import (
    at_most,
    dim_text,
    exceeds,
    greatest,
    index,
    least,
    minus,
    plus,
    same,
    shaped,
    static_shape,
    tile_type,
    times,
    valid_of,
    value,
)
from .tile_memory import atomic_effect

_VEC = MemorySpace.Vec
_BLOCK_BITS = 256
"""A transfer moves whole blocks of 32 bytes."""


def _remote_load(b: Bound) -> Type:
    target = b.type("target")
    if target.layout in MX_LAYOUTS:
        raise b.fail(f"does not support MX-layout tensors, got {target.layout.name}")
    check_peer(b)
    check_coordinates(b, "offsets", "target")
    check_coordinates(b, "shape", "target")
    static_shape(b, "shape")
    if b["valid_shape"] is not None:
        _check_valid_shape(b)
    window, region = b.dims("shape"), remote_region(b)
    blayout, slayout, fractal = implicit_layout(window, _VEC)
    if target.tensor_view is not None and target.layout is TensorLayout.ND:
        blayout = TileLayout.row_major
    return tile_type(window, target.dtype, region, _VEC, (blayout, slayout, fractal))


def remote_region(b: Bound) -> Sequence[Expr]:
    """The extents a remote load reads: what is asked for and the peer's slice has."""
    target: TensorType = b.type("target")
    held, source = valid_of(b, "target"), readable_shape(b)
    if b["allow_physical_tail_padding"]:
        held = _padded(held, target.dtype.bits)
    window, offsets = b.dims("shape"), b.dims("offsets")
    requested = b.dims("valid_shape") or window
    region = read_region(b, source, held, offsets, window, requested, no_clamp="a remote load does not clamp")
    return [_held(*axis) for axis in zip(region, source, held, offsets)]


def _held(want: Expr, size: Expr, valid: Expr, offset: Expr) -> Expr:
    """What of an extent a slice has whose own extent only a run knows: nothing past it is read.

    An offset only a run knows, in a slice that is all valid, is trusted, as a load trusts it.
    """
    if value(valid) is not None or at_most(plus(offset, want), valid) or (same(valid, size) and value(offset) is None):
        return want
    rest = minus(valid, offset)
    return least(want, rest if value(offset) == 0 else greatest(index_const(0), rest))


def _check_valid_shape(b: Bound) -> None:
    rank = len(b.type("target").shape)
    found = b.dims("valid_shape")
    if len(found) != rank:
        raise b.fail(f"valid_shape rank ({len(found)}) must match the rank ({rank}) of target")
    for i, dim in enumerate(found):
        if not is_integer(dim):
            raise b.fail(f"valid_shape {i} must be an integer scalar, got {dim.type}")
        known = value(dim)
        if known is not None and known < 0:
            raise b.fail(f"valid_shape {i} is provably negative: {known}")


def readable_shape(b: Bound) -> Sequence[Expr]:
    """The extents of the peer's memory that a remote load may touch."""
    target: TensorType = b.type("target")
    return _padded(target.shape, target.dtype.bits) if b["allow_physical_tail_padding"] else target.shape


def _padded(dims: Sequence[Expr], bits: int) -> list[Expr]:
    """``dims`` with the innermost extent rounded up to whole transfer blocks."""
    block = _BLOCK_BITS // bits
    last = value(dims[-1])
    if last is not None:
        return [*dims[:-1], index_const(-(-last // block) * block)]
    blocks = binary(E.FloorDiv, index(plus(dims[-1], index_const(block - 1))), index_const(block))
    return [*dims[:-1], times(blocks, index_const(block))]


declare(
    "pld.tile.remote_load",
    "in target: dist, in peer: scalar, in offsets: dims, in shape: dims, in valid_shape: dims?, "
    "key allow_physical_tail_padding: bool = False",
    _remote_load,
    "Copy the window at ``offsets`` of rank ``peer``'s slice of ``target`` into a new tile of ``shape``.\n\n"
    "What the peer stored is there after a barrier, or a wait for what it notified after that; it may store again when "
    "this rank has notified it. "
    "``valid_shape`` is what is read, the whole window by default, and must lie inside the slice. "
    "``allow_physical_tail_padding`` lets passes read on to the end of the slice's last 32-byte block.",
    core=Core.MOVE,
    result_space=_VEC,
    inplace_safe=False,
    pto=Pto("pto.tload", form="remote_load"),
    spelled=("allow_physical_tail_padding", "_remote_load_with_physical_tail_padding"),
)


def _check_source(b: Bound, name: str, want: type[Type]) -> None:
    """Refuse a source of the other level, and name the operator that takes it."""
    source = b.type(name)
    if want is TileType and not isinstance(source, TileType):
        raise b.fail(f"{name} must be a TileType, got {source}", "pld.tensor.remote_store pushes a tensor")
    if want is TensorType and isinstance(source, TileType):
        raise b.fail(f"{name} must be a TensorType, got {source}", "pld.tile.remote_store pushes a tile")
    if want is TensorType and isinstance(source, DistributedTensorType):
        raise b.fail(f"{name} must be a computed tensor, got {source}", "pld.tensor.put moves one window to another")


def _check_push(b: Bound, name: str) -> None:
    """The pushed region is two-dimensional and inside the peer's slice."""
    source, target = b.type(name), b.type("target")
    check_coordinates(b, "offsets", "target")
    check_same_elements(b, name, "target")
    rank = len(target.shape)
    if rank < 2:
        raise b.fail(f"target rank must be >= 2, got {shaped(target)}")
    if len(source.shape) < 2:
        raise b.fail(f"src must be at least 2-D, got {shaped(source)}", f"reshape it: pl.reshape({name}, [1, n])")
    for i, dim in enumerate(source.shape[:-2]):
        if value(dim) != 1:
            raise b.fail(f"src leading dimension {i} must be 1: the last two are pushed, got {shaped(source)}")
    offsets = b.dims("offsets")
    check_offsets(b, offsets)
    extents = [*(index_const(1) for _ in range(rank - 2)), *valid_of(b, name)[-2:]]
    for i, (size, offset, extent) in enumerate(zip(target.shape, offsets, extents)):
        if value(offset) is not None and value(extent) is not None and exceeds(plus(offset, extent), size):
            raise b.fail(
                f"push exceeds the peer's target region in dimension {i}: offset {dim_text(offset)} + "
                f"{dim_text(extent)} of {dim_text(size)}"
            )


def _remote_store(name: str, want: type[Type]) -> Any:
    def infer(b: Bound) -> Type:
        _check_source(b, name, want)
        check_peer(b)
        _check_push(b, name)
        dtype = b.type("target").dtype
        if b["atomic"] and dtype not in ATOMIC_DTYPES:
            raise b.fail(f"with atomic=Add requires an fp32/bf16/fp16/int32/int16/int8 dtype, got {dtype}")
        return no_result(b)

    return infer


_STORE = "out target: dist, in peer: scalar, in offsets: dims, key atomic: RemoteAtomic = AtomicType.None_"
_STORE_DOC = (
    " into rank ``peer``'s slice of ``target`` at ``offsets``; ``atomic=pld.AtomicType.Add`` adds instead.\n\n"
    "The source is two-dimensional up to leading ones and lands in the target's last two dimensions."
)
declare(
    "pld.tile.remote_store",
    f"in src_tile: tile|tensor, {_STORE}",
    _remote_store("src_tile", TileType),
    f"Copy the valid part of ``src_tile``{_STORE_DOC}",
    core=Core.MOVE,
    spaces={"src_tile": (_VEC,)},
    effects={"target": atomic_effect},
    channel=WriteChannel.Dma,
    pure=False,
    pto=Pto("pto.tstore", form="remote_store"),
)
declare(
    "pld.tensor.remote_store",
    f"in src: tensor|tile, {_STORE}",
    _remote_store("src", TensorType),
    f"Copy the computed tensor ``src``{_STORE_DOC}",
    effects={"target": atomic_effect},
    channel=WriteChannel.Dma,
    pure=False,
    tile_form="pld.tile.remote_store",
)
