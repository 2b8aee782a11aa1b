"""On how many vector cores of a group a kernel runs."""

from __future__ import annotations

from typing import Final

from ..backend.target import Target
from ..ir.program import Function, summarize
from ..ir.visitor import find_calls
from .core_affinity import POPS, PUSHES, Affinity

_CROSSINGS: Final = (PUSHES[Affinity.VECTOR], POPS[Affinity.VECTOR])


def vector_lanes(function: Function, target: Target) -> int:
    """1, or all vector cores of a group: when the function says so, or a pipe it uses needs them all.

    A pipe that splits tiles hands each lane its share; where a target's pipes count every lane's signal
    (``no_split_dual_aiv_dispatch``), any pipe needs them all.
    """
    said = function.attrs.get("dual_aiv_dispatch")
    if said is not None:
        return target.vectors_per_group if said else 1
    if summarize(function).ops.isdisjoint(_CROSSINGS):
        return 1
    splits = (call.kwargs.get("split", 0) for call in find_calls(function, *_CROSSINGS))
    if target.quirks.no_split_dual_aiv_dispatch or any(splits):
        return target.vectors_per_group
    return 1
