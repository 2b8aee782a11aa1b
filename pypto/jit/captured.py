"""What a kernel means besides its arguments: the values that the names in it stand for, as a key.

Everything Python may look at while the kernel is parsed counts: globals and closures, attributes, elements of
containers, what helper functions see in turn. Values of modules that came with Python or were installed do not change.
"""

from __future__ import annotations

import ast
import dis
import enum
import sys
from collections.abc import Hashable, Iterator, Mapping
from functools import cache, cached_property, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..language.decorators import InlineFunction

if TYPE_CHECKING:
    from .decorator import JITFunction

_MISSING: Final = object()
_FIXED: Final = frozenset({*sys.stdlib_module_names, "pypto", "numpy", "torch", "ml_dtypes"})


class Names(NamedTuple):
    """What code looks up: names around it, and attributes of whatever it finds."""

    free: tuple[str, ...]
    attributes: frozenset[str]


class Same:
    """An object as a key: equal to itself only."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)


@cache
def names_of(node: ast.FunctionDef) -> Names:
    """What the definition of a kernel looks up; a name is its own from where it is first assigned."""
    roots = [node.args, *node.body, *([node.returns] if node.returns is not None else [])]
    found = [n for root in roots for n in _with_quoted(root)]
    own = {n.arg: -1 for n in found if isinstance(n, ast.arg)}
    loops = [n.target for n in found if isinstance(n, (ast.For, ast.comprehension))]
    own |= {n.id: -1 for target in loops for n in ast.walk(target) if isinstance(n, ast.Name)}
    read: dict[str, int] = {}
    for n in found:
        if isinstance(n, ast.Name):
            lines = read if isinstance(n.ctx, ast.Load) else own
            lines[n.id] = min(n.lineno, lines.get(n.id, n.lineno))
    attributes = {n.attr for n in found if isinstance(n, ast.Attribute)}
    attributes |= {n.value for n in found if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    free = (name for name, line in read.items() if line <= own.get(name, sys.maxsize))
    return Names(tuple(free), frozenset(attributes))


def _with_quoted(root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree, and of expressions in quotes, as annotations may be."""
    for node in ast.walk(root):
        yield node
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isprintable():
            try:
                inner = ast.parse(node.value, mode="eval")
            except (SyntaxError, ValueError):
                continue
            yield from (ast.copy_location(n, node) for n in ast.walk(inner) if hasattr(n, "lineno"))


@cache
def _names_in(code: CodeType) -> Names:
    """What compiled Python looks up."""
    free = {i.argval: None for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    attributes = set(code.co_names) | {c for c in code.co_consts if isinstance(c, str)}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _names_in(inner)
            free |= dict.fromkeys(more.free)
            attributes |= more.attributes
    return Names(tuple(free), frozenset(attributes))


@cache
def _is_fixed(module: str | None, file: str | None) -> bool:
    """Whether what a module defines stays as it is."""
    return module is None or module.partition(".")[0] in _FIXED or "site-packages" in (file or "")


class Captured:
    """Makes keys of values. Values seen before are named by their number, so that cycles end."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, frozenset[str]], int] = {}
        self._held: list[Any] = []

    def names(self, names: Names, around: Mapping[str, Any], outer: frozenset[str] = frozenset()) -> Hashable:
        """The key of what code looks up in ``around``."""
        attributes = names.attributes | outer
        found = ((name, around.get(name, _MISSING)) for name in names.free)
        return tuple((name, self.of(value, attributes)) for name, value in found if value is not _MISSING)

    def of(self, value: Any, attributes: frozenset[str]) -> Hashable:
        """The key of a value of which these attributes may be looked at."""
        kind = type(value)
        if value is None or kind in (bool, int, str, bytes):
            return kind, value
        if kind in (float, complex):
            return kind, repr(value)  # 0.0 is not -0.0, and nan is nan.
        if isinstance(value, enum.Enum):
            return Same(value)
        if isinstance(value, ModuleType):
            return self._module(value, attributes)
        seen = id(value), attributes
        if seen in self._seen:
            return "seen", self._seen[seen]
        self._seen[seen] = len(self._seen)
        self._held.append(value)
        if isinstance(value, Mapping):
            return kind, tuple((self.of(k, attributes), self.of(v, attributes)) for k, v in value.items())
        if isinstance(value, (list, tuple)):
            return kind, tuple(self.of(v, attributes) for v in value), self._state(value, attributes)
        if isinstance(value, (set, frozenset)):
            return kind, frozenset(self.of(v, attributes) for v in value)
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            return self._array(value)
        return self._object(value, attributes)

    def _array(self, value: Any) -> Hashable:
        from ..runtime.arrays import as_numpy

        try:
            array = as_numpy(value)
        except TypeError:
            return Same(value)
        return type(value), array.shape, array.dtype, array.tobytes()

    def _module(self, module: ModuleType, attributes: frozenset[str]) -> Hashable:
        if _is_fixed(module.__name__, getattr(module, "__file__", None)):
            return Same(module)
        held = vars(module)
        return Same(module), self._some({n: held[n] for n in sorted(attributes & held.keys())}, attributes)

    def _some(self, values: Mapping[str, Any], attributes: frozenset[str]) -> Hashable:
        return tuple((name, self.of(value, attributes)) for name, value in values.items())

    def _object(self, value: Any, attributes: frozenset[str]) -> Hashable:
        if isinstance(value, InlineFunction):
            return Same(value), self.names(names_of(value.node), value.closure)
        meaning = getattr(type(value), "meaning", None)
        if meaning is not None:
            return Same(value), meaning(value, self)
        if isinstance(value, FunctionType):
            return self._function(value, attributes)
        if isinstance(value, MethodType):
            return self.of(value.__func__, attributes), self.of(value.__self__, attributes)
        if isinstance(value, partial):
            return partial, tuple(self.of(v, attributes) for v in (value.func, value.args, value.keywords))
        if isinstance(value, (property, cached_property, classmethod, staticmethod)):
            inner = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", None)
            return type(value), self.of(inner, attributes)
        if isinstance(value, type):
            return Same(value), self._class(value, attributes)
        state = self._state(value, attributes)
        return (type(value), self._class(type(value), attributes), state) if state else Same(value)

    def _function(self, function: FunctionType, attributes: frozenset[str]) -> Hashable:
        code = function.__code__
        if _is_fixed(function.__module__, code.co_filename):
            return Same(function)
        names = _names_in(code)
        cells = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                cells[name] = cell.cell_contents
            except ValueError:
                continue
        attributes = attributes | names.attributes
        defaults = self.of(function.__defaults__, attributes), self.of(function.__kwdefaults__, attributes)
        return code, defaults, self._some(cells, attributes), self.names(names, function.__globals__, attributes)

    def _class(self, kind: type, attributes: frozenset[str]) -> Hashable:
        """What instances of a class find there."""
        if _is_fixed(kind.__module__, None):
            return ()
        found = {}
        for base in reversed(kind.__mro__):
            if not _is_fixed(base.__module__, None):
                # A method may look at any of them.
                found |= {n: v for n, v in vars(base).items() if n[:2] != "__" or isinstance(v, FunctionType)}
        return self._some(found, attributes)

    def _state(self, value: Any, attributes: frozenset[str]) -> Hashable:
        """The attributes an object has itself; those of the language and of the IR never change."""
        kind = type(value)
        if kind.__module__.partition(".")[0] == "pypto":
            return ()
        slots = [s for base in kind.__mro__ for s in _slots(base) if hasattr(value, s)]
        held = {**getattr(value, "__dict__", {}), **{s: getattr(value, s) for s in slots}}
        return self._some(held, attributes)


def _slots(kind: type) -> tuple[str, ...]:
    found = kind.__dict__.get("__slots__", ())
    return (found,) if isinstance(found, str) else tuple(s for s in found if not s.startswith("__"))


def captured(function: JITFunction) -> Hashable:
    """The key of what the names in a kernel mean now."""
    return function.meaning(Captured())
