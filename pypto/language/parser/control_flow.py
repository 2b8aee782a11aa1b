"""Loops and branches."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, Final

from ...dtypes import DataType
from ...errors import InternalError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ...ir.enums import ForKind
from ...ir.expr import ConstInt, Expr, IterArg, Var, index_const
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt, YieldStmt
from ...ir.types import ScalarType, Type
from .. import forms
from .base import same_type, type_text
from .body import Body, YieldInfo
from .scope_manager import Frame
from .statements import STATEMENTS, StatementsMixin
from .type_consistency import difference

_LOOPS: Final[dict[forms.Form, tuple[ForKind, str]]] = {
    forms.range: (ForKind.Sequential, "sequential"),
    forms.parallel: (ForKind.Parallel, "parallel"),
    forms.unroll: (ForKind.Unroll, "unrolled"),
    forms.pipeline: (ForKind.Pipeline, "pipeline"),
}
_INDEX: Final = ScalarType(DataType.INDEX)
_USE_RANGE: Final = "loops are pl.range, pl.parallel, pl.unroll, pl.pipeline, pl.while_, pl.spmd and pl.split_aiv"


class ControlFlowMixin(StatementsMixin):
    """Parses for, while and if."""

    region_loop: Callable[[Any, ast.Call, ast.For, int], None]

    # -- for

    def _for(self, node: ast.For, limit: int) -> None:
        if node.orelse:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: else after a loop is not part of the language",
                node.orelse[0],
            )
        call = node.iter
        form = self.callee(call.func) if isinstance(call, ast.Call) and self.own_method(call.func) is None else None
        if isinstance(call, ast.Call) and isinstance(form, forms.Form):
            if form in _LOOPS:
                self._counted_loop(form, call, node, limit)
                return
            if form is forms.while_:
                self._while_loop(call, node, limit)
                return
            if form in (forms.spmd, forms.split_aiv):
                self.region_loop(form, call, node, limit)
                return
        self.fail(
            ParserSyntaxError,
            "For loop must use pl.range() or another loop of the language",
            node.iter,
            _USE_RANGE,
        )

    def _counted_loop(self, form: forms.Form, call: ast.Call, node: ast.For, limit: int) -> None:
        kind, word = _LOOPS[form]
        options = self.keywords(call, ("init_values", "stage", "attrs"))
        attrs = self._loop_attrs(form, options, call)
        bounds = self._bounds(form, call)
        inits = self._init_values(form, options.get("init_values"))
        index, carried = self._loop_target(node.target, inits is not None, form)
        args = self._iter_args(carried, inits or [], node)
        frame = self.scopes.enter_scope("for")
        var = Var(index.id, _INDEX, self.span(index))
        frame.names[index.id] = var
        body = self._carrying_body(frame, args, node, "for", word, limit)
        self._close_frame(frame)
        results = self._loop_results(form, args, body, node)
        start, stop, step = bounds
        loop = ForStmt(var, start, stop, step, args, self.stmt_of(body, node), results, self.span(node), kind, attrs)
        self.emit(loop)
        self._after_loop(frame, body, results, {index.id: index, **{n.id: n for n in carried}}, node, _trips(bounds))

    def _carrying_body(
        self, frame: Frame, args: list[IterArg], node: ast.For, kind: str, word: str, limit: int
    ) -> Body:
        """The body of a loop with carried values. Without a yield it carries what their names hold at its end."""
        frame.names.update({a.name_hint: a for a in args})
        deep = stored_in_blocks(node.body)
        copies = []
        for arg in args:
            if arg.name_hint in deep:
                var = frame.names[arg.name_hint] = Var(arg.name_hint, arg.type, arg.span)
                copies.append(AssignStmt(var, arg, arg.span))
        body = self._loop_body(node, kind, word, limit)
        body.stmts[:0] = copies
        if args and body.yielded is None and body.ends is None:
            names = [a.name_hint for a in args]
            values: list[Expr] = [frame.names[n] for n in names]
            body.yielded = YieldInfo(values, names, [None] * len(args), node)
            body.stmts.append(YieldStmt(values, self.span(node)))
        return body

    def _loop_body(self, node: ast.For | ast.While, kind: str, word: str, limit: int) -> Body:
        self.loops.append(word)
        try:
            return self.parse_body(node.body, kind, limit)
        finally:
            self.loops.pop()

    def _loop_attrs(self, form: forms.Form, options: dict[str, ast.expr], call: ast.Call) -> dict[str, Any]:
        attrs: dict[str, Any] = {}
        if "attrs" in options:
            attrs.update(self.attr_dict(options["attrs"]))
        if form is forms.pipeline:
            if "stage" not in options and "pipeline_stages" not in attrs:
                self.fail(ParserSyntaxError, "pl.pipeline() requires stage=", call, "write pl.pipeline(n, stage=2)")
            if "stage" in options:
                attrs["pipeline_stages"] = self._stage(options["stage"])
        elif "stage" in options:
            self.fail(
                ParserSyntaxError,
                "stage= is only supported on pl.pipeline()",
                options["stage"],
                f"write pl.pipeline(.., stage=N) instead of pl.{form.name}",
            )
        return attrs

    def _stage(self, node: ast.expr) -> int:
        stage = self.constant(node, "stage")
        if not isinstance(stage, int) or isinstance(stage, bool) or stage < 1:
            self.fail(ParserSyntaxError, f"pl.pipeline() stage must be >= 1, an integer, got {stage!r}", node)
        return stage

    def attr_dict(self, node: ast.expr) -> dict[str, Any]:
        """A dict literal of attributes."""
        if not isinstance(node, ast.Dict):
            self.fail(ParserSyntaxError, "attributes must be a dict literal", node, 'write {"key": value}')
        made: dict[str, Any] = {}
        for key, value in zip(node.keys, node.values):
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                self.fail(ParserSyntaxError, "an attribute key must be a string literal", key or node)
            if key.value in made:
                self.fail(
                    ParserSyntaxError,
                    f"duplicate attribute '{key.value}'. Each attribute may be declared only once.",
                    key,
                )
            made[key.value] = self.value(value)
        return made

    def keywords(self, call: ast.Call, allowed: tuple[str, ...]) -> dict[str, ast.expr]:
        """The keyword arguments of a construct. ParserSyntaxError for one it does not take."""
        found: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg is None or keyword.arg not in allowed:
                name = ast.unparse(call.func)
                self.fail(
                    ParserSyntaxError,
                    f"{name}() got an unexpected keyword argument '{keyword.arg or '**'}'",
                    keyword.value,
                    f"it takes {', '.join(allowed)}" if allowed else "it takes no keywords",
                )
            found[keyword.arg] = keyword.value
        return found

    def _bounds(self, form: forms.Form, call: ast.Call) -> list[Expr]:
        if not 1 <= len(call.args) <= 3:
            self.fail(
                ParserSyntaxError,
                f"pl.{form.name}() takes stop, (start, stop) or (start, stop, step), got {len(call.args)} arguments",
                call,
            )
        values = [self._bound(form, a) for a in call.args]
        if len(values) == 1:
            values.insert(0, index_const(0, self.span(call)))
        if len(values) == 2:
            values.append(index_const(1, self.span(call)))
        if isinstance(values[2], ConstInt) and values[2].value == 0:
            self.fail(ParserSyntaxError, "the step of a loop cannot be 0", call.args[-1])
        return values

    def _bound(self, form: forms.Form, node: ast.expr) -> Expr:
        bound = self.scalar(node, "a loop bound")
        if not bound.dtype.is_int():
            self.fail(ParserTypeError, f"a loop bound must be an integer scalar, got {bound.dtype}", node)
        if form is forms.unroll and not isinstance(bound, ConstInt):
            self.fail(
                ParserSyntaxError,
                "the bounds of pl.unroll() must be compile-time constants",
                node,
                "use pl.range for a run-time bound",
            )
        return bound

    def _init_values(self, form: forms.Form, node: ast.expr | None) -> list[Expr] | None:
        if node is None:
            return None
        if form is forms.unroll:
            self.fail(
                ParserSyntaxError,
                "pl.unroll() cannot be combined with init_values: its iterations carry nothing",
                node,
                "use pl.range, or assign to a name",
            )
        parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else None
        if parts is not None:
            return [self.expr(p) for p in parts]
        value = self.value(node)
        if isinstance(value, (list, tuple)):
            return [self.as_expr(v, node) for v in value]
        self.fail(ParserSyntaxError, "init_values must be a tuple or list", node, "write init_values=(x,)")

    def _loop_target(self, target: ast.expr, carries: bool, form: forms.Form) -> tuple[ast.Name, list[ast.Name]]:
        if not carries:
            if isinstance(target, ast.Name):
                return target, []
            hint = f"write for i in pl.{form.name}(..):, or give init_values=(..)"
            self.fail(ParserSyntaxError, "For loop target must be a name when there are no init_values", target, hint)
        if isinstance(target, ast.Tuple) and len(target.elts) == 2:
            index, carried = target.elts
            if isinstance(index, ast.Name) and isinstance(carried, (ast.Tuple, ast.List)):
                return index, self.target_names(carried, "the carried values")
        self.fail(
            ParserSyntaxError,
            "For loop target must be a loop variable and a tuple of the carried values",
            target,
            f"write for i, (x,) in pl.{form.name}(.., init_values=(x0,)):",
        )

    def _iter_args(self, names: list[ast.Name], inits: list[Expr], node: ast.AST) -> list[IterArg]:
        if len(names) != len(inits):
            self.fail(ParserSyntaxError, f"Mismatch: {len(names)} carried value(s) but {len(inits)} init_values", node)
        return [IterArg(n.id, i.type, i, self.span(n)) for n, i in zip(names, inits)]

    def _loop_results(self, form: forms.Form, args: list[IterArg], body: Body, node: ast.stmt) -> list[Var]:
        info = body.yielded
        if info is None:
            return []
        if not args and info.values:
            self.fail(
                ParserSyntaxError,
                "pl.yield_() in a loop without init_values has nothing to carry",
                info.node,
                "give the loop init_values, or assign to a name defined before it",
            )
        if len(info.values) != len(args):
            self.fail(
                ParserSyntaxError, f"the loop carries {len(args)} value(s) but yields {len(info.values)}", info.node
            )
        if args and info.names is None:
            self.fail(
                ParserSyntaxError,
                f"pl.{form.name}(init_values=..) requires an assignment-form pl.yield_: its names hold the results",
                info.node,
                "write result = pl.yield_(value)",
            )
        made = []
        for arg, value, name, annotation in zip(args, info.values, info.names or (), info.annotations):
            found = difference(arg.type, value.type, memory=False)
            if found is not None:
                found = found.replace("the annotation", "the initial value").replace(
                    "the value has", "the yielded value has"
                )
                self.fail(ParserTypeError, f"the carried value '{arg.name_hint}' changes its type: {found}", info.node)
            made.append(Var(name, annotation or _placed_as(arg.type, value.type), self.span(info.node)))
        return made

    def _close_frame(self, frame: Frame) -> None:
        if self.scopes.current is not frame:
            raise InternalError("a body left a frame open")
        self.scopes.exit_scope()

    def _after_loop(
        self,
        frame: Frame,
        body: Body,
        results: list[Var],
        loop_names: dict[str, ast.Name],
        node: ast.stmt,
        trips: int | None,
    ) -> None:
        """Make the loop's results readable, and say why its other names are not."""
        outer = self.scopes.current
        jumped = len(self.loops) + 1 in self.jumps
        self.jumps.discard(len(self.loops) + 1)
        escapes = not results and trips != 0 and not jumped and isinstance(node, ast.For)
        for name, value in frame.names.items():
            if name in loop_names:
                hint = "return it through pl.yield_, or compute it before the loop"
                self._lose(outer, name, f"'{name}' is a variable of the loop and cannot be read after it", hint, value)
            elif escapes:
                outer.names[name] = value
                outer.lost.pop(name, None)
            else:
                message = f"Undefined variable '{name}': it is bound only inside the loop"
                self._lose(outer, name, message, "hand it out with pl.yield_, or bind it before the loop", value)
        for var in results:
            self.bind_result(var, node)

    def _lose(self, outer: Frame, name: str, message: str, hint: str, value: Any) -> None:
        if name != "_":
            outer.lost[name] = (message, hint, getattr(value, "span", None))
            outer.names.pop(name, None)

    def bind_result(self, var: Var, node: ast.AST) -> None:
        """Give ``var``, a result of a loop or branch, its name. A name of an enclosing body is assigned to."""
        name = var.name_hint
        frame = self.scopes.current
        known = self.scopes.lookup_var(name) if name not in frame.names else None
        if isinstance(known, Var) and name != "_" and not self.strict_ssa:
            if same_type(known.type, var.type):
                self.emit(AssignStmt(known, var, self.span(node)))
                return
            self.check_reassign(name, known.type, var.type, node, crossing=True)
        self.scopes.define_var(name, var, allow_redef=not self.strict_ssa, span=self.span(node))

    # -- while

    def _while(self, node: ast.While, limit: int) -> None:
        if node.orelse:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: else after a loop is not part of the language",
                node.orelse[0],
            )
        condition = self.condition(node.test, "while")
        frame = self.scopes.enter_scope("while")
        body = self._loop_body(node, "while", "while", limit)
        self._close_frame(frame)
        if body.yielded is not None:
            self.fail(
                ParserSyntaxError,
                "pl.yield_() in a plain while loop has nothing to carry",
                body.yielded.node,
                "assign to a name defined before the loop",
            )
        self.emit(WhileStmt(condition, [], self.stmt_of(body, node), [], self.span(node)))
        self._after_loop(frame, body, [], {}, node, None)

    def _while_loop(self, call: ast.Call, node: ast.For, limit: int) -> None:
        """``for (x,) in pl.while_(init_values=(..)):`` with ``pl.cond(..)`` first."""
        options = self.keywords(call, ("init_values",))
        inits = self._init_values(forms.while_, options.get("init_values"))
        if call.args or inits is None:
            self.fail(
                ParserSyntaxError,
                "pl.while_() requires init_values to be specified",
                call,
                "write for (x,) in pl.while_(init_values=(x0,)):",
            )
        if not isinstance(node.target, (ast.Tuple, ast.List)):
            self.fail(
                ParserSyntaxError,
                "For loop target must be a tuple of the carried values",
                node.target,
                "write for (x,) in pl.while_(..):",
            )
        names = self.target_names(node.target, "the carried values")
        args = self._iter_args(names, inits, node)
        frame = self.scopes.enter_scope("while")
        frame.names.update({a.name_hint: a for a in args})
        condition = self._cond_statement(node)
        rest = ast.copy_location(ast.For(node.target, node.iter, node.body[1:], [], None), node)
        body = self._carrying_body(frame, args, rest, "while", "while", limit)
        self._close_frame(frame)
        results = self._loop_results(forms.while_, args, body, node)
        self.emit(WhileStmt(condition, args, self.stmt_of(body, node), results, self.span(node)))
        self._after_loop(frame, body, results, {n.id: n for n in names}, node, 0)

    def _cond_statement(self, node: ast.For) -> Expr:
        first = node.body[0]
        if not isinstance(first, ast.Expr) or not self._is_form(first.value, forms.cond):
            self.fail(
                ParserSyntaxError,
                "the first statement of a pl.while_ loop must be pl.cond(..)",
                first,
                "write pl.cond(x < n)",
            )
        call: Any = first.value
        if len(call.args) != 1 or call.keywords:
            self.fail(ParserSyntaxError, "pl.cond() takes one condition", call)
        return self.condition(call.args[0], "while")

    def condition(self, node: ast.expr, word: str) -> Expr:
        """A scalar BOOL expression."""
        made, stmts = self._apart(lambda: self.as_expr(self.test(node), node))
        if stmts and word == "while":
            self.fail(
                UnsupportedFeatureError,
                "Unsupported expression: the condition of a loop chooses between values or calls an inline function",
                node,
                "join conditions with `and` and `or`, or compute the condition into a variable before the loop and "
                "again at the end of its body",
            )
        self.body.stmts.extend(stmts)
        if not isinstance(made.type, ScalarType) or made.type.dtype is not DataType.BOOL:
            hint = "compare it: x != 0" if isinstance(made.type, ScalarType) else "read one element first: x[i, j] > 0"
            self.fail(
                ParserTypeError, f"{word} condition must be a Bool-typed scalar, got {type_text(made.type)}", node, hint
            )
        return made

    # -- if

    def _if(self, node: ast.If, limit: int) -> None:
        known = self._known_condition(node.test)
        else_line = node.orelse[0].lineno if node.orelse else limit
        if known is not None:
            self._taken_branch(node.body if known else node.orelse, else_line if known else limit)
            return
        condition = self.condition(node.test, "if")
        then_frame = self.scopes.enter_scope("if")
        then_body = self.parse_body(node.body, "if", else_line)
        self._close_frame(then_frame)
        else_frame, else_body = None, None
        if node.orelse:
            else_frame = self.scopes.enter_scope("if")
            else_frame.sibling = then_frame.names
            else_body = self.parse_body(node.orelse, "if", limit)
            self._close_frame(else_frame)
        results = self._if_results(then_body, else_body, node)
        else_stmt = self.stmt_of(else_body, node) if else_body is not None else None
        self.emit(IfStmt(condition, self.stmt_of(then_body, node), else_stmt, results, self.span(node)))
        self._merge_branches(then_frame, then_body, else_frame, else_body, results)
        for var in results:
            self.bind_result(var, node)

    def _known_condition(self, node: ast.expr) -> bool | None:
        """The value of a condition on variables around the kernel; None for literals and run-time conditions."""
        if isinstance(node, ast.Constant):
            return None
        value, _ = self._apart(lambda: self.test(node))
        return value if isinstance(value, bool) else None

    def _taken_branch(self, nodes: list[ast.stmt], limit: int) -> None:
        """The statements of the one branch that a compile-time condition leaves."""
        body = self.parse_body(nodes, "taken", limit)
        self.body.stmts.extend(body.stmts)
        if body.ends != "pl.yield_()":
            self.body.ends = body.ends

    def _if_results(self, then_body: Body, else_body: Body | None, node: ast.If) -> list[Var]:
        first, second = then_body.yielded, else_body.yielded if else_body is not None else None
        if first is None and second is None:
            return []
        if first is None or second is None:
            present: Any = first or second
            missing = "there is no else branch" if else_body is None else "the other branch does not yield"
            self.fail(
                ParserSyntaxError,
                f"only one branch yields: {missing}",
                present.node,
                "end both branches with pl.yield_ of the same number and types of values",
            )
        if len(first.values) != len(second.values):
            self.fail(
                ParserSyntaxError,
                f"the branches yield different numbers of values: {len(first.values)} and {len(second.values)}",
                second.node,
            )
        self._check_branch_names(first, second)
        return [self._branch_result(i, first, second) for i in range(len(first.values))] if first.names else []

    def _check_branch_names(self, first: YieldInfo, second: YieldInfo) -> None:
        if first.names != second.names:
            one, two = (", ".join(i.names) if i.names else "no name" for i in (first, second))
            self.fail(
                ParserSyntaxError,
                f"the branches bind different names to what they yield: {one} and {two}",
                second.node,
                "use the same names in both branches",
            )

    def _branch_result(self, i: int, first: YieldInfo, second: YieldInfo) -> Var:
        a, b = first.values[i].type, second.values[i].type
        name = (first.names or [])[i]
        found = difference(a, b, memory=False)
        if found is not None:
            found = found.replace("the annotation", "the first branch").replace("the value", "the second")
            self.fail(ParserTypeError, f"the branches yield different types for '{name}': {found}", second.node)
        chosen: Type = first.annotations[i] or second.annotations[i] or a
        return Var(name, chosen, self.span(first.node))

    def _merge_branches(
        self, then_frame: Frame, then_body: Body, else_frame: Frame | None, else_body: Body | None, results: list[Var]
    ) -> None:
        """Names both branches bind are readable afterwards; others are not."""
        outer = self.scopes.current
        left, right = then_frame.names, else_frame.names if else_frame is not None else {}
        leaves = [b is not None and (b.ends or "").startswith("'") for b in (then_body, else_body)]
        for name in {**left, **right}:
            if name == "_" or any(v.name_hint == name for v in results):
                continue
            a, b = left.get(name), right.get(name)
            survivor = b if leaves[0] and not leaves[1] else a if leaves[1] and not leaves[0] else a if a is b else None
            if survivor is not None and not results:
                outer.names[name] = survivor
                outer.lost.pop(name, None)
                continue
            self._explain_branch_name(outer, name, a, b, bool(results))
        for frame in (then_frame, else_frame):
            for name, reason in frame.lost.items() if frame is not None else ():
                if name not in outer.names:
                    outer.lost.setdefault(name, reason)

    def _explain_branch_name(self, outer: Frame, name: str, a: Any, b: Any, yields: bool) -> None:
        hint = "bind it in both branches, or before the if"
        if yields:
            message, hint = (
                f"Undefined variable '{name}': it is bound inside a branch and not yielded",
                "hand it out with pl.yield_",
            )
        elif a is None or b is None:
            message = f"Undefined variable '{name}': only one branch of the if binds it"
        else:
            message = f"Undefined variable '{name}': the branches of the if bind it to different types"
            hint = "bind values of one type, or use two names"
        value = a if a is not None else b
        if name in outer.names:
            return
        outer.lost[name] = (message, hint, getattr(value, "span", None))


def stored_in_blocks(body: list[ast.stmt]) -> set[str]:
    """Names assigned inside loops and branches of ``body``."""
    found: set[str] = set()
    for stmt in body:
        if isinstance(stmt, (ast.For, ast.While, ast.If)):
            found |= {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            found |= {name for n in ast.walk(stmt) if (name := _stored_part(n)) is not None}
        elif isinstance(stmt, ast.With):
            found |= stored_in_blocks(stmt.body)
    return found


def _stored_part(node: ast.AST) -> str | None:
    """The name of what ``name[..] = ..`` writes a part of."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
        return None
    return node.value.id if isinstance(node.value, ast.Name) else None


def _trips(bounds: list[Expr]) -> int | None:
    """The number of iterations, when constant."""
    values = [b.value for b in bounds if isinstance(b, ConstInt)]
    return len(range(*values)) if len(values) == len(bounds) else None


STATEMENTS.update({ast.For: ControlFlowMixin._for, ast.While: ControlFlowMixin._while, ast.If: ControlFlowMixin._if})


def _placed_as(carried: Type, yielded: Type) -> Any:
    """The type of a loop result: that of the carried variable, where the yielded value lies."""
    memref = getattr(yielded, "memref", None)
    if memref is None or memref is getattr(carried, "memref", None):
        return carried
    return carried.replace(memref=memref)
