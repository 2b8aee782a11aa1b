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


class _NoShortName(AttributeError):
    """There is no such short name; ``hint`` is the whole one, if any."""

    hint: str | None = None


def __getattr__(name: str) -> Any:
    found = SHORT.get(name)
    if found is None:
        error = _NoShortName(f"pld has no '{name}'")
        level = next((n for n in ("tensor", "tile", "system") if name in globals()[n].__all__), None)
        if level is not None and not name.startswith("_"):
            error.hint = f"write its level too: pld.{level}.{name}"
        raise error
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *SHORT})
