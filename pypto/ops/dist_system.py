"""Distributed operators on ranks and signals: who am I, notify a peer, wait for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..dtypes import DataType
from ..ir.enums import NotifyOp, TensorLayout, WaitCmp
from ..ir.expr import is_integer
from ..ir.types import CommCtxType, ScalarType, Type
from .dist_rules import check_coordinates, check_not_negative, check_peer
from .registry import ArgEffect, Bound, Pto, declare, no_result
from .rules import scalar_result, shaped, value

_INT32_MAX: Final = 2**31 - 1

declare(
    "pld.system.world_size",
    "",
    scalar_result(DataType.INT64),
    "How many ranks run the program, on the host (INT64).",
)
declare(
    "pld.system.get_comm_ctx",
    "in dist_tensor: dist",
    lambda b: CommCtxType.get(),
    "The communication context of the window ``dist_tensor`` is a slice of.",
    pto=Pto(form="comm_ctx"),
)
declare(
    "pld.system.rank",
    "in ctx: ctx",
    scalar_result(DataType.INT32),
    "This rank's index among the ranks of ``ctx`` (INT32).",
    pto=Pto(form="comm_rank"),
)
declare(
    "pld.system.nranks",
    "in ctx: ctx",
    scalar_result(DataType.INT32),
    "How many ranks ``ctx`` has (INT32).",
    pto=Pto(form="comm_rank"),
)


def _notify_effect(kwargs: Mapping[str, Any]) -> ArgEffect:
    """Setting an element overwrites it; adding reads it too."""
    return ArgEffect.Write if kwargs.get("op", NotifyOp.AtomicAdd) == NotifyOp.Set else ArgEffect.ReadWrite


def _notify(b: Bound) -> Type:
    check_peer(b)
    check_coordinates(b, "offsets", "target")
    check_not_negative(b, "offsets")
    if not is_integer(b["value"]):
        raise b.fail(f"value must be an integer or index scalar, got {b.type('value')}")
    return no_result(b)


declare(
    "pld.system.notify",
    "inout target: dist, in peer: scalar, in offsets: dims, in value: scalar, attr op: NotifyOp+ = NotifyOp.AtomicAdd",
    _notify,
    "Add ``value`` to, or store it in, the element at ``offsets`` of the slice of ``target`` that rank ``peer`` has."
    "\n\nWhat this rank stored before is there when a wait for the value ends; what it stores later need not be. "
    "Ranks that store to one element, rather than add, must be ordered.",
    effects={"target": _notify_effect},
    pure=False,
    duplicable=False,
    pto=Pto("pto.comm.tnotify", form="notify"),
)


def _wait(b: Bound) -> Type:
    check_coordinates(b, "offsets", "signal")
    check_not_negative(b, "offsets")
    if not is_integer(b["expected"]):
        raise b.fail(f"expected must be an integer or index scalar, got {b.type('expected')}")
    return no_result(b)


declare(
    "pld.system.wait",
    "in signal: dist, in offsets: dims, in expected: scalar, attr cmp: WaitCmp!",
    _wait,
    "Block until this rank's element of ``signal`` at ``offsets`` equals (Eq) or reaches (Ge) ``expected``.\n\n"
    "What ranks stored before the notifications without which that would not be so is then there.",
    pure=False,
    pto=Pto("pto.comm.twait", form="wait"),
)


def _defer_wait(b: Bound) -> Type:
    signal = b.type("signal")
    if not signal.shape:
        raise b.fail("signal rank must be at least 1")
    if signal.dtype is not DataType.INT32:
        raise b.fail(f"signal dtype must be INT32, got {shaped(signal)}")
    if signal.layout not in (TensorLayout.ND, TensorLayout.DN):
        raise b.fail(f"signal must be laid out ND or DN, got {signal.layout.name}")
    _wait(b)
    if b["cmp"] is not WaitCmp.Ge:
        raise b.fail(
            "only supports WaitCmp.Ge: the counter may pass the value before it is polled", "cmp=pld.WaitCmp.Ge"
        )
    known = value(b["expected"])
    if known is not None and not 0 <= known <= _INT32_MAX:
        raise b.fail(f"expected must be in [0, INT32_MAX], got {known}")
    return no_result(b)


declare(
    "pld.system.defer_wait",
    "in signal: dist, in offsets: dims, in expected: scalar, attr cmp: WaitCmp!",
    _defer_wait,
    "Keep this task incomplete until this rank's INT32 counter in ``signal`` at ``offsets`` reaches ``expected``; the "
    "core does not wait.\n\n"
    "Counters and ``expected`` stay in [0, INT32_MAX] and only grow.",
    pure=False,
    pto=Pto(form="defer_wait"),
)


def _test(b: Bound) -> Type:
    _wait(b)
    return ScalarType(DataType.BOOL)


declare(
    "pld.system.test",
    "in signal: dist, in offsets: dims, in expected: scalar, attr cmp: WaitCmp!",
    _test,
    "Whether this rank's element of ``signal`` at ``offsets`` equals (Eq) or reaches (Ge) ``expected`` now, without "
    "waiting.",
    pure=False,
    pto=Pto("pto.comm.ttest", form="wait"),
)
