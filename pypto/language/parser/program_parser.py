"""Programs: functions that call each other."""

from __future__ import annotations

import ast
import copyreg
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ...errors import ParserSyntaxError
from ...ir.enums import Role
from ...ir.expr import GlobalVar, Var
from ...ir.program import Function, Program
from ...ir.serialization import deserialize, serialize
from ...ir.span import Span
from .function_parser import FunctionOptions, FunctionParser
from .signatures import Signature, returned_types
from .source import SourceFile

_externals: WeakKeyDictionary[Function, tuple[Function, ...]] = WeakKeyDictionary()


def record_externals(function: Function, called: Iterable[Function]) -> None:
    """Note which functions outside any program a function calls."""
    found = tuple(called)
    if found:
        _externals[function] = found


def _reduce(function: Function) -> Any:
    return _restored, (serialize(function), _externals.get(function, ()))


def _restored(data: bytes, called: tuple[Function, ...]) -> Function:
    made = deserialize(data)
    record_externals(made, called)
    return made


copyreg.pickle(Function, _reduce)  # pyright: ignore[reportArgumentType]


def closure_of_calls(functions: Sequence[Function]) -> list[Function]:
    """``functions`` and every function they call, directly or not."""
    found: dict[str, Function] = {f.name: f for f in functions}
    queue = list(functions)
    while queue:
        for called in _externals.get(queue.pop(), ()):
            other = found.setdefault(called.name, called)
            if other is called and called not in functions:
                queue.append(called)
            elif other is not called:
                raise ParserSyntaxError(
                    f"two different functions are named '{called.name}'", called.span, "rename one of them"
                )
    return list(found.values())


def program_of(function: Function) -> Program:
    """A program of a function defined on its own and everything it calls."""
    return Program(closure_of_calls([function]), function.name, function.span)


class Method:
    """A function of a program before it is parsed."""

    __slots__ = ("source", "node", "closure", "options")

    def __init__(
        self,
        source: SourceFile,
        node: ast.FunctionDef,
        closure: Mapping[str, Any],
        options: FunctionOptions,
    ) -> None:
        self.source, self.node, self.closure, self.options = source, node, closure, options


class ProgramContext:
    """The functions of the program being parsed. Signatures come first, so that calls may look ahead."""

    def __init__(self) -> None:
        self.bases: dict[str, Var] = {}
        self.windows: dict[str, Span] = {}
        self._parsers: dict[str, FunctionParser] = {}
        self._signatures: dict[str, Signature] = {}
        self._done: dict[str, Function] = {}
        self._external: dict[str, Function] = {}
        self._active: list[str] = []

    def add(self, method: Method) -> None:
        name = method.node.name
        parser = FunctionParser(method.source, method.node, method.closure, method.options, program=self)
        if name in self._parsers:
            parser.fail(
                ParserSyntaxError,
                f"function '{name}' is defined twice in the program",
                method.node,
                "rename one of them",
            )
        args = method.node.args.args
        bare = not args or (args[0].arg != "self" and args[0].annotation is None)
        if bare and method.options.role is not Role.SubWorker:
            parser.fail(
                ParserSyntaxError,
                f"method '{name}' of a program needs 'self' as its first parameter",
                args[0] if args else method.node,
                f"write def {name}(self, ..)",
            )
        self._parsers[name] = parser

    def parse(self, name: str, span: Span) -> Program:
        for key, parser in self._parsers.items():
            parser.parse_signature()
            results = parser.return_types if parser.node.returns is not None else None
            options = parser.options
            self._signatures[key] = Signature(key, GlobalVar(key), parser.params, results, options.type, options.role)
        functions = [self._function(key) for key in self._parsers]
        everything = closure_of_calls([*functions, *self._external.values()])
        globals_by_name = {k: s.global_var for k, s in self._signatures.items()}
        return Program({globals_by_name.get(f.name) or GlobalVar(f.name): f for f in everything}, name, span)

    def _function(self, name: str) -> Function:
        done = self._done.get(name)
        if done is None:
            self._active.append(name)
            done = self._done[name] = self._parsers[name].parse()
            self._active.pop()
        return done

    def names(self) -> list[str]:
        return list(self._parsers)

    def signature(self, name: str) -> Signature | None:
        """The signature of a function; its body is parsed first when only that tells the results."""
        found = self._signatures.get(name)
        if found is None or found.results is not None or name not in self._parsers:
            return found
        if name in self._active:
            return found
        found.results = returned_types(self._function(name))
        return found

    def external(self, function: Function) -> Signature | None:
        """The signature of an outside function; None when its name is taken."""
        name = function.name
        if name in self._parsers or self._external.get(name, function) is not function:
            return None
        self._external[name] = function
        if name not in self._signatures:
            self._signatures[name] = Signature.of_function(function)
        return self._signatures[name]
