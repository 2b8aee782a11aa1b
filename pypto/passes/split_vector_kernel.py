"""SplitVectorKernel: vector parts of mixed kernels know that both vector cores run them.

A part whose lanes have divided the work already (``split_aiv``), or whose pipes divide its tiles, only gets its mark;
the split of pipes that all have one becomes that of the parts on both sides. A part without a split that the
target runs on both lanes all the same (``dual_aiv_dispatch``) does its work on lane 0; lane 1 keeps up the pushes, pops
and frees the cube counts on, with tiles of no valid elements, and does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..backend.target import Target
from ..errors import InternalError, user_error
from ..ir.enums import FunctionType, MemorySpace
from ..ir.expr import Call, Expr, Var, index_const, tile_type_of
from ..ir.functor import deep_clone
from ..ir.naming import written_name
from ..ir.node import NodeList
from ..ir.program import Function, Program, summarize
from ..ir.scalar import build_scalar
from ..ir.stmt import AssignStmt, EvalStmt, IfStmt, ReturnStmt, Stmt, call_of, flatten_to_stmts, leaf_value, seq
from ..ir.types import TileType
from ..ir.visitor import find_calls
from .base import P, Pass
from .context import PassContext
from .core_affinity import FREES, POPS, PUSHES, SETUPS, Affinity
from .emitting import build
from .expand_mixed_kernel.side import Kernel, Side, SideBuilder
from .return_lineage import returned_params

LANE: Final = "tile.get_subblock_idx"
_SETUP: Final = frozenset({"system.reserve_buffer", "system.import_peer_buffer", SETUPS[Affinity.VECTOR]})
_PUSH: Final = PUSHES[Affinity.VECTOR]
CROSSINGS: Final = frozenset({*PUSHES.values(), *POPS.values()})
_HANDSHAKES: Final = frozenset({_PUSH, POPS[Affinity.VECTOR], FREES[Affinity.VECTOR]})


def split_vector_kernel() -> Pass:
    """The pass; see the module. Raises KernelValueError where lane 1 cannot know what the cube counts on."""
    return Pass(
        "SplitVectorKernel",
        _run,
        requires={P.SSAForm, P.MixedKernelExpanded},
        produces={P.SSAForm, P.VectorKernelSplit, P.NormalizedStmtStructure},
    )


def _run(program: Program, context: PassContext) -> Program:
    def change(function: Function) -> Function:
        if function.func_type is FunctionType.AIV:
            return _change(_split_by_pipes(function), context.target)
        return _split_by_pipes(function) if function.func_type is FunctionType.AIC else function

    return program.map_functions(change)


def _split_by_pipes(function: Function) -> Function:
    """``function`` with the split that all its pipes have, where its author stated none."""
    if function.attrs.get("split_aiv") or function.split is not None or summarize(function).ops.isdisjoint(CROSSINGS):
        return function
    modes = {c.kwargs.get("split", 0) for c in find_calls(function.body, *CROSSINGS)}
    if len(modes) != 1 or modes == {0}:
        return function
    return function.replace(attrs={**function.attrs, "split": modes.pop()})


def _change(function: Function, target: Target) -> Function:
    if function.attrs.get("split_aiv") or function.split is not None:
        if function.attrs.get("dual_aiv_dispatch"):
            return function
        return function.replace(attrs={**function.attrs, "dual_aiv_dispatch": True})
    if not target.quirks.no_split_dual_aiv_dispatch or not function.attrs.get("dual_aiv_dispatch"):
        return function
    elsewhere = "external_source" in function.attrs or function.requires_runtime_binding
    return function if elsewhere or _is_told_apart(function) else _by_lane(function, target)


def _is_told_apart(function: Function) -> bool:
    """Whether the lanes' work is told apart already."""
    return bool(find_calls(function.body, LANE))


def _by_lane(function: Function, target: Target) -> Function:
    stmts = flatten_to_stmts(function.body)
    setup = [s for s in stmts if _is_setup(s)]
    span = function.span
    lane = build(LANE, span=span)
    index = Var("subblock_idx", lane.type, span)
    work = [s for s in stmts if not _is_setup(s) and not isinstance(s, ReturnStmt)]
    if not work:
        return function
    second = _SecondBuilder(_SecondLane(Kernel(function)), target).build()
    copy, _ = deep_clone(second)
    if not isinstance(copy, Stmt):
        raise InternalError("a clone of a body is none", span)
    branch = IfStmt(build_scalar("Eq", [index, index_const(0)], span), seq(work, span), copy, [], span)
    made = [AssignStmt(index, lane, span), *setup, branch, *_return(function)]
    return function.replace(body=seq(made, span))


def _return(function: Function) -> list[Stmt]:
    """The return of a function whose results are made in branches: they are parameters it has written."""
    returned = returned_params(function)
    if not returned:
        return []
    if any(i is None for i in returned):
        raise user_error(
            ValueError,
            f"{function.name!r} returns a value of its own: two vector cores run it, and each would have one",
            function.span,
            "write the result to a tensor parameter, and return that",
        )
    return [ReturnStmt(NodeList(function.params[i] for i in returned if i is not None), function.span)]


def _is_setup(stmt: Stmt) -> bool:
    return call_of(stmt, *_SETUP) is not None


class _SecondLane(Side):
    """Handshakes, and what decides how often they happen."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, Affinity.VECTOR)

    returns = False

    def acts(self, stmt: Stmt) -> bool:
        call = call_of(stmt)
        if call is None or call.op.name in _SETUP:
            return False
        return call.op.name in _HANDSHAKES or call.op.name.startswith("system.")

    def operands(self, stmt: Stmt) -> Iterable[Expr]:
        return super().operands(stmt) if call_of(stmt, _PUSH) is None else ()

    def check_here(self, stmt: Stmt, var: Var) -> None:
        value = leaf_value(stmt)
        if self.kernel.affinity[stmt] is Affinity.VECTOR and not self.acts(stmt):
            raise user_error(
                ValueError,
                f"{written_name(var.name_hint)!r} comes from a tile and decides what this mixed kernel does, but only "
                "one of the two vector cores that run it has the tile",
                value.span if value is not None else stmt.span,
                "store it to a tensor, and decide in a pl.at(level=pl.Level.CORE_GROUP) of its own",
            )


class _SecondBuilder(SideBuilder):
    def leaf(self, stmt: Stmt) -> list[Stmt]:
        push = call_of(stmt, _PUSH)
        if push is not None:
            return self._pushed(stmt, push)
        if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, TileType):
            made = self.vars[stmt.var] = Var(stmt.var.name_hint, _empty(stmt.var.type), stmt.var.span)
            return [stmt.replace(var=made, value=stmt.value.replace(type=made.type))]
        return super().leaf(stmt)

    def _pushed(self, stmt: Stmt, push: Call) -> list[Stmt]:
        """A push of nothing, in a tile like the one lane 0 pushes."""
        kind = tile_type_of(push.args[0])
        space = kind.memory_space or MemorySpace.Vec
        made = build("tile.create", list(kind.shape), span=push.span, dtype=kind.dtype, target_memory=space)
        name = push.args[0].name_hint if isinstance(push.args[0], Var) else "tile"
        empty = Var(name, _empty(kind), push.span)
        again = push.replace(args=NodeList([empty, *push.args[1:]]))
        return [AssignStmt(empty, made.replace(type=empty.type), push.span), EvalStmt(again, stmt.span)]


def _empty(kind: TileType) -> TileType:
    """``kind`` with no valid elements."""
    view = kind.get_effective_tile_view().replace(valid_shape=NodeList(index_const(0) for _ in kind.shape))
    return TileType(kind.shape, kind.dtype, None, view, kind.memory_space)
