"""PTOAS's messages as diagnostics at the user's own Python lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import Diagnostic, DiagnosticSeverity, Location

_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_TRAILING_LOC = re.compile(r"\bloc\((.*)\)\s*$")
_HEAD = re.compile(
    r"^(?:loc\((?P<loc>.*?)\)|(?P<file>[^\s:][^:]*):(?P<line>\d+):(?P<column>\d+)): "
    r"(?P<kind>error|warning|note|remark): (?P<text>.*)$"
)
_BARE = re.compile(r"^(?:[\w./-]*ptoas[\w.-]*: )?(?P<kind>error|warning): (?P<text>.*)$", re.IGNORECASE)
_SEVERITY = {"error": DiagnosticSeverity.Error, "warning": DiagnosticSeverity.Warning}
_NOTE_LIMIT = 240


class _Message(NamedTuple):
    kind: str
    text: str
    span: Location | None
    pto_line: int | None


def diagnose(output: str, pto_text: str, pto_file: str) -> list[Diagnostic]:
    """Errors and warnings in PTOAS's ``output`` about the module ``pto_text`` stored in ``pto_file``.

    A message that PTOAS places in the module is moved to the ``loc`` of that line; where the line has
    none it stays in the module's file.
    """
    lines = pto_text.splitlines()
    found: list[Diagnostic] = []
    for row in output.splitlines():
        message = _parse(row.rstrip(), lines, pto_file)
        if message is None:
            continue
        if message.kind in _SEVERITY:
            notes = [f"in {pto_file}:{message.pto_line}: {_shown(lines, message.pto_line)}"] if message.pto_line else []
            severity = _SEVERITY[message.kind]
            found.append(Diagnostic(f"PTOAS: {message.text}", message.span, severity=severity, notes=notes))
        elif found:
            where = f" ({message.span})" if message.span else ""
            found[-1].notes += (_clip(message.text) + where,)
    return found


def _parse(row: str, lines: Sequence[str], pto_file: str) -> _Message | None:
    match = _HEAD.match(row)
    if match is None:
        bare = _BARE.match(row)
        return _Message(bare["kind"].lower(), bare["text"], None, None) if bare else None
    kind, text = match["kind"], match["text"]
    if match["loc"] is not None:
        return _Message(kind, text, _place(match["loc"]), None)
    line, column = int(match["line"]), int(match["column"])
    if not match["file"].endswith(".pto") or not 1 <= line <= len(lines):
        return _Message(kind, text, Location(match["file"], line, column), None)
    trailing = _TRAILING_LOC.search(lines[line - 1])
    span = _place(trailing[1]) if trailing else None
    if span is None:
        return _Message(kind, text, Location(pto_file, line, column), None)
    return _Message(kind, text, span, line)


def _place(loc: str) -> Location | None:
    """First file position in an MLIR location: of a fused or named one its first, of a call its callee."""
    match = _PLACE.search(loc)
    if match is None:
        return None
    filename = re.sub(r"\\([0-9A-Fa-f]{2}|.)", lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else m[1], match[1])
    return Location(filename, int(match[2]), int(match[3]))


def _shown(lines: Sequence[str], number: int) -> str:
    return _clip(_TRAILING_LOC.sub("", lines[number - 1]).strip())


def _clip(text: str) -> str:
    return text if len(text) <= _NOTE_LIMIT else text[: _NOTE_LIMIT - 3] + "..."
