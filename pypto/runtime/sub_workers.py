"""Sub-workers: functions of a program whose body is Python of the host, or is bound when the program runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import user_error
from ..ir.naming import written_name
from ..ir.program import Function
from ..ir.stmt import InlineStmt, flatten_to_stmts
from .arrays import as_numpy, like_caller

Callback = Callable[[Sequence[Any]], Any]
"""The code of a sub-worker that is bound at run time; it gets the arguments as one sequence."""


def unbound(functions: Mapping[str, Function], callbacks: Mapping[str, Callback]) -> list[str]:
    """Sub-workers whose code is to be bound, and is not."""
    return [name for name, f in functions.items() if f.requires_runtime_binding and name not in callbacks]


class SubWorkers:
    """The sub-workers of one program. ``torch`` says that they get torch tensors, as the caller gave."""

    def __init__(self, callbacks: Mapping[str, Callback], torch: bool) -> None:
        self._callbacks, self._torch = callbacks, torch
        self._compiled: dict[str, Callable[..., Any]] = {}

    def run(self, function: Function, values: Sequence[Any]) -> list[Any]:
        """Run one on arrays and numbers; what it returns. It works on the caller's memory.

        Raises ValueError for one that has no code, and for another number of results than it declares.
        """
        args = [like_caller(v, self._torch) if isinstance(v, np.ndarray) else v for v in values]
        callback = self._callbacks.get(function.name)
        if callback is not None:
            made = callback(args)
        elif function.requires_runtime_binding:
            raise user_error(
                ValueError,
                f"sub-worker {function.name!r} has no code: its body is `...`",
                function.span,
                hint=f"with compiled.prepare(callbacks={{{function.name!r}: function}}) as worker: worker(..)",
            )
        else:
            made = self._code(function)(*args)
        results = [] if made is None else list(made) if isinstance(made, tuple) else [made]
        if function.return_types and len(results) != len(function.return_types):
            count = len(function.return_types)
            raise user_error(
                ValueError, f"sub-worker {function.name!r} must return {count} value(s), got {len(results)}",
                function.span,
            )  # fmt: skip
        return [_result(r, values) for r in results[: len(function.return_types)]]

    def _code(self, function: Function) -> Callable[..., Any]:
        """The function a body is, compiled once. It sees its parameters, builtins, and what it imports."""
        found = self._compiled.get(function.name)
        if found is None:
            names = ", ".join(written_name(p.name_hint) for p in function.params)
            module = ast.parse(f"def {function.name}({names}): pass")
            made = module.body[0]
            text = "\n".join(s.body for s in flatten_to_stmts(function.body) if isinstance(s, InlineStmt))
            if isinstance(made, ast.FunctionDef):
                made.body = ast.parse(text).body or made.body
            scope: dict[str, Any] = {"__name__": function.name}
            exec(compile(ast.fix_missing_locations(module), f"<sub-worker {function.name}>", "exec"), scope)
            found = self._compiled[function.name] = scope[function.name]
        return found


def _result(made: Any, values: Sequence[Any]) -> Any:
    """A result: a number, an array, or the argument whose memory it is."""
    if isinstance(made, (bool, int, float)):
        return made
    array = as_numpy(made)
    arrays = (v for v in values if isinstance(v, np.ndarray))
    return next((v for v in arrays if _layout(v) == _layout(array)), array)


def _layout(array: np.ndarray) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.dtype, array.shape, array.strides
