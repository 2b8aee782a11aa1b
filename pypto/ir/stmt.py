"""Statements and scopes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from ..errors import InternalError
from .enums import ForKind, InlineLanguage, Level, Role, ScopeKind, SplitMode
from .expr import Call, Expr, IterArg, Var, index_const
from .node import DATA, EMPTY, MAPPING, NODE, NODES, IRNode, NodeList, define, ignore, node, node_list, use
from .span import UNKNOWN_SPAN, Span


@node
class Stmt(IRNode):
    """Base of statements. ``leading_comments`` are the source comments above it."""

    leading_comments: NodeList = ignore(DATA, EMPTY)
    abstract = True


def attach_leading_comments(stmt: Stmt, comments: Iterable[str]) -> Stmt:
    """Set the comments above ``stmt``, in place, and return it.

    Comments are not part of a statement's meaning; binding them late is the one change a node allows.
    Raises ValueError for a sequence, whose statements carry their own.
    """
    if isinstance(stmt, SeqStmts):
        raise ValueError("a SeqStmts carries no comments: attach them to a statement inside it")
    object.__setattr__(stmt, "leading_comments", node_list(comments))
    return stmt


@node
class AssignStmt(Stmt):
    """``var = value``."""

    value: Expr = use(NODE)
    var: Var = define(NODE)

    signature = ("var", "value", "span", "leading_comments")


@node
class EvalStmt(Stmt):
    """Evaluate ``expr`` for its effect."""

    expr: Expr = use(NODE)


@node
class SeqStmts(Stmt):
    """Statements in order."""

    stmts: NodeList = use(NODES)

    def __getitem__(self, index: int) -> Stmt:
        return self.stmts[index]


def _values_and_span(values: Iterable[Expr] | Span, span: Span) -> tuple[NodeList, Span]:
    """A statement without values may give its span alone."""
    return (EMPTY, values) if isinstance(values, Span) else (node_list(values), span)


@node
class YieldStmt(Stmt):
    """Hand ``values`` to the enclosing loop or branch."""

    values: NodeList = use(NODES, EMPTY)

    def __new__(
        cls, values: Iterable[Expr] | Span = (), span: Span = UNKNOWN_SPAN, leading_comments: Iterable[str] = ()
    ) -> YieldStmt:
        return cls._build(*_values_and_span(values, span), node_list(leading_comments))

    @property
    def value(self) -> NodeList:
        return self.values


@node
class ReturnStmt(Stmt):
    """Return ``value`` from the function."""

    value: NodeList = use(NODES, EMPTY)

    def __new__(
        cls, value: Iterable[Expr] | Span = (), span: Span = UNKNOWN_SPAN, leading_comments: Iterable[str] = ()
    ) -> ReturnStmt:
        return cls._build(*_values_and_span(value, span), node_list(leading_comments))

    @property
    def values(self) -> NodeList:
        return self.value


@node
class BreakStmt(Stmt):
    """Leave the loop."""


@node
class ContinueStmt(Stmt):
    """Start the next iteration."""


@node
class InlineStmt(Stmt):
    """A verbatim body in another language."""

    body: str = use(DATA)
    language: InlineLanguage = use(DATA, InlineLanguage.Python)


@node
class IfStmt(Stmt):
    """Branches; ``return_vars`` receive what the taken branch yields."""

    condition: Expr = use(NODE)
    then_body: Stmt = use(NODE)
    else_body: Stmt | None = use(NODE, None)
    return_vars: NodeList = define(NODES, EMPTY)


@node
class ForStmt(Stmt):
    """A counted loop; ``return_vars`` receive the last yielded values, or the initial ones."""

    start: Expr = use(NODE)
    stop: Expr = use(NODE)
    step: Expr = use(NODE)
    iter_args: NodeList = define(NODES, EMPTY)
    loop_var: Var = define(NODE)
    body: Stmt = use(NODE)
    return_vars: NodeList = define(NODES, EMPTY)
    kind: ForKind = use(DATA, ForKind.Sequential)
    attrs: dict[str, Any] = use(MAPPING)

    def __new__(
        cls,
        loop_var: Var,
        start: Expr,
        stop: Expr,
        step: Expr,
        iter_args: Iterable[IterArg],
        body: Stmt,
        return_vars: Iterable[Var],
        span: Span = UNKNOWN_SPAN,
        kind: ForKind = ForKind.Sequential,
        attrs: Mapping[str, Any] | None = None,
        leading_comments: Iterable[str] = (),
    ) -> ForStmt:
        carried, results = node_list(iter_args), node_list(return_vars)
        return cls._build(
            start, stop, step, carried, loop_var, body, results, kind, dict(attrs or {}), span,
            node_list(leading_comments),
        )  # fmt: skip


@node
class WhileStmt(Stmt):
    """A conditional loop."""

    iter_args: NodeList = define(NODES, EMPTY)
    condition: Expr = use(NODE)
    body: Stmt = use(NODE)
    return_vars: NodeList = define(NODES, EMPTY)

    signature = ("condition", "iter_args", "body", "return_vars", "span", "leading_comments")


class ScopeStmt(Stmt):
    """A region with an execution context of its own; control flow passes straight through it."""

    __slots__ = ()
    node_kind = "scope_stmt"
    scope_kind: ClassVar[ScopeKind]
    name_hint: str
    body: Stmt
    attrs: dict[str, Any]


@node
class InCoreScopeStmt(ScopeStmt):
    """Runs on a core group; becomes an InCore function."""

    name_hint: str = use(DATA, "")
    body: Stmt = use(NODE)
    split: SplitMode | None = use(DATA, None)
    attrs: dict[str, Any] = use(MAPPING, None)
    scope_kind = ScopeKind.InCore


@node
class ClusterScopeStmt(ScopeStmt):
    """Runs on cube and vector cores together; becomes a Group function."""

    name_hint: str = use(DATA, "")
    body: Stmt = use(NODE)
    attrs: dict[str, Any] = use(MAPPING, None)
    scope_kind = ScopeKind.Cluster


@node
class HierarchyScopeStmt(ScopeStmt):
    """Runs at a machine level; becomes a function of that level and role."""

    level: Level = use(DATA)
    role: Role | None = use(DATA, None)
    name_hint: str = use(DATA, "")
    body: Stmt = use(NODE)
    attrs: dict[str, Any] = use(MAPPING, None)
    scope_kind = ScopeKind.Hierarchy


@node
class SpmdScopeStmt(ScopeStmt):
    """``core_num`` blocks run the region."""

    core_num: Expr = use(NODE)
    sync_start: bool = use(DATA, False)
    name_hint: str = use(DATA, "")
    body: Stmt = use(NODE)
    attrs: dict[str, Any] = use(MAPPING, None)
    scope_kind = ScopeKind.Spmd

    def __new__(
        cls,
        core_num: Expr | int,
        sync_start: bool = False,
        name_hint: str = "",
        body: Stmt | None = None,
        attrs: Mapping[str, Any] | None = None,
        span: Span = UNKNOWN_SPAN,
        leading_comments: Iterable[str] = (),
    ) -> SpmdScopeStmt:
        if body is None:
            raise TypeError("SpmdScopeStmt needs body")
        blocks = index_const(core_num) if isinstance(core_num, int) else core_num
        return cls._build(
            blocks, sync_start, name_hint, body, dict(attrs or {}), span, node_list(leading_comments)
        )


@node
class SplitAivScopeStmt(ScopeStmt):
    """The two vector lanes run the region, each on its part."""

    split: SplitMode = use(DATA)
    count: int = use(DATA, 2)
    name_hint: str = use(DATA, "")
    body: Stmt = use(NODE)
    attrs: dict[str, Any] = use(MAPPING, None)
    scope_kind = ScopeKind.SplitAiv

    def __new__(
        cls,
        split: SplitMode,
        count: int = 2,
        name_hint: str = "",
        body: Stmt | None = None,
        attrs: Mapping[str, Any] | None = None,
        span: Span = UNKNOWN_SPAN,
        leading_comments: Iterable[str] = (),
    ) -> SplitAivScopeStmt:
        if body is None:
            raise TypeError("SplitAivScopeStmt needs body")
        if count != 2:
            raise InternalError(f"a core group has 2 vector lanes, not {count}")
        return cls._build(split, count, name_hint, body, dict(attrs or {}), span, node_list(leading_comments))


@node
class RuntimeScopeStmt(ScopeStmt):
    """A region of tasks whose dependencies the runtime (or, ``manual``, the author) states."""

    manual: bool = use(DATA, False)
    name_hint: str = use(DATA, "")
    body: Stmt = use(NODE)
    attrs: dict[str, Any] = use(MAPPING, None)
    scope_kind = ScopeKind.Runtime


@node
class CommDomainScopeStmt(ScopeStmt):
    """A communication domain with its window buffers."""

    devices: Sequence[Any] = use(DATA, ())
    slots: NodeList = define(NODES, EMPTY)
    name_hint: str = use(DATA, "")
    body: Stmt = use(NODE)
    attrs: dict[str, Any] = use(MAPPING, None)
    scope_kind = ScopeKind.CommDomain


def flatten_to_stmts(stmt: Stmt | None) -> list[Stmt]:
    """The statements of a body, nested sequences opened."""
    if stmt is None:
        return []
    if not isinstance(stmt, SeqStmts):
        return [stmt]
    flat: list[Stmt] = []
    for s in stmt.stmts:
        flat.extend(flatten_to_stmts(s)) if isinstance(s, SeqStmts) else flat.append(s)
    return flat


def leaf_value(stmt: Stmt) -> Expr | None:
    """What a statement that holds no others evaluates; None for the others."""
    if isinstance(stmt, AssignStmt):
        return stmt.value
    return stmt.expr if isinstance(stmt, EvalStmt) else None


def call_of(stmt: Stmt, *names: str) -> Call | None:
    """The call that a statement evaluates, of one of the operators ``names`` where they are given; else None."""
    value = leaf_value(stmt)
    return value if isinstance(value, Call) and (not names or value.op.name in names) else None


def last_yield(body: Stmt | None) -> YieldStmt | None:
    """The yield a body ends with, None when it ends otherwise; regions are not looked through."""
    stmts = flatten_to_stmts(body)
    return stmts[-1] if stmts and isinstance(stmts[-1], YieldStmt) else None


def seq(stmts: Iterable[Stmt], span: Span = UNKNOWN_SPAN) -> Stmt:
    """One statement for many: itself when alone, else a flat sequence."""
    flat: list[Stmt] = []
    for s in stmts:
        flat.extend(flatten_to_stmts(s))
    if len(flat) == 1:
        return flat[0]
    if not span.is_valid() and flat:
        span = flat[0].span
    return SeqStmts(NodeList(flat), span)
