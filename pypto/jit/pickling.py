"""Pickling jit kernels: by name where a module holds them, as functions are, else by what they are made of.

A kernel defined in a function goes as its code, read again from its source file, and the values its names stand for.
What was compiled stays behind.
"""

from __future__ import annotations

import importlib
import marshal
import sys
from collections.abc import Mapping
from types import CellType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..language.decorators import Closure

if TYPE_CHECKING:
    from .decorator import JITFunction

_STATED = ("name", "options", "members")
"""What a kernel has of its own besides its function."""


class _Module(NamedTuple):
    """A module, which is not pickled itself."""

    name: str


class _Parts(NamedTuple):
    """A Python function: its code, names, defaults and what it looks up."""

    code: bytes
    module: str
    qualname: str
    defaults: Any
    keywords: Any
    values: Mapping[str, Any]


def is_importable(value: Any) -> bool:
    """Whether the module of ``value`` holds it under its name."""
    found = sys.modules.get(value.__module__)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def reduce_jit(function: JITFunction) -> Any:
    """What ``__reduce__`` of a kernel gives."""
    if is_importable(function):
        return function.__qualname__
    fn: Any = function.__wrapped__
    values = {n: function.closure[n] for n in function.names.free if n in function.closure}
    values = {n: _Module(v.__name__) if isinstance(v, ModuleType) else v for n, v in values.items()}
    parts = _Parts(
        marshal.dumps(fn.__code__), fn.__module__, fn.__qualname__, fn.__defaults__, fn.__kwdefaults__, values
    )
    stated = {name: held for name, held in vars(function).items() if name in _STATED}
    return _restored, (type(function), function.kind, parts, stated)


def _restored(cls: type[JITFunction], kind: str, parts: _Parts, stated: Mapping[str, Any]) -> JITFunction:
    from .decorator import JITFunction

    values = {n: importlib.import_module(v.name) if isinstance(v, _Module) else v for n, v in parts.values.items()}
    code = marshal.loads(parts.code)
    cells = tuple(CellType(values[n]) if n in values else CellType() for n in code.co_freevars)
    fn = FunctionType(code, {**values, "__name__": parts.module}, code.co_name, parts.defaults, cells)
    fn.__qualname__, fn.__module__, fn.__kwdefaults__ = parts.qualname, parts.module, parts.keywords
    made = cls.__new__(cls)
    JITFunction.__init__(made, fn, kind, stated["options"], Closure(fn, [dict(values)]))
    vars(made).update(stated)
    return made
