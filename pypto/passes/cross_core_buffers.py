"""Buffers a kernel reserves for cross-core pipes: where they lie, and what to say of them when memory is full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..backend.formats import round_up
from ..backend.target import Target
from ..errors import KernelValueError
from ..ir.enums import FunctionType, MemorySpace
from ..ir.program import Function
from ..ir.visitor import find_calls

RESERVE: Final = "system.reserve_buffer"
_AUTO: Final = -1
_CORE_SUFFIXES: Final = ("_aic", "_aiv")
_RING_SUFFIXES: Final = ("_v2c_slot_buffer", "_c2v_slot_buffer")


class Reserved(NamedTuple):
    """The address of each reservation that had none, by the id of its call; the first free byte of each memory."""

    bases: Mapping[int, int]
    ends: Mapping[MemorySpace, int]
    names: tuple[str, ...]

    def note(self, function: Function, space: MemorySpace) -> str:
        """What to add to a message that ``space`` is full."""
        end = self.ends.get(space)
        if end is None:
            return ""
        text = f". The first {end} bytes of that space are reserved by {RESERVE}, and tiles come after them"
        if not any(name in _ring_names(function) for name in self.names):
            return text
        return (
            f"{text}: this is the cross-core pipe ring. Make it shallower, with "
            "optimizations=[pl.cross_core_slot(slot_num=N)] on the pl.at(...) around it, or pass smaller tiles between "
            "the cores"
        )


NOTHING_RESERVED: Final = Reserved({}, {}, ())


def _ring_names(function: Function) -> tuple[str, ...]:
    """Names of the rings that ExpandMixedKernel reserves in this half of a kernel."""
    kernel = next((function.name.removesuffix(s) for s in _CORE_SUFFIXES if function.name.endswith(s)), function.name)
    return tuple(kernel + suffix for suffix in _RING_SUFFIXES)


def reserve(function: Function, target: Target) -> Reserved:
    """Place the reservations of ``function``: those that name an address there, the others after what came before.

    Raises KernelValueError when two overlap.
    """
    space = MemorySpace.Mat if function.func_type is FunctionType.AIC else MemorySpace.Vec
    unit = target.memories[space].alignment
    bases: dict[int, int] = {}
    taken: list[tuple[int, int, str]] = []
    end = 0
    for node in find_calls(function.body, RESERVE):
        name, size, base = node.kwargs["name"], node.kwargs["size"], node.kwargs.get("base", _AUTO)
        if base == _AUTO:
            base = bases[id(node)] = round_up(end, unit)
        for start, stop, other in taken:
            if base < stop and start < base + size:
                raise KernelValueError(
                    f"overlapping reserve_buffer ranges: '{name}' at {base}..{base + size} and '{other}' at "
                    f"{start}..{stop}",
                    node.span,
                    "leave base out, and the compiler chooses it",
                )
        taken.append((base, base + size, name))
        end = max(end, base + size)
    return Reserved(bases, {space: round_up(end, unit)} if taken else {}, tuple(name for _, _, name in taken))
