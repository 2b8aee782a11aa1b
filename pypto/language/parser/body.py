"""Bodies while they are parsed."""

from __future__ import annotations

import ast

from ...ir.expr import Expr
from ...ir.stmt import Stmt
from ...ir.types import Type


class YieldInfo:
    """What a body yields: values, and the names and annotations its ``pl.yield_`` assignment gives."""

    __slots__ = ("values", "names", "annotations", "node")

    def __init__(
        self, values: list[Expr], names: list[str] | None, annotations: list[Type | None], node: ast.AST
    ) -> None:
        self.values, self.names, self.annotations, self.node = values, names, annotations, node


class Body:
    """A body being parsed: its statements and what it yields; ``ends`` says that nothing may follow."""

    __slots__ = ("stmts", "yielded", "ends", "kind", "outer")

    def __init__(self, kind: str, outer: Body | None = None) -> None:
        self.outer = outer
        self.stmts: list[Stmt] = []
        self.yielded: YieldInfo | None = None
        self.ends: str | None = None
        self.kind = kind
