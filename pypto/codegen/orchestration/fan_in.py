"""The ids of tasks that loops launch, one an iteration, where tasks after the loop wait for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...dtypes import DataType
from ...errors import InternalError
from ...ir.expr import Expr, Var
from ...ir.functor import get_last_yield_stmt
from ...ir.node import IRNode
from ...ir.stmt import ForStmt
from ...ir.types import ScalarType
from ...passes.classify_iter_arg_carry import iter_arg_task_ids
from ..context import Op
from .cpp import cpp, scalar_type
from .names import written

if TYPE_CHECKING:
    from .builder import OrchestrationBuilder


class Collection(NamedTuple):
    """The C++ array ``name`` of ``size`` ids; with a size of 0 a vector, and ``barrier`` is the task that awaits it."""

    name: str
    size: int
    barrier: str = ""


class FanIns:
    """The collections of a function. They are variables of the function: what waits may be in any scope."""

    def __init__(self, builder: OrchestrationBuilder, nodes: Iterable[IRNode]) -> None:
        self._builder = builder
        self._found: dict[Var, tuple[int, Expr]] = {}
        self._collections: dict[Var, Collection] = {}
        for loop in nodes:
            if isinstance(loop, ForStmt):
                for index, var in enumerate(loop.return_vars):
                    size, ending = iter_arg_task_ids(loop, index), get_last_yield_stmt(loop.body)
                    if size is not None and ending is not None:
                        self._found[var] = size, ending.values[index]

    def awaited(self) -> Iterator[Var]:
        """The results of launches whose ids are collected."""
        for _, value in self._found.values():
            if isinstance(value, Var) and not isinstance(value.type, ScalarType):
                yield value

    def declare(self) -> None:
        """Declare the collections, empty."""
        builder = self._builder
        for var, (size, value) in self._found.items():
            kind = scalar_type(DataType.TASK_ID, value.span)
            name = builder.names.take(f"{written(var.name_hint)}_tids")
            if size:
                builder.emit(Op("array", type=kind, name=name, extent=size, fill=cpp("invalid_task")))
                self._collections[var] = Collection(name, size)
                continue
            builder.unit.uses.add("vector")
            barrier = builder.names.take(f"{written(var.name_hint)}_tid")
            builder.emit(Op("vector", type=kind, name=name))
            builder.emit(Op("declare", type=kind, name=barrier, value=cpp("invalid_task")))
            self._collections[var] = Collection(name, size, barrier)

    def begin(self, loop: ForStmt) -> None:
        """Ahead of ``loop``: forget the ids of the loop's last run."""
        for made in self._vectors(loop):
            self._builder.emit(Op("evaluate", value=cpp("method", made.name, "clear", [])))

    def collect(self, loop: ForStmt, place: str) -> None:
        """At the end of an iteration: keep its ids, each at ``place``."""
        for var in loop.return_vars:
            made = self._collections.get(var)
            if made is None:
                continue
            tid = self._id(self._found[var][1])
            if made.size:
                self._builder.emit(Op("set", target=cpp("element", made.name, place), value=tid))
            else:
                self._builder.emit(Op("evaluate", value=cpp("method", made.name, "push_back", [tid])))

    def end(self, loop: ForStmt) -> None:
        """After ``loop``: one task waits for a number of others that only the run decides."""
        for made in self._vectors(loop):
            args = self._builder.names.take(f"params_{made.name}")
            self._builder.emit(Op("await_all", args=args, ids=made.name, barrier=made.barrier))

    def dependencies(self, var: Var) -> list[tuple[str, bool]] | None:
        """The ids that ``var``, what a loop hands on, stands for; None when it stands for none."""
        made = self._collections.get(var)
        if made is None:
            return None
        return [(cpp("element", made.name, i), True) for i in range(made.size)] or [(made.barrier, True)]

    def _vectors(self, loop: ForStmt) -> Iterator[Collection]:
        made = (self._collections.get(var) for var in loop.return_vars)
        return (m for m in made if m is not None and not m.size)

    def _id(self, value: Expr) -> str:
        if isinstance(value.type, ScalarType):
            return self._builder.scalars.text(value)
        handle = self._builder.awaited.get(value) if isinstance(value, Var) else None
        if handle is None:
            raise InternalError("codegen met a loop that collects the id of no launch", value.span)
        return handle.text
