"""AllocateMemoryAddr: every on-chip allocation gets an address.

Within each memory, allocations follow one another in the order of their declarations, each at the alignment the
target asks for; views keep their distance from the start of their allocation. What does not fit is an error
that names the tiles in the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..backend.target import Target
from ..errors import CapacityError
from ..ir.enums import MemorySpace
from ..ir.expr import ConstInt, MemRef, Var
from ..ir.program import Function, Program
from ..ir.types import TileType, static_dims
from .base import P, Pass
from .context import MemoryPlanner, PassContext
from .memory_lifetimes import Lifetimes
from .memory_model import Allocation, Relocation, allocations, index_add, offset_const, on_chip

DEFAULT_ALIGNMENT = 32
_LISTED = 8


def allocate_memory_addr() -> Pass:
    """The pass; see the module. Raises CapacityError when a memory is too small. PTOAS planning memory, it does nothing."""
    return Pass(
        "AllocateMemoryAddr",
        _run,
        requires={P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D},
        produces={P.AllocatedMemoryAddr},
        looks_for=("tile.alloc",),
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


class _Tiles(NamedTuple):
    """What lies in one allocation: its largest tile, for people."""

    var: Var
    size: int


def _origins(function: Function) -> dict[Var, int]:
    """Where each allocation starts now: 0, or, when the pass has run before, its address."""
    origins: dict[Var, int] = {}
    for var in _tiles(function):
        memref = on_chip(var.type)
        if memref is not None and isinstance(memref.byte_offset, ConstInt):
            offset = memref.byte_offset.value
            if isinstance(memref.slot_index, ConstInt):
                offset -= memref.slot_index.value * memref.size
            origins[memref.base] = min(origins.get(memref.base, offset), offset)
    return origins


def _tiles(function: Function) -> Iterable[Var]:
    return Lifetimes(function).order


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
    lifetimes = Lifetimes(function)
    tiles: dict[Var, _Tiles] = {}
    for var in lifetimes.order:
        memref = on_chip(var.type)
        if memref is not None and memref.base in known and known[memref.base].space is space:
            held = tiles.get(memref.base)
            if held is None or memref.size > held.size:
                tiles[memref.base] = _Tiles(var, memref.size)
    ordered = sorted(tiles.values(), key=lambda t: -t.size)
    listed = [f"{_describe(t.var)}, {t.size} bytes, {t.var.span}" for t in ordered[:_LISTED]]
    if len(ordered) > _LISTED:
        listed.append(f"and {len(ordered) - _LISTED} more")
    capacity = target.capacity(space)
    return CapacityError(
        f"{space.name} buffer usage ({needed} bytes) exceeds platform limit ({capacity} bytes) of {target.name} "
        f"in function '{function.name}'",
        ordered[0].var.span if ordered else function.span,
        _hint(ordered, capacity, space),
        f"tiles in {space.name}: " + "; ".join(listed),
    )


def _describe(var: Var) -> str:
    type = var.type
    assert isinstance(type, TileType)
    dims = static_dims(type.shape) or ()
    return f"'{var.name_hint}' [{', '.join(map(str, dims))}] {type.dtype}"


def _hint(tiles: list[_Tiles], capacity: int, space: MemorySpace) -> str:
    if tiles and tiles[0].size > capacity:
        return f"this tile alone is larger than {space.name}: load and compute it in smaller blocks, in a loop"
    return "use smaller tiles, or split the computation so that fewer of them are needed at the same time"
