"""Which tiles of a pipelined loop must not share a buffer: those of different stages, as far as memory goes.

The copies of a loop's body run into each other, though the program has them one after the other. A buffer that two of
them share makes the second wait for the first. With ``depth`` buffers, stage ``k`` has those of stage ``k % depth``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..backend.target import Target
from ..ir.enums import MemorySpace
from ..ir.expr import Call, Expr, Var
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import AssignStmt
from ..ir.visitor import Rewriter, Visitor
from .allocate_memory_addr import align
from .lower_pipeline_loops import MEMBERSHIP
from .memory_model import Allocation, on_chip


class Group(NamedTuple):
    """The tiles of one pipelined loop in one memory."""

    space: MemorySpace
    number: int


class Shed(NamedTuple):
    """A group that has fewer buffers than stages."""

    group: Group
    wanted: int
    depth: int
    slot: int
    """Bytes of its largest tile."""
    span: Span


class Stages:
    """The stages of each allocation of a function, and how many buffers each group has at present."""

    def __init__(self, function: Function, known: Mapping[Var, Allocation], target: Target) -> None:
        self._target = target
        self.marked = False
        """Whether any call says which stage it is of."""
        self._stage: dict[Var, dict[Group, int]] = {}
        self._spans: dict[Group, Span] = {}
        mixed: set[tuple[Var, Group]] = set()
        for var, call in _Marks(function).found:
            self.marked = True
            memref = on_chip(var.type)
            if memref is None or memref.base not in known:
                continue
            for place in call.attrs[MEMBERSHIP].split(","):
                number, stage = map(int, place.split(":"))
                group = Group(known[memref.base].space, number)
                if self._stage.setdefault(memref.base, {}).setdefault(group, stage) != stage:
                    mixed.add((memref.base, group))
                self._spans.setdefault(group, call.span)
        for base, group in mixed:
            del self._stage[base][group]  # A value that goes from stage to stage is one buffer's in all of them.
        self._order = self._ordered()
        self._slots = {g: self._slot(g, known) for g in self._order}
        self._depth = {g: self._affordable(g) for g in self._order}

    def _ordered(self) -> dict[Group, dict[int, int]]:
        """The stages of each group, numbered from 0."""
        found: dict[Group, set[int]] = {}
        for stages in self._stage.values():
            for group, stage in stages.items():
                found.setdefault(group, set()).add(stage)
        return {g: {s: i for i, s in enumerate(sorted(found[g]))} for g in sorted(found, key=lambda g: g.number)}

    def _slot(self, group: Group, known: Mapping[Var, Allocation]) -> int:
        sizes = (known[base].size for base, stages in self._stage.items() if group in stages)
        return align(max(sizes), group.space, self._target)

    def _affordable(self, group: Group) -> int:
        wanted, capacity = len(self._order[group]), self._target.capacity(group.space)
        return max(1, min(wanted, capacity // self._slots[group])) if self._slots[group] else wanted

    def lanes(self, base: Var) -> dict[Group, int]:
        """For each group that an allocation is of, which of the group's buffers it takes."""
        return {g: self._order[g][s] % self._depth[g] for g, s in self._stage.get(base, {}).items()}

    def give_up(self, space: MemorySpace) -> bool:
        """Take a buffer from the group in ``space`` whose buffers are the largest; False when all have one left."""
        rich = [g for g in self._order if g.space is space and self._depth[g] > 1]
        if not rich:
            return False
        self._depth[max(rich, key=lambda g: self._slots[g])] -= 1
        return True

    def sheds(self) -> list[Shed]:
        """The groups that could not have a buffer for each stage."""
        return [
            Shed(g, len(stages), self._depth[g], self._slots[g], self._spans[g])
            for g, stages in self._order.items()
            if self._depth[g] < len(stages)
        ]


def shed_text(shed: Shed, target: Target) -> str:
    """What to tell the user of a group without a buffer for each stage."""
    capacity, space = target.capacity(shed.group.space), shed.group.space.name
    text = (
        f"a pipeline of requested depth {shed.wanted} has only {shed.depth} of {shed.wanted} buffers in {space}, and "
        "its stages wait for each other: "
    )
    if shed.slot * shed.wanted > capacity:
        limit = f"to {capacity // shed.wanted} bytes or less ({shed.slot} now)"
        return f"{text}shrink the per-stage tile {limit}, or ask for fewer stages"
    return f"{text}what else is needed meanwhile and its {shed.wanted} x {shed.slot} bytes over-subscribe the space"


class _Marks(Visitor):
    """The assigned calls that say which stage they are of."""

    def __init__(self, function: Function) -> None:
        self.found: list[tuple[Var, Call]] = []
        self.visit(function.body)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if isinstance(op.value, Call) and MEMBERSHIP in op.value.attrs:
            self.found.append((op.var, op.value))


class Unmarked(Rewriter):
    """Takes the stages off calls, which have served their purpose."""

    def visit_call(self, op: Call) -> Expr:
        made = self.generic(op)
        if MEMBERSHIP not in made.attrs:
            return made
        return made.replace(attrs={k: v for k, v in made.attrs.items() if k != MEMBERSHIP})
