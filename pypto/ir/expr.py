"""Expressions: values, scalar arithmetic, calls and task launches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..dtypes import DataType
from ..errors import InternalError
from .enums import ArgDirection
from .node import DATA, MAPPING, NODE, NODES, TYPE, IRNode, NodeList, ignore, node, node_list, use
from .span import UNKNOWN_SPAN, Span
from .types import ScalarType, TensorType, TileType, TupleType, Type, UnknownType

_UNKNOWN_TYPE: Final = UnknownType()


class Expr(IRNode):
    """A value of ``type``. Python operators on scalar expressions build expressions at the caller's line."""

    __slots__ = ()
    type: Type

    __hash__ = IRNode.__hash__

    @property
    def dtype(self) -> DataType:
        """Element type of a scalar, tensor, tile or array."""
        found = getattr(self.type, "dtype", None)
        if found is None:
            raise AttributeError(f"{type(self).__name__} of type {self.type} has no dtype")
        return found

    def _is_scalar(self) -> bool:
        return isinstance(self.type, ScalarType)

    def __add__(self, other: Any) -> Expr:
        return _overloaded("Add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _overloaded("Add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _overloaded("Sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _overloaded("Sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _overloaded("Mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _overloaded("Mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _overloaded("FloatDiv", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _overloaded("FloatDiv", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return _overloaded("FloorDiv", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return _overloaded("FloorDiv", other, self)

    def __mod__(self, other: Any) -> Expr:
        return _overloaded("FloorMod", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return _overloaded("FloorMod", other, self)

    def __pow__(self, other: Any) -> Expr:
        return _overloaded("Pow", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return _overloaded("Pow", other, self)

    def __and__(self, other: Any) -> Expr:
        return _overloaded("BitAnd", self, other)

    def __rand__(self, other: Any) -> Expr:
        return _overloaded("BitAnd", other, self)

    def __or__(self, other: Any) -> Expr:
        return _overloaded("BitOr", self, other)

    def __ror__(self, other: Any) -> Expr:
        return _overloaded("BitOr", other, self)

    def __xor__(self, other: Any) -> Expr:
        return _overloaded("BitXor", self, other)

    def __rxor__(self, other: Any) -> Expr:
        return _overloaded("BitXor", other, self)

    def __lshift__(self, other: Any) -> Expr:
        return _overloaded("BitShiftLeft", self, other)

    def __rlshift__(self, other: Any) -> Expr:
        return _overloaded("BitShiftLeft", other, self)

    def __rshift__(self, other: Any) -> Expr:
        return _overloaded("BitShiftRight", self, other)

    def __rrshift__(self, other: Any) -> Expr:
        return _overloaded("BitShiftRight", other, self)

    def __lt__(self, other: Any) -> Expr:
        return _overloaded("Lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return _overloaded("Le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return _overloaded("Gt", self, other)

    def __ge__(self, other: Any) -> Expr:
        return _overloaded("Ge", self, other)

    def __eq__(self, other: Any) -> Any:
        if self._is_scalar() and (isinstance(other, (int, float)) or (isinstance(other, Expr) and other._is_scalar())):
            return _overloaded("Eq", self, other)
        return self is other

    def __ne__(self, other: Any) -> Any:
        if self._is_scalar() and (isinstance(other, (int, float)) or (isinstance(other, Expr) and other._is_scalar())):
            return _overloaded("Ne", self, other)
        return self is not other

    def __neg__(self) -> Expr:
        return _overloaded("Neg", self)

    def __invert__(self) -> Expr:
        return _overloaded("BitNot", self)

    def __abs__(self) -> Expr:
        return _overloaded("Abs", self)


def _overloaded(name: str, *operands: Any) -> Expr:
    from .scalar import build_scalar

    return build_scalar(name, operands, Span.here(2))


next_unique_id = itertools.count(1).__next__


@node
class Var(Expr):
    """A variable. Its identity is the object; ``name_hint`` only names it in print."""

    name_hint: str = ignore()
    type: Type = use(TYPE)
    unique_id: int = ignore()

    def __new__(cls, name_hint: str, type: Type, span: Span = UNKNOWN_SPAN) -> Var:
        return cls._build(type, span, name_hint, next_unique_id())


@node
class IterArg(Var):
    """A value carried around a loop, first ``init_value``, then what the body yields."""

    init_value: Expr = use(NODE)

    def __new__(cls, name_hint: str, type: Type, init_value: Expr, span: Span = UNKNOWN_SPAN) -> IterArg:
        return cls._build(type, init_value, span, name_hint, next_unique_id())

    @property
    def initValue(self) -> Expr:
        return self.init_value


@node
class ConstInt(Expr):
    """An integer constant."""

    value: int = use(DATA)
    type: Type = use(TYPE)

    def __new__(cls, value: int, dtype: DataType, span: Span = UNKNOWN_SPAN) -> ConstInt:
        return cls._build(value, ScalarType(dtype), span)


@node
class ConstFloat(Expr):
    """A floating-point constant."""

    value: float = use(DATA)
    type: Type = use(TYPE)

    def __new__(cls, value: float, dtype: DataType, span: Span = UNKNOWN_SPAN) -> ConstFloat:
        return cls._build(float(value), ScalarType(dtype), span)


@node
class ConstBool(Expr):
    """True or False."""

    value: bool = use(DATA)
    type: Type = use(TYPE)

    def __new__(cls, value: bool, span: Span = UNKNOWN_SPAN) -> ConstBool:
        return cls._build(value, ScalarType(DataType.BOOL), span)


_INDEX_CONSTS: dict[int, ConstInt] = {}


def index_const(value: int, span: Span = UNKNOWN_SPAN) -> ConstInt:
    """An INDEX constant; those without a position are shared."""
    if span is not UNKNOWN_SPAN:
        return ConstInt(value, DataType.INDEX, span)
    made = _INDEX_CONSTS.get(value)
    if made is None:
        made = _INDEX_CONSTS[value] = ConstInt(value, DataType.INDEX)
    return made


def tensor_type_of(value: Expr) -> TensorType:
    """The type of what is known to be a tensor. Raises InternalError for anything else."""
    if not isinstance(value.type, TensorType):
        raise InternalError(f"a tensor was expected, not {value.type}", value.span)
    return value.type


def tile_type_of(value: Expr) -> TileType:
    """The type of what is known to be a tile. Raises InternalError for anything else."""
    if not isinstance(value.type, TileType):
        raise InternalError(f"a tile was expected, not {value.type}", value.span)
    return value.type


def const_value(expr: Any) -> int | float | bool | None:
    """The value of a constant expression, or None."""
    return expr.value if isinstance(expr, (ConstInt, ConstFloat, ConstBool)) else None


def is_integer(e: Expr) -> bool:
    """Whether ``e`` is one integer: a scalar of an integer type or an index (BOOL is none)."""
    return isinstance(e.type, ScalarType) and e.type.dtype.is_int()


class BinaryExpr(Expr):
    """A scalar operation on ``left`` and ``right``."""

    __slots__ = ()
    node_kind = "binary_expr"
    left: Expr
    right: Expr
    symbol: ClassVar[str]
    """How Python writes it: an infix operator, or a ``pl`` function name."""

    if TYPE_CHECKING:

        def __init__(self, left: Expr, right: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None: ...


class UnaryExpr(Expr):
    """A scalar operation on ``operand``."""

    __slots__ = ()
    node_kind = "unary_expr"
    operand: Expr
    symbol: ClassVar[str]

    if TYPE_CHECKING:

        def __init__(self, operand: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None: ...


def _binary(name: str, symbol: str, doc: str) -> type[BinaryExpr]:
    def create(cls: Any, left: Expr, right: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> Any:
        return cls._build(left, right, ScalarType(dtype), span)

    body = {"__doc__": doc, "__module__": __name__, "symbol": symbol, "__new__": create}
    body |= {"left": use(NODE), "right": use(NODE), "type": use(TYPE), "__qualname__": name, "__slots__": ()}
    return node(type(name, (BinaryExpr,), body))


def _unary(name: str, symbol: str, doc: str) -> type[UnaryExpr]:
    def create(cls: Any, operand: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> Any:
        return cls._build(operand, ScalarType(dtype), span)

    body = {"__doc__": doc, "__module__": __name__, "symbol": symbol, "__new__": create}
    body |= {"operand": use(NODE), "type": use(TYPE), "__qualname__": name, "__slots__": ()}
    return node(type(name, (UnaryExpr,), body))


Add = _binary("Add", "+", "Sum.")
Sub = _binary("Sub", "-", "Difference.")
Mul = _binary("Mul", "*", "Product.")
FloorDiv = _binary("FloorDiv", "//", "Quotient rounded towards minus infinity.")
FloorMod = _binary("FloorMod", "%", "Remainder with the divisor's sign.")
FloatDiv = _binary("FloatDiv", "/", "Floating-point quotient.")
Min = _binary("Min", "min", "The smaller operand.")
Max = _binary("Max", "max", "The larger operand.")
Pow = _binary("Pow", "**", "Power.")
Eq = _binary("Eq", "==", "Equal.")
Ne = _binary("Ne", "!=", "Not equal.")
Lt = _binary("Lt", "<", "Less.")
Le = _binary("Le", "<=", "Less or equal.")
Gt = _binary("Gt", ">", "Greater.")
Ge = _binary("Ge", ">=", "Greater or equal.")
And = _binary("And", "and", "Both true.")
Or = _binary("Or", "or", "Either true.")
Xor = _binary("Xor", "xor", "Exactly one true.")
BitAnd = _binary("BitAnd", "&", "Bitwise and.")
BitOr = _binary("BitOr", "|", "Bitwise or.")
BitXor = _binary("BitXor", "^", "Bitwise exclusive or.")
BitShiftLeft = _binary("BitShiftLeft", "<<", "Left shift.")
BitShiftRight = _binary("BitShiftRight", ">>", "Right shift: arithmetic for signed types.")
Abs = _unary("Abs", "abs", "Absolute value.")
Neg = _unary("Neg", "-", "Negative.")
Not = _unary("Not", "not", "Logical negation.")
BitNot = _unary("BitNot", "~", "Bitwise complement.")
Cast = _unary("Cast", "cast", "Value converted to the expression's dtype.")

COMPARISONS: Final = frozenset({Eq, Ne, Lt, Le, Gt, Ge})
LOGICAL: Final = frozenset({And, Or, Xor, Not})


class Op:
    """The name of an operator. A registered operator's declaration hangs on its one `Op` object."""

    __slots__ = ("name", "decl")
    name: str
    decl: Any

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "name", name)
        self.decl = None

    def __setattr__(self, name: str, value: object) -> None:
        if name == "name":
            raise AttributeError("an operator's name is read-only")
        object.__setattr__(self, name, value)

    def has_attr(self, name: str) -> bool:
        """Whether the operator takes keyword ``name``."""
        return name in self.get_attr_keys()

    def get_attr_keys(self) -> list[str]:
        """The keywords the operator takes."""
        return [p.name for p in self.decl.attrs] if self.decl is not None else []

    def __repr__(self) -> str:
        return self.name


KNOWN_OPS: Final[dict[str, Op]] = {}
"""Registered operators by name."""


class GlobalVar(Op):
    """The name of a function of the program."""

    __slots__ = ()


def _check_op(op: object) -> None:
    if not isinstance(op, Op):
        raise TypeError(f"a call needs an Op or GlobalVar, got {type(op).__name__}")


def _check_directions(attrs: Mapping[str, Any], count: int) -> None:
    directions = attrs.get("arg_directions")
    if directions is not None and len(directions) != count:
        raise TypeError(f"attrs['arg_directions'] size ({len(directions)}) must match args size ({count})")


class _Invocation(Expr):
    """What calls and task launches share."""

    __slots__ = ()
    op: Op
    args: NodeList
    kwargs: dict[str, Any]
    attrs: dict[str, Any]

    @property
    def name(self) -> str:
        """The operator's or function's name."""
        return self.op.name

    @property
    def arg_directions(self) -> list[ArgDirection]:
        return list(self.attrs.get("arg_directions", ()))


@node
class Call(_Invocation):
    """``op(args, **kwargs)``. ``attrs`` is what passes note on the call.

    Built as ``Call(op, args[, kwargs[, attrs]][, type], span)``; ``kwargs`` and ``attrs`` are mappings.
    """

    op: Op = use(DATA)
    args: NodeList = use(NODES)
    kwargs: dict[str, Any] = use(MAPPING)
    attrs: dict[str, Any] = use(MAPPING)
    type: Type = use(TYPE)

    def __new__(cls, op: Op, args: Iterable[Expr], *rest: Any, **named: Any) -> Call:
        _check_op(op)
        if op.decl is None and type(op) is Op:
            op = KNOWN_OPS.get(op.name, op)
        parts = _call_parts(rest, named)
        arg_list = node_list(args)
        if parts["attrs"]:
            _check_directions(parts["attrs"], len(arg_list))
        return cls._build(op, arg_list, parts["kwargs"], parts["attrs"], parts["type"], parts["span"])


def _call_parts(rest: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Sort optional positional arguments by what they are."""
    parts: dict[str, Any] = {"kwargs": None, "attrs": None, "type": _UNKNOWN_TYPE, "span": UNKNOWN_SPAN}
    mappings = ["kwargs", "attrs"]
    for item in rest:
        if isinstance(item, Span):
            parts["span"] = item
        elif isinstance(item, Type):
            parts["type"] = item
        elif item is None or isinstance(item, Mapping):
            if not mappings:
                raise TypeError("a call takes kwargs and attrs, at most")
            parts[mappings.pop(0)] = item
        else:
            raise TypeError(f"a call does not take a {type(item).__name__}")
    unknown = named.keys() - parts.keys()
    if unknown:
        raise TypeError(f"a call does not take {', '.join(sorted(unknown))}")
    parts.update(named)
    parts["kwargs"] = dict(parts["kwargs"] or {})
    parts["attrs"] = dict(parts["attrs"] or {})
    return parts


@node
class Submit(_Invocation):
    """Launch a task: ``op(args)`` after ``deps``; its value is the results and the task's id.

    ``core_num`` blocks of it run for an SPMD launch, together when ``sync_start``. When ``predicate`` is false at
    dispatch, the task is retired without running. Built as
    ``Submit(op, args, deps[, kwargs[, attrs]][, type], span)``, the rest by keyword.
    """

    op: Op = use(DATA)
    args: NodeList = use(NODES)
    deps: NodeList = use(NODES)
    core_num: Expr | None = use(NODE, None)
    sync_start: bool = use(DATA, False)
    allow_early_resolve: bool = use(DATA, False)
    predicate: Expr | None = use(NODE, None)
    kwargs: dict[str, Any] = use(MAPPING)
    attrs: dict[str, Any] = use(MAPPING)
    type: Type = use(TYPE)

    def __new__(
        cls,
        op: Op,
        args: Iterable[Expr],
        deps: Iterable[Expr] | None = None,
        *rest: Any,
        core_num: Expr | None = None,
        sync_start: bool = False,
        allow_early_resolve: bool = False,
        predicate: Expr | None = None,
        **named: Any,
    ) -> Submit:
        _check_op(op)
        if sync_start and core_num is None:
            raise ValueError("sync_start needs core_num")
        parts, arg_list = _call_parts(rest, named), node_list(args)
        _check_directions(parts["attrs"], len(arg_list))
        return cls._build(
            op, arg_list, node_list(deps), core_num, sync_start, allow_early_resolve, predicate,
            parts["kwargs"], parts["attrs"], parts["type"], parts["span"],
        )  # fmt: skip


@node
class MakeTuple(Expr):
    """Several values as one."""

    elements: NodeList = use(NODES)
    type: Type = use(TYPE)

    def __new__(cls, elements: Iterable[Expr], span: Span = UNKNOWN_SPAN) -> MakeTuple:
        items = node_list(elements)
        return cls._build(items, TupleType([e.type for e in items]), span)


@node
class TupleGetItemExpr(Expr):
    """Element ``index`` of a tuple."""

    tuple: Expr = use(NODE)
    index: int = use(DATA)
    type: Type = use(TYPE)

    def __new__(cls, tuple: Expr, index: int, span: Span = UNKNOWN_SPAN) -> TupleGetItemExpr:
        if not isinstance(tuple.type, TupleType):
            raise ValueError(f"only a tuple has elements, not a value of type {tuple.type}")
        if not 0 <= index < len(tuple.type.types):
            raise ValueError(f"tuple index {index} out of range: the tuple has {len(tuple.type.types)} elements")
        return cls._build(tuple, index, tuple.type.types[index], span)
