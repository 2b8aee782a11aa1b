"""Expressions. A value is a Python object while it is known at compile time, and an IR expression otherwise."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Final

from ...dtypes import DataType
from ...errors import (
    InternalError,
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    message_of,
)
from ...ir import scalar as S
from ...ir.expr import ConstInt, Expr, TupleGetItemExpr, Var
from ...ir.stmt import IfStmt, Stmt, YieldStmt, seq
from ...ir.types import ScalarType, ShapedType, TensorType, TileType, TupleType
from .base import OP_ERRORS, Evaluated, ParserBase, type_text
from .body import Body

_BINARY: Final[dict[type[ast.operator], tuple[str, str | None, Callable[[Any, Any], Any]]]] = {
    ast.Add: ("Add", "add", operator.add),
    ast.Sub: ("Sub", "sub", operator.sub),
    ast.Mult: ("Mul", "mul", operator.mul),
    ast.Div: ("FloatDiv", "div", operator.truediv),
    ast.FloorDiv: ("FloorDiv", None, operator.floordiv),
    ast.Mod: ("FloorMod", "rem", operator.mod),
    ast.Pow: ("Pow", None, operator.pow),
    ast.BitAnd: ("BitAnd", "and_", operator.and_),
    ast.BitOr: ("BitOr", "or_", operator.or_),
    ast.BitXor: ("BitXor", "xor", operator.xor),
    ast.LShift: ("BitShiftLeft", "shl", operator.lshift),
    ast.RShift: ("BitShiftRight", "shr", operator.rshift),
}
"""Scalar expression class, operator on tensors and tiles, meaning on Python values."""

_COMPARE: Final[dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]]] = {
    ast.Eq: ("Eq", operator.eq),
    ast.NotEq: ("Ne", operator.ne),
    ast.Lt: ("Lt", operator.lt),
    ast.LtE: ("Le", operator.le),
    ast.Gt: ("Gt", operator.gt),
    ast.GtE: ("Ge", operator.ge),
}
_UNARY: Final[dict[type[ast.unaryop], tuple[str, str | None, Callable[[Any], Any]]]] = {
    ast.USub: ("Neg", "neg", operator.neg),
    ast.Invert: ("BitNot", "not_", operator.invert),
    ast.Not: ("Not", None, operator.not_),
}
_SYMBOLS: Final = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.USub: "-", ast.Invert: "~", ast.Not: "not", ast.UAdd: "+",
}  # fmt: skip
_COMMUTES: Final = frozenset({"add", "mul", "and_", "or_", "xor"})
_PYTHON_ERRORS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

_UNSUPPORTED: Final[dict[type[ast.expr], str]] = {
    ast.ListComp: "a list comprehension: compute the list outside the kernel",
    ast.SetComp: "a set comprehension: compute it outside the kernel",
    ast.DictComp: "a dict comprehension: compute it outside the kernel",
    ast.GeneratorExp: "a generator expression: compute it outside the kernel",
    ast.Lambda: "a lambda: define a function outside and decorate it with @pl.inline",
    ast.Yield: "yield: write pl.yield_(..)",
    ast.YieldFrom: "yield from: write pl.yield_(..)",
    ast.Await: "await",
    ast.Starred: "star arguments: write each argument",
    ast.Dict: "a dict: keep it outside the kernel",
    ast.Set: "a set: keep it outside the kernel",
    ast.NamedExpr: "an assignment expression (:=): assign in a statement of its own",
    ast.JoinedStr: "an f-string outside pl.static_print",
}


class ExpressionsMixin(ParserBase):
    """Parses everything that has a value, except calls and subscripts of tensors."""

    read_subscript: Callable[[Expr, ast.Subscript], Any]
    unified: Callable[[str, list[Any], ast.AST], Expr]
    call_value: Callable[[ast.Call], Any]

    def value(self, node: ast.expr) -> Any:
        """The value of ``node``: a Python object when known at compile time, else an expression."""
        handler = _VALUES.get(type(node))
        if handler is None:
            kind = type(node).__name__
            title, _, advice = _UNSUPPORTED.get(type(node), "this").partition(": ")
            self.fail(
                UnsupportedFeatureError,
                f"Unsupported expression {kind}: {title} is not part of the language",
                node,
                advice or None,
            )
        return handler(self, node)

    def expr(self, node: ast.expr) -> Expr:
        """The value of ``node`` as an expression."""
        return self.as_expr(self.value(node), node)

    def scalar(self, node: ast.expr, what: str) -> Expr:
        """A scalar expression. ParserTypeError for anything else."""
        made = self.expr(node)
        if not isinstance(made.type, ScalarType):
            self.fail(ParserTypeError, f"{what} must be a scalar, got {type_text(made.type)}", node)
        return made

    def constant(self, node: ast.expr, what: str) -> Any:
        """A compile-time Python value; constants of the IR count."""
        value = self.value(node)
        if isinstance(value, Expr):
            if isinstance(value, ConstInt):
                return value.value
            self.fail(
                ParserSyntaxError,
                f"{what} must be a compile-time constant",
                node,
                "use a literal or a variable of the enclosing scope",
            )
        return value

    # -- leaves

    def _constant(self, node: ast.Constant) -> Any:
        if node.value is Ellipsis:
            self.fail(
                UnsupportedFeatureError,
                "Unsupported expression: `...` has no value",
                node,
                "write `:` for a whole dimension",
            )
        if isinstance(node.value, (bytes, complex)):
            self.fail(UnsupportedFeatureError, f"Unsupported literal {node.value!r}", node)
        return node.value

    def _attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Expr):
            return self._expr_attribute(owner, node)
        try:
            return self.closure_value(getattr(owner, node.attr))
        except AttributeError as error:
            self._no_attribute(owner, node, error)
        except InternalError:
            raise
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise ParserTypeError(
                f"Failed to evaluate expression '{ast.unparse(node)}': {message_of(error)}",
                self.span(node),
                source_lines=self.source.lines,
            ) from error

    def _expr_attribute(self, owner: Expr, node: ast.Attribute) -> Any:
        t = owner.type
        if node.attr == "dtype" and isinstance(t, (ShapedType, ScalarType)):
            return t.dtype
        if node.attr in ("shape", "valid_shape") and isinstance(t, ShapedType):
            dims = t.shape if node.attr == "shape" else getattr(t, "valid_shape", t.shape)
            return [d.value if isinstance(d, ConstInt) else d for d in dims]
        self.fail(
            InvalidOperationError,
            f"a {type_text(t)} has no attribute '{node.attr}'",
            node,
            "shape, dtype and valid_shape can be read; operators are functions: pl.exp(x)",
        )

    def _no_attribute(self, owner: Any, node: ast.Attribute, error: Exception) -> None:
        from difflib import get_close_matches

        path = ast.unparse(node)
        names = [n for n in dir(owner) if not n.startswith("_")]
        close = get_close_matches(node.attr, names, 2)
        hint = f"did you mean {' or '.join(f'{ast.unparse(node.value)}.{c}' for c in close)}?" if close else None
        hint = getattr(error, "hint", None) or hint
        if self.is_namespace(owner):
            message, cls = f"Unknown operation '{path}'", InvalidOperationError
        else:
            message, cls = f"'{path}': {message_of(error)}", UndefinedVariableError
            if isinstance(owner, type) or type(owner).__module__.startswith("pypto."):
                message, cls = f"'{ast.unparse(node.value)}' has no '{node.attr}'", ParserSyntaxError
        span = self.span(node)
        raise cls(message, span, hint, source_lines=self.source.lines) from error

    def is_namespace(self, owner: Any) -> bool:
        """Whether ``owner`` is `pl` or a level of its operators."""
        name = getattr(owner, "__name__", "") or ""
        return isinstance(owner, ModuleType) and name.startswith("pypto.")

    # -- operators

    def _binop(self, node: ast.BinOp) -> Any:
        entry = _BINARY.get(type(node.op))
        if entry is None:
            self.fail(UnsupportedFeatureError, "Unsupported operator '@'", node, "write pl.matmul(a, b)")
        left, right = self.value(node.left), self.value(node.right)
        return self.binary(entry, left, right, node, _SYMBOLS[type(node.op)])

    def binary(self, entry: tuple[str, str | None, Any], left: Any, right: Any, node: ast.AST, symbol: str) -> Any:
        """``left symbol right``."""
        name, op, python = entry
        if not isinstance(left, Expr) and not isinstance(right, Expr):
            return self._fold(python, (left, right), node)
        if self._scalars(left, right):
            self._check_bits(name, (left, right), node, symbol)
            return self._scalar_operator(name, (left, right), node, symbol)
        return self._tensor_operator(op, left, right, node, symbol)

    def _scalar_operator(self, name: str, operands: Sequence[Any], node: ast.AST, symbol: str) -> Expr:
        try:
            return S.computed_scalar(name, operands, self.span(node))
        except OP_ERRORS as error:
            raise self.wrap_op_error(f"operator '{symbol}'", error, node) from error

    def _check_bits(self, name: str, operands: Sequence[Any], node: ast.AST, symbol: str) -> None:
        """Bitwise operators take integers."""
        if name.startswith("Bit"):
            for value in operands:
                dtype = value.dtype if isinstance(value, Expr) else None
                if isinstance(value, float) or (dtype is not None and dtype.is_float()):
                    shown = dtype or "a float"
                    self.fail(InvalidOperationError, f"operator '{symbol}' needs integers, got {shown}", node)

    def _scalars(self, *values: Any) -> bool:
        return all(
            isinstance(v.type, ScalarType) if isinstance(v, Expr) else isinstance(v, (bool, int, float)) for v in values
        )

    def _fold(self, python: Callable[..., Any], values: Sequence[Any], node: ast.AST) -> Any:
        try:
            return python(*values)
        except _PYTHON_ERRORS as error:
            raise ParserTypeError(
                f"Failed to evaluate expression '{ast.unparse(node)}': {message_of(error)}",
                self.span(node),
                source_lines=self.source.lines,
            ) from error

    def _tensor_operator(self, op: str | None, left: Any, right: Any, node: ast.AST, symbol: str) -> Expr:
        kinds = [type_text(v.type) if isinstance(v, Expr) else type(v).__name__ for v in (left, right)]
        if op is None or not all(self._operand(v) for v in (left, right)):
            self.fail(InvalidOperationError, f"operator '{symbol}' does not apply to {kinds[0]} and {kinds[1]}", node)
        if not self._shaped(left):
            if op in _COMMUTES:
                left, right = right, left
            elif op == "sub":
                left, right, op = self.unified("neg", [right], node), left, "add"
            else:
                self.fail(
                    InvalidOperationError,
                    f"operator '{symbol}' needs the tensor or tile on its left",
                    node,
                    "divide by multiplying with pl.recip(x)" if op == "div" else None,
                )
        return self.unified(op, [left, right], node)

    def _operand(self, value: Any) -> bool:
        return self._shaped(value) or self._scalars(value)

    def _shaped(self, value: Any) -> bool:
        return isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        operand = self.test(node.operand) if isinstance(node.op, ast.Not) else self.value(node.operand)
        if isinstance(node.op, ast.UAdd):
            return operand
        name, op, python = _UNARY[type(node.op)]
        if not isinstance(operand, Expr):
            return self._fold(python, (operand,), node)
        symbol = _SYMBOLS[type(node.op)]
        if isinstance(operand.type, ScalarType):
            return self._scalar_operator(name, (operand,), node, symbol)
        if op is None or not self._shaped(operand):
            self.fail(InvalidOperationError, f"operator '{symbol}' does not apply to {type_text(operand.type)}", node)
        return self.unified(op, [operand], node)

    def _compare(self, node: ast.Compare) -> Any:
        made: Any = None
        left = self.value(node.left)
        for op, right_node in zip(node.ops, node.comparators):
            if made is not None and not isinstance(made, Expr) and not made:
                return made
            right = self.value(right_node)
            one = self._compare_two(op, left, right, node)
            if isinstance(made, Expr):
                one = self._scalar_operator("And", (made, self.as_expr(one, node)), node, "and")
            made, left = one, right
        return made

    def _compare_two(self, op: ast.cmpop, left: Any, right: Any, node: ast.Compare) -> Any:
        entry = _COMPARE.get(type(op))
        if entry is None:
            return self._identity_or_membership(op, left, right, node)
        name, python = entry
        if not isinstance(left, Expr) and not isinstance(right, Expr):
            return self._fold(python, (left, right), node)
        if self._scalars(left, right):
            return self._scalar_operator(name, (left, right), node, _SYMBOLS[type(op)])
        return self._tensor_compare(name.lower(), left, right, node, _SYMBOLS[type(op)])

    def _tensor_compare(self, kind: str, left: Any, right: Any, node: ast.AST, symbol: str) -> Expr:
        if not (self._shaped(left) and self._operand(right)):
            kinds = [type_text(v.type) if isinstance(v, Expr) else type(v).__name__ for v in (left, right)]
            self.fail(InvalidOperationError, f"operator '{symbol}' does not compare {kinds[0]} and {kinds[1]}", node)
        self.fail(
            InvalidOperationError,
            f"operator '{symbol}' does not compare tensors or tiles element by element",
            node,
            f"write pl.cmp(..) with the comparison '{kind}'",
        )

    def _identity_or_membership(self, op: ast.cmpop, left: Any, right: Any, node: ast.Compare) -> Any:
        if isinstance(left, Expr) or isinstance(right, Expr):
            if right is None and isinstance(op, (ast.Is, ast.IsNot)):
                return isinstance(op, ast.IsNot)
            self.fail(
                UnsupportedFeatureError, "Unsupported comparison: `is` and `in` work on compile-time values only", node
            )
        python: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
            ast.Is: operator.is_,
            ast.IsNot: operator.is_not,
            ast.In: lambda a, b: a in b,
            ast.NotIn: lambda a, b: a not in b,
        }
        return self._fold(python[type(op)], (left, right), node)

    def _boolop(self, node: ast.BoolOp) -> Any:
        return self._joined(node, self.value, self._either)

    def _joined(self, node: ast.BoolOp, read: Callable[[ast.expr], Any], join: Callable[..., Any]) -> Any:
        """``and`` / ``or`` from the left: a value known at compile time decides, or leaves the rest."""
        is_or = isinstance(node.op, ast.Or)
        left = read(node.values[0])
        for operand in node.values[1:]:
            if not isinstance(left, Expr):
                if bool(left) is is_or:
                    return left
                left = read(operand)
                continue
            right, stmts = self._apart(lambda operand=operand: read(operand))
            for value in (left, right):
                if isinstance(value, Expr) and not isinstance(value.type, ScalarType):
                    word = "or" if is_or else "and"
                    kind = type_text(value.type)
                    self.fail(InvalidOperationError, f"'{word}' needs scalar conditions, got {kind}", node)
            left = join(is_or, left, right, stmts, node)
        return left

    def _either(self, is_or: bool, left: Expr, rest: Any, stmts: list[Stmt], node: ast.BoolOp) -> Expr:
        """The value of ``left or rest``, which is that of one of them."""
        right = self.as_expr(rest, node)
        if not stmts and left.dtype is right.dtype is DataType.BOOL:
            return S.build_scalar("Or" if is_or else "And", (left, right), self.span(node))
        first, second = ((left, []), (right, stmts)) if is_or else ((right, stmts), (left, []))
        return self._chosen(S.truth(left, self.span(node)), first, second, node)

    def test(self, node: ast.expr) -> Any:
        """The value of a condition, of whose parts only the truth counts."""
        if isinstance(node, ast.BoolOp):
            return self._joined(node, self.test, self._both)
        return self.value(node)

    def _both(self, is_or: bool, left: Expr, rest: Any, stmts: list[Stmt], node: ast.BoolOp) -> Expr:
        if stmts:
            return self._either(is_or, left, rest, stmts, node)
        right = self.as_expr(bool(rest) if not isinstance(rest, Expr) else rest, node)
        return S.build_scalar("Or" if is_or else "And", (left, right), self.span(node))

    def _ifexp(self, node: ast.IfExp) -> Any:
        test = self.test(node.test)
        if not isinstance(test, Expr):
            return self.value(node.body if test else node.orelse)
        if not isinstance(test.type, ScalarType):
            self.fail(InvalidOperationError, f"a condition must be a scalar, got {type_text(test.type)}", node.test)
        first, second = (self._apart(lambda part=part: self.expr(part)) for part in (node.body, node.orelse))
        return self._chosen(S.truth(test, self.span(node)), first, second, node)

    def _apart(self, read: Callable[[], Any]) -> tuple[Any, list[Stmt]]:
        """What ``read`` gives, and the statements it wrote for that."""
        outer, self.body = self.body, Body("if", self.body)
        try:
            return read(), self.body.stmts
        finally:
            self.body = outer

    def _chosen(
        self, test: Expr, first: tuple[Expr, list[Stmt]], second: tuple[Expr, list[Stmt]], node: ast.expr
    ) -> Expr:
        """One of two values, of which only that one is computed: the result of an `if` ahead of the statement."""
        values = [first[0], second[0]]
        if not all(isinstance(v.type, ScalarType) for v in values):
            kinds = " and ".join(type_text(v.type) for v in values)
            self.fail(
                UnsupportedFeatureError,
                f"Unsupported expression: a choice between {kinds}",
                node,
                "write an if / else statement that binds one name on both arms",
            )
        try:
            first_value, second_value = S.alternatives(values[0], values[1])
        except OP_ERRORS as error:
            raise self.wrap_op_error("a choice", error, node) from error
        span = self.span(node)
        bodies = [
            seq([*stmts, YieldStmt([value], span)], span)
            for value, stmts in ((first_value, first[1]), (second_value, second[1]))
        ]
        made = Var("chosen", first_value.type, span)
        self.body.stmts.append(IfStmt(test, bodies[0], bodies[1], [made], span))
        return made

    def _sequence(self, node: ast.List | ast.Tuple) -> Any:
        items = [self.value(e) for e in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)

    # -- subscripts

    def _subscript(self, node: ast.Subscript) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, Expr):
            if isinstance(owner.type, TupleType):
                return self._tuple_item(owner, len(owner.type.types), node)
            return self.read_subscript(owner, node)
        if isinstance(node.slice, ast.Slice):
            parts = (node.slice.lower, node.slice.upper, node.slice.step)
            index: Any = slice(*(None if p is None else self.constant(p, "a slice bound") for p in parts))
        else:
            index = self.constant(node.slice, "an index into a Python value")
        return self.closure_value(self._fold(operator.getitem, (owner, index), node))

    def _tuple_item(self, owner: Expr, count: int, node: ast.Subscript) -> Expr:
        index = self.constant(node.slice, "a tuple index")
        if not isinstance(index, int):
            self.fail(ParserSyntaxError, "a tuple index is an integer", node.slice)
        if not -count <= index < count:
            self.fail(
                ParserTypeError, f"tuple index {index} is out of range: the tuple has {count} elements", node.slice
            )
        return TupleGetItemExpr(owner, index % count, self.span(node))


_VALUES: Final[dict[type[ast.expr], Callable[[Any, Any], Any]]] = {
    ast.Constant: ExpressionsMixin._constant,
    ast.Name: ParserBase.name_value,
    Evaluated: lambda self, node: node.value,
    ast.Attribute: ExpressionsMixin._attribute,
    ast.BinOp: ExpressionsMixin._binop,
    ast.UnaryOp: ExpressionsMixin._unaryop,
    ast.Compare: ExpressionsMixin._compare,
    ast.BoolOp: ExpressionsMixin._boolop,
    ast.IfExp: ExpressionsMixin._ifexp,
    ast.List: ExpressionsMixin._sequence,
    ast.Tuple: ExpressionsMixin._sequence,
    ast.Subscript: ExpressionsMixin._subscript,
    ast.Call: lambda self, node: self.call_value(node),
}

BINARY = _BINARY
SYMBOLS = _SYMBOLS
