"""What every part of the function parser shares: names, spans, errors, conversions to expressions."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from ...dtypes import DataType
from ...errors import (
    BUG_CLASS_EXCEPTIONS,
    Diagnosed,
    InternalError,
    InvalidOperationError,
    ParserError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    message_of,
)
from ...ir.enums import FunctionType, SplitMode
from ...ir.expr import ConstBool, ConstFloat, ConstInt, Expr, IterArg, MakeTuple, Var
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import AssignStmt, Stmt
from ...ir.types import ScalarType, ShapedType, TensorType, TileType, TupleType, Type, same_but_region, same_dims
from ...ops.registry import call as build_op
from ..annotations import _Annotation
from ..dynamic import DynVar
from .expr_evaluator import MISSING, ExprEvaluator
from .scope_manager import ScopeManager
from .source import SourceFile

if TYPE_CHECKING:
    from .program_parser import ProgramContext
    from .type_resolver import TypeResolver

_POSITIONS = {DataType.INDEX, DataType.INT64}
OP_ERRORS = (ValueError, TypeError, IndexError, NotImplementedError)
"""What operators raise for arguments that do not fit."""


class Evaluated(ast.Name):
    """Stands for an argument whose value is known already, so that its calls are not made twice."""

    def __init__(self, node: ast.expr, value: Any) -> None:
        super().__init__(id=ast.unparse(node), ctx=ast.Load())
        ast.copy_location(self, node)
        self.value = value


def same_type(a: Type, b: Type) -> bool:
    """Type equality that answers the common cases without a structural walk."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, ScalarType):
        return False
    if isinstance(a, ShapedType) and isinstance(b, ShapedType):
        if a.dtype is not b.dtype or len(a.shape) != len(b.shape):
            return False
        if not (a.symbolic or b.symbolic) and not same_dims(a.shape, b.shape):
            return False
    return a == b


def _meet(a: Type, b: Type) -> bool:
    """Whether values that the branches of an ``if`` give one name are of one kind."""
    return same_type(a, b) or same_but_region(a, b) or _are_positions(a, b)


def _are_positions(a: Type, b: Type) -> bool:
    """Whether two types are INDEX and INT64: one representation."""
    return isinstance(a, ScalarType) and isinstance(b, ScalarType) and {a.dtype, b.dtype} == _POSITIONS


def type_text(t: Type) -> str:
    """A type as a message names it."""
    if isinstance(t, ScalarType):
        return f"Scalar[{t.dtype}]"
    if isinstance(t, TupleType):
        return f"tuple[{', '.join(type_text(m) for m in t.types)}]"
    if isinstance(t, ShapedType):
        kind = type(t).__name__.removesuffix("Type")
        return f"{kind}[[{', '.join(dim_text(d) for d in t.shape)}], {t.dtype}]"
    return type(t).__name__.removesuffix("Type")


def dim_text(dim: Any) -> str:
    """A dimension as a message names it."""
    value = getattr(dim, "value", None)
    if value is not None:
        return str(value)
    return dim.name_hint if isinstance(dim, Var) else str(dim)


class ParserBase:
    """State of parsing one function."""

    evaluator: ExprEvaluator
    types: TypeResolver

    def __init__(
        self,
        source: SourceFile,
        closure: Mapping[str, Any],
        *,
        func_type: FunctionType = FunctionType.Opaque,
        strict_ssa: bool = False,
        auto_scope: bool = True,
        program: ProgramContext | None = None,
    ) -> None:
        self.source = source
        self.spans = source.spans()
        self.evaluator = ExprEvaluator(closure, self.spans)
        self.scopes = ScopeManager(strict_ssa)
        self.strict_ssa = strict_ssa
        self.func_type = func_type
        self.auto_scope = auto_scope
        self.program = program
        self.dimensions: set[Var] = set()
        """Dimensions of the signature that names of the kernel stand for."""
        self.producers: dict[Var, Var] = {}
        """Results of task launches, and the id of the task each comes from."""
        self.dump_tags: dict[Var, None] = {}
        """Tensors marked for run-time dumps, in order."""
        self.split_mode: SplitMode | None = None
        """How the enclosing `pl.split_aiv` region divides tiles."""
        self.temporaries: dict[str, int] = {}
        self.externals: dict[str, Function] = {}
        """Functions called that are defined outside the program, by name."""
        self.specialized: dict[Any, Function] = {}
        """Functions compiled for the arguments of a call, by what decides them; shared by all parsers of a program."""

    # -- errors and spans

    def span(self, node: ast.AST) -> Span:
        return self.spans.get_span(node)

    def fail(
        self,
        cls: type[ParserError],
        message: str,
        node: ast.AST | Span,
        hint: str | None = None,
        note: str | None = None,
    ) -> NoReturn:
        """Raise a parser error at ``node``."""
        span = node if isinstance(node, Span) else self.span(node)
        raise cls(message, span, hint, note, source_lines=self.source.lines)

    def wrap_op_error(self, label: str, error: Exception, node: ast.AST) -> InvalidOperationError:
        """The error to raise, from ``error``, for an operator that refused its arguments."""
        message, hint, note = message_of(error), None, None
        if isinstance(error, Diagnosed):
            hint, note = error.hint, error.note
        if hint is None and "\n  hint: " in message:
            message, _, hint = message.partition("\n  hint: ")
        return InvalidOperationError(
            f"Error in {label}: {message}", self.span(node), hint, note, source_lines=self.source.lines
        )

    # -- names

    def name_value(self, node: ast.Name) -> Any:
        """What a name stands for: a variable of the kernel, else a Python object around it."""
        name = node.id
        found = self.scopes.lookup_var(name)
        if found is not None:
            return found
        lost = self.scopes.why_lost(name)
        if lost is not None:
            message, hint, where = lost
            note = f"'{name}' is bound at {where}" if where is not None and where.is_valid() else None
            self.fail(UndefinedVariableError, message, node, hint, note)
        value = self.evaluator.lookup(name)
        if value is MISSING:
            self.undefined(name, node)
        return self.closure_value(value)

    def closure_value(self, value: Any) -> Any:
        """A Python object as the parser uses it: dimensions and wrappers become expressions."""
        if isinstance(value, DynVar):
            return value.var
        if isinstance(value, _Annotation) and value._expr is not None:
            return value._expr
        return value

    def undefined(self, name: str, node: ast.AST) -> NoReturn:
        known = {*self.scopes.names(), *self.evaluator.closure_vars}
        close = get_close_matches(name, [k for k in known if not k.startswith("__")], 2)
        hint = f"did you mean {' or '.join(repr(c) for c in close)}?" if close else None
        self.fail(UndefinedVariableError, f"Undefined variable '{name}'", node, hint or "define it before it is used")

    def bind(self, name: str, type: Type, node: ast.AST) -> Var:
        """The variable an assignment writes.

        Assigning to a name of an enclosing body keeps that body's variable, so that the value is seen there, as do
        branches, whose variables must meet; straight-line code gets a new variable each time.
        """
        span = self.span(node)
        frame = self.scopes.current
        here = frame.names.get(name)
        known = here if here is not None else self.scopes.lookup_var(name)
        if known is not None and here is None and self._is_alias(known):
            self._inner_alias(name, node)
        if name != "_" and isinstance(known, Var) and known not in self.dimensions:
            if self.strict_ssa and here is not None:
                hint = f"give the new value a name of its own, such as {name}_1"
                self.fail(SSAViolationError, f"Variable '{name}' is already defined", node, hint)
            if not isinstance(known, IterArg):
                if (here is None or frame.kind == "if") and same_type(known.type, type):
                    return known
                if here is None and (same_but_region(known.type, type) or _are_positions(known.type, type)):
                    return known  # ConvertToSSA finds what is valid whichever value it has
            elif here is None:
                raise InternalError(f"carried value '{name}' is assigned in an inner body", span)
            scalars = isinstance(known.type, ScalarType) and isinstance(type, ScalarType)
            if here is None or isinstance(known, IterArg) or not scalars:
                self.check_reassign(name, known.type, type, node, crossing=here is None)
        elif here is None:
            twin = self.scopes.twin(name)
            if isinstance(twin, Var) and _meet(twin.type, type):
                self.scopes.define_var(name, twin, allow_redef=True)
                return twin
        var = Var(name, type, span)
        self.scopes.define_var(name, var, allow_redef=True)
        return var

    def alias(self, name: str, value: Any, node: ast.AST) -> None:
        """Let ``name`` stand for a compile-time value; nothing is assigned when the kernel runs."""
        if name not in self.scopes.current.names and self.scopes.lookup_var(name) is not None:
            self._inner_alias(name, node)
        self.scopes.define_var(name, value, allow_redef=True)

    def _is_alias(self, value: Any) -> bool:
        return not isinstance(value, Var) or value in self.dimensions

    def _inner_alias(self, name: str, node: ast.AST) -> NoReturn:
        self.fail(
            ParserTypeError,
            f"Cannot reassign '{name}' inside a loop or branch: it stands for a compile-time value",
            node,
            "give the new value a name of its own",
        )

    def check_reassign(self, name: str, old: Type, new: Type, node: ast.AST, crossing: bool) -> None:
        """ParserTypeError unless a value of type ``new`` may take the name of one of type ``old``."""
        if same_type(old, new):
            return
        compatible = type(old) is type(new)
        if compatible and isinstance(old, ShapedType) and isinstance(new, ShapedType):
            compatible = old.dtype is new.dtype and same_shape(old, new)
        else:
            compatible = False
        if compatible and not crossing:
            return
        self.fail(
            ParserTypeError,
            f"Cannot reassign '{name}' with a different type: it is {type_text(old)}, the new value {type_text(new)}"
            + (" with another view or memory" if compatible else ""),
            node,
            hint="give the new value a name of its own",
        )

    # -- values

    def as_expr(self, value: Any, node: ast.AST) -> Expr:
        """``value`` as an expression. ParserTypeError for Python objects that are none."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, bool):
            return ConstBool(value, self.span(node))
        if isinstance(value, int):
            return ConstInt(value, DataType.INDEX, self.span(node))
        if isinstance(value, float):
            return ConstFloat(value, DataType.FP32, self.span(node))
        if isinstance(value, (list, tuple)):
            return MakeTuple([self.as_expr(v, node) for v in value], self.span(node))
        if value is None:
            return build_op("system.task_invalid", span=self.span(node))
        if hasattr(value, "item") and hasattr(value, "dtype"):
            return self.as_expr(value.item(), node)
        kind = type(value).__name__
        what = f"a {kind} is"
        if isinstance(node, ast.Name):
            what = f"Unsupported closure variable type: '{node.id}' of type {kind} is"
        self.fail(
            ParserTypeError,
            f"{what} not a value of the kernel",
            node,
            hint="numbers, lists of numbers, dtypes and expressions can be used",
        )

    def assign(self, name: str, value: Expr, node: ast.AST) -> Stmt:
        """``name = value`` as a statement."""
        return AssignStmt(self.bind(name, value.type, node), value, self.span(node))


def same_shape(a: ShapedType, b: ShapedType) -> bool:
    """Whether no dimension is known to differ."""
    if len(a.shape) != len(b.shape):
        return False
    for x, y in zip(a.shape, b.shape):
        left, right = getattr(x, "value", None), getattr(y, "value", None)
        if left is not None and right is not None and left != right:
            return False
    return True


__all__ = [
    "BUG_CLASS_EXCEPTIONS",
    "OP_ERRORS",
    "Evaluated",
    "ParserBase",
    "TensorType",
    "TileType",
    "dim_text",
    "same_shape",
    "type_text",
]
