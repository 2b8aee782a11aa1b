"""What a changed function means for its callers: output parameters they pass, directions they inherit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import user_error
from ...ir.enums import FunctionType, ParamDirection
from ...ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ...ir.naming import written_name
from ...ir.node import same_objects, updated
from ...ir.program import Function, summarize
from ...ir.span import Span
from ...ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
    seq,
)
from ...ir.types import TensorType
from ...ir.visitor import Rewriter
from ...ops import registry
from ...ops.registry import ArgEffect, WriteChannel
from ..bodies import FlowVisitor

_FORWARDS = frozenset({FunctionType.Spmd, FunctionType.Group})

Callees = dict[str, Function]


def follow(function: Function, changed: Callees, added: dict[str, int]) -> tuple[Function, int]:
    """``function`` calling ``changed`` functions as they now are, and how many parameters it gained itself.

    ``added`` says how many output parameters each changed function gained. A caller creates the tensors to pass;
    a function that only forwards to a kernel takes them as parameters of its own.
    """
    if not any(added.get(name) for name in summarize(function).callees):
        return function, 0
    rewriter = _Calls(changed, added, function.func_type in _FORWARDS)
    made = rewriter.rewrite_function(function)
    return made, len(rewriter.params)


class _Calls(Rewriter):
    """Appends the output arguments of changed functions."""

    def __init__(self, changed: Callees, added: dict[str, int], forwards: bool) -> None:
        super().__init__()
        self.changed, self.added, self.forwards = changed, added, forwards
        self.params: list[Var] = []
        self._before: list[Stmt] = []

    def rewrite_function(self, function: Function) -> Function:
        body = self._body(function.body)
        if not self.params:
            return function.replace(body=body)
        added = ((param, ParamDirection.Out) for param in self.params)
        return function.with_params([*function.directed_params(), *added], body=body)

    def _body(self, body: Stmt) -> Stmt:
        before = flatten_to_stmts(body)
        after: list[Stmt] = []
        for stmt in before:
            outer, self._before = self._before, []
            made = self.rewrite(stmt)
            after.extend((*self._before, made))
            self._before = outer
        return body if same_objects(before, after) else seq(after, body.span)

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        return self._body(op)

    def generic(self, op: Any) -> Any:
        if isinstance(op, (ScopeStmt, WhileStmt)):
            return op.replace(body=self._body(op.body))
        return super().generic(op)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return op.replace(body=self._body(op.body))

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        else_body = self._body(op.else_body) if op.else_body is not None else None
        return op.replace(then_body=self._body(op.then_body), else_body=else_body)

    def visit_call(self, op: Call) -> Expr:
        return self._extend(op)

    def visit_submit(self, op: Submit) -> Expr:
        return self._extend(op)

    def _extend(self, op: Any) -> Any:
        op = super().generic(op)
        count = self.added.get(op.op.name, 0) if isinstance(op.op, GlobalVar) else 0
        if not count:
            return op
        callee = self.changed[op.op.name]
        known = _dims_at_call(callee.params, op.args)
        passed = [self._output(param, known, op.span) for param in callee.params[-count:]]
        return op.replace(args=type(op.args)([*op.args, *passed]))

    def _output(self, param: Var, known: dict[Var, Expr], span: Span) -> Var:
        kind: Any = Rewriter(known).rewrite_type(param.type)
        if self.forwards:
            made = Var(param.name_hint, kind, span)
            self.params.append(made)
            return made
        call = registry.call("tensor.create", list(kind.shape), dtype=kind.dtype, span=span)
        made = Var(param.name_hint, call.type, span)
        self._before.append(AssignStmt(made, call, span))
        return made


def _dims_at_call(params: Sequence[Var], args: Sequence[Expr]) -> dict[Var, Expr]:
    """The caller's values for the symbolic dimensions of a callee's parameters, and its scalar parameters."""
    known: dict[Var, Expr] = {}
    for param, arg in zip(params, args):
        known[param] = arg
        if isinstance(param.type, TensorType) and isinstance(arg.type, TensorType):
            for dim, given in zip(param.type.shape, arg.type.shape):
                if isinstance(dim, Var):
                    known.setdefault(dim, given)
    return known


# Directions.


@dataclass
class Access:
    """What a function does to its parameters."""

    reads: set[Var] = field(default_factory=set)
    writes: set[Var] = field(default_factory=set)
    channels: dict[Var, dict[WriteChannel, Span]] = field(default_factory=dict)
    """The first write to each parameter by each path."""


def upgrade_directions(function: Function, program: Callees) -> Function:
    """``function`` with an ``In`` parameter it writes declared ``Out``, or ``InOut`` when it is read too."""
    access = analyze_access(function, program)
    if not access.writes:
        return function
    directions = [_upgraded(p, d, access) for p, d in function.directed_params()]
    return function.replace(param_directions=updated(function.param_directions, directions))


def _upgraded(param: Var, direction: ParamDirection, access: Access) -> ParamDirection:
    if direction is not ParamDirection.In or param not in access.writes:
        return direction
    return ParamDirection.InOut if param in access.reads else ParamDirection.Out


def check_write_paths(function: Function, program: Callees) -> None:
    """Refuse a tensor written both in bulk and element by element: the two paths are not ordered on the device."""
    for param, by_path in analyze_access(function, program).channels.items():
        if len(by_path) > 1:
            raise user_error(
                ValueError,
                f"{written_name(param.name_hint)!r} mixes MTE3 and scalar stores: a bulk store and pl.write to one "
                "tensor in global memory are not ordered against each other, and either may lose the other's bytes",
                by_path[WriteChannel.Scalar],
                "build the value on chip (pl.write to a tile) and store it once, or write every element with pl.write",
            )


def analyze_access(function: Function, program: Callees) -> Access:
    """Attribute every read and write to the parameters it reaches, through aliases, loops and branches."""
    walk = _AccessWalk(function, program)
    before = -1
    while before != walk.size():
        before = walk.size()
        walk.visit(function.body)
    return walk.access


class _AccessWalk(FlowVisitor):
    def __init__(self, function: Function, program: Callees) -> None:
        super().__init__()
        self.program = program
        self.access = Access()
        self.in_kernel = function.is_incore
        self._origins: dict[Var, set[Var]] = {p: {p} for p in function.params if isinstance(p.type, TensorType)}

    def size(self) -> int:
        return sum(map(len, self._origins.values()))

    def origins(self, value: Expr) -> set[Var]:
        if isinstance(value, Var):
            return self._origins.get(value, set())
        if isinstance(value, TupleGetItemExpr):
            return self.origins(value.tuple)
        return self._result_origins(value) if isinstance(value, (Call, Submit)) else set()

    def flow(self, value: Expr, var: Var) -> None:
        found = self.origins(value)
        if found:
            self._origins.setdefault(var, set()).update(found)

    def _result_origins(self, call: Call | Submit) -> set[Var]:
        """The buffers a call's tensor results may be: what it writes, or the tensor it is a view of."""
        found: set[Var] = set()
        decl = call.op.decl
        viewed = decl.arg_index(decl.inherits) if decl is not None and decl.inherits is not None else -1
        for i, arg in enumerate(call.args):
            shares = i == viewed or self._effect(call, i) is not ArgEffect.Read
            if isinstance(arg.type, TensorType) and shares:
                found |= self.origins(arg)
        return found

    def _effect(self, call: Call | Submit, index: int) -> ArgEffect:
        if isinstance(call, Call) and call.op.decl is not None:
            return registry.arg_effect(call, index) if self.in_kernel else ArgEffect.Read
        callee = self.program.get(call.op.name)
        if callee is None or index >= len(callee.params):
            return ArgEffect.Read
        direction = callee.param_directions[index]
        return {ParamDirection.In: ArgEffect.Read, ParamDirection.Out: ArgEffect.Write}.get(
            direction, ArgEffect.ReadWrite
        )

    def visit_call(self, op: Call) -> None:
        self._access(op)

    def visit_submit(self, op: Submit) -> None:
        self._access(op)

    def _access(self, op: Call | Submit) -> None:
        channel = op.op.decl.channel if op.op.decl is not None else None
        for i, arg in enumerate(op.args):
            self.visit(arg)
            if not isinstance(arg.type, TensorType):
                continue
            effect = self._effect(op, i)
            for param in self.origins(arg):
                if effect is not ArgEffect.Write:
                    self.access.reads.add(param)
                if effect is not ArgEffect.Read:
                    self.access.writes.add(param)
                    if channel is not None:
                        self.access.channels.setdefault(param, {}).setdefault(channel, op.span)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.visit(op.value)
        self.flow(op.value, op.var)
