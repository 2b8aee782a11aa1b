"""The part of a mixed kernel that one core runs.

Both cores run the kernel's control flow; of the rest, a core keeps what has an effect on it and what that needs. A
store of the other core leaves the tensor or view it writes to, which is the same memory on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from ...backend.target import Target
from ...errors import InternalError, user_error
from ...ir.enums import MemorySpace, PadValue
from ...ir.expr import Call, Expr, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.node import NodeList
from ...ir.program import Function
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    call_of,
    flatten_to_stmts,
    last_yield,
    leaf_value,
    seq,
)
from ...ir.types import TileType
from ...ir.visitor import Rewriter, find_all, find_calls
from ...ops.registry import decl_of
from ..buffer_roots import BufferRoots
from ..core_affinity import POPS, PUSHES, Affinity, call_affinity, controls, without_stages
from ..infer_tile_memory_space.rewrite import in_space
from ..return_lineage import ReturnLineage, origin_of
from .crossings import Crossing, crossing_of, received, sent
from .fences import Fence, fences, received_token, token_of

_REMOVABLE = frozenset({"system.reserve_buffer", "system.import_peer_buffer"})
"""Operators with an effect that matters only to what reads their result."""
_WORDS = {Affinity.CUBE: "cube", Affinity.VECTOR: "vector cores"}
Loop = (ForStmt, WhileStmt)


def other(side: Affinity) -> Affinity:
    return Affinity.MIXED & ~side


class _Place(NamedTuple):
    """Where a variable is defined: the statement, and its position among the results or carries of a compound one."""

    stmt: Stmt
    index: int = -1
    carried: bool = False


class Kernel:
    """Facts of a mixed kernel that both cores' parts are made from."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.origin = origin_of(function)
        """The parameter or view that each tensor is, whichever core has stored to it."""
        self.defined: dict[Var, _Place] = {}
        self.around: dict[Stmt, Stmt | None] = {}
        self.crossings: dict[Stmt, Crossing] = {}
        self.affinity: dict[Stmt, Affinity] = {}
        self.leaves: list[Stmt] = []
        self.returns: list[ReturnStmt] = []
        self.joined: set[Var] = set()
        """What lanes were joined to: the cube has it, wherever its type says it is."""
        self._index(function.body, None)
        roots = BufferRoots(function, ReturnLineage({function.name: function}), views=True)
        lanes = bool(function.attrs.get("split_aiv")) or any(c.split for c in self.crossings.values())
        self.fences, self.shares_memory = fences(
            self.leaves, self.affinity, roots.of, self.enclosing, self.crossings, lanes
        )
        self.tied = {side: self._tied(side) for side in (Affinity.CUBE, Affinity.VECTOR)}

    def _index(self, body: Stmt, around: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            self.around[stmt] = around
            value = leaf_value(stmt)
            if value is not None:
                self._index_leaf(stmt, value)
            elif isinstance(stmt, Loop):
                for i, (arg, result) in enumerate(zip(stmt.iter_args, stmt.return_vars)):
                    self.defined[arg] = _Place(stmt, i, True)
                    self.defined[result] = _Place(stmt, i)
                self._index(stmt.body, stmt)
            elif isinstance(stmt, IfStmt):
                for i, result in enumerate(stmt.return_vars):
                    self.defined[result] = _Place(stmt, i)
                self._index(stmt.then_body, stmt)
                if stmt.else_body is not None:
                    self._index(stmt.else_body, stmt)
            elif isinstance(stmt, ReturnStmt):
                self.returns.append(stmt)
            elif isinstance(stmt, ScopeStmt):
                raise InternalError("a region reaches ExpandMixedKernel in a mixed kernel", stmt.span)

    def _index_leaf(self, stmt: Stmt, value: Expr) -> None:
        of_joined = isinstance(value, Call) and any(a in self.joined for a in value.args if isinstance(a, Var))
        crossing = None if of_joined else crossing_of(stmt)
        self.affinity[stmt] = Affinity.CUBE if of_joined else call_affinity(value)
        decl = decl_of(value)
        if decl is not None and not decl.duplicable and self.affinity[stmt] is Affinity.SHARED:
            raise user_error(
                ValueError,
                f"{decl.name} stands in a kernel that both cores run, and must not run twice",
                stmt.span,
                "say which core runs it: put it in `for _ in pl.split_aiv(2, mode=pl.SplitMode.NONE):`, under "
                "`if` for one of the lanes, or in a pl.at(level=pl.Level.CORE_GROUP) of its own",
            )
        if crossing is not None:
            self.crossings[stmt] = crossing
            if crossing.joined and isinstance(stmt, AssignStmt):
                self.joined.add(stmt.var)
        elif of_joined and isinstance(stmt, AssignStmt) and call_of(stmt, "tile.set_validshape") is not None:
            self.joined.add(stmt.var)
        self.leaves.append(stmt)
        if isinstance(stmt, AssignStmt):
            self.defined[stmt.var] = _Place(stmt)

    def _tied(self, side: Affinity) -> set[Var]:
        """Scalars that only the core other than ``side`` knows, because it computes them from its tiles."""
        found: set[Var] = set()
        for stmt in self.leaves:
            if not isinstance(stmt, AssignStmt) or isinstance(stmt.var.type, TileType):
                continue
            foreign = self.affinity[stmt] is other(side) and stmt.var not in self.origin
            if foreign or any(v in found for v in reads(stmt.value)):
                found.add(stmt.var)
        return found

    def enclosing(self, stmt: Stmt) -> Iterable[Stmt]:
        """The compound statements around ``stmt``, the innermost first."""
        around = self.around[stmt]
        while around is not None:
            yield around
            around = self.around[around]

    def conditions(self, stmt: Stmt) -> Iterable[Expr]:
        """What decides whether, or how often, ``stmt`` runs."""
        for around in self.enclosing(stmt):
            yield from controls(around)


def reads(value: Any) -> list[Var]:
    """Variables an expression reads."""
    return find_all(value, Var)


def _extents(tile: Expr) -> Sequence[Expr]:
    """What says how much of a tile is valid."""
    return tile.type.valid_shape if isinstance(tile.type, TileType) else ()


def yielded(body: Stmt | None, index: int) -> Expr:
    """Value ``index`` of what a body hands on."""
    last = last_yield(body)
    if last is None:
        raise InternalError("a body with results does not end in a yield", body.span if body is not None else None)
    return last.values[index]


class Side:
    """What one core keeps of a kernel."""

    returns: ClassVar[bool] = True
    """Whether the kernel's results are the vector core's to hand back."""

    def __init__(self, kernel: Kernel, side: Affinity) -> None:
        self.kernel, self.side = kernel, side
        self.kept: set[Stmt] = set()
        self.needed: set[Var] = set()
        self.instead: dict[Var, Var] = {}
        """Tensors that the other core's stores made, with the parameter or view that they are."""
        self._pending: list[Var] = []
        for stmt in kernel.leaves:
            if self.acts(stmt):
                self._keep(stmt)
        if side is Affinity.VECTOR and self.returns:
            for stmt in kernel.returns:
                self._need(*stmt.values)
        while self._pending:
            self._resolve(self._pending.pop())

    def acts(self, stmt: Stmt) -> bool:
        """Whether ``stmt`` has an effect on this core."""
        kernel, value = self.kernel, leaf_value(stmt)
        if stmt in kernel.crossings or stmt in kernel.fences:
            return True
        affinity = kernel.affinity[stmt]
        if affinity is other(self.side) or value is None:
            return False
        decl = decl_of(value)
        if decl is None:
            return isinstance(value, Call)
        if decl.pure or decl.name in _REMOVABLE:
            return False
        if affinity is self.side:
            return True
        tied = kernel.tied[self.side]
        return not any(v in tied for e in (value, *kernel.conditions(stmt)) for v in reads(e))

    def _keep(self, stmt: Stmt) -> None:
        if stmt in self.kept:
            return
        self.kept.add(stmt)
        around = self.kernel.around[stmt]
        if around is not None:
            self._keep(around)
        self._need(*(controls(stmt) if leaf_value(stmt) is None else self.operands(stmt)))

    def operands(self, stmt: Stmt) -> Iterable[Expr]:
        """What this core has to have for its part of ``stmt``."""
        value, crossing = leaf_value(stmt), self.kernel.crossings.get(stmt)
        if crossing is not None:
            return (crossing.source,) if crossing.producer is self.side else _extents(crossing.source)
        return () if value is None or self.kernel.affinity[stmt] is other(self.side) else (value,)

    def _need(self, *values: Expr) -> None:
        for value in values:
            for var in reads(value):
                if var not in self.needed and var not in self.instead:
                    self._pending.append(var)

    def _resolve(self, var: Var) -> None:
        place = self.kernel.defined.get(var)
        if var in self.needed or var in self.instead or place is None:
            return
        origin = self.kernel.origin.get(var)
        if origin is not None and not self.writes(var):
            self.instead[var] = origin
            self._need(origin)
            return
        self.needed.add(var)
        stmt, index = place.stmt, place.index
        if index < 0:
            self.check_here(stmt, var)
        self._keep(stmt)
        if isinstance(stmt, Loop):
            arg, result = stmt.iter_args[index], stmt.return_vars[index]
            self._need(arg, result, arg.init_value, yielded(stmt.body, index))
        elif isinstance(stmt, IfStmt):
            self._need(yielded(stmt.then_body, index), yielded(stmt.else_body, index))

    def check_here(self, stmt: Stmt, var: Var) -> None:
        """Raises KernelValueError when this core cannot have what ``stmt`` gives ``var``."""
        crossing = self.kernel.crossings.get(stmt)
        foreign = (
            crossing.producer is self.side if crossing is not None else self.kernel.affinity[stmt] is other(self.side)
        )
        if foreign:
            here, there = _WORDS[self.side], _WORDS[other(self.side)]
            name = written_name(var.name_hint)
            raise user_error(
                ValueError,
                f"{name!r} is computed by the {there} and needed by the {here}, which cannot read it",
                stmt.span,
                "store it to a tensor, and compute what depends on it in a pl.at(level=pl.Level.CORE_GROUP) of its own",
            )

    def writes(self, var: Var, seen: frozenset[Var] = frozenset()) -> bool:
        """Whether this core stores to what tensor ``var`` is, on the way there."""
        place = self.kernel.defined.get(var)
        if place is None or var in seen:
            return False
        seen |= {var}
        stmt, index = place.stmt, place.index
        if isinstance(stmt, Loop):
            return self._writes(yielded(stmt.body, index), seen | {stmt.iter_args[index], stmt.return_vars[index]})
        if isinstance(stmt, IfStmt):
            return any(self._writes(yielded(b, index), seen) for b in (stmt.then_body, stmt.else_body))
        value = leaf_value(stmt)
        if isinstance(value, Var):
            return self.writes(value, seen)
        return self.kernel.affinity[stmt] is not other(self.side)

    def _writes(self, value: Expr, seen: frozenset[Var]) -> bool:
        return isinstance(value, Var) and self.writes(value, seen)


class SideBuilder(Rewriter):
    """Builds the body of one core."""

    def __init__(self, side: Side, target: Target) -> None:
        super().__init__(side.instead)
        self._side, self._target = side, target
        self._results: list[list[bool]] = []
        """For each body around, which of the values it hands on are needed."""

    def build(self) -> Stmt:
        kernel = self._side.kernel
        return self._body(kernel.function.body, [])

    def _body(self, body: Stmt, results: list[bool]) -> Stmt:
        self._results.append(results)
        made: list[Stmt] = []
        for stmt in flatten_to_stmts(body):
            made.extend(self._statement(stmt))
        self._results.pop()
        return seq(made, body.span) if made else SeqStmts([], body.span)

    def _statement(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, ReturnStmt):
            return [self.rewrite(stmt)] if self._side.side is Affinity.VECTOR and self._side.returns else []
        if isinstance(stmt, YieldStmt):
            kept = [self.rewrite(v) for v, wanted in zip(stmt.values, self._results[-1]) if wanted]
            return [stmt.replace(values=NodeList(kept))] if kept else []
        if stmt not in self._side.kept:
            return []
        if isinstance(stmt, (AssignStmt, EvalStmt)):
            return self.leaf(stmt)
        if isinstance(stmt, IfStmt):
            return [self._if(stmt)]
        return [self._loop(stmt) if isinstance(stmt, Loop) else self.rewrite(stmt)]

    def leaf(self, stmt: Stmt) -> list[Stmt]:
        """What this core does for a statement that holds no others."""
        kernel = self._side.kernel
        crossing, fence = kernel.crossings.get(stmt), kernel.fences.get(stmt)
        if crossing is not None:
            return self._crossing(crossing)
        if fence is not None:
            return self._fenced(stmt, fence)
        if isinstance(stmt, AssignStmt) and self._stays(stmt):
            return []
        return [self.rewrite(stmt)]

    def _stays(self, stmt: AssignStmt) -> bool:
        """Whether ``stmt`` moves what lanes were joined to where it is: its result is that tile."""
        move = stmt.value
        if not isinstance(move, Call) or move.op.name != "tile.move" or move.args[0] not in self._side.kernel.joined:
            return False
        source = self.rewrite(move.args[0])
        if _unfilled(tile_type_of(source)) != _unfilled(tile_type_of(stmt.var)):
            return False
        self.vars[stmt.var] = source
        return True

    def _crossing(self, crossing: Crossing) -> list[Stmt]:
        if crossing.producer is self._side.side:
            return sent(crossing, self.rewrite(crossing.source), self._target)
        if not isinstance(crossing.stmt, AssignStmt):
            raise InternalError("a tile that crosses goes nowhere", crossing.stmt.span)
        var = crossing.stmt.var
        kind = self.rewrite_type(tile_type_of(var))
        if not isinstance(kind, TileType):
            raise InternalError("what crosses is no tile", crossing.stmt.span)
        made = Var(var.name_hint, in_space(kind, MemorySpace.Mat) if crossing.joined else kind, var.span)
        self.vars[var] = made
        return received(crossing, made)

    def _fenced(self, stmt: Stmt, fence: Fence) -> list[Stmt]:
        crossing = fence.crossing
        if self._side.side is crossing.producer:
            if not fence.token:
                return [self.rewrite(stmt), *sent(crossing, self.rewrite(crossing.source), self._target)]
            token = token_of(crossing.producer, self._target.quirks.vector_to_cube_fractal, stmt.span)
            return [self.rewrite(stmt), token, *sent(crossing, token.var, self._target)]
        source = tile_type_of(crossing.source)
        space = MemorySpace.Vec if self._side.side is Affinity.VECTOR else MemorySpace.Mat
        whole = received_token(fence) if fence.token else TileType(source.shape, source.dtype, None, None, space)
        return received(crossing, Var("sync_tile", whole, stmt.span))

    def _wanted(self, variables: Iterable[Var], *also: Iterable[Var]) -> list[bool]:
        needed = self._side.needed
        return [any(v in needed for v in group) for group in zip(variables, *also)]

    def _if(self, stmt: IfStmt) -> Stmt:
        wanted = self._wanted(stmt.return_vars)
        then_body = self._body(stmt.then_body, wanted)
        else_body = None if stmt.else_body is None else self._body(stmt.else_body, wanted)
        if else_body is not None and not flatten_to_stmts(else_body):
            else_body = None
        return stmt.replace(
            condition=self.rewrite(stmt.condition),
            then_body=then_body,
            else_body=else_body,
            return_vars=self._chosen(stmt.return_vars, wanted),
        )

    def _chosen(self, variables: Iterable[Var], wanted: list[bool]) -> NodeList:
        return NodeList(self.define(v) for v, keep in zip(variables, wanted) if keep)

    def _loop(self, stmt: Any) -> Stmt:
        wanted = self._wanted(stmt.iter_args, stmt.return_vars)
        changes = {c: self.rewrite(getattr(stmt, c)) for c in ("start", "stop", "step") if isinstance(stmt, ForStmt)}
        changes["iter_args"] = self._chosen(stmt.iter_args, wanted)
        if isinstance(stmt, WhileStmt):
            changes["condition"] = self.rewrite(stmt.condition)
        changes["body"] = self._body(stmt.body, wanted)
        changes["return_vars"] = self._chosen(stmt.return_vars, wanted)
        made = stmt.replace(**changes)
        in_order = self._side.kernel.shares_memory and find_calls(made.body, *PUSHES.values(), *POPS.values())
        return without_stages(made) if in_order and isinstance(made, ForStmt) else made

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        return op.replace(expr=self.rewrite(op.expr))


def _unfilled(kind: TileType) -> tuple[Any, ...]:
    """What a tile is, apart from what it was filled with outside its valid region."""
    view = kind.get_effective_tile_view().replace(pad=PadValue.null)
    return list(kind.shape), kind.dtype, kind.memory_space, view
