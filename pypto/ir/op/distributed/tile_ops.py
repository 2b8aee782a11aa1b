"""``pld.tile`` as builders; `put` takes its store mode by position too."""

from __future__ import annotations

from typing import Any

from ....ops.distributed import tile
from ...enums import AtomicType
from ...span import Span


def put(*args: Any, span: Span | None = None, **kwargs: Any) -> Any:
    """``pld.tile.put`` with ``atomic`` last among the positional arguments, or a keyword."""
    if args and isinstance(args[-1], AtomicType):
        args, kwargs["atomic"] = args[:-1], args[-1]
    return tile.put(*args, span=span or Span.here(), **kwargs)


def __getattr__(name: str) -> Any:
    return getattr(tile, name)
