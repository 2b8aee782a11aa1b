"""The pipe between the two parts of a kernel: a ring of slots in each consumer's memory, set up first on both cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ...backend.target import Target
from ...dtypes import DataType
from ...errors import user_error
from ...ir.enums import MemorySpace
from ...ir.expr import Call, ConstInt, Var
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import AssignStmt, EvalStmt, Stmt, flatten_to_stmts, seq
from ...ir.types import TileType
from ...ir.visitor import find_calls, walk
from ...ops.registry import call
from ...ops.rules import value as known
from ..core_affinity import POPS, PUSHES, SETUPS, Affinity
from ..pipe_workspace import slots_of

DEFAULT_SLOTS: Final = 2
_C2V, _V2C = 1, 2
"""Bits of ``dir_mask``."""


def crossing_tiles(body: Stmt) -> Iterable[tuple[str, TileType, Span]]:
    """Every push and pop below ``body``, with the type of its tile."""
    for node in walk(body):
        if isinstance(node, AssignStmt) and isinstance(node.value, Call) and node.value.op.name in POPS.values():
            if isinstance(node.var.type, TileType):
                yield node.value.op.name, node.var.type, node.span
        elif isinstance(node, Call) and node.op.name in PUSHES.values() and isinstance(node.args[0].type, TileType):
            yield node.op.name, node.args[0].type, node.span


def tile_size(kind: TileType, span: Span) -> int:
    """Bytes of a tile that crosses. Raises KernelValueError for a shape that is not constant."""
    count = 1
    for dim in kind.shape:
        size = known(dim)
        if size is None:
            message = f"a tile that crosses between the cores needs a constant shape, this is {kind}"
            raise user_error(ValueError, message, span, "make it constant, and say what is valid with valid_shape")
        count *= size
    return kind.dtype.storage_bytes(count)


def has_setup(body: Stmt) -> bool:
    return bool(find_calls(body, *SETUPS.values()))


def slots_within(kernel: Function) -> int:
    """Tiles a core may hold at once: the fewest slots of the pipes of a kernel."""
    setups = find_calls(kernel.body, *SETUPS.values())
    return min((slots_of(s) for s in setups), default=kernel.attrs.get("slot_num") or DEFAULT_SLOTS)


def with_pipe(kernel: Function, parts: Mapping[Affinity, Stmt], target: Target) -> dict[Affinity, Stmt]:
    """Both parts with the pipe of ``kernel`` set up, unless its author did or nothing crosses."""
    name, span = kernel.name, kernel.span
    used = [found for body in parts.values() for found in crossing_tiles(body)]
    if not used or any(has_setup(body) for body in parts.values()):
        return dict(parts)
    mask = 0
    for op, _, _ in used:
        mask |= _C2V if op in (PUSHES[Affinity.CUBE], POPS[Affinity.VECTOR]) else _V2C
    size = max(tile_size(kind, where) for _, kind, where in used)
    slots = kernel.attrs.get("slot_num") or _depth(used, mask, size, target)
    return {
        side: seq([*_setup(name, side, mask, size, slots, span), *flatten_to_stmts(body)], body.span)
        for side, body in parts.items()
    }


def _depth(used: Sequence[tuple[str, TileType, Span]], mask: int, size: int, target: Target) -> int:
    """How many tiles the pipe holds: one where two do not fit and no core waits for a second one before it frees."""
    consumers = [m for bit, m in ((_C2V, MemorySpace.Vec), (_V2C, MemorySpace.Mat)) if mask & bit]
    once = len({op for op, _, _ in used}) == len(used)
    return 1 if once and any(DEFAULT_SLOTS * size > target.capacity(m) for m in consumers) else DEFAULT_SLOTS


def _setup(name: str, side: Affinity, mask: int, size: int, slots: int, span: Span) -> list[Stmt]:
    stmts: list[Stmt] = []
    peer = f"{name}_{'aiv' if side is Affinity.CUBE else 'aic'}"
    ends: dict[str, Any] = {}
    for bit, word, consumer in ((_V2C, "v2c", Affinity.CUBE), (_C2V, "c2v", Affinity.VECTOR)):
        ring = f"{name}_{word}_slot_buffer"
        if not mask & bit:
            ends[word] = ConstInt(0, DataType.INT32)
        elif consumer is side:
            ends[word] = _bound(stmts, ring, call("system.reserve_buffer", span=span, name=ring, size=size * slots))
        else:
            imported = call("system.import_peer_buffer", span=span, name=ring, peer_func=peer)
            ends[word] = _bound(stmts, f"{ring}_import", imported)
    init = call(
        SETUPS[side], ends["c2v"], ends["v2c"], span=span, dir_mask=mask, slot_size=size, slot_num=slots
    )
    return [*stmts, EvalStmt(init, span)]


def _bound(stmts: list[Stmt], name: str, made: Call) -> Var:
    var = Var(name, made.type, made.span)
    stmts.append(AssignStmt(var, made, made.span))
    return var




