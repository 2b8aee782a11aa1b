"""Keyword kinds with a notation of their own: names, numbers and codes users write, and the value that is stored."""

from __future__ import annotations

import math
from typing import Any

from ..ir.enums import PadValue
from ..ir.expr import ConstFloat, ConstInt
from .registry import attr_kind

ROUND_MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
"""Rounding modes of a conversion, by the code that is stored."""

_PADS = {0: PadValue.zero, math.inf: PadValue.max, -math.inf: PadValue.min}


def _coded(what: str, names: tuple[str, ...], text: str) -> Any:
    """A conversion of one of ``names``, or its position, to its position."""

    def convert(value: Any) -> int:
        if isinstance(value, str) and value in names:
            return names.index(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
            return value
        raise ValueError(f"{text} {value!r}: {what} must be one of {', '.join(map(repr, names))}")

    return convert


attr_kind("RoundMode", ROUND_MODES)(_coded("mode", ROUND_MODES, "Invalid rounding mode"))
attr_kind("Coalesce")(_coded("coalesce", ("row", "elem"), "invalid coalesce"))
attr_kind("GatherOob")(_coded("gather_oob", ("undefined", "clamp", "wrap", "zero"), "invalid gather_oob"))


@attr_kind("PadValue")
def pad_value(value: Any) -> PadValue:
    """A padding mode, or the number it pads with: 0, ``math.inf``, ``-math.inf``.

    Raises ValueError for another number or mode, TypeError for anything else.
    """
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    wanted = "fillpad pad_value must be a pl.PadValue, 0, math.inf or -math.inf"
    if isinstance(value, PadValue):
        return value
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"{wanted}, got {value!r}")
    if value in _PADS:
        return _PADS[value]
    raise ValueError(f"{wanted}, got {value!r}")
