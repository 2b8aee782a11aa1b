"""Collectives that only move data, and the barrier.

Data is pushed into peers' windows, or pulled from one that is known to be filled, by transfers of any size through a
staging tile. A window is a peer's to write as soon as that peer has entered the next collective on it: what arrived is
read before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir import expr as E
from ...ir.enums import MemorySpace, NotifyOp
from ...ir.expr import Expr, Var, index_const
from ...ir.scalar import binary
from ...ir.types import TileType
from ...ops.rules import index, product, shaped, times, value
from ..emitting import kind_of
from .parts import Parts
from .signals import Ranks
from .streams import PIECE_BYTES, block_of

_ZERO, _ONE = index_const(0), index_const(1)


def barrier(parts: Parts) -> Expr:
    """Every rank is here."""
    signal = parts.arguments()["signal"]
    _meet(Ranks(parts, signal))
    return signal


def _meet(ranks: Ranks) -> None:
    ranks.barrier(1)
    ranks.reset(1)


def broadcast(parts: Parts) -> Expr:
    """Once every rank is here, each reads the root's slice; the root's own is read onto itself."""
    bound = parts.arguments()
    target = bound["target"]
    _meet(Ranks(parts, bound["signal"]))
    root = index_const(bound["root"])
    parts.do("pld.tile.get", target, root, target, _staging(parts, target, kind_of(target).shape))
    return target


def allgather(parts: Parts) -> Expr:
    """Each rank writes its row into every rank's window."""
    bound = parts.arguments()
    target, data = bound["target"], bound["local_data"]
    columns = _matrix(parts, target)[1]
    if value(kind_of(data).shape[0]) != 1:
        raise parts.refuse(f"gathers one row of each rank: local_data must be [1, n], got {shaped(kind_of(data))}")
    ranks = Ranks(parts, bound["signal"])
    place = [ranks.mine, _ZERO]
    if isinstance(data.type, TileType):
        parts.loop("peer", ranks.count, lambda peer: parts.do("pld.tile.remote_store", data, target, peer, place))
    else:
        shape = [_ONE, columns]
        stage = _staging(parts, target, shape)
        parts.loop(
            "peer",
            ranks.count,
            lambda peer: parts.do(
                "pld.tile.put", target, peer, data, stage, dst_offsets=place, src_offsets=[_ZERO, _ZERO], shape=shape
            ),
        )
    _meet(ranks)
    return target


def all_to_all(parts: Parts) -> Expr:
    """Each rank writes row ``d`` of its data into rank ``d``'s window, at the row that is its own number."""
    bound = parts.arguments()
    target, data = bound["target"], bound["input"]
    _matrix(parts, target)
    ranks = Ranks(parts, bound["signal"])
    _push_blocks(parts, ranks, target, data, _ONE, lambda peer: None)
    _meet(ranks)
    return target


def all_to_all_v(parts: Parts) -> Expr:
    """As `all_to_all` with blocks of rows, each announced with how many of them count, as many as the block has."""
    bound = parts.arguments()
    target, data, signal = bound["target"], bound["input"], bound["signal"]
    counts, received = bound["send_counts"], bound["recv_counts"]
    known, ranks_known = value(_matrix(parts, target)[0]), value(kind_of(signal).shape[0])
    if known is None or ranks_known is None:
        raise parts.refuse(
            f"needs a constant number of ranks and rows, got target {shaped(kind_of(target))} and signal "
            f"{shaped(kind_of(signal))}"
        )
    block = index_const(known // ranks_known)
    ranks = Ranks(parts, signal)

    def announce(peer: Var) -> None:
        at = [peer] if len(kind_of(counts).shape) == 1 else [peer, _ZERO]
        count = parts.apply("send_count", "tensor.read", counts, at)
        sent = parts.keep("sent", binary(E.Min, index(count), block))
        parts.do("pld.system.notify", received, peer, [ranks.mine, _ZERO], sent, op=NotifyOp.Set)

    _push_blocks(parts, ranks, target, data, block, announce)
    _meet(ranks)
    return target


def _push_blocks(
    parts: Parts, ranks: Ranks, target: Expr, data: Expr, rows: Expr, announce: Callable[[Var], None]
) -> None:
    """Write the block of ``rows`` of ``data`` meant for each rank into that rank's window."""
    if data is target:
        raise parts.refuse(
            "cannot exchange a window with itself: peers overwrite it while it is read",
            "keep the data to send in a tensor or window of its own",
        )
    shape = [rows, kind_of(target).shape[-1]]
    stage = _staging(parts, target, shape)
    place = [times(ranks.mine, rows), _ZERO]

    def push(peer: Var) -> None:
        source = [times(peer, rows), _ZERO]
        parts.do("pld.tile.put", target, peer, data, stage, dst_offsets=place, src_offsets=source, shape=shape)
        announce(peer)

    parts.loop("peer", ranks.count, push)


def _matrix(parts: Parts, target: Expr) -> Sequence[Expr]:
    shape = kind_of(target).shape
    if len(shape) != 2:
        raise parts.refuse(f"needs a two-dimensional target, got {shaped(kind_of(target))}")
    return shape


def _staging(parts: Parts, target: Expr, shape: Sequence[Expr]) -> Var:
    """The tile a transfer of ``shape`` moves through, whole or in chunks of full rows where they fit."""
    dtype = kind_of(target).dtype
    most, block = PIECE_BYTES // dtype.get_byte(), block_of(dtype)
    columns = value(shape[-1])
    width = most if columns is None else min(most, columns // block * block or columns)
    rows = value(product(shape[:-1]))
    height = 1 if rows is None else max(1, min(rows, most // width))
    return parts.bind("stage", "create", [height, width], dtype=dtype, target_memory=MemorySpace.Vec)
