"""Every numeric case: what `test_operators` runs and what ``python -m pypto.tools.operator_status`` counts."""

from __future__ import annotations

import elementwise_cases
import reduction_cases

CASES = [*elementwise_cases.CASES, *reduction_cases.CASES]
