"""Operators that only passes write: the runtime's own collectives, and the calls distributed orchestration ends as."""

from __future__ import annotations

from typing import Any, Final

from ..dtypes import DataType
from ..ir.types import ScalarType, Type
from .dist_rules import check_reduced, check_signal
from .registry import Bound, declare, no_result

_OP = "key op: ReduceOp+ = ReduceOp.Sum"
_BUILTINS: Final = {
    "allreduce": f"inout src: dist, inout signal: dist, {_OP}, key dtype: DataType!, key core_num: CoreCount+ = 1",
    "allreduce_ring": f"inout src: dist, inout signal: dist, {_OP}, key dtype: DataType!",
    "barrier": "inout signal: dist",
    "broadcast": "inout target: dist, inout signal: dist, key root: int!, key dtype: DataType!",
    "reduce_scatter": f"inout target: dist, inout signal: dist, {_OP}, key dtype: DataType!",
    "allgather": "in local_data: dist, out target: dist, inout signal: dist, key dtype: DataType!",
    "all_to_all": "in input: dist, out target: dist, inout signal: dist, key dtype: DataType!",
    "all_to_all_v": "in input: dist, out target: dist, inout signal: dist, in send_counts: dist, "
    "out recv_counts: dist, key dtype: DataType!",
}
_DATA: Final = ("src", "target", "input", "local_data")


def _builtin(b: Bound) -> Type:
    check_signal(b)
    for name in _DATA:
        if name in b.values and b.type(name).dtype is not b["dtype"]:
            raise b.fail(f"states dtype {b['dtype']}, but {name} holds {b.type(name).dtype}")
    if b.decl.name.startswith("builtin.tensor.allreduce"):
        check_reduced(b, "src")
    return no_result(b)


for _name, _signature in _BUILTINS.items():
    declare(
        f"builtin.tensor.{_name}",
        _signature,
        _builtin,
        f"The runtime's own ``{_name}`` of one rank, as a task of its device.",
        pure=False,
        internal=True,
    )


def _future(b: Bound) -> Type:
    return ScalarType(DataType.TASK_ID)


_DISTRIBUTED: Final[dict[str, tuple[str, Any, str]]] = {
    "make_tensor": ("in runtime: any, in count: any", no_result, "A tensor of ``count`` elements the runtime keeps."),
    "tree_reduce": ("in runtime: any, in leaves: any", no_result, "Combine ``leaves`` pair by pair."),
    "submit_worker": ("in runtime: any", _future, "Launch a worker."),
    "submit_orchestrator": ("in runtime: any", _future, "Launch an orchestrator of the next level."),
    "future_get": ("in future: any", no_result, "The result of a launch."),
}
for _name, (_signature, _rule, _doc) in _DISTRIBUTED.items():
    declare(f"dist.{_name}", _signature, _rule, _doc, pure=False, internal=True)
