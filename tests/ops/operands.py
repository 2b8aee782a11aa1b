"""Operands of calls, what is known of a result, and refused calls, for the tests of this folder."""

import pytest

from pypto.dtypes import DataType
from pypto.ir.expr import Var
from pypto.ir.types import ScalarType, TensorType, TensorView, TileType, TileView


def tensor(*shape, dtype=DataType.FP32, valid=(), name="x", **view):
    made = TensorView(valid_shape=valid, **view) if valid or view else None
    return Var(name, TensorType(shape, dtype, None, made))


def tile(*shape, dtype=DataType.FP32, valid=(), space=None, name="t", **view):
    made = TileView(valid_shape=valid, **view) if valid or view else None
    return Var(name, TileType(shape, dtype, None, made, space))


def scalar(dtype=DataType.FP32, name="s"):
    return Var(name, ScalarType(dtype))


def index(name="i"):
    return scalar(DataType.INDEX, name)


def values(dims):
    return [getattr(d, "value", d) for d in dims]


def shape(call):
    return values(call.type.shape)


def valid(call):
    return values(call.type.valid_shape)


def refused(message, function, *args, error=ValueError, **kwargs):
    """The text of the error of a call."""
    with pytest.raises(error, match=message) as info:
        function(*args, **kwargs)
    return str(info.value)
