"""Statements that are not control flow or regions."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from ...dtypes import DataType
from ...errors import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from ...ir.expr import Call, ConstInt, Expr, Submit, TupleGetItemExpr, Var
from ...ir.node import node_list
from ...ir.span import Span
from ...ir.stmt import AssignStmt, BreakStmt, ContinueStmt, EvalStmt, ReturnStmt, SeqStmts, Stmt, YieldStmt, seq
from ...ir.types import (
    DistributedTensorType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
)
from ...ir.visitor import find_all
from .. import forms
from .base import same_type, type_text
from .body import Body, YieldInfo
from .calls import CallsMixin
from .expressions import BINARY, SYMBOLS, ExpressionsMixin
from .type_consistency import check_consistent, flattens

Comments = dict[int, list[tuple[int, str]]]


_UNSUPPORTED: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.Try: ("try", "a kernel raises no exceptions"),
    ast.Raise: ("raise", "check compile-time conditions with pl.static_assert(..)"),
    ast.Assert: ("assert", "check compile-time conditions with pl.static_assert(..)"),
    ast.ClassDef: ("a class definition", "define it outside the kernel"),
    ast.FunctionDef: (
        "a nested function definition",
        "define it outside and decorate it with @pl.inline or @pl.function",
    ),
    ast.AsyncFunctionDef: ("an async function", "define a plain function"),
    ast.Global: ("global", "return the value, or write through a pl.Out parameter"),
    ast.Nonlocal: ("nonlocal", "return the value, or write through a pl.Out parameter"),
    ast.Delete: ("del", "names go out of scope by themselves"),
    ast.Import: ("import", "import outside the kernel"),
    ast.ImportFrom: ("import", "import outside the kernel"),
    ast.Match: ("match", "write if / else"),
}


class StatementsMixin(CallsMixin, ExpressionsMixin):
    """Parses bodies and simple statements."""

    body: Body
    comments: Comments
    assigned: dict[ast.Call, ast.Name]
    """The call an assignment is about to evaluate, and the name it gives the value."""
    windows: dict[str, Span]
    """Where each communication window of the program is declared, by name."""
    subscript_write: Callable[[ast.Subscript, Any, ast.stmt], None]
    eval_form: Callable[[forms.Form, ast.Call], bool]

    # -- bodies

    def emit(self, stmt: Stmt) -> None:
        self.body.stmts.append(stmt)

    def parse_body(self, nodes: Sequence[ast.stmt], kind: str, limit: int) -> Body:
        """Parse ``nodes`` as a body of their own; comments down to line ``limit`` belong to it."""
        outer = self.body
        self.body = Body(kind, outer)
        try:
            self.parse_statements(nodes, limit)
            return self.body
        finally:
            self.body = outer

    def parse_statements(self, nodes: Sequence[ast.stmt], limit: int) -> None:
        """Parse ``nodes`` into the current body."""
        pending: list[str] = []
        for position, node in enumerate(nodes):
            if self.body.ends is not None and not self.body.ends.startswith("'"):
                self._after_end(node)
            if self.comments:
                pending.extend(self._take_comments(node))
            text = _docstring(node)
            if text is not None:
                pending.extend(line for line in text)
                continue
            before = len(self.body.stmts)
            following = nodes[position + 1].lineno if position + 1 < len(nodes) else limit
            self.statement(node, following)
            if pending and len(self.body.stmts) > before:
                first = self.body.stmts[before]
                self.body.stmts[before] = first.replace(leading_comments=node_list(pending))
                pending = []
        if self.comments and nodes:
            self._drop_tail_comments(nodes, limit)

    def statement(self, node: ast.stmt, limit: int) -> None:
        handler = STATEMENTS.get(type(node))
        if handler is None:
            name, hint = _UNSUPPORTED.get(type(node), (type(node).__name__, ""))
            self.fail(
                UnsupportedFeatureError,
                f"Unsupported statement: {name} is not part of the language",
                node,
                hint or None,
            )
        handler(self, node, limit)

    def _after_end(self, node: ast.stmt) -> None:
        reason = self.body.ends
        self.fail(
            ParserSyntaxError,
            f"statement after {reason} is never reached",
            node,
            f"{reason} is the last statement of its body: move or remove what follows",
        )

    def stmt_of(self, body: Body, node: ast.AST | Span) -> Stmt:
        """The statements of a body as one."""
        if not body.stmts:
            return SeqStmts([], node if isinstance(node, Span) else self.span(node))
        return seq(body.stmts)

    # -- comments

    def _take_comments(self, node: ast.stmt) -> list[str]:
        """Comments above ``node``, beside it and inside its header."""
        last = _header_end(node)
        lines = sorted(line for line in self.comments if line <= last)
        taken = []
        for line in lines:
            taken.extend(text for _, text in self.comments.pop(line))
        return taken

    def _drop_tail_comments(self, nodes: Sequence[ast.stmt], limit: int) -> None:
        end, column = nodes[-1].end_lineno or 0, nodes[0].col_offset
        for line in sorted(self.comments):
            if end < line < limit and self.comments[line][0][0] >= column:
                text = "; ".join(t for _, t in self.comments.pop(line))
                warnings.warn(
                    f"{self.source.filename}:{line}: tail-of-block comment dropped: {text}", UserWarning, stacklevel=2
                )

    # -- assignment

    def _assign(self, node: ast.Assign, limit: int) -> None:
        if len(node.targets) != 1:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: chained assignment is not part of the language",
                node,
                "assign one name at a time",
            )
        self.assign_target(node.targets[0], node.value, None, node)

    def _ann_assign(self, node: ast.AnnAssign, limit: int) -> None:
        if node.value is None:
            self.fail(
                UnsupportedFeatureError, "Unsupported statement: a declaration without a value", node, "assign a value"
            )
        if not isinstance(node.target, ast.Name):
            self.fail(UnsupportedFeatureError, "Unsupported statement: only a name can be annotated", node.target)
        self.assign_target(node.target, node.value, node.annotation, node)

    def assign_target(
        self, target: ast.expr, value_node: ast.expr, annotation: ast.expr | None, node: ast.stmt
    ) -> None:
        """``target = value``; a yield binds the results of the loop or branch it ends."""
        if isinstance(value_node, ast.Call) and self._is_form(value_node, forms.yield_):
            self._yield(value_node, target, annotation, node)
            return
        if isinstance(target, ast.Name) and isinstance(value_node, ast.Call):
            self.assigned = {value_node: target}
        value = self.value(value_node)
        if isinstance(target, ast.Name) and isinstance(value, Submit) and self._names_task(target, value, annotation):
            self._unpack(ast.copy_location(ast.Tuple([target], ast.Store()), target), value, value_node, node)
        elif isinstance(target, ast.Name):
            self._assign_name(target, value, value_node, annotation, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, value_node, node)
        elif isinstance(target, ast.Subscript):
            self.subscript_write(target, value, node)
        elif isinstance(target, ast.Attribute):
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: an attribute cannot be assigned",
                target,
                "assign a plain name",
            )
        else:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: star unpacking is not part of the language",
                target,
                "unpack into one name each",
            )

    def _names_task(self, target: ast.Name, value: Submit, annotation: ast.expr | None) -> bool:
        """Whether one name receives the task id of a launch that has no results, rather than the tuple of both."""
        if target.id.startswith("_tuple_tmp") or len(getattr(value.type, "types", ())) != 1:
            return False
        return annotation is None or not isinstance(self.types.resolve_type(annotation), (list, TupleType))

    def _assign_name(
        self, target: ast.Name, value: Any, value_node: ast.expr, annotation: ast.expr | None, node: ast.stmt
    ) -> None:
        if isinstance(value, (DataType, Enum)) and annotation is None:
            self.alias(target.id, value, target)
            return
        if isinstance(value, Var) and self._names_dimension(value_node):
            self.dimensions.add(value)
            self.alias(target.id, value, target)
            return
        expr = self.as_expr(value, value_node)
        if annotation is not None:
            expr = self.annotated(expr, self.types.resolve_type(annotation), target, annotation)
        else:
            expr = self._as_known(target.id, expr)
            if isinstance(expr.type, UnknownType) and not _is_system_call(expr):
                self._no_value(expr, value_node)
        self.emit(self.bound(target.id, expr, target, node))

    def _names_dimension(self, node: ast.expr) -> bool:
        """Whether ``pl.tensor.dim(..)`` gave a dimension of the signature, for which its new name then stands."""
        return isinstance(node, ast.Call) and getattr(self.callee(node.func), "__name__", "") == "dim"

    def bound(self, name: str, value: Expr, target: ast.AST, node: ast.AST) -> AssignStmt:
        """The statement that gives ``value`` to ``name``."""
        return AssignStmt(self.bind(name, value.type, target), value, self.span(node))

    def _no_value(self, expr: Expr, node: ast.AST) -> None:
        what = f"'{expr.op.name}'" if isinstance(expr, Call) else "the call"
        self.fail(
            InvalidOperationError, f"{what} has no value to assign", node, "write the call as a statement of its own"
        )

    def _as_known(self, name: str, value: Expr) -> Expr:
        """A bare number in the dtype of the scalar it is assigned to again."""
        known = self.scopes.lookup_var(name)
        if isinstance(known, Var) and isinstance(known.type, ScalarType):
            return self.retype_constant(value, known.type.dtype)
        return value

    def annotated(self, value: Expr, wanted: Any, target: ast.Name, node: ast.expr) -> Expr:
        """``value`` with the type its annotation states, once both agree."""
        if isinstance(wanted, list):
            wanted = TupleType(wanted)
        if isinstance(wanted, ScalarType):
            value = self.retype_constant(value, wanted.dtype)
        if isinstance(value, Call) and value.op.name == "tile.load" and flattens(wanted, value.type):
            return value.replace(type=wanted)
        check_consistent(wanted, value.type, self.span(node), self.source.lines, f"Type annotation of '{target.id}'")
        merged = merge_types(wanted, value.type)
        if same_type(merged, value.type):
            return value
        return value.replace(type=merged) if not isinstance(value, Var) else value

    def _unpack(self, target: ast.Tuple | ast.List, value: Any, value_node: ast.expr, node: ast.stmt) -> None:
        if isinstance(value, Submit):
            target = _flat_target(target)
        names = self.target_names(target, "an unpacking target")
        if isinstance(value, (list, tuple)):
            items: list[Any] = list(value)
            self._check_count(len(names), len(items), node)
            for name, item in zip(names, self._read_first(names, [self.as_expr(i, value_node) for i in items], node)):
                self._unpack_one(name, item, node)
            return
        if not isinstance(value, Expr) or not isinstance(value.type, TupleType):
            kind = type_text(value.type) if isinstance(value, Expr) else type(value).__name__
            self.fail(
                ParserTypeError,
                f"cannot unpack a {kind} into {len(names)} names",
                node,
                "only calls with several results and tuples unpack",
            )
        self._check_count(len(names), len(value.type.types), node)
        source = self._hoist_tuple(value, node)
        bound = [self._unpack_one(n, TupleGetItemExpr(source, i, self.span(node)), node) for i, n in enumerate(names)]
        if isinstance(value, Submit):
            self.producers.update((var, bound[-1]) for var in bound[:-1])

    def _read_first(self, names: Sequence[ast.Name], values: list[Expr], node: ast.stmt) -> list[Expr]:
        """``values``, those kept that read a variable the assignment to an earlier one of ``names`` overwrites."""
        written: set[Any] = set()
        made: list[Expr] = []
        for name, value in zip(names, values):
            if not written.isdisjoint(find_all(value, Var)):
                kept = Var(self.fresh_name("_kept_tmp"), value.type, self.span(node))
                self.emit(AssignStmt(kept, value, self.span(node)))
                value = kept
            made.append(value)
            if name.id not in self.scopes.current.names or self.scopes.current.kind == "if":
                written.add(self.scopes.lookup_var(name.id))
        return made

    def _hoist_tuple(self, value: Expr, node: ast.stmt) -> Expr:
        if isinstance(value, Var):
            return value
        var = Var(self.fresh_name("_tuple_tmp"), value.type, self.span(node))
        self.emit(AssignStmt(var, value, self.span(node)))
        return var

    def fresh_name(self, stem: str) -> str:
        """A name hint no other temporary of the function has."""
        count = self.temporaries[stem] = self.temporaries.get(stem, 0) + 1
        return stem if count == 1 else f"{stem}_{count - 1}"

    def _unpack_one(self, name: ast.Name, item: Expr, node: ast.stmt) -> Var:
        stmt = self.bound(name.id, self._as_known(name.id, item), name, node)
        self.emit(stmt)
        return stmt.var

    def _check_count(self, names: int, values: int, node: ast.AST) -> None:
        if names != values:
            self.fail(ParserTypeError, f"cannot unpack {values} values into {names} names", node)

    def target_names(self, target: ast.expr, what: str) -> list[ast.Name]:
        """The names of a tuple target. ParserSyntaxError when it holds anything else."""
        names: list[ast.Name] = []
        for element in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if not isinstance(element, ast.Name):
                self.fail(ParserSyntaxError, f"{what} must be names", element, "assign to plain names, then use them")
            names.append(element)
        return names

    def _aug_assign(self, node: ast.AugAssign, limit: int) -> None:
        entry = BINARY.get(type(node.op))
        if entry is None:
            self.fail(UnsupportedFeatureError, "Unsupported operator '@='", node, "write x = pl.matmul(x, y)")
        target = node.target
        if isinstance(target, ast.Attribute):
            self.fail(UnsupportedFeatureError, "Unsupported statement: an attribute cannot be assigned", target)
        loaded = ast.copy_location(
            ast.Name(target.id, ast.Load())
            if isinstance(target, ast.Name)
            else ast.Subscript(target.value, target.slice, ast.Load()),
            target,
        )
        current, operand = self.value(loaded), self.value(node.value)
        value = self.binary(entry, current, operand, node, SYMBOLS[type(node.op)] + "=")
        if isinstance(target, ast.Subscript):
            self.subscript_write(target, value, node)
        else:
            self._assign_name(target, value, node.value, None, node)

    # -- yields, returns, jumps

    def _is_form(self, node: ast.expr, form: forms.Form) -> bool:
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
            return False
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        return name == form.name and self.own_method(node.func) is None and self.callee(node.func) is form

    def _yield(self, call: ast.Call, target: ast.expr | None, annotation: ast.expr | None, node: ast.stmt) -> None:
        owner = self.body
        while owner.kind == "region" and owner.outer is not None:
            owner = owner.outer
        if owner.kind == "taken":
            self._assign_yielded(call, target, annotation, node)
            return
        if owner.kind not in ("for", "while", "if"):
            self.fail(ParserSyntaxError, "pl.yield_() must be the last statement of a loop body or branch", call)
        if call.keywords:
            self.fail(ParserSyntaxError, "pl.yield_() takes no keywords", call)
        values = [self.expr(a) for a in call.args]
        names = None
        if target is not None:
            names = [n.id for n in self.target_names(target, "the names bound by pl.yield_()")]
            if len(names) != len(values):
                self.fail(
                    ParserSyntaxError,
                    f"pl.yield_() hands over {len(values)} value(s) but {len(names)} name(s) receive them",
                    node,
                )
        annotations: list[Type | None] = [None] * len(values)
        if annotation is not None:
            wanted = self.types.resolve_type(annotation)
            if isinstance(wanted, ScalarType):
                values[0] = self.retype_constant(values[0], wanted.dtype)
            check_consistent(
                wanted,
                values[0].type,
                self.span(annotation),
                self.source.lines,
                f"Type annotation of '{(names or ['_'])[0]}'",
                memory=False,
            )
            # An annotation of INT64 agrees with an INDEX, but the result is what the loop carries.
            one = isinstance(wanted, ScalarType)
            annotations[0] = values[0].type if one else merge_types(wanted, values[0].type)
        if values:
            self.emit(YieldStmt(values, self.span(node)))
        owner.yielded = YieldInfo(values, names, annotations, node)
        inner: Body | None = self.body
        while inner is not None and inner is not owner.outer:
            inner.ends = "pl.yield_()"
            inner = inner.outer
        for name in names or ():
            self.scopes.mark_yielded(name)

    def _assign_yielded(
        self, call: ast.Call, target: ast.expr | None, annotation: ast.expr | None, node: ast.stmt
    ) -> None:
        """A yield of the only branch there is: plain assignments."""
        names = self.target_names(target, "the names bound by pl.yield_()") if target is not None else []
        if len(names) != len(call.args):
            message = f"pl.yield_() hands over {len(call.args)} value(s) but {len(names)} name(s) receive them"
            self.fail(ParserSyntaxError, message, node)
        values = [self.value(a) for a in call.args]
        if all(isinstance(v, Expr) for v in values):
            values = self._read_first(names, values, node)
        for name, value, arg in zip(names, values, call.args):
            self._assign_name(name, value, arg, annotation, node)
        self.body.ends = "pl.yield_()"

    def _return(self, node: ast.Return, limit: int) -> None:
        if self.body.kind not in ("function", "region", "taken"):
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: return inside a loop or branch",
                node,
                "bind the value with pl.yield_ and return once, at the end of the function",
            )
        value = None if node.value is None else self.value(node.value)
        values = self._returned(value, node)
        self.finish_return(values, node)
        self.body.ends = "return"

    def _returned(self, value: Any, node: ast.Return) -> list[Expr]:
        if value is None and (node.value is None or isinstance(node.value, ast.Constant)):
            return []
        at = node.value or node
        if isinstance(value, tuple):
            parts = at.elts if isinstance(at, ast.Tuple) and len(at.elts) == len(value) else [at] * len(value)
            return [self.as_expr(v, p) for v, p in zip(value, parts)]
        return [self.as_expr(value, at)]

    def finish_return(self, values: list[Expr], node: ast.Return) -> None:
        self.emit(ReturnStmt(values, self.span(node)))

    def _jump(self, node: ast.Break | ast.Continue, limit: int) -> None:
        word = "break" if isinstance(node, ast.Break) else "continue"
        loop = self.loops[-1] if self.loops else None
        if loop == "split_aiv":
            self.fail(
                InvalidOperationError, f"'{word}' not supported inside a pl.split_aiv region: it is no loop", node
            )
        if loop in ("parallel", "unrolled"):
            self.fail(
                InvalidOperationError,
                f"'{word}' is not allowed in a {loop} loop",
                node,
                "only pl.range and while loops can be left early",
            )
        cls = BreakStmt if isinstance(node, ast.Break) else ContinueStmt
        self.jumps.add(len(self.loops))
        self.emit(cls(self.span(node)))
        self.body.ends = f"'{word}'"

    regions: list[str]
    loops: list[str]
    """Kinds of the enclosing loops, innermost last."""
    jumps: set[int]
    """Depths of the loops that a break or continue leaves early."""

    def _pass(self, node: ast.Pass, limit: int) -> None:
        """Nothing to do."""

    def _expression(self, node: ast.Expr, limit: int) -> None:
        value = node.value
        if not isinstance(value, ast.Call):
            if isinstance(value, (ast.Name, ast.Attribute, ast.Constant, ast.Subscript)):
                self.value(value)
            self.fail(
                UnsupportedFeatureError,
                "Unsupported statement: an expression without effect",
                node,
                "assign the value to a name, or remove it",
            )
        if self._is_form(value, forms.yield_):
            self._yield(value, None, None, node)
            return
        if self.own_method(value.func) is None:
            callee = self.callee(value.func)
            if isinstance(callee, forms.Form) and self.eval_form(callee, value):
                return
        made = self.value(value)
        if isinstance(made, Submit):
            form = "submit" if made.core_num is None else "spmd_submit"
            self.fail(
                ParserSyntaxError,
                f"the results of pl.{form}() must be unpacked",
                node,
                f"write out, tid = pl.{form}(..)",
            )
        if isinstance(made, Expr):
            self.emit(EvalStmt(made, self.span(node)))


def _is_system_call(expr: Expr) -> bool:
    """Whether a call only has an effect that others may be ordered by; printed IR gives those names."""
    return isinstance(expr, Call) and expr.op.name.startswith("system.")


def merge_types(wanted: Type, inferred: Type) -> Type:
    """The type of a value annotated ``wanted``: what the annotation leaves open is inferred."""
    if isinstance(wanted, TileType) and isinstance(inferred, TileType):
        space = wanted.memory_space or inferred.memory_space
        view = wanted.tile_view
        if view is None and space is inferred.memory_space:
            view = inferred.tile_view
        shape = wanted.shape if not _less_known(wanted, inferred) else inferred.shape
        return TileType(shape, wanted.dtype, wanted.memref or inferred.memref, view, space)
    if isinstance(wanted, TensorType) and isinstance(inferred, TensorType):
        view = wanted.tensor_view or inferred.tensor_view
        shape = wanted.shape if not _less_known(wanted, inferred) else inferred.shape
        memref = wanted.memref or inferred.memref
        if isinstance(inferred, DistributedTensorType):
            return DistributedTensorType(shape, wanted.dtype, memref, view, inferred.window_buffer)
        return type(wanted)(shape, wanted.dtype, memref, view)
    return wanted


def _less_known(wanted: ShapedType, inferred: ShapedType) -> bool:
    """Whether an annotation's dimension is a variable where the value's is constant."""
    return any(not isinstance(a, ConstInt) and isinstance(b, ConstInt) for a, b in zip(wanted.shape, inferred.shape))


def _flat_target(target: ast.Tuple | ast.List) -> ast.Tuple | ast.List:
    """``(a, b), tid`` as ``a, b, tid``."""
    if len(target.elts) == 2 and isinstance(target.elts[0], (ast.Tuple, ast.List)):
        return ast.copy_location(ast.Tuple([*target.elts[0].elts, target.elts[1]], ast.Store()), target)
    return target


def _docstring(node: ast.stmt) -> list[str] | None:
    """The lines of a string that stands as a statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return [line.strip() for line in node.value.value.strip().splitlines()]
    return None


def _header_end(node: ast.stmt) -> int:
    """The last line of a statement, without the body it may have."""
    body = getattr(node, "body", None)
    if not body:
        return node.end_lineno or node.lineno
    parts: list[ast.expr] = [getattr(node, f) for f in ("iter", "test") if hasattr(node, f)]
    parts += [i.optional_vars or i.context_expr for i in getattr(node, "items", ())]
    end = max((p.end_lineno or 0 for p in parts), default=node.lineno)
    return min(end, body[0].lineno)


STATEMENTS: Final[dict[type[ast.stmt], Callable[[Any, Any, int], None]]] = {
    ast.Assign: StatementsMixin._assign,
    ast.AnnAssign: StatementsMixin._ann_assign,
    ast.AugAssign: StatementsMixin._aug_assign,
    ast.Return: StatementsMixin._return,
    ast.Break: StatementsMixin._jump,
    ast.Continue: StatementsMixin._jump,
    ast.Pass: StatementsMixin._pass,
    ast.Expr: StatementsMixin._expression,
}
