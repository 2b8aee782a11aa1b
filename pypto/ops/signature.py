"""Signature strings of operators: each parameter's effect and kind, and how keywords are stored.

    "in tile: tile, in offsets: dims, out output_tensor: tensor, attr atomic: AtomicType = AtomicType.None_"

- ``in`` / ``out`` / ``inout``: an expression argument whose buffer is read / overwritten / both. Every argument
  states one; an ``out`` argument may be overwritten in part. ``in*`` is one that is only given by name.
- ``attr``: a compile-time keyword; ``pos`` one that is printed by position, ``key`` one that is never given so.

Argument kinds: ``tile``, ``tensor``, ``dist`` (a tensor bound to a communication window), ``array``, ``scalar``,
``index``, ``dims`` (a list of integers or integer expressions, one ``MakeTuple``), ``ptr``, ``ctx``, ``any``; ``a|b``
accepts both (``dims|index``: one index stands for a list of it); ``scalar like x`` gives a literal the element dtype
of argument ``x``, or the dtype ``x`` names; ``element`` is a scalar that becomes an element, so that it may be an
INDEX value too; ``scalar like wide x`` leaves a floating-point literal FP32. A ``?`` suffix or a default makes a
parameter optional. Attribute kinds are Python types, enumerations of the IR, or conversions registered with
`attr_kind`; a ``+`` suffix stores the attribute even at its default, ``!`` also requires it where the IR is built
directly. ``?!`` is an argument that may be left out but not be None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

from ..dtypes import DataType


class ArgEffect(Enum):
    """What an operator does to an argument's buffer."""

    Read = 0
    Write = 1
    ReadWrite = 2


_EFFECTS = {"in": ArgEffect.Read, "out": ArgEffect.Write, "inout": ArgEffect.ReadWrite}
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter: its name, kinds (argument) or value kind (attribute), effect and default."""

    name: str
    kinds: tuple[str, ...]
    effect: ArgEffect | None
    default: Any = MISSING
    like: str | None = None
    """The argument whose element dtype a literal takes, or a dtype."""
    always: bool = False
    """Whether the attribute is stored at its default too."""
    positional: bool = False
    """Whether the attribute is printed by position."""
    stored: Any = MISSING
    """The default as it is stored."""
    required: bool = False
    """Whether `build_ir_call` requires the attribute, or None must not stand for leaving the argument out."""
    keyword_only: bool = False
    wide: bool = False
    """Whether a floating-point literal is FP32 whatever ``like`` says."""

    @property
    def is_attr(self) -> bool:
        return self.effect is None

    def shown(self, value: Any) -> Any:
        """A stored value as users write it: the name, where the kind stores a name's code."""
        names = KIND_NAMES.get(self.kinds[0])
        return names[value] if names is not None and isinstance(value, int) else value

    @property
    def optional(self) -> bool:
        return self.default is not MISSING


ATTR_KINDS: dict[str, Callable[[Any], Any]] = {}


KIND_NAMES: dict[str, Sequence[str]] = {}


def attr_kind(name: str, names: Sequence[str] | None = None) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator registering how keywords of kind ``name`` are stored. Raises ValueError or TypeError for bad ones.

    ``names`` are the names of a kind that stores codes, by code.
    """

    def register(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        if names is not None:
            KIND_NAMES[name] = names
        ATTR_KINDS[name] = convert
        return convert

    return register


def split_signature(signature: str) -> list[str]:
    if not any(c in signature for c in "(["):
        return [p.strip() for p in signature.split(",") if p.strip()]
    parts, depth, start = [], 0, 0
    for i, c in enumerate(signature):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(signature[start:i])
            start = i + 1
    parts.append(signature[start:])
    return [p.strip() for p in parts if p.strip()]


@cache
def parse_param(op: str, text: str) -> Param:
    head, _, default = text.partition("=")
    words, _, kinds = head.partition(":")
    effect, _, name = words.strip().partition(" ")
    kinds, _, like = kinds.strip().partition(" like ")
    by_name = effect == "key" or effect.endswith("*")
    effect = effect.rstrip("*")
    if not name or not kinds or effect not in (*_EFFECTS, "attr", "pos", "key"):
        raise ValueError(f"operator {op}: parameter {text!r} needs an effect (in, out, inout, attr), a name and a kind")
    value: Any = MISSING
    if default.strip():
        value = _default(default.strip())
    wide, like = like.startswith("wide "), like.removeprefix("wide ")
    names = tuple(kinds.rstrip("?!+").split("|"))
    suffix = kinds[len(kinds.rstrip("?!+")) :]
    if value is MISSING and "?" in suffix:
        value = None
    convert = ATTR_KINDS.get(names[0])
    stored = value if convert is None or value is MISSING or value is None else convert(value)
    return Param(
        name.strip(),
        names,
        _EFFECTS.get(effect),
        value,
        like.strip() or None,
        suffix in ("!", "+"),
        effect == "pos",
        stored,
        "!" in suffix,
        by_name,
        wide,
    )


_LITERALS: Final = {"None": None, "True": True, "False": False}


def _default(text: str) -> Any:
    """A default as a signature writes it: a literal, or ``Enumeration.member``."""
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] in "'\"":
        return text[1:-1]
    if text.lstrip("-").isdigit():
        return int(text)
    kind, _, member = text.partition(".")
    enumeration = DataType if kind == "DataType" else enum_names().get(kind)
    return float(text) if enumeration is None else enumeration[member]


@cache
def enum_names() -> dict[str, Any]:
    from ..ir import enums

    return {k: v for k, v in vars(enums).items() if isinstance(v, type) and issubclass(v, Enum)}
