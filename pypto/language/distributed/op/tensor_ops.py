"""``pld.tensor`` under its public import path, with the checks of a transfer's chunks."""

from __future__ import annotations

from typing import Any

from ....ops.dist_transfer import check_chunk as _validate_chunk, check_pipeline as _validate_pipeline
from ....ops.distributed import tensor

__all__ = ["_validate_chunk", "_validate_pipeline"]


def __getattr__(name: str) -> Any:
    return getattr(tensor, name)


def __dir__() -> list[str]:
    return tensor.__all__
