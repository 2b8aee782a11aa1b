"""Functions and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .enums import FunctionType, Level, ParamDirection, Role, SplitMode
from .expr import GlobalVar, Var, _Invocation
from .node import (
    DATA,
    MAPPING,
    NODE,
    NODES,
    TYPES,
    IRNode,
    NodeList,
    define,
    ignore,
    mapping_items,
    node,
    node_list,
    same_objects,
    use,
)
from .span import UNKNOWN_SPAN, Span
from .stmt import Stmt
from .types import CommCtxType, Type

_DERIVED = {
    FunctionType.Orchestration: (Level.CHIP, Role.Orchestrator),
    FunctionType.Graph: (Level.CHIP, Role.Orchestrator),
    FunctionType.InCore: (Level.CHIP_DIE, Role.SubWorker),
    FunctionType.AIC: (Level.AIC, Role.SubWorker),
    FunctionType.AIV: (Level.AIV, Role.SubWorker),
    FunctionType.Group: (Level.CORE_GROUP, Role.SubWorker),
}
INCORE_TYPES = frozenset({FunctionType.InCore, FunctionType.AIC, FunctionType.AIV})


def is_incore_type(func_type: FunctionType) -> bool:
    """Whether a function of this type runs on a core."""
    return func_type in INCORE_TYPES


def is_orchestration_like(func_type: FunctionType) -> bool:
    """Whether a function of this type launches tasks."""
    return func_type in (FunctionType.Orchestration, FunctionType.Graph)


class Summary:
    """What a function contains: node classes, operator names and functions called. Passes skip on it.

    Among the classes, `GlobalVar` stands for any function called.
    """

    __slots__ = ("kinds", "ops", "callees")

    def __init__(self, kinds: frozenset[type], ops: frozenset[str], callees: frozenset[str]) -> None:
        self.kinds, self.ops, self.callees = kinds, ops, callees


class _Summarizer:
    """Collects a `Summary`; types are entered too, so view and memref classes count."""

    def __init__(self) -> None:
        self.kinds: set[type] = set()
        self.ops: set[str] = set()
        self.callees: set[str] = set()
        self._types: set[int] = set()

    def visit(self, item: IRNode) -> None:
        self.kinds.add(type(item))
        if type(item) is Var:
            self.visit_type(item.type)
            return
        if isinstance(item, _Invocation):
            if isinstance(item.op, GlobalVar):
                self.kinds.add(GlobalVar)
                self.callees.add(item.op.name)
            else:
                self.ops.add(item.op.name)
        item._visit_children(self)

    define = visit

    def visit_mapping(self, mapping: Mapping[str, Any]) -> None:
        for item in mapping_items(mapping):
            self.visit(item)

    def visit_type(self, item: Type) -> None:
        if id(item) not in self._types:
            self._types.add(id(item))
            self.kinds.add(type(item))
            item._visit_children(self)


def summarize(function: Function) -> Summary:
    """What ``function`` contains, computed once."""
    cell = function.summary_cell
    if not cell:
        found = _Summarizer()
        found.visit(function)
        cell.append(Summary(frozenset(found.kinds), frozenset(found.ops), frozenset(found.callees)))
    return cell[0]


@node
class Function(IRNode):
    """A function: ``params`` with their directions, ``body``, return types, the core or stage that runs it."""

    name: str = ignore()
    """What programs file it under; functions that differ in nothing else are equal."""
    params: NodeList = define(NODES)
    param_directions: NodeList = use(DATA)
    return_types: NodeList = use(TYPES)
    body: Stmt = use(NODE)
    func_type: FunctionType = use(DATA)
    level: Level | None = use(DATA)
    role: Role | None = use(DATA)
    attrs: dict[str, Any] = use(MAPPING)
    requires_runtime_binding: bool = use(DATA)
    summary_cell: list[Summary] = ignore()
    """Holds the lazily computed summary; shared by no other function."""

    def __new__(
        cls,
        name: str,
        params: Iterable[Var | tuple[Var, ParamDirection]],
        return_types: Iterable[Type],
        body: Stmt,
        span: Span = UNKNOWN_SPAN,
        type: FunctionType = FunctionType.Opaque,
        level: Level | None = None,
        role: Role | None = None,
        attrs: Mapping[str, Any] | None = None,
        requires_runtime_binding: bool = False,
    ) -> Function:
        pairs = [p if isinstance(p, tuple) else (p, ParamDirection.In) for p in params]
        if type in _DERIVED:
            level, role = _derive(type, level, role)
        return cls._build(
            NodeList(v for v, _ in pairs), NodeList(d for _, d in pairs), node_list(return_types), body,
            type, level, role, _stored(attrs or {}), requires_runtime_binding, span, name, [],
        )  # fmt: skip

    def replace(self, **changes: Any) -> Function:
        """A copy with fields changed; a summary is never carried over."""
        made = IRNode.replace(self, **changes)
        return made if made is self or "summary_cell" in changes else IRNode.replace(made, summary_cell=[])

    def caller_params(self) -> list[tuple[Var, ParamDirection]]:
        """Parameters with their directions, but for communication contexts: those follow from the windows passed."""
        return [(p, d) for p, d in self.directed_params() if not isinstance(p.type, CommCtxType)]

    @property
    def is_host_orchestrator(self) -> bool:
        """Whether it runs on the host and says what the devices do."""
        return self.level is Level.HOST and self.role is Role.Orchestrator

    @property
    def is_host_worker(self) -> bool:
        """Whether it is a sub-worker of the host, whose body is Python, or is bound when the program runs."""
        return self.role is Role.SubWorker and self.level is not None and self.level.value >= Level.HOST.value

    def directed_params(self) -> list[tuple[Var, ParamDirection]]:
        """Parameters with their directions."""
        return list(zip(self.params, self.param_directions))

    def with_params(self, params: Iterable[tuple[Var, ParamDirection]], **changes: Any) -> Function:
        """A copy with these parameters and directions, and other fields changed too."""
        pairs = list(params)
        made = {"params": NodeList(p for p, _ in pairs), "param_directions": NodeList(d for _, d in pairs)}
        return self.replace(**made, **changes)

    @property
    def split(self) -> SplitMode | None:
        """How the two vector lanes divide this function's tiles; None when they do not."""
        mode = SplitMode(self.attrs.get("split", 0))
        return None if mode is SplitMode.NONE else mode

    @property
    def external_source(self) -> str | None:
        """The C++ file of a kernel that is not written here."""
        return self.attrs.get("external_source")

    @property
    def is_incore(self) -> bool:
        return self.func_type in INCORE_TYPES


INCLUDE_DIRS = "external_include_dirs"
"""The attribute of a kernel written in C++ that lists, as JSON, where it looks for headers."""


def _stored(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as they are kept: a split mode by its number."""
    return {k: v.value if isinstance(v, SplitMode) else v for k, v in attrs.items()}


def _derive(kind: FunctionType, level: Level | None, role: Role | None) -> tuple[Level, Role]:
    derived = _DERIVED[kind]
    for given, expected, what in ((level, derived[0], "level"), (role, derived[1], "role")):
        if given is not None and given is not expected:
            raise ValueError(f"a {kind.name} function has {what} {expected.name}, not {given.name}")
    return derived


@node
class Program(IRNode):
    """Functions by global variable, in name order."""

    name: str = ignore()
    functions: dict[GlobalVar, Function] = use(DATA)

    def __new__(
        cls,
        functions: Iterable[Function] | Mapping[GlobalVar, Function],
        name: str = "",
        span: Span = UNKNOWN_SPAN,
    ) -> Program:
        items = dict(functions) if isinstance(functions, Mapping) else {GlobalVar(f.name): f for f in functions}
        ordered = dict(sorted(items.items(), key=lambda item: item[0].name))
        names = [g.name for g in ordered]
        for g, f in ordered.items():
            if g.name != f.name:
                raise ValueError(f"function {f.name!r} is filed under the name {g.name!r}")
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise ValueError(f"two functions are named {twice!r}")
        return cls._build(ordered, span, name)

    def __getitem__(self, name: str) -> Function | None:
        return self.get_function(name)

    def get_function(self, name: str) -> Function | None:
        return next((f for f in self.functions.values() if f.name == name), None)

    def get_global_var(self, name: str) -> GlobalVar | None:
        return next((g for g in self.functions if g.name == name), None)

    def with_functions(self, functions: Iterable[Function]) -> Program:
        """A program of ``functions``, keeping global variables by name; ``self`` when they are the same objects."""
        made = list(functions)
        if same_objects(made, list(self.functions.values())):
            return self
        known = {g.name: g for g in self.functions}
        return Program({known.get(f.name) or GlobalVar(f.name): f for f in made}, self.name, self.span)

    def map_functions(self, change: Any) -> Program:
        """Apply ``change`` to every function."""
        return self.with_functions([change(f) for f in self.functions.values()])

    def contains(self, *wanted: type | str) -> bool:
        """Whether any function holds one of the given node classes or operators."""
        kinds = tuple(w for w in wanted if isinstance(w, type))
        ops = {w for w in wanted if isinstance(w, str)}
        for f in self.functions.values():
            summary = summarize(f)
            if not summary.ops.isdisjoint(ops) or not summary.kinds.isdisjoint(kinds):
                return True
        return False
