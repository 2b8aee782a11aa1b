"""HardSyncallOccupancyValid: a launch whose kernels meet by hardware fills the chip, all at once."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...errors import Diagnostic
from ...ir.enums import CoreType, FunctionType
from ...ir.expr import Call, Expr, GlobalVar, Submit, Var
from ...ir.program import Function, Program, is_incore_type, summarize
from ...ir.stmt import AssignStmt, EvalStmt, ReturnStmt
from ...ir.visitor import find_calls
from ...ops.rules import value as known
from ..context import current_or_default
from .driver import Rule

_SYNCALL: Final = "system.syncall"
_KINDS: Final = {FunctionType.AIC: "aic_only", FunctionType.AIV: "aiv_only"}
_WIDTHS: Final = {"system.available_cluster_count": "aic_only", "system.available_aiv_count": "aiv_only"}
_SOFT: Final = "or meet with pl.system.syncall(mode='soft', ..), which works on any number of cores"


class _Need(NamedTuple):
    """What a launch must fill: so many cores or groups, called ``what``; the query that gives their number."""

    count: int
    what: str
    query: str


class HardSyncallOccupancyValid(Rule):
    """A hard syncall waits for every core of its kind: each must run a block, and all blocks at the same time."""

    name = "HardSyncallOccupancy"

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        super().__init__(program, found)
        self._functions = {f.name: f for f in program.functions.values()}
        self._meetings = {f.name: calls for f in program.functions.values() if (calls := _hard_meetings(f))}
        self._queries: dict[Var, str] = {}

    def enter_function(self, function: Function) -> bool | None:
        return None if self._meetings and not is_incore_type(function.func_type) else False

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if isinstance(op.value, Call) and op.value.op.name in _WIDTHS:
            self._queries[op.var] = op.value.op.name
        elif isinstance(op.value, (Call, Submit)):
            self._call(op.value)

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        if isinstance(op.expr, (Call, Submit)):
            self._call(op.expr)

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        for value in op.values:
            if isinstance(value, (Call, Submit)):
                self._call(value)

    def _call(self, op: Call | Submit) -> None:
        callee = self._functions.get(op.op.name) if isinstance(op.op, GlobalVar) else None
        if callee is None:
            return
        width, together = _launch(op, callee)
        if width is None:
            return
        kernels = _kernels(callee, self._functions)
        meetings = [(kernel, call) for kernel in kernels for call in self._meetings.get(kernel.name, ())]
        if meetings:
            self._check(op, width, together, kernels, meetings)

    def _check(
        self,
        launch: Call | Submit,
        width: Expr | int,
        together: bool,
        kernels: list[Function],
        meetings: list[tuple[Function, Call]],
    ) -> None:
        kinds = {kernel.func_type for kernel in kernels} & _KINDS.keys()
        if any(kernel.attrs.get("dual_aiv_dispatch") for kernel in kernels) and len(kinds) == 1:
            return
        kernel, call = meetings[0]
        if len(kinds) == 1:
            own = _KINDS[next(iter(kinds))]
            if call.kwargs.get("core_type", "mix") != own:
                self.report(
                    f"a hard syncall of {call.kwargs.get('core_type', 'mix')!r} in '{kernel.name}' can never complete: "
                    f"the launch has no other cores than {own.removesuffix('_only')}",
                    call.span,
                    hint=f"pl.system.syncall(core_type={own!r})",
                )
                return
        if kinds:
            self._check_width(launch, width, together, kernel, _need(kinds))

    def _check_width(
        self, launch: Call | Submit, width: Expr | int, together: bool, kernel: Function, need: _Need
    ) -> None:
        query = self._query(width)
        count = width if isinstance(width, int) else known(width)
        if query is not None and query != need.query:
            self.report(
                f"the launch of '{kernel.name}' has {_written(query)} blocks, but its hard syncall waits for all "
                f"{need.what}: launch {_written(need.query)} blocks",
                launch.span,
                hint=f"pl.spmd({_written(need.query)}, sync_start=True)",
            )
        elif query is None and count is not None and count != need.count:
            self.report(
                f"the hard syncall in '{kernel.name}' waits for the whole chip: the launch must fill all {need.count} "
                f"{need.what}, one block each, and has {count}",
                launch.span,
                hint=f"pl.spmd({_written(need.query)}, sync_start=True), {_SOFT}",
            )
        elif (query is not None or count is not None) and not together:
            self.report(
                f"the hard syncall in '{kernel.name}' needs all blocks at the same time: launch with sync_start=True",
                launch.span,
                hint=f"pl.spmd(.., sync_start=True), {_SOFT}",
            )

    def _query(self, width: Expr | int) -> str | None:
        if isinstance(width, Call) and width.op.name in _WIDTHS:
            return width.op.name
        return self._queries.get(width) if isinstance(width, Var) else None


def _hard_meetings(function: Function) -> list[Call]:
    if _SYNCALL not in summarize(function).ops:
        return []
    return [call for call in find_calls(function.body, _SYNCALL) if call.kwargs.get("mode", "hard") == "hard"]


def _launch(op: Call | Submit, callee: Function) -> tuple[Expr | int | None, bool]:
    """On how many blocks a call launches, None when it launches none, and whether all at the same time."""
    if isinstance(op, Submit):
        width, together = op.core_num, op.sync_start
    else:
        width, together = op.attrs.get("core_num"), op.attrs.get("sync_start")
    if width is None:
        width, together = callee.attrs.get("core_num"), callee.attrs.get("sync_start")
    return width, bool(together)


def _kernels(function: Function, functions: dict[str, Function]) -> list[Function]:
    """Kernels a launched function runs, itself or those it calls."""
    if is_incore_type(function.func_type):
        return [function]
    called = (functions[name] for name in sorted(summarize(function).callees) if name in functions)
    return [kernel for callee in called for kernel in _kernels(callee, functions)]


def _need(kinds: set[FunctionType]) -> _Need:
    target = current_or_default().target
    if len(kinds) > 1:
        return _Need(target.core_count(CoreType.CUBE), "core-groups", "system.available_cluster_count")
    if FunctionType.AIC in kinds:
        return _Need(target.core_count(CoreType.CUBE), "AIC cores", "system.available_cluster_count")
    return _Need(target.core_count(CoreType.VECTOR), "AIV cores", "system.available_aiv_count")


def _written(query: str) -> str:
    return f"pl.{query}()"
