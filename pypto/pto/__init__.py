"""The PTO instruction set: dialect, verifier, and the table of instructions with their meaning."""

from __future__ import annotations

from .errors import PtoError
from .instructions import INSTRUCTIONS
from .parser import parse_module
from .verify import verify_module

__all__ = ["INSTRUCTIONS", "PtoError", "parse_module", "verify_module"]
