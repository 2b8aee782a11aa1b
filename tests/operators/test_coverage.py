"""What instructions take and no numeric case runs is listed here, with the reason, and nothing else is."""

from pathlib import Path

import pytest
from operator_harness import kind_of, regions_of

from pypto.dtypes import DataType
from pypto.pto.instructions import INSTRUCTIONS
from pypto.tools.operator_status import REGIONS, combinations, lacking

D = DataType
PARTS = frozenset({"ragged", "empty"})
ALL = frozenset(REGIONS)
UNSIGNED = frozenset({D.UINT8, D.UINT16, D.UINT32})
FP8 = frozenset({D.FP8E4M3FN, D.FP8E5M2, D.FP8E8M0})

WITHOUT = [
    ("tile.scatter", UNSIGNED, ALL, "the instruction takes them with a mask, not at indices"),
    ("tile.sels", {D.BF16}, ALL, "the public API refuses it"),
    ("tile.histogram", {D.UINT32}, ALL, "a case counts UINT16, whose two bytes take every path"),
    ("tile.matmul_mx", {D.FP8E5M2}, ALL, "the public API takes FP8E4M3FN only"),
    ("tile.matmul_mx_acc", {D.FP8E5M2}, ALL, "the public API takes FP8E4M3FN only"),
    ("tile.matmul_mx_bias", {D.FP8E5M2}, ALL, "the public API takes FP8E4M3FN only"),
    ("tile.gemv_mx", {D.FP8E5M2}, ALL, "the public API takes FP8E4M3FN only"),
    ("tile.gemv_mx_acc", {D.FP8E5M2}, ALL, "the public API takes FP8E4M3FN only"),
    ("tile.gemv_mx_bias", {D.FP8E5M2}, ALL, "the public API takes FP8E4M3FN only"),
    ("tile.gather_row", FP8 | {D.INT64, D.UINT64}, ALL, "tile.full makes no tile of them to gather into"),
    ("tile.gather_row", None, PARTS, "rows are whole"),
    ("tile.tget_scale_addr", None, PARTS, "it moves nothing"),
    ("tile.quant_mx", None, PARTS, "groups are whole"),
    ("tile.random", None, ALL, "its generator is a device's, and not specified"),
    ("tile.ci", None, PARTS, "it counts through a whole tile"),
    ("tile.full", None, PARTS, "it fills a whole tile"),
    ("tile.tri", None, {"empty"}, "its region has at least one row and column"),
    ("tile.concat_idx", None, {"ragged"}, "how much is valid comes with the indices"),
    ("tile.scatter_mask", None, PARTS, "whole rows"),
    ("tile.sort32", None, PARTS, "whole lists of 32"),
    ("tile.mrgsort_format1", None, PARTS, "whole lists"),
    ("tile.mrgsort_format2", None, PARTS, "whole lists"),
]
"""Operator, dtypes (None: every one), kinds of region, and why there is no case."""


@pytest.fixture(scope="module")
def missing():
    wanted, found = combinations(Path(__file__).parent)
    return wanted - found


def excused(combination, entry):
    op, _, dtype, region = combination
    return op == entry[0] and region in entry[2] and (entry[1] is None or dtype in entry[1])


def test_what_has_no_case_has_a_reason(missing):
    left = {c for c in missing if not any(excused(c, entry) for entry in WITHOUT)}
    assert not left, lacking(left)


def test_no_reason_is_left_over(missing):
    assert [e[:2] for e in WITHOUT if not any(excused(c, e) for c in missing)] == []


def test_regions_are_read_from_the_windows_of_a_body():
    body = "a = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])\nb = pl.load(x1, [i0, 0], [16, 64])"
    assert regions_of(body, ((16, 64),)) == {"full"}
    assert regions_of(body, ((5, 64), (16, 0))) == {"full", "ragged", "empty"}
    assert regions_of("pl.load(x0, [0, 0], [16, 64], valid_shape=[m, n])", ((),)) == set()
    assert regions_of("pl.tile.full([16, 64])", ((),)) == {"full"}
    assert regions_of("pl.tile.tri(-3, [16, 64], valid_shape=[i0, i1])", ((5, 19),)) == {"ragged"}
    assert [kind_of(v, (16, 64)) for v in ((16, 64), (16, 63), (0, 64))] == ["full", "ragged", "empty"]


def test_what_an_instruction_takes_is_what_it_states():
    stated = {d for c in combinations(Path(__file__).parent)[0] if c[0] == "tile.add" for d in [c[2]]}
    assert D.FP32 in stated and D.BOOL not in stated
    assert "tadd" in INSTRUCTIONS
