"""Comments of a source text."""

from __future__ import annotations

import io
import tokenize


def extract_line_comments(source: str) -> dict[int, list[tuple[int, str]]]:
    """Comments by 1-based line: 0-based column and text without the first ``#`` and one space.

    Text that does not tokenize gives the comments up to the place where it stops.
    """
    found: dict[int, list[tuple[int, str]]] = {}
    if "#" not in source:
        return found
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                text = token.string[1:]
                found.setdefault(token.start[0], []).append((token.start[1], text.removeprefix(" ").rstrip()))
    except (tokenize.TokenError, IndentationError):
        return found
    return found
