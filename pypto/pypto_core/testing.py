"""The public names of `pypto.testing`, and the operators that tests of the registry call."""

from __future__ import annotations

import sys
from typing import NoReturn

from pypto import testing as _module
from pypto.errors import InternalError
from pypto.ops.registry import Bound, declare, no_result


def _internal(bound: Bound) -> NoReturn:
    raise InternalError(f"{bound.decl.name} always fails")


def _type(bound: Bound) -> NoReturn:
    raise TypeError(f"{bound.decl.name} always fails")


declare(
    "test.op",
    "in value: any?, attr int_attr: int = 0, attr string_attr: str = '', attr bool_attr: bool = False",
    no_result,
    "An operator with keywords of three types.",
)
declare("test.deduce_raises_internal", "in value: any", _internal, "An operator whose type rule is broken.")
declare("test.deduce_raises_type", "in value: any", _type, "An operator whose type rule refuses everything.")

sys.modules[__name__] = _module
