"""``with`` regions: placement and task scopes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ...errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ...ir.enums import Level, Role
from ...ir.stmt import ClusterScopeStmt, HierarchyScopeStmt, InCoreScopeStmt, RuntimeScopeStmt
from .. import forms
from .control_flow import ControlFlowMixin
from .statements import STATEMENTS, Body


class RegionsMixin(ControlFlowMixin):
    """Parses with statements."""

    regions: list[str]

    def _with(self, node: ast.With, limit: int) -> None:
        if len(node.items) != 1:
            self.fail(UnsupportedFeatureError, "Unsupported statement: one with statement opens one region", node, "nest the with statements")
        item = node.items[0]
        call = item.context_expr
        form = self.callee(call.func) if isinstance(call, ast.Call) else None
        handler = _REGIONS.get(form) if isinstance(form, forms.Form) else None
        if handler is None or not isinstance(call, ast.Call):
            self.fail(
                UnsupportedFeatureError,
                f"Unsupported context manager in a with statement: {ast.unparse(call)}",
                call,
                "use pl.at, pl.cluster, pl.spmd, pl.split_aiv, pl.scope or pl.manual_scope",
            )
        handler(self, call, item.optional_vars, node, limit)

    def region_body(self, kind: str, node: ast.With | ast.For, limit: int) -> Body:
        """The statements of a region. Names bound in it are readable after it."""
        self.regions.append(kind)
        try:
            body = self.parse_body(node.body, "region", limit)
        finally:
            self.regions.pop()
        if body.ends == "return":
            self.body.ends = "return"
        return body

    def member(self, enum: Any, node: ast.expr, what: str) -> Any:
        value = self.value(node)
        if not isinstance(value, enum):
            self.fail(ParserTypeError, f"{what} must be a {enum.__name__}, got {ast.unparse(node)}", node, f"write pl.{enum.__name__}.{next(iter(enum)).name}")
        return value

    def string(self, node: ast.expr, what: str) -> str:
        value = self.value(node)
        if not isinstance(value, str):
            self.fail(ParserTypeError, f"{what} must be a string", node)
        return value

    def _at(self, call: ast.Call, name: ast.expr | None, node: ast.With, limit: int) -> None:
        options = self.keywords(call, ("level", "role", "name_hint"))
        if call.args:
            options.setdefault("level", call.args[0])
        if "level" not in options:
            self.fail(ParserSyntaxError, "pl.at() requires level=", call, "write pl.at(level=pl.Level.CORE_GROUP)")
        level = self.member(Level, options["level"], "level")
        role = self.member(Role, options["role"], "role") if "role" in options else None
        hint = self.string(options["name_hint"], "name_hint") if "name_hint" in options else ""
        body = self.stmt_of(self.region_body("at", node, limit), node)
        span = self.span(node)
        if level is Level.CORE_GROUP:
            self.emit(InCoreScopeStmt(name_hint=hint, body=body, span=span))
        else:
            self.emit(HierarchyScopeStmt(level=level, role=role, name_hint=hint, body=body, span=span))

    def _cluster(self, call: ast.Call, name: ast.expr | None, node: ast.With, limit: int) -> None:
        options = self.keywords(call, ("name_hint",))
        hint = self.string(options["name_hint"], "name_hint") if "name_hint" in options else ""
        body = self.stmt_of(self.region_body("cluster", node, limit), node)
        self.emit(ClusterScopeStmt(name_hint=hint, body=body, span=self.span(node)))

    def _scope(self, call: ast.Call, name: ast.expr | None, node: ast.With, limit: int) -> None:
        body = self.stmt_of(self.region_body("scope", node, limit), node)
        self.emit(RuntimeScopeStmt(manual=True, body=body, span=self.span(node)))

    def region_loop(self, form: Any, call: ast.Call, node: ast.For, limit: int) -> None:
        self.fail(UnsupportedFeatureError, f"Unsupported loop pl.{form.name}", node)


_REGIONS: Final[dict[forms.Form, Callable[..., None]]] = {
    forms.at: RegionsMixin._at,
    forms.cluster: RegionsMixin._cluster,
    forms.manual_scope: RegionsMixin._scope,
}
STATEMENTS[ast.With] = RegionsMixin._with
