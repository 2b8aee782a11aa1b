"""The targets of `pypto.backend` by the names PTO text uses."""

from __future__ import annotations

from functools import cache

from pypto.backend.target import Memory, Target
from pypto.backend.targets import TARGETS

from .errors import PtoError


def target_of(arch: str) -> Target:
    """The target whose ``pto.target_arch`` is ``arch``. Raises PtoError."""
    for target in TARGETS:
        if target.module_arch == arch:
            return target
    known = " or ".join(target.module_arch for target in TARGETS)
    raise PtoError(f"unknown pto.target_arch '{arch}', expected {known}")


@cache
def memories(target: Target) -> dict[str, Memory]:
    """Memories of a core by the ``loc`` of the tiles in them."""
    found: dict[str, Memory] = {}
    for memory in target.memories.values():
        found.setdefault(memory.pto_name, memory)
    return found


def memory(target: Target, loc: str) -> Memory:
    """The memory called ``loc``. Raises PtoError when the target has none of that name."""
    found = memories(target).get(loc)
    if found is None:
        raise PtoError(f"{target.module_arch} has no memory '{loc}'")
    return found


@cache
def scaling_orders(target: Target) -> frozenset[str]:
    """The ``slayout`` of tiles in the memories called scaling: boxed MX scales, plain words of the fix pipe."""
    return frozenset(m.format.slayout.name for m in target.memories.values() if m.pto_name == "scaling")


@cache
def moves(target: Target) -> dict[str, tuple[str, ...]]:
    """On-chip moves by ``loc``; copies within the vector buffer are always there."""
    names = {space: memory.pto_name for space, memory in target.memories.items()}
    found = {
        names[source]: tuple(dict.fromkeys(names[space] for space in destinations if space in names))
        for source, destinations in target.moves.items()
        if source in names
    }
    found["vec"] = ("vec", *found.get("vec", ()))
    return found
