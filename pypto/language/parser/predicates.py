"""``predicate=`` of task launches: one tensor element against an integer, read when the task is dispatched."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from ...dtypes import DataType
from ...errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ...ir.expr import Call, ConstInt, Expr, Var
from ...ir.types import ArrayType, ScalarType
from .base import type_text
from .control_flow import ControlFlowMixin

_READABLE: Final = frozenset({DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64})
"""The runtime sign-extends what it reads."""
_FORM: Final = "write predicate=(counts[i] > 0)"


class PredicatesMixin(ControlFlowMixin):
    """Parses dispatch predicates."""

    def predicate(self, node: ast.expr, deps: Sequence[Expr], deps_allowed: bool = True) -> Expr:
        """The comparison the scheduler evaluates, a scalar expression that nothing else evaluates."""
        if not isinstance(node, ast.Compare):
            self.fail(ParserSyntaxError, "predicate= must be a single comparison", node, _FORM)
        if len(node.ops) != 1:
            self.fail(ParserSyntaxError, "Only simple comparisons supported in predicate=", node, _FORM)
        if isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
            self.fail(UnsupportedFeatureError, "Unsupported comparison in predicate=", node, _FORM)
        sides = [self.value(node.left), self.value(node.comparators[0])]
        reads = [s for s in sides if _is_read(s)]
        targets = [s for s in sides if not _is_read(s)]
        self._check_sides(sides, node)
        if len(reads) != 1 or not isinstance(targets[0], (int, ConstInt)):
            self.fail(
                ParserSyntaxError, "predicate= must compare one tensor element with an integer literal", node, _FORM
            )
        self._check_operand_tensor(reads[0], deps, node, deps_allowed)
        return self.value(node)

    def _check_sides(self, sides: list[Any], node: ast.AST) -> None:
        for side in sides:
            if isinstance(side, Expr) and not isinstance(side.type, ScalarType):
                message = (
                    f"an operand of predicate= must be ScalarExpr or Var with ScalarType, got {type_text(side.type)}"
                )
                self.fail(ParserSyntaxError, message, node, _FORM)
        kinds = {s.dtype.is_float() if isinstance(s, Expr) else isinstance(s, float) for s in sides}
        if len(kinds) == 2:
            self.fail(ParserSyntaxError, "predicate= requires same numeric dtype category on both sides", node, _FORM)

    def _check_operand_tensor(self, read: Call, deps: Sequence[Expr], node: ast.AST, deps_allowed: bool) -> None:
        tensor: Any = read.args[0]
        if read.dtype not in _READABLE:
            message = f"the tensor of predicate= must have a signed 8/16/32/64-bit integer dtype, got {read.dtype}"
            self.fail(ParserTypeError, message, node)
        producer = self.producers.get(tensor) if isinstance(tensor, Var) else None
        if producer is None or any(isinstance(d.type, ArrayType) or d is producer for d in deps):
            return
        name = producer.name_hint
        hint = f"write deps=[{name}]"
        if not deps_allowed:
            hint = f"this form does not accept deps=: write with pl.spmd(.., deps=[{name}], predicate=..) as tid:"
        self.fail(
            ParserSyntaxError,
            f"predicate= reads '{tensor.name_hint}', produced by the task '{name}', which is not in deps=",
            node,
            hint,
        )


def _is_read(value: Any) -> bool:
    return isinstance(value, Call) and value.op.name == "tensor.read" and isinstance(value.args[0], Var)
