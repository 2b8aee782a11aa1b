"""Names of SSA values: the user's own, made unique."""

from __future__ import annotations

import re

from ..ir.naming import written_name

_BAD = re.compile(r"\W")


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
        hint = _BAD.sub("_", written_name(hint)) or "v"
        if hint[0].isdigit():
            hint = f"v{hint}"
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
