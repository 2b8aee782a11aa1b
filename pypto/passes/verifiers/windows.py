"""Rules about communication windows."""

from __future__ import annotations

from ...ir.memref import WindowBuffer
from ...ir.program import Function
from ...ir.stmt import CommDomainScopeStmt
from .driver import Rule


class CommDomainScopesMaterialized(Rule):
    """A window belongs to one communication domain."""

    name = "CommDomainScopesMaterialized"

    def enter_function(self, function: Function) -> None:
        self._owned: set[WindowBuffer] = set()

    def visit_scope_stmt(self, op: CommDomainScopeStmt) -> None:
        if not isinstance(op, CommDomainScopeStmt):
            return
        for slot in op.slots:
            if slot in self._owned:
                self.report(f"WindowBuffer '{slot.name_hint}' appears in multiple CommDomainScopeStmts", op.span)
            self._owned.add(slot)
