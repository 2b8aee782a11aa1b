"""What one run of a kernel did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SimReport:
    """``instructions``: times each ran, by mnemonic. ``high_water``: bytes used of each memory, by ``loc``.

    ``cycles``: estimated busy cycles of each pipe, from the costs in the instruction table; pipes
    overlap on the machine, so a run takes at least the largest and at most the sum.
    """

    instructions: dict[str, int]
    high_water: dict[str, int]
    cycles: dict[str, float]

    @property
    def total_instructions(self) -> int:
        return sum(self.instructions.values())
