"""The C++ PTOAS writes for a kernel, made part of a larger unit."""

from __future__ import annotations

import re
from typing import Final

_DROPPED: Final = re.compile(
    r'^[ \t]*(?:#include [<"]pto/pto-inst\.hpp[>"]|using namespace pto;|set_ffts_base_addr\(.*\);)[ \t]*\n',
    re.MULTILINE,
)
_SIGNATURE: Final = re.compile(r'(?:extern "C" )?(?:__global__ )?\bAICORE\b')
_RUNTIME_TENSOR: Final = re.compile(r"\bTensor\b")
_GATHER: Final = re.compile(r"(\bMGATHER(?:<[^;()]*>)?\()([^;()]*)\)")
_ALIAS: Final = re.compile(
    r"^[ \t]*__(?:ubuf|cbuf|gm)__ [\w:]+\* (?P<name>\w+) = "
    r"(?:(?P<tile>\w+)\.data\(\)|\(__gm__ [\w:]+\*\) (?P<view>\w+));[ \t]*\n",
    re.MULTILINE,
)
_FUNCTION: Final = re.compile(r"^}[ \t]*$\n?", re.MULTILINE)


def as_static(cpp: str) -> str:
    """``cpp`` without the includes the whole unit has, its kernel a static function of it.

    The runtime, not a kernel, sets the base address of cross-core flags; the runtime's tensors are ``ChipTensor``.
    """
    text = _DROPPED.sub("", cpp)
    text = _RUNTIME_TENSOR.sub("ChipTensor", _SIGNATURE.sub("static __aicore__", text))
    if "MGATHER" in text:
        ends = [m.end() for m in _FUNCTION.finditer(text)]
        parts = [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)])]
        text = "".join(map(_gathers_of_wrappers, parts))
    return text


def _gathers_of_wrappers(function: str) -> str:
    """``MGATHER`` takes tiles and tensors: where it is given pointers into them, made for it alone, give it those."""
    aliases = {m["name"]: m for m in _ALIAS.finditer(function)}
    spent: set[str] = set()

    def restore(call: re.Match[str]) -> str:
        given = [word.strip() for word in call[2].split(",")]
        found = [aliases.get(word) for word in given]
        uses = [len(re.findall(rf"\b{word}\b", function)) for word in given]
        if any(m is not None and n != 2 for m, n in zip(found, uses)):
            return call[0]
        spent.update(word for word, m in zip(given, found) if m is not None)
        return f"{call[1]}{', '.join((m['tile'] or m['view']) if m else word for word, m in zip(given, found))})"

    changed = _GATHER.sub(restore, function)
    return _ALIAS.sub(lambda m: "" if m["name"] in spent else m[0], changed)
