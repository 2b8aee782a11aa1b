"""Communication windows and ranks in host functions: where they may stand, and the names of windows."""

from __future__ import annotations

import ast
from typing import Any, Final

from ...errors import ParserError, ParserSyntaxError
from ...ir.enums import Level
from ...ir.expr import Expr
from .base import OP_ERRORS
from .calls import OP_HOOKS

_DEVICE_REGIONS: Final = {"at": "an InCore region", "spmd": "an Spmd region", "split_aiv": "an InCore region",
                          "cluster": "a Cluster region"}  # fmt: skip


def check_on_host(self: Any, name: str, node: ast.Call) -> None:
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


def _world_size(self: Any, op: Any, node: ast.Call) -> Expr:
    check_on_host(self, "world_size", node)
    return self.apply_operator(op, node)


def _alloc_window_buffer(self: Any, op: Any, node: ast.Call) -> Expr:
    """The name a window is assigned to is its own; printed programs state it as a second argument."""
    check_on_host(self, "alloc_window_buffer", node)
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
    args, kwargs = self.arguments(node)
    name = args.pop() if len(args) == 2 and isinstance(args[1], str) else target.id
    _claim(self, name, node)
    try:
        return op.build(args, {**kwargs, "name": name}, self.span(node))
    except ParserError:
        raise
    except OP_ERRORS as error:
        wrapped = self.wrap_op_error(f"pld operation '{op.__name__}'", error, node)
        raise ParserSyntaxError(wrapped.message, wrapped.span, wrapped.hint, source_lines=self.source.lines) from error


def _claim(self: Any, name: str, node: ast.Call) -> None:
    """One name is one window of the program."""
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


OP_HOOKS["world_size"] = _world_size
OP_HOOKS["alloc_window_buffer"] = _alloc_window_buffer
