"""Kernels from text."""

from __future__ import annotations

import ast
import itertools
from os import PathLike
from types import CodeType
from typing import Any, NoReturn

from ...errors import ParserSyntaxError
from ...ir.program import Function, Program
from ...ir.span import Span
from .source import SourceFile, forget_source, register_source
from .span_tracker import SourceMap, char_column

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
        span = Span(unique, error.lineno or 1, error.offset or 1)
        raise TextSyntaxError(f"Failed to compile code: {error.msg}", span, source_lines=code.splitlines()) from error
    source = register_source(unique, code, tree)
    source.source_map = source_map
    scope: dict[str, Any] = {"__name__": "__pypto_text__", "__file__": unique}
    import pypto.language as pl

    scope["pl"] = pl
    if "pld." in code:
        import pypto.language.distributed as pld

        scope["pld"] = pld
    try:
        exec(_compile_without_kernels(tree, unique), scope)
    except (AttributeError, NameError) as error:
        _raise_at_line(error, source, tree)
    return _sole(scope, filename)


def _compile_without_kernels(tree: ast.Module, filename: str) -> CodeType:
    """Code of ``tree`` whose kernels are empty: they are parsed, never run, and compiling them would take longer."""
    nodes = [n for top in tree.body for n in (top.body if isinstance(top, ast.ClassDef) else [top])]
    kernels = [n for n in nodes if isinstance(n, ast.FunctionDef) and any(map(_is_kernel, n.decorator_list))]
    bodies = [n.body for n in kernels]
    for node in kernels:
        node.body = [ast.copy_location(ast.Pass(), node.body[0])]
    try:
        return compile(tree, filename, "exec")
    finally:
        for node, body in zip(kernels, bodies):
            node.body = body


def _is_kernel(decorator: ast.expr) -> bool:
    """Whether a decorator is spelled ``pl.function`` or ``pl.inline``."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(target, ast.Attribute) and target.attr in ("function", "inline")


class TextSyntaxError(ParserSyntaxError, SyntaxError):
    """Text that is not Python."""


def _raise_at_line(error: AttributeError | NameError, source: SourceFile, tree: ast.AST) -> NoReturn:
    """Re-raise an error of module-level code as a parser error at its line; one from deeper code unchanged."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == source.filename:
            found = trace
        trace = trace.tb_next
    if found is None:
        raise error
    spans = source.spans()
    line, name = found.tb_lineno, getattr(error, "name", None) or str(error)
    at = next((n for n in ast.walk(tree) if _names(n, name) and getattr(n, "lineno", 0) == line), None)
    span = Span(source.filename, line, 1) if at is None else spans.get_span(at)
    if isinstance(at, ast.Attribute):
        column = char_column(source.lines[line - 1], (at.end_col_offset or 0) - len(at.attr.encode()))
        span = Span(span.filename, span.begin_line, column, span.end_line, span.end_column)
    members: Any = None
    message = str(error)
    if isinstance(at, ast.Attribute):
        owner = _evaluated(at.value, found.tb_frame.f_globals)
        members = getattr(owner, "__members__", None)
        message = f"'{ast.unparse(at.value)}' has no '{at.attr}'"
    hint = f"it has {', '.join(members)}" if members else None
    raise ParserSyntaxError(message, span, hint, source_lines=source.lines) from error


def _evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    """The object a dotted name stands for; None for anything else."""
    if isinstance(node, ast.Attribute):
        return getattr(_evaluated(node.value, names), node.attr, None)
    return names.get(node.id) if isinstance(node, ast.Name) else None


def _names(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == name) or (isinstance(node, ast.Name) and node.id == name)


def _sole(scope: dict[str, Any], filename: str) -> Function | Program:
    programs = [v for v in scope.values() if isinstance(v, Program)]
    functions = [v for v in scope.values() if isinstance(v, Function)]
    if len(programs) == 1:
        return programs[0]
    if not programs and len(functions) == 1:
        return functions[0]
    if not programs and not functions:
        raise ValueError(f"No @pl.function or @pl.program found in {filename}")
    found = ", ".join(f.name for f in programs or functions)
    raise ValueError(f"Multiple functions/programs found in {filename}: {found}")


def loads(path: str | PathLike[str]) -> Any:
    """The one function or program that a file defines; errors as `parse`, and OSError."""
    return parse(_read(path), str(path))


def parse_program(code: str, filename: str = "<string>", source_map: SourceMap | None = None) -> Program:
    """The program that ``code`` defines. ValueError when it defines a function instead."""
    made = parse(code, filename, source_map)
    if not isinstance(made, Program):
        raise ValueError(f"Expected @pl.program but found @pl.function '{made.name}' in {filename}")
    return made


def loads_program(path: str | PathLike[str]) -> Program:
    """The program that a file defines."""
    return parse_program(_read(path), str(path))


def _read(path: str | PathLike[str]) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


__all__ = ["forget_source", "loads", "loads_program", "parse", "parse_program"]
