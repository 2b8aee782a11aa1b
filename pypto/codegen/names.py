"""Names of SSA values: the user's own, made unique."""

from __future__ import annotations

import re

from ..ir.naming import identifier, written_name

_OWN = re.compile(r"arg\d+|c(m?\d+)_\w+|true|false")
"""Names of arguments and constants, which codegen gives itself."""


class Names:
    """Hands out each name once."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._numbered = 0

    def number(self) -> str:
        """``%0``, ``%1`` ..: a value that stands for nothing the user named."""
        self._numbered += 1
        return f"%{self._numbered - 1}"

    def take(self, hint: str) -> str:
        """``%hint``, or ``%hint_1``, ``%hint_2`` .. when taken."""
        hint = identifier(written_name(hint))
        if _OWN.fullmatch(hint):
            hint = f"v_{hint}"
        count = self._used.get(hint)
        if count is None:
            self._used[hint] = 0
            return f"%{hint}"
        while True:
            count += 1
            self._used[hint] = count
            name = f"{hint}_{count}"
            if name not in self._used:
                self._used[name] = 0
                return f"%{name}"
