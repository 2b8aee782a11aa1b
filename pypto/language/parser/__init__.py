"""The parser of the kernel language."""

from __future__ import annotations

from ...errors import ParserError

__all__ = ["ParserError"]
