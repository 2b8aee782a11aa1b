"""What a compiled program depends on besides the arguments."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from ..passes.context import current_or_default

if TYPE_CHECKING:
    from ..runtime import RunConfig


def config_key(config: RunConfig) -> Hashable:
    """Settings of the compilation: those of ``config``, and of the pass context that is active."""
    context = current_or_default()
    given = tuple((name, _hashable(value)) for name, value in sorted(config.compile_settings().items()))
    return given, context.memory_planner, context.runtime, context.enable_pypto_l0c_double_buffer


def _hashable(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
