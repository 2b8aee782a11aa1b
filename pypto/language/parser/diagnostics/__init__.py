"""Parser errors and how they are shown, under their public import path."""

from __future__ import annotations

from ....errors import message_of as concise_error_message
from .exceptions import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from .renderer import ErrorRenderer

__all__ = [
    "ErrorRenderer",
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "ScopeIsolationError",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "concise_error_message",
]
