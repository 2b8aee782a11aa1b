"""PTO enumeration attributes, ``#pto.layout<nd>`` and its other spelling ``#pto<layout nd>``."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

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

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


def _enum(name: str, cases: str | Sequence[str], **aliases: str) -> type[EnumAttr]:
    words = tuple(cases.split() if isinstance(cases, str) else cases)
    title = "".join(part.title() for part in name.split("_")) + "Attr"
    body = {
        "name": f"pto.{name}",
        "cases": words,
        "aliases": aliases,
        "__module__": __name__,
        "__doc__": f"#pto.{name}",
    }
    return irdl_attr_definition(type(title, (EnumAttr,), body))


_PRECISION = "default high_precision"

ENUMS: dict[str, type[EnumAttr]] = {
    name: _enum(name, cases, **aliases)
    for name, cases, aliases in (
        ("layout", "nd dn nz mx_a_zz mx_b_nn", {}),
        ("kernel_kind", "cube vector", {}),
        ("address_space", "zero gm mat left right acc vec bias scaling", {}),
        ("round_mode", "NONE RINT ROUND FLOOR CEIL TRUNC ODD CAST_RINT", {}),
        ("saturation_mode", "OFF ON", {}),
        (
            "cmp",
            "eq ne lt le gt ge",
            {"equal": "eq", "not_equal": "ne", "less_than": "lt", "less_equal": "le", "greater_than": "gt"},
        ),
        ("atomic_type", "atomic_none atomic_add atomic_max atomic_min", {}),
        ("relu_pre_mode", "no_relu normal_relu", {}),
        ("acc_to_vec_mode", "single_mode_vec0 single_mode_vec1 dual_mode_split_m dual_mode_split_n", {}),
        ("st_phase", "unspecified partial final", {}),
        ("acc_phase", "unspecified partial final", {}),
        ("pad_value", "null zero max min", {}),
        ("pad_mode", "PadNull PadFirstElem PadValue", {}),
        ("mask_pattern", "P0101 P1010 P0001 P0010 P0100 P1000 P1111", {}),
        ("div_precision", _PRECISION, {}),
        ("exp_precision", _PRECISION, {}),
        ("log_precision", _PRECISION, {}),
        ("sqrt_precision", _PRECISION, {}),
        ("rsqrt_precision", _PRECISION, {}),
        ("recip_precision", _PRECISION, {}),
        ("pow_precision", _PRECISION, {}),
        ("rem_precision", _PRECISION, {}),
        ("fmod_precision", _PRECISION, {}),
        (
            "pipe",
            "PIPE_S PIPE_V PIPE_M PIPE_MTE1 PIPE_MTE2 PIPE_MTE3 PIPE_ALL PIPE_MTE4 PIPE_MTE5 PIPE_V2 PIPE_FIX",
            {},
        ),
        ("event", [f"EVENT_ID{number}" for number in range(8)], {}),
    )
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
