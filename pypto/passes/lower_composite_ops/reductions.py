"""Reductions in which every rank reads every peer: allreduce over a mesh, and reduce_scatter.

Nobody may overwrite data a peer has yet to read, so a barrier stands between the reading of a piece and its storing.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.enums import ReduceOp
from ...ir.expr import Expr, Var, index_const
from ...ops.rules import dims_text, plus, value
from ..emitting import kind_of
from ..host_windows import check_mode
from .arithmetic import quotient
from .parts import Parts
from .ring import ring_allreduce
from .signals import Ranks
from .streams import (
    PIECE_BYTES,
    Piece,
    Stream,
    check_packed,
    combine,
    is_partial,
    one_row,
    piece_at,
    rectangle,
    stream_of,
)

_ZERO, _ONE = index_const(0), index_const(1)


def allreduce(parts: Parts) -> Expr:
    """Every rank's slice becomes the combination of all."""
    bound = parts.arguments()
    target, signal, op = bound["src"], bound["signal"], bound["op"]
    if signal is None:
        raise parts.refuse(
            "requires an explicit signal outside host orchestrator",
            "pass the window ranks count in: pld.tensor.allreduce(data, signal)",
        )
    if bound["core_num"] != 1:
        raise parts.refuse(
            f"core_num={bound['core_num']} is supported only in a HOST orchestrator",
            "run the whole region on several cores: pl.spmd(...)",
        )
    check_mode(bound["mode"], parts.call.span)
    check_packed(parts, target)
    if bound["mode"] == "ring":
        ring_allreduce(parts, target, signal, op)
    elif is_partial(target):
        _reduce_rectangle(parts, target, signal, op)
    else:
        _reduce_stream(parts, target, signal, op)
    return target


def _reduce_stream(parts: Parts, target: Expr, signal: Expr, op: ReduceOp) -> None:
    stream = stream_of(*one_row(parts, target))
    ranks = Ranks(parts, signal)
    ranks.barrier(1)

    def piece(column: Var) -> None:
        part = piece_at(stream, column)
        total = _reduced(parts, ranks, part, op)
        ranks.barrier(plus(quotient(column, index_const(stream.width)), index_const(2)))
        part.store(parts, "piece", total)

    parts.loop("column", stream.size, piece, stream.width)
    ranks.reset(plus(stream.pieces, _ONE))


def _reduced(parts: Parts, ranks: Ranks, part: Piece, op: ReduceOp) -> Var:
    """This rank's piece combined with every peer's."""

    def with_peer(peer: Expr, total: Expr) -> Expr:
        return combine(parts, op, total, part.load_from(parts, "peer", peer))

    return _over_peers(parts, ranks, part.load(parts, "own"), with_peer)


def _over_peers(parts: Parts, ranks: Ranks, own: Expr, with_peer: Callable[[Expr, Expr], Expr]) -> Var:
    return parts.fold(
        "peer",
        ranks.count,
        own,
        lambda peer, total: parts.choose(
            "total", ranks.is_other(peer), lambda: with_peer(peer, total), lambda: total
        ),
    )


def _reduce_rectangle(parts: Parts, target: Expr, signal: Expr, op: ReduceOp) -> None:
    """A partially valid target is one tile: that of its valid part, or of the whole when the part is not constant."""
    view, valid = rectangle(parts, target)
    shape = valid if all(value(d) is not None for d in valid) else kind_of(view).shape
    extents = [value(d) for d in shape]
    size = kind_of(view).dtype.get_byte()
    for extent in extents:
        size = size * extent if extent is not None else PIECE_BYTES + 1
    if size > PIECE_BYTES:
        raise parts.refuse(
            f"partial valid_shape must fit within one {PIECE_BYTES}-byte mesh chunk, got {dims_text(valid)} of "
            f"{dims_text(kind_of(view).shape)}",
            "reduce whole windows, which are moved in pieces",
        )
    ranks = Ranks(parts, signal)
    ranks.barrier(1)
    place = [_ZERO, _ZERO]

    def with_peer(peer: Expr, total: Expr) -> Expr:
        other = parts.apply("peer", "pld.tile.remote_load", view, peer, place, shape, valid)
        return combine(parts, op, total, other)

    total = _over_peers(parts, ranks, parts.bind("own", "load", view, place, shape, valid), with_peer)
    ranks.barrier(2)
    parts.bind("result", "store", total, place, view)
    ranks.reset(2)


def reduce_scatter(parts: Parts) -> Expr:
    """Row ``r`` of rank ``r``'s slice becomes the sum of everybody's. Nobody else reads that row."""
    bound = parts.arguments()
    target = bound["target"]
    check_packed(parts, target)
    shape = kind_of(target).shape
    if len(shape) != 2 or is_partial(target):
        raise parts.refuse(f"needs a whole target [ranks, n], got {kind_of(target)}")
    stream = stream_of(target, shape[1])
    ranks = Ranks(parts, bound["signal"])
    ranks.barrier(1)
    if value(stream.size) is not None and stream.width >= (value(stream.size) or 0):
        whole = Piece(stream, ranks.mine, _ZERO, stream.size)
        total = _reduced(parts, ranks, whole, bound["op"])
        ranks.barrier(2)
        whole.store(parts, "row", total)
    else:
        _reduce_pieces(parts, ranks, stream, bound["op"])
        ranks.barrier(2)
    ranks.reset(2)
    return target


def _reduce_pieces(parts: Parts, ranks: Ranks, stream: Stream, op: ReduceOp) -> None:
    def piece(column: Var) -> None:
        part = piece_at(stream, column, ranks.mine)
        part.store(parts, "piece", _reduced(parts, ranks, part, op))

    parts.loop("column", stream.size, piece, stream.width)
