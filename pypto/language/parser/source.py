"""From a function object to its syntax tree: one parse per source file."""

from __future__ import annotations

import ast
import linecache
import sys
from collections import deque
from collections.abc import Sequence
from types import FunctionType
from typing import Any, Final

from ...errors import ParserSyntaxError
from ...ir.span import Span
from .span_tracker import SourceMap, SpanTracker


class SourceFile:
    """A parsed file: its lines, and its function and class definitions by first line (decorators included)."""

    __slots__ = ("filename", "lines", "functions", "classes", "source_map", "ascii")
    classes: list[tuple[str, ast.ClassDef]]
    """Qualified name and definition of each class, in order."""

    def __init__(self, filename: str, lines: Sequence[str], tree: ast.AST | None = None) -> None:
        self.filename = filename
        self.lines = lines
        self.functions: dict[int, ast.FunctionDef] = {}
        self.classes = []
        self.source_map: SourceMap | None = None
        self.ascii = all(line.isascii() for line in lines)
        for path, node in _definitions(tree or ast.parse("".join(lines), filename)):
            if isinstance(node, ast.ClassDef):
                self.classes.append((path, node))
            else:
                first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
                self.functions[first] = node

    def comments_in(self, first: int, last: int) -> dict[int, list[tuple[int, str]]]:
        """Comments of a range of lines, as `extract_line_comments` gives them."""
        block = self.lines[first - 1 : last]
        if not any("#" in line for line in block):
            return {}
        text = "".join(block)
        if '"' not in text and "'" not in text:
            found = {}
            for number, line in enumerate(block, first):
                column = line.find("#")
                if column >= 0:
                    found[number] = [(column, line[column + 1 :].removeprefix(" ").rstrip())]
            return found
        from .comment_extractor import extract_line_comments

        return {line + first - 1: notes for line, notes in extract_line_comments(text).items()}

    def spans(self) -> SpanTracker:
        """What turns nodes of the file into spans."""
        return SpanTracker(self.filename, self.lines, source_map=self.source_map, ascii=self.ascii)

    def class_around(self, name: str, line: int) -> ast.ClassDef | None:
        """The class ``name`` whose text holds ``line``, innermost first."""
        found = [c for _, c in self.classes if c.name == name and _first_line(c) <= line <= (c.end_lineno or 0)]
        return max(found, key=_first_line, default=None)

    def class_line(self, qualname: str) -> int | None:
        """The first line of the first class of that qualified name."""
        return min((_first_line(c) for path, c in self.classes if path == qualname), default=None)


def _first_line(node: ast.ClassDef) -> int:
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno


_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def _definitions(tree: ast.AST) -> list[tuple[str, Any]]:
    """Function and class definitions at any depth, with qualified names; expressions are not entered."""
    found: list[tuple[str, Any]] = []
    stack: list[tuple[str, Any]] = [("", tree)]
    while stack:
        prefix, node = stack.pop()
        for block in _BLOCKS:
            for child in getattr(node, block, ()):
                inner = prefix
                if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                    found.append((prefix + child.name, child))
                    inner = f"{prefix}{child.name}." + ("" if isinstance(child, ast.ClassDef) else "<locals>.")
                stack.append((inner, child))
    return found


_cache: dict[str, SourceFile] = {}


_generated: deque[str] = deque()
_KEPT_TEXTS: Final = 64
"""How many generated texts stay readable for error messages."""


def register_source(filename: str, text: str, tree: ast.AST | None = None) -> SourceFile:
    """Make generated code known to error messages and to `source_file`, while it is among the latest."""
    if filename not in _cache:
        _generated.append(filename)
        if len(_generated) > _KEPT_TEXTS:
            forget_source(_generated.popleft())
    lines = text.splitlines(keepends=True)
    linecache.cache[filename] = (len(text), None, lines, filename)
    source = _cache[filename] = SourceFile(filename, lines, tree)
    return source


def forget_source(filename: str) -> None:
    _cache.pop(filename, None)
    linecache.cache.pop(filename, None)


def source_file(filename: str, module_globals: dict[str, Any] | None = None) -> SourceFile | None:
    """The parsed file, from the cache while its text is unchanged; None when there is no text."""
    if filename not in _cache:
        linecache.checkcache(filename)
    lines = linecache.getlines(filename, module_globals)
    if not lines and filename == "<string>":
        lines = _command_line_source()
    if not lines:
        return None
    cached = _cache.get(filename)
    if cached is None or (cached.lines is not lines and cached.lines != lines):
        cached = _cache[filename] = SourceFile(filename, lines)
    return cached


def _command_line_source() -> list[str]:
    """The text of ``python -c``."""
    arguments = sys.orig_argv
    if "-c" not in arguments[1:-1]:
        return []
    return arguments[arguments.index("-c", 1) + 1].splitlines(keepends=True)


def locate_function(fn: FunctionType) -> tuple[SourceFile, ast.FunctionDef]:
    """The file and definition of ``fn``. ParserSyntaxError when its source cannot be read."""
    code = fn.__code__
    source = source_file(code.co_filename, fn.__globals__)
    node = source.functions.get(code.co_firstlineno) if source is not None else None
    if source is None or node is None or node.name != code.co_name:
        raise ParserSyntaxError(
            f"Cannot retrieve source code of function '{fn.__name__}'",
            Span(code.co_filename, code.co_firstlineno, 1),
            hint="define the kernel with `def` in a file or notebook cell, or pass its text to pl.parse()",
        )
    return source, node
