"""`pl.split_aiv` regions: divided where their author has not, checked and left where the author has."""

from __future__ import annotations

from typing import Any, Final

from ...backend.target import Target
from ...errors import user_error
from ...ir.enums import SplitMode
from ...ir.expr import Call, Expr, Var
from ...ir.naming import free_name
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ScopeStmt, SplitAivScopeStmt, Stmt, flatten_to_stmts
from ...ir.types import TileType
from ...ir.visitor import find_all, find_calls
from ...ops.registry import decl_of, rebind
from ..bodies import BodyRewriter
from ..core_affinity import GATHER, PLACEMENT, SHARD, Affinity, call_affinity
from ..emitting import build
from .divide import Divider
from .halves import Lane

LANE: Final = "tile.get_subblock_idx"
VALIDATED: Final = "split_aiv_region_validated"
_FREE: Final = frozenset({"tile.full", "tile.ci", "tile.random", "tile.tri", "tile.create"})
"""Operators that read nothing: each lane makes what its author wrote."""
_ADDRESSES: Final = {
    "tile.load": ("offsets",),
    "tile.slice": ("offset",),
    "tile.extract": ("index_row", "index_col"),
    "tile.gather_row": ("src_offset",),
}
"""Where operators read from; a lane that reads from a place of its own does work of its own."""


def lower_regions(function: Function, target: Target) -> Function:
    """``function`` with its regions lowered and gone."""
    body = _Lowerer(function, target).body(function.body)
    for left in find_all(body, SplitAivScopeStmt):
        raise _in_scope(left)
    attrs = {**function.attrs, "split_aiv": True, VALIDATED: True}
    return function.replace(body=body, attrs=attrs)


def _in_scope(region: Stmt) -> Exception:
    return user_error(
        ValueError,
        "pl.split_aiv is nested inside a scope of a kernel that is not outlined",
        region.span,
        "leave the scope out, or write the kernel in a function without a type: @pl.function",
    )


class _Lowerer(BodyRewriter):
    def __init__(self, function: Function, target: Target) -> None:
        super().__init__()
        self._target = target
        self._names = {n.var.name_hint for n in find_all(function.body, AssignStmt)}

    def visit_scope_stmt(self, op: ScopeStmt) -> Any:
        return op

    def visit_split_aiv_scope_stmt(self, op: SplitAivScopeStmt) -> Any:
        _check_scopes(op)
        stmts = flatten_to_stmts(op.body)
        if not stmts:
            return []
        crosses = bool(find_calls(op.body, SHARD, GATHER))
        if op.split is SplitMode.NONE or crosses:
            if op.split is not SplitMode.NONE:
                _check_divided(op)
            return [_Placed().body(s) for s in stmts]
        lane = build(LANE, span=op.span)
        name = free_name("subblock_idx", self._names)
        self._names.add(name)
        index = Var(name, lane.type, op.span)
        made = Divider(op.split, Lane(index), self._target).body(op.body)
        return [AssignStmt(index, lane, op.span), *(_Placed().body(s) for s in flatten_to_stmts(made))]


def _check_scopes(region: SplitAivScopeStmt) -> None:
    inner = next(iter(find_all(region.body, ScopeStmt)), None)
    if inner is not None:
        raise user_error(
            ValueError,
            "a scope survives inside a pl.split_aiv region body",
            inner.span,
            "leave the inner scope out: a region is one piece of vector work",
        )


class _Placed(BodyRewriter):
    """Notes on what must not run twice, and says no core itself, that the region placed it on the vector cores."""

    def visit_assign_stmt(self, op: Any) -> Any:
        return op.replace(value=_placed(op.value))

    def visit_eval_stmt(self, op: Any) -> Any:
        return op.replace(expr=_placed(op.expr))


def _placed(value: Expr) -> Expr:
    decl = decl_of(value)
    if decl is None or decl.duplicable or not isinstance(value, Call) or call_affinity(value) is not Affinity.SHARED:
        return value
    return value.replace(attrs={**value.attrs, PLACEMENT: "aiv"})


def _check_divided(region: SplitAivScopeStmt) -> None:
    """All vector work of a region whose author divided it works on parts. Raises KernelValueError for what does not."""
    lanes: set[Var] = set()
    parts: set[Var] = set()
    whole: list[Call] = []
    for node in find_all(region.body, AssignStmt):
        call, reads = node.value, set(find_all(node.value, Var))
        if not isinstance(node.var.type, TileType):
            if reads & lanes or (isinstance(call, Call) and call.op.name == LANE):
                lanes.add(node.var)
        elif not isinstance(call, Call):
            parts.update({node.var} if reads & parts else ())
        elif call.op.name == SHARD or reads & parts:
            _check_even(call)
            parts.add(node.var)
        elif call.op.name in _FREE or _reads_own(call, lanes):
            if call.op.name not in _FREE:
                parts.add(node.var)
        elif call_affinity(call) is Affinity.VECTOR:
            whole.append(call)
    if whole:
        names = ", ".join(sorted({c.op.name for c in whole}))
        raise user_error(
            ValueError,
            f"the region mixes explicit crossings with vector work on whole tiles ({names}), all of which both lanes "
            "would do",
            whole[0].span,
            "take the lane's part first: pl.aiv_shard what comes from the cube, load from where the lane's part is",
        )


def _check_even(call: Call) -> None:
    """Lanes' parts of one size: the compiler does not follow others through an author's own division."""
    mode = call.kwargs.get("split", 0) if call.op.name == SHARD else 0
    source = call.args[0].type if mode else None
    if not isinstance(source, TileType):
        return
    size, valid = source.shape[mode - 1], source.valid_shape[mode - 1]
    if getattr(size, "value", 1) % 2 or getattr(valid, "value", None) != getattr(size, "value", None):
        raise user_error(
            ValueError,
            f"aiv_shard divides {valid} valid of {size} cells: the lanes' parts differ",
            call.span,
            "fill the tile to an even extent, or let the compiler divide it: optimizations=[pl.split(..)] on the pl.at",
        )


def _reads_own(call: Call, lanes: set[Var]) -> bool:
    bound = rebind(call) if call.op.name in _ADDRESSES else None
    if bound is None:
        return False
    values = [bound[name] for name in _ADDRESSES[call.op.name]]
    return any(n in lanes for v in values if v is not None for n in find_all(v, Var))
