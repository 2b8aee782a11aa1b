"""AllocateMemoryAddr: every on-chip allocation gets an address.

Within each memory, allocations follow one another in the order of their declarations, each at the alignment the
target asks for; views keep their distance from the start of their allocation. Buffers a kernel reserves for its
cross-core pipes come first, and get an address too where they have none. What does not fit is an error that names
the tiles in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..backend.formats import round_up
from ..backend.target import Target
from ..errors import CapacityError
from ..ir.enums import MemorySpace
from ..ir.expr import Call, ConstInt, Var, tile_type_of
from ..ir.memref import MemRef
from ..ir.program import Function, Program, summarize
from ..ir.structural import structural_equal
from ..ir.tensor_view_semantics import index_mul
from ..ir.types import static_dims
from .base import P, Pass
from .context import MemoryPlanner, PassContext
from .cross_core_buffers import NOTHING_RESERVED, RESERVE, Reserved, reserve
from .memory_lifetimes import Lifetimes, RangeSet
from .memory_model import (
    Allocation,
    Relocation,
    allocations,
    index_add,
    offset_const,
    on_chip,
    place_of,
    shown,
    tile_definitions,
)

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
    reserved = reserve(function, target) if RESERVE in summarize(function).ops else NOTHING_RESERVED
    if not known and not reserved.bases:
        return function
    addresses, used = assign_addresses(known, target, reserved.ends)
    for space, size in used.items():
        if space in target.memories and size > target.capacity(space):
            raise _overflow(function, target, space, size, known, reserved)
    origin = _origins(function)
    shifts = {base: address - origin.get(base, 0) for base, address in addresses.items()}
    if not any(shifts.values()) and not reserved.bases:
        return function  # Also right for slots: their offsets are those of an allocation at address 0.
    return _Addressing(lambda m: _at_address(m, shifts, addresses), reserved.bases).rewrite(function)


class _Addressing(Relocation):
    def __init__(self, move: Callable[[MemRef], MemRef], bases: Mapping[int, int]) -> None:
        super().__init__(move)
        self._bases = bases

    def visit_call(self, op: Call) -> Any:
        made: Call = self.generic(op)
        base = self._bases.get(id(op))
        return made if base is None else made.replace(kwargs={**made.kwargs, "base": base})


def assign_addresses(
    known: dict[Var, Allocation], target: Target, floors: Mapping[MemorySpace, int] | None = None
) -> tuple[dict[Var, int], dict[MemorySpace, int]]:
    """The address of each allocation, and the bytes each memory needs. ``floors`` keeps low addresses free."""
    used = dict(floors or {})
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
    return round_up(address, unit)


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


def _at_address(memref: MemRef, shifts: dict[Var, int], addresses: dict[Var, int]) -> MemRef:
    shift = shifts.get(memref.base, 0)
    if memref.slot_index is not None and memref.base in addresses:
        start = index_mul(memref.slot_index, offset_const(memref.size))
        offset = index_add(start, offset_const(addresses[memref.base]))
        if structural_equal(offset, memref.byte_offset):
            return memref
    elif shift:
        offset = index_add(memref.byte_offset, offset_const(shift))
    else:
        return memref
    return MemRef(
        memref.base,
        offset,
        memref.size,
        span=memref.span,
        slot_count=memref.slot_count,
        slot_index=memref.slot_index,
    )


def _overflow(
    function: Function,
    target: Target,
    space: MemorySpace,
    needed: int,
    known: dict[Var, Allocation],
    reserved: Reserved,
) -> CapacityError:
    capacity = target.capacity(space)
    tiles, at_once = _in_the_way(function, space, known)
    listed = [_describe(t) for t in tiles[:_LISTED]]
    if len(tiles) > _LISTED:
        listed.append(f"and {len(tiles) - _LISTED} more")
    when = "needed at once" if at_once else "that do not share a buffer"
    return CapacityError(
        f"{space.name} buffer usage ({needed} bytes) exceeds platform limit ({capacity} bytes) of {target.name} "
        f"in function '{function.name}'{reserved.note(function, space)}",
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
        base = place_of(var).base
        for chosen, wanted in ((crowded, ranges.meets(peak)), (largest, True)):
            if wanted and size > chosen.get(base, (var, 0))[1]:
                chosen[base] = (var, size)
    held = sum(known[base].size for base in crowded)
    at_once = held == sum(known[base].size for base in largest)
    blamed = crowded if at_once else largest
    return [var for var, _ in sorted(blamed.values(), key=lambda item: -item[1])], at_once


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
    type = tile_type_of(var)
    dims = ", ".join(map(str, static_dims(type.shape) or ()))
    return f"{place_of(var).size} bytes: '{shown(var)}' [{dims}] {type.dtype}, {var.span}"


def _hint(tiles: list[Var], capacity: int, space: MemorySpace) -> str:
    memref = on_chip(tiles[0].type) if tiles else None
    if memref is not None and memref.size > capacity:
        return f"'{shown(tiles[0])}' alone is larger than {space.name}: load and compute it in smaller blocks"
    return "use smaller tiles, or split the loop so that fewer tiles are needed at the same time"
