"""Names as the user wrote them."""

from __future__ import annotations

import re

from ..ir.expr import Var

_VERSION = re.compile(r"__ssa_v\d+$")


def written_name(var: Var) -> str:
    """The name of a variable without the version that conversion to SSA added."""
    return _VERSION.sub("", var.name_hint)
