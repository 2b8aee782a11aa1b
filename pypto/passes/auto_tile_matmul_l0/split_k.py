"""Sums of products over a loop, whose result exceeds L0C, are computed in parts: the loop runs once for each.

The loop is one that a kernel writes to add up the products of blocks of K it loads::

    acc = create; for k: a, b = loads; acc = matmul(a, b) if first else matmul_acc(acc, a, b); store(acc)

Cutting the accumulator would still need all of it, so the parts go around the loop, and each loads only its rows of A
and its columns of B. Loads then follow stores, so what is stored to must be another tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...backend.formats import round_up
from ...ir.enums import ForKind, MemorySpace
from ...ir.expr import Call, Expr, IterArg, MakeTuple, Var, index_const, tile_type_of
from ...ir.node import same_objects
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, YieldStmt, flatten_to_stmts, seq
from ...ir.types import ScalarType, TensorType, same_dims, static_dims
from ...ir.visitor import substitute
from ...ops.rules import plus
from ..bodies import BodyRewriter
from ..context import PassContext
from ..memory_model import tile_bytes
from ..stmt_dependency_analysis import Sharing
from .build import Code, Store, is_plane
from .product import Product, chosen, configuration, mat_box, product_of, whole_output
from .uses import Uses


@dataclass(frozen=True, slots=True)
class _Reduction:
    """The loop, its two loads and branches, and the store of what it makes."""

    create: AssignStmt
    loop: ForStmt
    scalars: tuple[AssignStmt, ...]
    lhs: AssignStmt
    rhs: AssignStmt
    branch: IfStmt
    fresh_first: bool
    """Whether the branch taken when the condition holds makes the first product."""
    first: Product
    store: AssignStmt


def split_reductions(function: Function, context: PassContext) -> Function:
    """``function`` with such loops run once a part; itself when there are none."""
    return _Splitter(function, context).rewrite(function)


class _Splitter(BodyRewriter):
    def __init__(self, function: Function, context: PassContext) -> None:
        super().__init__()
        self._function, self._context = function, context
        self._known: tuple[Uses, Sharing] | None = None

    @property
    def _facts(self) -> tuple[Uses, Sharing]:
        if self._known is None:
            self._known = Uses(self._function), Sharing(self._function)
        return self._known

    def body(self, body: Any) -> Any:
        if body is None:
            return None
        stmts = flatten_to_stmts(body)
        made: list[Stmt] = []
        position = 0
        while position < len(stmts):
            found = self._match(*stmts[position : position + 3]) if position + 2 < len(stmts) else None
            parts = self._parts(found) if found is not None else None
            made += parts if parts is not None else [self.rewrite(stmts[position])]
            position += 3 if parts is not None else 1
        return body if same_objects(made, stmts) else seq(made, body.span)

    # Recognising the loop

    def _match(self, create: Stmt, loop: Stmt, store: Stmt) -> _Reduction | None:
        if not (isinstance(loop, ForStmt) and loop.kind is ForKind.Pipeline and len(loop.iter_args) == 1):
            return None
        if not isinstance(create, AssignStmt) or not isinstance(store, AssignStmt):
            return None
        call, target = create.value, store.value
        if not (isinstance(call, Call) and call.op.name == "tile.create"):
            return None
        if loop.iter_args[0].init_value is not create.var:
            return None
        if not (isinstance(target, Call) and target.op.name == "tile.store" and is_plane(target, loop.return_vars[0])):
            return None
        uses, _ = self._facts
        if create.var in uses.calls or len(uses.of(loop.return_vars[0])) != 1:
            return None
        return self._match_body(create, loop, store)

    def _match_body(self, create: AssignStmt, loop: ForStmt, store: AssignStmt) -> _Reduction | None:
        *stmts, branch, end = [None, None, *flatten_to_stmts(loop.body)]
        if not (isinstance(branch, IfStmt) and isinstance(end, YieldStmt) and len(branch.return_vars) == 1):
            return None
        if end.values[0] is not branch.return_vars[0]:
            return None
        assigns = [s for s in stmts[2:] if isinstance(s, AssignStmt)]
        loads = {s.var: s for s in assigns if _is_load(s)}
        scalars = tuple(s for s in assigns if isinstance(s.var.type, ScalarType) and not isinstance(s.value, Call))
        if len(assigns) != len(stmts) - 2 or len(loads) != 2 or len(scalars) + 2 != len(assigns):
            return None
        products = [_only_product(body) for body in (branch.then_body, branch.else_body)]
        fresh = next((i for i, p in enumerate(products) if p is not None and p.call.op.name == "tile.matmul"), None)
        if fresh is None:
            return None
        first, more = products[fresh], products[1 - fresh]
        if first is None or more is None or more.acc is not loop.iter_args[0] or more.init_cond is not None:
            return None
        if first.lhs is not more.lhs or first.rhs is not more.rhs or first.lhs not in loads or first.rhs not in loads:
            return None
        uses, _ = self._facts
        if any(len(uses.of(v)) != 2 for v in loads) or not first.is_full:
            return None
        lhs, rhs = loads[first.lhs], loads[first.rhs]
        return _Reduction(create, loop, scalars, lhs, rhs, branch, fresh == 0, first, store)

    def _apart(self, found: _Reduction) -> bool:
        """Whether what is loaded cannot be what is stored to."""
        _, sharing = self._facts
        calls = [s.value for s in (found.store, found.lhs, found.rhs) if isinstance(s.value, Call)]
        tensors = [call.args[2 if call.op.name == "tile.store" else 0] for call in calls]
        dest, *sources = [sharing.find(t) for t in tensors if isinstance(t, Var)]
        return len(sources) == 2 and all(source is not dest for source in sources)

    # Writing the parts

    def _parts(self, found: _Reduction) -> list[Stmt] | None:
        product, target = found.first, self._context.target
        size = tile_bytes(tile_type_of(product.call), target)
        config = configuration(product, self._context)
        fits = size is not None and size <= target.capacity(MemorySpace.Acc)
        if size is None or (fits and chosen(whole_output(config)) is not None) or not self._apart(found):
            return None
        config.allow_a_stationary = config.allow_b_stationary = config.allow_double_buffer_c = False
        config.c_read = True
        tile = chosen(config)
        if tile is None or (tile.m >= product.m and tile.n >= product.n):
            return None
        code = Code(found.loop.span)
        assert isinstance(found.store.value, Call)
        store = Store(found.store.value, found.store.var.name_hint)
        boxes = mat_box(product.lhs, target)[0], mat_box(product.rhs, target)[1]
        for index, (row, col) in enumerate(_origins(product, tile.m, tile.n)):
            extent = min(tile.m, product.m - row), min(tile.n, product.n - col)
            name = f"{found.loop.return_vars[0].name_hint}_mn{index}"
            part = _Part(code, found, (row, col), extent, boxes).write(name)
            store.dest = store.place(code, part, index_const(row), index_const(col), store.dest)
        return code.named(found.store.var)


def _origins(product: Product, m: int, n: int) -> Iterator[tuple[int, int]]:
    for col in range(0, product.n, n):
        for row in range(0, product.m, m):
            yield row, col


def _is_load(stmt: AssignStmt) -> bool:
    """Whether a statement loads a whole window of a matrix to Mat."""
    call = stmt.value
    if not isinstance(call, Call) or call.op.name != "tile.load" or call.kwargs.get("clamp", False):
        return False
    type = tile_type_of(stmt.var)
    return (
        isinstance(call.args[1], MakeTuple)
        and len(call.args[1].elements) == 2
        and isinstance(call.args[0].type, TensorType)
        and len(call.args[0].type.shape) == 2
        and type.memory_space is MemorySpace.Mat
        and static_dims(type.shape) is not None
        and same_dims(type.valid_shape, type.shape)
    )


def _only_product(body: Stmt | None) -> Product | None:
    """The product a branch computes and hands on, when that is all of it."""
    stmts = flatten_to_stmts(body)
    stmt, end = stmts if len(stmts) == 2 else (None, None)
    if not isinstance(stmt, AssignStmt) or not isinstance(end, YieldStmt):
        return None
    if not isinstance(stmt.value, Call) or stmt.value.op.name not in ("tile.matmul", "tile.matmul_acc"):
        return None
    return product_of(stmt, stmt.value) if len(end.values) == 1 and end.values[0] is stmt.var else None


class _Part:
    """The loop for one part of the output."""

    def __init__(
        self, code: Code, found: _Reduction, at: tuple[int, int], extent: tuple[int, int], boxes: tuple[int, int]
    ) -> None:
        self._code, self._found, self._at, self._extent = code, found, at, extent
        self._shape = round_up(extent[0], boxes[0]), round_up(extent[1], boxes[1])

    def write(self, name: str) -> Var:
        found, code, loop = self._found, self._code, self._found.loop
        dtype = tile_type_of(found.first.call).dtype
        init = code.let(f"{name}_init", "tile.create", list(self._shape), dtype=dtype, target_memory=MemorySpace.Acc)
        if self._shape != self._extent:
            init = code.let(f"{name}_valid", "tile.set_validshape", init, *self._extent)

        def body(index: Var, carried: IterArg) -> Expr:
            known: dict[Var, Expr] = {loop.loop_var: index}
            for scalar in found.scalars:
                var = Var(scalar.var.name_hint, scalar.var.type, scalar.var.span)
                code.stmts.append(AssignStmt(var, substitute(scalar.value, known), scalar.span))
                known[scalar.var] = var
            a, b = self._load(found.lhs, 0, known), self._load(found.rhs, 1, known)
            branches: list[Callable[[], Expr]] = [
                lambda: code.let(f"{name}_first", "tile.matmul", a, b),
                lambda: code.let(f"{name}_next", "tile.matmul_acc", carried, a, b),
            ]
            then, otherwise = branches if found.fresh_first else reversed(branches)
            return code.either(f"{name}_phi", substitute(found.branch.condition, known), then, otherwise)

        bounds = (loop.start, loop.stop, loop.step)
        stages = loop.attrs.get("pipeline_stages", 1)
        index = loop.loop_var.name_hint
        return code.loop(index, bounds, (name, init), body, stages, loop.attrs, result=name)

    def _load(self, stmt: AssignStmt, axis: int, known: dict[Var, Expr]) -> Var:
        """The rows, or columns, of a load that the part needs."""
        call = stmt.value
        assert isinstance(call, Call) and isinstance(call.args[1], MakeTuple)
        offsets = [substitute(o, known) for o in call.args[1].elements]
        offsets[axis] = plus(offsets[axis], index_const(self._at[axis]))
        shape, valid = [list(static_dims(tile_type_of(stmt.var).shape) or ()) for _ in range(2)]
        shape[axis], valid[axis] = self._shape[axis], self._extent[axis]
        name = stmt.var.name_hint
        return self._code.let(name, "tile.load", call.args[0], offsets, shape, valid, attrs=call.attrs, **call.kwargs)
