"""Scalar operations (``arith``) as Python functions.

Integers are Python ints in the signed range of their type (``i1`` is 0 or 1), ``index`` is 64 bits;
floats are numpy scalars of their type, so that every operation rounds as the type does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation

from pypto.pto.elements import numpy_type
from pypto.pto.errors import PtoError
from pypto.pto.scalar_types import scalar_name

Fn = Callable[..., Any]


def width(attr: Attribute) -> int:
    if isinstance(attr, IndexType):
        return 64
    if isinstance(attr, IntegerType):
        return attr.width.data
    raise PtoError(f"expected an integer type, got {attr}")


def wrap(value: int, bits: int) -> int:
    """``value`` in the signed range of ``bits``; one bit is 0 or 1."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise PtoError("integer division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _floor_divide(a: int, b: int) -> int:
    if b == 0:
        raise PtoError("integer division by zero")
    return a // b


def _shift(count: int, bits: int) -> int:
    if not 0 <= count < bits:
        raise PtoError(f"shift by {count} of a {bits}-bit integer")
    return count


_INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "arith.addi": lambda a, b, n: a + b,
    "arith.subi": lambda a, b, n: a - b,
    "arith.muli": lambda a, b, n: a * b,
    "arith.divsi": lambda a, b, n: _divide(a, b),
    "arith.divui": lambda a, b, n: _floor_divide(unsigned(a, n), unsigned(b, n)),
    "arith.floordivsi": lambda a, b, n: _floor_divide(a, b),
    "arith.ceildivsi": lambda a, b, n: -_floor_divide(-a, b),
    "arith.ceildivui": lambda a, b, n: -_floor_divide(-unsigned(a, n), unsigned(b, n)),
    "arith.remsi": lambda a, b, n: a - b * _divide(a, b),
    "arith.remui": lambda a, b, n: unsigned(a, n) - unsigned(b, n) * _floor_divide(unsigned(a, n), unsigned(b, n)),
    "arith.minsi": lambda a, b, n: min(a, b),
    "arith.maxsi": lambda a, b, n: max(a, b),
    "arith.minui": lambda a, b, n: min(unsigned(a, n), unsigned(b, n)),
    "arith.maxui": lambda a, b, n: max(unsigned(a, n), unsigned(b, n)),
    "arith.andi": lambda a, b, n: a & b,
    "arith.ori": lambda a, b, n: a | b,
    "arith.xori": lambda a, b, n: a ^ b,
    "arith.shli": lambda a, b, n: a << _shift(b, n),
    "arith.shrsi": lambda a, b, n: a >> _shift(b, n),
    "arith.shrui": lambda a, b, n: unsigned(a, n) >> _shift(b, n),
}


def _offset(value: int, _zero: int) -> int:
    """The offset of a window that is written; codegen keeps a negative one from doing harm on a device."""
    if value < 0:
        raise PtoError(f"a store at offset {value}, before its tensor; a device stores at offset 0 instead")
    return value


def _maximum(a: Any, b: Any) -> Any:
    return a if a != a or a > b else b


def _minimum(a: Any, b: Any) -> Any:
    return a if a != a or a < b else b


_FLOAT: dict[str, Fn] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.remf": lambda a, b: np.fmod(a, b),
    "arith.negf": lambda a: -a,
    "arith.maximumf": _maximum,
    "arith.minimumf": _minimum,
    "arith.maxnumf": lambda a, b: b if a != a else a if b != b else max(a, b),
    "arith.minnumf": lambda a, b: b if a != a else a if b != b else min(a, b),
}

_COMPARE_INTEGER: tuple[Callable[[int, int, int], bool], ...] = (
    lambda a, b, n: a == b,
    lambda a, b, n: a != b,
    lambda a, b, n: a < b,
    lambda a, b, n: a <= b,
    lambda a, b, n: a > b,
    lambda a, b, n: a >= b,
    lambda a, b, n: unsigned(a, n) < unsigned(b, n),
    lambda a, b, n: unsigned(a, n) <= unsigned(b, n),
    lambda a, b, n: unsigned(a, n) > unsigned(b, n),
    lambda a, b, n: unsigned(a, n) >= unsigned(b, n),
)


def _unordered(a: Any, b: Any) -> bool:
    return a != a or b != b


_COMPARE_FLOAT: tuple[Callable[[Any, Any], bool], ...] = (
    lambda a, b: False,
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: not _unordered(a, b) and a != b,
    lambda a, b: not _unordered(a, b),
    lambda a, b: _unordered(a, b) or a == b,
    lambda a, b: _unordered(a, b) or a > b,
    lambda a, b: _unordered(a, b) or a >= b,
    lambda a, b: _unordered(a, b) or a < b,
    lambda a, b: _unordered(a, b) or a <= b,
    lambda a, b: a != b,
    lambda a, b: _unordered(a, b),
    lambda a, b: True,
)


def _to_integer(value: Any, bits: int, signed: bool) -> int:
    if value != value:
        return 0
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if not np.isfinite(value):
        return wrap(high if value > 0 else low, bits)
    return wrap(min(max(int(value), low), high), bits)


def _casts(op: Operation) -> Fn | None:
    source, result = op.operands[0].type, op.results[0].type
    name = op.name
    if name in ("arith.index_cast", "arith.extsi", "arith.trunci"):
        bits = width(result)
        if name == "arith.extsi" and width(source) == 1:
            return lambda a: -a
        return lambda a: wrap(a, bits)
    if name in ("arith.index_castui", "arith.extui"):
        bits = width(source)
        return lambda a: unsigned(a, bits)
    if name in ("arith.sitofp", "arith.uitofp"):
        make, bits = numpy_type(scalar_name(result)).type, width(source)
        return (lambda a: make(unsigned(a, bits))) if name == "arith.uitofp" else (lambda a: make(a))
    if name in ("arith.fptosi", "arith.fptoui"):
        bits, signed = width(result), name == "arith.fptosi"
        return lambda a: _to_integer(a, bits, signed)
    if name in ("arith.extf", "arith.truncf"):
        make = numpy_type(scalar_name(result)).type
        return lambda a: make(a)
    if name == "arith.bitcast":
        before, after = numpy_type(scalar_name(source)), numpy_type(scalar_name(result))

        def recast(value: Any) -> Any:
            found = np.array(value, before).view(after)[()]
            return int(found) if after.kind in "iu" else found

        return recast
    return None


def constant_value(op: ConstantOp) -> Any:
    """The value an ``arith.constant`` gives, as a run holds it."""
    value = op.value
    if isinstance(value, IntegerAttr):
        return wrap(value.value.data, width(value.type))
    if isinstance(value, FloatAttr):
        return numpy_type(scalar_name(value.type)).type(value.value.data)
    if isinstance(value, DenseIntOrFPElementsAttr):
        return value.get_values()
    raise PtoError(f"constant {value} is not a scalar or vector")


def scalar_function(op: Operation) -> Fn | None:
    """The function a scalar operation computes from its operands; None when it is not a scalar operation."""
    name = op.name
    if "window_offset" in op.attributes:
        return _offset
    found = _INTEGER.get(name)
    if found is not None:
        bits = width(op.results[0].type)
        return lambda a, b: wrap(found(a, b, bits), bits)
    if name in _FLOAT:
        return _FLOAT[name]
    if name == "arith.cmpi":
        compare, bits = _COMPARE_INTEGER[_predicate(op)], width(op.operands[0].type)
        return lambda a, b: int(compare(a, b, bits))
    if name == "arith.cmpf":
        test = _COMPARE_FLOAT[_predicate(op)]
        return lambda a, b: int(test(a, b))
    if name == "arith.select":
        return lambda condition, a, b: a if condition else b
    return _casts(op) if op.operands and op.results else None


def _predicate(op: Operation) -> int:
    found = op.properties.get("predicate")
    if not isinstance(found, IntegerAttr):
        raise PtoError(f"'{op.name}' has no predicate")
    return found.value.data
