"""Valid regions where the values of a variable meet: after a branch, and around a loop.

What meets there may differ in its valid region. The variable then has what is valid whichever value it has, and the
others are narrowed to that, where they have no data further out, or nothing reads it: a tile or tensor that was
created, or a loop's first value where the loop only meets it with what is narrower. A region may depend on a scalar
that is computed inside the loop or branch from what is known outside: that computation moves out first.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from ..errors import user_error
from ..ir import expr as E
from ..ir.expr import Call, Expr, IterArg, Var, const_value
from ..ir.naming import versioned, written_name
from ..ir.node import NodeList
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from ..ir.types import ScalarType, TensorType, TileType, Type, same_but_region, with_region
from ..ir.visitor import Rewriter, Visitor, splice
from ..ops.registry import get_decl
from ..ops.rules import all_same, at_most, common_region, dims_text, same
from .bodies import trip_count
from .emitting import build, reinfer

_DIVIDES = (E.FloorDiv, E.FloorMod)
_CREATES = frozenset({"tensor.create", "tile.create"})
_FILLS = frozenset({"tensor.full", "tile.full"})
_NARROWS = frozenset({"tensor.set_validshape", "tile.set_validshape"})
_PLAIN = (E.Add, E.Sub, E.Mul, E.Min, E.Max, E.Cast, E.Neg)


def same_region(a: Any, b: Any) -> bool:
    """Whether two tensor or tile types have one valid region."""
    return a is b or all_same(a.valid_shape, b.valid_shape)


def has_regions(function: Function) -> bool:
    """Whether an assignment gives a variable a value of another valid region than the variable's type states."""
    finder = _Finder()
    finder.visit(function.body)
    return finder.found


def join_regions(function: Function) -> Function:
    """``function``, in SSA form, with one valid region for each value that branches return and loops carry.

    Raises KernelValueError for a region that only the loop or branch itself can tell, and where data would be lost.
    """
    joiner = _Joiner(function)
    made = function.replace(body=joiner.rewrite(function.body))
    if joiner.lost:
        raise joiner.loss()
    return made


class _Assignments(Visitor):
    """A visitor of assignments."""

    def visit_eval_stmt(self, op: Stmt) -> None:
        """Assigns nothing."""

    visit_return_stmt = visit_yield_stmt = visit_eval_stmt


class _Finder(_Assignments):
    def __init__(self) -> None:
        self.found = False

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        declared, actual = op.var.type, op.value.type
        if not self.found and declared is not actual and isinstance(declared, (TensorType, TileType)):
            self.found = same_but_region(declared, actual) and not same_region(declared, actual)


def _joined(a: Any, b: Any) -> Any:
    """The type of a value that has type ``a`` or type ``b``: ``a`` unless the valid region of ``b`` is smaller."""
    if a is b or not isinstance(a, (TensorType, TileType)) or not same_but_region(a, b) or same_region(a, b):
        return a
    region = common_region(a.valid_shape, b.valid_shape, a.shape)
    return a if all_same(region, a.valid_shape) else with_region(a, region)


def _is_wider(found: Type, wanted: Type) -> bool:
    return (
        found is not wanted
        and isinstance(wanted, (TensorType, TileType))
        and same_but_region(found, wanted)
        and not same_region(found, wanted)
    )


class _Joiner(Rewriter):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self._scalars = _Scalars(function)
        self._numbers: dict[str, int] = {}
        self._emitted: list[Stmt] = []
        """What goes before the assignment at hand."""
        self._yielded: Sequence[Expr] | None = None
        """What the body at hand yields."""
        self._made: dict[Expr, Expr] = {}
        """What variables are assigned, and carried ones start as."""
        self.lost: list[tuple[Expr, Type]] = []
        """Values with data outside the region they are narrowed to."""

    def loss(self) -> Exception:
        """The error for the first value whose data would be lost."""
        value, type = self.lost[0]
        made = self._made.get(value)
        return _loses(value, type, value.span if made is None else made.span)

    def _is_empty(self, value: Expr) -> bool:
        """Whether nothing was ever written to ``value`` outside of what it is narrowed to: it was only created."""
        made = self._made.get(value)
        if isinstance(made, Call):
            return made.op.name in _CREATES or (made.op.name in _NARROWS and self._is_empty(made.args[0]))
        return made is not None and self._is_empty(made)

    def visit_call(self, op: Call) -> Expr:
        made = self.generic(op)
        if made is op or op.op.decl is None or not isinstance(op.type, (TensorType, TileType)):
            return made
        if not any(_is_wider(a.type, b.type) for a, b in zip(op.args, made.args)):
            return made
        if made.op.decl.same_valid:
            made = made.replace(args=NodeList(self._alike(made.args)))
        type: Any = reinfer(made, made.args).type
        return made.replace(type=with_region(op.type, type.valid_shape) if same_but_region(op.type, type) else type)

    def _alike(self, args: Sequence[Expr]) -> list[Expr]:
        """Operands of one shape narrowed to what all of them hold."""
        kinds = [a.type for a in args if isinstance(a.type, TileType)]
        shape, region = kinds[0].shape, kinds[0].valid_shape
        for kind in kinds[1:]:
            if all_same(kind.shape, shape):
                region = common_region(region, kind.valid_shape, shape)
        made = list(args)
        for i, arg in enumerate(args):
            kind = arg.type
            if not isinstance(kind, TileType) or not all_same(kind.shape, shape):
                continue
            if not all_same(kind.valid_shape, region):
                made[i] = self._fresh("operand", with_region(kind, region), arg.span)
                self._emitted.append(_narrowing_stmt(made[i], arg))
        return made

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        value = self.rewrite(op.value)
        emitted, self._emitted = self._emitted, []
        made = op.replace(value=value, var=self._retyped(op.var, value.type))
        self._made[made.var] = value
        return [*emitted, made] if emitted else made

    def _retyped(self, var: Any, type: Type) -> Any:
        """``var`` with the valid region of ``type``."""
        if not _is_wider(var.type, type):
            self.vars.pop(var, None)
            return var
        made = self.vars[var] = Var(var.name_hint, type, var.span)
        return made

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        made = self.generic(op)
        self._yielded = made.values
        return made

    def _body(self, body: Stmt | None) -> tuple[Any, Sequence[Expr]]:
        self._yielded = None
        made = self.rewrite(body) if body is not None else None
        yielded, self._yielded = self._yielded, None
        return made, yielded or ()

    def visit_if_stmt(self, op: IfStmt) -> Any:
        before: list[Stmt] = []
        while True:
            condition = self.rewrite(op.condition)
            then_body, here = self._body(op.then_body)
            else_body, there = self._body(op.else_body)
            pairs = [(a.type, b.type) for a, b in zip(here, there)]
            types = [_joined(*pair) for pair in pairs]
            hoisted = self._ahead(types, pairs, there, (then_body, else_body), "branch")
            if not hoisted:
                break
            before += hoisted
            op = _Without(hoisted).rewrite(op)
        results = [self._retyped(v, t) for v, t in zip(op.return_vars, types)] if types else op.return_vars
        made = op.replace(
            condition=condition,
            then_body=self._narrowing(then_body, here, types, op.return_vars),
            else_body=self._narrowing(else_body, there, types, op.return_vars),
            return_vars=_list_like(op.return_vars, results),
        )
        return [*before, made] if before else made

    def visit_for_stmt(self, op: ForStmt) -> Any:
        bounds = {"start": self.rewrite(op.start), "stop": self.rewrite(op.stop), "step": self.rewrite(op.step)}
        return self._loop(op, {**bounds, "attrs": self.rewrite_mapping(op.attrs) if op.attrs else op.attrs})

    def visit_while_stmt(self, op: WhileStmt) -> Any:
        return self._loop(op, {})

    def _loop(self, op: Any, changes: dict[str, Any]) -> Any:
        """The loop; its body is seen again where an iteration narrows what it carries, until none does."""
        before: list[Stmt] = []
        inits = [self.rewrite(a.init_value) for a in op.iter_args]
        types = [i.type if same_but_region(a.type, i.type) else a.type for a, i in zip(op.iter_args, inits)]
        lost = len(self.lost)
        while True:
            del self.lost[lost:]
            starts = [self._narrowed(a, i, t) for a, i, t in zip(op.iter_args, inits, types)]
            args = [self._carried(a, s, t) for a, s, t in zip(op.iter_args, starts, types)]
            self._made.update(zip(args, inits))
            if isinstance(op, WhileStmt):
                changes["condition"] = self.rewrite(op.condition)
            body, yielded = self._body(op.body)
            pairs = [(t, v.type) for t, v in zip(types, yielded)]
            wanted = [_joined(*pair) for pair in pairs]
            inside = (*op.iter_args, *args, op.loop_var) if isinstance(op, ForStmt) else (*op.iter_args, *args)
            hoisted = self._ahead(wanted, pairs, yielded, (body,), "loop", inside)
            if hoisted:
                before += hoisted
                op = _Without(hoisted).rewrite(op)
            elif any(a is not b for a, b in zip(types, wanted)):
                types = wanted
            else:
                break
        for arg, start, init in zip(args, starts, inits):
            if start is not init:
                before.append(_narrowing_stmt(start, init))
                self._check_start(op, arg, init, body)
        made = op.replace(
            **changes,
            iter_args=_list_like(op.iter_args, args),
            body=self._narrowing(body, yielded, types, op.return_vars),
            return_vars=_list_like(op.return_vars, [self._retyped(v, t) for v, t in zip(op.return_vars, types)]),
        )
        return [*before, made] if before else made

    def _check_start(self, loop: ForStmt | WhileStmt, arg: IterArg, init: Expr, body: Any) -> None:
        """Note a first value whose data outside the narrowed region the loop, or what follows it, may read."""
        met = _Meetings(arg)
        met.visit(body)
        constant = isinstance(made := self._made.get(init), Call) and made.op.name in _FILLS
        if not self._is_empty(init) and (met.others or not (constant or trip_count(loop))):
            self.lost.append((init, arg.type))

    def _narrowed(self, arg: Var, init: Expr, type: Type) -> Expr:
        return self._fresh(arg.name_hint, type, arg.span) if _is_wider(init.type, type) else init

    def _fresh(self, name: str, type: Type, span: Span) -> Var:
        """A variable for what is narrowed."""
        base = written_name(name)
        number = self._numbers.get(base, 0)
        self._numbers[base] = number + 1
        return Var(versioned(base, "valid", number), type, span)

    def _carried(self, arg: IterArg, start: Expr, type: Type) -> IterArg:
        if start is arg.init_value and not _is_wider(arg.type, type):
            self.vars.pop(arg, None)
            return arg
        made = IterArg(arg.name_hint, type, start, arg.span)
        self.vars[arg] = made
        return made

    def _narrowing(self, body: Any, values: Sequence[Expr], types: Sequence[Type], variables: Sequence[Var]) -> Any:
        """``body`` yielding ``values`` narrowed to ``types``."""
        made, narrowed = list(values), []
        for i, (value, type) in enumerate(zip(values, types)):
            if _is_wider(value.type, type):
                var = made[i] = self._fresh(variables[i].name_hint, type, value.span)
                narrowed.append(_narrowing_stmt(var, value))
                if not self._is_empty(value):
                    self.lost.append((value, type))
        return _yielding(body, made, narrowed) if narrowed else body

    def _ahead(
        self,
        types: Sequence[Type],
        pairs: Sequence[tuple[Type, Type]],
        values: Sequence[Any],
        bodies: Iterable[Stmt | None],
        inside: str,
        own: Iterable[Var] = (),
    ) -> list[Stmt]:
        """Scalars that joined types mention and ``bodies`` compute, to be computed before. Refuses what cannot be.

        ``own`` is what the loop defines besides.
        """
        uneven = [i for i, (t, pair) in enumerate(zip(types, pairs)) if t.symbolic and _is_wider(*pair)]
        if not uneven:
            return []
        defined = _Defined(own)
        for body in bodies:
            if body is not None:
                defined.visit(body)
        found: dict[AssignStmt, None] = {}
        for i in uneven:
            mentioned = _Mentioned()
            types[i]._visit_children(mentioned)
            ahead = self._scalars.before(mentioned.found, defined.found)
            if ahead is None:
                raise _refused(values[i], *pairs[i], inside, span=defined.spans.get(values[i]))
            found.update(dict.fromkeys(ahead))
        return list(found)


class _Meetings(Visitor):
    """Uses of a carried value other than as an operand beside one that is valid no further than it."""

    def __init__(self, arg: IterArg) -> None:
        self._arg = arg
        self.others = 0

    def visit_var(self, op: Var) -> None:
        self.others += op is self._arg

    def visit_call(self, op: Call) -> None:
        if not (_narrows_operands(op) and any(a is not self._arg and self._bounds(a) for a in op.args)):
            self.generic(op)

    def _bounds(self, other: Expr) -> bool:
        kind, own = other.type, self._arg.type
        if not isinstance(kind, (TensorType, TileType)) or not isinstance(own, (TensorType, TileType)):
            return False
        pairs = zip(kind.valid_shape, kind.shape, own.valid_shape, own.shape)
        return len(kind.shape) == len(own.shape) and all(
            same(a, b) or at_most(a, b) or same(b, extent) or (const_value(size) == 1 and same(b, extent))
            for a, size, b, extent in pairs
        )


def _narrows_operands(call: Call) -> bool:
    """Whether an operator's result is valid only where all of its operands are."""
    decl = call.op.decl
    form = None if decl is None or decl.tile_form is None else get_decl(decl.tile_form)
    return any(d is not None and d.same_valid for d in (decl, form))


class _Defined(Visitor):
    """Variables that statements define."""

    def __init__(self, own: Iterable[Var]) -> None:
        self.found: set[Var] = set(own)
        self.spans: dict[Var, Span] = {}

    def define(self, var: Any) -> None:
        self.found.add(var)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.found.add(op.var)
        self.spans[op.var] = op.span


class _Mentioned(Visitor):
    """Variables an expression or type mentions, in order."""

    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var(self, op: Var) -> None:
        self.found[op] = None


class _Scalars(_Assignments):
    """Scalar arithmetic of a function that may be done earlier than where it stands."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._known: dict[Var, AssignStmt] | None = None

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if self._known is not None and isinstance(op.var.type, ScalarType) and _is_arithmetic(op.value):
            self._known[op.var] = op

    def before(self, wanted: Iterable[Var], inside: Container[Var]) -> list[AssignStmt] | None:
        """What to compute ahead for ``wanted``, in order, where ``inside`` is what the statement defines.

        None when one of them depends on more than scalars from outside.
        """
        if self._known is None:
            self._known = {}
            self.visit(self._function.body)
        found: dict[AssignStmt, None] = {}
        return list(found) if all(self._add(var, inside, found) for var in wanted) else None

    def _add(self, var: Var, inside: Container[Var], found: dict[AssignStmt, None]) -> bool:
        stmt = (self._known or {}).get(var)
        if var not in inside or stmt in found:
            return True
        if stmt is None:
            return False
        operands = _Mentioned()
        operands.visit(stmt.value)
        if not all(self._add(v, inside, found) for v in operands.found):
            return False
        found[stmt] = None
        return True


def _is_arithmetic(value: Any) -> bool:
    """Whether ``value`` may be computed although the program might not have come to it."""
    if isinstance(value, Var) or const_value(value) is not None:
        return True
    if isinstance(value, _DIVIDES):
        return bool(const_value(value.right)) and _is_arithmetic(value.left)
    if isinstance(value, Call):
        return value.op.name == "tensor.dim"
    if not isinstance(value, _PLAIN):
        return False
    operands = (getattr(value, f.name) for f in type(value).fields)
    return all(_is_arithmetic(o) for o in operands if isinstance(o, Expr))


class _Without(Rewriter):
    """Takes assignments out."""

    def __init__(self, stmts: Iterable[Stmt]) -> None:
        super().__init__()
        self._stmts = set(stmts)

    def visit_assign_stmt(self, op: AssignStmt) -> Any:
        return [] if op in self._stmts else op

    def visit_eval_stmt(self, op: Stmt) -> Stmt:
        return op

    visit_return_stmt = visit_yield_stmt = visit_eval_stmt


def _yielding(body: Stmt, values: Sequence[Expr], before: Sequence[Stmt]) -> Stmt:
    """``body`` ending in a yield of ``values``, ahead of which ``before`` stands."""
    if isinstance(body, YieldStmt):
        return seq([*before, body.replace(values=NodeList(values))], body.span)
    if isinstance(body, ScopeStmt):
        return body.replace(body=_yielding(body.body, values, before))
    stmts = flatten_to_stmts(body)
    return SeqStmts(NodeList(splice([*stmts[:-1], _yielding(stmts[-1], values, before)])), body.span)


def _narrowing_stmt(var: Any, value: Expr) -> AssignStmt:
    """The statement that makes ``var`` of ``value``, which is valid further out."""
    type = var.type
    if len(type.shape) != 2:
        raise _refused(var, value.type, type, "code in between", "reshape it to two dimensions")
    name = "tile.set_validshape" if isinstance(type, TileType) else "tensor.set_validshape"
    made = build(name, value, *type.valid_shape, span=var.span)
    return AssignStmt(var, made.replace(type=type), var.span)


def _refused(var: Any, known: Any, found: Any, inside: str, advice: str = "", span: Span | None = None) -> Exception:
    """The error for a valid region that cannot be told where values meet."""
    return user_error(
        ValueError,
        f"the valid region of {written_name(var.name_hint)!r} differs on the two ways it is made: "
        f"{dims_text(known.valid_shape)} and {dims_text(found.valid_shape)}, and only the {inside} knows the smaller",
        span or var.span,
        f"{advice or f'compute its extents before the {inside}'}, or make the ragged block whole before it is used: "
        "pl.fillpad(block, pad_value=pl.PadValue.zero)",
    )


def _loses(value: Any, type: Any, span: Span) -> Exception:
    """The error for data outside the region that is valid whichever value a variable has."""
    return user_error(
        ValueError,
        f"{written_name(getattr(value, 'name_hint', 'value'))!r} is valid in {dims_text(value.type.valid_shape)} here, "
        f"and in {dims_text(type.valid_shape)} on the other way it is made: what is further out would be lost",
        span,
        "give the values names of their own and store each, or make both valid alike: valid_shape= where they are "
        "made, or pl.fillpad(value, pad_value=pl.PadValue.zero)",
    )


def _list_like(old: NodeList, made: Sequence[Any]) -> NodeList:
    return old if len(old) == len(made) and all(a is b for a, b in zip(old, made)) else NodeList(made)
