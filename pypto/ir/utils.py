"""The span helper that tools building IR use."""

from __future__ import annotations

import os
import sys
from types import FrameType

from .span import Span

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def _get_span_or_capture(span: Span | None = None, frame_offset: int = 0) -> Span:
    """``span``, or the line that called the caller's frame ``frame_offset``."""
    return span if span is not None else Span.here(frame_offset + 1)


def caller_warning_stacklevel() -> int:
    """The ``stacklevel`` with which ``warnings.warn``, called where this is called, names the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


__all__ = ["_get_span_or_capture", "caller_warning_stacklevel"]
