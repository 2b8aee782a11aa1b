"""Tensor operators that compute each element from the elements at its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DataType
from ..ir.expr import Expr, index_const
from ..ir.scalar import promote
from ..ir.types import DistributedTensorType, TensorType, Type
from .registry import Bound, declare
from .rules import (
    FLOATS,
    INT_OR_FLOAT,
    all_same,
    check_dtype,
    check_same_dtype,
    dims_text,
    dtype_names,
    same,
    shaped,
    tensor_type,
    valid_of,
    value,
)
from .tile_elementwise import CMP_MODES, check_cmp_type, check_precision

D = DataType
_SUBS = (D.INT8, D.INT16, D.INT32, D.FP16, D.FP32, D.BF16)


# Shared rules.


def broadcast(b: Bound, left: Sequence[Expr], right: Sequence[Expr]) -> list[Expr]:
    """The shape two shapes broadcast to, aligned at the right. Raises OpError when they do not."""
    rank = max(len(left), len(right))
    one = index_const(1)
    result = []
    for x, y in zip([one] * (rank - len(left)) + list(left), [one] * (rank - len(right)) + list(right)):
        if value(x) == 1 and value(y) != 1:
            result.append(y)
        elif value(y) == 1 or same(x, y):
            result.append(x)
        else:
            raise b.fail(
                f"cannot broadcast {dims_text(left)} with {dims_text(right)}",
                "dimensions must be equal or 1, aligned at the right",
            )
    return result


def kept_region(b: Bound, *names: str) -> Sequence[Expr]:
    """The valid region that operands of one shape provably share; the whole shape otherwise."""
    types = [b.type(n) for n in names]
    regions = [valid_of(b, n) for n in names]
    first = types[0]
    if any(isinstance(t, DistributedTensorType) for t in types):
        return ()
    if not all(all_same(first.shape, t.shape) for t in types[1:]):
        return ()
    return regions[0] if all(all_same(regions[0], r) for r in regions[1:]) else ()


def _binary(b: Bound) -> Type:
    left, right = b.type("lhs"), b.type("rhs")
    shape = broadcast(b, left.shape, right.shape)
    return tensor_type(shape, promote(left.dtype, right.dtype), kept_region(b, "lhs", "rhs"))


def _scalar(b: Bound) -> Type:
    """A floating-point scalar makes a fraction of integers, and a wider float of a narrower one."""
    t, scalar = b.type("lhs").dtype, b.type("rhs").dtype
    return _fresh(b, "lhs", promote(t, scalar) if scalar.is_float() else None)


def _fresh(b: Bound, name: str, dtype: DataType | None = None) -> TensorType:
    t = b.type(name)
    return tensor_type(t.shape, dtype or t.dtype, kept_region(b, name))


def _div(b: Bound) -> Type:
    check_dtype(b, "lhs", INT_OR_FLOAT)
    check_dtype(b, "rhs", INT_OR_FLOAT)
    check_precision(b, promote(b.type("lhs").dtype, b.type("rhs").dtype))
    return _binary(b)


def _subs(b: Bound) -> Type:
    check_dtype(b, "lhs", _SUBS)
    scalar = b.type("rhs").dtype
    if scalar not in _SUBS:
        raise b.fail(f"requires scalar dtype in {{{dtype_names(_SUBS)}}}, got {scalar}")
    return _fresh(b, "lhs")


_TENSORS = "in lhs: tensor, in rhs: tensor"
_TENSOR_SCALAR = "in lhs: tensor, in rhs: scalar like wide lhs"
for _name, _what, _rule in (
    ("add", "lhs + rhs", _scalar),
    ("sub", "lhs - rhs", _subs),
    ("mul", "lhs * rhs", _scalar),
    ("div", "lhs / rhs", _scalar),
    ("fmod", "the remainder of lhs / rhs with the sign of lhs", _scalar),
):
    declare(
        f"tensor.{_name}",
        _TENSORS + (", attr high_precision: bool = False" if _name == "div" else ""),
        _div if _name == "div" else _binary,
        f"Element by element, {_what}, broadcasting dimensions of size 1; a scalar ``rhs`` is `{_name}s`.",
        scalar_form=f"tensor.{_name}s",
        tile_form=f"tile.{_name}",
    )
    declare(
        f"tensor.{_name}s",
        _TENSOR_SCALAR,
        _rule,
        f"Element by element, {_what}, of a tensor and a scalar: FP32 with a floating-point literal.",
        tile_form=f"tile.{_name}s",
    )


def _extreme(b: Bound) -> Type:
    return _binary(b) if isinstance(b.type("rhs"), TensorType) else _fresh(b, "lhs")


for _name, _what in (("maximum", "greater"), ("minimum", "smaller")):
    declare(
        f"tensor.{_name}",
        "in lhs: tensor, in rhs: tensor|scalar like lhs",
        _extreme,
        f"The {_what} of lhs and rhs, element by element; ``rhs`` may be a scalar.",
        tile_form=f"tile.{_name}",
    )


def _part(b: Bound) -> Type:
    check_same_dtype(b, "lhs", "rhs")
    left, right = b.type("lhs"), b.type("rhs")
    if not all_same(left.shape, right.shape):
        raise b.fail(f"requires both operands to have the same shape, got {shaped(left)} and {shaped(right)}")
    return tensor_type(left.shape, left.dtype)


for _name, _what in (("add", "sum"), ("mul", "product"), ("max", "maximum"), ("min", "minimum")):
    declare(
        f"tensor.part_{_name}",
        _TENSORS,
        _part,
        f"The {_what} where both tensors hold data, the one that does elsewhere.",
        tile_form=f"tile.part_{_name}",
    )


def _cmp(b: Bound) -> Type:
    check_cmp_type(b)
    left, right = b.type("lhs"), b.type("rhs")
    shape = broadcast(b, left.shape, right.shape) if isinstance(right, TensorType) else left.shape
    return tensor_type(shape, left.dtype)


declare(
    "tensor.cmp",
    "in lhs: tensor, in rhs: tensor|scalar like lhs, attr cmp_type: int! = 0",
    _cmp,
    "1 where the comparison holds, 0 elsewhere, in the operands' dtype. ``cmp_type``: 0 to 5 are "
    f"{', '.join(CMP_MODES)}.",
)

# One operand.


def _same_dtype(b: Bound) -> Type:
    return _fresh(b, "input")


def _promoted(b: Bound) -> Type:
    """Functions whose values are fractions give FP32 for integers."""
    dtype = b.type("input").dtype
    return _fresh(b, "input", dtype if dtype.is_float() else D.FP32)


def _log(b: Bound) -> Type:
    dtype = b.type("input").dtype
    if dtype not in FLOATS:
        raise b.fail(f"requires an FP16 or FP32 tensor, got {dtype}", "cast it: pl.cast(x, pl.FP32)")
    return _fresh(b, "input")


def _recip(b: Bound) -> Type:
    check_precision(b, b.type("input").dtype)
    return _promoted(b)


def _fp32_only(b: Bound) -> Type:
    dtype = b.type("input").dtype
    if dtype is not D.FP32:
        raise b.fail(f"requires an FP32 tensor, got {dtype}", "cast it: pl.cast(x, pl.FP32)")
    return _fresh(b, "input")


def _not(b: Bound) -> Type:
    dtype = b.type("input").dtype
    if dtype not in (D.INT16, D.UINT16):
        raise b.fail(f"requires an int16 or uint16 tensor, got {dtype}")
    return _fresh(b, "input")


_INPUT = "in input: tensor"
_PRECISE = "in input: tensor, attr high_precision: bool = False"
for _name, _signature, _what, _rule in (
    ("neg", _INPUT, "The negative of each element.", _same_dtype),
    ("abs", _INPUT, "The absolute value of each element.", _same_dtype),
    ("exp", _INPUT, "e to the power of each element; FP32 for integers.", _promoted),
    ("sqrt", _INPUT, "The square root of each element; FP32 for integers.", _promoted),
    ("not", _INPUT, "The bitwise complement of each element (int16, uint16).", _not),
    ("log", _PRECISE, "The natural logarithm of each element (FP16, FP32).", _log),
    ("recip", _PRECISE, "1 / each element; FP32 for integers. ``high_precision`` takes FP16 and FP32.", _recip),
    ("sin", _INPUT, "The sine of each element in radians (FP32).", _fp32_only),
    ("cos", _INPUT, "The cosine of each element in radians (FP32).", _fp32_only),
):
    declare(f"tensor.{_name}", _signature, _rule, _what, tile_form=f"tile.{_name}")

declare(
    "tensor.rsqrt",
    _PRECISE,
    _promoted,
    "1 / the square root of each element; FP32 for integers. ``high_precision`` is slower and closer.",
    tile_form="tile.rsqrt",
)


def _cast(b: Bound) -> Type:
    source, target = b.type("input"), b["target_type"]
    if source.dtype is target:
        raise b.fail(
            f"from {source.dtype} to {target} converts nothing: a same-dtype cast is not a valid operation",
            "use the tensor as it is",
        )
    return _fresh(b, "input", target)


declare(
    "tensor.cast",
    "in input: tensor, attr target_type: DataType!, attr mode: RoundMode! = 'round', attr saturate: bool = False",
    _cast,
    "Convert each element to ``target_type``, rounding as ``mode`` says: none, rint (ties to even), round (ties away "
    "from zero), floor, ceil, trunc or odd. Out of range an integer keeps the low bits (floats through INT32; NaN is "
    "0) and a float is infinite; with ``saturate`` each is the nearest there is.",
    tile_form="tile.cast",
)

# Bits.


def _check_integer(b: Bound, *names: str) -> None:
    for name in names:
        if not b.type(name).dtype.is_int():
            raise b.fail(f"requires an integer tensor dtype, got {shaped(b.type(name))} for {name!r}")


def _bits(b: Bound) -> Type:
    _check_integer(b, "lhs", "rhs")
    left, right = b.type("lhs"), b.type("rhs")
    if not all_same(left.shape, right.shape):
        raise b.fail(f"requires both operands to have the same shape, got {shaped(left)} and {shaped(right)}")
    name = b.decl.name
    dtype = left.dtype if name in ("tensor.shl", "tensor.shr") else promote(left.dtype, right.dtype)
    return tensor_type(left.shape, dtype, () if name == "tensor.xor" else kept_region(b, "lhs", "rhs"))


def _bits_scalar(b: Bound) -> Type:
    _check_integer(b, "lhs")
    scalar: Any = b["rhs"]
    if not scalar.type.dtype.is_int():
        raise b.fail(f"requires the shift/bitwise scalar to be an integer, got {scalar.type.dtype}")
    count = getattr(scalar, "value", None)
    if b.decl.name in ("tensor.shls", "tensor.shrs") and count is not None and count < 0:
        raise b.fail(f"requires a non-negative shift count, got {count}")
    t = b.type("lhs")
    return tensor_type(t.shape, t.dtype, () if b.decl.name == "tensor.xors" else kept_region(b, "lhs"))


for _name, _what in (
    ("and", "Bitwise and"),
    ("or", "Bitwise or"),
    ("xor", "Bitwise exclusive or"),
    ("shl", "Left shift"),
    ("shr", "Right shift, arithmetic for signed elements,"),
):
    declare(
        f"tensor.{_name}",
        _TENSORS,
        _bits,
        f"{_what} of two integer tensors of one shape; a scalar ``rhs`` is `{_name}s`.",
        scalar_form=f"tensor.{_name}s",
        tile_form=f"tile.{_name}",
    )
    declare(
        f"tensor.{_name}s",
        _TENSOR_SCALAR,
        _bits_scalar,
        f"{_what} of an integer tensor and a scalar.",
        tile_form=f"tile.{_name}s",
    )
