"""Operators that change no value: a kernel computes the same with them."""

from __future__ import annotations

from operator_harness import Case, Script, fixed
from operator_values import Array

from pypto.dtypes import DataType

_LINES = {
    "system.bar_all": "pl.system.bar_all()",
    "system.bar_v": "pl.system.bar_v()",
    "system.fence": "pl.system.fence()",
    "system.cacheinvalid": "pl.system.cacheinvalid()",
    "system.sync_src": "pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)",
    "system.sync_dst": "pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)\n"
    "pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)",
    "tile.prefetch": "pl.tile.prefetch(x0, [0, 0], [16, 64])",
    "tile.print": "pl.tile.print(t)",
}


def _copied(x: Array, y: Array) -> None:
    y[...] = x


def _case(op: str, line: str) -> Case:
    body = f"t = pl.load(x0, [0, 0], [16, 64])\n{line}\npl.store(t, [0, 0], y0)"
    return Script(op, body, [(16, 64)], [(16, 64)], _copied).case(fixed(DataType.FP32))


CASES = [_case(op, line) for op, line in _LINES.items()]
