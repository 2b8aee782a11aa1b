"""MaterializeSemanticAliases: values that the program says are one buffer get one buffer.

An in-place result and its operand; a loop-carried variable, its initial value, what the body yields and the loop's
result; a branch result and what either branch yields. Two values may share a buffer when they are never needed at
the same time. Where they are, one is copied: before an in-place operator, before a loop, or before a yield, in an
order that overwrites nothing still to be copied. What cannot be copied is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from ..backend.target import Target
from ..errors import InternalError, KernelValueError, UnsupportedError
from ..ir.expr import Call, Expr, IterArg, Var
from ..ir.memref import MemRef
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, Stmt, WhileStmt, YieldStmt, flatten_to_stmts, seq
from ..ir.visitor import Rewriter
from ..ops.registry import decl_of
from .acc_windows import acc_windows
from .base import P, Pass
from .context import PassContext
from .memory_lifetimes import STEP, Lifetimes, RangeSet
from .memory_model import (
    Allocation,
    allocations,
    check_copy,
    copy_of,
    fills_buffer,
    on_chip,
    place_of,
    placed_in,
    shown,
    value_at,
    with_allocations,
    with_memref,
    yielded,
)

_NEEDS = {P.SplitIncoreOrch, P.IncoreTileOps, P.HasMemRefs, P.TileOps2D, P.NormalizedStmtStructure}


def materialize_semantic_aliases() -> Pass:
    """The pass; see the module.

    Raises UnsupportedError where a copy is needed in a memory that cannot be copied to itself, and KernelValueError
    when tiles bound to one declared allocation are needed at the same time.
    """
    return Pass(
        "MaterializeSemanticAliases",
        _run,
        requires=_NEEDS,
        produces={P.NormalizedStmtStructure},
    )


def _run(program: Program, context: PassContext) -> Program:
    return program.map_functions(lambda f: _unify(f, context.target))


def _unify(function: Function, target: Target) -> Function:
    known = allocations(function.body)
    if not known or not (_shares(function.body) or any(a.pinned for a in known.values())):
        return function
    plan = _Plan(function, target, known)
    places, wanted = plan.places()
    made = _Apply(plan, places).rewrite(function) if places or plan.before else function
    return made.replace(body=with_allocations(made.body, wanted))


def _shares(body: Stmt) -> bool:
    """Whether a body has anything that makes two values one buffer: a loop, a branch, an in-place operator."""
    for stmt in flatten_to_stmts(body):
        if isinstance(stmt, AssignStmt):
            decl = decl_of(stmt.value)
            if decl is not None and decl.reuses is not None and on_chip(stmt.var.type) is not None:
                return True
        elif isinstance(stmt, (ForStmt, WhileStmt, IfStmt)) or (isinstance(stmt, ScopeStmt) and _shares(stmt.body)):
            return True
    return False


class _Class:
    """Values in one buffer: when any is needed, and the declared allocation they are bound to, if one is."""

    __slots__ = ("ranges", "members", "pinned")

    def __init__(self, var: Var, ranges: RangeSet, pinned: Var | None) -> None:
        self.ranges = ranges
        self.members = [var]
        self.pinned = pinned


class _Copy:
    """``var = tile.move(source)``, or a repetition of the call that made an empty source."""

    __slots__ = ("var", "source", "again")

    def __init__(self, var: Var, source: Var, again: Call | None) -> None:
        self.var, self.source, self.again = var, source, again


class _Plan:
    """Which variables share a buffer, and the copies that takes."""

    def __init__(self, function: Function, target: Target, known: dict[Var, Allocation]) -> None:
        self._target = target
        self._known = known
        self._rank = {base: i for i, base in enumerate(known)}
        used = [base.name_hint.rpartition("_")[2] for base in known]
        self._ids = itertools.count(1 + max((int(n) for n in used if n.isdigit()), default=-1))
        self._lifetimes = Lifetimes(function)
        self._classes: dict[Var, _Class] = {}
        self._makers: dict[Var, Call] = {}
        self._in_place: list[tuple[AssignStmt, Expr, int]] = []
        self._moves: dict[Var, tuple[Var, int]] = {}
        self._regions: list[ForStmt | WhileStmt | IfStmt] = []
        self.before: dict[int, list[_Copy]] = {}
        self.operands: dict[int, dict[int, Var]] = {}
        self.initial: dict[Var, Var] = {}
        for var in function.params:
            self._add(var)
        self._scan(function.body)
        for stmt, operand, index in self._in_place:
            self._link_in_place(stmt, operand, index)
        for product, window in acc_windows(function).items():
            part, whole = self._classes[product], self._classes[window.target]
            self._merge(whole, part, RangeSet([*whole.ranges, *part.ranges]))
        for region in self._regions:
            self._link_region(region)
        self._check_declared()

    def _scan(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            if isinstance(stmt, AssignStmt):
                self._scan_assign(stmt)
            elif isinstance(stmt, IfStmt):
                self._scan(stmt.then_body)
                self._scan(stmt.else_body)
                self._add_region(stmt)
            elif isinstance(stmt, (ForStmt, WhileStmt)):
                for arg in stmt.iter_args:
                    self._add(arg)
                self._scan(stmt.body)
                self._add_region(stmt)
            elif isinstance(stmt, ScopeStmt):
                self._scan(stmt.body)

    def _add_region(self, stmt: ForStmt | WhileStmt | IfStmt) -> None:
        for var in stmt.return_vars:
            self._add(var)
        self._regions.append(stmt)

    def _add(self, var: Var, ranges: RangeSet | None = None) -> None:
        memref = on_chip(var.type)
        if memref is not None:
            allocation = self._known.get(memref.base)
            pinned = memref.base if allocation is not None and allocation.pinned else None
            self._classes[var] = _Class(var, self._lifetimes.of(var) if ranges is None else ranges, pinned)

    def _scan_assign(self, stmt: AssignStmt) -> None:
        var, value = stmt.var, stmt.value
        self._add(var)
        if var not in self._classes:
            return
        if isinstance(value, Var):
            self._same_content(var, value)
            if value in self._makers:
                self._makers[var] = self._makers[value]
        decl = decl_of(value)
        if decl is None or not isinstance(value, Call):
            return
        if decl.inherits is not None:
            self._same_content(var, value.args[decl.arg_index(decl.inherits)])
        elif decl.reuses is not None:
            index = decl.arg_index(decl.reuses)
            self._in_place.append((stmt, value.args[index], index))
        elif value.op.name == "tile.create":
            self._makers[var] = value
        elif value.op.name == "tile.move" and isinstance(value.args[0], Var):
            self._moves[var] = value.args[0], self._lifetimes.positions[id(stmt)] + 1

    def _same_content(self, var: Var, source: Expr) -> None:
        mine, other = self._classes[var], self._classes.get(source) if isinstance(source, Var) else None
        if other is not None:
            self._merge(other, mine, RangeSet([*other.ranges, *mine.ranges]))

    def _merge(self, into: _Class, other: _Class, ranges: RangeSet) -> None:
        into.ranges = ranges
        into.pinned = into.pinned or other.pinned
        into.members += other.members
        for var in other.members:
            self._classes[var] = into

    def _join(self, a: Var, b: Var) -> bool:
        """Put ``a`` and ``b`` in one buffer, if their values may share one."""
        x, y = self._classes[a], self._classes[b]
        if x is y:
            return self._same_place(a, b)
        apart = x.pinned is not None and y.pinned is not None and x.pinned is not y.pinned
        if apart or not self._same_place(a, b) or x.ranges.meets(y.ranges):
            return False
        if len(x.members) < len(y.members):
            x, y = y, x
        x.ranges.add(y.ranges)
        self._merge(x, y, x.ranges)
        return True

    def _same_place(self, a: Var, b: Var) -> bool:
        """Whether both tiles fill the same bytes of their buffers: a window with gaps only those of itself."""
        x, y = on_chip(a.type), on_chip(b.type)
        if x is None or y is None or x.size != y.size:
            return False
        if x.byte_offset is y.byte_offset and x.base is y.base:
            return True
        start = getattr(x.byte_offset, "value", None)
        if start is None or start != getattr(y.byte_offset, "value", None):
            return False
        return fills_buffer(a.type, self._target) and fills_buffer(b.type, self._target)

    def _require(self, a: Var, b: Var) -> None:
        if not self._join(a, b):
            raise InternalError(f"'{a.name_hint}' and '{b.name_hint}' cannot share a buffer", a.span)

    def _copy(self, source: Var, place: MemRef, ranges: RangeSet, stmt: Stmt) -> Var:
        """A copy of ``source`` made before ``stmt``, at ``place`` relative to a buffer to be chosen."""
        again = self._makers.get(source)
        if again is None:
            check_copy(source, stmt, self._target)
        var = Var(f"{source.name_hint}_mv", with_memref(source.type, place), stmt.span)
        self._add(var, ranges)
        self._classes[var].pinned = None
        self.before.setdefault(id(stmt), []).append(_Copy(var, source, again))
        return var

    def _link_in_place(self, stmt: AssignStmt, operand: Expr, index: int) -> None:
        if not isinstance(operand, Var) or operand not in self._classes or self._join(stmt.var, operand):
            return
        p = self._lifetimes.positions[id(stmt)]
        copy = self._copy(operand, place_of(stmt.var), RangeSet([(p - STEP // 2 + 1, p + 1)]), stmt)
        self._require(copy, stmt.var)
        self.operands.setdefault(id(stmt), {})[index] = copy

    def _link_region(self, region: ForStmt | WhileStmt | IfStmt) -> None:
        if isinstance(region, IfStmt):
            for body in (region.then_body, region.else_body):
                self._link_yield(yielded(body), region.return_vars)
            return
        for i, (arg, result) in enumerate(zip(region.iter_args, region.return_vars)):
            if arg in self._classes:
                self._require(result, arg)
                self._link_initial(region, arg, len(region.iter_args) - i)
        self._link_yield(yielded(region.body), region.iter_args)

    def _link_initial(self, loop: ForStmt | WhileStmt, arg: IterArg, slot: int) -> None:
        initial = arg.init_value
        if not isinstance(initial, Var) or (initial in self._classes and self._join(arg, initial)):
            return
        p = self._lifetimes.positions[id(loop)]
        copy = self._copy(initial, place_of(arg), RangeSet([(p - STEP * slot + 1, p + 1)]), loop)
        self._require(copy, arg)
        self.initial[arg] = copy

    def _link_yield(self, end: YieldStmt | None, results: Iterable[Var]) -> None:
        """Have a body yield each value in the buffer of the variable that receives it."""
        if end is None:
            return
        pending: dict[int, tuple[Var, Var]] = {}
        for i, (value, result) in enumerate(zip(end.values, results)):
            if not isinstance(value, Var):
                continue
            if result not in self._classes:
                if value in self._classes:
                    raise _not_placed(value, end)
            elif value not in self._classes or not self._join(result, value):
                pending[i] = (value, result)
        if pending:
            self._copy_in_order(end, pending)

    def _copy_in_order(self, end: YieldStmt, pending: dict[int, tuple[Var, Var]]) -> None:
        """Copy each value to its place, none over a value still to be copied; a cycle goes through a new buffer."""
        p, slot = self._lifetimes.positions[id(end)], 2 * len(end.values)
        while pending:
            sources = [self._classes.get(value) for value, _ in pending.values()]
            ready = next((i for i, (_, result) in pending.items() if self._classes[result] not in sources), None)
            first = ready if ready is not None else next(iter(pending))
            value, result = pending[first]
            copy = self._copy(value, place_of(result), RangeSet([(p - STEP * slot + 1, p + 1)]), end)
            slot -= 1
            if ready is None:
                pending[first] = (copy, result)
                continue
            del pending[first]
            home, moved = self._classes[result], self._classes[copy]
            self._merge(home, moved, RangeSet([*home.ranges, *moved.ranges]))
            self.operands.setdefault(id(end), {})[first] = copy

    def _check_declared(self) -> None:
        """Tiles bound to one slot of a declared allocation take turns."""
        slots: dict[tuple[Var, int], list[_Class]] = {}
        for group in dict.fromkeys(self._classes.values()):
            memref = on_chip(group.members[0].type)
            offset = getattr(memref.byte_offset, "value", None) if memref is not None else None
            if group.pinned is not None and offset is not None:
                slots.setdefault((group.pinned, offset), []).append(group)
        for (base, _), groups in slots.items():
            taken = RangeSet()
            for group in groups:
                ranges = self._after_moves(group, groups)
                if taken.meets(ranges):
                    raise _bound_twice(base, group, groups)
                taken.add(ranges)

    def _after_moves(self, group: _Class, groups: list[_Class]) -> RangeSet:
        """When a value is needed, but for the instant a move within the slot writes it.

        A move onto its source is refused where it is written as PTO, as one whose addresses are planned that way.
        """
        moves = [self._moves[var] for var in group.members if var in self._moves]
        written = {start for source, start in moves if self._classes.get(source) in groups}
        return RangeSet((s + 1, e) if s in written else (s, e) for s, e in group.ranges)

    def places(self) -> tuple[dict[Var, MemRef], dict[Var, Allocation]]:
        """The new place of every variable that gets one, and all allocations."""
        places: dict[Var, MemRef] = {}
        wanted: dict[Var, Allocation] = {}
        claimed: set[Var] = set()
        for group in dict.fromkeys(self._classes.values()):
            base = self._base_of(group, claimed)
            for var in group.members:
                memref = place_of(var)
                if memref.base is not base:
                    places[var] = MemRef(base, memref.byte_offset, memref.size, span=memref.span)
                self._grow(wanted, base, memref, var)
        kept = {b: wanted.pop(b, a) for b, a in self._known.items() if b in wanted or a.pinned}
        return places, kept | wanted

    def _base_of(self, group: _Class, claimed: set[Var]) -> Var:
        """The group's declared allocation, else the first of its own that no other group has, else a new one."""
        if group.pinned is not None:
            return group.pinned
        own = {place_of(var).base for var in group.members}
        free = [b for b in own if b in self._rank and b not in claimed and not self._known[b].pinned]
        if free:
            base = min(free, key=self._rank.__getitem__)
        else:
            first = group.members[0]
            base = MemRef(placed_in(first), 0, 0, next(self._ids), first.span).base
        claimed.add(base)
        return base

    def _grow(self, wanted: dict[Var, Allocation], base: Var, memref: MemRef, var: Var) -> None:
        known = wanted.get(base) or self._known.get(base)
        if known is None:
            known = Allocation(placed_in(var), 0)
        offset = getattr(memref.byte_offset, "value", 0)
        size = known.size if known.pinned else max(known.size, offset + memref.size)
        wanted[base] = known._replace(size=size)


def _not_placed(value: Var, end: YieldStmt) -> UnsupportedError:
    return UnsupportedError(
        f"'{shown(value)}' takes turns with a tile popped from a cross-core pipe, which has no buffer of its own",
        end.span,
        "copy the popped tile first, with pl.move(tile, target_memory=pl.Mem.Vec)",
    )


def _bound_twice(base: Var, late: _Class, groups: list[_Class]) -> KernelValueError:
    other = next(g for g in groups if g is not late and g.ranges.meets(late.ranges))
    a, b = other.members[0], late.members[0]
    return KernelValueError(
        f"tiles '{shown(a)}' and '{shown(b)}' are bound to the same slot of allocation '{base.name_hint}' and "
        "live at the same time",
        b.span,
        "bind them to different allocations, or to different slots of one",
        f"'{shown(a)}' is at {a.span}",
    )


class _Apply(Rewriter):
    def __init__(self, plan: _Plan, places: dict[Var, MemRef]) -> None:
        super().__init__()
        self._plan = plan
        self._places = places

    def rebuild_var(self, var: Var) -> Var:
        initial = self._plan.initial.get(var)
        made: Any = super().rebuild_var(var)
        place = self._places.get(var)
        type = made.type if place is None else with_memref(made.type, place)
        if isinstance(made, IterArg):
            init = made.init_value if initial is None else self.define(initial)
            return made if type is made.type and initial is None else IterArg(made.name_hint, type, init, made.span)
        return made if type is made.type else Var(made.name_hint, type, made.span)

    def _copies(self, stmt: Stmt) -> list[Stmt]:
        made: list[Stmt] = []
        for copy in self._plan.before.get(id(stmt), ()):
            var = self.define(copy.var)
            value = copy.again or copy_of(self.rewrite(copy.source), stmt)
            made.append(AssignStmt(var, value_at(value, var), stmt.span))
        return made

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        copies = self._copies(op)
        changed = self._plan.operands.get(id(op))
        value: Any = op.value
        if changed is not None:
            value = value.replace(args=type(value.args)(changed.get(i, a) for i, a in enumerate(value.args)))
        value, var = self.rewrite(value), self.define(op.var)
        made = op.replace(value=value_at(value, var, op.var.type), var=var)
        return seq([*copies, made], op.span) if copies else made

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        copies = self._copies(op)
        if not copies:
            return self.generic(op)
        changed = self._plan.operands[id(op)]
        values = type(op.values)(changed.get(i, v) for i, v in enumerate(op.values))
        return seq([*copies, self.generic(op.replace(values=values))], op.span)

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> Stmt:
        copies = self._copies(op)
        made = self.generic(op)
        return seq([*copies, made], op.span) if copies else made

    visit_while_stmt = visit_for_stmt
