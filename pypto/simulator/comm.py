"""Signals, transfers between ranks and prefetches as steps."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from pypto.pto import comm_ops
from pypto.pto.attrs import plain
from pypto.pto.errors import PtoError
from pypto.pto.instructions.move import COMBINE
from pypto.pto.parser import location_of
from pypto.pto.runtime import to_scalar

from .scheduler import PAUSE, Steps, Wait
from .steps import BUILDERS, Compiler, Env, Resuming, Step, guard
from .tile import CheckedTile
from .window import Window

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le,
}  # fmt: skip
_SIGNS = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def _word(op: Operation, name: str) -> str:
    """The case of an enumeration attribute."""
    return str(plain(op.attributes[name]))


def _notify(self: Compiler, op: comm_ops.Notify) -> Step:
    signal, value = self.slots_of(op.operands)
    adds = _word(op, "notifyOp") == "atomic_add"

    def notify(env: Env) -> None:
        window: Window = env[signal]
        given = to_scalar(env[value], window.dtype)
        kind = None if adds else f"sets to {given}"
        window.write(np.full(window.matrix_shape(), given), COMBINE["atomic_add" if adds else "atomic_none"], kind)

    return guard(notify, op)


def _wait(self: Compiler, op: comm_ops.WaitSignal) -> Resuming:
    signal, value = self.slots_of(op.operands)
    word = _word(op, "cmp")
    compare, sign, loc = _COMPARE[word], _SIGNS[word], location_of(op)

    def wait(env: Env) -> Steps:
        window: Window = env[signal]
        expected = env[value]
        while not compare(window.array, expected).all():
            now = ", ".join(map(str, window.array.ravel()))
            what = f"{window.buffer.name} {sign} {expected}, which is {now}"
            if window.buffer.changed is None:
                raise PtoError(f"waits for {what}: no other rank can change it", loc)
            yield Wait(window.buffer.changed, what, loc)
        _heard(window, sign, expected)

    return Resuming(wait)


def _heard(window: Window, sign: str, expected: int) -> None:
    """What a signal says has come to pass."""
    if window.buffer.strand is not None:
        window.buffer.strand.awaited(window.array, sign, expected)


def _poll(self: Compiler, op: comm_ops.PollSignal) -> Resuming:
    signal, value = self.slots_of(op.operands)
    out, word = self.slot(op.results[0]), _word(op, "cmp")
    compare = _COMPARE[word]

    def poll(env: Env) -> Steps:
        """A signal that is not there yet gives others a turn: this one is likely to ask again."""
        env[out] = bool(compare(env[signal].array, env[value]).all())
        if env[out]:
            _heard(env[signal], _SIGNS[word], env[value])
        else:
            yield PAUSE

    return Resuming(poll)


def _transfer(self: Compiler, op: Operation) -> Step:
    dst, src, *stages = self.slots_of(op.operands)
    combine = COMBINE[_word(op, "atomicType")] if "atomicType" in op.attributes else None

    def move(env: Env) -> None:
        target, source = env[dst], env[src]
        if target.shape != source.shape:
            raise PtoError(f"'{op.name}': 'dst' is {target.shape} elements, but 'src' is {source.shape}")
        for stage in stages:
            _check_chunk(op.name, source.matrix_shape(), env[stage].valid)
        data = np.array(source.read())
        if combine is not None or not target.is_same(source):
            target.write(data, combine)
        for stage in stages:
            if isinstance(env[stage], CheckedTile):
                env[stage].forget()

    return guard(move, op)


def _check_chunk(name: str, whole: tuple[int, int], chunk: tuple[int, int]) -> None:
    if 0 in chunk and 0 not in whole:
        raise PtoError(f"'{name}': a staging tile of {chunk[0]}x{chunk[1]} valid elements moves nothing")


def _handle(self: Compiler, op: Operation) -> Step:
    """A context, session or event: nothing but that there is one."""
    out = self.slot(op.results[0])

    def make(env: Env) -> None:
        env[out] = True

    return make


BUILDERS.update(
    {
        comm_ops.Notify: _notify,
        comm_ops.WaitSignal: _wait,
        comm_ops.PollSignal: _poll,
        comm_ops.Put: _transfer,
        comm_ops.Get: _transfer,
        comm_ops.MakePrefetchContext: _handle,
        comm_ops.PrefetchSession: _handle,
        comm_ops.PrefetchAsync: _handle,
        comm_ops.WaitEvent: _handle,
    }
)
