"""Names of variables: as users write them, and the versions that conversion to SSA gives them."""

from __future__ import annotations

import re
from collections.abc import Container

_VERSION = re.compile(r"(?:__(?:[a-z]+_v\d+|tile|mat|t|out|store|whole)(?:_(?:mat|Vec|Mat|Left|Right|Bias))*)+$")
"""Versions, and what passes append to the name of a value's tile, its copies and where it goes."""


def versioned(base: str, role: str, number: int) -> str:
    """The name of version ``number`` of ``base``, made for ``role`` (ssa, iter, rv, phi ...)."""
    return f"{base}__{role}_v{number}"


def written_name(hint: str) -> str:
    """A variable's name without the versions passes added."""
    return _VERSION.sub("", hint)


def identifier(name: str) -> str:
    """``name`` as MLIR, C++ and file systems take it: ASCII, another letter as ``_u`` and its code."""
    made = "".join(c if c.isascii() and (c.isalnum() or c == "_") else _escaped(c) for c in name) or "v"
    return f"v{made}" if made[0].isdigit() else made


def _escaped(char: str) -> str:
    return f"_u{ord(char):04x}_" if char.isalnum() else "_"


def free_name(name: str, taken: Container[str]) -> str:
    """``name``, or ``name_1``, ``name_2`` .. when that is taken."""
    made, count = name, 0
    while made in taken:
        count += 1
        made = f"{name}_{count}"
    return made
