"""``pld.tensor`` as builders; `put` takes its store mode by position too."""

from __future__ import annotations

from typing import Any

from ....ops.distributed import tensor
from ...enums import AtomicType
from ...span import Span


def put(*args: Any, span: Span | None = None, **kwargs: Any) -> Any:
    """``pld.tensor.put`` with ``atomic`` last among the positional arguments, or a keyword."""
    if args and isinstance(args[-1], AtomicType):
        args, kwargs["atomic"] = args[:-1], args[-1]
    return tensor.put(*args, span=span or Span.here(), **kwargs)


def __getattr__(name: str) -> Any:
    return getattr(tensor, name)
