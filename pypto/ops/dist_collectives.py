"""Collectives over the slices of a window: every rank calls them, and the value is the window as it then is.

Each synchronises through an INT32 ``signal`` window, which is all zero again when it ends. Whether the barrier of
all ranks comes first or last says what else has to be waited for.
"""

from __future__ import annotations

from typing import Any, Final

from ..ir.enums import ReduceOp
from ..ir.types import Type
from .dist_rules import check_reduced, check_same_elements, check_signal, may_equal
from .registry import Bound, declare
from .rules import shaped, value

_LAST: Final = (
    "Waits for all ranks at the end, not first: what this rank still reads of ``target`` must be read before a barrier "
    "ahead of the call, or peers notified."
)
_FACTS: Final[dict[str, Any]] = {"pure": False}


def _allreduce(b: Bound) -> Type:
    check_reduced(b, "src")
    if b["signal"] is not None:
        check_signal(b)
    return b.type("src")


declare(
    "pld.tensor.allreduce",
    "inout src: dist, inout signal: dist?!, key op: ReduceOp+ = ReduceOp.Sum, key mode: str = 'mesh', "
    "key core_num: CoreCount+ = 1",
    _allreduce,
    "Combine the slices of all ranks element by element, in place: every rank then holds the result.\n\n"
    "Waits for all ranks before it reads and before it writes: nothing more has to be waited for. "
    "``mode`` is ``mesh`` (``signal`` [ranks, core_num], or left out on the host) or ``ring`` (``signal`` "
    "[2 * (ranks - 1), ranks]); ``core_num`` is how many vector cores of each rank share the work, on the host.",
    reuses="src",
    **_FACTS,
)


def _barrier(b: Bound) -> Type:
    check_signal(b)
    return b.type("signal")


declare(
    "pld.tensor.barrier",
    "inout signal: dist",
    _barrier,
    "Wait until every rank is here; what ranks wrote to windows before is then seen by all.",
    reuses="signal",
    **_FACTS,
)


def _broadcast(b: Bound) -> Type:
    check_signal(b)
    if b["root"] < 0:
        raise b.fail(f"root must be a rank, at least 0, got {b['root']}")
    return b.type("target")


declare(
    "pld.tensor.broadcast",
    "inout target: dist, inout signal: dist, key root: int!",
    _broadcast,
    "Copy rank ``root``'s slice of ``target`` to every rank's.\n\n"
    "Waits for all ranks first, not at the end: ``root`` may write its slice again after a barrier, or when all have "
    "notified it.",
    reuses="target",
    **_FACTS,
)


def _reduce_scatter(b: Bound) -> Type:
    check_signal(b)
    check_reduced(b, "target")
    if b["op"] is not ReduceOp.Sum:
        raise b.fail(f"supports ReduceOp.Sum only, got ReduceOp.{b['op'].name}", "reduce with pld.tensor.allreduce")
    return b.type("target")


declare(
    "pld.tensor.reduce_scatter",
    "inout target: dist, inout signal: dist, key op: ReduceOp+ = ReduceOp.Sum",
    _reduce_scatter,
    "Add up the ranks' slices [ranks, n] row by row: row ``r`` of rank ``r``'s slice then holds its sum.\n\n"
    "Waits for all ranks before it reads and before it writes: nothing more has to be waited for.",
    reuses="target",
    **_FACTS,
)


def _check_rows(b: Bound, source: str, *, whole: bool) -> None:
    """Rows of ``source`` fit the target's: as long, and, with ``whole``, as many."""
    x, y = b.type(source), b.type("target")
    first = 0 if whole else 1
    if len(x.shape) != len(y.shape) or not all(map(may_equal, x.shape[first:], y.shape[first:])):
        raise b.fail(f"{source} {shaped(x)} does not fit target {shaped(y)}")


def _allgather(b: Bound) -> Type:
    check_signal(b)
    check_same_elements(b, "local_data", "target")
    _check_rows(b, "local_data", whole=False)
    return b.type("target")


declare(
    "pld.tensor.allgather",
    "in local_data: tensor|tile, out target: dist, inout signal: dist",
    _allgather,
    "Write this rank's row ``local_data`` [1, n] into every rank's ``target`` [ranks, n].\n\n"
    f"{_LAST}",
    reuses="target",
    **_FACTS,
)


def _all_to_all(b: Bound) -> Type:
    check_signal(b)
    check_same_elements(b, "input", "target")
    _check_rows(b, "input", whole=True)
    return b.type("target")


declare(
    "pld.tensor.all_to_all",
    "in input: tensor, out target: dist, inout signal: dist",
    _all_to_all,
    "Row ``d`` of ``input`` [ranks, n] becomes row ``r`` of rank ``d``'s ``target``, r this rank.\n\n"
    f"{_LAST}",
    reuses="target",
    **_FACTS,
)


def _check_cells(b: Bound, name: str) -> None:
    """Raise OpError unless ``name`` holds one INT32 for each rank, [ranks, 1]."""
    check_signal(b, name)
    shape = b.type(name).shape
    if len(shape) != 2:
        raise b.fail(f"{name} must be 2D, [ranks, 1], got {shaped(b.type(name))}")
    if value(shape[1]) not in (None, 1):
        raise b.fail(f"{name} second dimension must be 1, got {shaped(b.type(name))}")


def _check_counts(b: Bound) -> None:
    counts, ranks = b.type("send_counts"), b.type("signal").shape[0]
    check_signal(b, "send_counts")
    if len(counts.shape) not in (1, 2) or (len(counts.shape) == 2 and value(counts.shape[1]) not in (None, 1)):
        raise b.fail(f"send_counts must be 1D, [ranks], or [ranks, 1], got {shaped(counts)}")
    if not may_equal(counts.shape[0], ranks):
        raise b.fail(f"send_counts dim 0 must be the rank count {value(ranks)}, got {shaped(counts)}")
    if not may_equal(b.type("recv_counts").shape[0], ranks):
        raise b.fail(f"recv_counts dim 0 must be the rank count {value(ranks)}, got {shaped(b.type('recv_counts'))}")


def _all_to_all_v(b: Bound) -> Type:
    _check_cells(b, "signal")
    _check_cells(b, "recv_counts")
    _check_counts(b)
    check_same_elements(b, "input", "target")
    target = b.type("target")
    if len(target.shape) != 2:
        raise b.fail(f"target must be 2D, [ranks * rows, n], got {shaped(target)}")
    _check_rows(b, "input", whole=True)
    ranks, rows = value(b.type("signal").shape[0]), value(target.shape[0])
    if ranks is not None and rows is not None and (ranks < 1 or rows % ranks):
        raise b.fail(f"the rank count {ranks} must divide target dim 0, {rows}: each rank has as many rows")
    return target


declare(
    "pld.tensor.all_to_all_v",
    "in input: tensor, out target: dist, inout signal: dist, in send_counts: tensor, out recv_counts: dist",
    _all_to_all_v,
    "As ``all_to_all`` with blocks of rows, ``input`` and ``target`` [ranks * rows, n], of which ``send_counts`` says "
    "how many count.\n\n"
    "Whole blocks are moved; ``recv_counts`` [ranks, 1] then holds how many rows of each rank's block to read. "
    f"{_LAST}",
    reuses="target",
    **_FACTS,
)
