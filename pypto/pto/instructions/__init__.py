"""Every PTO instruction, one file for each family. Importing this package fills `INSTRUCTIONS`."""

from __future__ import annotations

from ..spec import INSTRUCTIONS
from . import convert, cube, elementwise, expand, gather, move, permute, reduce, select

__all__ = ["INSTRUCTIONS", "convert", "cube", "elementwise", "expand", "gather", "move", "permute", "reduce", "select"]
