"""Random functions whose values live out of loops, branches and regions, as DSL text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Choose = Callable[[Sequence[Any]], Any]
ROWS, COLS = 16, 64
TENSOR = f"pl.Tensor[[{ROWS}, {COLS}], pl.FP32]"
TENSORS, SCALARS = ("a", "b", "c"), ("s", "t")
AT = "with pl.at(level=pl.Level.CORE_GROUP):"


class FlowFunction:
    """Tensors and scalars of a few names, assigned again and again, old and new names read anywhere after it.

    Only names that Python has certainly assigned are read. ``known`` holds those at the place that is written.
    """

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.numbers = 0
        self.known: set[str] = set()
        self.inside = False
        """Whether the place that is written is in a region."""
        self.left = False
        """Whether an iteration may have been left before this place."""

    def text(self) -> str:
        self.known = {"x", "z", "y", "n"}
        for _ in range(self.choose([1, 2, 3, 4])):
            self.statement(1)
        names = [n for n in TENSORS if n in self.known] or ["x"]
        self.emit(1, AT)
        total = "pl.mul(y, 0.25)"
        for factor, name in zip("235", names):
            total = f"pl.add({total}, pl.mul({name}, {factor}.0))"
        self.emit(2, f"y = pl.assemble(y, {self.guarded(total)}, [0, 0])")
        head = (
            f"@pl.function\ndef k(x: {TENSOR}, z: {TENSOR}, n: pl.Scalar[pl.INDEX], y: pl.InOut[{TENSOR}]) -> {TENSOR}:"
        )
        return "\n".join([head, *self.lines, "    return y", ""])

    def guarded(self, total: str) -> str:
        for name in SCALARS:
            if name in self.known:
                total = f"pl.add({total}, pl.mul(z, pl.cast({name}, pl.FP32)))"
        return total

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def chance(self, percent: int) -> bool:
        return self.choose(range(100)) >= 100 - percent

    def fresh(self, letter: str) -> str:
        self.numbers += 1
        return f"{letter}{self.numbers}"

    # Statements

    def statement(self, depth: int) -> None:
        if self.inside:
            kinds = ["assign"] * 4 + ["scalar", "alias", "pair", "write"]
        else:
            kinds = ["region"] * 5 + ["scalar", "alias"]
        if depth < 5:
            kinds += ["loop", "loop", "branch", "branch", "count"] if self.inside else ["loop", "branch"]
        getattr(self, self.choose(kinds))(depth)

    def block(self, depth: int) -> None:
        for _ in range(self.choose([1, 2, 3])):
            self.statement(depth)

    def region(self, depth: int) -> None:
        self.emit(depth, self.choose([AT, AT, AT, "with pl.manual_scope():"]))
        transparent = not self.lines[-1].endswith(AT)
        self.inside = not transparent
        if transparent:
            self.emit(depth + 1, AT)
            self.inside = True
            self.block(depth + 2)
        else:
            self.block(depth + 1)
        self.inside = False

    def assign(self, depth: int) -> None:
        name = self.choose(TENSORS)
        self.emit(depth, f"{name} = {self.value(2)}")
        self.known.add(name)

    def pair(self, depth: int) -> None:
        one, two = self.choose([("a", "b"), ("b", "c"), ("c", "a")])
        swapped = {one, two} <= self.known and self.chance(50)
        self.emit(depth, f"{one}, {two} = " + (f"{two}, {one}" if swapped else f"{self.value(1)}, {self.value(1)}"))
        self.known |= {one, two}

    def alias(self, depth: int) -> None:
        name = self.choose(TENSORS)
        self.emit(depth, f"{name} = {self.tensor()}")
        self.known.add(name)

    def write(self, depth: int) -> None:
        name = self.choose(TENSORS)
        target = name if name in self.known and self.chance(60) else self.tensor()
        source = self.choose([f"pl.slice({self.tensor()}, [8, {COLS}], [{self.row()}, 0])",
                              f"pl.mul(pl.slice({self.tensor()}, [8, {COLS}], [{self.row()}, 0]), 2.0)"])  # fmt: skip
        self.emit(depth, f"{name} = pl.assemble({target}, {source}, [{self.row()}, 0])")
        self.known.add(name)

    def row(self) -> str:
        return self.choose(["0", "8"])

    def scalar(self, depth: int) -> None:
        name = self.choose(SCALARS)
        self.emit(depth, f"{name} = {self.integer()}")
        self.known.add(name)

    def loop(self, depth: int) -> None:
        index = self.fresh("i")
        bounds, runs = self.choose([("2", True), ("n", False), ("1, 3", True), ("0", False), ("3, 0, -1", True),
                                    ("n, 3", False)])  # fmt: skip
        kind = self.choose(["range", "range", "range", "unroll"]) if bounds in ("2", "1, 3", "0") else "range"
        self.emit(depth, f"for {index} in pl.{kind}({bounds}):")
        self.body(depth, runs, kind == "range", index)

    def count(self, depth: int) -> None:
        index = self.fresh("w")
        self.emit(depth, f"{index} = pl.const(0, pl.INDEX)")
        self.emit(depth, f"while {index} < {self.choose(['2', 'n'])}:")
        self.emit(depth + 1, f"{index} = {index} + 1")
        self.body(depth, False, True, index)

    def body(self, depth: int, runs: bool, jumps: bool, index: str) -> None:
        before, left = set(self.known), self.left
        self.known.add(index)
        for _ in range(self.choose([1, 2, 3])):
            if jumps and self.inside and self.chance(15):
                self.emit(depth + 1, f"if {self.condition()}:")
                self.emit(depth + 2, self.choose(["continue", "break"]))
                self.left = True
            self.statement(depth + 1)
        after = self.known if runs and not self.left else before
        self.known, self.left = set(after) - {index}, left

    def branch(self, depth: int) -> None:
        before, ends = set(self.known), []
        arms = [f"if {self.condition()}:"] + [f"elif {self.condition()}:"] * self.choose([0, 0, 1]) + ["else:"]
        closed = self.chance(65)
        for arm in arms if closed else arms[:-1]:
            self.emit(depth, arm)
            self.known = set(before)
            self.block(depth + 1)
            ends.append(self.known)
        self.known = set.intersection(*ends) if closed else before

    # Values

    def condition(self) -> str:
        return f"{self.integer()} {self.choose(['<', '>', '=='])} {self.choose(['1', '2', '0'])}"

    def integer(self) -> str:
        names = [n for n in sorted(self.known) if n not in (*TENSORS, "x", "y", "z")]
        name = self.choose(names)
        return self.choose([name, f"{name} + 1", f"{name} * 2 - 1", "pl.const(3, pl.INDEX)"])

    def tensor(self) -> str:
        return self.choose([*(n for n in TENSORS if n in self.known), "x", "z", "y"])

    def value(self, depth: int) -> str:
        if depth == 0 or self.chance(20):
            return self.tensor() if depth < 2 else f"pl.add({self.tensor()}, 1.0)"
        form = self.choose(["scalar", "scalar", "binary", "unary"])
        if form == "scalar":
            return f"pl.{self.choose(['mul', 'add'])}({self.value(depth - 1)}, {self.choose(['2.0', '-1.0', '0.5'])})"
        if form == "binary":
            return f"pl.{self.choose(['add', 'sub', 'maximum'])}({self.value(depth - 1)}, {self.value(depth - 1)})"
        return f"pl.{self.choose(['neg', 'abs'])}({self.value(depth - 1)})"
