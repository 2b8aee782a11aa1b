"""Differences that are known and reasoned. A pattern is searched in ``<test> <kind or outcome>``."""

from __future__ import annotations

import re

REFUSALS: dict[str, str] = {
    r"user-specified layout=nz but inferred": "PTOAS before 0.61 infers layouts and takes no NZ views",
}
"""Kinds of texts the assembler may refuse, and why."""

OUTCOMES: dict[str, str] = {}
"""Kinds of differences between library and simulator, and why."""


def reason(table: dict[str, str], what: str) -> str:
    """Why ``what`` is allowed; empty when it is not."""
    return next((why for pattern, why in table.items() if re.search(pattern, what)), "")
