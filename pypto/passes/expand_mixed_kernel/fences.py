"""Global memory that one core of a mixed kernel writes and the other uses: a tile pushed after the store orders them.

What is in the pushed tile does not matter. The other core pops it at the same point of the program, so that both do so
equally often, whatever loops and branches are around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ...dtypes import DataType
from ...errors import user_error
from ...ir.enums import MemorySpace
from ...ir.expr import Expr, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.span import Span
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, Stmt, WhileStmt, call_of
from ...ir.types import TensorType, TileType
from ...ops.registry import ArgEffect, arg_effect
from ..core_affinity import Affinity
from ..emitting import build
from ..packed_products import BOX_ROWS, is_whole
from .crossings import NZ, Crossing

_BY_ROWS: Final = 1
_WIDTH: Final = {Affinity.CUBE: 32, Affinity.VECTOR: 16}
"""Columns of the token of each core."""
_READS_HERE: Final = frozenset({"tensor.read"})
"""Reads that each core does for itself."""


class Fence(NamedTuple):
    """The push of what a store stored, as a crossing whose result nobody reads.

    With ``token`` another tile crosses, of a size of its own: lanes that divide tiles have to divide it, too, and a
    tile of which some is valid does not fill a slot.
    """

    crossing: Crossing
    token: bool = False


class _Access(NamedTuple):
    stmt: Stmt
    index: int
    side: Affinity
    tensor: Var
    writes: bool


def fences(
    leaves: Sequence[Stmt],
    affinity: Mapping[Stmt, Affinity],
    roots: Callable[[Expr], Iterable[Var]],
    around: Callable[[Stmt], Iterable[Stmt]],
    crossings: Mapping[Stmt, Crossing],
    lanes: bool,
) -> tuple[dict[Stmt, Fence], bool]:
    """The stores the other core has to be told of, and whether the cores share memory, which crossings then order.

    ``roots`` says which tensors a value may be or be a view of, ``lanes`` whether the vector lanes divide tiles.
    Raises KernelValueError where a core writes what the other may still be reading, and nothing tells it.
    """
    accesses = _accesses(leaves, affinity, roots)
    found: dict[Stmt, Fence] = {}
    by_tensor: dict[Var, list[_Access]] = {}
    for access in accesses:
        by_tensor.setdefault(access.tensor, []).append(access)
    shared = [group for group in by_tensor.values() if _is_shared(group)]
    for group in shared:
        for write in group:
            if write.writes and any(_follows(a, write, around) for a in group if _differs(a, write)):
                found[write.stmt] = _fence(write, lanes)
    position = {stmt: i for i, stmt in enumerate(leaves)}
    signals = [(position[c.stmt], c) for c in (*crossings.values(), *(f.crossing for f in found.values()))]
    for group in shared:
        for read in (a for a in group if not a.writes):
            for write in (a for a in group if a.writes and _differs(a, read) and _follows(a, read, around)):
                if not any(_between(i, c, read, write, around) for i, c in signals):
                    raise _unordered(read, write)
    return found, bool(shared)


def _accesses(
    leaves: Sequence[Stmt], affinity: Mapping[Stmt, Affinity], roots: Callable[[Expr], Iterable[Var]]
) -> list[_Access]:
    found: list[_Access] = []
    for index, stmt in enumerate(leaves):
        call = call_of(stmt)
        if call is None or affinity[stmt] is Affinity.MIXED:
            continue
        for i, arg in enumerate(call.args):
            if not isinstance(arg.type, TensorType):
                continue
            if affinity[stmt] is not Affinity.SHARED or call.op.name in _READS_HERE:
                writes = arg_effect(call, i) is not ArgEffect.Read
                found.extend(_Access(stmt, index, affinity[stmt], root, writes) for root in roots(arg))
    return found


def _is_shared(group: Iterable[_Access]) -> bool:
    """Whether both cores use a tensor and one writes it."""
    sides = {a.side for a in group}
    return len(sides) > 1 and any(a.writes for a in group)


def _differs(a: _Access, b: _Access) -> bool:
    return a.side is not b.side


def _follows(later: _Access, earlier: _Access, around: Callable[[Stmt], Iterable[Stmt]]) -> bool:
    """Whether ``later`` may run after ``earlier``: it stands behind it, or in a loop with it."""
    if later.index > earlier.index:
        return True
    loops = {s for s in around(earlier.stmt) if isinstance(s, (ForStmt, WhileStmt))}
    return any(s in loops for s in around(later.stmt))


def _between(
    index: int, crossing: Crossing, read: _Access, write: _Access, around: Callable[[Stmt], Iterable[Stmt]]
) -> bool:
    """Whether ``crossing`` tells the writer that the reader is past its read, each time."""
    if crossing.producer is not read.side:
        return False
    outer = next(iter(around(crossing.stmt)), None)
    if outer is not None and outer not in set(around(read.stmt)):
        return False
    if read.index < write.index:
        return read.index < index < write.index
    return index > read.index or index < write.index


def _fence(write: _Access, lanes: bool) -> Fence:
    store = call_of(write.stmt, "tile.store")
    source = store.args[0] if store is not None else None
    if not isinstance(source, Var) or not isinstance(write.stmt, (AssignStmt, EvalStmt)):
        raise user_error(
            ValueError,
            f"{written_name(write.tensor.name_hint)!r} is written here by one core and used by the other, which "
            "nothing tells",
            write.stmt.span,
            "write it with pl.store, or hand the tile over with pl.move",
        )
    token = lanes or not is_whole(tile_type_of(source))
    return Fence(Crossing(write.stmt, write.side, source, False, _BY_ROWS if lanes else 0, None), token)


def token_of(producer: Affinity, fractal: bool, span: Span) -> AssignStmt:
    """A tile that a core can push, whatever is in it: a lane's part of one when it is the vector cores'."""
    space = MemorySpace.Acc if producer is Affinity.CUBE else MemorySpace.Vec
    made = build("tile.create", [BOX_ROWS, _WIDTH[producer]], dtype=DataType.FP32, target_memory=space, span=span)
    if fractal and space is MemorySpace.Vec:
        kind = tile_type_of(made)
        made = made.replace(type=kind.replace(tile_view=kind.get_effective_tile_view().replace(**NZ)))
    return AssignStmt(Var("sync_token", made.type, span), made, span)


def received_token(fence: Fence) -> TileType:
    """What the other core pops of a token: the lanes' parts joined, or a lane's part."""
    producer = fence.crossing.producer
    rows = BOX_ROWS
    if fence.crossing.split:
        rows = BOX_ROWS // 2 if producer is Affinity.CUBE else 2 * BOX_ROWS
    space = MemorySpace.Vec if producer is Affinity.CUBE else MemorySpace.Mat
    return TileType([rows, _WIDTH[producer]], DataType.FP32, None, None, space)


def _unordered(read: _Access, write: _Access) -> Exception:
    name = written_name(read.tensor.name_hint)
    return user_error(
        ValueError,
        f"{name!r} is written here by one core of a mixed kernel while the other may still be reading it (line "
        f"{read.stmt.span.begin_line})",
        write.stmt.span,
        "hand the tile over with pl.move instead of through global memory, or write to a tensor of its own",
    )
