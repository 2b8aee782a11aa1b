"""PTO enumeration attributes, ``#pto.layout<nd>`` and its other spelling ``#pto<layout nd>``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from .enumerations import ENUMERATIONS
from .types import take_body


class EnumAttr(Data[str]):
    """One case of a PTO enumeration; ``data`` is its canonical mnemonic."""

    cases: tuple[str, ...] = ()
    aliases: dict[str, str] = {}

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        start = parser.pos
        if parser._current_token.kind == MLIRTokenKind.LESS:
            word = take_body(parser)[0].strip()
        else:
            word = parser.parse_identifier()
        found = cls.lookup(word)
        if found is None:
            parser.raise_error(f"#{cls.name} must be one of {', '.join(cls.cases)}, got '{word}'", start)
        return found

    @classmethod
    def lookup(cls, word: str) -> str | None:
        """Canonical mnemonic of ``word``, or None."""
        if word in cls.cases:
            return word
        return cls.aliases.get(word) or next((case for case in cls.cases if case.lower() == word.lower()), None)

    @classmethod
    def named(cls, parser: Parser, found: re.Match[str], group: str, problem: str = "expected") -> EnumAttr:
        """The case that a group of a match names; otherwise a parse error: ``problem``, and the cases there are."""
        case = cls.lookup(found.group(group))
        if case is None:
            text = f"{problem} one of {', '.join(cls.cases)}"
            parser.raise_error(text, found.start(group), found.end(group))
        return cls(case)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _enum(name: str, cases: Sequence[str], **aliases: str) -> type[EnumAttr]:
    words = tuple(cases)
    title = "".join(part.title() for part in name.split("_")) + "Attr"
    body = {
        "name": f"pto.{name}",
        "cases": words,
        "aliases": aliases,
        "__module__": __name__,
        "__doc__": f"#pto.{name}",
    }
    return irdl_attr_definition(type(title, (EnumAttr,), body))


ENUMS: dict[str, type[EnumAttr]] = {
    name: _enum(name, cases, **aliases) for name, (cases, aliases) in ENUMERATIONS.items()
}


def plain(attr: Attribute):
    """The Python value of an enumeration, boolean, integer or string attribute."""
    if isinstance(attr, Data):
        return attr.data
    value = getattr(attr, "value", None)
    data = getattr(value, "data", None)
    if data is None:
        raise ValueError(f"attribute {attr} is not a plain value")
    width = getattr(getattr(getattr(attr, "type", None), "width", None), "data", None)
    return bool(data) if width == 1 else data
