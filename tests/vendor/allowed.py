"""Differences that are known and reasoned. A pattern is searched in ``<test> <kind or outcome>``."""

from __future__ import annotations

import re

REFUSALS: dict[str, str] = {
    r"user-specified layout=nz but inferred": "PTOAS before 0.61 infers layouts and takes no NZ views",
}
"""Kinds of texts the assembler may refuse, and why."""

OUTCOMES: dict[str, str] = {
    r"tile\.scatter-.* differs": "the library of both devices clears the destination first, its CPU build does not",
    r"tile\.scatter_mask-\d-U?INT8.* src element type must be 16 or 32-bit": "8 bits: a check of the CPU build alone",
    r"tile\.fillpad_expand-(min|max)-(FP16|BF16).* differs": "the standard library has no limits of 16-bit floats: 0",
    r"tile\.gather_compare.* no matching function for call to 'TGATHER'": "the CPU build has no gather by comparison",
    r"tile\.col_(sum|max)\S*-(INT(16|32)-a2a3|U?INT\d+-a5).* static assertion failed.*std::is_same_v": (
        "reductions of columns of integers: the devices have them, the CPU build does not"
    ),
    r"tile\.gemv(_acc|_bias)?-.*Inconsistent number of m, k, n": (
        "one row by 16 rows of accumulator is what the library's device tests take; its CPU build wants equal rows"
    ),
    r"tile\.store_fp-.* differs": "the CPU build takes the words of an accumulator by row, devices by column",
    r"tile\.(move|extract|assemble)_fp-U?INT8.* differs": (
        "the CPU build reads offsets as unsigned and does not saturate to nine bits before it adds them"
    ),
}
"""Kinds of differences between library and simulator, and why."""


def reason(table: dict[str, str], what: str) -> str:
    """Why ``what`` is allowed; empty when it is not."""
    return next((why for pattern, why in table.items() if re.search(pattern, what)), "")
