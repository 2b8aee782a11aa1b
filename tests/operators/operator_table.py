"""Every numeric case: what `test_operators` runs and what ``python -m pypto.tools.operator_status`` counts."""

from __future__ import annotations

import cast_cases
import cross_cases
import cube_cases
import elementwise_cases
import fixpipe_cases
import fp4_cases
import fused_cases
import gather_cases
import hint_cases
import memory_cases
import mx_cases
import rank_cases
import reduction_cases
import tensor_cases
import tensor_script_cases

CASES = [
    case
    for module in (
        elementwise_cases,
        cast_cases,
        reduction_cases,
        memory_cases,
        cross_cases,
        cube_cases,
        mx_cases,
        fixpipe_cases,
        fp4_cases,
        gather_cases,
        fused_cases,
        tensor_cases,
        tensor_script_cases,
        hint_cases,
        rank_cases,
    )
    for case in module.CASES
]
