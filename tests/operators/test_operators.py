"""Every case of the table, for every dtype its operator takes; every other dtype is refused."""

import pytest
from operator_harness import TARGETS
from operator_table import CASES
from operator_values import NUMPY

from pypto.errors import ParserError


def runs(case):
    """Every dtype on the 910B; on the 950 those the 910B lacks and one both have, or all where the layouts differ."""
    usual, other = (list(case.dtypes(target)) for target in TARGETS)
    common = [d for d in other if d in usual]
    more = other if case.per_target else [*common[:1], *(d for d in other if d not in usual)]
    return [(case, dtype, TARGETS[0]) for dtype in usual] + [(case, dtype, TARGETS[1]) for dtype in more]


ALL = [
    pytest.param(case, dtype, target, id=f"{case.id}-{dtype.name}-{target.module_arch}")
    for listed in CASES
    for case, dtype, target in runs(listed)
]


@pytest.mark.parametrize(("case", "dtype", "target"), ALL)
def test_it_computes_what_it_says(case, dtype, target):
    case.run(dtype, target)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.module_arch)
@pytest.mark.parametrize("case", [c for c in CASES if c.refuse is not None], ids=lambda c: c.id)
def test_other_dtypes_are_refused(case, target):
    for dtype in set(NUMPY) - set(case.dtypes(target)):
        with pytest.raises((ValueError, TypeError, ParserError)):
            case.refuse(dtype, target)


def test_the_status_table_counts_what_is_declared_written_and_tested():
    from pathlib import Path

    from pypto.tools.operator_status import statuses, table

    rows = {row.decl.name: row for row in statuses(Path(__file__).parent)}
    assert rows["tile.add"].written == rows["tile.add"].tested == {"a2a3", "a5"}
    assert rows["tile.histogram"].written == rows["tile.histogram"].tested == {"a5"}
    assert {case.op for case in CASES} <= rows.keys()
    text = table(rows.values())
    assert text.splitlines()[0].split() == ["level", "operators", "PTO", "on", "Ascend910B", "PTO", "on", "Ascend950",
                                            "numeric", "cases"]  # fmt: skip
    assert "with PTO but without numeric cases: " in text
