"""Every case of the table, for every dtype its operator takes on each target; every other dtype is refused."""

import pytest
from operator_harness import TARGETS
from operator_table import CASES
from operator_values import NUMPY

from pypto.errors import ParserError

ALL = [
    pytest.param(case, dtype, target, id=f"{case.id}-{dtype.name}-{target.module_arch}")
    for case in CASES
    for target in TARGETS
    for dtype in case.dtypes(target)
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
