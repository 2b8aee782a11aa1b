"""Products that do not fit L0 become loops over tiles that do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...dtypes import DataType
from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, MakeTuple, Var, index_const, tile_type_of
from ...ir.program import Function
from ...ir.stmt import AssignStmt, Stmt, call_of, flatten_to_stmts, seq
from ...ir.types import same_dims, static_dims
from ...ops.kinds import ROUND_MODES
from ...ops.registry import ArgEffect, arg_effect, decl_of
from ..bodies import BodyRewriter
from ..context import MemoryPlanner, PassContext
from ..diagnostics import perf_hint
from ..emitting import reinfer
from ..memory_model import box_of
from ..stmt_dependency_analysis import Sharing
from .build import BiasSource, BiasWindows, Code, Placer, Scratch, Store, Tiler, WholeBias, is_plane
from .chooser import L0TileResult
from .product import (
    Product,
    check_operands,
    chosen,
    configuration,
    matmul_of,
    product_of,
    units,
    whole_output,
)
from .uses import Uses

_NARROWED = (DataType.BF16, DataType.FP16)


def tile_products(function: Function, context: PassContext) -> Function:
    """``function`` with every product that does not fit L0 tiled; itself when all fit."""
    return _Rewriter(function, context).rewrite(function)


@dataclass(slots=True)
class _Block:
    """A list of statements being rewritten."""

    stmts: list[Stmt]
    made: list[Stmt] = field(default_factory=list)
    at_store: dict[Stmt, tuple[Product, L0TileResult, Call | None]] = field(default_factory=dict)
    """Products to compute where their result is stored, by that store, and the load of their bias if it goes."""
    changed: bool = False


class _Rewriter(BodyRewriter):
    def __init__(self, function: Function, context: PassContext) -> None:
        super().__init__()
        self._function, self._context, self._target = function, context, context.target
        self._known: Uses | None = None
        self._dropped: set[Stmt] = set()

    @property
    def _uses(self) -> Uses:
        if self._known is None:
            self._known = Uses(self._function)
        return self._known

    def body(self, body: Any) -> Any:
        if body is None:
            return None
        block = _Block(flatten_to_stmts(body))
        for index, stmt in enumerate(block.stmts):
            self._statement(block, index, stmt)
        if not block.changed:
            return body
        return seq([s for s in block.made if s not in self._dropped], body.span)

    def _statement(self, block: _Block, index: int, stmt: Stmt) -> None:
        if stmt in self._dropped:
            return
        if not isinstance(stmt, AssignStmt):
            made = self.rewrite(stmt)
            block.changed |= made is not stmt
            block.made.append(made)
            return
        if stmt in block.at_store:
            block.made += self._stored(stmt, *block.at_store[stmt])
            return
        call = matmul_of(stmt)
        if call is None:
            block.made.append(stmt)
            return
        check_operands(call, self._target)
        stmt, call = self._renamed(stmt, call)
        block.changed |= stmt is not block.stmts[index]
        block.made += self._product(block, index, stmt, call)

    def _renamed(self, stmt: AssignStmt, call: Call) -> tuple[AssignStmt, Call]:
        """The statement reading what stands for its operands now."""
        if not any(a in self.vars for a in call.args if isinstance(a, Var)):
            return stmt, call
        call = reinfer(call, [self.vars.get(a, a) if isinstance(a, Var) else a for a in call.args])
        return stmt.replace(value=call), call

    def _product(self, block: _Block, index: int, stmt: AssignStmt, call: Call) -> list[Stmt]:
        product = product_of(stmt, call)
        if product is None:
            return [stmt]
        cast = self._folded_cast(product)
        tile = self._tile(block, index, product, cast)
        if tile is None:
            return [stmt, *self._fold(block, product, cast)]
        if isinstance(tile, list):
            return tile
        code = Code(stmt.span)
        bias = WholeBias(code, product) if product.bias is not None else None
        tiler = Tiler(code, product, tile)
        tiler.part(0, 0, product.m, product.n, bias.at(code, index_const(0), product.n) if bias is not None else None)
        block.changed = True
        return [*code.named(stmt.var), *self._fold(block, product, cast)]

    def _hint(self, code: str, product: Product, message: str) -> None:
        perf_hint(self._context, code, "AutoTileMatmulL0", f"{product.call.op.name} {message}", product.call.span)

    # What to do with a product

    def _tile(
        self, block: _Block, index: int, product: Product, cast: AssignStmt | None
    ) -> L0TileResult | list[Stmt] | None:
        """The tile of a product that stays where it is, what became of one in parts, or None for one that is kept."""
        dtypes = [tile_type_of(v).dtype for v in (product.lhs, product.rhs, product.call)]
        if any(d.bits < 8 for d in dtypes):
            self._hint("PH-AT-003", product, f"of {dtypes[0]} operands is not tiled: they are smaller than a byte")
            return None
        if product.bias is not None and not self._bias_is_legal(product):
            return None
        unit = units(product, self._target)[2]
        if product.k % unit:
            code = "PH-AT-007" if product.k > unit else "PH-AT-005"
            self._hint(code, product, f"is not tiled: K={product.k} is no multiple of {unit}")
            return None
        config = configuration(product, self._context)
        tile = chosen(config)
        if tile is not None and (tile.m, tile.n) != (config.M, config.N):
            made = self._in_parts(block, index, product, cast)
            if made is not None:
                return made
            tile = chosen(whole_output(config))
        if tile is None:
            self._hint("PH-AT-006", product, _no_place(product))
            return None
        return None if tile.k == product.k else tile

    def _bias_is_legal(self, product: Product) -> bool:
        assert product.bias is not None
        spaces = (MemorySpace.Mat, MemorySpace.Bias)
        boxes = [box_of(tile_type_of(v), self._target, padded=False) for v in (product.lhs, product.rhs)]
        sizes = [(product.m, product.k), (product.k, product.n)]
        whole = all(s % b == 0 for size, box in zip(sizes, boxes) for s, b in zip(size, box))
        if whole and tile_type_of(product.bias).memory_space in spaces:
            return True
        reason = "its bias is not in Mat or Bias, or its operands end inside a box"
        self._hint("PH-AT-011", product, f"is not tiled: {reason}")
        return False

    # The output in parts

    def _in_parts(self, block: _Block, index: int, product: Product, cast: AssignStmt | None) -> list[Stmt] | None:
        """What stands at the product when its output is computed in parts; None when there is no place for parts."""
        if product.acc is not None or tile_type_of(product.lhs).memory_space is not MemorySpace.Mat:
            return None
        if not all(static_dims(product.valid) or (0,)):
            # Nothing is valid, or how much is known only at run time: a part could be empty then.
            return None
        store = self._store_of(block, index, product)
        dtype = None if store is not None else self._scratch_dtype(product, cast)
        if store is None and dtype is None:
            return None
        config = configuration(product, self._context)
        if store is None and self._context.memory_planner is MemoryPlanner.PYPTO:
            # Its allocator does not split one large operand's place among several smaller ones.
            config.allow_a_stationary = config.allow_b_stationary = False
        if product.bias is not None and tile_type_of(product.bias).memory_space is MemorySpace.Bias:
            # No instruction takes a window of what is in Bias.
            config.min_n = config.N
        tile = chosen(config)
        if tile is None or (tile.m, tile.n) == (config.M, config.N):
            return None
        load: Call | None = None
        if product.bias is not None and tile.n < product.n:
            found = self._bias_load(block, index, product, store)
            if found is None:
                return None
            load = call_of(found)
            self._dropped.add(found)
        block.changed = True
        if store is not None:
            block.at_store[store] = (product, tile, load)
            return []
        assert dtype is not None
        return self._scratched(product, cast, tile, load, dtype)

    def _stored(self, stmt: AssignStmt, product: Product, tile: L0TileResult, load: Call | None) -> list[Stmt]:
        code = Code(product.stmt.span)
        assert isinstance(stmt.value, Call)
        self._emit(code, product, tile, Store(stmt.value, stmt.var.name_hint), load)
        return code.named(stmt.var)

    def _scratched(
        self, product: Product, cast: AssignStmt | None, tile: L0TileResult, load: Call | None, dtype: DataType
    ) -> list[Stmt]:
        code = Code(product.stmt.span)
        made = self._emit(code, product, tile, Scratch(code, product, dtype), load)
        self._stand_in(product, cast, made)
        return code.stmts

    def _stand_in(self, product: Product, cast: AssignStmt | None, made: Expr) -> None:
        self.vars[product.var] = made
        if cast is not None:
            self.vars[cast.var] = made
            self._dropped.add(cast)

    @staticmethod
    def _emit(code: Code, product: Product, tile: L0TileResult, placer: Placer, load: Call | None) -> Expr:
        bias: BiasSource | None = None
        if load is not None:
            bias = BiasWindows(product, load)
        elif product.bias is not None:
            bias = WholeBias(code, product)
        tiler = Tiler(code, product, tile)
        nested = tile.k == product.k and product.is_full and _is_whole(placer.dest)
        return tiler.nest(placer, bias) if nested else tiler.grid(placer, bias)

    def _store_of(self, block: _Block, index: int, product: Product) -> AssignStmt | None:
        """The store that is all the use of a product, if it may be computed only there."""
        found = self._uses.of(product.var)
        if len(found) != 1 or found[0][1].op.name != "tile.store":
            return None
        store, call = found[0]
        if not isinstance(store, AssignStmt) or not is_plane(call, product.var):
            return None
        for other in block.stmts[index + 1 :]:
            if other is store:
                return store
            if not self._may_pass(other, product):
                return None
        return None

    @staticmethod
    def _may_pass(stmt: Stmt, product: Product) -> bool:
        """Whether ``stmt`` may go before the product that precedes it: it does not write what that reads."""
        call = call_of(stmt)
        decl = decl_of(call) if call is not None else None
        if call is None or decl is None:
            return False
        if product.bias is not None:
            return decl.name == "tile.load"
        writes = (a for i, a in enumerate(call.args) if arg_effect(call, i) is not ArgEffect.Read)
        return (decl.pure or decl.name == "tile.store") and not any(
            a is product.lhs or a is product.rhs for a in writes
        )

    def _bias_load(self, block: _Block, index: int, product: Product, store: Stmt | None) -> AssignStmt | None:
        """The load that is all there is to a bias, if its windows may be loaded where they are used."""
        assert product.bias is not None
        for stmt in reversed(block.stmts[:index]):
            call = call_of(stmt)
            if call is None or call.op.name != "tile.load":
                break
            if isinstance(stmt, AssignStmt) and stmt.var is product.bias:
                shape = tile_type_of(product.bias)
                single = len(self._uses.of(product.bias)) == 1
                offsets = call.args[1]
                plane = isinstance(offsets, MakeTuple) and len(offsets.elements) == 2
                clamps = call.kwargs.get("clamp", False)
                apart = store is None or self._apart(call, store)
                if single and plane and apart and not clamps and same_dims(shape.valid_shape, shape.shape):
                    return stmt
                break
        self._hint("PH-AT-011", product, "is not tiled along N: its bias is not one whole load just before it")
        return None

    def _apart(self, load: Call, store: Stmt) -> bool:
        """Whether what is loaded cannot be what is stored to, part by part."""
        written = call_of(store)
        sharing = Sharing(self._function)
        tensors = [load.args[0], written.args[2] if written is not None else None]
        buffers = [sharing.find(t) for t in tensors if isinstance(t, Var)]
        return len(buffers) == 2 and buffers[0] is not buffers[1]

    # A result that only other products read

    def _folded_cast(self, product: Product) -> AssignStmt | None:
        """The cast that is all the use of a product, if writing to Mat converts as it does and products read it."""
        found = self._uses.of(product.var)
        if len(found) != 1:
            return None
        stmt, call = found[0]
        if call.op.name != "tile.cast" or not isinstance(stmt, AssignStmt):
            return None
        if not self._uses.multiplied_only(stmt.var):
            return None
        source, made = tile_type_of(product.call).dtype, tile_type_of(call).dtype
        rounds = ROUND_MODES[call.kwargs["mode"]]
        plain = rounds == "rint" and not call.kwargs.get("saturate")
        if source is DataType.FP32 and made in _NARROWED and plain and product.is_full:
            return stmt
        message = 'is converted by a vector core; only pl.cast(.., mode="rint") of FP32 is not'
        self._hint("PH-AT-010", product, message)
        return None

    def _scratch_dtype(self, product: Product, cast: AssignStmt | None) -> DataType | None:
        """The element type of a tile in Mat that can stand for the result; None when none can."""
        if not product.is_full or not self._target.can_move(MemorySpace.Acc, MemorySpace.Mat):
            return None
        if cast is not None:
            dtype = tile_type_of(cast.var).dtype
        elif self._uses.multiplied_only(product.var):
            dtype = tile_type_of(product.call).dtype
            if dtype is not DataType.FP32 or not self._target.quirks.tinsert_f32_destination:
                message = "is kept whole: cast its result to BF16 or FP16 before it is multiplied"
                self._hint("PH-AT-009", product, message)
                return None
        else:
            return None
        fits = dtype.storage_bytes(product.m * product.n) <= self._target.capacity(MemorySpace.Mat)
        return dtype if fits else None

    def _fold(self, block: _Block, product: Product, cast: AssignStmt | None) -> list[Stmt]:
        """The statements that leave a result that fits L0C in Mat, instead of the cast."""
        dtype = self._scratch_dtype(product, cast) if cast is not None else None
        if cast is None or dtype is None:
            return []
        code = Code(cast.span)
        scratch = Scratch(code, product, dtype)
        made = scratch.place(code, product.var, index_const(0), index_const(0), scratch.dest)
        self._stand_in(product, cast, made)
        del self.vars[product.var]
        block.changed = True
        return code.stmts


def _no_place(product: Product) -> str:
    if product.acc is not None:
        return "is not tiled: its accumulator exceeds L0C, and belongs to its caller"
    return "is not tiled: its result exceeds L0C and is neither stored as a whole nor only multiplied"


def _is_whole(dest: Expr) -> bool:
    """Whether what is written to is valid everywhere: its type is then the same whatever was written."""
    type: Any = dest.type
    return same_dims(type.valid_shape, type.shape)
