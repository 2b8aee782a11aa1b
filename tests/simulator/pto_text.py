"""PTO text for the tests: one kernel from a list of tensors, tiles and instructions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pypto import simulator
from pypto.pto.elements import item_bytes

ND = "blayout=row_major, slayout=none_box, fractal=512"
COL = "blayout=col_major, slayout=none_box, fractal=512"
NZ = "blayout=col_major, slayout=row_major, fractal=512"
ZZ = "blayout=row_major, slayout=row_major, fractal=512"
ZN = "blayout=row_major, slayout=col_major, fractal=512"
ACC = "blayout=col_major, slayout=row_major, fractal=1024"


def tile_type(
    rows: int,
    cols: int,
    dtype: str,
    *,
    valid: tuple[int | str, int | str] | None = None,
    loc: str = "vec",
    layout: str = ND,
    pad: int = 0,
) -> str:
    v_row, v_col = valid or (rows, cols)
    return (
        f"!pto.tile_buf<loc={loc}, dtype={dtype}, rows={rows}, cols={cols}, v_row={v_row}, v_col={v_col}, "
        f"{layout}, pad={pad}>"
    )


class Kernel:
    """Collects the lines of one function. Every operation is given a line of ``k.py`` as its location."""

    def __init__(self, arch: str = "a2a3", kind: str = "vector") -> None:
        self.arch, self.kind = arch, kind
        self.params: list[str] = []
        self.head: list[str] = []
        self.lines: list[str] = []
        self.next: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.constants: dict[tuple[int, str], str] = {}

    def const(self, value: int, kind: str = "index") -> str:
        name = self.constants.get((value, kind))
        if name is None:
            name = self.constants[value, kind] = f"%c{str(value).replace('-', 'm')}_{kind}"
            self.head.append(f"{name} = arith.constant {value} : {kind}")
        return name

    def param(self, kind: str) -> str:
        self.params.append(kind)
        return f"%arg{len(self.params) - 1}"

    def tensor(self, rows: int, cols: int, dtype: str, layout: str = "nd") -> str:
        """A matrix parameter and a view of all of it."""
        pointer = self.param(f"!pto.ptr<{dtype}>")
        strides = (cols, 1) if layout == "nd" else (1, rows)
        name = f"%view{len(self.params)}"
        self.emit(
            f"{name} = pto.make_tensor_view {pointer}, shape = [{self.const(rows)}, {self.const(cols)}], "
            f"strides = [{self.const(strides[0])}, {self.const(strides[1])}] "
            f"{{layout = #pto.layout<{layout}>}} : !pto.tensor_view<?x?x{dtype}>"
        )
        self.types[name] = dtype
        return name

    def emit(self, line: str) -> None:
        self.lines.append(f'{line} loc("k.py":{len(self.lines) + 1}:5)')

    def window(self, view: str, row: str | int, col: str | int, rows: str | int, cols: str | int) -> str:
        def index(value: str | int) -> str:
            return value if isinstance(value, str) else self.const(value)

        def stated(value: str | int) -> str:
            return "?" if isinstance(value, str) else str(value)

        name = f"%win{len(self.lines)}"
        dtype = self.types[view]
        result = f"!pto.partition_tensor_view<{stated(rows)}x{stated(cols)}x{dtype}>"
        self.emit(
            f"{name} = pto.partition_view {view}, offsets = [{index(row)}, {index(col)}], "
            f"sizes = [{index(rows)}, {index(cols)}] : !pto.tensor_view<?x?x{dtype}> -> {result}"
        )
        self.types[name] = result
        return name

    def tile(self, kind: str, *, addr: int | None = None, row: str = "", col: str = "") -> str:
        """Allocate a tile, after the others of its memory unless ``addr`` says where."""
        fields = dict(part.strip().split("=") for part in kind[len("!pto.tile_buf<") : -1].split(","))
        size = int(fields["rows"]) * int(fields["cols"]) * item_bytes(fields["dtype"])
        loc = fields["loc"]
        if addr is None:
            addr = self.next.get(loc, 0)
            self.next[loc] = addr + -(-size // 128) * 128
        name = f"%tile{len(self.lines)}"
        valid = (f"valid_row = {row} " if row else "") + (f"valid_col = {col} " if col else "")
        self.emit(f"{name} = pto.alloc_tile addr = {self.const(addr, 'i64')} {valid}: {kind}")
        self.types[name] = kind
        return name

    def op(self, name: str, ins: Sequence[str], outs: Sequence[str], attrs: str = "") -> None:
        """An instruction; scalars are named with their type after a colon, ``%arg1:f32``."""
        words = [word.partition(":")[0] for word in ins]
        kinds = [word.partition(":")[2] or self.types[word] for word in ins]
        text = f"pto.{name} ins({', '.join(words)} : {', '.join(kinds)}) "
        text += f"outs({', '.join(outs)} : {', '.join(self.types[out] for out in outs)})"
        self.emit(text + (f" {{{attrs}}}" if attrs else ""))

    def load(self, view: str, tile: str, window: tuple | None = None) -> None:
        self.op("tload", [self.window(view, *(window or self._whole(view)))], [tile])

    def store(self, tile: str, view: str, window: tuple | None = None, attrs: str = "") -> None:
        self.op("tstore", [tile], [self.window(view, *(window or self._whole(view)))], attrs)

    def _whole(self, view: str) -> tuple[int, int, int, int]:
        line = next(line for line in self.lines if line.startswith(f"{view} ="))
        shape = line.split("shape = [")[1].split("]")[0].split(", ")
        rows, cols = (int(word[2:].partition("_")[0]) for word in shape)
        return 0, 0, rows, cols

    def text(self, name: str = "k") -> str:
        params = ", ".join(f"%arg{position}: {kind}" for position, kind in enumerate(self.params))
        body = "\n".join(f"    {line}" for line in [*self.head, *self.lines, "return"])
        return (
            f'module attributes {{pto.target_arch = "{self.arch}"}} {{\n'
            f"  func.func @{name}({params}) attributes {{pto.kernel_kind = #pto.kernel_kind<{self.kind}>}} {{\n"
            f"{body}\n  }}\n}}\n"
        )

    def run(self, *args: object, sanitize: bool = True, **options: object) -> simulator.SimReport:
        return simulator.load(self.text()).kernels["k"].run(args, sanitize=sanitize, **options)  # pyright: ignore


def names(dtype: np.dtype | type) -> str:
    """PTO's name of a numpy type."""
    from pypto.dtypes import from_numpy

    return from_numpy(dtype).mlir


def equal(got: np.ndarray, want: np.ndarray) -> None:
    """Same bits, any NaN counting as any other."""
    assert got.dtype == want.dtype and got.shape == want.shape
    nan = (got != got) & (want != want)
    unsigned = f"u{got.dtype.itemsize}"
    same = np.ascontiguousarray(got).view(unsigned) == np.ascontiguousarray(want).view(unsigned)
    bad = ~(same | nan)
    assert not bad.any(), f"{int(bad.sum())} differ, first {np.argwhere(bad)[0]}: {got[bad][0]} not {want[bad][0]}"
