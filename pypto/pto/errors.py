"""The error of PTO text, carrying the place it is about."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.errors import KernelValueError, Location


class PtoError(KernelValueError):
    """PTO text that does not parse or verify, or does something illegal when the simulator runs it.

    ``message`` is the bare reason; ``loc`` the author's line when the operation carries a
    ``loc(..)``, else the line of the PTO text, or None when neither is known.
    """

    def __init__(
        self,
        message: str,
        span: Location | None = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: Sequence[str] | None = None,
    ) -> None:
        super().__init__(message, span, hint, note, source_lines)

    @property
    def loc(self) -> Location | None:
        return self.span
