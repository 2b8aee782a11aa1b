"""StampTfreeSplit: a free says what its pop says, how the lanes divide the tile and which pipe it came through.

Codegen writes a free without looking for its pop, and passes that copy both need not keep track of pairs.
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import user_error
from ..ir.expr import Call, Var
from ..ir.naming import written_name
from ..ir.program import Function
from ..ir.stmt import AssignStmt, EvalStmt
from .base import P, Pass, function_pass
from .bodies import BodyRewriter
from .core_affinity import FREE_OF

_POPS: Final = {free: pop for pop, free in FREE_OF.items()}
"""The pop each free belongs to."""


def stamp_tfree_split() -> Pass:
    """The pass; see the module. Raises KernelValueError for a free of what its core did not pop from that pipe."""
    return function_pass("StampTfreeSplit", _stamp, {P.SplitIncoreOrch}, looks_for=tuple(_POPS))


def _stamp(function: Function) -> Function:
    return _Stamper().rewrite(function)


class _Stamper(BodyRewriter):
    def __init__(self) -> None:
        super().__init__()
        self._pops: dict[Var, Call] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        value = op.value
        if isinstance(value, Call) and value.op.name in _POPS.values():
            self._pops[op.var] = value
        elif isinstance(value, Var) and value in self._pops:
            self._pops[op.var] = self._pops[value]
        return op

    def visit_eval_stmt(self, op: EvalStmt) -> Any:
        call = op.expr
        if not isinstance(call, Call) or call.op.name not in _POPS:
            return op
        pop = self._pop_of(call)
        split, pipe = pop.kwargs.get("split", 0), pop.kwargs.get("id")
        if call.kwargs.get("id", pipe or 0) != (pipe or 0):
            raise user_error(
                ValueError,
                f"{call.op.name} id={call.kwargs['id']} does not match originating {pop.op.name} id={pipe or 0}",
                call.span,
                "leave id out: the free takes the pop's",
            )
        if call.kwargs.get("split", split) != split:
            raise user_error(
                ValueError,
                f"{call.op.name} split={call.kwargs['split']} does not match originating {pop.op.name} split={split}",
                call.span,
                "leave split out: the free takes the pop's",
            )
        stamped = {**call.kwargs, "split": split, **({} if pipe is None else {"id": pipe})}
        return op if stamped == call.kwargs else op.replace(expr=call.replace(kwargs=stamped))

    def _pop_of(self, call: Call) -> Call:
        tile, wanted = call.args[0], _POPS[call.op.name]
        pop = self._pops.get(tile) if isinstance(tile, Var) else None
        if pop is None or pop.op.name != wanted:
            name = written_name(tile.name_hint) if isinstance(tile, Var) else "this tile"
            source = "is no popped tile" if pop is None else f"comes from {pop.op.name}"
            raise user_error(
                ValueError,
                f"{call.op.name} requires its tile argument to come from {wanted}, {name!r} {source}",
                call.span,
                "free the variable the pop was assigned to",
            )
        return pop
