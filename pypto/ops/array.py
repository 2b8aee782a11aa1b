"""Arrays of scalars on a core's stack."""

from __future__ import annotations

from ..dtypes import DataType
from ..ir.types import ArrayType, ScalarType, Type
from .registry import Bound, Pto, declare
from .rules import dim_text, value


def _create(b: Bound) -> Type:
    extent = value(b["extent"])
    if extent is None:
        raise b.fail(f"extent must be a compile-time ConstInt, got {dim_text(b['extent'])}")
    if extent <= 0:
        raise b.fail(f"extent must be positive, got {extent}")
    dtype: DataType = b["dtype"]
    if not (dtype.is_int() or dtype in (DataType.BOOL, DataType.TASK_ID)):
        raise b.fail(f"element dtype must be an integer, BOOL or TASK_ID, got {dtype}")
    return ArrayType(dtype, extent)


declare(
    "array.create",
    "in extent: index, attr dtype: DataType!",
    _create,
    "An array of ``extent`` zeros (a compile-time constant) on the core's stack.",
    inplace_safe=False,
    pto=Pto("pto.declare_local_array", form="array_create"),
)


def _check_index(b: Bound) -> ArrayType:
    t: ArrayType = b.type("array")
    known, extent = value(b["index"]), value(t.extent) or 0
    if known is not None and not 0 <= known < extent:
        raise b.fail(f"index {known} is outside an array of {extent}")
    return t


def _get(b: Bound) -> Type:
    return ScalarType(_check_index(b).dtype)


declare(
    "array.get_element",
    "in array: array, in index: index",
    _get,
    "The array's element ``index``.",
    pto=Pto("pto.local_array_get", form="array_get"),
)


def _update(b: Bound) -> Type:
    t = _check_index(b)
    dtype = b.type("value").dtype
    if dtype is not t.dtype and not (dtype is DataType.INDEX and t.dtype.is_int()):
        raise b.fail(f"value dtype {dtype} must match array dtype {t.dtype}", f"pl.cast(value, pl.{t.dtype.name})")
    return t


declare(
    "array.update_element",
    "inout array: array, in index: index, in value: element like array",
    _update,
    "The array with element ``index`` set to ``value``.",
    reuses="array",
    pure=True,
    pto=Pto("pto.local_array_set", out="array", form="array_set"),
)
