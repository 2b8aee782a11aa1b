"""AllocateMemoryAddr: every on-chip allocation gets an address.

Within each memory, allocations follow one another in the order of their declarations, each at the alignment the
target asks for; views keep their distance from the start of their allocation. What does not fit is an error
that names the tiles in the way.
"""

from __future__ import annotations

from ..backend.target import Target
from ..errors import CapacityError
from ..ir.enums import MemorySpace
from ..ir.expr import ConstInt, MemRef, Var
from ..ir.program import Function, Program
from ..ir.types import TileType, static_dims
from .base import P, Pass
from .context import MemoryPlanner, PassContext
from .memory_lifetimes import Lifetimes, RangeSet
from .memory_model import Allocation, Relocation, allocations, index_add, offset_const, on_chip, tile_definitions

DEFAULT_ALIGNMENT = 32
_LISTED = 8


def allocate_memory_addr() -> Pass:
    """The pass; see the module. It does nothing when PTOAS plans memory.

    Raises CapacityError when a memory of the target is too small.
    """
    return Pass(
        "AllocateMemoryAddr",
        _run,
        requires={P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D},
        produces={P.AllocatedMemoryAddr},
    )


def _run(program: Program, context: PassContext) -> Program:
    if context.memory_planner is MemoryPlanner.PTOAS:
        return program
    return program.map_functions(lambda f: _allocate(f, context.target))


def _allocate(function: Function, target: Target) -> Function:
    known = allocations(function.body)
    if not known:
        return function
    addresses, used = assign_addresses(known, target)
    for space, size in used.items():
        if space in target.memories and size > target.capacity(space):
            raise _overflow(function, target, space, size, known)
    origin = _origins(function)
    shifts = {base: address - origin.get(base, 0) for base, address in addresses.items()}
    if not any(shifts.values()):
        return function
    return Relocation(lambda m: _shifted(m, shifts)).rewrite(function)


def assign_addresses(
    known: dict[Var, Allocation], target: Target, floors: dict[MemorySpace, int] | None = None
) -> tuple[dict[Var, int], dict[MemorySpace, int]]:
    """The address of each allocation, and the bytes each memory needs. ``floors`` keeps low addresses free."""
    used: dict[MemorySpace, int] = dict(floors or {})
    addresses: dict[Var, int] = {}
    for base, allocation in known.items():
        space = allocation.space
        start = align(used.get(space, 0), space, target)
        addresses[base] = start
        used[space] = start + allocation.size
    return addresses, used


def align(address: int, space: MemorySpace, target: Target) -> int:
    """The next address in ``space`` an allocation may start at."""
    memory = target.memories.get(space)
    unit = memory.alignment if memory is not None else DEFAULT_ALIGNMENT
    return -(-address // unit) * unit


def _origins(function: Function) -> dict[Var, int]:
    """Where each allocation starts now: 0, or, when the pass has run before, its address."""
    origins: dict[Var, int] = {}
    for var in tile_definitions(function):
        memref = on_chip(var.type)
        if memref is not None and isinstance(memref.byte_offset, ConstInt):
            offset = memref.byte_offset.value
            if isinstance(memref.slot_index, ConstInt):
                offset -= memref.slot_index.value * memref.size
            origins[memref.base] = min(origins.get(memref.base, offset), offset)
    return origins


def _shifted(memref: MemRef, shifts: dict[Var, int]) -> MemRef:
    shift = shifts.get(memref.base, 0)
    if shift == 0:
        return memref
    return MemRef(
        memref.base,
        index_add(memref.byte_offset, offset_const(shift)),
        memref.size,
        span=memref.span,
        slot_count=memref.slot_count,
        slot_index=memref.slot_index,
    )


def _overflow(
    function: Function, target: Target, space: MemorySpace, needed: int, known: dict[Var, Allocation]
) -> CapacityError:
    capacity = target.capacity(space)
    tiles, at_once = _in_the_way(function, space, known)
    listed = [_describe(t) for t in tiles[:_LISTED]]
    if len(tiles) > _LISTED:
        listed.append(f"and {len(tiles) - _LISTED} more")
    when = "needed at once" if at_once else "that do not share a buffer"
    return CapacityError(
        f"{space.name} buffer usage ({needed} bytes) exceeds platform limit ({capacity} bytes) of {target.name} "
        f"in function '{function.name}'",
        tiles[0].span if tiles else function.span,
        _hint(tiles, capacity, space),
        "".join([f"tiles in {space.name} {when}:", *(f"\n      {line}" for line in listed)]),
    )


def _in_the_way(function: Function, space: MemorySpace, known: dict[Var, Allocation]) -> tuple[list[Var], bool]:
    """The tiles to blame, largest first: those needed when most bytes are, or, if these would fit, one per buffer."""
    lifetimes = Lifetimes(function)
    inside: list[tuple[Var, int, RangeSet]] = []
    for var in lifetimes.order:
        memref = on_chip(var.type)
        if memref is not None and memref.base in known and known[memref.base].space is space:
            inside.append((var, memref.size, lifetimes.of(var)))
    peak = _peak(inside)
    crowded: dict[Var, tuple[Var, int]] = {}
    largest: dict[Var, tuple[Var, int]] = {}
    for var, size, ranges in inside:
        base = _base(var)
        for chosen, wanted in ((crowded, ranges.meets(peak)), (largest, True)):
            if wanted and size > chosen.get(base, (var, 0))[1]:
                chosen[base] = (var, size)
    held = sum(known[base].size for base in crowded)
    at_once = held == sum(known[base].size for base in largest)
    blamed = crowded if at_once else largest
    return [var for var, _ in sorted(blamed.values(), key=lambda item: -item[1])], at_once


def _base(var: Var) -> Var:
    memref = on_chip(var.type)
    assert memref is not None
    return memref.base


def _peak(inside: list[tuple[Var, int, RangeSet]]) -> RangeSet:
    """The instant at which the most bytes are needed."""
    changes: dict[int, int] = {}
    for _, size, ranges in inside:
        for start, end in ranges:
            changes[start] = changes.get(start, 0) + size
            changes[end] = changes.get(end, 0) - size
    best, most, now = 0, -1, 0
    for instant in sorted(changes):
        now += changes[instant]
        if now > most:
            best, most = instant, now
    return RangeSet([(best, best + 1)])


def _describe(var: Var) -> str:
    type, memref = var.type, on_chip(var.type)
    assert isinstance(type, TileType) and memref is not None
    dims = ", ".join(map(str, static_dims(type.shape) or ()))
    return f"{memref.size} bytes: '{var.name_hint}' [{dims}] {type.dtype}, {var.span}"


def _hint(tiles: list[Var], capacity: int, space: MemorySpace) -> str:
    memref = on_chip(tiles[0].type) if tiles else None
    if memref is not None and memref.size > capacity:
        return f"'{tiles[0].name_hint}' alone is larger than {space.name}: load and compute it in smaller blocks"
    return "use smaller tiles, or split the loop so that fewer tiles are needed at the same time"
