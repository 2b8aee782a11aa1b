"""Reading PTO assembly: whole operations are matched as text, which is far faster than by token."""

from __future__ import annotations

import re

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.utils.lexer import Span

from .scalar_types import scalar_type
from .types import BUILDERS, HANDLES

_TYPE = re.compile(r"\s*(!?[A-Za-z_][\w.]*)\s*(<)?")
_HANDLES: dict[str, Attribute] = {handle.name: handle() for handle in HANDLES}
_types: dict[str, Attribute] = {}
_lists: dict[str, tuple[Attribute, ...]] = {}


def match(parser: Parser, pattern: re.Pattern[str], usage: str) -> re.Match[str]:
    """Match ``pattern`` at the current token and continue after it; parse error showing ``usage`` otherwise."""
    found = pattern.match(parser.lexer.input.content, parser.pos)
    if found is None:
        parser.raise_error(f"expected: {usage}")
    parser._resume_from(found.end())
    return found


def _close(text: str, start: int) -> int:
    """Index after the ``>`` that closes the ``<`` at ``start``; -1 when there is none."""
    depth = 0
    for index in range(start, len(text)):
        char = text[index]
        if char == "<":
            depth += 1
        elif char == ">":
            depth -= 1
            if depth == 0:
                return index + 1
    return -1


def parse_type_text(text: str) -> Attribute:
    """The type written ``text``; the same text always gives the same object. Raises ValueError."""
    found = _types.get(text)
    if found is None:
        found = _types[text] = _build_type(text.strip())
    return found


def _build_type(text: str) -> Attribute:
    if text.startswith("!"):
        name, _, body = text[1:].partition("<")
        if name in _HANDLES and not body:
            return _HANDLES[name]
        builder = BUILDERS.get(name.strip())
        if builder is None or not body.endswith(">"):
            raise ValueError(f"'{text}' is not a PTO type this dialect has")
        cls, parse = builder
        return cls(parse(body[:-1]))
    found = scalar_type(text)
    if found is None:
        raise ValueError(f"'{text}' is not a type")
    return found


def type_end(text: str, start: int) -> int:
    """Index after the type that starts at ``start``. Raises ValueError."""
    found = _TYPE.match(text, start)
    if found is None:
        raise ValueError(f"expected a type, got '{text[start : start + 40].strip()}'")
    if found.group(2) is None:
        return found.end(1)
    end = _close(text, found.start(2))
    if end < 0:
        raise ValueError(f"type '{text[start : start + 40].strip()}..' is not closed")
    return end


def parse_types(text: str) -> tuple[Attribute, ...]:
    """A comma-separated list of types. Raises ValueError."""
    found = _lists.get(text)
    if found is not None:
        return found
    types: list[Attribute] = []
    position, length = 0, len(text.rstrip())
    while position < length:
        end = type_end(text, position)
        types.append(parse_type_text(text[position:end].strip()))
        while end < length and text[end].isspace():
            end += 1
        if end < length and text[end] != ",":
            raise ValueError(f"expected ',' between types, got '{text[end : end + 40]}'")
        position = end + 1
    _lists[text] = tuple(types)
    return _lists[text]


_NAME = re.compile(r"%([\w$.-]+)(?:#(\d+))?")


def value(parser: Parser, word: str, at: int, attr: Attribute) -> SSAValue:
    """The value called ``word``, written at offset ``at``; a parse error when there is none of that type."""
    found = _NAME.fullmatch(word)
    span = Span(at, at + len(word), parser.lexer.input)
    if found is None:
        parser.raise_error(f"expected a value, got '{word}'", at, at + max(1, len(word)))
    index = int(found.group(2) or 0)
    values = parser.ssa_values.get(found.group(1))
    if values is None:
        parser.raise_error(f"{word} is used before it is defined", span)
    if index < len(values):
        named = values[index]
        if named.type is attr or named.type == attr:
            return named
    return parser.resolve_operand(
        UnresolvedOperand(Span(at, at + 1 + len(found.group(1)), parser.lexer.input), index), attr
    )


def split_words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",")] if text.strip() else []


def operands(parser: Parser, found: re.Match[str], group: str, types: tuple[Attribute, ...]) -> list[SSAValue]:
    """Values named in a group of a match, each of the type beside it."""
    text = found.group(group) or ""
    words = split_words(text)
    at = found.start(group)
    if len(words) != len(types):
        parser.raise_error(f"{len(words)} operands but {len(types)} types", at, max(at + 1, found.end(group)))
    values: list[SSAValue] = []
    for word, attr in zip(words, types, strict=True):
        at = parser.lexer.input.content.index(word, at)
        values.append(value(parser, word, at, attr))
        at += len(word)
    return values


def types_in(parser: Parser, found: re.Match[str], group: str) -> tuple[Attribute, ...]:
    """Types named in a group of a match; a bad one is a parse error at the group."""
    try:
        return parse_types(found.group(group))
    except ValueError as error:
        parser.raise_error(str(error), found.start(group), found.end(group))


def attributes_in(parser: Parser, found: re.Match[str], group: str) -> dict[str, Attribute]:
    """Attributes in the braces that are a group of a match; reading goes on after the match."""
    parser._resume_from(found.start(group))
    attributes = parser.parse_optional_attr_dict()
    parser._resume_from(found.end())
    return attributes
