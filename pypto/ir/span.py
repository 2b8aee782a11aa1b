"""Source positions."""

from __future__ import annotations

import sys
from typing import Final


class Span:
    """A range of a source file: 1-based lines and columns, -1 where unknown."""

    __slots__ = ("filename", "begin_line", "begin_column", "end_line", "end_column")
    filename: str
    begin_line: int
    begin_column: int
    end_line: int
    end_column: int

    def __init__(
        self, filename: str, begin_line: int, begin_column: int, end_line: int = -1, end_column: int = -1
    ) -> None:
        put = object.__setattr__
        put(self, "filename", filename)
        put(self, "begin_line", begin_line)
        put(self, "begin_column", begin_column)
        put(self, "end_line", end_line)
        put(self, "end_column", end_column)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Span.{name} is read-only")

    def __reduce__(self) -> tuple[type[Span], tuple[str, int, int, int, int]]:
        return Span, (self.filename, self.begin_line, self.begin_column, self.end_line, self.end_column)

    @staticmethod
    def unknown() -> Span:
        """The span of a node that no source line stands for."""
        return UNKNOWN_SPAN

    @staticmethod
    def here(depth: int = 1) -> Span:
        """The line that called the caller's ``depth``-th frame."""
        frame = sys._getframe(depth + 1)
        return Span(frame.f_code.co_filename, frame.f_lineno, 1, frame.f_lineno, -1)

    def is_valid(self) -> bool:
        """Whether the span names a place in a file."""
        if self.begin_line <= 0 or self.begin_column <= 0:
            return False
        if self.end_line == -1:
            return True
        if self.end_line < self.begin_line:
            return False
        return self.end_line > self.begin_line or self.end_column == -1 or self.end_column >= self.begin_column

    def to_string(self) -> str:
        return f"{self.filename}:{self.begin_line}:{self.begin_column}"

    __str__ = to_string
    __repr__ = to_string


UNKNOWN_SPAN: Final = Span("", -1, -1, -1, -1)
