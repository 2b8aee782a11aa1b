"""Operators that change no value: a kernel computes the same with them, on every dtype and valid region they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from operator_harness import Case, Script, fixed, instruction_dtypes
from operator_values import Array, mixed, raw

from pypto.backend import Target
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
_RAW = (DataType.UINT64, DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.FP8E8M0)


def _copied(x: Array, m: int, n: int, y: Array) -> None:
    y[:m, :n] = x[:m, :n]


def _case(op: str, line: str, dtypes: Callable[[Target], Iterable[DataType]], bits: bool = False) -> Case:
    body = f"t = pl.load(x0, [0, 0], [16, 64], valid_shape=[i0, i1])\n{line}\npl.store(t, [0, 0], y0)"
    runs = ((16, 64), (5, 19), (0, 64))
    script = Script(op, body, [(16, 64)], [(16, 64)], _copied, runs, make=raw if bits else mixed)
    return script.case(dtypes, "bits" if bits else "")


def _stated(op: str, operand: str) -> Callable[[Target], Iterable[DataType]]:
    return lambda target: instruction_dtypes(op, target, operand)


def _moved(target: Target) -> Iterable[DataType]:
    """What is loaded and stored without being looked at, beyond what arithmetic has."""
    return _RAW if target.module_arch == "a5" else _RAW[:1]


_PREFETCHES = ("prefetch.make_context", "prefetch.async_prefetch", "prefetch.session", "prefetch.wait")
_PREFETCHED = """ctx = pl.prefetch.make_context()
event = pl.prefetch.async_prefetch(x0, ctx)
pl.prefetch.wait(event, pl.prefetch.session(ctx))
pl.store(pl.load(x0, [0, 0], [1, 256]), [0, 0], y0)"""


def _row(x: Array, y: Array) -> None:
    y[...] = x


_DTYPES = {"tile.prefetch": _stated("tile.prefetch", "dst"), "tile.print": _stated("tile.print", "src")}
CASES = [
    *(_case(op, line, _DTYPES.get(op, fixed(DataType.FP32))) for op, line in _LINES.items()),
    _case("tile.prefetch", _LINES["tile.prefetch"], _moved, bits=True),
    *(_case(op, "", _moved, bits=True) for op in ("tile.load", "tile.store")),
    *(Script(op, _PREFETCHED, [(1, 256)], [(1, 256)], _row).case(fixed(DataType.FP32)) for op in _PREFETCHES),
]
