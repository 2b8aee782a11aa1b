"""``with`` regions and region loops: placement and task scopes."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable
from typing import Any, Final

from ...dtypes import DataType
from ...errors import InternalError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ...ir.enums import FunctionType, Level, Role, SplitMode
from ...ir.expr import ConstInt, Expr, Var
from ...ir.program import Function
from ...ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    RuntimeScopeStmt,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
)
from ...ir.types import DistributedTensorType, ScalarType, TensorType
from ...ops.registry import call as build_op
from .. import forms
from .body import Body
from .calls import OP_HOOKS
from .dependencies import DependenciesMixin
from .expr_evaluator import MISSING
from .optimizations import Optimizations, OptimizationsMixin
from .predicates import PredicatesMixin
from .statements import STATEMENTS

_TASK_ID: Final = ScalarType(DataType.TASK_ID)
_INCORE_TYPES: Final = frozenset({FunctionType.InCore, FunctionType.AIC, FunctionType.AIV})


class RegionsMixin(OptimizationsMixin, DependenciesMixin, PredicatesMixin):
    """Parses with statements and region loops."""

    def _with(self, node: ast.With, limit: int) -> None:
        if len(node.items) != 1:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: one with statement opens one region",
                node,
                "nest the with statements",
            )
        item = node.items[0]
        call = item.context_expr
        form = self._region_form(call)
        handler = _REGIONS.get(form) if form is not None else None
        if handler is None or not isinstance(call, ast.Call):
            self.fail(
                UnsupportedFeatureError,
                f"Unsupported context manager in a with statement: {ast.unparse(call)}",
                call,
                "use pl.at, pl.cluster, pl.spmd, pl.split_aiv, pl.scope or pl.manual_scope",
            )
        if item.optional_vars is not None and form not in (forms.at, forms.spmd):
            self.fail(
                ParserSyntaxError, "`as` only applies to pl.at(..) and pl.spmd(..)", item.optional_vars, "remove it"
            )
        handler(self, call, item.optional_vars, node, limit)

    def _region_form(self, call: ast.expr) -> forms.Form | None:
        """The construct a with statement names, if it names one."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Name, ast.Attribute)):
            return None
        if isinstance(call.func, ast.Name) and self.evaluator.lookup(call.func.id) is MISSING:
            return None
        form = self.callee(call.func) if self.own_method(call.func) is None else None
        return form if isinstance(form, forms.Form) else None

    def region_body(self, kind: str, node: ast.With | ast.For, limit: int) -> Body:
        """The statements of a region. Names bound in it are readable after it."""
        self.regions.append(kind)
        loops, self.loops = self.loops, [*self.loops, kind] if kind == "split_aiv" else self.loops
        try:
            body = self.parse_body(node.body, "region", limit)
        finally:
            self.regions.pop()
            self.loops = loops
        if body.ends == "return":
            self.body.ends = "return"
        return body

    def settings(self, form: forms.RegionForm, call: ast.Call) -> dict[str, ast.expr]:
        """The arguments of a region by name."""
        name = form.name
        if len(call.args) > len(form.positional):
            limit = "at most one positional argument" if form.positional else "no positional arguments"
            self.fail(ParserSyntaxError, f"pl.{name}() takes {limit}", call.args[-1])
        found: dict[str, ast.expr] = dict(zip(form.positional, call.args))
        for kw in call.keywords:
            if kw.arg is None:
                self.fail(ParserSyntaxError, f"pl.{name}() does not accept **kwargs", kw.value, "write each keyword")
            if kw.arg in found:
                self.fail(ParserSyntaxError, f"pl.{name}() got multiple values for argument '{kw.arg}'", kw.value)
            if kw.arg not in form.settings:
                takes = f"it takes {', '.join(form.settings)}" if form.settings else "it takes none"
                self.fail(
                    ParserSyntaxError,
                    f"Unknown keyword argument '{kw.arg}': pl.{name}() does not accept '{kw.arg}='",
                    kw.value,
                    takes,
                )
            found[kw.arg] = kw.value
        return found

    # -- settings

    def _member(self, enum: Any, node: ast.expr, what: str) -> Any:
        value = self.value(node)
        if not isinstance(value, enum):
            example = next(iter(enum)).name
            self.fail(
                ParserTypeError,
                f"{what} must be a {enum.__name__}, got {ast.unparse(node)}",
                node,
                f"write pl.{enum.__name__}.{example}",
            )
        return value

    def _hint(self, options: dict[str, ast.expr]) -> str:
        node = options.get("name_hint")
        if node is None:
            return ""
        value = self.value(node)
        if not isinstance(value, str) or (value and (not value.isidentifier() or keyword.iskeyword(value))):
            self.fail(ParserSyntaxError, f"name_hint must be a valid non-keyword identifier, got {value!r}", node)
        return value

    def flag(self, options: dict[str, ast.expr], name: str) -> bool:
        """A keyword that is True or False, written out."""
        node = options.get(name)
        if node is None:
            return False
        if not isinstance(node, ast.Constant) or not isinstance(node.value, bool):
            self.fail(ParserSyntaxError, f"{name} must be a boolean literal", node, f"write {name}=True")
        return node.value

    def _capture(self, target: ast.expr | None, attrs: dict[str, Any], node: ast.stmt) -> None:
        """``as tid``: a task id, defined before the region so that later regions can wait for it."""
        if target is None:
            return
        if not isinstance(target, ast.Name):
            self.fail(ParserSyntaxError, "the target of `as` must be a plain variable name", target, "write as tid")
        var = Var(target.id, _TASK_ID, self.span(target))
        self.scopes.define_var(target.id, var, allow_redef=True)
        self.emit(AssignStmt(var, build_op("system.task_invalid", span=self.span(node)), self.span(node)))
        attrs["task_id_var"] = var

    def _launch_attrs(self, options: dict[str, ast.expr]) -> dict[str, Any]:
        """Attributes of a region that becomes a task."""
        attrs: dict[str, Any] = {}
        if "deps" in options:
            deps = self.dependencies(options["deps"])
            if deps:
                attrs["manual_dep_edges"] = deps
        if "no_dep_args" in options:
            found = self.tensor_names(options["no_dep_args"], "no_dep_args")
            if found:
                attrs["arg_direction_overrides_vars"] = found
        if "dumps" in options:
            dumps = self.tensor_names(options["dumps"], "dumps", repeat=True)
            if dumps:
                attrs["dump_vars"] = dumps
        if self.flag(options, "allow_early_resolve"):
            attrs["allow_early_resolve"] = True
        return attrs

    def _merge_dump_tags(self, attrs: dict[str, Any]) -> None:
        tags = self.dump_tags
        if tags and not any(r in ("at", "spmd") for r in self.regions):
            known = list(attrs.get("dump_vars", ()))
            attrs["dump_vars"] = known + [t for t in tags if all(t is not k for k in known)]

    # -- pl.at

    def _at(self, call: ast.Call, target: ast.expr | None, node: ast.With, limit: int) -> None:
        options = self.settings(forms.at, call)
        if "level" not in options:
            self.fail(ParserSyntaxError, "pl.at() requires level=", call, "write pl.at(level=pl.Level.CORE_GROUP)")
        level = self._member(Level, options["level"], "level")
        role = self._member(Role, options["role"], "role") if "role" in options else None
        entries = self.optimization_list("at", options.get("optimizations"))
        hint = self._hint(options)
        if level is Level.CORE_GROUP:
            self._at_core_group(options, role, entries, hint, target, node, limit)
            return
        if entries.given:
            at = options["optimizations"]
            self.fail(
                ParserSyntaxError,
                f"pl.at(optimizations=..) applies to level=pl.Level.CORE_GROUP only, not {level.name}",
                at,
            )
        if role is Role.SubWorker and level.value > Level.CORE_GROUP.value and level is not Level.CHIP_DIE:
            self.fail(
                ParserSyntaxError,
                f"role=pl.Role.SubWorker at level {level.name} is not supported as a region",
                options["role"],
                "write a function of its own: @pl.function(level=.., role=pl.Role.SubWorker)",
            )
        attrs = self._launch_attrs(options)
        self._capture(target, attrs, node)
        body = self.stmt_of(self.region_body("hierarchy", node, limit), node)
        self.emit(
            HierarchyScopeStmt(level=level, role=role, name_hint=hint, body=body, attrs=attrs, span=self.span(node))
        )

    def _at_core_group(
        self,
        options: dict[str, ast.expr],
        role: Any,
        entries: Optimizations,
        hint: str,
        target: Any,
        node: ast.With,
        limit: int,
    ) -> None:
        if role is not None:
            self.fail(
                ParserSyntaxError, "role= does not apply to level=pl.Level.CORE_GROUP", options["role"], "remove role="
            )
        attrs = self._launch_attrs(options) | entries.attrs()
        if self.flag(options, "windowize"):
            attrs["windowize"] = True
        self._merge_dump_tags(attrs)
        self._capture(target, attrs, node)
        body = self.stmt_of(self._task_body("at", attrs, node, limit), node)
        self.emit(InCoreScopeStmt(name_hint=hint, body=body, split=entries.split, attrs=attrs, span=self.span(node)))

    # -- pl.cluster, pl.scope

    def _cluster(self, call: ast.Call, target: ast.expr | None, node: ast.With, limit: int) -> None:
        options = self.settings(forms.cluster, call)
        body = self.stmt_of(self.region_body("cluster", node, limit), node)
        self.emit(ClusterScopeStmt(name_hint=self._hint(options), body=body, span=self.span(node)))

    def _scope(self, call: ast.Call, target: ast.expr | None, node: ast.With, limit: int) -> None:
        options = self.settings(forms.scope, call)
        mode = self._member(forms.ScopeMode, options["mode"], "mode") if "mode" in options else forms.ScopeMode.AUTO
        manual = mode is forms.ScopeMode.MANUAL
        if not manual and self.auto_scope:
            self.fail(
                ParserSyntaxError,
                "pl.scope() places AUTO scopes by hand, which the compiler does by itself here",
                call,
                "declare @pl.function(auto_scope=False), or use mode=pl.ScopeMode.MANUAL",
            )
        self._runtime_scope(manual, options, node, limit)

    def _manual_scope(self, call: ast.Call, target: ast.expr | None, node: ast.With, limit: int) -> None:
        self._runtime_scope(True, self.settings(forms.manual_scope, call), node, limit)

    def _runtime_scope(self, manual: bool, options: dict[str, ast.expr], node: ast.With, limit: int) -> None:
        if "manual" in self.regions:
            kind = "a manual" if manual else "an AUTO"
            self.fail(
                ParserSyntaxError,
                f"{kind} scope cannot be nested in a manual one",
                node,
                "one manual scope covers everything inside it",
            )
        body = self.stmt_of(self.region_body("manual" if manual else "scope", node, limit), node)
        self.emit(RuntimeScopeStmt(manual=manual, name_hint=self._hint(options), body=body, span=self.span(node)))

    # -- pl.spmd

    def _spmd(self, call: ast.Call, target: ast.expr | None, node: ast.With, limit: int) -> None:
        options = self.settings(forms.spmd, call)
        if "deps" in options and target is None:
            self.fail(
                ParserSyntaxError,
                "pl.spmd() without `as tid` does not accept 'deps='",
                options["deps"],
                "write with pl.spmd(.., deps=[..]) as tid:",
            )
        if target is not None and "cluster" in self.regions:
            self.fail(ParserSyntaxError, "pl.spmd() cannot capture a TaskId when nested inside pl.cluster()", target)
        core_num, sync, hint, entries, attrs = self._spmd_settings(options, call)
        self._capture(target, attrs, node)
        self._scope_predicate(options, attrs, deps_allowed=target is not None)
        carrier = self._carrier(node.body)
        if carrier is not None and entries.given:
            self._misplaced_optimizations(carrier, options["optimizations"])
        reads_index = reads_block_index(node.body)
        wrap = carrier is None and (entries.given or reads_index)
        if carrier is None and not reads_index:
            self._check_dispatch(node)
        body = self.stmt_of(self._task_body("spmd", attrs, node, limit), node)
        self._emit_spmd(core_num, sync, hint, entries if wrap else None, body, attrs, node)

    def _scope_predicate(self, options: dict[str, ast.expr], attrs: dict[str, Any], deps_allowed: bool) -> None:
        if "predicate" not in options:
            return
        if "cluster" in self.regions:
            message = "pl.spmd(predicate=..) cannot be nested inside `pl.cluster`: it launches no task there"
            self.fail(ParserSyntaxError, message, options["predicate"])
        deps = attrs.get("manual_dep_edges", ())
        attrs["predicate"] = self.predicate(options["predicate"], deps, deps_allowed)

    def _task_body(self, kind: str, attrs: dict[str, Any], node: ast.With, limit: int) -> Body:
        """The body of a region that becomes a task; tensors bound in it come from that task."""
        body = self.region_body(kind, node, limit)
        task = attrs.get("task_id_var")
        if task is not None:
            made = [s.var for s in body.stmts if isinstance(s, AssignStmt) and isinstance(s.var.type, TensorType)]
            self.producers.update((var, task) for var in made)
        return body

    def _spmd_settings(
        self, options: dict[str, ast.expr], call: ast.Call
    ) -> tuple[Expr, bool, str, Optimizations, dict[str, Any]]:
        if "core_num" not in options:
            self.fail(ParserSyntaxError, "pl.spmd() requires core_num", call, "write pl.spmd(8)")
        core_num = self.core_num(options["core_num"])
        attrs = self._launch_attrs(options)
        if attrs.get("allow_early_resolve") and "cluster" in self.regions:
            self.fail(
                ParserSyntaxError,
                "pl.spmd(allow_early_resolve=True) cannot be nested inside `pl.cluster`: it launches no task there",
                options["allow_early_resolve"],
            )
        entries = self.optimization_list("spmd", options.get("optimizations"))
        return core_num, self.flag(options, "sync_start"), self._hint(options), entries, attrs

    def core_num(self, node: ast.expr) -> Expr:
        """A positive number of blocks."""
        value = self.value(node)
        if isinstance(value, bool) or not isinstance(value, (int, Expr)):
            self.fail(ParserSyntaxError, f"core_num must be an integer expression, got {type(value).__name__}", node)
        if isinstance(value, Expr) and not (isinstance(value.type, ScalarType) and value.type.dtype.is_int()):
            self.fail(ParserSyntaxError, "core_num must be an integer expression", node)
        known = value if isinstance(value, int) else value.value if isinstance(value, ConstInt) else 1
        if known < 1:
            self.fail(ParserSyntaxError, f"core_num must be a positive integer, got {known}", node)
        return self.as_expr(value, node)

    def _carrier(self, body: list[ast.stmt]) -> ast.Call | None:
        """The ``pl.at(CORE_GROUP)`` that is the whole body, if it is."""
        if len(body) != 1 or not isinstance(body[0], ast.With) or len(body[0].items) != 1:
            return None
        call = body[0].items[0].context_expr
        if not isinstance(call, ast.Call) or self.callee(call.func) is not forms.at:
            return None
        level = self.settings(forms.at, call).get("level")
        return call if level is not None and self.value(level) is Level.CORE_GROUP else None

    def _misplaced_optimizations(self, carrier: ast.Call, node: ast.expr) -> None:
        if any(k.arg == "optimizations" for k in carrier.keywords):
            self.fail(
                ParserSyntaxError,
                "`optimizations=` is specified twice, on pl.spmd() and on its pl.at()",
                node,
                "keep the one on pl.at()",
            )
        self.fail(
            ParserSyntaxError,
            "`optimizations=` belongs on the InCore scope the body opens",
            node,
            "move it to the pl.at(..)",
        )

    def _check_dispatch(self, node: ast.With) -> None:
        launches = [c for stmt in node.body for c in ast.walk(stmt) if isinstance(c, ast.Call) and self._is_dispatch(c)]
        if not launches:
            self.fail(
                ParserSyntaxError,
                "the pl.spmd() body neither reads the per-block index nor calls a kernel: all blocks would do the same",
                node,
                "read pl.tile.get_block_idx(), or write for i in pl.spmd(n):",
            )
        if len(launches) > 1:
            message = f"the pl.spmd() body launches {len(launches)} kernels"
            self.fail(ParserSyntaxError, message, launches[1], "use one pl.spmd() for each kernel")

    def _is_dispatch(self, call: ast.Call) -> bool:
        if self.own_method(call.func) is not None:
            return True
        if not isinstance(call.func, ast.Name) or self.scopes.is_defined(call.func.id):
            return False
        found = self.evaluator.lookup(call.func.id)
        return isinstance(found, Function) or hasattr(found, "is_inline_function") or hasattr(found, "specialize_call")

    def _emit_spmd(
        self,
        core_num: Expr,
        sync: bool,
        hint: str,
        wrap: Optimizations | None,
        body: Stmt,
        attrs: dict[str, Any],
        node: ast.stmt,
    ) -> None:
        span = self.span(node)
        outer = hint
        if wrap is not None:
            inner: dict[str, Any] = wrap.attrs()
            self._merge_dump_tags(inner)
            base = hint.removesuffix("_spmd") or hint
            body = InCoreScopeStmt(name_hint=base, body=body, split=wrap.split, attrs=inner, span=span)
            outer = f"{base}_spmd" if hint else ""
        self.emit(SpmdScopeStmt(core_num=core_num, sync_start=sync, name_hint=outer, body=body, attrs=attrs, span=span))

    # -- region loops

    def region_loop(self, form: Any, call: ast.Call, node: ast.For, limit: int) -> None:
        """``for i in pl.spmd(n):`` and ``for lane in pl.split_aiv(2, mode=..):``."""
        if not isinstance(node.target, ast.Name):
            self.fail(ParserSyntaxError, f"a pl.{form.name}() loop has a single loop variable", node.target)
        if form is forms.spmd:
            self._spmd_loop(call, node, limit)
        elif form is forms.split_aiv:
            self._split_aiv_loop(call, node, limit)
        else:
            raise InternalError(f"{form!r} is no region loop")

    def _spmd_loop(self, call: ast.Call, node: ast.For, limit: int) -> None:
        options = self.settings(forms.spmd, call)
        if "deps" in options:
            self.fail(
                ParserSyntaxError,
                "a pl.spmd() loop does not accept 'deps='",
                options["deps"],
                "write with pl.spmd(.., deps=[..]) as tid:",
            )
        core_num, sync, hint, entries, attrs = self._spmd_settings(options, call)
        self._scope_predicate(options, attrs, deps_allowed=False)
        body = self._indexed_body("spmd", "tile.get_block_idx", node, limit)
        self._emit_spmd(core_num, sync, hint, entries, body, attrs, node)

    def _indexed_body(self, kind: str, op: str, node: ast.For, limit: int) -> Stmt:
        """The body of a region loop, its index bound first."""
        target: Any = node.target
        index = build_op(op, span=self.span(node.iter))
        var = Var(target.id, index.type, self.span(target))
        self.scopes.define_var(target.id, var, allow_redef=True)
        body = self.region_body(kind, node, limit)
        body.stmts.insert(0, AssignStmt(var, index, self.span(target)))
        message = f"'{target.id}' is the index of the region and cannot be read after it"
        self.scopes.current.names.pop(target.id, None)
        self.scopes.current.lost[target.id] = (message, "compute what you need inside the region", var.span)
        return self.stmt_of(body, node)

    def _split_aiv_loop(self, call: ast.Call, node: ast.For, limit: int) -> None:
        options = self.settings(forms.split_aiv, call)
        if "split_aiv" in self.regions:
            self.fail(
                ParserSyntaxError,
                "a nested pl.split_aiv region is not allowed",
                call,
                "one region already uses both lanes",
            )
        count = self.constant(options["count"], "the lane count") if "count" in options else 2
        if count != 2:
            self.fail(
                ParserSyntaxError,
                f"pl.split_aiv() requires n == 2, the number of vector lanes, got {count}",
                options["count"],
            )
        if "mode" not in options:
            self.fail(
                ParserSyntaxError,
                "pl.split_aiv() requires mode=",
                call,
                "write mode=pl.SplitMode.UP_DOWN, LEFT_RIGHT or NONE",
            )
        mode = self._member(SplitMode, options["mode"], "mode")
        outer_mode, self.split_mode = self.split_mode, mode
        body = self._indexed_body("split_aiv", "tile.get_subblock_idx", node, limit)
        self.split_mode = outer_mode
        region: Stmt = SplitAivScopeStmt(split=mode, count=2, body=body, span=self.span(node))
        if self.func_type not in _INCORE_TYPES and not any(r in ("at", "spmd") for r in self.regions):
            attrs: dict[str, Any] = {}
            self._merge_dump_tags(attrs)
            region = InCoreScopeStmt(body=region, split=SplitMode.NONE, attrs=attrs, span=self.span(node))
        self.emit(region)

    def lane_operator(self, op: Any, node: ast.Call) -> Any:
        """``pl.aiv_shard`` and ``pl.aic_gather`` divide as the region they stand in does."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else op.__name__
        if any(k.arg == "split" for k in node.keywords):
            value = self.value(node.args[0]) if node.args else None
            if isinstance(value, Expr) and isinstance(value.type, TensorType):
                self.fail(
                    ParserSyntaxError,
                    f"pl.tile.{name}(x, split=..) is tile-only",
                    node,
                    "write it in a pl.split_aiv region",
                )
            return self.apply_operator(op, node)
        mode = self.split_mode
        if any(k.arg == "mode" for k in node.keywords) or len(node.args) > 1:
            self.fail(ParserSyntaxError, f"pl.{name}() does not take a mode: it has that of its region", node)
        if mode is None:
            hint = "write for lane in pl.split_aiv(2, mode=..):"
            self.fail(ParserSyntaxError, f"pl.{name}() needs an enclosing pl.split_aiv region", node, hint)
        value = self.value(node.args[0]) if node.args else None
        if isinstance(value, Expr) and isinstance(value.type, DistributedTensorType):
            self.fail(ParserSyntaxError, f"pl.{name}() does not take a distributed tensor", node.args[0])
        level = "tensor" if isinstance(value, Expr) and isinstance(value.type, TensorType) else "tile"
        return self.operator(f"{level}.{name}", [value], node, split=mode.value)


OP_HOOKS["aiv_shard"] = OP_HOOKS["aic_gather"] = RegionsMixin.lane_operator


def reads_block_index(body: list[ast.stmt]) -> bool:
    """Whether statements call ``get_block_idx``, under any spelling."""
    for stmt in body:
        for node in ast.walk(stmt):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == "get_block_idx":
                    return True
    return False


_REGIONS: Final[dict[forms.Form, Callable[..., None]]] = {
    forms.at: RegionsMixin._at,
    forms.cluster: RegionsMixin._cluster,
    forms.spmd: RegionsMixin._spmd,
    forms.scope: RegionsMixin._scope,
    forms.manual_scope: RegionsMixin._manual_scope,
}
STATEMENTS[ast.With] = RegionsMixin._with
