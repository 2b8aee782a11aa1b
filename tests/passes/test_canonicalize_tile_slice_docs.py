"""The examples of docs/passes/canonicalize_tile_slice.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tile_slice_programs import becomes, run, untouched

import pypto.language as pl

PAGE = Path(__file__).parents[2] / "docs" / "passes" / "canonicalize_tile_slice.md"
BLOCKS = re.findall(r"```python (\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PAIRS = [(before, after) for (kind, before), (_, after) in zip(BLOCKS, BLOCKS[1:]) if kind == "before"]


def test_the_page_has_every_kind_of_example():
    assert [kind for kind, _ in BLOCKS] == ["before", "after"] * 3 + ["refused", "accepted"]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_before_becomes_after(before, after):
    becomes(pl.parse(before), pl.parse(after))


def test_refused_and_accepted():
    examples = dict(BLOCKS)
    with pytest.raises(ValueError, match="not contiguous in L0C's block layout"):
        run(pl.parse(examples["refused"]))
    untouched(pl.parse(examples["accepted"]))
