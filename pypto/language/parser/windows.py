"""Communication windows and ranks in host functions: where they may stand, and the names of windows."""

from __future__ import annotations

import ast
from typing import Any, Final

from ...errors import ParserError, ParserSyntaxError
from ...ir.enums import Level
from ...ir.expr import Expr
from ...ir.span import Span
from .base import OP_ERRORS, ParserBase
from .calls import OP_HOOKS

_DEVICE_REGIONS: Final = {
    "at": "an InCore region",
    "split_aiv": "an InCore region",
    "spmd": "an Spmd region",
    "cluster": "a Cluster region",
}


class WindowsMixin(ParserBase):
    """Parses what only the host can do."""

    options: Any
    regions: list[str]
    assigned: dict[ast.Call, ast.Name]
    windows: dict[str, Span]

    def check_on_host(self, name: str, node: ast.Call) -> None:
        """ParserSyntaxError unless ``node`` stands in a host function, outside the regions that run on a device."""
        if self.options.level is not Level.HOST:
            self.fail(
                ParserSyntaxError,
                f"pld.{name}() can be called only in a HOST-level function",
                node,
                "write @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator), and pass what it gives on",
            )
        found = next((_DEVICE_REGIONS[r] for r in self.regions if r in _DEVICE_REGIONS), None)
        if found is not None:
            self.fail(
                ParserSyntaxError,
                f"pld.{name}() runs on the host: it cannot be called inside {found}",
                node,
                "call it before the region",
            )

    def window_name(self, node: ast.Call) -> str:
        """The name that the assignment of an allocation gives its window."""
        if any(k.arg == "name" for k in node.keywords):
            self.fail(
                ParserSyntaxError,
                "the 'name' kwarg cannot be passed explicitly to pld.alloc_window_buffer()",
                node,
                "a window is named after the variable it is assigned to",
            )
        target = self.assigned.get(node)
        if target is None:
            self.fail(
                ParserSyntaxError,
                "pld.alloc_window_buffer() must appear as the RHS of a simple assignment",
                node,
                "write buf = pld.alloc_window_buffer(..): the variable names the window",
            )
        return target.id

    def claim_window(self, name: str, node: ast.Call) -> None:
        """ParserSyntaxError when another window of the program has that name."""
        known = self.windows.get(name)
        if known is not None:
            self.fail(
                ParserSyntaxError,
                f"window '{name}' is already declared in this program",
                node,
                "assign the window to a name of its own",
                f"it is declared at {known}",
            )
        self.windows[name] = self.span(node)


def _world_size(self: Any, op: Any, node: ast.Call) -> Expr:
    self.check_on_host("world_size", node)
    return self.apply_operator(op, node)


def _alloc_window_buffer(self: Any, op: Any, node: ast.Call) -> Expr:
    """Printed programs state a window's name as a second argument: variables are renamed, windows are not."""
    self.check_on_host("alloc_window_buffer", node)
    name = self.window_name(node)
    args, kwargs = self.arguments(node)
    if len(args) == 2 and isinstance(args[1], str):
        name = args.pop()
    self.claim_window(name, node)
    try:
        return op.build(args, {**kwargs, "name": name}, self.span(node))
    except ParserError:
        raise
    except OP_ERRORS as error:
        wrapped = self.wrap_op_error(f"pld operation '{op.__name__}'", error, node)
        raise ParserSyntaxError(wrapped.message, wrapped.span, wrapped.hint, source_lines=self.source.lines) from error


OP_HOOKS["world_size"] = _world_size
OP_HOOKS["alloc_window_buffer"] = _alloc_window_buffer
