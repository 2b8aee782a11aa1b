"""Divides the vector work of a body between the lanes; the cube's stays whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...backend.target import Target
from ...errors import InternalError, user_error
from ...ir.enums import MemorySpace, SplitMode
from ...ir.expr import Call, Expr, IterArg, Var, index_const, tile_type_of
from ...ir.naming import written_name
from ...ir.node import NodeList, updated
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    last_yield,
    seq,
)
from ...ir.types import TileType
from ...ir.visitor import Rewriter
from ...ops.registry import decl_of
from ...ops.rules import same
from ..core_affinity import Affinity, call_affinity, space_of
from ..emitting import build
from ..expand_mixed_kernel.crossings import arranged
from ..expand_mixed_kernel.expand import transposed
from ..packed_products import is_whole
from . import operators as rules
from .halves import Lane, Share, extent_of

_VIEWS = frozenset({"tile.reshape", "tile.reinterpret_view"})


class Divider(Rewriter):
    """Rewrites a body for the lane ``lane``; ``shares`` says what it has a part of."""

    def __init__(self, mode: SplitMode, lane: Lane, target: Target) -> None:
        super().__init__()
        self.target = target
        self.mode, self.axis, self.lane = mode, mode.value - 1, lane
        self.shares: dict[Var, Share] = {}
        self._targets: list[Sequence[Var]] = []

    def body(self, body: Stmt, targets: Sequence[Var] = ()) -> Stmt:
        """A body whose yields go to ``targets``."""
        self._targets.append(targets)
        made: list[Stmt] = []
        for stmt in flatten_to_stmts(body):
            made.extend(self._statement(stmt))
        self._targets.pop()
        return seq(made, body.span) if made else SeqStmts([], body.span)

    def _statement(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, AssignStmt):
            return self._assign(stmt)
        if isinstance(stmt, EvalStmt):
            return [stmt.replace(expr=self._evaluated(stmt.expr))]
        if isinstance(stmt, (ForStmt, WhileStmt)):
            return [self._loop(stmt)]
        if isinstance(stmt, IfStmt):
            return [self._branch(stmt)]
        if isinstance(stmt, ScopeStmt):
            raise user_error(
                ValueError,
                "the kernel is split between the vector lanes, but its body still contains a scope",
                stmt.span,
                "leave the inner region out, or write the kernel in a function without a type",
            )
        return [self.rewrite(stmt)]

    # What is divided

    def share_of(self, value: Expr) -> Share | None:
        return self.shares.get(value) if isinstance(value, Var) else None

    def _made(self, var: Var, value: Expr, share: Share | None) -> Var:
        """The variable that now holds ``value`` for ``var``."""
        kind = value.type if isinstance(value.type, TileType) else self.rewrite_type(var.type)
        made = var if kind == var.type else Var(var.name_hint, kind, var.span)
        if made is not var:
            self.vars[var] = made
        if share is not None:
            self.shares[var] = self.shares[made] = share
        return made

    def _assign(self, stmt: AssignStmt) -> list[Stmt]:
        call = stmt.value
        if not isinstance(call, Call) or call.op.decl is None:
            value = self.rewrite(call)
            share = self.share_of(value) if isinstance(value, Var) else None
            return [stmt.replace(value=value, var=self._made(stmt.var, value, share))]
        affinity = call_affinity(call)
        if affinity is Affinity.MIXED and call.op.name == "tile.move":
            return self._crossing(stmt, call)
        if not isinstance(stmt.var.type, TileType):
            return [stmt.replace(value=self._evaluated(call), var=self.define(stmt.var))]
        if affinity is Affinity.CUBE:
            return [stmt.replace(value=self._whole(call), var=self.define(stmt.var))]
        return self._computed(stmt, call)

    def _whole(self, call: Call) -> Expr:
        """A call whose operands nobody divides."""
        made = self.rewrite(call)
        divided = next((a for a in made.args if self.share_of(a) is not None), None)
        if divided is not None:
            raise rules.refuse(call, f"needs all of {written_name(divided.name_hint)!r}, which the lanes divide",
                               "gather it first: pl.move it to the cube's memory")  # fmt: skip
        return made

    def _evaluated(self, value: Expr) -> Expr:
        """What is evaluated for its effect, or to a value that is no tile."""
        if not isinstance(value, Call) or value.op.name != "tile.store":
            return self._whole(value) if isinstance(value, Call) else self.rewrite(value)
        share = self.share_of(self.rewrite(value.args[0]))
        return rules.store(self.rewrite(value), share, self.lane)

    def _crossing(self, stmt: AssignStmt, call: Call) -> list[Stmt]:
        source = self.rewrite(call.args[0])
        kind = tile_type_of(stmt.var)
        size = extent_of(kind, self.axis)
        if space_of(source) is not MemorySpace.Vec:
            if size is None or size == 1:
                raise rules.refuse(call, f"brings a tile to the lanes that they cannot divide: its axis {self.axis} is "
                                   f"{'not constant' if size is None else '1'}", rules.WHOLE)  # fmt: skip
            if space_of(source) is MemorySpace.Acc:
                return self._shard_whole(stmt, source, size)
            return [self._shard(stmt, source, size)]
        share = self.share_of(source)
        if share is None:
            raise rules.refuse(
                call,
                f"carries a full-width vector operand {written_name(getattr(source, 'name_hint', 'value'))!r} to the "
                "cube: only what the lanes have a part of can be joined",
                "load or compute it in the kernel that is split",
            )
        full = extent_of(kind, share.axis)
        if full != 2 * share.half or share.stride != share.half:
            message = f"joins lanes' parts of {full} cells, which are not equal"
            raise rules.refuse(call, message, "pad the axis to an even extent")
        return self._gather(stmt, call, source, share)

    def _gather(self, stmt: AssignStmt, call: Call, source: Expr, share: Share) -> list[Stmt]:
        """Lanes' parts are joined whole, and the tile is then seen as what is valid of it."""
        part, kind, made = tile_type_of(source), tile_type_of(stmt.var), list[Stmt]()
        if not is_whole(part) and isinstance(source, Var):
            made, source = arranged(source, self.target, call.span)
            source = self._bound(made, source, build("tile.set_validshape", source, *part.shape, span=call.span))
        gather = build("tile.aic_gather", source, split=share.axis + 1, span=call.span)
        joined = Var(f"{stmt.var.name_hint}_mat", gather.type, call.span)
        made.append(AssignStmt(joined, gather, call.span))
        valid = [self.rewrite(d) for d in kind.valid_shape]
        if not all(same(v, d) for v, d in zip(valid, kind.shape)):
            joined = self._bound(made, joined, build("tile.set_validshape", joined, *valid, span=call.span))
        moved = call.replace(args=NodeList([joined]))
        return [*made, stmt.replace(value=moved, var=self.define(stmt.var))]

    def _bound(self, stmts: list[Stmt], tile: Expr, shown: Call) -> Var:
        var = Var(tile.name_hint if isinstance(tile, Var) else "tile", shown.type, shown.span)
        stmts.append(AssignStmt(var, shown, shown.span))
        return var

    def _shard(self, stmt: AssignStmt, source: Expr, size: int) -> Stmt:
        share = self.lane.share(self.axis, size)
        uneven = {} if share.stride == share.half else {"lane_stride": share.stride}
        shard = build("tile.aiv_shard", source, split=self.mode.value, span=stmt.value.span, **uneven)
        full = tile_type_of(source)
        flat = TileType(full.shape, full.dtype, None, None, MemorySpace.Vec)
        view = flat.get_effective_tile_view().replace(valid_shape=full.valid_shape)
        part = self.lane.part(TileType(full.shape, full.dtype, None, view, MemorySpace.Vec), share)
        made = shard.replace(type=part)
        return stmt.replace(value=made, var=self._made(stmt.var, made, share))

    def _shard_whole(self, stmt: AssignStmt, source: Expr, size: int) -> list[Stmt]:
        """A product is handed over whole, and then seen as what is valid of the lane's part."""
        share = self.lane.share(self.axis, size)
        full, span = tile_type_of(source), stmt.value.span
        rows = full.valid_shape[0] if self.axis else full.shape[0]
        seen = (rows, full.shape[1])
        stmts: list[Stmt] = []
        if not all(same(v, d) for v, d in zip(full.valid_shape, seen)):
            source = self._bound(stmts, source, build("tile.set_validshape", source, *seen, span=span))
        shard = build("tile.aiv_shard", source, split=self.mode.value, span=span)
        kind = self.rewrite_type(tile_type_of(stmt.var))
        if not isinstance(kind, TileType):
            raise InternalError("what crosses is no tile", span)
        part = self.lane.part(kind, share)
        if part == shard.type:
            return [*stmts, stmt.replace(value=shard, var=self._made(stmt.var, shard, share))]
        landed = Var(f"{stmt.var.name_hint}_part", shard.type, span)
        shown = build("tile.set_validshape", landed, *part.valid_shape, span=span).replace(type=part)
        seen_as = stmt.replace(value=shown, var=self._made(stmt.var, shown, share))
        return [*stmts, AssignStmt(landed, shard, span), seen_as]

    def _computed(self, stmt: AssignStmt, call: Call) -> list[Stmt]:
        made = self.rewrite(call)
        shares = [self.share_of(a) for a in made.args]
        found = self._divided(call, made, shares)
        if found is None:
            return self._undivided(stmt, call, made, shares)
        value, share = found
        return [stmt.replace(value=value, var=self._made(stmt.var, value, share))]

    def _divided(self, call: Call, made: Call, shares: rules.Shares) -> tuple[Call, Share] | None:
        """The call on the lane's part; None when there is nothing to divide."""
        name, first = call.op.name, shares[0] if shares else None
        decl = decl_of(call)
        if decl is None:
            raise InternalError("a tile operator without a declaration", call.span)
        if name == "tile.load":
            return rules.load(made, self.lane, self.axis)
        if name == "tile.slice":
            return rules.slice_(made, first, self.lane, self.axis)
        if name in rules.GENERATORS:
            return rules.generate(made, self.lane, self.axis) if space_of(call) is MemorySpace.Vec else None
        self._check(call)
        if all(s is None for s in shares):
            return None
        if name == "tile.reshape" and first is not None:
            return rules.migrated(made, tile_type_of(call.args[0]), first, self.lane)
        if name == "tile.reinterpret_view" and first is not None:
            return rules.reinterpret(made, first, self.lane, call)
        if name == "tile.set_validshape" and first is not None:
            return rules.set_validshape(made, first, self.lane)
        return rules.cellwise(made, shares, decl, self.lane, self.axis)

    def _check(self, call: Call) -> None:
        """Raises KernelValueError for what cannot be divided at all."""
        kind = tile_type_of(call)
        name = call.op.name
        if name in rules.POSITIONAL and extent_of(kind, self.axis) != 1:
            raise rules.refuse(call, "numbers the cells of its tile, which automatic split-axis halving cannot divide",
                               rules.WHOLE)  # fmt: skip
        source = next((a.type for a in call.args if isinstance(a.type, TileType)), None)
        if source is None or extent_of(source, self.axis) == 1:
            return
        if rules.reduces(name, self.axis):
            raise rules.refuse(call, "reduces on the split axis: each lane has half of it",
                               "split the other axis, or leave the kernel whole")  # fmt: skip
        if name == "tile.transpose":
            raise transposed(call, self.mode)

    def _undivided(self, stmt: AssignStmt, call: Call, made: Call, shares: rules.Shares) -> list[Stmt]:
        """A call each lane makes in full; of a view, each then takes its part."""
        size = extent_of(tile_type_of(call), self.axis)
        if call.op.name not in _VIEWS or size is None or size == 1 or not isinstance(stmt.var.type, TileType):
            return [stmt.replace(value=made, var=self._made(stmt.var, made, None))]
        kind = tile_type_of(call)
        share = self.lane.share(self.axis, size)
        part = self.lane.part(kind, share)
        begin = self.lane.begin(share)
        offsets: list[Expr] = [begin if i == self.axis else index_const(0) for i in range(len(kind.shape))]
        window = build("tile.slice", stmt.var, list(part.shape), offsets, span=call.span)
        result = Var(f"{stmt.var.name_hint}_part", window.type, stmt.var.span)
        self.vars[stmt.var] = result
        self.shares[stmt.var] = self.shares[result] = share
        return [stmt.replace(value=made), AssignStmt(result, window, call.span)]

    # Control flow

    def _carried(self, variables: Iterable[Any], values: Sequence[Expr]) -> list[Any]:
        """Variables that receive ``values``, as whole or divided as those are."""
        made: list[Any] = []
        for var, value in zip(variables, values):
            share = self.share_of(value)
            if share is None:
                made.append(self.define(var))
                continue
            kind = self.lane.part(tile_type_of(var), share)
            new = IterArg(var.name_hint, kind, value, var.span) if isinstance(var, IterArg) else Var(
                var.name_hint, kind, var.span
            )  # fmt: skip
            self.vars[var] = new
            self.shares[var] = self.shares[new] = share
            made.append(new)
        return made

    def _loop(self, stmt: Any) -> Stmt:
        changes = {c: self.rewrite(getattr(stmt, c)) for c in ("start", "stop", "step") if isinstance(stmt, ForStmt)}
        carried = self._carried(stmt.iter_args, [self.rewrite(a.init_value) for a in stmt.iter_args])
        if isinstance(stmt, WhileStmt):
            changes["condition"] = self.rewrite(stmt.condition)
        changes["body"] = self.body(stmt.body, carried)
        return stmt.replace(
            **changes,
            iter_args=updated(stmt.iter_args, carried),
            return_vars=updated(stmt.return_vars, self._carried(stmt.return_vars, carried)),
        )

    def _branch(self, stmt: IfStmt) -> Stmt:
        condition = self.rewrite(stmt.condition)
        then_body = self.body(stmt.then_body)
        else_body = None if stmt.else_body is None else self.body(stmt.else_body)
        ends = [_yielded(b) for b in (then_body, else_body) if b is not None]
        for values in zip(*ends):
            self._check_meeting(values[0], values[-1], stmt)
        results = self._carried(stmt.return_vars, ends[0] if ends and stmt.return_vars else [])
        results = updated(stmt.return_vars, results)
        return stmt.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)

    def _check_meeting(self, a: Expr, b: Expr, at: Stmt) -> None:
        if self.share_of(a) != self.share_of(b):
            name = next((written_name(v.name_hint) for v in (a, b) if isinstance(v, Var)), "value")
            raise user_error(
                ValueError,
                f"{name!r} is divided between the lanes on one way and whole on another",
                at.span,
                "make both from what the lanes divide, such as a load in the kernel",
            )

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        values = [self.rewrite(v) for v in op.values]
        for value, target in zip(values, self._targets[-1] if self._targets else ()):
            if isinstance(target.type, TileType):
                self._check_meeting(target, value, op)
        return op.replace(values=updated(op.values, values))


def _yielded(body: Stmt) -> Sequence[Expr]:
    last = last_yield(body)
    return last.values if last is not None else ()
