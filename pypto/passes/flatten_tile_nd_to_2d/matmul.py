"""Batched matrix products, one page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import user_error
from ...ir.expr import Call, Expr, Var, index_const
from ...ops.registry import rebind
from ...ops.rules import dims_text, plus, product, value
from ..emitting import build, kind_of
from .rewrite import Flattener, batch_index, load_flat, rule


@rule("tile.batch_matmul")
def _batch_matmul(cv: Flattener, call: Call) -> Expr:
    return _multiply(cv, call, None, *call.args)


@rule("tile.batch_matmul_acc")
def _batch_matmul_acc(cv: Flattener, call: Call) -> Expr:
    return _multiply(cv, call, *call.args)


def _multiply(cv: Flattener, call: Call, acc: Expr | None, lhs: Expr, rhs: Expr, *first: Expr) -> Expr:
    batch = kind_of(call).shape[:-2]
    count = value(product(batch)) or 1
    operands = [o if isinstance(o, Var) and o in cv.by_page else cv.rewrite(o) for o in (lhs, rhs)]
    first = tuple(cv.rewrite(condition) for condition in first)
    if count == 1:
        return _product(call, None if acc is None else cv.rewrite(acc), *operands, *first)
    if cv.result is None:
        raise user_error(ValueError, "a batched product must be assigned to a name", call.span)
    sums = _accumulators(cv, call, acc, count)
    pages: list[Expr] = []
    for number in range(count):
        index = batch_index(number, batch)
        parts = [_page(cv, call, o, flat, index) for o, flat in zip((lhs, rhs), operands)]
        pages.append(cv.emit("page", _product(call, sums[number], *parts, *first)))
    cv.pages[cv.result] = pages
    return pages[-1]


def _accumulators(cv: Flattener, call: Call, acc: Expr | None, count: int) -> Sequence[Expr | None]:
    if acc is None:
        return [None] * count
    found = cv.pages.get(acc) if isinstance(acc, Var) else None
    if found is None:
        raise user_error(
            ValueError,
            f"accumulating {count} matrices at once needs an accumulator made by pl.batch_matmul in the same block, "
            f"got {dims_text(kind_of(acc).shape)}",
            call.span,
            "loop over the batches and accumulate 2D tiles with pl.matmul_acc",
        )
    return found


def _product(call: Call, acc: Expr | None, lhs: Expr, rhs: Expr, *first: Expr) -> Call:
    if acc is None:
        return build("tile.matmul", lhs, rhs, span=call.span, **call.kwargs)
    return build("tile.matmul_acc", acc, lhs, rhs, *first, span=call.span, **call.kwargs)


def _page(cv: Flattener, call: Call, operand: Expr, flat: Expr, index: Sequence[int]) -> Expr:
    """The matrix of ``operand`` at batch ``index``; one with fewer batch dimensions repeats."""
    if isinstance(operand, Var) and operand in cv.by_page:
        return _loaded_page(cv, call, operand, index)
    *batch, rows, columns = kind_of(operand).shape
    number = 0
    for extent, place in zip(batch, index[len(index) - len(batch) :]):
        size = value(extent) or 1
        number = number * size + (place if size > 1 else 0)
    if (value(product(batch)) or 1) == 1:
        return flat
    if flat in cv.by_column:
        place = [index_const(0), index_const(number * (value(columns) or 0))]
    else:
        place = [index_const(number * (value(rows) or 0)), index_const(0)]
    return cv.emit("operand", build("tile.slice", flat, [rows, columns], place, span=call.span))


def _loaded_page(cv: Flattener, call: Call, operand: Var, index: Sequence[int]) -> Expr:
    """The matrix of ``operand`` at batch ``index``, loaded by itself."""
    load, transposed = cv.by_page[operand]
    b = rebind(load)
    window = list(b["shapes"].elements)
    valid = list(b["valid_shape"].elements if b["valid_shape"] is not None else window)
    offsets = list(b["offsets"].elements)
    batch = len(window) - 2
    for axis, place in enumerate(index[len(index) - batch :]):
        repeated = value(window[axis]) == 1
        offsets[axis] = offsets[axis] if repeated else plus(offsets[axis], index_const(place))
        window[axis] = valid[axis] = index_const(1)
    page = cv.emit("operand", load_flat(cv, load, offsets, window, valid))
    if not transposed:
        return page
    return cv.emit("operand_t", build("tile.transpose_view", page, span=call.span))
