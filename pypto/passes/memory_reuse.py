"""MemoryReuse: allocations of one memory that are never needed at the same time become one.

Largest first, each allocation joins the first buffer whose members it never meets. Where a memory is too small for
that, smaller ones lie side by side in a larger one they never meet. Stages of a pipelined loop have
buffers of their own, as many as fit. Allocations the author declared are left alone: nothing joins them and they join
nothing. PTOAS does this itself when it plans memory.

The marks of stages go, so that the pass, run again, would share what it has kept apart: it runs once.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final, NamedTuple

from ..backend.formats import round_up
from ..backend.target import Target
from ..errors import user_error
from ..ir.enums import FunctionType, MemorySpace
from ..ir.expr import Add, Call, ConstInt, Expr, Var
from ..ir.memref import MemRef
from ..ir.program import Function, Program, summarize
from ..ir.scalar import binary, scalar_const, scalar_dtype
from ..ir.stmt import AssignStmt
from ..ir.visitor import find_all
from ..ops.registry import decl_of
from .allocate_memory_addr import assign_addresses
from .base import P, Pass
from .context import MemoryPlanner, PassContext
from .core_affinity import POPS, Affinity
from .cross_core_buffers import RESERVE, reserve
from .diagnostics import perf_hint
from .memory_lifetimes import Lifetimes, RangeSet
from .memory_model import Allocation, Relocation, allocations, on_chip, with_allocations
from .pipeline_buffers import Group, Stages, Unmarked, shed_text

_POP: Final = POPS[Affinity.VECTOR]
_NO_ROOM: Final = (
    "Vec has room for a result made of a loaded and a popped tile only where the loaded one is, and devices are known "
    "to compute such results wrongly"
)
_SMALLER: Final = (
    "make the tiles smaller, or the ring of the pipe shallower with optimizations=[pl.cross_core_slot(slot_num=1)]"
)


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
    return program.map_functions(lambda f: _share(f, context))


def _share(function: Function, context: PassContext) -> Function:
    known = allocations(function.body)
    if not known:
        return function
    needed, target = base_lifetimes(function), context.target
    stages = Stages(function, known, target)
    apart = _kept_apart(function, target)
    floors = reserve(function, target).ends if RESERVE in summarize(function).ops else {}

    def packed(
        apart: dict[Var, set[Var]], dense: frozenset[MemorySpace] = frozenset()
    ) -> tuple[dict[Var, tuple[Var, int]], dict[Var, Allocation]]:
        """Which buffer each allocation joins, at which byte, and those that remain."""
        hosts = pack(known, needed, apart, stages, {s: target.memories[s].alignment for s in dense})
        return hosts, {base: a for base, a in known.items() if a.pinned or (base in needed and base not in hosts)}

    def overfull(wanted: dict[Var, Allocation]) -> list[MemorySpace]:
        _, used = assign_addresses(wanted, target, floors)
        return [s for s, size in used.items() if s in target.memories and size > target.capacity(s)]

    hosts, wanted = packed(apart)
    while stages.marked and any(stages.give_up(space) for space in overfull(wanted)):
        hosts, wanted = packed(apart)
    if full := frozenset(overfull(wanted)):
        hosts, wanted = packed(apart, full)
    if apart and MemorySpace.Vec in overfull(wanted) and MemorySpace.Vec not in overfull(packed({})[1]):
        raise user_error(ValueError, _NO_ROOM, next(iter(apart)).span, _SMALLER)
    for shed in stages.sheds():
        perf_hint(context, "PH-MR-001", "MemoryReuse", shed_text(shed, target), shed.span)
    made = Unmarked().rewrite(function) if stages.marked else function
    if hosts:
        made = Relocation(lambda m: _rebased(m, hosts)).rewrite(made)
    return made.replace(body=with_allocations(made.body, wanted))


def _kept_apart(function: Function, target: Target) -> dict[Var, set[Var]]:
    """Allocations that the target cannot have in one buffer, each with the others.

    In a vector part with a split, what is made of a loaded and a popped tile must not be put where the loaded one is.
    """
    apart: dict[Var, set[Var]] = {}
    split = function.func_type is FunctionType.AIV and function.split is not None
    if not split or not target.quirks.split_load_tpop_workaround or _POP not in summarize(function).ops:
        return apart
    popped: set[Var] = set()
    loaded: set[Var] = set()
    for stmt in find_all(function.body, AssignStmt):
        call = stmt.value
        if not isinstance(call, Call):
            continue
        made, args = on_chip(stmt.var.type), [a for a in call.args if isinstance(a, Var)]
        if call.op.name == _POP or (_is_view(call) and args[0] in popped):
            popped.add(stmt.var)
        elif call.op.name == "tile.load" and made is not None:
            loaded.add(made.base)
        elif made is not None and any(a in popped for a in args):
            for source in (on_chip(a.type) for a in args if a not in popped):
                if source is not None and source.base in loaded and source.base is not made.base:
                    apart.setdefault(made.base, set()).add(source.base)
                    apart.setdefault(source.base, set()).add(made.base)
    return apart


def _is_view(call: Call) -> bool:
    decl = decl_of(call)
    return decl is not None and decl.inherits is not None


def _rebased(memref: MemRef, hosts: dict[Var, tuple[Var, int]]) -> MemRef:
    if memref.base not in hosts:
        return memref
    host, start = hosts[memref.base]
    offset = memref.byte_offset if start == 0 else _moved(memref.byte_offset, start)
    return MemRef(host, offset, memref.size, span=memref.span)


def _moved(offset: Expr, start: int) -> Expr:
    if isinstance(offset, ConstInt):
        return ConstInt(offset.value + start, offset.dtype, offset.span)
    return binary(Add, offset, scalar_const(start, scalar_dtype(offset)))


def base_lifetimes(function: Function) -> dict[Var, RangeSet]:
    """When each allocation of ``function`` holds something needed, in order of first use."""
    lifetimes = Lifetimes(function)
    ranges: dict[Var, list[tuple[int, int]]] = {}
    for var in lifetimes.order:
        memref = on_chip(var.type)
        if memref is not None:
            ranges.setdefault(memref.base, []).extend(lifetimes.of(var))
    return {base: RangeSet(r) for base, r in ranges.items()}


class _Member(NamedTuple):
    """An allocation in a buffer: from which byte to which, when it is needed, and its stages."""

    base: Var
    start: int
    end: int
    taken: RangeSet
    lanes: dict[Group, int]


class _Buffer:
    __slots__ = ("host", "size", "members", "_bases", "_taken", "_lanes")

    def __init__(self, host: _Member) -> None:
        self.host, self.size, self.members = host.base, host.end, [host]
        self._bases, self._taken, self._lanes = {host.base}, RangeSet(host.taken), dict(host.lanes)

    def add(self, member: _Member) -> None:
        self.members.append(member)
        self._bases.add(member.base)
        self._taken.add(member.taken)
        self._lanes.update(member.lanes)

    def room(self, new: _Member, apart: Set[Var], step: int) -> int | None:
        """The first byte from which ``new`` meets no member; with a ``step`` of 0, byte 0 if it meets none at all."""
        if not step:
            stages = all(self._lanes.get(group, lane) == lane for group, lane in new.lanes.items())
            return 0 if stages and apart.isdisjoint(self._bases) and not self._taken.meets(new.taken) else None
        around = RangeSet((start - 1, end + 1) for start, end in new.taken)
        busy = [m for m in self.members if _conflict(m, new, apart)]
        beside = [m for m in self.members if m not in busy and m.taken.meets(around)]
        starts = {0, *(round_up(m.end, step) for m in busy), *(m.start for m in beside)}
        for start in sorted(starts):
            end = start + new.end
            clear = all(end <= m.start or m.end <= start for m in busy)
            # An operand may be overwritten by a result made of it, element by element, but only where it starts.
            exact = all(end <= m.start or m.end <= start or m.start == start for m in beside)
            if clear and exact and end <= self.size:
                return start
        return None


def _conflict(a: _Member, b: _Member, apart: Set[Var]) -> bool:
    return a.taken.meets(b.taken) or a.base in apart or any(b.lanes.get(g, lane) != lane for g, lane in a.lanes.items())


def pack(
    known: dict[Var, Allocation],
    needed: dict[Var, RangeSet],
    apart: Mapping[Var, set[Var]],
    stages: Stages,
    dense: Mapping[MemorySpace, int],
) -> dict[Var, tuple[Var, int]]:
    """The allocation each one that gives up its own moves into, and at which byte of it.

    Equal sizes go in order of first use. Only in ``dense`` memories is there another byte than 0, a multiple of the
    number given. A memory holds few buffers at once, so trying them in turn is cheap.
    """
    hosts: dict[Var, tuple[Var, int]] = {}
    buffers: dict[MemorySpace, list[_Buffer]] = {}
    candidates = [b for b in needed if b in known and not known[b].pinned]
    for base in sorted(candidates, key=lambda b: -known[b].size):
        of_space = buffers.setdefault(known[base].space, [])
        new = _Member(base, 0, known[base].size, needed[base], stages.lanes(base))
        others, step = apart.get(base, frozenset()), dense.get(known[base].space, 0)
        for buffer in of_space:
            start = buffer.room(new, others, step)
            if start is not None:
                buffer.add(new._replace(start=start, end=start + new.end))
                hosts[base] = buffer.host, start
                break
        else:
            of_space.append(_Buffer(new))
    return hosts
