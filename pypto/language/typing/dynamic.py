"""Dynamic dimensions under their public import path."""

from __future__ import annotations

from ..dynamic import DynVar, dynamic

__all__ = ["DynVar", "dynamic"]
