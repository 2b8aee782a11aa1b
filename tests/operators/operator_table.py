"""Every numeric case: what `test_operators` runs and what ``python -m pypto.tools.operator_status`` counts."""

from __future__ import annotations

import cast_cases
import cube_cases
import elementwise_cases
import memory_cases
import reduction_cases

CASES = [*elementwise_cases.CASES, *cast_cases.CASES, *reduction_cases.CASES, *memory_cases.CASES, *cube_cases.CASES]
