"""`@pl.function`, `@pl.program`, `@pl.inline`."""

from __future__ import annotations

import ast
import builtins
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import CellType, FrameType, FunctionType as PyFunction
from typing import Any, Final

from ..compile_profiling import profiled
from ..errors import ParserSyntaxError
from ..ir.enums import FunctionType, Level, Role
from ..ir.program import Function, Program
from ..ir.span import Span
from .parser.function_parser import FunctionOptions, FunctionParser
from .parser.program_parser import Method, ProgramContext, record_externals
from .parser.source import SourceFile, locate_function

_MISSING: Final = object()


class Closure(Mapping[str, Any]):
    """What a function's names mean in Python: captured variables, the frames around, globals."""

    __slots__ = ("_captured", "_maps")

    def __init__(self, fn: PyFunction, frames: list[dict[str, Any]]) -> None:
        captured = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
        self._captured: dict[str, CellType] = captured
        self._maps: list[Mapping[str, Any]] = [*frames, fn.__globals__]

    def get(self, key: str, default: Any = None) -> Any:
        if key in self._captured:
            try:
                return self._captured[key].cell_contents
            except ValueError:
                return default
        for names in self._maps:
            if key in names:
                return names[key]
        return default

    def __getitem__(self, key: str) -> Any:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter({k: None for names in (self._captured, *self._maps) for k in names})

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _enclosing(fn: PyFunction, frame: FrameType | None) -> list[dict[str, Any]]:
    """Local names of the function that lexically encloses ``fn``, for what its code does not capture: annotations."""
    path = fn.__qualname__.split(".")
    while frame is not None and _is_class_body(frame):
        frame = frame.f_back
    if frame is None or frame.f_locals is frame.f_globals or "<locals>" not in path:
        return []
    around = path[len(path) - path[::-1].index("<locals>") - 2]
    return [dict(frame.f_locals)] if frame.f_code.co_name == around else []


def _is_class_body(frame: FrameType) -> bool:
    names = frame.f_locals
    return names is not frame.f_globals and "__qualname__" in names and "__module__" in names


class PendingFunction:
    """A method of a class that `@pl.program` will parse."""

    __slots__ = ("fn", "options", "closure")

    def __init__(self, fn: PyFunction, options: FunctionOptions, closure: Mapping[str, Any]) -> None:
        self.fn, self.options, self.closure = fn, options, closure

    def method(self) -> Method:
        source, node = locate_function(self.fn)
        return Method(source, node, self.closure, self.options)


class InlineFunction:
    """A function whose statements stand in for each call of it."""

    is_inline_function = True

    def __init__(self, source: SourceFile, node: ast.FunctionDef, closure: Mapping[str, Any]) -> None:
        self.source, self.node, self.closure = source, node, closure
        self.name = node.name
        self.__qualname__ = node.name

    def __reduce__(self) -> str:
        return self.__qualname__

    def __copy__(self) -> InlineFunction:
        return self

    def __deepcopy__(self, memo: Any) -> InlineFunction:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"inline function '{self.name}' can be called only inside a kernel")


def function(
    fn: Callable[..., Any] | None = None,
    *,
    type: FunctionType = FunctionType.Opaque,
    strict_ssa: bool = False,
    level: Level | None = None,
    role: Role | None = None,
    attrs: Mapping[str, Any] | None = None,
    auto_scope: bool = True,
    external_source: str | os.PathLike[str] | None = None,
) -> Any:
    """Parse a Python function to an `ir.Function`.

    In a class decorated with `program` it becomes a function of that program. ``type`` says what runs it;
    ``strict_ssa`` refuses a second assignment to a name. ``external_source`` is the file of a kernel written in C++,
    relative to the one that declares it with the body ``...``. Raises a `ParserError` for what is not in the language.
    """
    if attrs is not None and not isinstance(attrs, Mapping):
        raise ParserSyntaxError(f"attrs= must be a dict, got {builtins.type(attrs).__name__}", Span.here(0))
    if attrs:
        warnings.warn(
            "@pl.function(attrs=..) is deprecated: such attributes cannot reference parameters. "
            "Write pl.func_attr({..}) as the first statement of the body",
            DeprecationWarning,
            stacklevel=2,
        )
    options = FunctionOptions(type, strict_ssa, level, role, attrs, auto_scope, external_source)
    if fn is not None:
        return _decorate(fn, options, sys._getframe(1))
    return lambda f: _decorate(f, options, sys._getframe(1))


def _decorate(fn: Any, options: FunctionOptions, frame: FrameType) -> Function | PendingFunction:
    if not isinstance(fn, PyFunction):
        raise TypeError(f"@pl.function decorates a function, got {builtins.type(fn).__name__}")
    closure = Closure(fn, _enclosing(fn, frame))
    if _is_class_body(frame):
        return PendingFunction(fn, options, closure)
    source, node = locate_function(fn)
    parser = FunctionParser(source, node, closure, options)
    made = parser.parse()
    record_externals(made, parser.externals.values())
    return made


def inline(fn: Callable[..., Any]) -> InlineFunction:
    """Expand the function's statements wherever a kernel calls it."""
    if not isinstance(fn, PyFunction):
        raise TypeError(f"@pl.inline decorates a function, got {builtins.type(fn).__name__}")
    source, node = locate_function(fn)
    made = InlineFunction(source, node, Closure(fn, _enclosing(fn, sys._getframe(1))))
    made.__module__, made.__qualname__ = fn.__module__, fn.__qualname__
    return made


def program(cls: Any = None, *, strict_ssa: bool = False) -> Any:
    """Parse a class of `function` methods to an `ir.Program`, named like the class.

    Methods take ``self`` first and call each other as ``self.name(..)``.
    """
    if cls is None:
        return lambda c: program(c, strict_ssa=strict_ssa)
    if not isinstance(cls, builtins.type):
        raise TypeError(f"@pl.program decorates a class, got {builtins.type(cls).__name__}")
    context = ProgramContext()
    methods = [v for v in vars(cls).values() if isinstance(v, PendingFunction)]
    span = Span.unknown()
    for pending in methods:
        if strict_ssa:
            pending.options.strict_ssa = True
        method = pending.method()
        if not span.is_valid():
            found = method.source.class_around(cls.__name__, method.node.lineno)
            span = _class_span(method.source, found) if found is not None else span
        context.add(method)
    if not methods:
        raise ParserSyntaxError(
            f"Class '{cls.__name__}' has no @pl.function methods", None, hint="decorate its methods with @pl.function"
        )
    with profiled("parse"):
        return context.parse(cls.__name__, span)


def _class_span(source: SourceFile, node: ast.ClassDef) -> Span:
    """A class from its first decorator on."""
    whole = source.spans().get_span(node)
    line = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    return Span(whole.filename, line, whole.begin_column, whole.end_line, whole.end_column)


__all__ = ["Closure", "InlineFunction", "PendingFunction", "Program", "function", "inline", "program"]
