"""Random functions on tensors, host programs and matrix products as DSL text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Choose = Callable[[Sequence[Any]], Any]
ROWS, COLS = 32, 64
TENSOR = f"pl.Tensor[[{ROWS}, {COLS}], pl.FP32]"


class TensorFunction:
    """One function with regions on tensors: windows read and written, loops that carry tensors, branches."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.count = 0
        self.scope: dict[str, tuple[int, int]] = {}
        self.depth = 2
        self.index: list[str] = []

    def text(self) -> str:
        self.scope = {"x": (ROWS, COLS), "z": (ROWS, COLS), "y": (ROWS, COLS)}
        for _ in range(self.choose([1, 2, 3])):
            self.lines.append("    with pl.at(level=pl.Level.CORE_GROUP):")
            for _ in range(self.choose([1, 2, 3, 4, 5])):
                self.statement()
            self.write()
        head = (
            f"@pl.function\ndef k(x: {TENSOR}, z: {TENSOR}, n: pl.Scalar[pl.INDEX], y: pl.InOut[{TENSOR}]) -> {TENSOR}:"
        )
        return "\n".join([head, *self.lines, "    return y"]) + "\n"

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def statement(self) -> None:
        kind = self.choose(["new", "new", "again", "write", "loop", "branch"] if self.depth < 4 else ["new", "again"])
        getattr(self, kind)()

    def new(self) -> None:
        self.count += 1
        shape = self.choose([(8, COLS), (ROWS, COLS), (8, 32)])
        value = self.value(shape, 2)
        self.emit(f"t{self.count} = {value}")
        self.scope[f"t{self.count}"] = shape

    def again(self) -> None:
        names = [n for n in self.scope if n.startswith("t")]
        if not names:
            return self.new()
        name = self.choose(names)
        self.emit(f"{name} = {self.value(self.scope[name], 1)}")

    def write(self) -> None:
        shape = self.choose([(8, COLS), (8, 32), (ROWS, COLS)])
        row, col = self.offset(shape)
        value = self.value(shape, 1)
        if self.choose([True, False]):
            self.emit(f"y = pl.assemble(y, {value}, [{row}, {col}])")
        else:
            self.emit(f"y[{row} : {row} + {shape[0]}, {col} : {col} + {shape[1]}] = {value}")

    def nested(self, header: str, index: str = "") -> None:
        before = dict(self.scope)
        self.emit(header)
        self.depth += 1
        self.index += [index] if index else []
        for _ in range(self.choose([1, 2])):
            self.choose([self.again, self.write, self.new])()
        if index:
            self.index.pop()
        self.depth -= 1
        self.scope = before

    def loop(self) -> None:
        self.count += 1
        self.nested(f"for i{self.count} in pl.range({self.choose(['2', '4', 'n', '1, 3'])}):", f"i{self.count}")

    def branch(self) -> None:
        self.nested(f"if {self.choose(['n > 2', 'n == 0', *(f'{i} > 1' for i in self.index)])}:")
        if self.choose([False, True]):
            self.nested("else:")

    def offset(self, shape: tuple[int, int]) -> tuple[str, str]:
        row = self.choose(["0", "8", "24", *(f"{i} * 8" for i in self.index)]) if shape[0] < ROWS else "0"
        return row, self.choose(["0", "32"]) if shape[1] < COLS else "0"

    def value(self, shape: tuple[int, int], depth: int) -> str:
        same = [n for n, s in self.scope.items() if s == shape]
        if depth == 0 or self.choose([False, False, True]):
            return self.choose(same) if same and self.choose([True, True, False]) else self.window(shape)
        form = self.choose(["scalar", "binary", "unary", "row", "col", "window"])
        a = self.value(shape, depth - 1)
        if form == "scalar":
            return f"pl.{self.choose(['mul', 'add', 'maximum'])}({a}, {self.choose(['2.0', '-1.0', '0.5'])})"
        if form == "binary":
            return f"pl.{self.choose(['add', 'sub', 'maximum', 'minimum'])}({a}, {self.value(shape, depth - 1)})"
        if form == "unary":
            return f"pl.{self.choose(['neg', 'abs'])}({a})"
        if form == "window":
            return self.window(shape)
        return f"pl.{form}_expand_{self.choose(['sub', 'add'])}({a}, pl.{form}_{self.choose(['max', 'sum'])}({a}))"

    def window(self, shape: tuple[int, int]) -> str:
        row, col = self.offset(shape)
        source = self.choose(["x", "z", "y"])
        if self.choose([True, False]):
            return f"pl.slice({source}, [{shape[0]}, {shape[1]}], [{row}, {col}])"
        return f"{source}[{row} : {row} + {shape[0]}, {col} : {col} + {shape[1]}]"


_KERNELS = f"""
    @pl.function(type=pl.FunctionType.InCore)
    def scale(self, a: {TENSOR}, o: pl.Out[{TENSOR}]) -> {TENSOR}:
        for r in pl.range(0, {ROWS}, 8):
            o = pl.store(pl.mul(pl.load(a, [r, 0], [8, {COLS}]), 0.5), [r, 0], o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def accumulate(self, a: {TENSOR}, o: pl.InOut[{TENSOR}]) -> {TENSOR}:
        t = pl.add(pl.load(o, [0, 0], [{ROWS}, {COLS}]), pl.load(a, [0, 0], [{ROWS}, {COLS}]))
        o = pl.store(t, [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def rows(self, a: {TENSOR}, i: pl.Scalar[pl.INDEX], o: pl.InOut[{TENSOR}]) -> {TENSOR}:
        t = pl.load(a, [{ROWS - 8} - i * 8, 0], [8, {COLS}])
        o = pl.store(pl.sub(t, 1.0), [i * 8, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Inline)
    def again(self, a: {TENSOR}, o: {TENSOR}) -> {TENSOR}:
        o = self.accumulate(a, o)
        return o

    @pl.function(type=pl.FunctionType.Inline)
    def several(self, a: {TENSOR}, n: pl.Scalar[pl.INDEX], o: {TENSOR}) -> {TENSOR}:
        for j in pl.range(n):
            o = self.rows(a, j % 4, o)
        if n > 2:
            o = self.accumulate(a, o)
        return o
"""


class HostProgram:
    """Kernels called from a host function in loops and branches, on tensors it is given and makes."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.lines: list[str] = []

    def text(self) -> str:
        self.emit(2, f"s = pl.create_tensor([{ROWS}, {COLS}], dtype=pl.FP32)")
        self.emit(2, "s = self.scale(x, s)")
        for _ in range(self.choose([1, 2, 3, 4])):
            self.statement(2)
        self.emit(2, f"y = self.accumulate({self.choose(['s', 'x'])}, y)")
        main = f"    def main(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX], y: pl.InOut[{TENSOR}]) -> {TENSOR}:"
        orchestration = "    @pl.function(type=pl.FunctionType.Orchestration)"
        return "\n".join(["@pl.program\nclass k:", _KERNELS, orchestration, main, *self.lines, "        return y", ""])

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def statement(self, depth: int, index: str = "") -> None:
        kind = self.choose(["call", "call", "loop", "branch", "blocks", "count"] if depth < 4 else ["call"])
        if kind == "count":
            self.emit(depth, f"w{depth} = pl.const(0, pl.INDEX)")
            self.emit(depth, f"while w{depth} < {self.choose(['n', '2', '0'])}:")
            for _ in range(self.choose([1, 2])):
                self.statement(depth + 1, "0")
            self.emit(depth + 1, f"w{depth} = w{depth} + 1")
        elif kind == "call":
            out = self.choose(["s", "y"])
            source = self.choose([t for t in ("x", "s", "y") if t != out])
            row, trips = index or self.choose(["0", "3"]), self.choose(["n", "0", "3"])
            self.emit(depth, self.choose([f"{out} = self.accumulate({source}, {out})",
                                          f"{out} = self.rows({source}, {row}, {out})",
                                          f"{out} = self.scale({source}, {out})",
                                          f"{out} = self.again({source}, {out})",
                                          f"{out} = self.several({source}, {trips}, {out})"]))  # fmt: skip
        elif kind == "loop":
            self.emit(depth, f"for i{depth} in pl.range({self.choose(['2', 'n', '4', '1, 3', '0'])}):")
            for _ in range(self.choose([1, 2])):
                self.statement(depth + 1, f"i{depth}")
        elif kind == "branch":
            self.emit(depth, f"if {self.choose(['n > 2', 'n == 0', *([f'{index} > 1'] if index else [])])}:")
            self.statement(depth + 1, index)
            if self.choose([False, True]):
                self.emit(depth, "else:")
                self.statement(depth + 1, index)
        else:
            self.emit(depth, "for b in pl.spmd(4):")
            out, source = self.choose([("s", "x"), ("y", "s"), ("y", "x")])
            self.emit(depth + 1, f"t = pl.load({source}, [b * 8, 0], [8, {COLS}])")
            self.emit(depth + 1, f"{out} = pl.store(pl.add(t, {self.choose(['1.0', '-2.0'])}), [b * 8, 0], {out})")


class Matmul:
    """Products of matrices in one kernel: K in parts, accumulators carried by loops, one or several at once."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose

    def text(self) -> str:
        m, n, k = self.choose([16, 32, 48]), self.choose([16, 32, 64]), self.choose([64, 128])
        self.m, self.n, part = m, n, self.choose([16, 32, 64])
        params = f"a: pl.Tensor[[64, {k}], pl.FP16], b: pl.Tensor[[{k}, 64], pl.FP16], n: pl.Scalar[pl.INDEX]"
        params += ", c: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]"
        lines = [f"@pl.function(type=pl.FunctionType.InCore)\ndef k({params}):"]
        count = self.choose([1, 1, 2])
        lines += [f"    p{i} = pl.matmul({self.left(i, '0', part)}, {self.right(i, '0', part)})" for i in range(count)]
        kind = self.choose(["range", "range", "pipeline", "unroll"])
        stage = ", stage=2" if kind == "pipeline" else ""
        lines.append(f"    for j in pl.{kind}({part}, {k}, {part}{stage}):")
        for i in range(count):
            product = f"p{i} = pl.matmul_acc(p{i}, {self.left(i, 'j', part)}, {self.right(i, 'j', part)})"
            if kind == "range" and self.choose([False, False, True]):
                lines += [f"        if {self.choose(['n > 2', 'j > n * 16'])}:", f"            {product}"]
            else:
                lines.append(f"        {product}")
        if self.choose([False, True]):
            lines.append(f"    p0 = pl.matmul_acc(p0, {self.left(0, '0', part)}, {self.right(0, '0', part)})")
        lines += [f"    pl.store(p{i}, [0, {min(i * n, 64 - n)}], c)" for i in range(count)]
        return "\n".join(lines) + "\n"

    def left(self, i: int, at: str, part: int) -> str:
        return f"pl.load(a, [{i * (64 - self.m)}, {at}], [{self.m}, {part}], target_memory=pl.Mem.Mat)"

    def right(self, i: int, at: str, part: int) -> str:
        return f"pl.load(b, [{at}, {i * (64 - self.n)}], [{part}, {self.n}], target_memory=pl.Mem.Mat)"
