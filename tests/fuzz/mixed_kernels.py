"""Random kernels for cube and vector cores as DSL text, each with the same program on numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Choose = Callable[[Sequence[Any]], Any]
PLACES = 4
"""Blocks of rows of the output, and iterations of a loop."""


class MixedKernel:
    """One region on ragged tiles of one size: products, vector work, what crosses, tensors written and read back.

    ``r`` and ``c`` are the valid rows and columns, constants or arguments; ``text`` is the kernel, ``model`` the same
    on arrays of what is valid.
    """

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.m, self.n, self.k = choose([16, 32, 48]), choose([32, 64]), choose([32, 64])
        self.rows = choose([self.m, self.m, 1, 4, 9, 16, 17, self.m // 2, self.m // 2 + 1, self.m - 1])
        self.rows = min(self.rows, self.m)
        self.cols = choose([self.n, self.n, self.n, 1, 16, 20, self.n // 2, self.n - 5])
        self.dynamic = choose([False, True])
        self.lines: list[str] = []
        self.model: list[str] = []
        self.values: list[str] = []
        self.depth = 2
        self.index = ""
        self.count = 0
        self.text = self._text()

    @property
    def r(self) -> str:
        return "r" if self.dynamic else str(self.rows)

    @property
    def c(self) -> str:
        return "c" if self.dynamic else str(self.cols)

    def _text(self) -> str:
        m, n, k = self.m, self.n, self.k
        options = [f"pl.split(pl.SplitMode.{s})" for s in (self.choose(["", "", "UP_DOWN", "LEFT_RIGHT"]),) if s]
        options += [f"pl.cross_core_slot(slot_num={s})" for s in (self.choose([0, 0, 1, 2, 4]),) if s]
        opened = f", optimizations=[{', '.join(options)}]" if options else ""
        self.statements(self.choose([0, 1, 2]))
        if self.choose([True, True, False]):
            self.loop()
        self.statements(self.choose([1, 2]))
        self.write()
        params = f"a: pl.Tensor[[{m}, {k}], pl.FP16], b: pl.Tensor[[{k}, {n}], pl.FP16], "
        params += f"w: pl.Tensor[[{n}, {n}], pl.FP16], x: pl.Tensor[[{m}, {n}], pl.FP32], r: pl.Scalar[pl.INDEX], "
        params += f"c: pl.Scalar[pl.INDEX], s: pl.InOut[pl.Tensor[[{m}, {n}], pl.FP16]], "
        out = f"pl.Tensor[[{PLACES * m}, {n}], pl.FP32]"
        head = f"@pl.function\ndef k({params}y: pl.InOut[{out}]) -> {out}:"
        region = f"    with pl.at(level=pl.Level.CORE_GROUP{opened}):"
        return "\n".join([head, region, *self.lines, "    return y"]) + "\n"

    def emit(self, line: str, model: str) -> None:
        self.lines.append("    " * self.depth + line)
        self.model.append("    " * (self.depth - 2) + model)

    def statements(self, count: int) -> None:
        for _ in range(count):
            kinds = ["product", "product", "vector", "vector", "back", "back", "write", "scratch", "read"]
            getattr(self, self.choose(kinds if self.depth > 3 else [*kinds, "branch"]))()

    def bind(self, value: str, model: str) -> None:
        self.count += 1
        self.emit(f"t{self.count} = {value}", f"t{self.count} = {model}")
        self.values.append(f"t{self.count}")

    def any_value(self) -> str:
        if not self.values:
            self.product()
        return self.choose(self.values)

    def slice(self, name: str, rows: int, cols: int, valid: str) -> str:
        return f"pl.slice({name}, [{rows}, {cols}], [0, 0], valid_shape=[{valid}])"

    def product(self) -> None:
        left = self.slice("a", self.m, self.k, f"{self.r}, {self.k}")
        right = self.slice("b", self.k, self.n, f"{self.k}, {self.c}")
        self.bind(f"pl.matmul({left}, {right}, out_dtype=pl.FP32)", "f(a[:r]) @ f(b[:, :c])")

    def vector(self) -> None:
        one, form = self.any_value(), self.choose(["scalar", "binary", "load"])
        if form == "scalar":
            op, by = self.choose([("add", "+"), ("mul", "*")]), self.choose(["0.5", "2.0", "-1.0"])
            self.bind(f"pl.{op[0]}({one}, {by})", f"{one} {op[1]} np.float32({by})")
        else:
            other = (self.any_value(),) * 2
            if form == "load":
                other = (self.slice("x", self.m, self.n, f"{self.r}, {self.c}"), "x[:r, :c]")
            op = self.choose(["maximum", "add"])
            self.bind(f"pl.{op}({one}, {other[0]})", f"np.{op}({one}, {other[1]})")

    def halves(self) -> str:
        """A value small enough to be FP16."""
        one = self.any_value()
        self.bind(f"pl.minimum(pl.maximum({one}, -2.0), 2.0)", f"np.clip({one}, -2, 2)")
        small = self.values.pop()
        self.bind(f"pl.cast({small}, pl.FP16)", f"{small}.astype(np.float16)")
        return self.values.pop()

    def back(self) -> None:
        """Vector work multiplied by the cube."""
        half = self.halves()
        right = self.slice("w", self.n, self.n, f"{self.c}, {self.c}")
        self.bind(f"pl.matmul({half}, {right}, out_dtype=pl.FP32)", f"f({half}) @ f(w[:c, :c])")

    def write(self) -> None:
        one, place = self.any_value(), self.index or self.choose(["0", "1", "2"])
        row = f"{place} * {self.m}"
        self.emit(f"y = pl.assemble(y, {one}, [{row}, 0])", f"y[{row} : {row} + r, :c] = {one}")

    def scratch(self) -> None:
        half = self.halves()
        self.emit(f"s = pl.assemble(s, {half}, [0, 0])", f"s[:r, :c] = {half}")

    def read(self) -> None:
        """What was written to a tensor, by either core, read by one of them."""
        window = self.slice("s", self.m, self.n, f"{self.r}, {self.c}")
        if self.choose([True, False]):
            self.bind(f"pl.cast({window}, pl.FP32)", "f(s[:r, :c].copy())")
        else:
            right = self.slice("w", self.n, self.n, f"{self.c}, {self.c}")
            self.bind(f"pl.matmul({window}, {right}, out_dtype=pl.FP32)", "f(s[:r, :c]) @ f(w[:c, :c])")

    def nested(self, header: str, model: str, count: int) -> None:
        self.emit(header, model)
        before = list(self.values)
        self.depth += 1
        self.statements(count)
        if before and self.choose([True, False]):
            name, again = self.choose(before), self.any_value()
            if name != again:
                self.emit(f"{name} = pl.add({again}, 1.0)", f"{name} = {again} + np.float32(1)")
        self.write()
        self.depth -= 1
        self.values = before

    def loop(self) -> None:
        stage = self.choose([0, 2, 2, 3])
        self.count += 1
        self.index = f"i{self.count}"
        over = f"pl.pipeline({PLACES}, stage={stage})" if stage else f"pl.range({PLACES})"
        self.nested(f"for {self.index} in {over}:", f"for {self.index} in range({PLACES}):", self.choose([1, 2, 3]))
        self.index = ""

    def branch(self) -> None:
        condition = f"{self.index} % 2 == 0" if self.index else self.choose(["r > 8", "c > 16"])
        self.nested(f"if {condition}:", f"if {condition}:", 1)
