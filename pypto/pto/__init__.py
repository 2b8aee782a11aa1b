"""The PTO instruction set: dialect, verifier, and the table of instructions with their meaning.

The dialect needs xDSL, the instruction table does not: each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import PtoError

if TYPE_CHECKING:
    from .instructions import INSTRUCTIONS
    from .parser import parse_module
    from .verify import verify_module

_HOMES = {"INSTRUCTIONS": "instructions", "parse_module": "parser", "verify_module": "verify"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return found


__all__ = ["INSTRUCTIONS", "PtoError", "parse_module", "verify_module"]
