"""Rewrites the tiles of a kernel as two-dimensional ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...arith import ConstIntBoundAnalyzer
from ...arith.bounds import loop_bound
from ...errors import user_error
from ...ir.enums import MemorySpace, PadValue, TensorLayout
from ...ir.expr import Call, Expr, MakeTuple, Var, index_const, is_integer
from ...ir.naming import written_name
from ...ir.node import same_objects
from ...ir.span import Span
from ...ir.stmt import AssignStmt, ForStmt, Stmt, seq
from ...ir.types import TensorType, TileType, Type
from ...ops.registry import decl_of, rebind
from ...ops.rules import dims_text, plus, product, same, value
from ..emitting import EmittingRewriter, build, kind_of, registering, reinfer
from .shapes import flat_offsets, flat_shape, flat_type, flat_valid, is_flat, runs_together

Rule = Callable[["Flattener", Call], Expr]
RULES: dict[str, Rule] = {}
rule = registering(RULES)
"""Decorator: the function flattens calls of the operators named."""
_SHAPES = ("shape", "shapes")


class Flattener(EmittingRewriter):
    """Gives every tile two dimensions. ``pages`` holds the results of batched products, which are several tiles."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[Var, list[Expr]] = {}
        self.by_page: dict[Var, tuple[Call, bool]] = {}
        """Loads that must be done matrix by matrix, by the variable of the whole or of its transposed view."""
        self.by_column: set[Expr] = set()
        """Flattened tiles whose batches lie side by side rather than one above the other."""
        self.result: Var | None = None
        """The variable the statement at hand defines."""
        self._bounds = ConstIntBoundAnalyzer()

    def inside(self, offset: Expr, size: Expr, extent: Expr) -> bool:
        """Whether ``size`` elements from ``offset`` on provably lie within ``extent``."""
        if value(offset) == 0 and same(size, extent):
            return True
        at, count, limit = self._bounds(offset), self._bounds(size), self._bounds(extent)
        return at.min_value >= 0 and at.max_value + count.max_value <= limit.min_value

    def rewrite_type(self, type: Type) -> Type:
        made = super().rewrite_type(type)
        return flat_type(made, self.span) if isinstance(made, TileType) else made

    def define(self, var: Any) -> Any:
        if var not in self.vars and not is_flat(var.type) and not self.span.is_valid():
            self.span = var.span
        return super().define(var)

    def rewrite_for(self, op: ForStmt) -> Stmt:
        self._bounds.update(op.loop_var, loop_bound(self._bounds, op.start, op.stop, op.step))
        return self.generic(op)

    def rewrite_assign(self, op: AssignStmt) -> Stmt:
        if is_integer(op.value):
            self._bounds.update(op.var, self._bounds(op.value))
        self.result = op.var
        made = self.rewrite(op.value)
        if op.var in self.by_page:
            return seq([])
        if op.var in self.pages or (isinstance(made, Var) and not isinstance(op.value, Var)):
            self.vars[op.var] = made
            return seq([])
        if made is op.value or not isinstance(made.type, (TileType, TensorType)):
            return op.replace(value=made, var=self.define(op.var))
        var = self.vars[op.var] = Var(op.var.name_hint, made.type, op.var.span)
        return op.replace(value=made, var=var)

    def visit_var(self, op: Var) -> Any:
        made = self.vars.get(op, op)
        if op in self.pages:
            raise user_error(
                ValueError,
                f"{written_name(op.name_hint)!r} holds {len(self.pages[op])} matrices, one for each batch; it can "
                "only be stored or accumulated into",
                self.span,
                "loop over the batches and multiply 2D tiles, or store the product and load the part you need",
            )
        if op in self.by_page:
            load = self.by_page[op][0]
            window, whole = rebind(load)["shapes"].elements, kind_of(load.args[0]).shape
            raise user_error(
                ValueError,
                f"a load of {dims_text(window)} from {dims_text(whole)} into Mat has no two-dimensional form: its rows "
                "do not lie one after another",
                load.span,
                "load one matrix at a time",
            )
        return made

    def visit_call(self, op: Call) -> Expr:
        found = RULES.get(op.op.name)
        return found(self, op) if found is not None else self.recreate(op)

    def recreate(self, call: Call) -> Expr:
        """The same operator on flattened arguments."""
        args = [self.rewrite(a) for a in call.args]
        if is_flat(call.type) and same_objects(args, call.args):
            return self.generic(call)
        decl = decl_of(call)
        if decl is None:
            return call.replace(args=type(call.args)(args), type=self.rewrite_type(call.type))
        if not is_flat(call.type):
            for i, param in enumerate(decl.args[: len(args)]):
                if param.name in _SHAPES and isinstance(args[i], MakeTuple) and args[i].elements:
                    args[i] = MakeTuple(flat_shape(args[i].elements, call.span), args[i].span)
        made = reinfer(call, args)
        self.check(call, made)
        return made

    def check(self, before: Call, after: Expr) -> None:
        """Refuse an operator that means something else on the flattened tile."""
        if not isinstance(before.type, TileType) or not isinstance(after.type, TileType):
            return
        shape = before.type.shape
        want = shape if is_flat(before.type) else flat_shape(shape, before.span)
        if not all(same(a, b) for a, b in zip(want, kind_of(after).shape)):
            raise user_error(
                ValueError,
                f"{before.op.name} with a result of shape {dims_text(shape)} has no two-dimensional form",
                before.span,
                "work on 2D slices of the tile, one at a time",
            )


# Global memory.


@rule("tile.load")
def _load(cv: Flattener, call: Call) -> Expr:
    """The window keeps the tensor's rank; only the tile is flattened."""
    made = cv.generic(call)
    if is_flat(call.type):
        return made
    kind = flat_type(kind_of(call), call.span)
    source = kind_of(call.args[0])
    # Bytes in NZ are not reordered, so BlockNzTensorViews needs the window as it was written.
    if kind.memory_space is MemorySpace.Mat and len(source.shape) > 2 and source.layout is not TensorLayout.NZ:
        return _load_matrix(cv, made)
    return made.replace(type=kind)


def _load_matrix(cv: Flattener, call: Call) -> Expr:
    """A matmul operand is read from a two-dimensional view of its tensor: the load reorders rows and columns."""
    b = rebind(call)
    window, whole = b["shapes"].elements, kind_of(b["tensor"]).shape
    if not runs_together(window, whole) and cv.result is not None:
        cv.by_page[cv.result] = call, False
        return call
    valid = b["valid_shape"].elements if b["valid_shape"] is not None else window
    return load_flat(cv, call, b["offsets"].elements, window, valid)


def load_flat(
    cv: Flattener, call: Call, offsets: Sequence[Expr], window: Sequence[Expr], valid: Sequence[Expr]
) -> Call:
    """``call`` for another window of its tensor, through a two-dimensional view.

    Leading dimensions of 1 stay apart where an offset behind them may run past its axis, into the next matrix.
    """
    tensor = call.args[0]
    whole = kind_of(tensor).shape
    axis = _run_start(cv, offsets, window, valid, whole, call.span)
    if axis < len(whole) - 2:
        tensor = cv.emit("view_2d" if axis == 0 else "view", _flat_view(tensor, axis, call.span))
    offsets = [*offsets[:axis], *flat_offsets(offsets[axis:], whole[axis:])]
    shape = [*window[:axis], *flat_shape(window[axis:], call.span)]
    region = [*valid[:axis], *flat_valid(valid[axis:], window[axis:], call.span)]
    made = build("tile.load", tensor, offsets, shape, region, span=call.span, **call.kwargs)
    if axis:
        made = made.replace(type=flat_type(kind_of(made), call.span))
    return made.replace(attrs=call.attrs) if call.attrs else made


def _run_start(
    cv: Flattener,
    offsets: Sequence[Expr],
    window: Sequence[Expr],
    valid: Sequence[Expr],
    whole: Sequence[Expr],
    span: Span,
) -> int:
    """The first axis whose rows, with those of the axes behind it, are read as rows of one matrix."""
    if not _escapes(cv, offsets, valid, whole):
        return 0
    axis = next((i for i, d in enumerate(window[:-2]) if value(d) != 1), len(whole) - 2)
    _check_inside(cv, offsets[axis:], valid[axis:], whole[axis:], "a load", span)
    return axis


def _escapes(cv: Flattener, offsets: Sequence[Expr], part: Sequence[Expr], whole: Sequence[Expr]) -> list[int]:
    """The axes between the first and the last along which the part may run into the next one's elements."""
    return [i for i in range(1, len(whole) - 1) if not cv.inside(offsets[i], part[i], whole[i])]


def _check_inside(
    cv: Flattener, offsets: Sequence[Expr], part: Sequence[Expr], whole: Sequence[Expr], what: str, span: Span
) -> None:
    """Refuse a part of which flattened bounds would not show that it leaves its axis."""
    for axis in _escapes(cv, offsets, part, whole):
        raise user_error(
            ValueError,
            f"{what} of {dims_text(part)} from {dims_text(whole)} may run past axis {axis}, into the next matrix: "
            "its offset there is not known to stay inside",
            span,
            "use an offset made of constants and variables of loops with constant bounds, or take matrix after matrix",
        )


def _flat_view(tensor: Expr, axis: int, span: Span) -> Call:
    """``tensor`` with the dimensions from ``axis`` on in two."""
    kind = kind_of(tensor)
    whole, valid = kind.shape, kind.valid_shape
    shape = [*whole[:axis], product(whole[axis:-1]), whole[-1]]
    if all(same(a, b) for a, b in zip(valid, whole)):
        return build("tensor.view", tensor, shape, span=span)
    region = [*valid[:axis], *flat_valid(valid[axis:], whole[axis:], span)]
    return build("tensor.view", tensor, shape, region, span=span)


@rule("tile.store")
def _store(cv: Flattener, call: Call) -> Expr:
    """The window in a tensor of another rank is spelled out, since the tile no longer shows it."""
    b = rebind(call)
    source, tensor = b["tile"], b["output_tensor"]
    if isinstance(source, Var) and source in cv.pages:
        return _store_pages(cv, call, source)
    made = cv.generic(call)
    rank = len(kind_of(tensor).shape)
    if rank == 2 or (b["shapes"] is not None and b["shapes"].elements):
        return made
    window = [index_const(1)] * (rank - len(kind_of(source).shape)) + list(kind_of(source).valid_shape)
    window = [cv.rewrite(d) for d in window[len(window) - rank :]]
    offsets = [cv.rewrite(o) for o in b["offsets"].elements]
    offsets = [index_const(0)] * (rank - len(offsets)) + offsets
    args = (cv.rewrite(source), offsets, cv.rewrite(tensor), window)
    return build("tile.store", *args, span=call.span, **call.kwargs)


def _store_pages(cv: Flattener, call: Call, source: Var) -> Expr:
    b = rebind(call)
    tensor, offsets = cv.rewrite(b["output_tensor"]), [cv.rewrite(o) for o in b["offsets"].elements]
    batch, matrix = kind_of(source).shape[:-2], kind_of(source).shape[-2:]
    window = [index_const(1)] * len(batch) + list(matrix)
    for number, page in enumerate(cv.pages[source]):
        place = [plus(o, index_const(i)) for o, i in zip(offsets, batch_index(number, batch))]
        stored = build("tile.store", page, [*place, *offsets[-2:]], tensor, window, span=call.span, **call.kwargs)
        if number + 1 == len(cv.pages[source]):
            return stored
        tensor = cv.emit("stored", stored)
    return tensor


def batch_index(number: int, batch: Sequence[Expr]) -> list[int]:
    """The index of matrix ``number`` along each batch dimension."""
    index: list[int] = []
    for extent in reversed(batch):
        number, place = divmod(number, value(extent) or 1)
        index.insert(0, place)
    return index


# Views and elements.


@rule("tile.reshape")
def _reshape(cv: Flattener, call: Call) -> Expr:
    source = cv.rewrite(call.args[0])
    if source is call.args[0] and is_flat(call.type):
        return cv.generic(call)
    kind = flat_type(kind_of(call), call.span)
    if _same_tile(source.type, kind):
        return source
    made = build("tile.reshape", source, list(kind.shape), span=call.span)
    cv.check(call, made)
    return made


def _same_tile(a: Any, b: Any) -> bool:
    return all(same(x, y) for x, y in zip((*a.shape, *a.valid_shape), (*b.shape, *b.valid_shape)))


@rule("tile.slice")
def _slice(cv: Flattener, call: Call) -> Expr:
    b = rebind(call)
    whole = kind_of(call.args[0]).shape
    if len(whole) == 2:
        return cv.recreate(call)
    window = b["shape"].elements
    if not runs_together(window, whole):
        raise user_error(
            ValueError,
            f"a slice of {dims_text(window)} from a tile of {dims_text(whole)} has no two-dimensional form: its rows "
            "do not lie one after another",
            call.span,
            "slice the tensor before it is loaded, or take one matrix at a time",
        )
    valid = b["valid_shape"].elements if b["valid_shape"] is not None else ()
    region = flat_valid([cv.rewrite(d) for d in valid], window, call.span) if valid else None
    offsets = [cv.rewrite(o) for o in b["offset"].elements]
    _check_inside(cv, offsets, valid or window, whole, "a slice", call.span)
    offsets = flat_offsets(offsets, whole)
    kwargs = {"pad_value": b["pad_value"]} if b.values.get("pad_value") not in (None, PadValue.null) else {}
    made = build(
        "tile.slice", cv.rewrite(call.args[0]), flat_shape(window, call.span), offsets, region, span=call.span, **kwargs
    )
    want = flat_type(kind_of(call), call.span)
    if all(same(x, y) for x, y in zip(want.shape, kind_of(made).shape)):
        return made
    return build("tile.reshape", cv.emit("window", made), list(want.shape), span=call.span)


@rule("tile.assemble")
def _assemble(cv: Flattener, call: Call) -> Expr:
    b = rebind(call)
    whole, part = kind_of(call.args[0]).shape, kind_of(call.args[1]).shape
    if len(whole) == 2 and len(part) == 2:
        return cv.recreate(call)
    if len(part) != len(whole):
        raise user_error(
            ValueError,
            f"tile.assemble of a rank-{len(part)} source {dims_text(part)} into {dims_text(whole)}: both need one rank",
            call.span,
            "reshape the source to the target's rank: pl.reshape(source, [1, ...])",
        )
    if not runs_together(part, whole):
        raise user_error(
            ValueError,
            f"tile.assemble of {dims_text(part)} into {dims_text(whole)} does not write one contiguous row band",
            call.span,
            "assemble the slices one by one",
        )
    offsets = [cv.rewrite(o) for o in b["offset"].elements]
    _check_inside(cv, offsets, part, whole, "an assemble", call.span)
    offsets = flat_offsets(offsets, whole)
    return build("tile.assemble", cv.rewrite(b["target"]), cv.rewrite(b["source"]), offsets, span=call.span)


@rule("tile.read", "tile.write")
def _element(cv: Flattener, call: Call) -> Expr:
    tile, indices, *rest = call.args
    if is_flat(tile.type):
        return cv.recreate(call)
    whole, place = kind_of(tile).shape, [cv.rewrite(i) for i in indices.elements]
    _check_inside(cv, place, [index_const(1)] * len(whole), whole, "an element", call.span)
    place = flat_offsets(place, whole)
    return build(call.op.name, cv.rewrite(tile), place, *(cv.rewrite(r) for r in rest), span=call.span)


# Transposes.


@rule("tile.transpose")
def _transpose(cv: Flattener, call: Call) -> Expr:
    """The instruction works on one matrix and needs a scratch tile of the source's shape."""
    source, *axes = call.args
    shape = kind_of(source).shape
    if len(call.args) > 3:
        return cv.recreate(call)
    rank = len(shape)
    swapped = sorted((value(a) or 0) % rank for a in axes)
    if swapped != [rank - 2, rank - 1]:
        raise user_error(
            ValueError,
            f"only last-two-axes tile.transpose has an instruction, got axes {swapped} of {dims_text(shape)}",
            call.span,
            "read the tensor through a transposed view, or load and store the slices in the order you need",
        )
    tile = cv.rewrite(source)
    if rank == 2:
        return _transpose_page(cv, tile, call.span)
    rows, columns = shape[-2], shape[-1]
    count = value(product(shape[:-2])) or 1
    if count == 1:
        return _transpose_page(cv, tile, call.span)
    want = flat_type(kind_of(call), call.span)
    space = kind_of(tile).memory_space or MemorySpace.Vec
    made: Expr = cv.emit("transposed", build(
        "tile.create", list(want.shape), span=call.span, dtype=want.dtype, target_memory=space
    ))  # fmt: skip
    for page in range(count):
        place = [index_const(page * (value(rows) or 0)), index_const(0)]
        part = cv.emit("page", build("tile.slice", tile, [rows, columns], place, span=call.span))
        turned = cv.emit("turned", _transpose_page(cv, part, call.span))
        place = [index_const(page * (value(columns) or 0)), index_const(0)]
        made = build("tile.assemble", made, turned, place, span=call.span)
        if page + 1 < count:
            made = cv.emit("transposed", made)
    return made


def _transpose_page(cv: Flattener, tile: Expr, span: Span) -> Call:
    space = kind_of(tile).memory_space or MemorySpace.Vec
    scratch = build("tile.create", list(kind_of(tile).shape), span=span, dtype=kind_of(tile).dtype, target_memory=space)
    tmp = cv.emit("transpose_tmp", scratch)
    return build("tile.transpose", tile, 0, 1, tmp, span=span)


@rule("tile.transpose_view")
def _transpose_view(cv: Flattener, call: Call) -> Expr:
    paged = cv.by_page.get(call.args[0]) if isinstance(call.args[0], Var) else None
    if paged is not None and cv.result is not None:
        cv.by_page[cv.result] = paged[0], not paged[1]
        return call
    source = cv.rewrite(call.args[0])
    if source is call.args[0]:
        return cv.generic(call)
    made = build("tile.transpose_view", source, span=call.span)
    if len(kind_of(call.args[0]).shape) > 2 and cv.result is not None:
        made = cv.emit(cv.result.name_hint, made)
        cv.by_column.add(made)
    return made

