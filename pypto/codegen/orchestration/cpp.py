"""C++ text from templates: expressions as they are built, the whole unit at the end."""

from __future__ import annotations

import math
import re
from ctypes import c_float
from dataclasses import dataclass, field
from typing import Any

from ...dtypes import DataType
from ...errors import user_error
from ...ir.span import Span
from ..context import Op
from ..cpp_names import SCALAR_TYPES
from ..render import macro, render_template

_SCALARS = SCALAR_TYPES | {DataType.TASK_ID: "PTO2TaskId"}
_ELEMENTS = {
    DataType.BOOL: "BOOL", DataType.INT4: "INT4", DataType.INT8: "INT8", DataType.INT16: "INT16",
    DataType.INT32: "INT32", DataType.INT64: "INT64", DataType.INDEX: "INT64", DataType.UINT8: "UINT8",
    DataType.UINT16: "UINT16", DataType.UINT32: "UINT32", DataType.UINT64: "UINT64", DataType.FP16: "FLOAT16",
    DataType.FP32: "FLOAT32", DataType.BF16: "BFLOAT16", DataType.FP4: "FP4E2M1", DataType.FP8E4M3FN: "FP8E4M3FN",
    DataType.FP8E5M2: "FP8E5M2", DataType.FP8E8M0: "FP8E8M0", DataType.HF8: "HF8",
}  # fmt: skip
_LONG = 1e9
"""From here on a float is written with an exponent."""


@dataclass
class Unit:
    """One translation unit, before it is text."""

    argument_count: int = 0
    tensors: list[Op] = field(default_factory=list)
    scalars: list[Op] = field(default_factory=list)
    extents: list[Op] = field(default_factory=list)
    body: list[Op] = field(default_factory=list)
    uses: set[str] = field(default_factory=set)
    """Headers and helper functions the body needs."""

    @property
    def headers(self) -> list[str]:
        return sorted(self.uses & {"algorithm", "vector"})


def cpp(construct: str, *parts: Any) -> str:
    """The C++ expression ``construct``, a macro of ``expressions.cpp.j2``, of ``parts``."""
    return macro("orchestration/expressions.cpp.j2", construct, *parts)


def render(unit: Unit) -> str:
    """The whole ``.cpp`` file."""
    return render_template("orchestration/orchestration.cpp.j2", unit=unit)


def scalar_type(dtype: DataType, span: Span) -> str:
    """The C++ type of a scalar. Raises the user's error for one the host has no type for."""
    found = _SCALARS.get(dtype)
    if found is None:
        raise user_error(
            ValueError,
            f"an orchestration has no scalars of {dtype}",
            span,
            hint="compute it inside `with pl.at(level=pl.Level.CORE_GROUP):`, or use pl.FP32",
        )
    return found


def element_type(dtype: DataType) -> str:
    """What the runtime calls a tensor's element type."""
    return cpp("element_type", _ELEMENTS[dtype])


def float_text(value: float) -> str:
    """A C++ float literal that reads back as ``value`` in single precision."""
    if not math.isfinite(value):
        return cpp("not_a_number") if math.isnan(value) else cpp("infinity", value < 0)
    digits = f"{value:.6f}"
    if abs(value) >= _LONG or c_float(float(digits)).value != c_float(value).value:
        digits = re.sub(r"^(-?\d+)(e|$)", r"\1.0\2", repr(value))
    return cpp("float_literal", digits)
