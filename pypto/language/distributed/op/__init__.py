"""The distributed operators by level, under their public import path."""

from __future__ import annotations

from ....ops.distributed import system as system_ops, tile as tile_ops
from . import tensor_ops, unified_ops

__all__ = ["system_ops", "tensor_ops", "tile_ops", "unified_ops"]
