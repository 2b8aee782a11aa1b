"""Transfers between ranks: bulk ones get the tiles they move through, a pushed value is the tile it is computed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...ir.expr import Call, ConstInt, Expr, Var, index_const
from ...ops.registry import Bound
from ...ops.rules import product
from ..emitting import build, kind_of
from .rules import rule, scratch

if TYPE_CHECKING:
    from ...ir.enums import MemorySpace
    from .rewrite import Converter

_REGION = ("dst_offsets", "src_offsets", "shape")


@rule("pld.tensor.put", "pld.tensor.get")
def _transfer(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """The tile form, with one staging tile or, to overlap chunks, two."""
    b = cv.bound(call)
    name = call.op.name.rpartition(".")[2]
    stages = _stages(cv, call, b, f"t{name}_stage")
    operands = {n: cv.rewrite(b[n]) for n in ("dst", "peer", "src", *_REGION) if b[n] is not None}
    given = {"atomic": b["atomic"]} if "atomic" in call.kwargs else {}
    return build(f"pld.tile.{name}", span=call.span, **operands, **stages, **given)


def _stages(cv: Converter, call: Call, b: Bound, name: str) -> dict[str, Var]:
    shape = b.dims("shape") or kind_of(b["dst"]).shape
    extents = [_extent(product(shape[:-1]), b["chunk_rows"]), _extent(shape[-1], b["chunk_cols"])]
    dtype = kind_of(b["dst"]).dtype
    names = {"stage": f"{name}_ping", "stage2": f"{name}_pong"} if b["pipeline"] else {"stage": name}
    return {role: scratch(cv, hint, extents, dtype, call) for role, hint in names.items()}


def _extent(whole: Expr, chunk: int) -> Expr:
    """A staging tile's extent: the chunk's, at most that of the transfer."""
    known = whole.value if isinstance(whole, ConstInt) else None
    return whole if not chunk or (known is not None and known <= chunk) else index_const(chunk)


@rule("pld.tensor.remote_store")
def _push(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    source, *rest = cv.arguments(call)
    places: Sequence[Expr] = [cv.rewrite(a) for a in rest]
    names = [p.name for p in call.op.decl.args[1:]]
    return build(
        "pld.tile.remote_store", cv.tile(source), span=call.span, **dict(zip(names, places)), **cv.keywords(call)
    )
