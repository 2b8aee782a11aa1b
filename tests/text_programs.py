"""Programs from text, for tests that state only the lines that matter."""

from __future__ import annotations

from textwrap import dedent, indent

import pypto.language as pl
from pypto import ir

INCORE = "@pl.function(type=pl.FunctionType.InCore)"
ORCHESTRATION = "@pl.function(type=pl.FunctionType.Orchestration)"
_IMPORTS = "import pypto.language as pl\nimport pypto.language.distributed as pld\n"


def method(name: str, params: str, body: str, result: str = "", decorator: str = INCORE) -> str:
    """The text of a method; ``body`` may be indented by any amount."""
    returns = f" -> {result}" if result else ""
    lines = indent(dedent(body).strip(), " " * 4)
    return indent(f"{decorator}\ndef {name}(self, {params}){returns}:\n{lines}\n", " " * 4)


def program(*methods: str, head: str = "") -> ir.Program:
    """A program of ``methods``, which are text; ``head`` stands before it."""
    text = "\n".join(methods)
    made = pl.parse(f"{_IMPORTS}{head}\n@pl.program\nclass Kernels:\n{text}")
    assert isinstance(made, ir.Program)
    return made


def kernel(params: str, body: str, result: str = "", decorator: str = INCORE) -> ir.Program:
    """A program of one method, ``kernel``."""
    return program(method("kernel", params, body, result, decorator))
