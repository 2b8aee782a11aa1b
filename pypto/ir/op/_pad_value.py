"""The import path of the padding-value conversion that existing tools use."""

from __future__ import annotations

from typing import Any

from ...ops.kinds import pad_value
from ..enums import PadValue


def normalize_pad_value(value: Any) -> PadValue:
    """`pad_value`, which fills: ValueError for ``PadValue.null`` too."""
    made = pad_value(value)
    if made is PadValue.null:
        raise ValueError("fillpad pad_value must say what to fill with, got PadValue.null")
    return made


__all__ = ["normalize_pad_value"]
