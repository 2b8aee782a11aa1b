"""ConvertToSSA: one definition for every variable.

Each assignment makes a new version; branches and loops that reassign a variable return it: a branch yields the
version each side leaves, a loop carries it. A variable first assigned in a loop and read after it is carried too,
starting from the Out parameter it writes back. `join_regions` says what is valid of values that meet. Versions are
named ``<name>__<role>_v<n>`` with the role ``ssa``, ``iter``, ``rv`` (a loop's result), ``phi`` or ``idx`` (a loop
variable); a variable so named and defined once stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..errors import InternalError, user_error
from ..ir.enums import ParamDirection
from ..ir.expr import Call, Expr, IterArg, Var, const_value
from ..ir.naming import versioned
from ..ir.node import IRNode, NodeList, same_objects, updated
from ..ir.program import Function, Program
from ..ir.scalar import scalar_const
from ..ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    seq,
)
from ..ir.types import ScalarType, ShapedType, TensorType, TileType, Type, same_but_region
from ..ir.visitor import Rewriter, Visitor, find_all, splice
from ..ops.registry import rebind
from .base import P, Pass, program_pass
from .join_regions import has_regions, join_regions, same_region
from .stale_aliases import check_aliases

_AUTO = re.compile(r"(?P<base>.+?)__(?:[a-z][a-z0-9_]*_v(?P<version>\d+)|tile|window|out)(?:_\w+)?")
_NOTHING: frozenset[Var] = frozenset()


def convert_to_ssa() -> Pass:
    """The pass; see the module."""
    return program_pass("ConvertToSSA", _convert, produces={P.SSAForm}, invalidates={P.NormalizedStmtStructure})


def _convert(program: Program) -> Program:
    made = program.map_functions(lambda f: _Converter(f, rename=True).run())
    check_aliases(made.functions.values())
    return made


def restore_ssa(function: Function) -> Function:
    """``function`` in SSA form again after a pass assigned variables twice; first definitions stay as they are."""
    return _Converter(function, rename=False).run()


class _Flow:
    """What a statement reads before writing it, always writes, and may write."""

    __slots__ = ("reads", "always", "writes")

    def __init__(self, reads: frozenset[Var], always: frozenset[Var], writes: frozenset[Var]) -> None:
        self.reads, self.always, self.writes = reads, always, writes


class _Reads(Visitor):
    """Variables an expression reads."""

    def __init__(self) -> None:
        self.found: set[Var] = set()

    def visit_var(self, op: Var) -> None:
        self.found.add(op)


class _Extents(_Reads):
    """Variables the extents of types mention."""

    def define(self, var: Any) -> None:
        self.visit(var)

    def visit_type(self, type: Type) -> None:
        type._visit_children(self)


def _reads(*exprs: IRNode) -> frozenset[Var]:
    collect = _Reads()
    for expr in exprs:
        collect.visit(expr)
    return frozenset(collect.found)


class _FlowAnalysis:
    """The `_Flow` of statements, each computed once."""

    def __init__(self) -> None:
        self._known: dict[Stmt, _Flow] = {}

    def of(self, stmt: Stmt) -> _Flow:
        found = self._known.get(stmt)
        if found is None:
            found = self._known[stmt] = self._compute(stmt)
        return found

    def _compute(self, stmt: Stmt) -> _Flow:
        if isinstance(stmt, AssignStmt):
            target = frozenset((stmt.var,))
            return _Flow(_reads(stmt.value), target, target)
        if isinstance(stmt, SeqStmts):
            return self._sequence(stmt)
        if isinstance(stmt, IfStmt):
            return self._branches(stmt)
        if isinstance(stmt, (ForStmt, WhileStmt)):
            return self._loop(stmt)
        if isinstance(stmt, ScopeStmt):
            body = self.of(stmt.body)
            own = _Reads()
            for field in type(stmt).fields:
                value = getattr(stmt, field.name)
                if field.name != "body" and isinstance(value, Expr):
                    own.visit(value)
            own.visit_mapping(stmt.attrs or {})
            return _Flow(body.reads | own.found, body.always, body.writes)
        return _Flow(_reads(stmt), _NOTHING, _NOTHING)

    def _sequence(self, stmt: SeqStmts) -> _Flow:
        reads: set[Var] = set()
        always: set[Var] = set()
        writes: set[Var] = set()
        for s in stmt.stmts:
            flow = self.of(s)
            reads |= flow.reads - always
            always |= flow.always
            writes |= flow.writes
        return _Flow(frozenset(reads), frozenset(always), frozenset(writes))

    def _branches(self, stmt: IfStmt) -> _Flow:
        then = self.of(stmt.then_body)
        other = self.of(stmt.else_body) if stmt.else_body is not None else _Flow(_NOTHING, _NOTHING, _NOTHING)
        results = frozenset(stmt.return_vars)
        return _Flow(
            _reads(stmt.condition) | then.reads | other.reads,
            (then.always & other.always) | results,
            then.writes | other.writes | results,
        )

    def _loop(self, stmt: ForStmt | WhileStmt) -> _Flow:
        body = self.of(stmt.body)
        before = [a.init_value for a in stmt.iter_args]
        inner = set(stmt.iter_args)
        if isinstance(stmt, ForStmt):
            before += [stmt.start, stmt.stop, stmt.step]
            inner.add(stmt.loop_var)
            reads = body.reads
        else:
            reads = body.reads | _reads(stmt.condition)
        results = frozenset(stmt.return_vars)
        return _Flow(_reads(*before) | (reads - inner), results, (body.writes - inner) | results)


class _Definitions(Visitor):
    """How often each variable is defined."""

    def __init__(self) -> None:
        self.count: Counter[Var] = Counter()

    def define(self, var: Any) -> None:
        self.count[var] += 1

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.count[op.var] += 1

    def visit_eval_stmt(self, op: Stmt) -> None:
        """Defines nothing."""

    visit_yield_stmt = visit_return_stmt = visit_eval_stmt


class _Converter(Rewriter):
    """Converts one function. ``vars`` maps each source variable to its current version."""

    def __init__(self, function: Function, rename: bool) -> None:
        super().__init__()
        self._function = function
        self._rename = rename
        self._seen: set[Var] = set()
        self._flows = _FlowAnalysis()
        definitions = _Definitions()
        definitions.visit(function)
        self._defined = definitions.count
        self._regional = has_regions(function)
        """Whether valid regions change where a variable is assigned."""
        self._versions: Counter[str] = Counter()
        self._bases: dict[str, str] = {}
        self._needed: frozenset[Var] = _NOTHING
        self._partial: dict[Var, Stmt] = {}
        self._out_params: list[Var] = []
        for var in self._defined:
            match = _AUTO.fullmatch(var.name_hint)
            if match and match["version"]:
                base = match["base"]
                self._versions[base] = max(self._versions[base], int(match["version"]) + 1)

    def run(self) -> Function:
        f = self._function
        params = self._define_params(f)
        for param, direction in zip(params, f.param_directions):
            if direction is not ParamDirection.In:
                self._out_params.append(param)
        body = self.rewrite(f.body)
        returns = self.rewrite_list(f.return_types, self.rewrite_type)
        made = f.replace(params=params, body=body, return_types=returns, attrs=self.rewrite_mapping(f.attrs))
        return join_regions(made) if self._regional else made

    def _define_params(self, f: Function) -> NodeList:
        """Scalars first: shapes may mention them, in any order."""
        made: dict[Var, Var] = {}
        for symbolic in (False, True):
            for p in f.params:
                if p.type.symbolic is symbolic:
                    made[p] = self._version(p, "ssa")
        return self.rewrite_list(f.params, made.__getitem__)

    # Versions

    def _base(self, var: Var) -> str:
        name = var.name_hint
        found = self._bases.get(name)
        if found is None:
            match = _AUTO.fullmatch(name)
            found = match["base"] if match else name
            if "__" in found and not self._rename:
                found = found.partition("__")[0]
            if "__" in found:
                raise user_error(
                    ValueError,
                    f"the name {name!r} contains the reserved delimiter '__'",
                    var.span,
                    "the compiler appends '__<role>_v<n>' to names; use a single underscore",
                )
            self._bases[name] = found
        return found

    def _name(self, var: Var, role: str) -> str:
        base = self._base(var)
        number = self._versions[base]
        self._versions[base] = number + 1
        return versioned(base, role, number)

    def _keeps(self, var: Var) -> bool:
        if not self._rename:
            first = var not in self._seen
            self._seen.add(var)
            return first
        return self._defined[var] == 1 and "__" in var.name_hint and _AUTO.fullmatch(var.name_hint) is not None

    def _version(self, var: Var, role: str, type: Type | None = None) -> Var:
        """A new version of ``var``, current from here on."""
        type = self.rewrite_type(var.type) if type is None else type
        if self._keeps(var) and type is var.type:
            made = var
        else:
            made = Var(self._name(var, role), type, var.span)
        self.vars[var] = made
        return made

    # Expressions

    def visit_var(self, op: Var) -> Any:
        found = self.vars.get(op)
        if found is not None:
            return found
        branch = self._partial.get(op)
        if branch is not None:
            raise user_error(
                ValueError,
                f"'{op.name_hint}' is read here but assigned on one path only",
                op.span if op.span.is_valid() else branch.span,
                f"assign '{op.name_hint}' before the branch or loop, or on every path through it",
            )
        return op

    def visit_call(self, op: Call) -> Call:
        made = self.generic(op)
        if made is op or op.op.decl is None:
            return made
        if (op.type.symbolic and self._is_stale(op.type)) or (self._regional and self._is_narrowed(op, made)):
            made = made.replace(type=made.op.decl.infer(rebind(made)))
        return made

    def _is_narrowed(self, op: Call, made: Call) -> bool:
        """Whether an argument has another valid region than where the call was written."""
        return any(
            isinstance(a.type, (TensorType, TileType)) and not same_region(self.rewrite_type(a.type), b.type)
            for a, b in zip(op.args, made.args)
        )

    def _is_stale(self, type: Type) -> bool:
        """Whether a type mentions a variable of several versions: which one is meant, only the operands know."""
        mentioned = _Extents()
        type._visit_children(mentioned)
        return any(self._defined[v] > 1 for v in mentioned.found)

    # Statements

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = self.rewrite(op.value)
        type = self._assigned_type(op.var, op.value, value)
        var = self._version(op.var, "ssa", type)
        return op.replace(value=value, var=var)

    def _assigned_type(self, var: Var, source: Expr, value: Expr) -> Type:
        """An alias has its source's type; a call whose type was inferred anew passes it on."""
        own = self.rewrite_type(var.type)
        if self._regional and isinstance(own, (TensorType, TileType)) and same_but_region(own, value.type):
            return value.type
        if not own.symbolic or not isinstance(own, ShapedType) or own.memref is not None:
            return own
        follows = type(value.type) is type(own) and (isinstance(value, Var) or source.type == var.type)
        return value.type if follows else own

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        after = self._needed
        needs = self._needs_inside(op, after) if any(isinstance(s, _COMPOUND) for s in op.stmts) else {}
        made: list[Any] = []
        last = len(op.stmts) - 1
        for i, s in enumerate(op.stmts):
            if i < last and isinstance(s, YieldStmt):
                raise InternalError(f"YieldStmt at position {i} of a sequence of {last + 1} statements", s.span)
            self._needed = needs.get(i, after)
            made.append(self.rewrite(s))
        self._needed = after
        if same_objects(made, op.stmts):
            return op
        return SeqStmts(NodeList(splice(made)), op.span)

    def _needs_inside(self, op: SeqStmts, after: frozenset[Var]) -> dict[int, frozenset[Var]]:
        """What each compound statement of a sequence writes and is read after it, before being written again."""
        live = set(after)
        found: dict[int, frozenset[Var]] = {}
        for i in range(len(op.stmts) - 1, -1, -1):
            stmt = op.stmts[i]
            flow = self._flows.of(stmt)
            if isinstance(stmt, _COMPOUND):
                found[i] = flow.writes & live
            live -= flow.always
            live |= flow.reads
        return found

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        after = self._needed
        self._forget(op)
        condition = self.rewrite(op.condition)
        writes = self._flows.of(op).writes
        before = self._current(writes)
        then_body = self.rewrite(op.then_body)
        then_vars = self._current(writes)
        self._restore(before)
        else_body = self.rewrite(op.else_body) if op.else_body is not None else None
        else_vars = self._current(writes)
        self._restore(before)
        merged, partial = self._merge(op, then_vars, else_vars, after)
        results = [self._version(v, "phi") for v in op.return_vars]
        results += [self._phi(v, then_vars[v], else_vars[v]) for v in merged]
        for var in partial:
            self._partial[var] = op
        if merged:
            then_body = _yield_more(then_body, [then_vars[v] for v in merged], op)
            else_body = _yield_more(else_body, [else_vars[v] for v in merged], op)
        return op.replace(
            condition=condition,
            then_body=then_body,
            else_body=else_body,
            return_vars=updated(op.return_vars, results),
        )

    def _forget(self, op: Stmt) -> None:
        """Drop tiles of host code that ``op`` writes anew and nothing after it reads: tiles live within one region."""
        if self._function.is_incore:
            return
        flow = self._flows.of(op)
        for var in flow.writes - flow.reads - self._needed:
            if isinstance(var.type, TileType):
                self.vars.pop(var, None)

    def _current(self, vars: Iterable[Var]) -> dict[Var, Any]:
        """The current versions of ``vars``, None for those without one."""
        return {v: self.vars.get(v) for v in vars}

    def _restore(self, versions: dict[Var, Any]) -> None:
        for var, version in versions.items():
            if version is None:
                self.vars.pop(var, None)
            else:
                self.vars[var] = version

    def _merge(
        self, op: IfStmt, then_vars: dict[Var, Any], else_vars: dict[Var, Any], after: frozenset[Var]
    ) -> tuple[list[Var], list[Var]]:
        """Variables that need a phi, and those one branch leaves undefined."""
        merged, partial = [], []
        for var in _by_name(then_vars.keys() - set(op.return_vars)):
            here, there = then_vars[var], else_vars[var]
            if var in self.vars:
                if here is not there:
                    merged.append(var)
            elif here is not None and there is not None:
                if var in after:
                    merged.append(var)
            elif here is not None or there is not None:
                partial.append(var)
        return merged, partial

    def _phi(self, var: Var, here: Expr, there: Expr) -> Var:
        made = Var(self._name(var, "phi"), here.type if here.type == there.type else var.type, var.span)
        self.vars[var] = made
        return made

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        bounds = {"start": self.rewrite(op.start), "stop": self.rewrite(op.stop), "step": self.rewrite(op.step)}
        attrs = self.rewrite_mapping(op.attrs) if op.attrs else op.attrs
        return self._loop(op, {**bounds, "attrs": attrs})

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._loop(op, {})

    def _loop(self, op: ForStmt | WhileStmt, changes: dict[str, Any]) -> Stmt:
        after = self._needed
        self._forget(op)
        own = {op.loop_var, *op.iter_args} if isinstance(op, ForStmt) else set(op.iter_args)
        body_flow = self._flows.of(op.body)
        writes = body_flow.writes - own
        live = after | body_flow.reads
        if isinstance(op, WhileStmt):
            live |= _reads(op.condition)
        carried = [v for v in _by_name(writes) if v in self.vars and v in live]
        escaping = [v for v in _by_name(writes) if v not in self.vars and v in after]
        starts = [self.vars[v] for v in carried] + [self._start_of(v, op) for v in escaping]
        carried += escaping
        declared = [self._iter_arg(a) for a in op.iter_args]
        added = [
            IterArg(self._name(v, "iter"), self._carried_type(v, start), start, v.span)
            for v, start in zip(carried, starts)
        ]
        results = [Var(self._name(v, "rv"), a.type, v.span) for v, a in zip(carried, added)]
        outer = self._current(body_flow.writes | own)
        self.vars.update(zip(op.iter_args, declared))
        self.vars.update(zip(carried, added))
        if isinstance(op, ForStmt):
            changes["loop_var"] = self._version(op.loop_var, "idx")
        else:
            changes["condition"] = self.rewrite(op.condition)
        self._needed = live & body_flow.writes
        body = self.rewrite(op.body)
        if carried:
            body = _yield_more(body, [self.vars[v] for v in carried], op)
        self._needed = after
        for var in writes:
            if outer[var] is None and var in self.vars:
                self._partial[var] = op
        self._restore(outer)
        returned = [self._version(v, "rv") for v in op.return_vars]
        self.vars.update(zip(carried, results))
        return op.replace(
            iter_args=updated(op.iter_args, declared + added),
            body=body,
            return_vars=updated(op.return_vars, returned + results),
            **changes,
        )

    def _iter_arg(self, arg: IterArg) -> IterArg:
        init = self.rewrite(arg.init_value)
        type = self.rewrite_type(arg.type)
        keep = self._keeps(arg)
        if keep and init is arg.init_value and type is arg.type:
            return arg
        name = arg.name_hint if keep else self._name(arg, "iter")
        return IterArg(name, type, init, arg.span)

    def _carried_type(self, var: Var, start: Expr) -> Type:
        own = self.rewrite_type(var.type)
        return start.type if own.symbolic and type(start.type) is type(own) else own

    def _start_of(self, var: Var, loop: ForStmt | WhileStmt) -> Expr:
        """What a variable first assigned in ``loop`` holds before it: the Out parameter it writes back."""
        type = self.rewrite_type(var.type)
        params = [p for p in self._out_params if p.type == type]
        operands = {self.vars.get(v) for s in find_all(loop.body, AssignStmt) if s.var is var for v in _reads(s.value)}
        written = [p for p in params if p in operands]
        if written or (params and _runs(loop)):
            return (written or params)[0]
        if isinstance(type, ScalarType) and var in self._flows.of(loop.body).always and _runs(loop):
            return scalar_const(0, type.dtype, var.span)
        raise user_error(
            ValueError,
            f"'{var.name_hint}' is first assigned inside the loop and read after it",
            var.span if var.span.is_valid() else loop.span,
            f"give '{var.name_hint}' a value before the loop: the loop may run no iteration",
        )


_COMPOUND = (IfStmt, ForStmt, WhileStmt, ScopeStmt, SeqStmts)


def _runs(loop: Stmt) -> bool:
    """Whether a loop certainly runs once."""
    if not isinstance(loop, ForStmt):
        return False
    start, stop, step = (const_value(e) for e in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or step is None:
        return False
    return start < stop if step > 0 else start > stop


def _by_name(vars: Iterable[Var]) -> list[Var]:
    return sorted(vars, key=lambda v: (v.name_hint, v.unique_id))


def _yield_more(body: Stmt | None, values: list[Expr], owner: Stmt) -> Stmt:
    """``body`` yielding ``values`` too, after what it yields already."""
    if body is None:
        return YieldStmt(values, owner.span)
    if isinstance(body, YieldStmt):
        return body.replace(values=NodeList((*body.values, *values)))
    if isinstance(body, SeqStmts):
        if body.stmts and _ends_in_yield(body.stmts[-1]):
            return seq([*body.stmts[:-1], _yield_more(body.stmts[-1], values, owner)], body.span)
        return seq([*body.stmts, YieldStmt(values, owner.span)], body.span)
    if isinstance(body, ScopeStmt) and _ends_in_yield(body):
        return body.replace(body=_yield_more(body.body, values, owner))
    return seq([body, YieldStmt(values, owner.span)], body.span)


def _ends_in_yield(stmt: Stmt) -> bool:
    while True:
        if isinstance(stmt, SeqStmts):
            if not stmt.stmts:
                return False
            stmt = stmt.stmts[-1]
        elif isinstance(stmt, ScopeStmt):
            stmt = stmt.body
        else:
            return isinstance(stmt, YieldStmt)
