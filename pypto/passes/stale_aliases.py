"""Old names of tensors whose memory is overwritten while they are still read.

``t = pl.assemble(v, w, [0, 0])`` writes ``w`` into the memory of ``v``, and ``old = y`` makes no copy. Once memory is
written under one name, its other names are neither what was named nor, reliably, what it holds now: a kernel may have
loaded it before, another loads it after. A region loads at once what its operators take whole, and what it computes
itself is in no such memory. A part that is assigned, ``v[0:8] = w``, gives no new name: it changes the memory for all
its names, but not what the region has loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..errors import user_error
from ..ir.enums import ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Submit, Var
from ..ir.naming import written_name
from ..ir.node import IRNode
from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, ReturnStmt, ScopeStmt, WhileStmt, YieldStmt
from ..ir.types import TensorType
from ..ir.visitor import Visitor
from ..ops.registry import ArgEffect, arg_effect
from .bodies import trip_count
from .operand_roles import Role, role_of
from .tensor_memory import REGIONS, Callees, TensorMemory, yielded

_ON_CHIP = frozenset({Role.TILE, Role.VIEW})
"""What a region loads where the tensor is defined, not where it is read."""
_EXTENTS = frozenset({"tensor.dim"})
"""Operators that look at no element."""


class _Overwritten(NamedTuple):
    """When a name went stale."""

    where: Span
    region: IRNode | None
    by_name: bool
    """Whether the author rebinds another name to a new value, rather than writing to the tensor."""


def _begin(span: Span) -> tuple[int, int]:
    return span.begin_line, span.begin_column


def check_aliases(functions: Iterable[Function]) -> None:
    """Raise KernelValueError where a function, in SSA form, reads an old name of a tensor overwritten meanwhile."""
    functions = list(functions)
    callees = Callees(functions)
    for function in functions:
        memory = TensorMemory(function, callees)
        if memory.written:
            _Names(function, memory, callees).visit(function.body)


class _Names(Visitor):
    """Follows which names are up to date."""

    def __init__(self, function: Function, memory: TensorMemory, callees: Callees) -> None:
        self._memory, self._callees = memory, callees
        self._fresh: dict[Var, dict[Var, None]] = {}
        """By memory, the names that hold what is in it."""
        self._stale: dict[Var, _Overwritten] = {}
        self._trail: list[Var] = []
        """What went stale, in order; a branch takes it back."""
        self._loaded: dict[Var, _Overwritten] = {}
        """Names other than the one by which a part was assigned: a region may have loaded them before."""
        self._second: dict[Var, str] = {}
        """Second names, and what they name."""
        self._read_at: dict[Var, Span] = {}
        """Where the loops around first read what they carry."""
        self._at = function.span
        outputs = (p for p, d in function.directed_params() if function.is_incore and d is not ParamDirection.In)
        self._outputs = frozenset(outputs)
        """What a kernel returns as memory, whatever is in it."""
        for param in function.params:
            self._name(param)

    @property
    def _region(self) -> IRNode | None:
        return self._memory.region

    # Names

    def _name(self, var: Var, source: Expr | None = None) -> None:
        """``var`` names what is in its memory now, or what ``source`` holds."""
        if not isinstance(var.type, TensorType):
            return
        overwritten = self._stale.get(source) if isinstance(source, Var) else None
        if overwritten is not None:
            self._stale[var] = overwritten
        else:
            self._fresh.setdefault(self._memory.root(var), {})[var] = None

    def _write(self, var: Var, op: AssignStmt | EvalStmt) -> None:
        """The memory of ``var`` is written: by an operator for a new name, or for whoever names the memory.

        The latter, a call, a statement of its own, an assigned part, is not what a second name was meant for, either.
        """
        call = op.value if isinstance(op, AssignStmt) else op.expr
        part = call.span.is_valid() and _begin(call.span) == _begin(op.span)
        named = isinstance(op, AssignStmt) and not part
        renamed = named and not (isinstance(call, Call) and isinstance(call.op, GlobalVar))
        # What an operator writes beside its result has no new name.
        renamed = renamed and self._memory.target(call) is var
        by_name = isinstance(call, Call) and renamed and call.op.name.startswith("tensor.")
        overwritten = _Overwritten(op.span, self._region, by_name)
        for root in self._memory.may_be(var):
            names = self._fresh.get(root, {})
            for name in list(names):
                if renamed or (name in self._second and name is not var):
                    del names[name]
                    self._stale[name] = overwritten
                    self._trail.append(name)
                elif part and isinstance(op, AssignStmt) and name is not var:
                    self._loaded[name] = overwritten

    def _read(self, var: Var, on_chip: bool = False) -> None:
        overwritten = self._stale.get(var)
        if overwritten is None:
            self._read_at.setdefault(var, self._at)
            assigned = self._loaded.get(var) if on_chip and self._region is not None else None
            if assigned is not None and assigned.region is self._region:
                raise self._refused(var, assigned, self._at)
        elif not on_chip or var in self._second or overwritten.region is not self._region or self._region is None:
            raise self._refused(var, overwritten, self._at)

    # Expressions

    def visit_var(self, op: Var) -> None:
        if isinstance(op.type, TensorType):
            self._read(op)

    def visit_call(self, op: Call) -> None:
        outer, self._at = self._at, op.span
        callee = op.op.name if isinstance(op.op, GlobalVar) else None
        for i, arg in enumerate(op.args):
            if not isinstance(arg, Var) or not isinstance(arg.type, TensorType):
                self.visit(arg)
            elif callee is not None:
                if self._callees.reads(callee, i):
                    self._read(arg)
            elif op.op.name not in _EXTENTS and self._takes(op, i):
                self._read(arg, role_of(op.op.decl, i) in _ON_CHIP)
        self.visit_mapping(op.kwargs)
        self._at = outer

    def _takes(self, call: Call, index: int) -> bool:
        """Whether a call needs what its argument holds: an operator on tensors gives what it does not write, too."""
        return arg_effect(call, index) is not ArgEffect.Write or call.op.name.startswith("tensor.")

    def visit_submit(self, op: Submit) -> None:
        """A launched task is ordered by its dependencies."""

    # Statements

    def visit_scope_stmt(self, op: ScopeStmt) -> None:
        outer = self._memory.region
        if isinstance(op, REGIONS):
            self._memory.region = op
        self.visit(op.body)
        self._memory.region = outer

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        value = op.value
        if isinstance(value, Var):
            if isinstance(value.type, TensorType):
                self._rename(op.var, value)
            return
        self.visit(value)
        for var in self._memory.writes(value):
            if not self._memory.is_value(var, self._region):
                self._write(var, op)
        self._name(op.var)

    def _rename(self, var: Var, value: Var) -> None:
        self._name(var, value)
        if value in self._second:
            self._second[var] = self._second[value]
        elif written_name(var.name_hint) != written_name(value.name_hint):
            self._second[var] = written_name(value.name_hint)

    def visit_eval_stmt(self, op: EvalStmt) -> None:
        self.visit(op.expr)
        for var in self._memory.writes(op.expr):
            if not self._memory.is_value(var, self._region):
                self._write(var, op)

    def visit_yield_stmt(self, op: YieldStmt) -> None:
        for value in op.values:
            if not isinstance(value, Var):
                self.visit(value)

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        for value in op.value:
            overwritten = self._stale.get(value) if isinstance(value, Var) else None
            if not isinstance(value, Var):
                self.visit(value)
            elif overwritten is not None and overwritten.by_name and value not in self._outputs:
                raise self._refused(value, overwritten, op.span)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit(op.condition)
        begin = len(self._trail)
        ends: list[list[_Overwritten | None]] = []
        marks: dict[Var, _Overwritten] = {}
        for body in (op.then_body, op.else_body):
            if body is not None:
                self.visit(body)
            values = [yielded(body, i) for i in range(len(op.return_vars))] if body is not None else []
            ends.append([self._stale.get(v) if isinstance(v, Var) else None for v in values])
            for name in self._trail[begin:]:
                marks[name] = self._stale.pop(name)
                self._fresh.setdefault(self._memory.root(name), {})[name] = None
            del self._trail[begin:]
        for name, overwritten in marks.items():
            self._fresh[self._memory.root(name)].pop(name, None)
            self._stale[name] = overwritten
        self._trail.extend(marks)
        for var, *found in zip(op.return_vars, *(end for end in ends if end)):
            self._result(var, next((f for f in found if f is not None), None))

    def _result(self, var: Var, overwritten: _Overwritten | None) -> None:
        self._name(var)
        if overwritten is not None and isinstance(var.type, TensorType):
            self._fresh[self._memory.root(var)].pop(var, None)
            self._stale[var] = overwritten

    def visit_for_stmt(self, op: ForStmt | WhileStmt) -> None:
        """What an iteration overwrites, the next one finds stale."""
        for value in (op.start, op.stop, op.step) if isinstance(op, ForStmt) else ():
            self.visit(value)
        inits = [self._stale.get(a.init_value) if isinstance(a.init_value, Var) else None for a in op.iter_args]
        again = trip_count(op) not in (0, 1)
        if again:
            for var, write in self._memory.loops[op].items():
                self._write(var, write)
        for arg, overwritten in zip(op.iter_args, inits):
            self._result(arg, overwritten)
        if isinstance(op, WhileStmt):
            self.visit(op.condition)
        self.visit(op.body)
        for i, (arg, init) in enumerate(zip(op.iter_args, inits)):
            end = yielded(op.body, i)
            overwritten = self._stale.get(end) if isinstance(end, Var) else None
            if overwritten is not None and again and arg in self._read_at:
                raise self._refused(arg, overwritten, self._read_at[arg])
            if i < len(op.return_vars):
                self._result(op.return_vars[i], overwritten or init)

    visit_while_stmt = visit_for_stmt

    def _refused(self, var: Var, overwritten: _Overwritten, at: Span) -> Exception:
        name = written_name(var.name_hint)
        line = f" (line {overwritten.where.begin_line})" if overwritten.where.is_valid() else ""
        other = self._second.get(var)
        if other is not None:
            return user_error(
                ValueError,
                f"{name!r} is another name of {other!r}, whose memory is overwritten{line} before it is read here",
                at,
                f"read {name!r} before {other!r} is written to, or write the result to a tensor of its own",
            )
        return user_error(
            ValueError,
            f"the memory of {name!r} is overwritten{line}, under another name, before {name!r} is read here",
            at,
            f"read {name!r} before, or write to a copy: copy = pl.add({name}, 0.0) in the region, "
            "then copy = pl.assemble(copy, ..)",
        )
