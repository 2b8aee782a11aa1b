"""Statements that compute a product, or a part of its output, tile by tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from ...dtypes import DataType
from ...ir import expr as E
from ...ir.enums import ForKind, MemorySpace
from ...ir.expr import Call, Expr, IterArg, MakeTuple, Var, index_const, tile_type_of
from ...ir.scalar import binary
from ...ir.span import Span
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, YieldStmt, seq
from ...ir.types import ScalarType, TensorType, same_dims, static_dims
from ...ops.rules import plus
from ..emitting import build
from ..lower_pipeline_loops import DOUBLE_BUFFER_C, OVERLAP_STORES
from .chooser import L0TileResult, Stationarity
from .product import Product

_INDEX = ScalarType(DataType.INDEX)


class Code:
    """Statements being written, all for one place in the user's source."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.stmts: list[Stmt] = []

    def let(self, name: str, op: str, *args: Any, attrs: Mapping[str, Any] | None = None, **kwargs: Any) -> Var:
        call = build(op, *args, span=self.span, **kwargs)
        return self.bind(name, call.replace(attrs=dict(attrs)) if attrs else call)

    def bind(self, name: str, call: Call) -> Var:
        var = Var(name, call.type, self.span)
        self.stmts.append(AssignStmt(var, call, self.span))
        return var

    def loop(
        self,
        index: str,
        bounds: tuple[int | Expr, int | Expr, int | Expr],
        carried: tuple[str, Expr],
        body: Callable[[Var, IterArg], Expr],
        stages: int = 1,
        attrs: Mapping[str, Any] | None = None,
        result: str = "",
    ) -> Var:
        """A loop, pipelined if it has ``stages``, that carries one value; ``body`` says what it becomes."""
        var = Var(index, _INDEX, self.span)
        arg = IterArg(f"{carried[0]}_iter", carried[1].type, carried[1], self.span)
        outer, self.stmts = self.stmts, []
        made = body(var, arg)
        inner, self.stmts = self.stmts, outer
        value = Var(result or f"{carried[0]}_rv", made.type, self.span)
        start, stop, step = (b if isinstance(b, Expr) else index_const(b) for b in bounds)
        block = seq([*inner, YieldStmt([made], self.span)], self.span)
        kind = ForKind.Pipeline if stages > 1 else ForKind.Sequential
        notes = {**({"pipeline_stages": stages} if stages > 1 else {}), **(attrs or {})}
        self.stmts.append(ForStmt(var, start, stop, step, [arg], block, [value], self.span, kind, notes))
        return value

    def either(self, name: str, condition: Expr, then: Callable[[], Expr], otherwise: Callable[[], Expr]) -> Var:
        """What one of two branches makes."""
        outer, bodies, made = self.stmts, [], []
        for branch in (then, otherwise):
            self.stmts = []
            made.append(branch())
            bodies.append(seq([*self.stmts, YieldStmt([made[-1]], self.span)], self.span))
        self.stmts = outer
        result = Var(name, made[0].type, self.span)
        self.stmts.append(IfStmt(condition, bodies[0], bodies[1], [result], self.span))
        return result

    def named(self, var: Var) -> list[Stmt]:
        """The statements, the last of which defines ``var`` instead of a variable of its own."""
        last = self.stmts[-1]
        if isinstance(last, ForStmt):
            last = last.replace(return_vars=type(last.return_vars)([var]))
        else:
            last = last.replace(var=var)
        return [*self.stmts[:-1], last]


class Placer(Protocol):
    """Where parts of the output go."""

    dest: Expr
    """What has been written so far."""
    name: str

    def place(self, code: Code, part: Var, row: Expr, col: Expr, dest: Expr) -> Var:
        """``dest`` with ``part`` at (``row``, ``col``)."""
        ...


class BiasSource(Protocol):
    """Where the bias of some columns comes from."""

    def at(self, code: Code, col: Expr, cols: int) -> Var:
        """The bias of ``cols`` columns from ``col`` on, in Bias."""
        ...


class _Window(NamedTuple):
    """A part of the output."""

    row: Expr
    col: Expr
    rows: int
    cols: int


class Tiler:
    """Writes one product for one tile size."""

    def __init__(self, code: Code, product: Product, tile: L0TileResult) -> None:
        self.code, self.product, self.tile = code, product, tile
        self.lhs = product.lhs
        self._count = 0

    def _stage(self) -> None:
        """Bring a left operand made by a vector core to Mat: only a move crosses."""
        if tile_type_of(self.lhs).memory_space is MemorySpace.Vec:
            name = f"{self.lhs.name_hint}_l0_mat"
            self.lhs = self.code.let(name, "tile.move", self.lhs, target_memory=MemorySpace.Mat)

    def _left(self, row: Expr, k: Expr, rows: int, ks: int, suffix: str = "a") -> Var:
        name = f"{self.product.name}_l0_{suffix}"
        return self.code.let(name, "tile.extract", self.lhs, row, k, [rows, ks], target_memory=MemorySpace.Left)

    def _right(self, k: Expr, col: Expr, ks: int, cols: int, suffix: str = "b") -> Var:
        name, rhs = f"{self.product.name}_l0_{suffix}", self.product.rhs
        return self.code.let(name, "tile.extract", rhs, k, col, [ks, cols], target_memory=MemorySpace.Right)

    def _first(self, name: str, a: Var, b: Var, bias: Var | None) -> Var:
        name = f"{name}_first"
        if bias is not None:
            return self.code.let(name, "tile.matmul_bias", a, b, bias)
        return self.code.let(name, "tile.matmul", a, b)

    def part(self, row: int, col: int, rows: int, cols: int, bias: Var | None = None) -> Var:
        """The part of the output at (``row``, ``col``): all blocks of K, then what they leave."""
        p, code, k = self.product, self.code, self.tile.k
        name = p.name if (rows, cols) == (p.m, p.n) else f"{p.name}_t{self._count}"
        self._count += 1
        window = _Window(index_const(row), index_const(col), rows, cols)
        full, tail = divmod(p.k, k)
        # An accumulator of fewer valid rows is packed. Only a product makes one: the first block precedes the loop.
        packed = not same_dims(p.valid[:1], tile_type_of(p.lhs).shape[:1])
        fresh = p.acc is None and full >= 2 and not packed
        init = self._accumulator(name, window) if fresh else p.acc
        self._stage()
        value: Var | None = None
        start = 0
        if p.acc is None and full >= 2 and packed:
            a, b = self._operands(window, index_const(0), k, "0")
            init, start = self._first(name, a, b, bias), 1
            value = init
        elif p.acc is not None and p.init_cond is not None:
            a, b = self._operands(window, index_const(0), k, "0")
            init, start = code.let(f"{name}_first", "tile.matmul_acc", p.acc, a, b, p.init_cond), 1
            value = init
        if full - start >= 2:
            assert init is not None
            value = self._blocks(name, window, init, bias if fresh else None, start, fresh)
        elif full - start == 1:
            a, b = self._operands(window, index_const(start * k), k)
            value = self._first(name, a, b, bias) if init is None else self._next(name, init, a, b)
        if tail:
            a, b = self._operands(window, index_const(full * k), tail, "t")
            assert value is not None
            value = self._next(name, value, a, b)
        assert value is not None
        return value

    def _operands(self, window: _Window, k: Expr, ks: int, suffix: str = "") -> tuple[Var, Var]:
        a = self._left(window.row, k, window.rows, ks, f"a{suffix}")
        return a, self._right(k, window.col, ks, window.cols, f"b{suffix}")

    def _next(self, name: str, acc: Expr, a: Var, b: Var) -> Var:
        return self.code.let(f"{name}_acc", "tile.matmul_acc", acc, a, b)

    def _blocks(self, name: str, window: _Window, init: Var, bias: Var | None, start: int, fresh: bool) -> Var:
        """A loop over the whole blocks of K from block ``start`` on."""
        code, k = self.code, self.tile.k

        def body(ko: Var, carried: IterArg) -> Expr:
            a, b = self._operands(window, ko, k)
            if not fresh:
                return self._next(name, carried, a, b)
            return code.either(
                f"{name}_phi",
                binary(E.Eq, ko, index_const(0), code.span),
                lambda: self._first(name, a, b, bias),
                lambda: self._next(name, carried, a, b),
            )

        return code.loop(f"{name}_ko", (start * k, self.product.k // k * k, k), (name, init), body, stages=2)

    def _accumulator(self, name: str, window: _Window) -> Var:
        """A place for a part, valid where the part will be."""
        p, code = self.product, self.code
        dtype, extent = tile_type_of(p.call).dtype, [window.rows, window.cols]
        made = code.let(f"{name}_l0_init", "tile.create", extent, dtype=dtype, target_memory=MemorySpace.Acc)
        if p.is_full:
            return made
        zero, k = index_const(0), self.tile.k
        left = build("tile.extract", self.lhs, window.row, zero, [window.rows, k], span=code.span)
        right = build("tile.extract", p.rhs, zero, window.col, [k, window.cols], span=code.span)
        region = tile_type_of(left).valid_shape[0], tile_type_of(right).valid_shape[1]
        return code.let(f"{name}_l0_valid", "tile.set_validshape", made, *region)

    # The output in parts

    def grid(self, placer: Placer, bias: BiasSource | None) -> Expr:
        """All of the output that is valid, in parts that follow one another."""
        p, tile = self.product, self.tile
        valid = static_dims(p.valid) or (p.m, p.n)
        for col in range(0, valid[1], tile.n):
            column_bias = self._bias_at(bias, col)
            for row in range(0, valid[0], tile.m):
                self._put(placer, row, col, column_bias)
        return placer.dest

    def nest(self, placer: Placer, bias: BiasSource | None) -> Expr:
        """All of the output where a tile has all of K: loops over whole tiles, then the edges."""
        p, tile = self.product, self.tile
        whole_m, whole_n = p.m // tile.m * tile.m, p.n // tile.n * tile.n
        if whole_m and whole_n:
            placer.dest = self._interior(placer, bias, whole_m, whole_n)
        edges = [(row, whole_n) for row in range(0, whole_m, tile.m) if whole_n < p.n]
        edges += [(whole_m, col) for col in range(0, p.n, tile.n) if whole_m < p.m]
        for row, col in edges:
            self._put(placer, row, col, self._bias_at(bias, col))
        return placer.dest

    def _bias_at(self, bias: BiasSource | None, col: int) -> Var | None:
        """The bias of the parts whose columns start at ``col``."""
        cols = min(self.tile.n, self.product.n - col)
        return bias.at(self.code, index_const(col), cols) if bias is not None else None

    def _put(self, placer: Placer, row: int, col: int, bias: Var | None) -> None:
        """The part at (``row``, ``col``), as large as a tile or what is left, in its place."""
        rows, cols = min(self.tile.m, self.product.m - row), min(self.tile.n, self.product.n - col)
        made = self.part(row, col, rows, cols, bias)
        placer.dest = placer.place(self.code, made, index_const(row), index_const(col), placer.dest)

    def _interior(self, placer: Placer, bias: BiasSource | None, whole_m: int, whole_n: int) -> Var:
        """Two loops over whole tiles. The operand of the outer stays while the other's tiles go by."""
        p, tile, code = self.product, self.tile, self.code
        output = tile.stationarity is Stationarity.OutputStationary
        rows_outer = tile.os_holds_a if output else tile.stationarity is Stationarity.AStationary
        zero = index_const(0)

        def left(row: Expr) -> Var:
            return self._left(row, zero, tile.m, p.k)

        def right(col: Expr) -> Var:
            return self._right(zero, col, p.k, tile.n)

        def outer(held_at: Var, carried: IterArg) -> Expr:
            held = left(held_at) if rows_outer else right(held_at)
            held_bias = bias.at(code, held_at, tile.n) if bias is not None and not rows_outer else None

            def inner(moving_at: Var, inner_carried: IterArg) -> Expr:
                row, col = (held_at, moving_at) if rows_outer else (moving_at, held_at)
                a, b = (held, right(col)) if rows_outer else (left(row), held)
                row_bias = bias.at(code, col, tile.n) if bias is not None and rows_outer else held_bias
                made = self._first(p.name, a, b, row_bias)
                return placer.place(code, made, row, col, inner_carried)

            attrs = {OVERLAP_STORES: False, **({DOUBLE_BUFFER_C: True} if tile.double_buffer_c else {})}
            bounds = (0, whole_n, tile.n) if rows_outer else (0, whole_m, tile.m)
            return code.loop(f"{p.name}_i", bounds, (f"{placer.name}_i", carried), inner, stages=2, attrs=attrs)

        bounds = (0, whole_m, tile.m) if rows_outer else (0, whole_n, tile.n)
        return code.loop(f"{p.name}_o", bounds, (f"{placer.name}_o", placer.dest), outer, stages=2 if output else 1)


class Store:
    """Parts go to the tensor the whole output was stored to."""

    def __init__(self, call: Call, name: str) -> None:
        self.call, self.name = call, name
        self.dest: Expr = call.args[2]
        offsets = call.args[1]
        assert isinstance(offsets, MakeTuple)
        self._base = offsets.elements

    def place(self, code: Code, part: Var, row: Expr, col: Expr, dest: Expr) -> Var:
        offsets = [plus(base, offset) for base, offset in zip(self._base, (row, col))]
        return code.let(f"{self.name}_t", "tile.store", part, offsets, dest, attrs=self.call.attrs, **self.call.kwargs)


class Scratch:
    """Parts go to a tile in Mat that stands for the whole output."""

    def __init__(self, code: Code, product: Product, dtype: DataType) -> None:
        self.name = f"{product.name}_mat"
        shape = [product.m, product.n]
        self.dest: Expr = code.let(self.name, "tile.create", shape, dtype=dtype, target_memory=MemorySpace.Mat)

    def place(self, code: Code, part: Var, row: Expr, col: Expr, dest: Expr) -> Var:
        return code.let(f"{self.name}_t", "tile.assemble", dest, part, [row, col])


def is_plane(call: Call, var: Var) -> bool:
    """Whether a store writes ``var`` as it is to a place in a matrix."""
    offsets, out = call.args[1], call.args[2]
    return (
        call.args[0] is var
        and len(call.args) == 3
        and isinstance(offsets, MakeTuple)
        and len(offsets.elements) == 2
        and isinstance(out.type, TensorType)
        and len(out.type.shape) == 2
    )


class WholeBias:
    """A bias used as a whole, moved to Bias once."""

    def __init__(self, code: Code, product: Product) -> None:
        bias = product.bias
        assert bias is not None
        self._made = bias
        if tile_type_of(bias).memory_space is not MemorySpace.Bias:
            self._made = code.let(f"{bias.name_hint}_l0", "tile.move", bias, target_memory=MemorySpace.Bias)

    def at(self, code: Code, col: Expr, cols: int) -> Var:
        return self._made


class BiasWindows:
    """A bias loaded in windows, from where the whole of it was loaded."""

    def __init__(self, product: Product, load: Call) -> None:
        assert product.bias is not None
        self._name = product.bias.name_hint
        self._tensor = load.args[0]
        offsets = load.args[1]
        assert isinstance(offsets, MakeTuple)
        self._row, self._col = offsets.elements

    def at(self, code: Code, col: Expr, cols: int) -> Var:
        offsets = [self._row, plus(self._col, col)]
        window = code.let(
            f"{self._name}_w", "tile.load", self._tensor, offsets, [1, cols], target_memory=MemorySpace.Mat
        )
        return code.let(f"{self._name}_l0", "tile.move", window, target_memory=MemorySpace.Bias)
