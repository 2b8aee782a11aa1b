"""Printing statements and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...dtypes import DataType
from .. import stmt as S
from ..enums import ForKind, FunctionType, ParamDirection, Role, SplitMode
from ..expr import Call, ConstInt, Expr, MakeTuple, Var
from ..node import NodeList
from ..program import _DERIVED, Function
from ..types import ScalarType, Type, UnknownType, same_but_region
from .names import Names
from .values import ValuePrinter, quoted

_LOOPS: Final = {
    ForKind.Sequential: "range",
    ForKind.Parallel: "parallel",
    ForKind.Unroll: "unroll",
    ForKind.Pipeline: "pipeline",
}
_DIRECTED: Final = {ParamDirection.Out: "Out", ParamDirection.InOut: "InOut"}
_DECORATOR_ATTRS: Final = ("auto_scope", "external_source")


class StatementPrinter:
    """Writes statements as lines.

    ``targets`` are the variables the next yield assigns. ``on_core`` says that statements already run on a core
    group, so that a lane region does not put itself on one.
    """

    __slots__ = ("lines", "indent", "values", "pl", "concise", "targets", "in_function", "on_core")

    def __init__(
        self, names: Names, prefix: str, concise: bool, explicit: bool, in_program: bool = False, indent: str = ""
    ) -> None:
        self.lines: list[str] = []
        self.indent = indent
        self.values = ValuePrinter(names, prefix, explicit, in_program)
        self.pl = self.values.pl
        self.concise = concise
        self.targets: NodeList | None = None
        self.in_function = False
        self.on_core = False

    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def statement(self, s: S.Stmt) -> None:
        if s.leading_comments:
            for comment in s.leading_comments:
                for text in comment.split("\n"):
                    self.line(f"# {text}" if text else "#")
        _STATEMENTS[s.__class__](self, s)

    def block(self, s: S.Stmt | None) -> None:
        """An indented body."""
        outer, self.indent = self.indent, self.indent + "    "
        before = len(self.lines)
        if s is not None:
            self.statement(s)
        if all(x.lstrip().startswith("#") for x in self.lines[before:]):
            self.line("pass")
        self.indent = outer

    def yielding_block(self, s: S.Stmt | None, targets: NodeList) -> None:
        outer, self.targets = self.targets, targets
        self.block(s)
        self.targets = outer

    def annotated(self, var: Var, value: Type | None = None) -> str:
        """``var`` with its type: that of the ``value`` assigned where only the valid region differs."""
        name, type = self.values.names[var], var.type
        if self.concise or type.__class__ is UnknownType:
            return name
        if value is not None and value is not type and same_but_region(type, value):
            type = value
        return f"{name}: {self.values.type(type)}"

    def right_side(self, e: Expr) -> str:
        if isinstance(e, MakeTuple):
            return f"({self.values.list(e.elements)}{',' if len(e.elements) == 1 else ''})"
        return self.values.expr(e)

    def assign(self, s: S.AssignStmt) -> None:
        value = self.right_side(s.value)
        self.line(f"{self.annotated(s.var, s.value.type)} = {value}")

    def yield_(self, s: S.YieldStmt) -> None:
        values = self.values.list(s.values)
        if self.targets is None and self.in_function:
            self.line(f"return {values}" if values else "return")
            return
        call = f"{self.pl}yield_({values})"
        if not self.targets:
            self.line(call)
        elif len(self.targets) == 1:
            self.line(f"{self.annotated(self.targets[0])} = {call}")
        else:
            self.line(f"{', '.join([self.values.names[v] for v in self.targets])} = {call}")

    def return_(self, s: S.ReturnStmt) -> None:
        self.line("return " + ", ".join([self.right_side(v) for v in s.value]) if s.value else "return")

    def inline(self, s: S.InlineStmt) -> None:
        for text in s.body.split("\n"):
            self.line(text) if text else self.lines.append("")

    def if_(self, s: S.IfStmt) -> None:
        self.line(f"if {self.values.expr(s.condition)}:")
        self.yielding_block(s.then_body, s.return_vars)
        if s.else_body is not None:
            self.line("else:")
            self.yielding_block(s.else_body, s.return_vars)

    def init_values(self, iter_args: NodeList) -> str:
        items = [self.values.expr(a.init_value) for a in iter_args]
        return f"init_values=({', '.join(items)}{',' if len(items) == 1 else ''})"

    def carried(self, iter_args: NodeList) -> str:
        names = [self.values.names[a] for a in iter_args]
        return f"({', '.join(names)}{',' if len(names) == 1 else ''})"

    def for_(self, s: S.ForStmt) -> None:
        parts = self.bounds(s)
        stages = s.attrs.get("pipeline_stages")
        if stages is not None:
            parts.append(f"stage={self.values.value(stages)}")
        if s.iter_args:
            parts.append(self.init_values(s.iter_args))
        if s.attrs:
            parts += self.values.attrs(s.attrs, ("pipeline_stages",))
        target = self.values.names[s.loop_var]
        if s.iter_args:
            target += f", {self.carried(s.iter_args)}"
        self.line(f"for {target} in {self.pl}{_LOOPS[s.kind]}({', '.join(parts)}):")
        self.yielding_block(s.body, s.return_vars)

    def bounds(self, s: S.ForStmt) -> list[str]:
        start, stop, step = (self.values.expr(e) for e in (s.start, s.stop, s.step))
        if not _is_index_const(s.step, 1):
            return [start, stop, step]
        return [stop] if _is_index_const(s.start, 0) else [start, stop]

    def while_(self, s: S.WhileStmt) -> None:
        if not s.iter_args:
            self.line(f"while {self.values.expr(s.condition)}:")
            self.yielding_block(s.body, s.return_vars)
            return
        init = self.init_values(s.iter_args)
        self.line(f"for {self.carried(s.iter_args)} in {self.pl}while_({init}):")
        self.line(f"    {self.pl}cond({self.values.expr(s.condition)})")
        self.yielding_block(s.body, s.return_vars)

    def with_(self, form: str, parts: list[str], s: Any, skip: tuple[str, ...] = ()) -> None:
        """A scope as ``with pl.<form>(<parts>)``, its task dependencies and captured task id included."""
        parts = [*parts, *self.scope_keywords(s, skip)]
        task_id = s.attrs.get("task_id_var")
        tail = f" as {self.values.names[task_id]}" if task_id is not None else ""
        self.line(f"with {self.pl}{form}({', '.join(parts)}){tail}:")
        self.block(s.body)

    def scope_keywords(self, s: Any, skip: tuple[str, ...] = ()) -> list[str]:
        """The keywords every scope may carry."""
        attrs, parts = s.attrs, []
        if s.name_hint and "name_hint" not in skip:
            parts.append(f"name_hint={quoted(s.name_hint)}")
        if not attrs:
            return parts
        for key, name in _SCOPE_LISTS.items():
            if key in attrs:
                parts.append(f"{name}=[{self.values.list(attrs[key])}]")
        if "allow_early_resolve" in attrs:
            parts.append(f"allow_early_resolve={attrs['allow_early_resolve']}")
        if "windowize" in attrs:
            parts.append(f"windowize={attrs['windowize']}")
        if "predicate" in attrs:
            parts.append(f"predicate=({self.values.expr(attrs['predicate'])})")
        return parts + self.values.attrs(attrs, (*_SCOPE_ATTRS, *skip))

    def optimizations(self, split: SplitMode | None, attrs: dict[str, Any]) -> list[str]:
        items = [f"{self.pl}split({self.values.enum(split)})"] if split is not None and split.value else []
        if "slot_num" in attrs:
            items.append(f"{self.pl}cross_core_slot(slot_num={self.values.value(attrs['slot_num'])})")
        return [f"optimizations=[{', '.join(items)}]"] if items else []

    def incore(self, s: S.InCoreScopeStmt) -> None:
        implied = s.split is SplitMode.NONE and not (s.name_hint or s.attrs or self.on_core)
        if implied and isinstance(s.body, S.SplitAivScopeStmt):
            # A lane region on its own: the language puts this scope around it.
            self.statement(s.body)
            return
        outer, self.on_core = self.on_core, True
        level = f"level={self.pl}Level.CORE_GROUP"
        self.with_("at", [level, *self.optimizations(s.split, s.attrs)], s, ("slot_num",))
        self.on_core = outer

    def hierarchy(self, s: S.HierarchyScopeStmt) -> None:
        parts = [f"level={self.values.enum(s.level)}"]
        if s.role is not None:
            parts.append(f"role={self.values.enum(s.role)}")
        self.with_("at", parts, s)

    def cluster(self, s: S.ClusterScopeStmt) -> None:
        self.with_("cluster", [], s)

    def runtime(self, s: S.RuntimeScopeStmt) -> None:
        self.with_("scope", [f"mode={self.pl}ScopeMode.MANUAL"] if s.manual else [], s)

    def spmd(self, s: S.SpmdScopeStmt) -> None:
        parts = [self.values.expr(s.core_num)]
        if s.sync_start:
            parts.append("sync_start=True")
        inner = s.body
        index = _leading_binding(inner.body, "tile.get_block_idx") if isinstance(inner, S.InCoreScopeStmt) else None
        outer, self.on_core = self.on_core, True
        if isinstance(inner, S.InCoreScopeStmt) and index is not None and _is_loop_carrier(s, inner):
            self.spmd_loop(s, inner, index, parts)
        else:
            self.with_("spmd", parts, s)
        self.on_core = outer

    def spmd_loop(self, s: S.SpmdScopeStmt, inner: S.InCoreScopeStmt, index: Var, parts: list[str]) -> None:
        """Blocks that run an inline kernel: the loop variable is the block's index."""
        parts = parts + self.optimizations(inner.split, inner.attrs)
        if inner.name_hint:
            parts.append(f"name_hint={quoted(inner.name_hint)}")
        parts += self.scope_keywords(s, ("name_hint",))
        self.line(f"for {self.values.names[index]} in {self.pl}spmd({', '.join(parts)}):")
        self.block(_without_first(inner.body))

    def split_aiv(self, s: S.SplitAivScopeStmt) -> None:
        index = _leading_binding(s.body, "tile.get_subblock_idx")
        name = self.values.names[index] if index is not None else self.values.names.fresh("aiv_id")
        parts = [str(s.count), f"mode={self.values.enum(s.split)}", *self.scope_keywords(s)]
        self.line(f"for {name} in {self.pl}split_aiv({', '.join(parts)}):")
        outer, self.values.lane_split = self.values.lane_split, s.split
        self.block(_without_first(s.body) if index is not None else s.body)
        self.values.lane_split = outer

    def comm_domain(self, s: S.CommDomainScopeStmt) -> None:
        """A remark only: what windows share devices follows from the rest."""
        devices = self.values.list(s.devices) if s.devices else "all"
        slots = ", ".join(self.values.names[w.base] for w in s.slots)
        self.line(f"# communication domain {s.name_hint}: windows {slots}, devices {devices}")
        self.statement(s.body)


_SCOPE_LISTS: Final = {
    "manual_dep_edges": "deps",
    "arg_direction_overrides_vars": "no_dep_args",
    "dump_vars": "dumps",
}
_SCOPE_ATTRS: Final = (*_SCOPE_LISTS, "task_id_var", "allow_early_resolve", "predicate", "windowize")


def _is_index_const(e: Expr, value: int) -> bool:
    """Whether ``e`` is the bound the language assumes when it is left out; narrower dtypes must be written."""
    if not isinstance(e, ConstInt) or e.value != value or not isinstance(e.type, ScalarType):
        return False
    return e.type.dtype in (DataType.INDEX, DataType.INT64)


def _leading_binding(body: S.Stmt, op: str) -> Var | None:
    """The variable that ``body`` first binds to a call of ``op``."""
    first = body.stmts[0] if isinstance(body, S.SeqStmts) and body.stmts else body
    if isinstance(first, S.AssignStmt) and isinstance(first.value, Call) and first.value.op.name == op:
        return first.var
    return None


def _is_loop_carrier(s: S.SpmdScopeStmt, inner: S.InCoreScopeStmt) -> bool:
    """Whether the loop form of ``pl.spmd`` would make just this scope and the one inside it."""
    if not {"task_id_var", "manual_dep_edges"}.isdisjoint(s.attrs) or not inner.attrs.keys() <= {"slot_num"}:
        return False
    return s.name_hint == (f"{inner.name_hint}_spmd" if inner.name_hint else "")


def _without_first(body: S.Stmt) -> S.Stmt | None:
    return S.SeqStmts(body.stmts[1:]) if isinstance(body, S.SeqStmts) else None


def _sequence(p: StatementPrinter, s: S.SeqStmts) -> None:
    for each, following in zip(s.stmts, (*s.stmts[1:], None)):
        if not _is_task_id_seed(each, following):
            p.statement(each)


def _is_task_id_seed(s: S.Stmt, following: S.Stmt | None) -> bool:
    """Whether ``s`` sets the task id the next region captures, which ``as tid`` does again."""
    if not isinstance(following, S.ScopeStmt) or not isinstance(s, S.AssignStmt) or not isinstance(s.value, Call):
        return False
    return s.value.op.name == "system.task_invalid" and following.attrs.get("task_id_var") is s.var


_STATEMENTS: Final[dict[type, Callable[[Any, Any], None]]] = {
    S.AssignStmt: StatementPrinter.assign,
    S.EvalStmt: lambda p, s: p.line(p.values.expr(s.expr)),
    S.SeqStmts: _sequence,
    S.YieldStmt: StatementPrinter.yield_,
    S.ReturnStmt: StatementPrinter.return_,
    S.BreakStmt: lambda p, s: p.line("break"),
    S.ContinueStmt: lambda p, s: p.line("continue"),
    S.InlineStmt: StatementPrinter.inline,
    S.IfStmt: StatementPrinter.if_,
    S.ForStmt: StatementPrinter.for_,
    S.WhileStmt: StatementPrinter.while_,
    S.InCoreScopeStmt: StatementPrinter.incore,
    S.ClusterScopeStmt: StatementPrinter.cluster,
    S.HierarchyScopeStmt: StatementPrinter.hierarchy,
    S.SpmdScopeStmt: StatementPrinter.spmd,
    S.SplitAivScopeStmt: StatementPrinter.split_aiv,
    S.RuntimeScopeStmt: StatementPrinter.runtime,
    S.CommDomainScopeStmt: StatementPrinter.comm_domain,
}


class FunctionPrinter(StatementPrinter):
    """Writes a function, as a method when ``in_program``."""

    __slots__ = ("in_program",)

    def __init__(self, names: Names, prefix: str, concise: bool, explicit: bool, in_program: bool) -> None:
        super().__init__(names, prefix, concise, explicit, in_program, "    " if in_program else "")
        self.in_program = in_program
        self.in_function = True

    def function(self, f: Function) -> None:
        self.on_core = f.is_incore
        options = self.decorator(f)
        self.line(f"@{self.pl}function" + (f"({', '.join(options)})" if options else ""))
        on_host = f.requires_runtime_binding or isinstance(f.body, S.InlineStmt)
        params = ["self"] if self.in_program and not on_host else []
        params += [self.parameter(v, d) for v, d in zip(f.params, f.param_directions)]
        self.line(f"def {f.name}({', '.join(params)}){self.returns(f)}:")
        attrs = {k: v for k, v in f.attrs.items() if k not in _DECORATOR_ATTRS}
        prologue = self.prologue(attrs)
        if prologue:
            self.line(f"    {self.pl}func_attr({{{prologue}}})")
        if f.requires_runtime_binding or f.external_source is not None:
            self.line("    ...")
        else:
            self.block(f.body)

    def parameter(self, var: Var, direction: ParamDirection) -> str:
        text = self.values.type(var.type)
        wrapper = _DIRECTED.get(direction)
        return f"{self.values.names[var]}: {f'{self.pl}{wrapper}[{text}]' if wrapper else text}"

    def returns(self, f: Function) -> str:
        if not f.return_types:
            return ""
        types = [self.values.type(t) for t in f.return_types]
        return f" -> {types[0]}" if len(types) == 1 else f" -> tuple[{', '.join(types)}]"

    def decorator(self, f: Function) -> list[str]:
        options = []
        if f.func_type is not FunctionType.Opaque:
            options.append(f"type={self.values.enum(f.func_type)}")
        if f.func_type not in _DERIVED:
            if f.level is not None:
                options.append(f"level={self.values.enum(f.level)}")
            if isinstance(f.role, Role):
                options.append(f"role={self.values.enum(f.role)}")
        options += [f"{k}={self.values.value(f.attrs[k])}" for k in _DECORATOR_ATTRS if k in f.attrs]
        return options

    def prologue(self, attrs: dict[str, Any]) -> str:
        """The function attributes; a split of none says nothing and is left out."""
        items = []
        for key, value in attrs.items():
            if key == "split":
                value = value if isinstance(value, SplitMode) else SplitMode(value)
                if value is SplitMode.NONE:
                    continue
            items.append(f"{quoted(key)}: {self.values.value(value)}")
        return ", ".join(items)
