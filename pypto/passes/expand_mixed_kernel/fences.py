"""Global memory that one core of a mixed kernel writes and the other uses: a tile pushed after the store orders them.

What is in the pushed tile does not matter. The other core pops it at the same point of the program, so that both do so
equally often, whatever loops and branches are around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ...errors import user_error
from ...ir.expr import Expr, Var
from ...ir.naming import written_name
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, Stmt, WhileStmt, call_of
from ...ir.types import TensorType
from ...ops.registry import ArgEffect, arg_effect
from ..core_affinity import Affinity
from .crossings import Crossing

_READS_HERE: Final = frozenset({"tensor.read"})
"""Reads that each core does for itself."""


class Fence(NamedTuple):
    """The push of what a store stored, as a crossing whose result nobody reads."""

    crossing: Crossing


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
) -> dict[Stmt, Fence]:
    """The stores the other core has to be told of; ``roots`` says which tensors a value may be or be a view of.

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
                found[write.stmt] = _fence(write)
    position = {stmt: i for i, stmt in enumerate(leaves)}
    signals = [(position[c.stmt], c) for c in (*crossings.values(), *(f.crossing for f in found.values()))]
    for group in shared:
        for read in (a for a in group if not a.writes):
            for write in (a for a in group if a.writes and _differs(a, read) and _follows(a, read, around)):
                if not any(_between(i, c, read, write, around) for i, c in signals):
                    raise _unordered(read, write)
    return found


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


def _fence(write: _Access) -> Fence:
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
    return Fence(Crossing(write.stmt, write.side, source, False, 0, None))


def _unordered(read: _Access, write: _Access) -> Exception:
    name = written_name(read.tensor.name_hint)
    return user_error(
        ValueError,
        f"{name!r} is written here by one core of a mixed kernel while the other may still be reading it (line "
        f"{read.stmt.span.begin_line})",
        write.stmt.span,
        "hand the tile over with pl.move instead of through global memory, or write to a tensor of its own",
    )
