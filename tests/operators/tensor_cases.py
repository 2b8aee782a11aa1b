"""Numeric cases of operators on tensors: those of the tile operators, inside a region of a function."""

from __future__ import annotations

import elementwise_cases
import memory_cases
import reduction_cases
from operator_harness import Case, Vector

from pypto.backend import ASCEND910B, Target
from pypto.dtypes import DataType
from pypto.ops.registry import get_decl


def lifted(case: Case, vector: Vector) -> Case:
    """The case of the tensor operator that becomes this tile operator."""
    tensors = vector.on_tensors()

    def dtypes(target: Target) -> list[DataType]:
        return list(case.dtypes(target)) if target is ASCEND910B else []

    return tensors.case(dtypes, case.name)


def from_tiles() -> list[Case]:
    found: list[Case] = []
    seen: set[tuple[str, str]] = set()
    for case in (*elementwise_cases.CASES, *reduction_cases.CASES, *memory_cases.CASES):
        decl = get_decl(case.op.replace("tile.", "tensor."))
        if case.vector is None or decl is None or decl.tile_form != case.op or (case.op, case.name) in seen:
            continue
        seen.add((case.op, case.name))
        found.append(lifted(case, case.vector))
    return found


CASES = from_tiles()
