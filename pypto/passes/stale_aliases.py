"""Second names of tensors whose memory is overwritten while they are still read.

``old = y`` makes no copy. Once ``y`` is written in place, ``old`` is neither what was named nor, reliably, what ``y``
is now: a kernel may have loaded it before, another loads it after.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import user_error
from ..ir.expr import Call, Expr, Var
from ..ir.naming import written_name
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, WhileStmt
from ..ir.types import TensorType
from ..ir.visitor import Visitor
from ..ops.registry import ArgEffect, decl_of, effect_of


class _Alias(NamedTuple):
    """A second name: the tensor it is of, how that was called, and how often it had been written to."""

    root: Var
    name: str
    writes: int


def check_aliases(function: Function) -> None:
    """Raise KernelValueError where ``function``, in SSA form, reads a second name of a tensor overwritten meanwhile."""
    finder = _Aliases(function)
    finder.visit(function.body)


class _Aliases(Visitor):
    def __init__(self, function: Function) -> None:
        self._roots: dict[Expr, Var] = {p: p for p in function.params if isinstance(p.type, TensorType)}
        """The tensor in memory that each version of one is."""
        self._aliases: dict[Expr, _Alias] = {}
        self._writes: dict[Var, list[Span]] = {}
        """Where each tensor has been written to so far."""
        self._depth = 0
        self._at = function.span

    def visit_scope_stmt(self, op: ScopeStmt) -> None:
        self._depth += 1
        self.generic(op)
        self._depth -= 1

    def visit_var(self, op: Var) -> None:
        alias = self._aliases.get(op)
        writes = self._writes.get(alias.root, ()) if alias is not None else ()
        if alias is not None and len(writes) > alias.writes:
            raise _refused(op, alias, writes[alias.writes], self._at)

    def visit_call(self, op: Call) -> None:
        outer, self._at = self._at, op.span
        self.generic(op)
        self._at = outer

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, Var):
            self._renamed(op.var, value)
            return
        self.visit(value)
        if not isinstance(value, Call) or not isinstance(op.var.type, TensorType):
            return
        if value.op.name == "tensor.create" and not self._depth:
            self._roots[op.var] = op.var
        for root in self._written(value):
            self._writes.setdefault(root, []).append(op.span)
            self._roots[op.var] = root

    def _renamed(self, var: Var, value: Var) -> None:
        root = self._roots.get(value)
        if root is None:
            self.visit(value)
            return
        self._roots[var] = root
        if value in self._aliases:
            self._aliases[var] = self._aliases[value]
        elif written_name(var.name_hint) != written_name(value.name_hint):
            writes = len(self._writes.get(root, ()))
            self._aliases[var] = _Alias(root, written_name(value.name_hint), writes)

    def _written(self, call: Call) -> list[Var]:
        """The tensors in memory that ``call`` writes to."""
        decl = decl_of(call)
        if decl is None:
            return []
        found = [self._roots.get(a) for i, a in enumerate(call.args)
                 if effect_of(decl, i, call.kwargs, call.args) is not ArgEffect.Read]  # fmt: skip
        return [root for root in found if root is not None]

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit(op.condition)
        before = self._writes
        after = {root: list(spans) for root, spans in before.items()}
        for body in (op.then_body, op.else_body):
            if body is not None:
                self._writes = {root: list(spans) for root, spans in before.items()}
                self.visit(body)
                for root, spans in self._writes.items():
                    after.setdefault(root, []).extend(spans[len(before.get(root, ())) :])
        self._writes = after

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        """The body is seen twice: what one iteration overwrites, the next one reads."""
        bounds = (op.start, op.stop, op.step) if isinstance(op, ForStmt) else ()
        for value in (*bounds, *(arg.init_value for arg in op.iter_args)):
            self.visit(value)
        for arg in op.iter_args:
            root = self._roots.get(arg.init_value)
            if root is not None:
                self._roots[arg] = root
        for _ in range(2):
            if isinstance(op, WhileStmt):
                self.visit(op.condition)
            self.visit(op.body)
        for arg, result in zip(op.iter_args, op.return_vars):
            if arg in self._roots:
                self._roots[result] = self._roots[arg]

    visit_while_stmt = visit_for_stmt


def _refused(var: Var, alias: _Alias, where: Span, at: Span) -> Exception:
    name = written_name(var.name_hint)
    line = f" (line {where.begin_line})" if where.is_valid() else ""
    return user_error(
        ValueError,
        f"{name!r} is another name of {alias.name!r}, whose memory is overwritten{line} before it is read here",
        at,
        f"read {name!r} before {alias.name!r} is written to, or write the result to a tensor of its own",
    )
