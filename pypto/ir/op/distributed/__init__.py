"""Import-compatibility names: the namespaces of `pypto.ops.distributed` as builders of the IR's calls."""

from __future__ import annotations

from ....ops.distributed import system as system_ops
from . import tensor_ops, tile_ops

__all__ = ["system_ops", "tensor_ops", "tile_ops"]
