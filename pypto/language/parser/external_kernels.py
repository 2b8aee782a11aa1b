"""Kernels that are written in C++: declared by their signature, with a body that is ``...``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ParserSyntaxError, ParserTypeError, user_error
from ...ir.enums import FunctionType, ParamDirection
from ...ir.stmt import ReturnStmt
from ...ir.types import ShapedType

if TYPE_CHECKING:
    from .function_parser import FunctionParser


def located(path: str | os.PathLike[str], defined_in: str) -> Path:
    """``path`` made absolute; a relative one is beside the file that names it."""
    return (Path(defined_in).parent / path).resolve()


def declare(parser: FunctionParser, given: str | os.PathLike[str], is_empty: bool) -> str:
    """Write the body that ``...`` stands for, the return of the tensors the kernel writes; the path of its C++.

    Raises the user's error where the function cannot be such a kernel.
    """
    node = parser.node
    if parser.options.type not in (FunctionType.AIC, FunctionType.AIV):
        parser.fail(
            ParserTypeError,
            f"external_source is only valid on FunctionType.AIC and FunctionType.AIV, '{node.name}' is "
            f"{parser.options.type.name}",
            node,
            "declare one function for each core, and launch both in a pl.FunctionType.Group",
        )
    if not is_empty:
        parser.fail(
            ParserSyntaxError,
            f"external kernel '{node.name}' must have an empty body: its code is in {given}",
            node.body[0],
            "write ... for the body",
        )
    path = located(given, parser.source.filename)
    if not path.is_file():
        raise user_error(
            ValueError,
            f"external_source of '{node.name}': file not found: {path}",
            parser.span(node),
            hint="give an absolute path, or one relative to the file that declares the kernel",
        )
    _return_written(parser)
    return str(path)


def _return_written(parser: FunctionParser) -> None:
    node, declared = parser.node, parser.results
    written = [p for p, d in parser.params if d is not ParamDirection.In and isinstance(p.type, ShapedType)]
    if parser.infers_results and node.returns is None:
        declared = [p.type for p in written]
    if not declared:
        return
    if len(declared) != len(written):
        parser.fail(
            ParserTypeError,
            f"external kernel '{node.name}' declares {len(declared)} result(s) and writes {len(written)} tensor(s)",
            node.returns or node,
            "declare a result for each pl.Out and pl.InOut tensor, in order, or none",
        )
    parser.emit(ReturnStmt(written, parser.span(node)))
