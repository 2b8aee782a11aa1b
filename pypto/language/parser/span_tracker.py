"""Positions of syntax-tree nodes as spans."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ...ir.span import UNKNOWN_SPAN, Span

SourceMap = Mapping[int, tuple[str, int, int]]
"""Line of generated code -> (file, line, 0-based column) it was generated from."""


def char_column(line: str, byte_offset: int) -> int:
    """1-based character column of a 0-based UTF-8 byte offset."""
    if line.isascii():
        return byte_offset + 1
    return len(line.encode()[:byte_offset].decode(errors="ignore")) + 1


class SpanTracker:
    """Makes spans for the nodes of one source file.

    Node line 1 is file line ``line_offset + 1``; ``col_offset`` characters of indentation were removed before
    parsing. ``source_map`` leads generated lines back to the user's file. ``ascii`` promises that bytes are characters.
    """

    __slots__ = ("source_file", "source_lines", "line_offset", "col_offset", "source_map", "ascii")

    def __init__(
        self,
        source_file: str,
        source_lines: Sequence[str],
        line_offset: int = 0,
        col_offset: int = 0,
        source_map: SourceMap | None = None,
        ascii: bool = False,
    ) -> None:
        self.source_file = source_file
        self.source_lines = source_lines
        self.line_offset = line_offset
        self.col_offset = col_offset
        self.source_map = source_map or {}
        self.ascii = ascii

    def get_span(self, node: ast.AST | None) -> Span:
        """The span of ``node``; unknown when it has no position."""
        return UNKNOWN_SPAN if node is None else self.get_multiline_span(node, node)

    def get_multiline_span(self, first: ast.AST, last: ast.AST) -> Span:
        """From the start of ``first`` to the end of ``last``."""
        line = getattr(first, "lineno", None)
        if line is None:
            return UNKNOWN_SPAN
        end_line = getattr(last, "end_lineno", None) or line
        end_offset = getattr(last, "end_col_offset", None)
        start: int = getattr(first, "col_offset", 0)
        if self.ascii:
            column = start + self.col_offset + 1
            end_column = -1 if end_offset is None else end_offset + self.col_offset + 1
        else:
            column = self._column(line, start)
            end_column = -1 if end_offset is None else self._column(end_line, end_offset)
        mapped = self.source_map.get(line + self.line_offset)
        if mapped is not None:
            return Span(mapped[0], mapped[1], mapped[2] + 1)
        offset = self.line_offset
        return Span(self.source_file, line + offset, column, end_line + offset, end_column)

    def _column(self, line: int, byte_offset: int) -> int:
        lines = self.source_lines
        if 0 < line <= len(lines):
            return char_column(lines[line - 1], byte_offset) + self.col_offset
        return byte_offset + 1 + self.col_offset
