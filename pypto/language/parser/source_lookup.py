"""Source lines of a class, from the one parse its file gets."""

from __future__ import annotations

import inspect
import sys

from .source import source_file


def get_class_source_lines(cls: type) -> tuple[list[str], int]:
    """The lines of a class, decorators included, and the number of the first. OSError when there is no source."""
    return _indexed_class_source_lines(cls) or inspect.getsourcelines(cls)


def _records_own_first_line(cls: type) -> bool:
    """Whether Python noted where the class starts, which `inspect` then uses."""
    return "__firstlineno__" in vars(cls)


def _indexed_class_source_lines(cls: type) -> tuple[list[str], int] | None:
    """The lines of the first class of that qualified name; None where `inspect` knows better."""
    module = sys.modules.get(cls.__module__)
    filename = getattr(module, "__file__", None)
    if _records_own_first_line(cls) or filename is None:
        return None
    source = source_file(filename, vars(module))
    first = source.class_line(cls.__qualname__) if source is not None else None
    if source is None or first is None:
        return None
    return inspect.getblock(list(source.lines[first - 1 :])), first
