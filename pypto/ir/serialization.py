"""IR to bytes and back.

Format, version 1: UTF-8 JSON, ``{"format": "pypto-ir", "version": 1, "files": [..], "objects": [..], "root": value}``.

- ``objects`` holds every node once, parts before wholes: ``[class, [field values in declaration order], span]``. A
  span is ``[file, begin line, begin column, end line, end column]`` with ``file`` an index into ``files``, or null.
- A value is a JSON scalar, or a list tagged by its first element: ``["#", n]`` object n, ``["l", ..]`` a list,
  ``["t", ..]`` a tuple, ``["m", [key, value], ..]`` a mapping, ``["e", enumeration, member]``, ``["o", name]`` an
  operator, ``["g", name]`` a global variable, ``["s", ..]`` a span.

An object that is shared is one object after reading too. Variables get fresh ids.
"""

from __future__ import annotations

import importlib
import json
from enum import Enum
from pathlib import Path
from typing import Any, Final

from ..dtypes import DataType
from . import enums, expr, memref, program, stmt, types
from .expr import KNOWN_OPS, GlobalVar, Op, next_unique_id
from .node import IRNode, NodeList
from .span import UNKNOWN_SPAN, Span

FORMAT: Final = "pypto-ir"
VERSION: Final = 1
_FRESH: Final = {"unique_id": next_unique_id, "summary_cell": list}
"""Fields that are made anew, never stored."""


def _classes() -> dict[str, type]:
    modules = (expr, memref, program, stmt, types)
    return {c.__name__: c for m in modules for c in vars(m).values() if isinstance(c, type) and issubclass(c, IRNode)}


def _enums() -> dict[str, Any]:
    found = {c.__name__: c for c in vars(enums).values() if isinstance(c, type) and issubclass(c, Enum)}
    return found | {"DataType": DataType}


class _Writer:
    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.files: dict[str, int] = {}
        self._index: dict[int, int] = {}

    def value(self, value: Any) -> Any:
        if isinstance(value, Enum):
            return ["e", type(value).__name__, value.name]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, IRNode):
            return ["#", self.node(value)]
        if isinstance(value, Op):
            return ["g" if isinstance(value, GlobalVar) else "o", value.name]
        if isinstance(value, Span):
            return ["s", *(self.span(value) or ())]
        if isinstance(value, dict):
            return ["m", *([self.value(k), self.value(v)] for k, v in value.items())]
        if isinstance(value, (list, tuple)):
            tag = "l" if isinstance(value, (list, NodeList)) else "t"
            return [tag, *(self.value(v) for v in value)]
        raise TypeError(f"a {type(value).__name__} in the IR cannot be serialized")

    def span(self, span: Span) -> list[Any] | None:
        if span is UNKNOWN_SPAN:
            return None
        file = self.files.setdefault(span.filename, len(self.files))
        return [file, span.begin_line, span.begin_column, span.end_line, span.end_column]

    def node(self, node: IRNode) -> int:
        known = self._index.get(id(node))
        if known is None:
            fields = [f.name for f in type(node).fields if f.name != "span" and f.name not in _FRESH]
            values = [self.value(getattr(node, name)) for name in fields]
            self.objects.append([type(node).__name__, values, self.span(node.span)])
            known = self._index[id(node)] = len(self.objects) - 1
        return known


class _Reader:
    def __init__(self, files: list[str]) -> None:
        self.files = files
        self.objects: list[IRNode] = []
        self._classes, self._enums = _classes(), _enums()
        self._globals: dict[str, GlobalVar] = {}
        importlib.import_module("pypto.ops")  # registered operators are found by name

    def value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        tag, rest = value[0], value[1:]
        if tag == "#":
            return self.objects[rest[0]]
        if tag == "l":
            return NodeList(self.value(v) for v in rest)
        if tag == "t":
            return tuple(self.value(v) for v in rest)
        if tag == "m":
            return {self.value(k): self._plain(v) for k, v in rest}
        if tag == "e":
            return self._enums[rest[0]][rest[1]]
        if tag == "g":
            return self._globals.setdefault(rest[0], GlobalVar(rest[0]))
        if tag == "o":
            return KNOWN_OPS.get(rest[0]) or Op(rest[0])
        if tag == "s":
            return self.span(rest)
        raise ValueError(f"unknown tag {tag!r}")

    def _plain(self, value: Any) -> Any:
        """A mapping's value: lists in it are lists, as they were given."""
        made = self.value(value)
        return list(made) if isinstance(made, NodeList) else made

    def span(self, parts: list[Any] | None) -> Span:
        return UNKNOWN_SPAN if not parts else Span(self.files[parts[0]], *parts[1:])

    def node(self, name: str, stored: list[Any], span: list[Any] | None) -> IRNode:
        cls: Any = self._classes[name]
        names = [f.name for f in cls.fields if f.name != "span" and f.name not in _FRESH]
        values = dict(zip(names, (self.value(v) for v in stored), strict=True))
        if issubclass(cls, types.ScalarType):
            return types.ScalarType(values["dtype"])
        if not names and issubclass(cls, types.Type):
            return cls()
        values["span"] = self.span(span)
        return cls._build(*(_FRESH[f.name]() if f.name in _FRESH else values[f.name] for f in cls.fields))


def serialize(node: IRNode) -> bytes:
    """``node`` and everything below it as bytes. Raises TypeError for a value no field may hold."""
    writer = _Writer()
    root = writer.value(node)
    made = {"format": FORMAT, "version": VERSION, "files": list(writer.files), "objects": writer.objects, "root": root}
    return json.dumps(made, separators=(",", ":")).encode()


def deserialize(data: bytes) -> Any:
    """The node that `serialize` wrote. Raises ValueError for anything else, and for another version."""
    try:
        stored = json.loads(data)
    except ValueError as error:
        raise ValueError(f"these bytes are no serialized IR: {error}") from None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise ValueError("these bytes are no serialized IR")
    if stored.get("version") != VERSION:
        raise ValueError(f"the IR was serialized as version {stored.get('version')}, this reads version {VERSION}")
    try:
        reader = _Reader(stored["files"])
        for name, values, span in stored["objects"]:
            reader.objects.append(reader.node(name, values, span))
        return reader.value(stored["root"])
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"the serialized IR is damaged: {error!r}") from error


def serialize_to_file(node: IRNode, path: str) -> None:
    """Write `serialize(node)` to ``path``."""
    Path(path).write_bytes(serialize(node))


def deserialize_from_file(path: str) -> Any:
    """The node in file ``path``. Raises ValueError when it cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    return deserialize(data)


