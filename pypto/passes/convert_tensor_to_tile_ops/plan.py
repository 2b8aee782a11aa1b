"""Which tensors of an InCore function become tiles, where, and which stay in global memory.

A tensor is a tile when an operator computes it on chip, or when it flows (alias, loop carry, branch result) from or
into one that is. Everything else stays in global memory, and is loaded where a tile of it is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, Submit, TupleGetItemExpr, Var
from ...ir.node import IRNode
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, ReturnStmt, Stmt, WhileStmt, YieldStmt
from ...ir.types import TensorType, TupleType
from ...ir.visitor import Visitor
from ...ops.registry import decl_of
from ..operand_roles import Role, computes_tile, role_of

VEC, MAT = MemorySpace.Vec, MemorySpace.Mat


@dataclass
class Plan:
    """The decisions of one function."""

    tiles: set[Var] = field(default_factory=set)
    """Variables that become tiles."""
    loads: dict[Var, tuple[MemorySpace, ...]] = field(default_factory=dict)
    """Global-memory variables to load as soon as they are defined, and the memories to load them into."""
    spaces: dict[Var, tuple[MemorySpace, ...]] = field(default_factory=dict)
    """Memories in which a tile read from global memory is wanted."""
    computed_with: set[Var] = field(default_factory=set)
    """Variables whose value on chip takes part in further computation, rather than only being stored."""
    outputs: dict[Var, int] = field(default_factory=dict)
    """Created tensors that are only ever assembled into and returned, by the index of the return value."""


@dataclass
class _Facts:
    """Where tensors come from and go to."""

    aliases: list[tuple[Var, Var]] = field(default_factory=list)
    joins: list[tuple[Var, Var]] = field(default_factory=list)
    assembled: list[tuple[Var, Var]] = field(default_factory=list)
    """(target, result) of assemble calls."""
    viewed: list[tuple[Var, Var]] = field(default_factory=list)
    """(source, result) of views and slices."""
    results: dict[Var, str] = field(default_factory=dict)
    """Operator results, with the operator."""
    roles: dict[Var, set[Role]] = field(default_factory=dict)
    uses: dict[Var, int] = field(default_factory=dict)
    """How often a variable is read, other than as an assemble target or by an alias, loop or branch."""
    returned: list[tuple[int, Var]] = field(default_factory=list)


def plan_function(function: Function) -> Plan:
    """Decide for every tensor variable of ``function``."""
    facts = _Facts()
    _Collector(facts).visit(function.body)
    plan = Plan()
    plan.outputs = _outputs(facts)
    plan.computed_with = {v for v, roles in facts.roles.items() if roles & _COMPUTES} | {s for s, _ in facts.joins}
    wanted = _spread(facts, plan)
    _choose_spaces(facts, plan, wanted)
    return plan


def is_tensor(value: IRNode) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, TensorType)


class _Collector(Visitor):
    def __init__(self, facts: _Facts) -> None:
        self.facts = facts
        self._joins: list[tuple[tuple[Var, ...], ...]] = []
        self._tuples: dict[Expr, str] = {}
        """Results that are taken apart, with the operator."""

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, Var) and is_tensor(value):
            self.facts.aliases.append((value, op.var))
            return
        if isinstance(value, Call) and is_tensor(op.var):
            self._result(op.var, value)
        elif isinstance(value, Call) and isinstance(value.type, TupleType):
            self._tuples[op.var] = value.op.name
        elif isinstance(value, TupleGetItemExpr) and value.tuple in self._tuples and is_tensor(op.var):
            self.facts.results[op.var] = self._tuples[value.tuple]
        self.visit(value)

    def _result(self, var: Var, call: Call) -> None:
        decl = decl_of(call)
        # What is created with a value is computed: a parameter in its place would begin with something else.
        self.facts.results[var] = call.op.name if call.kwargs.get("init_value") is None else "tensor.full"
        for i, arg in enumerate(call.args):
            if not isinstance(arg, Var) or not is_tensor(arg):
                continue
            role = role_of(decl, i)
            if role in (Role.VIEW, Role.WINDOW):
                self.facts.viewed.append((arg, var))
            elif call.op.name == "tensor.assemble" and role is Role.MEMORY:
                self.facts.assembled.append((arg, var))

    def visit_call(self, op: Call) -> None:
        decl = decl_of(op)
        for i, arg in enumerate(op.args):
            if isinstance(arg, Var) and is_tensor(arg):
                self.facts.roles.setdefault(arg, set()).add(role_of(decl, i))
                if op.op.name == "tensor.assemble" and role_of(decl, i) is Role.MEMORY:
                    continue
            self.visit(arg)
        self.visit_mapping(op.kwargs)

    def visit_submit(self, op: Submit) -> None:
        for arg in op.args:
            if isinstance(arg, Var) and is_tensor(arg):
                self.facts.roles.setdefault(arg, set()).add(Role.MEMORY)
        self.generic(op)

    def visit_var(self, op: Var) -> None:
        if is_tensor(op):
            self.facts.uses[op] = self.facts.uses.get(op, 0) + 1

    def _join(self, source: Expr, target: Var) -> None:
        if is_tensor(target) and isinstance(source, Var):
            self.facts.joins.append((source, target))
        else:
            self.visit(source)

    def visit_for_stmt(self, op: ForStmt) -> None:
        for part in (op.start, op.stop, op.step):
            self.visit(part)
        self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self.visit(op.condition)
        self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> None:
        for arg in op.iter_args:
            self._join(arg.init_value, arg)
        for arg, result in zip(op.iter_args, op.return_vars):
            self._join(arg, result)
        self._scoped((tuple(op.iter_args), tuple(op.return_vars)), op.body)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit(op.condition)
        for body in (op.then_body, op.else_body):
            if body is not None:
                self._scoped((tuple(op.return_vars),), body)

    def _scoped(self, targets: tuple[tuple[Var, ...], ...], body: Stmt) -> None:
        self._joins.append(targets)
        self.visit(body)
        self._joins.pop()

    def visit_yield_stmt(self, op: YieldStmt) -> None:
        targets = self._joins[-1] if self._joins else ()
        for i, value in enumerate(op.values):
            for group in targets:
                if i < len(group):
                    self._join(value, group[i])

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        for i, value in enumerate(op.value):
            if isinstance(value, Var) and is_tensor(value):
                self.facts.returned.append((i, value))
            else:
                self.visit(value)


def _outputs(facts: _Facts) -> dict[Var, int]:
    """Created tensors that reach one return value through assembles, loops and branches, and nothing else."""
    groups = _Groups()
    moves = [*facts.aliases, *facts.joins, *facts.assembled]
    for source, target in moves:
        groups.join(source, target)
    followed = {target for _, target in moves}
    found: dict[Var, int] = {}
    for index, value in facts.returned:
        members = groups.members(value)
        roots = [v for v in members if v not in followed]
        quiet = all(not facts.uses.get(v) for v in members)
        slots = [i for i, v in facts.returned if groups.same(v, value)]
        created = len(roots) == 1 and facts.results.get(roots[0]) == "tensor.create"
        if created and quiet and slots == [index] and any(groups.same(t, value) for _, t in facts.assembled):
            found[roots[0]] = index
    return found


class _Groups:
    """Sets of variables that denote one buffer."""

    def __init__(self) -> None:
        self._group: dict[Var, set[Var]] = {}

    def join(self, a: Var, b: Var) -> None:
        small, large = sorted((self.members(a), self.members(b)), key=len)
        if small is not large:
            large |= small
            for v in small:
                self._group[v] = large

    def members(self, v: Var) -> set[Var]:
        return self._group.setdefault(v, {v})

    def same(self, a: Var, b: Var) -> bool:
        return self.members(a) is self.members(b)


_WANTS_TILE = frozenset({Role.TILE, Role.VIEW})
_COMPUTES = frozenset({Role.TILE, Role.VIEW, Role.MATRIX})
_WANTS_MEMORY = frozenset({Role.MEMORY, Role.WINDOW, Role.MATRIX, Role.SOURCE})


def _spread(facts: _Facts, plan: Plan) -> set[Var]:
    """Fill `plan.tiles`; the result is the variables in global memory of which a tile is wanted."""
    tiles = plan.tiles
    assembled = {result for _, result in facts.assembled}
    for var, op in facts.results.items():
        if computes_tile(op) and var not in assembled and var not in plan.outputs:
            tiles.add(var)
    wanted = {v for v, roles in facts.roles.items() if roles & _WANTS_TILE}
    returned = {v for _, v in facts.returned}
    before = (-1, -1)
    while before != (len(tiles), len(wanted)):
        before = (len(tiles), len(wanted))
        for source, target in (*facts.aliases, *facts.joins, *facts.assembled):
            if source in tiles:
                tiles.add(target)
        for source, target in (*facts.aliases, *facts.joins):
            if target in tiles:
                wanted.add(source)
        for _, target in facts.aliases:
            in_memory = facts.roles.get(target, frozenset()) & _WANTS_MEMORY or target in returned
            if target in wanted and not in_memory:
                tiles.add(target)
    return wanted - tiles


def _choose_spaces(facts: _Facts, plan: Plan, wanted: set[Var]) -> None:
    """Where tiles read from global memory go: to the cube for matmul operands, to the vector core otherwise."""
    demand: dict[Var, set[MemorySpace]] = {}
    for var, roles in facts.roles.items():
        found = demand.setdefault(var, set())
        if Role.MATRIX in roles and var in plan.tiles:
            found.add(MAT)
        if roles & {Role.TILE, Role.SOURCE} and (var in plan.tiles or Role.TILE in roles):
            found.add(VEC)
    edges = [(s, t) for s, t in (*facts.viewed, *facts.aliases) if t in plan.tiles]
    joins = [(s, t) for s, t in facts.joins if t in plan.tiles]
    changed = True
    while changed:
        changed = False
        for source, target in _followed(edges, joins, demand):
            have = demand.setdefault(source, set())
            if not target <= have:
                have |= target
                changed = True
    for var in plan.tiles:
        plan.spaces[var] = _ordered(demand.get(var, set()))
    for var in wanted:
        plan.loads[var] = _ordered(demand.get(var, set()))


def _followed(
    edges: list[tuple[Var, Var]], joins: list[tuple[Var, Var]], demand: dict[Var, set[MemorySpace]]
) -> Iterator[tuple[Var, set[MemorySpace]]]:
    for source, target in reversed(edges):
        yield source, demand.get(target, set())
    for source, target in joins:
        found = demand.get(target, set())
        yield source, found if len(found) < 2 else {VEC}


def _ordered(spaces: set[MemorySpace]) -> tuple[MemorySpace, ...]:
    return tuple(s for s in (VEC, MAT) if s in spaces) or (VEC,)

