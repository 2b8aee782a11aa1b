"""One traversal for many rules.

A rule defines ``visit_<kind>`` (before a node's parts), ``leave_<kind>`` (after them), and any of the events
`Rule` lists. `run` sends one walk of the program to every rule that is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar

from ...errors import Diagnostic
from ...ir.expr import Expr, IterArg, Var
from ...ir.node import IRNode, mapping_items
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, ReturnStmt, WhileStmt, YieldStmt

Hook = Callable[[Any], None]


class Rule:
    """Checks one property. Subclasses override the events they need; an event nobody overrides costs nothing."""

    name: ClassVar[str]
    """How diagnostics name the rule."""
    expressions: ClassVar[bool] = False
    """Whether the rule looks inside expressions."""

    def __init__(self, program: Program, found: list[Diagnostic]) -> None:
        self.program = program
        self._found = found

    def report(self, message: str, span: object, code: int = 0, hint: str | None = None) -> None:
        self._found.append(Diagnostic(message, span, hint=hint, rule_name=self.name, error_code=code))

    def enter_function(self, function: Function) -> bool | None:
        """Before a function's parameters are defined. False means: leave this function out of the walk."""

    def exit_function(self, function: Function) -> None:
        """After a function's body."""

    def use(self, var: Var) -> None:
        """A variable is read."""

    def define(self, var: Var) -> None:
        """A variable is defined."""

    def enter_scope(self, owner: IRNode) -> None:
        """A loop body or branch of ``owner`` begins."""

    def exit_scope(self, owner: IRNode) -> None:
        """It ends."""


@cache
def _hook_name(rule: type[Rule], node: type, prefix: str) -> str | None:
    """The method of ``rule`` for nodes of class ``node``: the most specific there is."""
    kinds = (base.__dict__.get("node_kind") for base in node.__mro__)
    names = (f"{prefix}_{kind}" for kind in kinds if kind)
    return next((name for name in names if hasattr(rule, name)), None)


_EVENTS = ("exit_function", "use", "define", "enter_scope", "exit_scope")
_ONLY_EXPRESSIONS = (AssignStmt, EvalStmt, YieldStmt, ReturnStmt)


class _Driver:
    """Walks a program in evaluation order and tells the rules."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._expressions = any(r.expressions for r in rules)
        self._plans: dict[type, tuple[list[Hook], Callable[[_Driver, Any], None], list[Hook]]] = {}
        self._events: dict[str, list[Hook]] = {
            name: [getattr(r, name) for r in rules if getattr(type(r), name) is not getattr(Rule, name)]
            for name in _EVENTS
        }
        self._uses, self._defines = self._events["use"], self._events["define"]

    def _plan(self, cls: type) -> tuple[list[Hook], Callable[[_Driver, Any], None], list[Hook]]:
        before, after = [], []
        for rule in self._rules:
            for hooks, prefix in ((before, "visit"), (after, "leave")):
                name = _hook_name(type(rule), cls, prefix)
                if name is not None:
                    hooks.append(getattr(rule, name))
        made = self._plans[cls] = (before, self._descent(cls), after)
        return made

    def _descent(self, cls: type) -> Callable[[_Driver, Any], None]:
        for base, walk in _DESCENTS.items():
            if issubclass(cls, base):
                return walk
        if issubclass(cls, Expr) or issubclass(cls, _ONLY_EXPRESSIONS):
            skip = not self._expressions
            if issubclass(cls, AssignStmt):
                return _Driver._only_definition if skip else _Driver._parts
            return _Driver._nothing if skip else _Driver._parts
        return _Driver._parts

    def visit(self, op: IRNode) -> None:
        before, descend, after = self._plans.get(op.__class__) or self._plan(op.__class__)
        for hook in before:
            hook(op)
        descend(self, op)
        for hook in after:
            hook(op)

    def define(self, var: Any) -> None:
        if isinstance(var, IterArg):
            self.visit(var.init_value)
        for hook in self._defines:
            hook(var)

    def visit_type(self, _type: IRNode) -> None:
        """Types hold no statements, and a dynamic dimension in one needs no definition."""

    def visit_mapping(self, mapping: Mapping[str, Any]) -> None:
        for item in mapping_items(mapping):
            self.visit(item)

    def _event(self, name: str, op: IRNode) -> None:
        for hook in self._events[name]:
            hook(op)

    def _nothing(self, _op: Any) -> None:
        """Nothing below concerns any rule."""

    def _only_definition(self, op: AssignStmt) -> None:
        self.define(op.var)

    def _parts(self, op: IRNode) -> None:
        op._visit_children(self)

    def _var(self, op: Var) -> None:
        for hook in self._uses:
            hook(op)

    def _scoped(self, owner: IRNode, defined: Iterable[Var], *parts: IRNode | None) -> None:
        self._event("enter_scope", owner)
        for var in defined:
            for hook in self._defines:
                hook(var)
        for part in parts:
            if part is not None:
                self.visit(part)
        self._event("exit_scope", owner)

    def _if(self, op: IfStmt) -> None:
        self.visit(op.condition)
        self._scoped(op, (), op.then_body)
        if op.else_body is not None:
            self._scoped(op, (), op.else_body)
        for var in op.return_vars:
            self.define(var)

    def _for(self, op: ForStmt) -> None:
        for part in (op.start, op.stop, op.step, *(a.init_value for a in op.iter_args)):
            self.visit(part)
        self.visit_mapping(op.attrs)
        self._scoped(op, (*op.iter_args, op.loop_var), op.body)
        for var in op.return_vars:
            self.define(var)

    def _while(self, op: WhileStmt) -> None:
        for arg in op.iter_args:
            self.visit(arg.init_value)
        self._scoped(op, op.iter_args, op.condition, op.body)
        for var in op.return_vars:
            self.define(var)

    def _function(self, op: Function) -> None:
        for var in op.params:
            self.define(var)
        if op.attrs:
            self.visit_mapping(op.attrs)
        self.visit(op.body)
        self._event("exit_function", op)


_DESCENTS: dict[type, Callable[[_Driver, Any], None]] = {
    Var: _Driver._var,
    IfStmt: _Driver._if,
    ForStmt: _Driver._for,
    WhileStmt: _Driver._while,
    Function: _Driver._function,
}


def run(
    rule_classes: Iterable[type[Rule]], program: Program, functions: Iterable[Function] | None = None
) -> list[Diagnostic]:
    """What the rules find in ``functions``, by default those of ``program``, in order of the walk."""
    found: list[Diagnostic] = []
    rules = [cls(program, found) for cls in rule_classes]
    drivers: dict[tuple[Rule, ...], _Driver] = {}
    for function in program.functions.values() if functions is None else functions:
        due = tuple([r for r in rules if r.enter_function(function) is not False])
        if due:
            driver = drivers.get(due)
            if driver is None:
                driver = drivers[due] = _Driver(list(due))
            driver.visit(function)
    return found
