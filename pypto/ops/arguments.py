"""Arguments of operator calls: what fits a parameter, and the expression or attribute it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr, MakeTuple, index_const
from ..ir.scalar import scalar_const
from ..ir.span import Span
from ..ir.types import (
    ArrayType,
    CommCtxType,
    DistributedTensorType,
    PtrType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    Type,
)
from .signature import ATTR_KINDS, Param, enum_names

if TYPE_CHECKING:
    from .registry import OpDecl


class OpError(ValueError):
    """An operator's arguments do not fit it."""


class OpTypeError(TypeError, ValueError):
    """An operator was called with the wrong arguments or kinds of argument.

    Python says TypeError for a wrong call, the IR ValueError for operands an operator refuses: it is both.
    """


_KIND_TYPES: dict[str, Any] = {
    "tile": TileType, "tensor": TensorType, "dist": DistributedTensorType, "array": ArrayType, "scalar": ScalarType,
    "ptr": PtrType, "ctx": CommCtxType, "element": ScalarType,
}  # fmt: skip
_KIND_WORDS = {
    "tile": "a TileType", "tensor": "a TensorType", "dist": "a window-bound DistributedTensor",
    "array": "an ArrayType", "scalar": "a scalar", "element": "a scalar",
    "index": "an integer scalar (INT64/UINT64/INDEX)",
    "dims": "a tuple of integers", "ptr": "a Ptr handle", "ctx": "a CommCtx",
}  # fmt: skip
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")


def argument(decl: OpDecl, param: Param, value: Any, span: Span) -> Any:
    """The expression that ``value`` given for ``param`` is, None where it stands for leaving it out."""
    kinds = param.kinds
    if isinstance(value, Expr):
        if fits(kinds, value):
            single = "dims" in kinds and not isinstance(value, MakeTuple)
            return MakeTuple((value,), span) if single else None if left_out(param, value) else value
        if left_out(param, value):
            return None
    elif param.default is None and (value is None or (value in ([], ()) and not _given_by_name(param))):
        return None
    elif isinstance(value, (list, tuple)) and "dims" in kinds:
        return make_dims(decl, param.name, value, span)
    elif type(value) is int and "dims" in kinds and "index" in kinds:
        return make_dims(decl, param.name, [value], span)
    elif isinstance(value, (bool, int, float)) and ("scalar" in kinds or (type(value) is int and "index" in kinds)):
        return scalar_const(value, None, span)
    raise wrong_kind(decl, param, value)


def _given_by_name(param: Param) -> bool:
    """Whether no argument follows that an empty list could hold the place for."""
    return param.keyword_only and "dims" in param.kinds


def left_out(param: Param, value: Expr) -> bool:
    """Whether ``value`` is the empty tuple that stands for an argument left out before another."""
    return param.default is None and isinstance(value, MakeTuple) and not value.elements


def fits(kinds: tuple[str, ...], value: Expr) -> bool:
    """Whether ``value`` is of one of the argument ``kinds``."""
    found = value.type
    for kind in kinds:
        expected = _KIND_TYPES.get(kind)
        if expected is not None:
            if isinstance(found, expected):
                return True
        elif kind == "index":
            if isinstance(found, ScalarType) and found.dtype.is_int():
                return True
        elif kind == "any" or isinstance(value, MakeTuple):
            return True
    return False


def wrong_kind(decl: OpDecl, param: Param, value: Any) -> OpTypeError:
    """The error for an argument of a kind its operator does not take."""
    index = decl.args.index(param)
    which = _ORDINALS[index] if index < len(_ORDINALS) else f"{index + 1}th"
    wanted = " or ".join(_KIND_WORDS.get(k, k) for k in param.kinds)
    got = f"a value of type {value.type}" if isinstance(value, Expr) else f"{type(value).__name__} {value!r:.40}"
    shaped = any(issubclass(_KIND_TYPES.get(k, Type), ShapedType) and k != "dist" for k in param.kinds)
    problem = f"requires {param.name} to be {wanted}" if shaped else f"{param.name} must be {wanted}"
    part = f"the {param.name} tuple" if param.kinds == ("dims",) else wanted
    rule = f"it requires {which} argument to be {part}"
    if param.kinds == ("array",):
        rule = f"its {which} argument must be ArrayType"
    return OpTypeError(f"{decl.name} {problem}, got {got}\n  {rule}: {decl.signature}")


def make_dims(decl: OpDecl, name: str, values: Iterable[Any], span: Span) -> MakeTuple:
    """A list of integers or integer expressions as one expression."""
    items: list[Expr] = []
    for i, value in enumerate(values):
        if isinstance(value, int):
            items.append(index_const(value))
        elif isinstance(value, Expr) and isinstance(value.type, ScalarType) and not value.type.dtype.is_float():
            items.append(value)
        else:
            got = value.type if isinstance(value, Expr) else type(value).__name__
            raise OpTypeError(
                f"{decl.name} requires {name}[{i}] to be an integer extent: {name!r} must hold integers, "
                f"{name.removesuffix('s')} {i} must be an integer or index scalar, got {got}: {decl.signature}"
            )
    return MakeTuple(items, span)


def scalar_argument(decl: OpDecl, param: Param, values: Mapping[str, Any], span: Span) -> Any:
    """A scalar operand; a bare literal takes the element dtype of the argument it goes with."""
    value = values[param.name]
    if not isinstance(value, (bool, int, float)):
        value = argument(decl, param, value, span)
        if value is None or not isinstance(value.type, ScalarType):
            return value
    like = param.like or ""
    fixed = DataType.__members__.get(like)
    dtype = fixed or (values[like].type.dtype if values[like] is not None else None)
    if param.wide and isinstance(value, float):
        dtype = None
    if "element" in param.kinds and isinstance(value, Expr) and not isinstance(value, ConstInt):
        return value
    return scalar_operand(decl, param.name, value, dtype, span)


def scalar_operand(decl: OpDecl, name: str, value: Any, dtype: DataType | None, span: Span) -> Expr:
    """``value`` as the scalar operand of an operator on ``dtype`` elements.

    A number, or an INDEX constant, is a literal and takes ``dtype``; a fractional one on integers stays FP32.
    Expressions keep the dtype they have. Raises OpError for an INDEX value that is not constant: no instruction
    takes one.
    """
    if isinstance(value, ConstInt) and value.dtype is DataType.INDEX:
        return scalar_const(value.value, dtype, value.span)
    if isinstance(value, Expr):
        if value.dtype is DataType.INDEX:
            raise OpError(
                f"{decl.name} requires scalar dtype in the element dtypes, {name!r} is an index value"
                f"\n  hint: convert it, pl.cast({name}, pl.{dtype.name if dtype else 'INT32'})"
            )
        return value
    return scalar_const(value, dtype, span)


def attribute(decl: OpDecl, param: Param, value: Any) -> Any:
    """A keyword's value as it is stored: enum members, numbers, strings."""
    kind = param.kinds[0]
    if value is None:
        return None
    if isinstance(value, (ConstInt, ConstFloat, ConstBool)):
        value = value.value
    convert = ATTR_KINDS.get(kind)
    if convert is not None:
        return convert(value)
    return check_attr(decl, param, value)


_PLAIN: dict[str, Any] = {"bool": bool, "int": int, "str": str, "float": (int, float), "DataType": DataType}


def check_attr(decl: OpDecl, param: Param, value: Any) -> Any:
    """``value`` of a keyword of a plain type or an enumeration. Raises TypeError for another type."""
    kind = param.kinds[0]
    expected = _PLAIN.get(kind) or enum_names().get(kind)
    if expected is None or isinstance(value, expected):
        return value
    if type(value) is int and isinstance(expected, type) and issubclass(expected, Enum) and kind != "DataType":
        codes = [m for m in expected if m.value == value]
        if codes and kind != "PadValue":
            return codes[0]
    raise TypeError(
        f"{decl.name}: keyword {param.name!r} has incompatible type {type(value).__name__}: it must be {kind}, "
        f"got {value!r}"
    )
