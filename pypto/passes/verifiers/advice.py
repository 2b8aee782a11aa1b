"""Rules that advise: they find what is likely a mistake, or slow."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

from ...errors import Diagnostic, Location
from ...ir.enums import ParamDirection
from ...ir.expr import Call, Expr, Submit, TupleGetItemExpr, Var
from ...ir.program import Function, Program, is_incore_type
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt
from ...ir.types import TensorType, TileType, Type, static_dims
from ...ir.visitor import Visitor
from ..context import current_or_default
from .driver import Rule
from .ssa import last_stmt


class _InTypes(Visitor):
    """Variables in types, allocations included."""

    def __init__(self, found: set[Var]) -> None:
        self._used = found

    def visit_var(self, op: Var) -> None:
        self._used.add(op)

    def visit_mem_ref(self, op: Any) -> None:
        self.generic(op)

    def visit_type(self, type: Type) -> None:
        if type.symbolic:
            type._visit_children(self)


class _Unused(Rule):
    """Knows what a function reads."""

    expressions = True

    def enter_function(self, function: Function) -> None:
        self.function = function
        self.used: set[Var] = set()
        self._types = _InTypes(self.used)

    def use(self, var: Var) -> None:
        self.used.add(var)

    def define(self, var: Var) -> None:
        self._types.visit_type(var.type)


class UnusedVariable(_Unused):
    """A value is given a name that nothing reads. Names that begin with an underscore are meant so."""

    name = "UnusedVariableCheck"

    def enter_function(self, function: Function) -> None:
        super().enter_function(function)
        self._assigned: dict[Var, Stmt] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if not op.var.name_hint.startswith("_") and not _acts(op.value):
            self._assigned.setdefault(op.var, op)

    def exit_function(self, function: Function) -> None:
        for var, stmt in self._assigned.items():
            if var not in self.used and all(var is not p for p in function.params):
                span = var.span if var.span.is_valid() else stmt.span
                self.report(f"Unused variable '{var.name_hint}' in function '{function.name}'", span)


def _acts(value: Expr) -> bool:
    """Whether evaluating ``value`` does something, or it is one of several results."""
    if isinstance(value, (Submit, TupleGetItemExpr)):
        return True
    return isinstance(value, Call) and (value.op.decl is None or not value.op.decl.pure)


class UnusedControlFlowResult(_Unused):
    """A loop or branch returns what nothing reads."""

    name = "UnusedControlFlowResultCheck"

    def enter_function(self, function: Function) -> None:
        super().enter_function(function)
        self._returned: list[Var] = []

    def visit_for_stmt(self, op: ForStmt | WhileStmt | IfStmt) -> None:
        self._returned.extend(op.return_vars)

    visit_while_stmt = visit_if_stmt = visit_for_stmt

    def exit_function(self, function: Function) -> None:
        for var in self._returned:
            if var not in self.used:
                self.report(f"Unused result '{var.name_hint}' in function '{function.name}'", var.span)


class OutParamWriteDropped(Rule):
    """The name of an Out or InOut parameter is given a value that does not come from it: the caller sees nothing."""

    name = "OutParamWriteDropped"

    def enter_function(self, function: Function) -> None:
        self._outs = {
            p.name_hint: (p, d)
            for p, d in function.directed_params()
            if d is not ParamDirection.In and isinstance(p.type, TensorType)
        }
        self._reaches: dict[Var, frozenset[str]] = {p: frozenset((n,)) for n, (p, _) in self._outs.items()}

    def _sources(self, *exprs: Expr) -> frozenset[str]:
        """Names of the parameters that expressions depend on."""
        if not self._outs:
            return frozenset()
        found: set[Var] = set()
        visitor = _InTypes(found)
        for expr in exprs:
            visitor.visit(expr)
        return frozenset().union(*(self._reaches.get(v, ()) for v in found))

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        sources = self._sources(op.value)
        out = self._outs.get(op.var.name_hint)
        if out is not None and op.var.name_hint not in sources and isinstance(op.var.type, TensorType):
            name = op.var.name_hint
            self.report(
                f"{out[1].name} parameter '{name}' is given a new tensor here, and the caller's is never written; "
                f"write it with {name}[:] = <expr>",
                op.span,
            )
            return
        self._reaches[op.var] = sources | self._reaches.get(op.var, frozenset())

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        for arg in op.iter_args:
            self._reaches[arg] = self._sources(arg.init_value)

    visit_while_stmt = visit_for_stmt

    def leave_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        values = getattr(last_stmt(op.body), "values", ())
        for arg, value, var in zip(op.iter_args, values, op.return_vars):
            self._reaches[var] = self._reaches[arg] | self._sources(value)

    leave_while_stmt = leave_for_stmt

    def leave_if_stmt(self, op: IfStmt) -> None:
        bodies = [b for b in (op.then_body, op.else_body) if b is not None]
        tails = [getattr(last_stmt(b), "values", ()) for b in bodies]
        for var, *values in zip(op.return_vars, *tails):
            self._reaches[var] = self._sources(*values)


class TileInnermostDimGranularity(Rule):
    """Loads and stores move rows of at least what global memory moves at once."""

    name = "TileInnermostDimGranularity"
    expressions = True

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        super().__init__(program, found)
        self._target = current_or_default().target
        self._seen: Counter[tuple[Location | None, str]] = Counter()
        self._first: dict[tuple[Location | None, str], Diagnostic] = {}

    def enter_function(self, function: Function) -> None:
        self._incore = is_incore_type(function.func_type)

    def visit_call(self, op: Call) -> None:
        if not self._incore or op.op.name not in ("tile.load", "tile.store"):
            return
        tile = op.type if op.op.name == "tile.load" else op.args[0].type
        if isinstance(tile, TileType) and tile.shape:
            self._check(op, tile)

    def _check(self, op: Call, tile: TileType) -> None:
        inner = static_dims(tile.shape[-1:])
        bits = tile.dtype.bits
        least = self._target.gm_granularity
        if inner is None or _bytes(inner[0] * bits) >= least:
            return
        space = tile.memory_space.name if tile.memory_space is not None else "Vec"
        parts = [
            f"{op.op.name} has innermost dim = {_bytes(inner[0] * bits)}B "
            f"(tile {tile.dtype}[{inner[0]}], target_memory={space})"
        ]
        valid = static_dims(tile.valid_shape)
        if valid is not None:
            rows, row = prod(valid[:-1]), _bytes(valid[-1] * bits)
            parts.append(f"moves {rows * row}B as {rows} x {row}B rows")
        parts.append(
            f"recommended >= {least}B for backend {self._target.module_arch} "
            f"(L2 cache line = {self._target.l2_line}B). Consider increasing tile shape on the innermost axis."
        )
        self._report_once("; ".join(parts), op)

    def _report_once(self, message: str, op: Call) -> None:
        """The same transfer at the same place is one hint, with a count."""
        key = (Location.of(op.span), message)
        self._seen[key] += 1
        if self._seen[key] == 1:
            self.report(message, op.span)
            self._first[key] = self._found[-1]
        else:
            self._first[key].message = f"{message} ({self._seen[key]} occurrences at this source location)"


def _bytes(bits: int) -> int:
    return -(-bits // 8)
