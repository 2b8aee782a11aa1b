"""The operators reachable as ``pld.<name>``."""

from __future__ import annotations

from typing import Any

from ....ops.distributed import SHORT


def __getattr__(name: str) -> Any:
    found = SHORT.get(name)
    if found is None:
        raise AttributeError(f"there is no operator pld.{name}")
    return found


def __dir__() -> list[str]:
    return sorted(SHORT)
