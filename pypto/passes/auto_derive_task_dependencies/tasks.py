"""The names of tasks: the variables and array elements that dependencies state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ...ir.enums import ForKind
from ...ir.expr import Call, Expr, Submit, Var, const_value
from ...ir.functor import get_last_yield_stmt
from ...ir.stmt import AssignStmt, ForStmt, WhileStmt
from ...ir.types import ArrayType
from ..bodies import trip_count

Slot: TypeAlias = "tuple[Var, int]"
"""An element of an array, which stands for all its storage."""


@dataclass(slots=True)
class Task:
    """A launch, or after a loop its launches. ``name`` is the variable that stands for it here, if any does."""

    name: Var | None
    filled: Var | None = None
    """The array whose elements the loop it was in filled with its ids, one an iteration."""
    several: bool = False
    """Whether it is the launches of a loop."""


@dataclass(slots=True)
class Arrays:
    """What arrays of task ids hold."""

    storage: dict[Var, Var] = field(default_factory=dict)
    contents: dict[Var, dict[int, Var | Slot]] = field(default_factory=dict)

    def root(self, var: Var) -> Var:
        """The array whose storage ``var`` is."""
        while var in self.storage:
            var = self.storage[var]
        return var

    def carried(self, op: ForStmt | WhileStmt) -> None:
        """A carried array shares its storage with its initial value, and so does the loop's result."""
        for arg, result in zip(op.iter_args, op.return_vars):
            if isinstance(arg.type, ArrayType) and isinstance(arg.init_value, Var):
                self._share(arg, arg.init_value)
                self._share(result, arg)

    def _share(self, var: Var, other: Var) -> None:
        if self.root(var) is not self.root(other):
            self.storage[self.root(var)] = self.root(other)

    def assigned(self, op: AssignStmt) -> None:
        """``op`` was passed."""
        call = op.value
        if not isinstance(call, Call) or call.op.name != "array.update_element" or not isinstance(call.args[0], Var):
            return
        array, index, value = call.args[:3]
        held = self.contents.get(array, {})
        at, element = const_value(index), self.element(value)
        if isinstance(at, int) and element is not None and not isinstance(at, bool):
            self.contents[op.var] = {**held, at: element}
        self._share(op.var, array)

    def element(self, value: Expr) -> Var | Slot | None:
        """A task's variable, or the element of an array that ``value`` reads."""
        if isinstance(value, Var):
            return value
        if isinstance(value, Call) and value.op.name == "array.get_element" and isinstance(value.args[0], Var):
            at = const_value(value.args[1])
            return (self.root(value.args[0]), at) if isinstance(at, int) else None
        return None


class Covered:
    """The tasks that a launch's own dependencies wait for."""

    def __init__(self, op: Call | Submit, arrays: Arrays, slots: dict[Var, Slot]) -> None:
        self._names: set[Var] = set()
        self._arrays: set[Var] = set()
        read: dict[Var, set[int]] = {}
        sizes: dict[Var, int] = {}
        pending: list[Var | Slot | None] = []
        for dep in op.deps if isinstance(op, Submit) else ():
            if isinstance(dep, Var) and isinstance(dep.type, ArrayType):
                held = arrays.contents.get(dep)
                if held is None:
                    self._arrays.add(arrays.root(dep))
                else:
                    pending.extend(held.values())
            else:
                pending.append(arrays.element(dep))
        for item in pending:
            item = slots.get(item, item) if isinstance(item, Var) else item
            if isinstance(item, tuple):
                read.setdefault(item[0], set()).add(item[1])
                extent = const_value(item[0].type.extent) if isinstance(item[0].type, ArrayType) else None
                sizes[item[0]] = extent if isinstance(extent, int) else -1
            elif item is not None:
                self._names.add(item)
        self._arrays.update(array for array, found in read.items() if len(found) == sizes[array])

    def waits_for(self, task: Task) -> bool:
        """Whether ``task`` is among them."""
        return task.name in self._names if task.name is not None else task.filled in self._arrays


def name_after(task: Task, name: Var | None, loop: ForStmt | WhileStmt) -> Task:
    """``task``, known as ``name`` in the body of ``loop``, as what follows the loop knows it."""
    ending = get_last_yield_stmt(loop.body)
    index = next((i for i, v in enumerate(ending.values) if v is name), None) if ending is not None and name else None
    count = trip_count(loop)
    parallel = isinstance(loop, ForStmt) and loop.kind is ForKind.Parallel
    known = count is not None or parallel
    if index is None or task.several or not known or count == 0:
        return Task(None, task.filled)
    return Task(loop.return_vars[index], task.filled, True)
