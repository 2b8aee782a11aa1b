"""Programs of several ranks: ``import pypto.language.distributed as pld``.

`tensor`, `tile` and `system` hold the operators by level; those most programs use are here under a short name too.
"""

from __future__ import annotations

from typing import Any

from ...ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from ...ir.types import CommCtxType, WindowBufferType
from ...ops.distributed import SHORT, system, tensor, tile
from ..annotations import CommCtx, DistributedTensor, WindowBuffer

__all__ = [
    "AtomicType", "CommCtx", "CommCtxType", "DistributedTensor", "NotifyOp", "ReduceOp", "WaitCmp", "WindowBuffer",
    "WindowBufferType", "system", "tensor", "tile",
]  # fmt: skip
__all__.extend(SHORT)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    found = SHORT.get(name)
    if found is None:
        level = next(
            (n for n, ops in (("tensor", tensor), ("tile", tile), ("system", system)) if hasattr(ops, name)), None
        )
        hint = f": it is pld.{level}.{name}" if level is not None else ""
        raise AttributeError(f"pld has no '{name}'{hint}")
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *SHORT})
