"""Where in the buffer in global memory each pipe of a function has its ring."""

from __future__ import annotations

from typing import Final

from ..ir.expr import Call, Var
from ..ir.program import Function, Program, summarize
from ..ir.visitor import find_calls
from .core_affinity import SETUPS

BUFFER: Final = "__gm_pipe_buffer"
"""The parameter that is the buffer."""
_ELEMENT_BYTES: Final = 4
_BOTH_WAYS: Final = 3
_DEFAULT_SLOTS: Final = {1: 8, 2: 8, _BOTH_WAYS: 4}
"""Slots of a ring whose set-up does not say, by ``dir_mask``."""


def buffer_of(function: Function) -> Var | None:
    """The buffer parameter of a function: the last but for the contexts of windows."""
    params = function.caller_params()
    last = params[-1][0] if params else None
    return last if last is not None and last.name_hint == BUFFER else None


def without_buffer(function: Function) -> Function:
    """``function`` as its author wrote it, without the buffer; for its parameters only."""
    buffer = buffer_of(function)
    if buffer is None:
        return function
    return function.with_params((p, d) for p, d in function.directed_params() if p is not buffer)


def slots_of(setup: Call) -> int:
    """Slots of each ring of a pipe."""
    return setup.kwargs.get("slot_num") or _DEFAULT_SLOTS[setup.kwargs["dir_mask"]]


def ring_bytes(setup: Call) -> int:
    """Bytes of the rings of one pipe, one for each direction."""
    mask = setup.kwargs["dir_mask"]
    return (2 if mask == _BOTH_WAYS else 1) * slots_of(setup) * setup.kwargs["slot_size"]


def _place(setup: Call) -> tuple[int, int]:
    return setup.kwargs.get("id") or 0, setup.kwargs["dir_mask"]


def ring_offsets(function: Function) -> tuple[dict[tuple[int, int], int], int]:
    """Where each pipe's rings begin, by pipe and directions, and the size of all, in bytes.

    Both ends of a pipe find the same place, in whatever order they set up.
    """
    setups = {_place(n): n for n in find_calls(function.body, *SETUPS.values())}
    offsets: dict[tuple[int, int], int] = {}
    end = 0
    for place in sorted(setups):
        offsets[place] = end
        end += ring_bytes(setups[place])
    return offsets, end


def workspace_elements(function: Function, program: Program) -> int:
    """Elements of the buffer that one block of ``function``, a kernel or what launches some, has for its pipes."""
    called = (program.get_function(name) for name in summarize(function).callees)
    inner = [workspace_elements(f, program) for f in called if f is not None]
    return max([-(-ring_offsets(function)[1] // _ELEMENT_BYTES), *inner])


def offset_of(setup: Call, function: Function) -> int:
    """Where the rings of ``setup`` begin, in bytes."""
    return ring_offsets(function)[0][_place(setup)]
