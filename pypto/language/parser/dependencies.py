"""``deps=``, ``dumps=`` and ``no_dep_args=`` of task launches."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ...dtypes import DataType
from ...errors import ParserTypeError, UnsupportedFeatureError
from ...ir.expr import Expr, Var
from ...ir.stmt import AssignStmt
from ...ir.types import ArrayType, ScalarType, TensorType
from .. import forms
from .base import type_text
from .control_flow import ControlFlowMixin
from .expr_evaluator import MISSING

_COMPREHENSION = "write one entry for each element: deps=[tids[0], tids[1]]"


class DependenciesMixin(ControlFlowMixin):
    """Parses lists of task ids and of tensors."""

    operator: Any

    def dependencies(self, node: ast.expr) -> list[Expr]:
        """The task ids a launch waits for. Elements of task-id arrays are gathered in an array of their own."""
        if isinstance(node, ast.ListComp):
            return [self._gather(self._comprehension(node), node)]
        if not isinstance(node, (ast.List, ast.Tuple)):
            self.fail(ParserTypeError, "deps= must be a list literal of TaskIds", node, "write deps=[tid]")
        entries = [(e, self._dependency(e)) for e in node.elts if not (isinstance(e, ast.Constant) and e.value is None)]
        if all(isinstance(v, Var) for _, v in entries):
            return [v for _, v in entries]
        if any(isinstance(v.type, ArrayType) for _, v in entries):
            self.fail(
                ParserTypeError,
                "deps= cannot mix a whole task-id array with single elements of one",
                node,
                "list the elements, or wait on pl.system.task_dummy(deps=[array])",
            )
        return [self._gather([v for _, v in entries], node)]

    def _dependency(self, node: ast.expr) -> Expr:
        value = self.value(node)
        if isinstance(value, Expr):
            dtype = value.type.dtype if isinstance(value.type, (ScalarType, ArrayType)) else None
            if dtype is DataType.TASK_ID:
                return value
        shown = type_text(value.type) if isinstance(value, Expr) else type(value).__name__
        self.fail(
            ParserTypeError,
            f"deps= entries must be TaskId values, got {shown}",
            node,
            "use the task id a launch returns: out, tid = pl.submit(..)",
        )

    def _gather(self, ids: Sequence[Expr], node: ast.AST) -> Expr:
        """An array of ``ids``, filled before the launch."""
        span = self.span(node)
        made = self.operator("array.create", [len(ids), DataType.TASK_ID], node)
        for i, value in enumerate([None, *ids]):
            if value is not None:
                made = self.operator("array.update_element", [made, i - 1, value], node)
            var = Var(self.fresh_name("_submit_deps_buf"), made.type, span)
            self.emit(AssignStmt(var, made, span))
            made = var
        return made

    def _comprehension(self, node: ast.ListComp) -> list[Expr]:
        """``[tids[k] for k in range(n) if ..]``, unrolled while parsing."""
        generator = node.generators[0]
        if len(node.generators) != 1 or not isinstance(generator.target, ast.Name):
            self.fail(UnsupportedFeatureError, "deps= takes a comprehension over one name", node, _COMPREHENSION)
        name = generator.target.id
        iterable = generator.iter
        if isinstance(iterable, ast.Call) and isinstance(self.callee(iterable.func), forms.LoopForm):
            self.fail(
                ParserTypeError,
                "the comprehension runs while parsing: it cannot iterate over a DSL loop",
                iterable,
                "iterate over range(..)",
            )
        items = self._iterable(iterable)
        made = []
        frame = self.scopes.enter_scope("comprehension")
        for item in items:
            frame.names[name] = item
            if all(self._filter(f) for f in generator.ifs):
                made.append(self._dependency(node.elt))
        self.scopes.exit_scope()
        return made

    def _iterable(self, node: ast.expr) -> Sequence[Any]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            bounds = [self.constant(a, "a bound of range()") for a in node.args]
            return range(*bounds)
        items = self.value(node)
        if isinstance(items, Expr) or not hasattr(items, "__iter__"):
            self.fail(ParserTypeError, "the comprehension must iterate over compile-time values", node, _COMPREHENSION)
        return list(items)

    def _filter(self, node: ast.expr) -> bool:
        value = self.value(node)
        if isinstance(value, Expr):
            self.fail(
                ParserTypeError, "the filter of the comprehension depends on an IR variable", node, _COMPREHENSION
            )
        return bool(value)

    def tensor_names(self, node: ast.expr, what: str, repeat: bool = False) -> list[Var]:
        """A list literal of tensor variables."""
        if not isinstance(node, (ast.List, ast.Tuple)):
            self.fail(ParserTypeError, f"{what}= must be a list literal", node, f"write {what}=[x]")
        found: list[Var] = []
        for element in node.elts:
            if not isinstance(element, ast.Name):
                self.fail(ParserTypeError, f"{what}= takes bare tensor names", element)
            if not self.scopes.is_defined(element.id) and self.evaluator.lookup(element.id) is MISSING:
                self.fail(ParserTypeError, f"{what}= names unknown name '{element.id}'", element)
            value = self.value(element)
            if not isinstance(value, Var) or not isinstance(value.type, TensorType):
                self.fail(ParserTypeError, f"{what}= entry '{element.id}' is not a tensor", element)
            if any(value is v for v in found):
                if repeat:
                    continue
                self.fail(ParserTypeError, f"{what}= lists '{element.id}' more than once", element)
            found.append(value)
        return found
