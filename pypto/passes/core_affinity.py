"""Which core of a group runs a call: the cube, the vector cores, both, or either."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag
from typing import Final

from ..ir.enums import ForKind, MemorySpace
from ..ir.expr import Call, Expr
from ..ir.stmt import ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, flatten_to_stmts, leaf_value
from ..ir.types import TileType
from ..ops.registry import Core, decl_of


class Affinity(Flag):
    """What a call needs. ``MIXED`` is both: the call hands a tile from one core to the other."""

    SHARED = 0
    CUBE = 1
    VECTOR = 2
    MIXED = 3


SHARD: Final = "tile.aiv_shard"
GATHER: Final = "tile.aic_gather"
PLACEMENT: Final = "core_placement"
"""The attribute by which a call that names no core says the author placed it on the vector cores (``"aiv"``)."""
STAGES: Final = "pipeline_stages"
"""The attribute of a pipelined loop that says how many iterations run at once."""
SETUPS: Final = {Affinity.CUBE: "system.aic_initialize_pipe", Affinity.VECTOR: "system.aiv_initialize_pipe"}
"""The operator by which each core sets up its end of a pipe."""
PUSHES: Final = {Affinity.CUBE: "tile.tpush_to_aiv", Affinity.VECTOR: "tile.tpush_to_aic"}
"""The operator by which each core hands a tile on."""
POPS: Final = {Affinity.CUBE: "tile.tpop_from_aiv", Affinity.VECTOR: "tile.tpop_from_aic"}
"""The operator by which each core takes a tile."""
FREES: Final = {Affinity.CUBE: "system.tfree_to_aiv", Affinity.VECTOR: "system.tfree_to_aic"}
"""The operator by which each core gives back the slot of a tile it took."""
FREE_OF: Final = {POPS[side]: FREES[side] for side in POPS}
"""The free of each pop."""
_STATED: Final = {names[side]: side for names in (SETUPS, FREES) for side in names}
_EVENT_CORES: Final = {
    "aic": Affinity.CUBE,
    "aic_only": Affinity.CUBE,
    "aiv": Affinity.VECTOR,
    "aiv_only": Affinity.VECTOR,
}


def without_stages(loop: ForStmt) -> ForStmt:
    """A pipelined loop as one whose iterations run one after the other."""
    if loop.kind is not ForKind.Pipeline:
        return loop
    attrs = {k: v for k, v in loop.attrs.items() if k != STAGES}
    return loop.replace(kind=ForKind.Sequential, attrs=attrs)


def space_of(value: Expr) -> MemorySpace | None:
    """The memory of a tile, where it is known."""
    return value.type.memory_space if isinstance(value.type, TileType) else None


def side_of(space: MemorySpace | None) -> Affinity:
    """The core a memory belongs to."""
    if space is None or space is MemorySpace.DDR:
        return Affinity.SHARED
    return Affinity.VECTOR if space is MemorySpace.Vec else Affinity.CUBE


def call_affinity(call: Expr) -> Affinity:
    """Where ``call`` runs. Calls of functions, and anything that is no operator call, are SHARED."""
    decl = decl_of(call)
    if decl is None or not isinstance(call, Call):
        return Affinity.SHARED
    name = decl.name
    if decl.core is Core.CUBE:
        return Affinity.CUBE
    if decl.core is Core.VECTOR:
        return Affinity.VECTOR
    if name in (SHARD, GATHER):
        return Affinity.MIXED
    if name == "tile.move":
        return side_of(space_of(call.args[0])) | side_of(space_of(call))
    if name in _STATED:
        return _STATED[name]
    if "core_type" in decl.by_name:
        return _EVENT_CORES.get(call.kwargs.get("core_type") or "", Affinity.SHARED)
    found = _by_memory(call)
    if found is Affinity.SHARED and not decl.duplicable and call.attrs.get(PLACEMENT) == "aiv":
        return Affinity.VECTOR
    return found


def _by_memory(call: Call) -> Affinity:
    """The core of the first tile the call reads; of what it makes, when it says where that goes."""
    for arg in call.args:
        if isinstance(arg.type, TileType):
            return side_of(arg.type.memory_space)
    decl = decl_of(call)
    if decl is not None and decl.core is Core.MOVE and isinstance(decl.result_space, str):
        return side_of(space_of(call))
    return Affinity.SHARED


def bodies(stmt: Stmt) -> Iterable[Stmt]:
    """The bodies of a statement that has some."""
    if isinstance(stmt, IfStmt):
        return (stmt.then_body,) if stmt.else_body is None else (stmt.then_body, stmt.else_body)
    return (stmt.body,) if isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)) else ()


def controls(stmt: Stmt) -> list[Expr]:
    """The expressions a compound statement evaluates itself."""
    if isinstance(stmt, ForStmt):
        return [stmt.start, stmt.stop, stmt.step]
    return [stmt.condition] if isinstance(stmt, (IfStmt, WhileStmt)) else []


def body_affinity(body: Stmt) -> Affinity:
    """What all statements of a body need together."""
    found = Affinity.SHARED
    for stmt in flatten_to_stmts(body):
        value = leaf_value(stmt)
        if value is not None:
            found |= call_affinity(value)
        else:
            for inner in bodies(stmt):
                found |= body_affinity(inner)
        if found is Affinity.MIXED:
            return found
    return found
