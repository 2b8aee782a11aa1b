"""Operators that only passes write: the runtime's own collectives, and the calls distributed orchestration ends as."""

from __future__ import annotations

from typing import Any, Final

from ..ir.types import ScalarType, Type
from ..dtypes import DataType
from .registry import Bound, declare, get_decl, no_result

_BUILTINS: Final = {
    "allreduce": ("inout src: dist, inout signal: dist", "key op: ReduceOp+ = ReduceOp.Sum, key core_num: CoreCount+ = 1"),
    "allreduce_ring": ("inout src: dist, inout signal: dist", "key op: ReduceOp+ = ReduceOp.Sum"),
    "barrier": ("inout signal: dist", None),
    "broadcast": ("inout target: dist, inout signal: dist", "key root: int!"),
    "reduce_scatter": ("inout target: dist, inout signal: dist", "key op: ReduceOp+ = ReduceOp.Sum"),
    "allgather": ("in local_data: dist, inout target: dist, inout signal: dist", ""),
    "all_to_all": ("in input: dist, inout target: dist, inout signal: dist", ""),
    "all_to_all_v": (
        "in input: dist, inout target: dist, inout signal: dist, in send_counts: dist, inout recv_counts: dist",
        "",
    ),
}
