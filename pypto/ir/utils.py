"""The span helper that tools building IR use."""

from __future__ import annotations

from .span import Span


def _get_span_or_capture(span: Span | None = None, frame_offset: int = 0) -> Span:
    """``span``, or the line that called the caller's frame ``frame_offset``."""
    return span if span is not None else Span.here(frame_offset + 1)


__all__ = ["_get_span_or_capture"]
