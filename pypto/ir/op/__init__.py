"""Import-compatibility names: ``ir.op.tile``, ``ir.op.tensor`` ... are the operator namespaces of `pypto.ops`."""

from __future__ import annotations

import sys

from ...ops.functions import array, prefetch, system, tensor, tile

array_ops, prefetch_ops, system_ops, tensor_ops, tile_ops = array, prefetch, system, tensor, tile

for _name in ("array", "prefetch", "system", "tensor", "tile"):
    sys.modules[f"{__name__}.{_name}_ops"] = globals()[_name]

__all__ = [
    "array", "array_ops", "prefetch", "prefetch_ops", "system", "system_ops", "tensor", "tensor_ops", "tile",
    "tile_ops",
]  # fmt: skip
