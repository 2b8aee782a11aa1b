"""C++ identifiers: the user's own names, made unique."""

from __future__ import annotations

import re
from typing import Final

from ...ir.naming import identifier
from ..cpp_names import KEYWORDS

_VERSIONS = re.compile(r"(?:__[a-z]+_v\d+)+$")
_RESERVED: Final = KEYWORDS | {
    "orch_args", "alloc_tensors", "floor_div", "floor_mod", "power", "to_u64", "from_u64", "std",
}  # fmt: skip


def written(hint: str) -> str:
    """``hint`` as an identifier without the versions that conversion to SSA appends."""
    full = identifier(hint)
    return _VERSIONS.sub("", full) or full


class Identifiers:
    """Hands out each identifier once."""

    def __init__(self) -> None:
        self._used: set[str] = set(_RESERVED)

    def take(self, hint: str, *, versioned: bool = False) -> str:
        """``hint`` without its versions, with them when that is taken, or numbered; ``versioned`` keeps them."""
        full, base = identifier(hint), written(hint)
        for name in (full,) if versioned else (base, full):
            if self._free(name):
                self._used.add(name)
                return name
        stem, number = full if versioned else base, 1
        while not self._free(f"{stem}_{number}"):
            number += 1
        self._used.add(f"{stem}_{number}")
        return f"{stem}_{number}"

    def _free(self, name: str) -> bool:
        return name not in self._used and not name[0].isdigit()
