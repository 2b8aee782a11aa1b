"""Gives every tile its memory and inserts the moves that takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InternalError, user_error
from ...ir.enums import CompactMode, MemorySpace, TileLayout
from ...ir.expr import Call, Expr, IterArg, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.node import EMPTY, NodeList
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt, flatten_to_stmts, seq
from ...ir.types import TileType, implicit_layout, static_dims
from ...ops.registry import decl_of, rebind
from ...ops.rules import same
from ..acc_windows import acc_windows
from ..convert_tensor_to_tile_ops.rewrite import MAT_BRIDGE
from ..core_affinity import space_of
from ..emitting import EmittingRewriter, build, reinfer
from .demand import Allowed, Demands, beside, is_tile, wanted
from .moves import Moves, is_crossing
from .reloads import Reloads

VEC, MAT = MemorySpace.Vec, MemorySpace.Mat
_ANY = (VEC, MAT, MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Bias)
_CANDIDATES = {"tile.load": (VEC, MAT), "tile.create": _ANY}
"""Operators whose result may be put where its consumers want it, with the memories they reach."""


def in_space(kind: TileType, space: MemorySpace) -> TileType:
    """``kind`` in ``space``; a layout that was only implied by the old memory becomes the new one's."""
    view = kind.tile_view
    if kind.memory_space is space:
        return kind
    if view is not None:
        old = implicit_layout(kind.shape, kind.memory_space)
        if (view.blayout, view.slayout, view.fractal) == old:
            blayout, slayout, fractal = implicit_layout(kind.shape, space)
            view = view.replace(blayout=blayout, slayout=slayout, fractal=fractal, stride=EMPTY)
    return TileType(kind.shape, kind.dtype, None, view, space)


def _lying_as(kind: TileType, other: TileType) -> TileType:
    """``kind`` in the layout of ``other``, which flows into it."""
    view, like = kind.get_effective_tile_view(), other.get_effective_tile_view()
    compact = like.compact if kind.memory_space is MemorySpace.Acc else view.compact
    wanted = view.replace(blayout=like.blayout, slayout=like.slayout, fractal=like.fractal, compact=compact)
    if wanted == view:
        return kind
    view = wanted
    return TileType(kind.shape, kind.dtype, None, view, kind.memory_space)


class Placer(EmittingRewriter):
    """Resolves memories in program order; demands were collected beforehand."""

    def __init__(self, function: Function, moves: Moves) -> None:
        super().__init__()
        self.moves = moves
        self.demands = Demands(function)
        self.reloads = Reloads(function)
        self.windows = acc_windows(function)
        self.marked = False
        """Whether the function has loads that another pass made."""
        self._moved: dict[tuple[Var, MemorySpace], Var] = {}
        """Copies at hand in the current region, by source and memory."""
        self._targets: list[Sequence[Var]] = []

    def _region(self, body: Stmt | None, targets: Sequence[Var]) -> Stmt | None:
        """A body whose copies are not visible after it."""
        if body is None:
            return None
        outer = self._moved
        self._moved = dict(outer)
        self._targets.append(targets)
        made = self.rewrite(body)
        self._targets.pop()
        self._moved = outer
        return made

    def move(self, value: Expr, allowed: Allowed, what: str | None = None) -> Expr:
        """``value``, already rewritten, in one of ``allowed``."""
        space = _space(value)
        if space in allowed:
            return value
        path = self.moves.nearest(space, allowed) or self.moves.asked(space, allowed)
        if path is None:
            raise self.moves.refuse(what or _named(value), space, allowed, self.span)
        for step in path:
            value = self._step(value, step)
        return value

    def _step(self, value: Expr, space: MemorySpace) -> Expr:
        known = self._moved.get((value, space)) if isinstance(value, Var) else None
        if known is not None:
            return known
        again = self._again(value, space)
        if again is not None:
            return self._copied(value, space, again)
        layout: dict[str, Any] = {}
        if space is VEC and _space(value) is MemorySpace.Acc:
            layout = {"blayout": TileLayout.row_major, "slayout": TileLayout.none_box}
        return self._copied(value, space, build("tile.move", value, span=self.span, target_memory=space, **layout))

    def _again(self, value: Expr, space: MemorySpace) -> Call | None:
        """What makes ``value`` in ``space`` without a move: a second load, or an empty tile for an empty one."""
        if self.moves.is_reload(_space(value), space):
            return self.reloads.again(value, self.span)
        return self.reloads.empty(value, space, self.span) if is_crossing(_space(value), space) else None

    def _copied(self, value: Expr, space: MemorySpace, call: Call) -> Expr:
        made = self.emit(f"{value.name_hint if isinstance(value, Var) else 'value__tile'}_{space.name}", call)
        if isinstance(value, Var):
            self._moved[value, space] = made
        return made

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        value = op.value
        made = self._call(value, op.var) if isinstance(value, Call) else self.rewrite(value)
        if not isinstance(made.type, TileType):
            return op.replace(value=made, var=self.define(op.var))
        var = self._defined(op.var, made.type)
        if isinstance(value, Call) and isinstance(made, Call) and made.op.name in ("tile.load", "tile.create"):
            self.reloads.note(var, made, value.args[0])
        return op.replace(value=made, var=var)

    def _defined(self, var: Var, kind: TileType) -> Var:
        if kind == var.type:
            return self.define(var)
        made = self.vars[var] = Var(var.name_hint, kind, var.span)
        return made

    def visit_call(self, op: Call) -> Expr:
        return self._call(op, None)

    def _call(self, op: Call, result: Var | None) -> Expr:
        decl = decl_of(op)
        self.marked |= MAT_BRIDGE in op.attrs
        if decl is None or not (is_tile(op) or any(is_tile(a) for a in op.args)):
            return self.generic(op)
        if any(isinstance(a, Var) and a in self.windows for a in op.args):
            return self._placed(self._with_args(op, self.rewrite_list(op.args, self.rewrite)), result)
        args: list[Expr] = []
        for i, arg in enumerate(op.args):
            made = self.rewrite(arg)
            allowed = wanted(decl, i) if i < len(decl.args) and is_tile(made) else ()
            args.append(self.move(made, allowed) if allowed else made)
        if decl.name == "tile.assemble" and _space(args[0]) is VEC and is_crossing(_space(args[1]), VEC):
            args[1] = self.move(args[1], (VEC,))
        wants = self.demands.of(result) if result is not None else []
        accumulates = (MemorySpace.Acc,) in wants
        if args and not accumulates and _space(args[0]) is MemorySpace.Acc and self._needs_copy(op, args[0]):
            args[0] = self.move(args[0], (VEC,))
        call = self._with_args(op, args)
        if not isinstance(call.type, TileType):
            return call
        return self._placed(call, result)

    def _needs_copy(self, op: Call, tile: Expr) -> bool:
        """Whether a view of a product is not one in Acc, where columns of boxes are as high as what is valid."""
        if op.op.name == "tile.slice":
            return not _spans_rows(op)
        if op.op.name != "tile.set_validshape" or self.reloads.is_empty(tile):
            return False
        return not _is_one_box(tile) and not same(tile_type_of(tile).valid_shape[0], op.args[1])

    def _with_args(self, op: Call, args: Sequence[Expr]) -> Call:
        if all(a is b for a, b in zip(args, op.args)):
            return op.replace(attrs=self.rewrite_mapping(op.attrs)) if op.attrs else op
        retyped = any(is_tile(a) and a.type != b.type for a, b in zip(args, op.args))
        made = reinfer(op, args) if retyped else op.replace(args=type(op.args)(args))
        return made.replace(attrs=self._attrs(op, args)) if op.attrs else made

    def _attrs(self, op: Call, args: Sequence[Expr]) -> dict[str, Any]:
        """Attributes that name an argument name what it became, every copy of it."""
        made: dict[str, Any] = {}
        for key, value in op.attrs.items():
            if isinstance(value, (list, tuple)) and any(isinstance(v, Var) for v in value):
                value = type(value)(n for v in value for n in self._now(v, op.args, args))
            made[key] = value
        return self.rewrite_mapping(made)

    def _now(self, var: Any, before: Sequence[Expr], after: Sequence[Expr]) -> list[Any]:
        found: list[Any] = []
        for old, new in zip(before, after):
            if old is var and not any(new is f for f in found):
                found.append(new)
        return found or [var]

    def _placed(self, call: Call, result: Var | None) -> Call:
        """``call`` with its result's memory decided."""
        decl = decl_of(call)
        if decl is None:
            raise InternalError("a tile operator without a declaration", call.span)
        kind = tile_type_of(call)
        space = decl.result_space
        if isinstance(space, str) and decl.param(space).is_attr:
            return self._by_attribute(call, space, result)
        shared = beside(decl)
        if shared is not None:
            made = in_space(kind, _space(call.args[decl.arg_index(shared)]))
            return call.replace(type=_packed(made) if decl.name == "tile.set_validshape" else made)
        return call.replace(type=in_space(kind, space if isinstance(space, MemorySpace) else kind.memory_space or VEC))

    def _by_attribute(self, call: Call, attribute: str, result: Var | None) -> Call:
        stated = rebind(call)[attribute]
        wants = self.demands.of(result) if result is not None else []
        candidates = _CANDIDATES.get(call.op.name)
        # Vec is what a load or create says when its author said nothing, so consumers may overrule it.
        if candidates is None or stated not in (None, VEC):
            space = stated or VEC
        else:
            space = self.moves.cheapest(candidates, wants)
        if call.op.name == "tile.move":
            again = self.reloads.again(call.args[0], call.span) if self._is_reload(call, space) else None
            if again is not None:
                return again
            self._check_move(call, space)
        if call.op.name == "tile.create" and space is MAT and result in self.demands.turned:
            kwargs = {**call.kwargs, attribute: space, "transpose": True}
            return build(call.op.name, *call.args, span=call.span, **kwargs)
        made = call if space is stated else call.replace(kwargs={**call.kwargs, attribute: space})
        return made.replace(type=in_space(tile_type_of(call), space))

    def _is_reload(self, call: Call, space: MemorySpace) -> bool:
        """Whether a written move is a second load. It is not where it asks for the fractals of the cube."""
        plain = (None, TileLayout.row_major), (None, TileLayout.none_box)
        asked = call.kwargs.get("blayout"), call.kwargs.get("slayout")
        return self.moves.is_reload(_space(call.args[0]), space) and all(a in p for a, p in zip(asked, plain))

    def _check_move(self, call: Call, space: MemorySpace) -> None:
        source = _space(call.args[0])
        path = self.moves.path(source, space)
        if path is None:
            raise self.moves.refuse(_named(call.args[0]), source, (space,), call.span)
        if len(path) > 1 and not self.moves.crosses((source, *path)):
            raise user_error(
                ValueError,
                f"no instruction moves {_named(call.args[0])} from {source.name} to {space.name} at once",
                call.span,
                f"move it in steps: {' -> '.join(s.name for s in (source, *path))}",
            )

    def rewrite_for(self, op: ForStmt) -> Stmt:
        carried = self.rewrite_list(op.iter_args, self._carry)
        body = self._region(op.body, carried)
        return op.replace(
            start=self.rewrite(op.start),
            stop=self.rewrite(op.stop),
            step=self.rewrite(op.step),
            iter_args=carried,
            body=body,
            return_vars=self._results(op.return_vars, carried),
            attrs=self.rewrite_mapping(op.attrs),
        )

    def rewrite_while(self, op: WhileStmt) -> Stmt:
        carried = self.rewrite_list(op.iter_args, self._carry)
        condition = self.rewrite(op.condition)
        body = self._region(op.body, carried)
        results = self._results(op.return_vars, carried)
        return op.replace(iter_args=carried, condition=condition, body=body, return_vars=results)

    def _carry(self, arg: IterArg) -> Var:
        if not is_tile(arg):
            return self.define(arg)
        init = self.rewrite(arg.init_value)
        kind = _lying_as(in_space(tile_type_of(arg), _space(init)), tile_type_of(init))
        if init is arg.init_value and kind == arg.type:
            return arg
        made = self.vars[arg] = IterArg(arg.name_hint, kind, init, arg.span)
        return made

    def _results(self, variables: Any, sources: Sequence[Expr]) -> Any:
        made = [
            self._defined(v, _lying_as(in_space(v.type, _space(s)), tile_type_of(s))) if is_tile(v) else self.define(v)
            for v, s in zip(variables, sources)
        ]
        return variables if all(a is b for a, b in zip(made, variables)) else type(variables)(made)

    def rewrite_yield(self, op: YieldStmt) -> Stmt:
        targets = self._targets[-1] if self._targets else ()
        values = []
        for i, value in enumerate(op.values):
            made = self.rewrite(value)
            if i < len(targets) and is_tile(targets[i]) and space_of(targets[i]) is not None:
                made = self.move(made, (_space(targets[i]),))
                _check_packing(made, targets[i], self.span)
            values.append(made)
        return op if all(a is b for a, b in zip(values, op.values)) else op.replace(values=type(op.values)(values))

    def rewrite_if(self, op: IfStmt) -> Stmt:
        condition = self.rewrite(op.condition)
        then_body = self._region(op.then_body, ())
        else_body = self._region(op.else_body, ())
        if not any(is_tile(v) for v in op.return_vars):
            results = self._results(op.return_vars, op.return_vars)
            return op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)
        if then_body is None or else_body is None:
            raise InternalError("an if with results needs two branches", op.span)
        then_values, else_values = _yielded(then_body), _yielded(else_body)
        joint = [self._joint(a, b) if is_tile(a) else a for a, b in zip(then_values, else_values)]
        then_body, else_body = self._meet(then_body, joint), self._meet(else_body, joint)
        for a, b in zip(_yielded(then_body), _yielded(else_body)):
            _check_packing(a, b, op.span)
        results = self._results(op.return_vars, joint)
        return op.replace(condition=condition, then_body=then_body, else_body=else_body, return_vars=results)

    def _joint(self, a: Expr, b: Expr) -> Expr:
        """Whichever of two branch results is where the other can be moved."""
        return a if self.moves.path(_space(b), _space(a)) is not None else b

    def _meet(self, body: Stmt, joint: Sequence[Expr]) -> Stmt:
        """A branch that yields its tiles where ``joint`` has them."""
        *stmts, last = flatten_to_stmts(body)
        given = _yielded(body)
        outer, self._moved = self._moved, {}
        emitted, values = self.collect(
            lambda: [
                self.move(v, (_space(j),), f"{_named(v)}, the result of one branch,")
                if is_tile(v)
                else v
                for v, j in zip(given, joint)
            ]
        )
        self._moved = outer
        if not emitted:
            return body
        return seq([*stmts, *emitted, last.replace(values=NodeList(values))], body.span)


def _name(value: Expr) -> str:
    return written_name(value.name_hint) if isinstance(value, Var) else "value"


def _named(value: Expr) -> str:
    return repr(_name(value)) if isinstance(value, Var) else "the tile"



def _packed(kind: TileType) -> TileType:
    """An accumulator without contents as a product of its valid rows would make it."""
    if kind.memory_space is not MemorySpace.Acc or len(kind.shape) != 2:
        return kind
    compact = CompactMode.null if same(kind.valid_shape[0], kind.shape[0]) else CompactMode.normal
    return kind.replace(tile_view=kind.get_effective_tile_view().replace(compact=compact))


def _is_one_box(tile: Expr) -> bool:
    """Whether the rows of a tile are those of one box, so that packing them changes nothing."""
    rows = static_dims(tile_type_of(tile).shape[:1])
    return rows is not None and rows[0] <= 16


def _check_packing(a: Expr, b: Expr, span: Span) -> None:
    """Refuse accumulators that meet where one lies in boxes of all its rows, the other in those of valid rows."""
    if not is_tile(a) or not is_tile(b) or not _space(a) is _space(b) is MemorySpace.Acc or _is_one_box(a):
        return
    if tile_type_of(a).get_effective_tile_view().compact is tile_type_of(b).get_effective_tile_view().compact:
        return
    raise user_error(
        ValueError,
        f"{_named(b)} is a product of all rows or of some, and the two lie differently in Acc",
        a.span if a.span.is_valid() else span,
        "make the ragged operand whole before the product: pl.fillpad(x, pad_value=pl.PadValue.zero)",
    )


def _spans_rows(cut: Call) -> bool:
    """Whether a slice takes all rows. Rows of a product lie in columns of boxes: fewer are no view of its buffer."""
    source, made = tile_type_of(cut.args[0]), tile_type_of(cut)
    return len(source.shape) == 2 and len(made.shape) == 2 and same(source.shape[0], made.shape[0])


def _space(value: Expr) -> MemorySpace:
    space = space_of(value)
    return VEC if space is None else space


def _yielded(body: Stmt) -> Sequence[Expr]:
    last = flatten_to_stmts(body)[-1]
    if not isinstance(last, YieldStmt):
        raise InternalError("a branch with results does not end in a yield", body.span)
    return last.values
