"""The error renderer under its public import path."""

from __future__ import annotations

from ....errors import ErrorRenderer

__all__ = ["ErrorRenderer"]
