"""The intermediate representation as data."""

from __future__ import annotations

from ..dtypes import DataType
from .enums import *  # noqa: F403
from .enums import MemorySpace as Mem
from .expr import *  # noqa: F403
from .node import IRNode
from .program import Function, Program, is_incore_type, is_orchestration_like
from .span import Span
from .stmt import *  # noqa: F403
from .types import *  # noqa: F403
