"""Every error a user can see, and how it is shown: message, place, source line, caret, hint.

Wrong kernels and wrong arguments raise a `Diagnosed` error, which is also a ValueError, TypeError or
parser error. A broken invariant of the compiler itself raises `InternalError`. Nothing here imports
the IR: a span is any object, or mapping, with ``filename``, ``begin_line`` and ``begin_column``,
and optionally ``end_line`` and ``end_column``. Lines and columns count from 1, columns in characters;
the end column is the first one after the construct. Values below 1 mean unknown.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, NoReturn


class DiagnosticSeverity(Enum):
    Error = 0
    Warning = 1
    PerfHint = 2


_LABELS = {
    DiagnosticSeverity.Error: ("Error", "31"),
    DiagnosticSeverity.Warning: ("Warning", "33"),
    DiagnosticSeverity.PerfHint: ("Performance hint", "36"),
}
_TOKEN = re.compile(r"\w+(?:\.[^\W\d]\w*)*")
_INLINE_LIMIT = 50


class Location(NamedTuple):
    """A span that needs no IR; 0 stands for an unknown column or end."""

    filename: str
    begin_line: int
    begin_column: int = 0
    end_line: int = 0
    end_column: int = 0

    @classmethod
    def of(cls, span: object) -> Location | None:
        """Location of a span; None when there is no span, or it does not know its line."""
        if span is None or isinstance(span, Location):
            return span
        names = ("begin_line", "begin_column", "end_line", "end_column")
        if isinstance(span, Mapping):
            filename = span.get("filename")
            line, column, end_line, end_column = (span.get(name) or 0 for name in names)
        else:
            filename = getattr(span, "filename", None)
            line, column, end_line, end_column = (getattr(span, name, 0) or 0 for name in names)
        if line < 1 or not filename:
            return None
        return cls(str(filename), line, max(column, 0), max(end_line, 0), max(end_column, 0))

    def __str__(self) -> str:
        column = f":{self.begin_column}" if self.begin_column else ""
        return f"{self.filename}:{self.begin_line}{column}"

    def source_line(self, source_lines: Sequence[str] | None = None) -> str | None:
        """The line itself: from the file when it can be read, else from ``source_lines`` (line 1 first)."""
        linecache.checkcache(self.filename)
        text = linecache.getline(self.filename, self.begin_line)
        if not text and source_lines is not None and self.begin_line <= len(source_lines):
            text = source_lines[self.begin_line - 1]
        return text.rstrip("\r\n") or None


class Diagnostic:
    """One finding about the user's program.

    ``hint`` says what would be accepted; ``notes`` add facts. ``rule_name`` and ``error_code`` name
    the verifier rule that found it, ``hint_code`` the performance rule.
    """

    __slots__ = (
        "message",
        "severity",
        "span",
        "hint",
        "notes",
        "source_lines",
        "rule_name",
        "error_code",
        "hint_code",
    )

    def __init__(
        self,
        message: str,
        span: object = None,
        *,
        severity: DiagnosticSeverity = DiagnosticSeverity.Error,
        hint: str | None = None,
        notes: Sequence[str] = (),
        source_lines: Sequence[str] | None = None,
        rule_name: str = "",
        error_code: int = 0,
        hint_code: str = "",
    ) -> None:
        self.message = message
        self.severity = severity
        self.span = span
        self.hint = hint
        self.notes = tuple(notes)
        self.source_lines = source_lines
        self.rule_name = rule_name
        self.error_code = error_code
        self.hint_code = hint_code

    @property
    def location(self) -> Location | None:
        return Location.of(self.span)

    def __repr__(self) -> str:
        return f"Diagnostic({self.message!r}, {self.location}, {self.severity.name})"

    def __str__(self) -> str:
        return self.render()

    def render(self, color: bool = False, *, inline: bool = False) -> str:
        """Text for a terminal; ``inline`` repeats the first sentence beside the caret when it is short."""
        paint = _ansi if color else _plain
        label, code = _LABELS[self.severity]
        rule = f"[{self.rule_name}]" if self.rule_name else ""
        return f"{paint(f'{label}{rule}:', code)} {paint(self.message, '1')}{self.render_body(color, inline=inline)}"

    def render_body(self, color: bool = False, *, inline: bool = False) -> str:
        """What follows the message: place, source line with caret, hint, notes. Empty when none is known."""
        paint = _ansi if color else _plain
        location = self.location
        gutter = " " * (len(str(location.begin_line)) if location else 1)
        rows: list[str] = []
        if location is not None:
            rows.append(f"{gutter}{paint('-->', '34')} {location}")
            text = location.source_line(self.source_lines)
            if text is not None and text.strip():
                pad, width = _caret(text, location)
                remark = f" {_first_sentence(self.message)}".rstrip() if inline else ""
                bar = paint("|", "34")
                rows.append(f"{gutter} {bar}")
                rows.append(f"{paint(str(location.begin_line), '34')} {bar} {text}")
                rows.append(f"{gutter} {bar} {pad}{paint('^' * width + remark, _LABELS[self.severity][1])}")
        if self.hint:
            rows.append(f"{gutter} {paint('= hint:', '32')} {self.hint}")
        rows.extend(f"{gutter} {paint('= note:', '34')} {note}" for note in self.notes)
        return "".join(f"\n{row}" for row in rows)


def _plain(text: str, _code: str) -> str:
    return text


def _ansi(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m"


def token_length(line: str, index: int) -> int:
    """Length of the dotted name at 0-based ``index`` of ``line``; 1 when no name starts there."""
    match = _TOKEN.match(line, index)
    return match.end() - index if match else 1


def _caret(line: str, location: Location) -> tuple[str, int]:
    """Padding and width of the caret row under ``line``, in terminal cells."""
    start = location.begin_column - 1
    if not 0 <= start < len(line):
        start = len(line) - len(line.lstrip())
        end = len(line)
    elif location.end_line > location.begin_line:
        end = len(line)
    elif location.end_column > location.begin_column:
        end = min(location.end_column - 1, len(line))
    else:
        end = start + token_length(line, start)
    # Tabs are kept, so that they expand alike in both rows.
    pad = "".join("\t" if char == "\t" else " " * _cells(char) for char in line[:start])
    return pad, sum(map(_cells, line[start:end])) or 1


def _cells(char: str) -> int:
    if char < "\u1100":
        return 1
    from unicodedata import east_asian_width

    return 2 if east_asian_width(char) in "WF" else 1


def _first_sentence(message: str) -> str:
    sentence = re.split(r"\.(?:\s|$)|\n", message, maxsplit=1)[0]
    return sentence if len(sentence) < _INLINE_LIMIT else ""


class Error(Exception):
    """Base of the errors that have no built-in Python counterpart."""


class Diagnosed(Exception):
    """An error that knows its place in the user's source and what would be accepted instead.

    ``str()`` gives the message followed by the place, the source line with a caret, and the hint;
    ``message`` is the bare text. Instances pickle, as far as their span does.
    """

    def __init__(
        self,
        message: str,
        span: object = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: Sequence[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span: Any = span
        self.hint = hint
        self.note = note
        self.source_lines = source_lines

    @property
    def diagnostic(self) -> Diagnostic:
        notes = (self.note,) if self.note else ()
        return Diagnostic(self.message, self.span, hint=self.hint, notes=notes, source_lines=self.source_lines)

    def __str__(self) -> str:
        return self.message + self.diagnostic.render_body()


class KernelValueError(Diagnosed, ValueError):
    """A value in the kernel, or given to it, is not one the language or the target accepts."""


class KernelTypeError(Diagnosed, TypeError):
    """An argument has the wrong type, or a call the wrong arguments."""


class KernelIndexError(Diagnosed, IndexError):
    """A subscript lies outside what it indexes."""


class UnsupportedError(Diagnosed, NotImplementedError):
    """A correct program that this version, or this target, does not compile."""


class CapacityError(KernelValueError):
    """Live buffers need more bytes than the memory that must hold them has."""


class ParserError(Diagnosed, Error):
    """The source of a kernel is not in the language.

    ``span`` becomes a plain dict of ``filename``, ``begin_line``, ``begin_column``, ``end_line``,
    ``end_column``, and ``line`` and ``column`` for the begin.
    """

    def __init__(
        self,
        message: str,
        span: object = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: Sequence[str] | None = None,
    ) -> None:
        super().__init__(message, _span_dict(span), hint, note, source_lines)


class ParserSyntaxError(ParserError):
    """A construct is malformed, or stands where the language does not allow it."""


class ParserTypeError(ParserError):
    """An annotation or an expression has a type the language does not accept there."""


class UndefinedVariableError(ParserError):
    """A name is read that is not defined, or not defined on every path."""


class UnsupportedFeatureError(ParserError):
    """Valid Python that the language does not have."""


class InvalidOperationError(ParserError):
    """An operation is unknown, or refuses its arguments."""


class SSAViolationError(ParserError):
    """A name is bound twice where single assignment was asked for."""


class ScopeIsolationError(ParserError):
    """A name is used outside the scope that defines it."""


def _span_dict(span: object) -> dict[str, Any] | None:
    if span is None or isinstance(span, dict):
        return span
    line, column = getattr(span, "begin_line", 0), getattr(span, "begin_column", 0)
    return {
        "filename": str(getattr(span, "filename", "")),
        "begin_line": line,
        "begin_column": column,
        "end_line": getattr(span, "end_line", 0),
        "end_column": getattr(span, "end_column", 0),
        "line": line,
        "column": column,
    }


class DiagnosticsError(Error):
    """An error of many findings: ``diagnostics`` holds them all, ``str()`` gives the message and each of them."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message, tuple(diagnostics))
        self.message = message
        self.diagnostics = list(diagnostics)

    def __str__(self) -> str:
        return "\n".join((self.message, *(d.render() for d in self.diagnostics)))


class VerificationError(DiagnosticsError):
    """The IR does not have the properties it must have; ``diagnostics`` holds every finding."""


class InternalError(RuntimeError):
    """A broken invariant: a defect of the compiler, never of the kernel."""

    def __init__(self, message: str = "", span: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span

    def __str__(self) -> str:
        location = Location.of(self.span)
        return self.message if location is None else f"{self.message} [{location}]"


BUG_CLASS_EXCEPTIONS: tuple[type[Exception], ...] = (InternalError, AssertionError)
"""What a handler that wraps user errors must let through unchanged."""

_DIAGNOSED: dict[type[Exception], type[Diagnosed]] = {
    ValueError: KernelValueError,
    TypeError: KernelTypeError,
    IndexError: KernelIndexError,
    NotImplementedError: UnsupportedError,
}


def user_error(
    cls: type[Exception], message: str, span: object = None, hint: str | None = None, note: str | None = None
) -> Diagnosed:
    """An error to raise for a mistake in the user's program.

    ``cls`` is a `Diagnosed` class, or the built-in ValueError, TypeError, IndexError or
    NotImplementedError, for which the subclass carrying a diagnostic is used.
    """
    diagnosed = cls if issubclass(cls, Diagnosed) else _DIAGNOSED[cls]
    return diagnosed(message, span, hint, note)


def message_of(error: BaseException) -> str:
    """The bare message of an error, without place, source line or hint."""
    return error.message if isinstance(error, (Diagnosed, InternalError)) else str(error)


def check(condition: object, message: str) -> None:
    """Raises ValueError with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


def internal_check(condition: object, message: str) -> None:
    """Raises InternalError with ``message`` unless ``condition`` holds."""
    if not condition:
        raise InternalError(message)


def internal_check_span(condition: object, message: str, span: object) -> None:
    """Raises InternalError naming the place of ``span`` unless ``condition`` holds."""
    if not condition:
        raise InternalError(message, span)


def raise_internal_error_with_span(message: str, span: object) -> NoReturn:
    raise InternalError(message, span)


class ErrorRenderer:
    """Renders a `Diagnosed` error for a terminal, the message repeated beside the caret when short."""

    def __init__(self, use_color: bool = True) -> None:
        self.use_color = use_color

    def render(self, error: Diagnosed) -> str:
        return error.diagnostic.render(self.use_color, inline=True)

    @staticmethod
    def _calculate_token_length(line: str, index: int) -> int:
        return token_length(line, index)
