"""Element types as PTO text writes them, and the numpy types that hold them."""

from __future__ import annotations

from functools import cache

import numpy as np

from pypto.dtypes import DataType

_BY_NAME = {"f64": np.dtype(np.float64)}
PAIRS = {"!pto.f4E2M1x2": DataType.FP4}
"""Element types that are two elements in a byte, the first in its low half. Such bytes are held as uint8."""
_ALIASES = {"si4": "i4", "si8": "i8", "si16": "i16", "si32": "i32", "si64": "i64", "f8E8M0": "!pto.f8E8M0"}
DATA_TYPES = {dtype.mlir: dtype for dtype in DataType if dtype not in (DataType.HF4, DataType.TASK_ID)}
"""Element types by the names PTO text gives them."""


def is_element(name: str) -> bool:
    return data_type(name) is not None or name in _BY_NAME


@cache
def numpy_type(name: str) -> np.dtype:
    """numpy dtype holding one element of type ``name``, such as ``bf16``. Raises TypeError when there is none."""
    found = _BY_NAME.get(name)
    if found is not None:
        return found
    dtype = data_type(name)
    if dtype is None:
        raise TypeError(f"'{name}' is not a PTO element type")
    return np.dtype(np.uint8) if name in PAIRS else dtype.numpy


@cache
def item_bytes(name: str) -> int:
    """Bytes of one element in memory; 4-bit elements are stored one packed pair a byte."""
    if name in _BY_NAME:
        return _BY_NAME[name].itemsize
    dtype = data_type(name)
    if dtype is None:
        raise TypeError(f"'{name}' is not a PTO element type")
    return dtype.get_byte()


def data_type(name: str) -> DataType | None:
    """The `DataType` PTO text calls ``name``, or None."""
    return DATA_TYPES.get(_ALIASES.get(name, name))
