"""InsertCommFence: what a core writes into a window is in memory before peers are told, and what it reads is fresh.

The pass looks at one statement at a time. After a write into this rank's slice its cache lines are cleaned and a fence
follows. After a write into a peer's slice comes a fence: codegen cleans the lines, for only there their address is
known. After a call of another function, which may have written anything, come both, for all memory. After a wait, or a
look at a signal, all lines are dropped, so that the next read asks memory. Signals themselves need nothing. The pass
runs last, for nothing ties what it inserts to its place.
"""

from __future__ import annotations

from typing import Any, Final

from ..ir.expr import Call, Expr, GlobalVar, Submit, index_const
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import EvalStmt, Stmt, flatten_to_stmts, leaf_value, seq
from ..ir.structural import structural_equal
from ..ir.types import DistributedTensorType
from ..ops.registry import ArgEffect, arg_effect, decl_of
from .base import Pass, function_pass
from .bodies import BodyRewriter
from .emitting import build, kind_of

_WAITS: Final = frozenset({"pld.system.wait", "pld.system.test"})
_TO_PEERS: Final = frozenset({
    "pld.tile.remote_store", "pld.tensor.remote_store", "pld.tile.put", "pld.tensor.put",
})  # fmt: skip


def insert_comm_fence() -> Pass:
    """The pass."""
    return function_pass("InsertCommFence", _mark, looks_for=(DistributedTensorType,))


def _mark(function: Function) -> Function:
    return _Marker().rewrite(function) if function.is_incore else function


class _Marker(BodyRewriter):
    def body(self, body: Any) -> Any:
        if body is None:
            return None
        before = flatten_to_stmts(body)
        after: list[Stmt] = []
        changed = False
        for i, stmt in enumerate(before):
            made = self.rewrite(stmt)
            markers = _markers(stmt)
            there = len(markers) <= len(before) - i - 1 and all(map(structural_equal, markers, before[i + 1 :]))
            after += [made] if there else [made, *markers]
            changed = changed or made is not stmt or not there
        return seq(after, body.span) if changed else body


def _markers(stmt: Stmt) -> list[Stmt]:
    """What has to follow ``stmt``."""
    value = leaf_value(stmt)
    if isinstance(value, Submit) or (isinstance(value, Call) and isinstance(value.op, GlobalVar)):
        return [_cacheinvalid(stmt.span), _fence(stmt.span)]
    if not isinstance(value, Call):
        return []
    if value.op.name in _WAITS:
        return [_cacheinvalid(stmt.span)]
    written = _written_window(value)
    if written is None:
        return []
    if value.op.name in _TO_PEERS:
        return [_fence(stmt.span)]
    shape = kind_of(written).shape
    return [_cacheinvalid(stmt.span, written, list(shape), [index_const(0)] * len(shape)), _fence(stmt.span)]


def _written_window(call: Call) -> Expr | None:
    """The window whose data ``call`` writes; signals are none."""
    decl = decl_of(call)
    if decl is None or decl.channel is None:
        return None
    for i, arg in enumerate(call.args):
        if isinstance(arg.type, DistributedTensorType) and arg_effect(call, i) is not ArgEffect.Read:
            return arg
    return None


def _cacheinvalid(span: Span, *region: Any) -> Stmt:
    return EvalStmt(build("system.cacheinvalid", *region, span=span), span)


def _fence(span: Span) -> Stmt:
    return EvalStmt(build("system.fence", span=span), span)
