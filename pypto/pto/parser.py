"""PTO text to an xDSL module, every operation knowing where it came from."""

from __future__ import annotations

import warnings

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation, TypeAttribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.mlir_lexer import MLIRTokenKind

from pypto.errors import Location

from .asm import parse_type_text, type_end
from .dialect import context
from .errors import PtoError


class PtoParser(Parser):
    """xDSL's parser with types read once for each distinct text, and a location on every operation."""

    def __init__(self, ctx: Context, text: str, filename: str) -> None:
        super().__init__(ctx, text, filename)
        self._file = StringAttr(filename)
        self._line, self._line_start = 1, 0
        self.op_start = 0
        """Where the operation being read begins."""

    def parse_optional_type(self) -> TypeAttribute | None:
        token = self._current_token
        if token.kind != MLIRTokenKind.EXCLAMATION_IDENT or not token.text.startswith("!pto."):
            return super().parse_optional_type()
        content = self.lexer.input.content
        start = token.span.start
        try:
            end = type_end(content, start)
            found = parse_type_text(content[start:end])
        except ValueError as error:
            self.raise_error(str(error), start, token.span.end)
        self._resume_from(end)
        if not isinstance(found, TypeAttribute):
            self.raise_error("expected a type", start, end)
        return found

    def parse_operation(self) -> Operation:
        start = self.pos
        location = self._text_location(start)
        self.op_start = start
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = location
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        found = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if found is None:
            self.raise_error(f"'{name}' is not an operation of PTO kernels", self.op_start, self.pos)
        return found

    def _text_location(self, position: int) -> LocationAttr:
        """Line and column of an offset; offsets only grow, so lines are counted incrementally."""
        content = self.lexer.input.content
        newlines = content.count("\n", self._line_start, position)
        if newlines:
            self._line += newlines
            self._line_start = content.rfind("\n", 0, position) + 1
        return FileLineColLoc(self._file, IntAttr(self._line), IntAttr(position - self._line_start + 1))


def location_of(op: Operation) -> Location | None:
    """Where an operation says it comes from: its ``loc(..)``, else its own line of the text."""
    found = op.location
    if isinstance(found, FileLineColLoc):
        return Location(found.filename.data, found.line.data, found.column.data)
    return None


def parse_module(text: str, filename: str = "<pto>") -> ModuleOp:
    """Parse PTO text. ``filename`` names the text in locations of operations that carry none.

    Raises PtoError with the line of the text that does not parse.
    """
    parser = PtoParser(context(), text, filename)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return parser.parse_module()
        except ParseError as error:
            span = error.span
            raise _error(text, filename, error.msg, span.start, span.end) from None
        except VerifyException as error:
            reason = str(error).strip().splitlines()[-1]
            raise _error(text, filename, reason, parser.op_start, parser.pos) from None


def _error(text: str, filename: str, message: str, start: int, end: int) -> PtoError:
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    end_column = column + max(1, end - start) if "\n" not in text[start:end] else 0
    place = Location(filename, line, column, line if end_column else 0, end_column)
    return PtoError(message, place, source_lines=text.splitlines())
