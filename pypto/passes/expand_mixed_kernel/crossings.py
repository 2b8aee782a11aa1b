"""Statements that hand a tile from one core to the other, and what each core does for them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ...backend.target import Target
from ...errors import user_error
from ...ir.enums import MemorySpace, TileLayout
from ...ir.expr import Call, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.span import Span
from ...ir.stmt import AssignStmt, EvalStmt, Stmt
from ...ir.types import TileType, implicit_layout
from ...ops.registry import rebind
from ...ops.rules import same, value
from ..core_affinity import GATHER, POPS, PUSHES, Affinity, call_affinity, space_of
from ..emitting import build
from ..infer_tile_memory_space.rewrite import in_space

NZ: Final = {"blayout": TileLayout.col_major, "slayout": TileLayout.row_major}
"""How tiles lie that a vector core hands to the cube."""

_LEAVES_FROM: Final = (MemorySpace.Acc, MemorySpace.Vec, MemorySpace.Mat, None)
"""Memories a core pushes from. No pipe of today's targets takes a tile in Mat: who writes or runs a push says so."""


class Crossing(NamedTuple):
    """A tile ``source`` made on core ``producer`` that the other core has as ``result``."""

    stmt: Stmt
    producer: Affinity
    source: Var
    joined: bool
    """Whether lanes' parts become one tile in Mat."""
    split: int
    stride: int | None


def crossing_of(stmt: Stmt) -> Crossing | None:
    """``stmt`` as a crossing. Raises KernelValueError for lanes no pipe can serve."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(stmt, AssignStmt) or not isinstance(call, Call) or call_affinity(call) is not Affinity.MIXED:
        return None
    source = call.args[0]
    if not isinstance(source, Var):
        raise user_error(ValueError, "a tile that crosses between the cores needs a name", call.span)
    if space_of(source) not in _LEAVES_FROM:
        raise _stays(source, call.span)
    name = call.op.name
    if name == "tile.move":
        producer = Affinity.VECTOR if space_of(source) is MemorySpace.Vec else Affinity.CUBE
        return Crossing(stmt, producer, source, False, 0, None)
    mode = rebind(call)["split"]
    stride = call.kwargs.get("lane_stride")
    if name == GATHER:
        return Crossing(stmt, Affinity.VECTOR, source, True, _gather_code(mode, call), stride)
    code = _shard_code(mode, tile_type_of(source), stride, call.span)
    return Crossing(stmt, Affinity.CUBE, source, False, code, stride)


def _stays(source: Var, span: Span) -> Exception:
    space = tile_type_of(source).memory_space
    assert space is not None
    return user_error(
        ValueError,
        f"{written_name(source.name_hint)!r} is in {space.name}, where a tile goes to be multiplied: the vector cores "
        "are handed what comes of it (Acc)",
        span,
        "load it a second time with target_memory=pl.Mem.Vec, before its tensor is written to",
    )


def _shard_code(mode: int, full: TileType, stride: int | None, span: Span) -> int:
    """What the pipe is told of the lanes: the axis, and whether lane 0 has one more than lane 1.

    Lane 1's part begins as many cells into the slot as lane 1 has, or one more: other shares have no place there.
    """
    if mode == 0:
        return 0
    extent, size = value(full.valid_shape[mode - 1]), value(full.shape[mode - 1])
    if extent is None or size is None:
        return mode
    share = stride or (size + 1) // 2
    first, second = min(extent, share), max(0, min(extent - share, share))
    if second in (0, first):
        return mode
    if first == second + 1:
        return mode + 2
    raise user_error(
        ValueError,
        f"a valid extent of {extent} in {size} leaves the two AIV lanes {first} and {second} cells: a pipe serves "
        "equal lanes, or a lane 0 with one cell more",
        span,
        f"make the extent {size}, {size - 1} or at most {share}, or make the tile as large as its valid part",
    )


def _gather_code(mode: int, call: Call) -> int:
    """Lanes are joined only where their parts have one size: the second is put where the first's buffer ends."""
    source = tile_type_of(call.args[0])
    if mode:
        extent, size = value(source.valid_shape[mode - 1]), value(source.shape[mode - 1])
        joined = tile_type_of(call)
        whole = same(joined.valid_shape[mode - 1], joined.shape[mode - 1])
        if extent is not None and extent != size and not whole:
            raise user_error(
                ValueError,
                f"aic_gather joins lanes of {size} cells, but {extent} of them are valid: a gap would be left between "
                "the lanes' parts",
                call.span,
                "fill the tile before it is gathered, with pl.fillpad",
            )
    return mode


def _transport(crossing: Crossing) -> dict[str, Any]:
    stride = {} if crossing.stride is None else {"lane_stride": crossing.stride}
    return {"split": crossing.split, **stride}


def sent(crossing: Crossing, source: Var, target: Target) -> list[Stmt]:
    """What the producer does: push, arranged as the other core expects it."""
    span = crossing.stmt.span
    stmts: list[Stmt] = []
    if crossing.producer is Affinity.VECTOR:
        stmts, source = arranged(source, target, span)
    stmts.append(EvalStmt(build(PUSHES[crossing.producer], source, span=span, **_transport(crossing)), span))
    return stmts


def arranged(source: Var, target: Target, span: Span) -> tuple[list[Stmt], Var]:
    """A vector core's tile as the cube reads it from a pipe."""
    kind = tile_type_of(source)
    view = kind.tile_view
    fits = view is not None and (view.blayout, view.slayout) == (NZ["blayout"], NZ["slayout"])
    if fits or not target.quirks.vector_to_cube_fractal:
        return [], source
    move = build("tile.move", source, target_memory=MemorySpace.Vec, span=span, **NZ)
    made = Var(f"{source.name_hint}_nz", move.type, span)
    return [AssignStmt(made, move, span)], made


def received(crossing: Crossing, result: Var) -> list[Stmt]:
    """What the consumer does to have ``result``: pop, then move where the tile is needed."""
    span, kind = crossing.stmt.span, tile_type_of(result)
    if kind.memory_space in (MemorySpace.Vec, MemorySpace.Mat):
        return [popped(crossing, result)]
    landed = Var(f"{written_name(result.name_hint)}_mat", in_space(kind, MemorySpace.Mat), span)
    blayout, slayout, _ = implicit_layout(kind.shape, kind.memory_space)
    placing = {"blayout": blayout, "slayout": slayout} if kind.memory_space is not MemorySpace.Bias else {}
    move = build("tile.move", landed, target_memory=kind.memory_space, span=span, **placing)
    return [popped(crossing, landed), AssignStmt(result, move, span)]


def popped(crossing: Crossing, result: Var) -> Stmt:
    span = crossing.stmt.span
    name = POPS[Affinity.MIXED & ~crossing.producer]
    call = build(name, span=span, **_transport(crossing)).replace(type=result.type)
    return AssignStmt(result, call, span)

