"""Whether the IR's own operations cost time proportional to the program.

    python benchmarks/ir_scale.py [LARGEST]

Generated kernels of N statements, of several shapes, are parsed, printed, compared, hashed, serialized, cloned,
verified and converted to SSA form; N doubles up to LARGEST (4000). Milliseconds of processor time, best of 3, and in
brackets the ratio to half the size: 2 is linear.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

from pypto import ir, passes
from pypto.language import parse
from pypto.passes import PassContext, VerificationLevel

SMALLEST, LARGEST, REPEATS = 250, 4000, 3
TENSOR = "pl.Tensor[[64, 64], pl.FP32]"


HEAD = f"""import pypto.language as pl


@pl.program
class Scale:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], out: pl.Out[{TENSOR}]) -> {TENSOR}:
        k = n + 1
        t = pl.load(x, [0, 0], [64, 64])
"""
TAIL = """
        if k < 3:
            t = pl.add(t, t)
        return pl.store(t, [0, 0], out)
"""


def mixed(count: int) -> str:
    """Straight-line work, with a loop around a branch every twenty statements."""
    lines = []
    for block in range(count // 20):
        lines += [
            "for i in pl.range(0, n):",
            f"    k = i * {block + 1} + n",
            f"    if k < {block}:",
            "        t = pl.add(t, t)",
            "    else:",
            "        t = pl.mul(t, t)",
        ]
        lines += [f"t{block}_{i} = pl.add(t, t)" for i in range(15)]
    return "\n".join(f"        {line}" for line in lines)


def reassigned(count: int) -> str:
    """One name, assigned over and over."""
    return "        k = k + n\n" * count


def nested(count: int) -> str:
    """Loops fourteen deep."""
    nest = [f"{'    ' * depth}for i{depth} in pl.range(n):" for depth in range(14)] + [f"{'    ' * 14}k = k + i13"]
    return "\n".join(f"        {line}" for _ in range(count // 15) for line in nest)


def branching(count: int) -> str:
    """Branches one after the other, each assigning the same name."""
    return "\n".join(
        f"        if k < {i}:\n            k = k + 1\n        else:\n            k = k + 2" for i in range(count // 4)
    )


SHAPES = (mixed, reassigned, nested, branching)


def best_ms(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def measure(text: str) -> dict[str, float]:
    """Milliseconds of each operation on a program."""
    gc.collect()
    program, other = parse(text), parse(text)
    data = ir.serialize(program)

    def verify() -> None:
        passes.verify_properties(passes.get_structural_properties(), program, "parse")

    def convert() -> None:
        with PassContext([], verification_level=VerificationLevel.NONE):
            passes.convert_to_ssa()(program)

    return {
        "parse": best_ms(lambda: parse(text)),
        "print": best_ms(lambda: ir.python_print(program)),
        "compare": best_ms(lambda: ir.assert_structural_equal(program, other)),
        "hash": best_ms(lambda: ir.structural_hash(program)),
        "serialize": best_ms(lambda: ir.serialize(program)),
        "deserialize": best_ms(lambda: ir.deserialize(data)),
        "clone": best_ms(lambda: ir.deep_clone(program)),
        "verify": best_ms(verify),
        "to SSA": best_ms(convert),
    }


def sizes(largest: int) -> list[int]:
    made = [SMALLEST]
    while made[-1] * 2 <= largest:
        made.append(made[-1] * 2)
    return made


def table(shape: Callable[[int], str], counts: list[int]) -> None:
    results = [measure(HEAD + shape(count) + TAIL) for count in counts]
    print(f"{shape.__name__:<12}" + "".join(f"{count:>16}" for count in counts))
    for name in results[0]:
        row = f"  {name:<12}"
        for i, result in enumerate(results):
            ratio = f"[{result[name] / results[i - 1][name]:.2f}]" if i else ""
            row += f"{result[name]:9.1f} {ratio:>6}"
        print(row)


def main() -> None:
    counts = sizes(int(sys.argv[1]) if len(sys.argv) > 1 else LARGEST)
    measure(HEAD + mixed(SMALLEST) + TAIL)
    for shape in SHAPES:
        table(shape, counts)


if __name__ == "__main__":
    main()
