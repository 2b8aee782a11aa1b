"""Kernels from text."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from typing import Any

from ...errors import ParserSyntaxError
from ...ir.program import Function, Program
from ...ir.span import Span
from .source import forget_source, register_source
from .span_tracker import SourceMap

_count = itertools.count(1).__next__


def parse(code: str, filename: str = "<string>", source_map: SourceMap | None = None) -> Any:
    """The one function or program that ``code`` defines.

    Raises ValueError when there is none or more than one, ParserSyntaxError for text that is not Python.
    ``source_map`` leads lines of generated code back to the file they come from.
    """
    unique = filename if filename != "<string>" else f"<pypto text {_count()}>"
    try:
        tree = ast.parse(code, unique)
    except SyntaxError as error:
        raise ParserSyntaxError(
            f"Failed to parse code: {error.msg}",
            Span(unique, error.lineno or 1, error.offset or 1),
            source_lines=code.splitlines(),
        ) from error
    register_source(unique, code, tree)
    scope: dict[str, Any] = {"__name__": "__pypto_text__", "__file__": unique}
    if "pl" not in code.split("import pypto.language as ", 1)[-1][:3]:
        import pypto.language as pl

        scope["pl"] = pl
    exec(compile(tree, unique, "exec"), scope)  # noqa: S102
    return _sole(scope, unique)


def _sole(scope: dict[str, Any], filename: str) -> Function | Program:
    programs = [v for v in scope.values() if isinstance(v, Program)]
    functions = [v for v in scope.values() if isinstance(v, Function)]
    if len(programs) == 1:
        return programs[0]
    if not programs and len(functions) == 1:
        return functions[0]
    if not programs and not functions:
        raise ValueError(f"No @pl.function or @pl.program found in {filename}")
    found = programs or functions
    kind = "programs" if programs else "functions"
    raise ValueError(f"Multiple {kind} found in {filename}: {', '.join(f.name for f in found)}")


def loads(path: str | Path) -> Any:
    """The one function or program that a file defines; errors as `parse`, and OSError."""
    return parse(Path(path).read_text(encoding="utf-8"), str(path))


def parse_program(code: str, filename: str = "<string>", source_map: SourceMap | None = None) -> Program:
    """The program that ``code`` defines. ValueError when it defines a function instead."""
    made = parse(code, filename, source_map)
    if not isinstance(made, Program):
        raise ValueError(f"{filename} defines the function '{made.name}', not a program")
    return made


def loads_program(path: str | Path) -> Program:
    """The program that a file defines."""
    return parse_program(Path(path).read_text(encoding="utf-8"), str(path))


__all__ = ["forget_source", "loads", "loads_program", "parse", "parse_program"]
