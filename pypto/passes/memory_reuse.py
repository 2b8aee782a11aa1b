"""MemoryReuse: allocations of one memory that are never needed at the same time become one.

Largest first, each allocation joins the first buffer whose members it never meets. Allocations the author declared
are left alone: nothing joins them and they join nothing. PTOAS does this itself when it plans memory.
"""

from __future__ import annotations

from ..ir.enums import MemorySpace
from ..ir.expr import MemRef, Var
from ..ir.program import Function, Program
from .base import P, Pass
from .context import MemoryPlanner, PassContext
from .memory_lifetimes import Lifetimes, RangeSet
from .memory_model import Allocation, Relocation, allocations, on_chip, with_allocations


def memory_reuse() -> Pass:
    """The pass; see the module."""
    return Pass(
        "MemoryReuse",
        _run,
        requires={P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D, P.NormalizedStmtStructure},
        produces={P.NormalizedStmtStructure},
    )


def _run(program: Program, context: PassContext) -> Program:
    if context.memory_planner is MemoryPlanner.PTOAS:
        return program
    return program.map_functions(_share)


def _share(function: Function) -> Function:
    known = allocations(function.body)
    if not known:
        return function
    needed = base_lifetimes(function)
    hosts = pack(known, needed)
    wanted = {base: a for base, a in known.items() if a.pinned or (base in needed and base not in hosts)}
    made = function
    if hosts:
        made = Relocation(lambda m: _rebased(m, hosts)).rewrite(function)
    return made.replace(body=with_allocations(made.body, wanted))


def _rebased(memref: MemRef, hosts: dict[Var, Var]) -> MemRef:
    host = hosts.get(memref.base)
    if host is None:
        return memref
    return MemRef(host, memref.byte_offset, memref.size, span=memref.span)


def base_lifetimes(function: Function) -> dict[Var, RangeSet]:
    """When each allocation of ``function`` holds something needed, in order of first use."""
    lifetimes = Lifetimes(function)
    ranges: dict[Var, list[tuple[int, int]]] = {}
    for var in lifetimes.order:
        memref = on_chip(var.type)
        if memref is not None:
            ranges.setdefault(memref.base, []).extend(lifetimes.of(var))
    return {base: RangeSet(r) for base, r in ranges.items()}


class _Buffer:
    __slots__ = ("host", "taken")

    def __init__(self, host: Var, taken: RangeSet) -> None:
        self.host, self.taken = host, taken


def pack(known: dict[Var, Allocation], needed: dict[Var, RangeSet]) -> dict[Var, Var]:
    """The allocation each one that gives up its own moves into.

    Equal sizes go in order of first use. A memory holds few buffers at once, so trying them in turn is cheap.
    """
    hosts: dict[Var, Var] = {}
    buffers: dict[MemorySpace, list[_Buffer]] = {}
    candidates = [b for b in needed if b in known and not known[b].pinned]
    for base in sorted(candidates, key=lambda b: -known[b].size):
        of_space = buffers.setdefault(known[base].space, [])
        taken = needed[base]
        buffer = next((b for b in of_space if not b.taken.meets(taken)), None)
        if buffer is None:
            of_space.append(_Buffer(base, RangeSet(taken)))
        else:
            buffer.taken.add(taken)
            hosts[base] = buffer.host
    return hosts
