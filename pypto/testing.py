"""For tests of code that uses this package: raise each kind of error, read the core an operator declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from .errors import Error, InternalError
from .ir.span import Span

if TYPE_CHECKING:
    from .ir.expr import Call
    from .ops.registry import OpDecl

ERRORS: Final[dict[str, type[Exception]]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "RuntimeError": RuntimeError,
    "NotImplementedError": NotImplementedError,
    "IndexError": IndexError,
    "AssertionError": AssertionError,
    "InternalError": InternalError,
    "Error": Error,
}
"""The errors a call into the package may raise, by name."""


def raise_value_error(message: str) -> NoReturn:
    raise ValueError(message)


def raise_type_error(message: str) -> NoReturn:
    raise TypeError(message)


def raise_runtime_error(message: str) -> NoReturn:
    raise RuntimeError(message)


def raise_not_implemented_error(message: str) -> NoReturn:
    raise NotImplementedError(message)


def raise_index_error(message: str) -> NoReturn:
    raise IndexError(message)


def raise_assertion_error(message: str) -> NoReturn:
    raise AssertionError(message)


def raise_generic_error(message: str) -> NoReturn:
    raise Error(message)


def raise_internal_error(message: str) -> NoReturn:
    raise InternalError(message)


def raise_internal_error_with_span(message: str, filename: str, line: int, column: int) -> NoReturn:
    """The failure of an internal check on a node from ``filename``."""
    raise InternalError(f"Check failed: {message}", Span(filename, line, column))


def rethrow_with_message(kind: str, original: str, replacement: str) -> NoReturn:
    """Raise the error named ``kind`` with message ``original``, catch it, and raise one of its class with another."""
    cls = ERRORS[kind]
    try:
        raise cls(original)
    except cls as error:
        raise cls(replacement) from error


def get_declared_core_affinity(op_name: str) -> str | None:
    """The core an operator must run on, ``vector`` or ``cube``; None when its operands decide. Raises ValueError."""
    from .ops.registry import Core

    core = _decl(op_name).core
    return core.value if core in (Core.VECTOR, Core.CUBE) else None


def classify_call_affinity(call: Call) -> str:
    """Where a call runs: ``cube``, ``vector``, ``shared`` (either) or ``mixed`` (a tile goes from one to the other)."""
    from .passes.core_affinity import call_affinity

    return (call_affinity(call).name or "").lower()


def is_no_duplicate_op(op_name: str) -> bool:
    """Whether a second core of the group must not run a copy of the operator. Raises ValueError for an unknown one."""
    return not _decl(op_name).duplicable


def _decl(op_name: str) -> OpDecl:
    from .ops.query import get_op

    return get_op(op_name).decl
