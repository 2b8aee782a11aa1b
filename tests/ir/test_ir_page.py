"""`docs/ir.md` names every node and type there is."""

import re
from pathlib import Path

import pytest

from pypto.ir import expr, node, program, stmt, types

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ir.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`(\w+)`", PAGE))
CLASSES = [
    cls
    for module in (expr, program, stmt, types)
    for cls in vars(module).values()
    if isinstance(cls, type) and cls.__module__ == module.__name__ and issubclass(cls, node.IRNode)
    if "fields" in cls.__dict__ and cls is not stmt.Stmt
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_a_node_is_on_the_page(cls):
    assert cls.__name__ in NAMED
