"""AivSplitValid: in a function with `pl.split_aiv` regions vector work is in them, and crossings are named."""

from __future__ import annotations

from typing import Final, NamedTuple

from ...errors import Diagnostic
from ...ir.enums import FunctionType, MemorySpace, SplitMode
from ...ir.expr import Call, Var
from ...ir.program import Function, Program, summarize
from ...ir.stmt import AssignStmt, SplitAivScopeStmt
from ...ops.registry import Core
from ..core_affinity import space_of
from .driver import Rule

_CROSSINGS: Final = {
    "aiv_shard": (MemorySpace.Acc, MemorySpace.Vec),
    "aic_gather": (MemorySpace.Vec, MemorySpace.Mat),
}
"""Where the operand of a crossing is, and where its result."""
_HOISTED: Final = frozenset({"tile.load", "tile.store"})
"""What conversion to tiles moves out of the region it serves."""
_REDUCTIONS: Final = frozenset({"sum", "prod", "max", "min", "argmax", "argmin"})


class _Made(NamedTuple):
    """Who made a value: the operator, its core, and the region it stands in."""

    op: str
    core: Core | None
    region: SplitAivScopeStmt | None


class AivSplitValid(Rule):
    """Regions are vector work; around them is cube work, and values cross through aiv_shard and aic_gather."""

    name = "AivSplitValid"
    expressions = True

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        super().__init__(program, found)
        self._made: dict[Var, _Made] = {}

    def enter_function(self, function: Function) -> bool:
        found = summarize(function)
        self._function = function
        self._has_region = SplitAivScopeStmt in found.kinds
        self._regions: list[SplitAivScopeStmt] = []
        self._made.clear()
        return self._has_region or any(op.rpartition(".")[2] in _CROSSINGS for op in found.ops)

    def visit_split_aiv_scope_stmt(self, op: SplitAivScopeStmt) -> None:
        self._regions.append(op)
        if self._function.func_type is FunctionType.InCore and not self._function.attrs.get("split_aiv"):
            self.report(
                f"pl.split_aiv opens a CORE_GROUP-level region, but '{self._function.name}' is an InCore function",
                op.span,
                hint="write it under `with pl.at(level=pl.Level.CORE_GROUP):` in a function without a type",
            )

    def leave_split_aiv_scope_stmt(self, op: SplitAivScopeStmt) -> None:
        self._regions.pop()

    def leave_assign_stmt(self, op: AssignStmt) -> None:
        if self._has_region and isinstance(op.value, Call):
            region = self._regions[-1] if self._regions else None
            self._made[op.var] = _Made(op.value.op.name, _core(op.value), region)

    def visit_call(self, op: Call) -> None:
        level, _, short = op.op.name.rpartition(".")
        if short in _CROSSINGS and level in ("tile", "tensor"):
            self._check_crossing(op, short)
        elif self._has_region:
            core = _core(op)
            if self._regions:
                self._check_inside(op, core, self._regions[-1])
            elif core is Core.VECTOR:
                self._check_vector_outside(op)
            elif core is Core.CUBE:
                self._check_operands(op, inside=False)

    def _check_crossing(self, op: Call, short: str) -> None:
        name = op.op.name
        if not self._regions:
            self.report(f"{name} must appear inside a pl.split_aiv region", op.span)
            return
        source, target = _CROSSINGS[short]
        have = space_of(op.args[0])
        if have is not None and have is not source:
            self.report(f"{name}: the operand is in {have.name}, it requires {source.name}", op.span)
        have = space_of(op)
        if have is not None and have is not target:
            self.report(f"{name}: the result is in {have.name}, it must be {target.name}", op.span)

    def _check_inside(self, op: Call, core: Core | None, region: SplitAivScopeStmt) -> None:
        name = op.op.name
        if core is Core.CUBE:
            halved = "" if region.split is SplitMode.NONE else ", and each lane holds half the tile"
            message = f"cube op {name} in a pl.split_aiv region: the region body is AIV work{halved}"
            self.report(message, op.span, hint="move it out of the region")
        elif core is Core.VECTOR:
            if _reduced_axis(name) == region.split.value - 1:
                hint = "reduce the other axis, or join the lanes with pl.aic_gather first"
                self.report(f"{name} reduces over the split axis: each lane has half of it", op.span, hint=hint)
            self._check_operands(op, inside=True)

    def _check_vector_outside(self, op: Call) -> None:
        if op.op.name.startswith("tile."):
            self.report(
                f"vector op {op.op.name} is outside every pl.split_aiv region of '{self._function.name}': put it in "
                "one, `for _ in pl.split_aiv(2, mode=pl.SplitMode.NONE):` where both lanes do all of it",
                op.span,
            )

    def _check_operands(self, op: Call, inside: bool) -> None:
        """Report an operand that came from the other core without a crossing, once a name."""
        for arg in dict.fromkeys(a for a in op.args if isinstance(a, Var)):
            made = self._made.get(arg)
            if made is not None and made.op not in _HOISTED:
                self._check_operand(op, arg.name_hint, made, inside)

    def _check_operand(self, op: Call, name: str, made: _Made, inside: bool) -> None:
        if inside and made.region is None and made.core is Core.CUBE:
            self.report(
                f"'{name}' is made by the cube outside, and read by {op.op.name} in a pl.split_aiv region: read "
                f"pl.aiv_shard({name}), at the top of the region",
                op.span,
            )
        elif not inside and made.region is not None and not made.op.endswith(".aic_gather"):
            self.report(
                f"'{name}' is made in a pl.split_aiv region, and read by {op.op.name} on the cube outside: gather it "
                f"in the region, pl.aic_gather({name})",
                op.span,
            )



def _core(op: Call) -> Core | None:
    """The core a call needs: of a move between the cores, the one it delivers to; None where either will do."""
    decl = op.op.decl
    if decl is None or op.op.name in _HOISTED:
        return None
    if op.op.name == "tile.move":
        ends = {space is MemorySpace.Vec for space in (space_of(op.args[0]), space_of(op)) if space is not None}
        return None if len(ends) != 2 else Core.VECTOR if space_of(op) is MemorySpace.Vec else Core.CUBE
    return decl.core if decl.core in (Core.VECTOR, Core.CUBE) else None


def _reduced_axis(name: str) -> int | None:
    """The axis of a 2D tile a reduction collapses."""
    kind, _, what = name.removeprefix("tile.").partition("_")
    return None if what not in _REDUCTIONS else {"col": 0, "row": 1}.get(kind)
