"""Running an example kernel and checking it against numpy."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from ..ir.program import Function, Program

HEADERS = ("kernel", "shapes", "instructions", "memory (KiB)", "max error", "compile ms", "simulate ms")


@dataclass
class Example:
    """A kernel, its arguments and what it must compute; the largest absolute error it may have."""

    name: str
    kernel: Function | Program
    args: Sequence[Any]
    expected: np.ndarray
    tolerance: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a run of an example measured. Times in milliseconds; ``memory`` in bytes by memory."""

    example: Example
    instructions: int
    memory: dict[str, int]
    error: float
    compile_ms: float
    simulate_ms: float

    @property
    def ok(self) -> bool:
        """Whether the result is right; a NaN is not."""
        return self.error <= self.example.tolerance

    def row(self) -> tuple[str, ...]:
        """The outcome as cells under `HEADERS`."""
        shapes = " ".join("x".join(map(str, a.shape)) for a in self.example.args if hasattr(a, "shape"))
        names = {"Vec": "UB", "Mat": "L1", "Left": "L0A", "Right": "L0B", "Acc": "L0C", "Bias": "BT"}
        memory = " ".join(f"{names.get(space, space)} {used / 1024:g}" for space, used in self.memory.items())
        figures = (f"{self.error:.2e}", f"{self.compile_ms:.1f}", f"{self.simulate_ms:.1f}")
        return (self.example.name, shapes, str(self.instructions), memory, *figures)


def run(example: Example) -> Outcome:
    """Compile and simulate an example."""
    import numpy as np

    from ..runtime import compile

    start = time.perf_counter()
    compiled = compile(example.kernel, skip_ptoas=True, **example.options)
    compiled_at = time.perf_counter()
    result = compiled(*example.args)
    done = time.perf_counter()
    difference = np.abs(np.asarray(result, np.float64) - np.asarray(example.expected, np.float64))
    memory: dict[str, int] = {}
    for spaces in compiled.memory_use().values():
        for space, (used, _) in spaces.items():
            memory[space] = max(used, memory.get(space, 0))
    return Outcome(
        example, compiled.instruction_count(), memory, float(difference.max()),
        (compiled_at - start) * 1e3, (done - compiled_at) * 1e3,
    )  # fmt: skip


def table(rows: Sequence[Sequence[str]], headers: Sequence[str] = HEADERS) -> str:
    """Rows under headers in aligned columns."""
    widths = [max(len(row[i]) for row in [headers, *rows]) for i in range(len(headers))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in [headers, *rows]]
    return "\n".join(lines)


def main(example: Example) -> None:
    """Run one example, print its figures, and exit with status 1 when its result is wrong."""
    outcome = run(example)
    print(table([outcome.row()]))
    if not outcome.ok:
        print(f"{example.name}: error {outcome.error:.3e} is above {example.tolerance:.3e}", file=sys.stderr)
        sys.exit(1)
