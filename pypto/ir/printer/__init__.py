"""IR as Python of the kernel language: what is printed parses back to a structurally equal program."""

from __future__ import annotations

from ..expr import Expr
from ..node import IRNode
from ..program import Function, Program
from ..stmt import Stmt
from ..types import Type
from .names import Names, collect, name_dimensions
from .statements import FunctionPrinter, StatementPrinter
from .values import ValuePrinter, dialect_import

__all__ = ["python_print", "python_print_type"]


def python_print(
    node: IRNode, prefix: str = "pl", concise: bool = False, format: bool = True, explicit_layout: bool = False
) -> str:
    """``node`` as Python text.

    ``prefix`` is the name the language module is imported under; ``concise`` leaves out the types of local
    variables; ``explicit_layout`` states every tile's block layout and every distributed tensor's window, for
    reading only. ``format`` is accepted for compatibility: there is one layout.

    Distinct variables get distinct names. In a function, a variable that nothing defines is marked ``__FREE_VAR``.
    """
    if isinstance(node, Program):
        return _program(node, prefix, concise, explicit_layout)
    if isinstance(node, Function):
        return _function(node, prefix, concise, explicit_layout)
    if isinstance(node, Stmt):
        defined, _ = collect([node])
        printer = StatementPrinter(Names(prefix, defined, closed=False), prefix, concise, explicit_layout)
        printer.statement(node)
        return "\n".join(printer.lines)
    names = Names(prefix, frozenset(), closed=False)
    if isinstance(node, Type):
        return ValuePrinter(names, prefix, explicit_layout).type(node)
    if isinstance(node, Expr):
        return ValuePrinter(names, prefix, explicit_layout).expr(node)
    return ValuePrinter(names, prefix, explicit_layout).view(node)


def python_print_type(type: Type, prefix: str = "pl", format: bool = True) -> str:
    """A type as an annotation."""
    return python_print(type, prefix, format=format)


def _function(function: Function, prefix: str, concise: bool, explicit: bool) -> str:
    defined, free = collect([function])
    dims = name_dimensions(prefix, [function], free)
    names = Names(prefix, defined, dims=dims)
    printer = FunctionPrinter(names, prefix, concise, explicit, in_program=False)
    printer.function(function)
    head = [f'{name} = {prefix}.dynamic("{name}")' for name in dims.values()]
    return "\n".join([*head, *([""] if head else []), *printer.lines])


def _program(program: Program, prefix: str, concise: bool, explicit: bool) -> str:
    functions = list(program.functions.values())
    parts = [(f, *collect([f])) for f in functions]
    free = {var: None for _, _, dims in parts for var in dims}
    dims = name_dimensions(prefix, functions, free)
    body: list[str] = []
    for function, defined, _ in parts:
        if body:
            body.append("")
        printer = FunctionPrinter(Names(prefix, defined, dims=dims), prefix, concise, explicit, in_program=True)
        printer.function(function)
        body.extend(printer.lines)
    name = program.name or "Program"
    lines = [f"# pypto.program: {name}" if program.name else "# pypto.program", dialect_import(prefix)]
    if any("pld." in line for line in body):
        lines.append("import pypto.language.distributed as pld")
    lines.append("")
    if dims:
        lines.extend(f'{n} = {prefix}.dynamic("{n}")' for n in dims.values())
        lines.append("")
    lines += ["", f"@{prefix}.program", f"class {name}:"]
    lines += body or ["    pass"]
    return "\n".join(lines) + "\n"
