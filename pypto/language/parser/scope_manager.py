"""Which names are bound where.

A frame is opened for a function body, a loop body or a branch; `with` regions share the frame around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import SSAViolationError
from ...ir.span import Span


class Frame:
    """The names one body binds. ``lost`` says why a name bound in a closed inner body cannot be read any more."""

    __slots__ = ("kind", "names", "yielded", "lost", "sibling")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: dict[str, Any] = {}
        self.yielded: list[str] = []
        self.lost: dict[str, tuple[str, str, Span | None]] = {}
        """name -> message, hint, where it was bound"""
        self.sibling: dict[str, Any] | None = None
        """Bindings of the other branch of the same `if`."""


class ScopeManager:
    """A stack of frames, the outermost called ``global``."""

    def __init__(self, strict_ssa: bool = False) -> None:
        self.strict_ssa = strict_ssa
        self.frames = [Frame("global")]

    @property
    def scopes(self) -> list[dict[str, Any]]:
        """The bindings of each open frame, outermost first."""
        return [f.names for f in self.frames]

    @property
    def current(self) -> Frame:
        return self.frames[-1]

    def enter_scope(self, kind: str) -> Frame:
        frame = Frame(kind)
        self.frames.append(frame)
        return frame

    def exit_scope(self) -> dict[str, Any]:
        """Close the innermost frame and return its bindings."""
        if len(self.frames) == 1:
            raise RuntimeError("Cannot exit global scope")
        return self.frames.pop().names

    def current_scope_type(self) -> str:
        return self.frames[-1].kind

    def in_scope_type(self, kind: str) -> bool:
        """Whether any open frame is of ``kind``."""
        return any(f.kind == kind for f in self.frames)

    def define_var(self, name: str, value: Any, allow_redef: bool = False, span: Span | None = None) -> None:
        """Bind ``name`` in the innermost frame. SSAViolationError for a second binding under ``strict_ssa``."""
        frame = self.frames[-1]
        if self.strict_ssa and not allow_redef and name in frame.names:
            raise SSAViolationError(
                f"Variable '{name}' is already defined",
                span,
                hint=f"give the new value a name of its own: {name}_1 = ..",
            )
        frame.names[name] = value
        frame.lost.pop(name, None)

    def lookup_var(self, name: str) -> Any | None:
        """What ``name`` is bound to, innermost frame first; None when it is not bound."""
        for frame in reversed(self.frames):
            if name in frame.names:
                return frame.names[name]
            if name in frame.lost:
                return None
        return None

    def twin(self, name: str) -> Any | None:
        """What the other branch of an enclosing `if` binds ``name`` to."""
        for frame in reversed(self.frames):
            if frame.sibling is not None and name in frame.sibling:
                return frame.sibling[name]
        return None

    def is_defined(self, name: str) -> bool:
        return self.lookup_var(name) is not None

    def why_lost(self, name: str) -> tuple[str, str, Span | None] | None:
        """Why a name that was bound in an inner body cannot be read here."""
        for frame in reversed(self.frames):
            if name in frame.lost:
                return frame.lost[name]
        return None

    def names(self) -> Iterator[str]:
        """Every readable name, innermost frame first."""
        for frame in reversed(self.frames):
            yield from frame.names

    def mark_yielded(self, name: str) -> None:
        self.frames[-1].yielded.append(name)

    def get_yielded_vars(self) -> list[str]:
        return list(self.frames[-1].yielded)


__all__ = ["Frame", "SSAViolationError", "ScopeManager"]
