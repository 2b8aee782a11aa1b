"""Which statements of a block depend on which, and whether reads respect what calls overwrite."""

from __future__ import annotations

from ..errors import VerificationError
from ..ir.expr import IterArg, Var
from ..ir.program import Function, Program
from ..ir.stmt import SeqStmts, Stmt
from ..ir.visitor import Visitor


class StmtDependencyGraph:
    """The statements of a block, in order, and for each those that must run before it."""

    __slots__ = ("stmts", "_predecessors")

    def __init__(self, stmts: list[Stmt]) -> None:
        self.stmts = stmts
        self._predecessors: dict[Stmt, dict[Stmt, None]] = {s: {} for s in stmts}

    def get_predecessors(self, stmt: Stmt) -> list[Stmt]:
        """The statements ``stmt`` directly depends on, in order. KeyError for a statement of another block."""
        found = self._predecessors[stmt]
        return [s for s in self.stmts if s in found] if len(found) > 1 else list(found)

    def _depend(self, stmt: Stmt, on: Stmt | None) -> None:
        if on is not None and on is not stmt:
            self._predecessors[stmt][on] = None


class _Accesses(Visitor):
    """Variables a statement reads and writes, nested statements included."""

    def __init__(self) -> None:
        self.reads: dict[Var, None] = {}
        self.writes: dict[Var, None] = {}

    def visit_var(self, op: Var) -> None:
        self.reads[op] = None

    visit_iter_arg = visit_var

    def define(self, var: Var) -> None:
        if isinstance(var, IterArg):
            self.visit(var.init_value)
        self.writes[var] = None


def build_stmt_dependency_graph(region: Stmt, program: Program | None = None) -> StmtDependencyGraph:
    """The graph of ``region``'s statements; a region that is no sequence is one statement.

    A statement depends on the last one that wrote a variable it reads or writes, and on those that read a variable it
    writes since. With ``program``, raises as `check_inout_use_discipline`: without that discipline, writes through
    ``Out`` parameters are invisible to the graph.
    """
    if program is not None:
        check_inout_use_discipline(region, program)
    graph = StmtDependencyGraph(list(region.stmts) if isinstance(region, SeqStmts) else [region])
    writer: dict[Var, Stmt] = {}
    readers: dict[Var, list[Stmt]] = {}
    for stmt in graph.stmts:
        found = _Accesses()
        found.visit(stmt)
        for var in found.reads:
            graph._depend(stmt, writer.get(var))
        for var in found.writes:
            graph._depend(stmt, writer.get(var))
            for reader in readers.pop(var, ()):
                graph._depend(stmt, reader)
            writer[var] = stmt
        for var in found.reads:
            readers.setdefault(var, []).append(stmt)
    return graph


def check_inout_use_discipline(region: Stmt, program: Program) -> None:
    """Raise VerificationError when ``region`` reads a variable after a call that overwrites it.

    What a call of a function of ``program`` gets as ``Out`` or ``InOut`` must be read through the call's result.
    """
    from .verifiers.driver import run
    from .verifiers.functions import InOutUseValid

    found = run([InOutUseValid], program, [Function("region", (), (), region)])
    if found:
        raise VerificationError("a variable is read after a call overwrote it", found)
