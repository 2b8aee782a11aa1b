"""The operators by level, under their public import path."""

from __future__ import annotations

from typing import Any

from ...ops import functions as _functions
from ...ops.functions import array as array_ops, system as system_ops, tensor as tensor_ops, tile as tile_ops
from . import unified_ops

__all__: list[str] = ["array_ops", "system_ops", "tensor_ops", "tile_ops", "unified_ops"]
__all__.extend(_functions.exported)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    return getattr(unified_ops, name)
