"""The examples of docs/passes/block_nz_tensor_views.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.layouts import from_nz, to_nz

PAGE = Path(__file__).parents[2] / "docs" / "passes" / "block_nz_tensor_views.md"
BLOCKS = re.findall(r"```python (\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
PAIRS = [(before, after) for (kind, before), (_, after) in zip(BLOCKS, BLOCKS[1:]) if kind == "before"]


def prepared(source):
    return passes.flatten_tile_nd_to_2d()(passes.convert_to_ssa()(pl.parse(source)))


def test_the_page_has_every_kind_of_example():
    assert [kind for kind, _ in BLOCKS] == ["before", "after"] * 2 + ["refused", "accepted", "arrays"]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_before_becomes_after(before, after):
    made = passes.block_nz_tensor_views()(prepared(before))
    ir.assert_structural_equal(made, passes.convert_to_ssa()(pl.parse(after)))


def test_refused_and_accepted():
    examples = dict(BLOCKS)
    with pytest.raises(ValueError, match="'n0' of its rows is not provably a multiple of 16"):
        passes.block_nz_tensor_views()(prepared(examples["refused"]))
    assert passes.block_nz_tensor_views()(prepared(examples["accepted"]))


def test_arrays():
    exec(dict(BLOCKS)["arrays"], {"np": np, "to_nz": to_nz, "from_nz": from_nz})
