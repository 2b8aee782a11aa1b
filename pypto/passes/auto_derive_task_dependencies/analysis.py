"""Which tasks each launch must wait for, by what both do to which part of which buffer."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...dtypes import DataType
from ...ir.enums import ArgDirection, ForKind
from ...ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var, const_value
from ...ir.node import IRNode
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, RuntimeScopeStmt, WhileStmt
from ...ir.types import ScalarType, TensorType
from ...ir.visitor import Visitor
from ..bodies import trip_count
from ..return_lineage import ReturnLineage
from .storage import Part, Storage, Storages, overlap
from .tasks import Arrays, Covered, Slot, Task, name_after

_READS = frozenset({ArgDirection.Input, ArgDirection.InOut})
_WRITES = frozenset({ArgDirection.Output, ArgDirection.OutputExisting, ArgDirection.InOut})


@dataclass(slots=True)
class Scope:
    """A region of tasks. ``failed``: something in it cannot be stated, so the runtime keeps track of it."""

    keeps_edges: bool = False
    failed: bool = False


@dataclass(slots=True)
class Access:
    """What one argument of a launch does."""

    call: Call | Submit
    slot: int
    storage: Storage
    reads: bool
    writes: bool
    task: Task
    inside: tuple[IRNode, ...]
    """The loops and branches around it, outermost first."""
    ordered: bool = True
    """Whether every access before it that it must come after is waited for."""
    after_write: bool = False
    after_any: bool = False

    def conflicts(self, other: Access) -> bool:
        """Whether the order of the two matters."""
        return (self.writes or other.writes) and overlap(self.storage, other.storage)


@dataclass(slots=True)
class Found:
    """What the analysis of a function found."""

    edges: dict[Call | Submit, tuple[Scope, list[Var]]] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)


class Analysis(Visitor):
    """Walks a function in order. ``found`` is the result."""

    def __init__(self, function: Function, lineage: ReturnLineage) -> None:
        self.found = Found()
        self._storages = Storages(function, lineage)
        self._arrays = Arrays()
        self._slots: dict[Var, Slot] = {}
        self._live: list[Access] = []
        self._by_result: dict[Var, list[Access]] = {}
        self._inside: list[IRNode] = []
        self._scope = self._open(keeps_edges=True)
        self.visit(function.body)

    def _open(self, keeps_edges: bool = False) -> Scope:
        scope = Scope(keeps_edges)
        self.found.scopes.append(scope)
        return scope

    # Structure

    def visit_runtime_scope_stmt(self, op: RuntimeScopeStmt) -> None:
        """A manual scope states its own dependencies; one that failed is unknown to what follows."""
        if op.manual:
            return
        outer, self._scope = self._scope, self._open()
        first = len(self.found.accesses)
        self.visit(op.body)
        if self._scope.failed:
            lost = set(map(id, self.found.accesses[first:]))
            self._live = [a for a in self._live if id(a) not in lost]
        self._scope = outer

    def visit_if_stmt(self, op: IfStmt) -> None:
        self._inside.append(op)
        for body in (op.then_body, op.else_body):
            if body is not None:
                self.visit(body)
        self._inside.pop()

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        self._arrays.carried(op)
        first = len(self.found.accesses)
        self._inside.append(op)
        self.visit(op.body)
        self._inside.pop()
        for access in self.found.accesses[first:]:
            access.task = name_after(access.task, access.task.name, op)

    visit_while_stmt = visit_for_stmt

    # Statements

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, (Call, Submit)) and isinstance(value.op, GlobalVar):
            self._launch(value, op.var)
            return
        if isinstance(value, TupleGetItemExpr) and isinstance(value.tuple, Var):
            self._bind_id(op.var, value.tuple)
        self._arrays.assigned(op)
        element = self._arrays.element(value)
        if isinstance(element, tuple):
            self._slots[op.var] = element
        self._note_filling(value)

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        if isinstance(op.expr, (Call, Submit)) and isinstance(op.expr.op, GlobalVar):
            self._launch(op.expr, None)

    def _bind_id(self, var: Var, result: Var) -> None:
        """A launch's id gets a name."""
        if isinstance(var.type, ScalarType) and var.type.dtype is DataType.TASK_ID:
            for access in self._by_result.get(result, ()):
                access.task.name = var

    def _note_filling(self, value: Expr) -> None:
        """Each iteration of a loop puts its task's id into its own element of an array."""
        if not isinstance(value, Call) or value.op.name != "array.update_element" or not self._inside:
            return
        loop, (array, index, tid) = self._inside[-1], value.args[:3]
        if not isinstance(loop, ForStmt) or index is not loop.loop_var or not isinstance(array, Var):
            return
        extent = const_value(getattr(array.type, "extent", None))
        if const_value(loop.start) == 0 and const_value(loop.step) == 1 and trip_count(loop) == extent:
            for access in self._live:
                if access.task.name is tid:
                    access.task.filled = self._arrays.root(array)

    # Launches

    def _launch(self, op: Call | Submit, result: Var | None) -> None:
        covered = Covered(op, self._arrays, self._slots)
        # A plain call has no id variable: its result stands for the task.
        task = Task(result if isinstance(op, Call) else None)
        edges: list[Var] = []
        made = [a for a in (self._access(op, i, arg, task) for i, arg in enumerate(op.args)) if a is not None]
        for access in made:
            self._order(access, covered, edges)
        if edges:
            self.found.edges[op] = self._scope, edges
        for access in made:
            self._forget_what_it_overwrites(access)
        self._live.extend(made)
        self.found.accesses.extend(made)
        if result is not None:
            self._by_result[result] = made

    def _access(self, op: Call | Submit, slot: int, arg: Expr, task: Task) -> Access | None:
        directions = op.arg_directions
        direction = directions[slot] if slot < len(directions) else ArgDirection.Scalar
        reads, writes = direction in _READS, direction in _WRITES
        if not isinstance(arg.type, TensorType) or not (reads or writes):
            return None
        storage = self._storages.of(arg)
        if not storage:
            self._scope.failed = True
            return None
        return Access(op, slot, storage, reads, writes, task, tuple(self._inside))

    def _order(self, access: Access, covered: Covered, edges: list[Var]) -> None:
        for prior in self._live:
            if not access.conflicts(prior):
                continue
            access.after_any = True
            access.after_write = access.after_write or prior.writes
            if covered.waits_for(prior.task):
                continue
            if prior.task.name is None:
                self._scope.failed = True
                access.ordered = False
            elif prior.task.name not in set(edges):
                edges.append(prior.task.name)

    def _forget_what_it_overwrites(self, access: Access) -> None:
        """What comes after this access need not wait for those it waits for itself."""
        if not access.writes or not access.ordered or len(access.storage) != 1:
            return
        ((root, part),) = access.storage.items()
        if part is not Part.Whole:
            return
        self._live = [
            a for a in self._live
            if a.inside != access.inside or a.storage.keys() != {root} or not access.conflicts(a)
        ]  # fmt: skip


def demotable(found: Found) -> dict[Call | Submit, set[int]]:
    """The arguments whose dependencies are all stated, so that the runtime need not look them up.

    None when any scope failed: the runtime then orders some tasks by what it knows of the others.
    """
    made: dict[Call | Submit, set[int]] = {}
    if any(scope.failed for scope in found.scopes):
        return made
    for order, access in enumerate(found.accesses):
        stated = access.after_any if access.writes else access.after_write
        if not access.reads or not stated or Part.Moving in access.storage.values():
            continue
        if not any(_comes_round(access, later) for later in found.accesses[order:]):
            made.setdefault(access.call, set()).add(access.slot)
    return made


def _comes_round(access: Access, later: Access) -> bool:
    """Whether an iteration before the one of ``access`` made ``later``, which must come first."""
    shared = [n for n, m in zip(access.inside, later.inside) if n is m]
    return any(_repeats(node) for node in shared) and access.conflicts(later)


def _repeats(node: IRNode) -> bool:
    """Whether a node is a loop whose iterations follow one another."""
    if isinstance(node, ForStmt):
        count = trip_count(node)
        return node.kind is not ForKind.Parallel and (count is None or count > 1)
    return isinstance(node, WhileStmt)
