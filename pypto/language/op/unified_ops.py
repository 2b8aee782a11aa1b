"""The operators reachable as ``pl.<name>``."""

from __future__ import annotations

from typing import Any

from ...ops import functions as _functions


def __getattr__(name: str) -> Any:
    found = _functions.exported.get(name)
    if found is None:
        raise AttributeError(f"there is no operator pl.{name}")
    return found


def __dir__() -> list[str]:
    return sorted(_functions.exported)
