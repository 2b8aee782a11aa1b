"""Predicates of launches: comparisons made when a task is dispatched, so that nothing in them runs where they stand."""

from __future__ import annotations

from ..ir.expr import Call, Submit
from ..ir.stmt import SpmdScopeStmt
from ..ir.visitor import find_all


def calls_in_predicate(launch: Submit | SpmdScopeStmt) -> set[Call]:
    """The calls that the predicate of ``launch`` consists of."""
    predicate = launch.predicate if isinstance(launch, Submit) else launch.attrs.get("predicate")
    return set() if predicate is None else set(find_all(predicate, Call))
