"""How long each stage of each example takes.

    python benchmarks/compile_time.py [EXAMPLE ...]

Cold figures are of a fresh process, warm ones of a process that compiled the kernel before; every figure is the
median of 5. Verification is the cost of level BASIC over NONE.
"""

from __future__ import annotations

import importlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5
STAGES = ("parse", "passes", "verify", "codegen", "load", "simulate")

_COLD = """
import time; t0 = time.perf_counter()
import pypto.language as pl; t1 = time.perf_counter()
import sys; sys.path.insert(0, {examples!r})
module = __import__({name!r}); e = module.example(); t2 = time.perf_counter()
from pypto.runtime import compile
c = compile(e.kernel, skip_ptoas=True, dump_passes=False, **e.options); t3 = time.perf_counter()
c(*e.args); t4 = time.perf_counter()
print(t1 - t0, t2 - t1, t3 - t2, t4 - t3, t4 - t0)
"""


def median_ms(run: Callable[[], float]) -> float:
    """Median of the seconds `run` reports, in milliseconds."""
    return statistics.median(run() for _ in range(REPEATS)) * 1e3


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def cold(name: str) -> list[float]:
    """Milliseconds of import, parse, compile, first run, and all of it, in fresh processes."""
    source = _COLD.format(examples=str(ROOT / "examples"), name=name)

    def once() -> list[float]:
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=ROOT)
        return [float(x) * 1e3 for x in done.stdout.split()]

    return [statistics.median(column) for column in zip(*(once() for _ in range(REPEATS)))]


def warm(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Milliseconds of each stage, and of each pass, in this process."""
    from pypto.passes import VerificationLevel
    from pypto.runtime import compile

    module = importlib.import_module(name)
    example = module.example()

    def passes(level: VerificationLevel) -> dict[str, float]:
        runs = [compile(example.kernel, skip_ptoas=True, dump_passes=False, verification_level=level,
                        **example.options).times for _ in range(REPEATS)]  # fmt: skip
        return {stage: statistics.median(r[stage] for r in runs) * 1e3 for stage in runs[0]}

    passes(VerificationLevel.NONE)
    bare, checked = passes(VerificationLevel.NONE), passes(VerificationLevel.BASIC)
    compiled = compile(example.kernel, skip_ptoas=True, dump_passes=False, **example.options)
    compiled(*example.args)
    total, total_checked = (sum(v for k, v in d.items() if k != "codegen") for d in (bare, checked))
    stages = {
        "parse": median_ms(lambda: timed(lambda: importlib.reload(module))),
        "passes": total,
        "verify": total_checked - total,
        "codegen": bare["codegen"],
        "load": compiled.times["load"] * 1e3,
        "simulate": median_ms(lambda: timed(lambda: compiled(*example.args))),
    }
    return stages, {k: v for k, v in bare.items() if k != "codegen"}


def main() -> None:
    """Print the tables."""
    from pypto.tools.examples import table

    sys.path.insert(0, str(ROOT / "examples"))
    names = sys.argv[1:] or sorted(p.stem for p in (ROOT / "examples").glob("*.py") if "def example" in p.read_text())
    measured = {name: warm(name) for name in names}
    rows = [[name, *(f"{stages[s]:.2f}" for s in STAGES)] for name, (stages, _) in measured.items()]
    print("warm, ms\n" + table(rows, ("example", *STAGES)))
    order = list(next(iter(measured.values()))[1])
    rows = [[p, *(f"{by_pass.get(p, 0):.2f}" for _, by_pass in measured.values())] for p in order]
    print("\nwarm, each pass, ms\n" + table(rows, ("pass", *names)))
    rows = [[name, *(f"{ms:.0f}" for ms in cold(name))] for name in names]
    print("\ncold, ms\n" + table(rows, ("example", "import", "parse", "compile", "first run", "total")))


if __name__ == "__main__":
    main()
