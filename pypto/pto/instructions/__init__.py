"""Every PTO instruction, one file for each family. Importing this package fills `INSTRUCTIONS`."""

from __future__ import annotations

from ..spec import INSTRUCTIONS
from . import elementwise, move

__all__ = ["INSTRUCTIONS", "elementwise", "move"]
