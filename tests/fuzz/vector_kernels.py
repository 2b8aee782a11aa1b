"""Random vector kernels as DSL text. Every choice goes through one function, so hypothesis can shrink them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ROWS, COLS = 40, 64
"""Every tensor's shape."""
DTYPES = {"FP32": "x0 x1", "FP16": "x2", "INT32": "x3"}
OUTS = {"FP32": "y0 y1", "FP16": "y2", "INT32": "y3"}


def _head() -> str:
    params = [f"{x}: pl.Tensor[[{ROWS}, {COLS}], pl.{d}]" for d, names in DTYPES.items() for x in names.split()]
    params += [f"{y}: pl.InOut[pl.Tensor[[{ROWS}, {COLS}], pl.{d}]]" for d, ys in OUTS.items() for y in ys.split()]
    params += ["n: pl.Scalar[pl.INT32]", "p: pl.Scalar[pl.INT32]", "m: pl.Scalar[pl.INDEX]", "w: pl.Scalar[pl.INDEX]"]
    return "@pl.function(type=pl.FunctionType.InCore)\ndef k(" + ", ".join(params) + "):\n"


HEAD = _head()
"""What every kernel begins with. ``m`` (at most 16) and ``w`` (at most 64) also serve as run-time extents."""


class TileKind(NamedTuple):
    dtype: str
    rows: int
    cols: int
    valid: tuple[str, str]

    @property
    def whole(self) -> bool:
        return self.valid == (str(self.rows), str(self.cols))


def whole(dtype: str, rows: int, cols: int) -> TileKind:
    return TileKind(dtype, rows, cols, (str(rows), str(cols)))


@dataclass
class Scope:
    """Names that can be read: tiles, and scalars by dtype; ``fixed`` may not be assigned."""

    tiles: dict[str, TileKind] = field(default_factory=dict)
    scalars: dict[str, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)

    def copy(self) -> Scope:
        return Scope(dict(self.tiles), dict(self.scalars), set(self.fixed))


class VectorKernel:
    """Draws one kernel. ``choose`` picks of a sequence; what is first is simplest."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.depth, self.counter = 1, 0
        self.jumps: list[bool] = []

    def text(self) -> str:
        scope = Scope(scalars={"n": "INT32", "p": "INT32", "m": "INDEX", "w": "INDEX"}, fixed=set("npmw"))
        self.scratch: dict[TileKind, str] = {}
        self.block(scope, self.number(2, 9))
        for name in list(scope.tiles)[-4:]:
            self.store(scope, name)
        return HEAD + "\n".join(self.lines) + "\n"

    # Drawing

    def number(self, low: int, high: int) -> int:
        return self.choose(range(low, high + 1))

    def chance(self, percent: int) -> bool:
        return self.choose(range(100)) >= 100 - percent

    def name(self, letter: str) -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    # Statements

    def block(self, scope: Scope, length: int) -> None:
        kinds = ["tile"] * 5 + ["assign"] * 4 + ["store"] * 2 + ["scalar"] * 2 + ["swap", "alias", "assemble"]
        if self.depth < 4:
            kinds += ["loop"] * 2 + ["branch"] * 2 + ["count"]
        if self.jumps and self.jumps[-1]:
            kinds += ["jump"]
        for _ in range(length):
            getattr(self, self.choose(kinds))(scope)

    def tile(self, scope: Scope) -> None:
        kind = self.any_kind(scope)
        value = self.value(scope, kind, 2)
        name = self.name("t")
        self.emit(f"{name} = {value}")
        scope.tiles[name] = kind

    def assign(self, scope: Scope) -> None:
        if not scope.tiles:
            return self.tile(scope)
        name = self.choose(list(scope.tiles))
        self.emit(f"{name} = {self.value(scope, scope.tiles[name], 2)}")

    def assemble(self, scope: Scope) -> None:
        targets = [t for t, k in scope.tiles.items() if k.whole and k.rows >= 8 and k.cols >= 16]
        if not targets:
            return self.tile(scope)
        name = self.choose(targets)
        kind = scope.tiles[name]
        rows, cols = self.choose([r for r in (8, 1) if r <= kind.rows]), self.choose([16, kind.cols])
        part = self.value(scope, whole(kind.dtype, rows, cols), 1)
        row = self.offset(scope, kind.rows - rows)
        col = str(16 * self.number(0, (kind.cols - cols) // 16))
        self.emit(f"{name} = pl.tile.assemble({name}, {part}, [{row}, {col}])")

    def alias(self, scope: Scope) -> None:
        if not scope.tiles:
            return self.tile(scope)
        old, name = self.choose(list(scope.tiles)), self.name("t")
        self.emit(f"{name} = {old}")
        scope.tiles[name] = scope.tiles[old]

    def swap(self, scope: Scope) -> None:
        pairs = [(a, b) for a, k in scope.tiles.items() for b, o in scope.tiles.items() if a < b and k == o]
        if not pairs:
            return self.assign(scope)
        a, b = self.choose(pairs)
        if self.chance(50):
            self.emit(f"{a}, {b} = {b}, {a}")
        else:
            name = self.name("t")
            for line in (f"{name} = {a}", f"{a} = {b}", f"{b} = {name}"):
                self.emit(line)
            scope.tiles[name] = scope.tiles[a]

    def store(self, scope: Scope, name: str = "") -> None:
        if not scope.tiles:
            return self.tile(scope)
        name = name or self.choose(list(scope.tiles))
        kind = scope.tiles[name]
        out = self.choose(OUTS[kind.dtype].split())
        offsets = f"[{self.offset(scope, ROWS - kind.rows)}, {self.choose([0, COLS - kind.cols])}]"
        value = name if self.chance(60) else self.value(scope, kind, 1)
        bind = f"{out} = " if self.chance(60) else ""
        self.emit(f"{bind}pl.store({value}, {offsets}, {out})")

    def scalar(self, scope: Scope) -> None:
        old = [s for s in scope.scalars if s not in scope.fixed]
        if old and self.chance(50):
            name = self.choose(old)
            self.emit(f"{name} = {self.integer(scope, scope.scalars[name], 2)}")
        else:
            name, dtype = self.name("s"), self.choose(["INT32", "INDEX"])
            self.emit(f"{name} = {self.integer(scope, dtype, 2)}")
            scope.scalars[name] = dtype

    def loop(self, scope: Scope) -> None:
        var = self.name("i")
        kind = self.choose(["range", "range", "range", "range", "unroll", "pipeline"])
        bounds = self.choose(["2", "3", "0, 4, 2", "1, 3", "0", "1"])
        if kind == "range" and self.chance(40):
            bounds = self.choose(["n", "p", "m", "0, m, 8", "1, n", "n, 3"])
        stage = ", stage=2" if kind == "pipeline" else ""
        self.emit(f"for {var} in pl.{kind}({bounds}{stage}):")
        inner = scope.copy()
        inner.scalars[var] = "INDEX"
        inner.fixed.add(var)
        self.body(inner, kind == "range")

    def count(self, scope: Scope) -> None:
        var = self.name("c")
        self.emit(f"{var} = pl.const(0, pl.{self.choose(['INDEX', 'INT32'])})")
        test = f"{var} < {self.choose(['2', 'n', 'm'])}"
        self.emit(f"while {self.choose([test, f'{test} and {self.condition(scope)}'])}:")
        inner = scope.copy()
        self.emit(f"    {var} = {var} + 1")
        self.body(inner, True)

    def body(self, scope: Scope, jumps: bool) -> None:
        self.depth += 1
        self.jumps.append(jumps)
        self.block(scope, self.number(1, 4))
        self.jumps.pop()
        self.depth -= 1

    def branch(self, scope: Scope) -> None:
        news: list[tuple[str, Any]] = []
        if self.chance(50):
            news.append((self.name("t"), self.any_kind(scope)))
        if self.chance(30):
            news.append((self.name("s"), self.choose(["INT32", "INDEX"])))
        middle = self.chance(25)
        arms = [f"if {self.condition(scope)}:"] + [f"elif {self.condition(scope)}:"] * middle + ["else:"]
        for arm in arms if news or self.chance(60) else arms[:-1]:
            self.emit(arm)
            inner = scope.copy()
            self.depth += 1
            self.block(inner, self.number(1, 3))
            for name, kind in news:
                tile = isinstance(kind, TileKind)
                self.emit(f"{name} = {self.value(inner, kind, 1) if tile else self.integer(inner, kind, 1)}")
            self.depth -= 1
        for name, kind in news:
            (scope.tiles if isinstance(kind, TileKind) else scope.scalars)[name] = kind

    def jump(self, scope: Scope) -> None:
        self.emit(f"if {self.condition(scope)}:")
        self.emit(f"    {self.choose(['continue', 'break'])}")

    # Scalars

    def integer(self, scope: Scope, dtype: str, depth: int) -> str:
        """An expression of the dtype."""
        names = [s for s, d in scope.scalars.items() if d == dtype]
        if depth == 0 or self.chance(20):
            big = ["2147483647", "-2147483648"] if dtype == "INT32" else ["1000000007"]
            literal = f"pl.const({self.choose(['3', '-1', '7', '-5', '100', '0', *big])}, pl.{dtype})"
            return self.choose([*names * 3, literal])
        a = self.integer(scope, dtype, depth - 1)
        form = self.choose(["bin", "bin", "div", "mod", "minmax", "neg", "abs", "cast", "shift", "bits"])
        if form == "bin":
            b = self.choose([self.integer(scope, dtype, depth - 1), "2", "-3", "1"])
            return f"({a} {self.choose('+-*')} {b})"
        if form in ("div", "mod"):
            by = self.choose(["2", "3", "-2", "-7", "16", "1", f"pl.max({self.integer(scope, dtype, 0)}, 1)"])
            return f"({a} {'//' if form == 'div' else '%'} {by})"
        if form == "minmax":
            return f"pl.{self.choose(['min', 'max'])}({a}, {self.choose([self.integer(scope, dtype, 0), '5'])})"
        if form in ("neg", "abs"):
            return f"-{a}" if form == "neg" else f"abs({a})"
        if form == "cast":
            other = "INDEX" if dtype == "INT32" else "INT32"
            return f"pl.cast({self.integer(scope, other, depth - 1)}, pl.{dtype})"
        if form == "shift":
            return f"({a} {self.choose(['<<', '>>'])} {self.choose('1247')})"
        return f"({a} {self.choose('&|^')} {self.integer(scope, dtype, 0)})"

    def condition(self, scope: Scope) -> str:
        dtype = self.choose(["INT32", "INDEX"])
        a, b = self.integer(scope, dtype, 1), self.integer(scope, dtype, 0)
        test = f"{a} {self.choose(['<', '<=', '>', '>=', '==', '!='])} {self.choose([b, '1', '0'])}"
        more = self.choose(["", "", "", "not", "and", "or"])
        if more == "not":
            return f"not {test}"
        return f"(({test}) {more} ({self.integer(scope, dtype, 0)} > 0))" if more else test

    def offset(self, scope: Scope, room: int) -> str:
        """An INDEX between 0 and ``room``."""
        if room <= 0 or self.chance(40):
            return str(self.choose([0, max(room, 0)]))
        value = self.integer(scope, "INDEX", 1)
        if self.chance(30):
            return f"{value} % {room + 1}"
        return f"pl.max(0, pl.min({value}, {room}))"

    # Tiles

    def any_kind(self, scope: Scope) -> TileKind:
        if scope.tiles and self.chance(50):
            return self.choose(list(scope.tiles.values()))
        dtype = self.choose(["FP32", "FP32", "INT32", "FP16"])
        rows, cols = self.choose([16, 8, 1]), self.choose([64, 32, 16])
        if rows == 16 and cols == 64 and self.chance(35):
            return TileKind(dtype, rows, cols, (self.choose(["m", "5", "16"]), self.choose(["64", "w", "19"])))
        return whole(dtype, rows, cols)

    def value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        """An expression that makes a tile of the kind."""
        same = [t for t, k in scope.tiles.items() if k == kind]
        if depth == 0 and same and self.chance(75):
            return self.choose(same)
        if depth == 0:
            return self.load(scope, kind)
        forms = ["load", "scalar", "binary", "binary", "unary"]
        if kind.cols == 1 or kind.rows == 1:
            forms += ["reduce"] * 2
        if kind.cols == 1:
            forms = ["reduce"]
        elif kind.rows > 1:
            forms += ["expand"]
        forms += ["cast"] * (kind.cols >= 16)
        if kind.whole and kind.cols > 1:
            forms += ["slice", "slice", "reshape", "full", "transpose"]
        return getattr(self, f"{self.choose(forms)}_value")(scope, kind, depth - 1)

    def load(self, scope: Scope, kind: TileKind) -> str:
        source = self.choose((DTYPES[kind.dtype] + " " + OUTS[kind.dtype]).split())
        offsets = f"[{self.offset(scope, ROWS - kind.rows)}, {self.choose([0, COLS - kind.cols])}]"
        valid = "" if kind.whole else f", valid_shape=[{kind.valid[0]}, {kind.valid[1]}]"
        return f"pl.load({source}, {offsets}, [{kind.rows}, {kind.cols}]{valid})"

    def load_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        return self.load(scope, kind)

    def scalar_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        a = self.value(scope, kind, depth)
        if kind.dtype == "INT32":
            by = self.choose(["3", "-2", self.integer(scope, "INT32", 1)])
            return f"pl.{self.choose(['add', 'mul', 'maximum', 'minimum'])}({a}, {by})"
        by = self.choose(["2.0", "-1.0", "0.5", "3.0"])
        return f"pl.{self.choose(['add', 'mul', 'maximum', 'minimum'])}({a}, {by})"

    def binary_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        op = self.choose(["add", "sub", "mul", "maximum", "minimum"])
        return f"pl.{op}({self.value(scope, kind, depth)}, {self.value(scope, kind, depth)})"

    def unary_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        ops = ["relu"] if kind.dtype == "INT32" else ["neg", "abs", "relu"]
        return f"pl.{self.choose(ops)}({self.value(scope, kind, depth)})"

    def full_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        value = self.choose(["7", "-2"]) + ("" if kind.dtype == "INT32" else ".0")
        return f"pl.tile.full([{kind.rows}, {kind.cols}], dtype=pl.{kind.dtype}, value={value})"

    def reduce_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        op = self.choose(["max", "min", "sum"])
        if kind.cols == 1:
            source = TileKind(kind.dtype, kind.rows, 64, (kind.valid[0], "64"))
            dims = f"[{kind.rows}, 64]"
            return f"pl.row_{op}({self.value(scope, source, depth)}, pl.create_tile({dims}, dtype=pl.{kind.dtype}))"
        if not kind.whole:
            return self.load(scope, kind)
        return f"pl.col_{op}({self.value(scope, whole(kind.dtype, 8, kind.cols), depth)})"

    def expand_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        op, way = self.choose(["add", "sub", "mul"]), self.choose(["row", "col"])
        valid = (kind.valid[0], "1") if way == "row" else ("1", kind.valid[1])
        rows, cols = (kind.rows, 1) if way == "row" else (1, kind.cols)
        vector = TileKind(kind.dtype, rows, cols, valid)
        if kind.dtype == "INT32":
            return self.binary_value(scope, kind, depth)
        return f"pl.{way}_expand_{op}({self.value(scope, kind, depth)}, {self.value(scope, vector, max(depth, 1))})"

    def cast_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        other = self.choose([d for d in DTYPES if d != kind.dtype])
        mode = self.choose(["floor", "rint", "ceil", "trunc"]) if kind.dtype == "INT32" else "rint"
        source = kind._replace(dtype=other)
        return f"pl.cast({self.value(scope, source, depth)}, pl.{kind.dtype}, mode='{mode}')"

    def slice_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        big = whole(kind.dtype, 16 if kind.rows > 1 or self.chance(50) else kind.rows, 64)
        row = self.offset(scope, big.rows - kind.rows)
        col = 16 * self.number(0, (big.cols - kind.cols) // 16)
        return f"pl.slice({self.value(scope, big, depth)}, [{kind.rows}, {kind.cols}], [{row}, {col}])"

    def reshape_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        total = kind.rows * kind.cols
        sources = [(r, total // r) for r in (1, 8, 16) if total % r == 0 and total // r in (16, 32, 64)]
        if kind.rows == 1 and kind.cols in (8, 16) and self.chance(50):
            sources = [(kind.cols, 1)]
        if not sources:
            return self.load(scope, kind)
        rows, cols = self.choose(sources)
        source = self.value(scope, whole(kind.dtype, rows, cols), max(depth, 1))
        return f"pl.reshape({source}, [{kind.rows}, {kind.cols}])"

    def transpose_value(self, scope: Scope, kind: TileKind, depth: int) -> str:
        if (kind.rows, kind.cols) != (16, 16):
            return self.binary_value(scope, kind, depth)
        return f"pl.transpose({self.value(scope, kind, depth)}, axis1=0, axis2=1)"
