"""``tensor.expand_clone``: one dimension of a rank-3 tensor repeated into a target in global memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...dtypes import DataType
from ...errors import user_error
from ...ir.enums import MemorySpace
from ...ir.expr import Call, Expr, IterArg, Var, index_const
from ...ir.stmt import AssignStmt, ForStmt, Stmt, YieldStmt, seq
from ...ir.types import ScalarType
from ...ops.rules import dims_text, same, value
from ..emitting import build, kind_of
from .rules import rule, scratch

if TYPE_CHECKING:
    from .rewrite import Converter

_ZERO = index_const(0)


@rule("tensor.expand_clone")
def expand_clone(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """Store the source once for each repetition, or expand it on chip along a row or column first."""
    source, target = call.args
    have, want = kind_of(source).shape, kind_of(target).shape
    repeated = [i for i, (x, y) in enumerate(zip(have, want)) if not same(x, y)]
    if len(want) != 3 or len(repeated) != 1 or value(have[repeated[0]]) != 1:
        raise user_error(
            ValueError,
            f"pl.expand_clone repeats one unit dimension of a rank-3 tensor, not {dims_text(have)} to "
            f"{dims_text(want)}",
            call.span,
            "repeat one dimension at a time",
        )
    if cv.is_tile(target):
        raise user_error(
            ValueError,
            "pl.expand_clone writes to a tensor in global memory, and its target is computed on chip",
            call.span,
            "give it a parameter or a tensor created outside the kernel",
        )
    if repeated[0] == 2:
        tile = cv.tile(source)
        whole = scratch(cv, "target", want, kind_of(tile).dtype, call)
        rows = cv.emit("rows", build("tile.row_expand", whole, tile, span=call.span))
        return build("tile.store", rows, [_ZERO] * 3, cv.rewrite(target), span=call.span)
    if repeated[0] == 0:
        tile = cv.tile(source)
        return _loop(cv, call, lambda place, out: build("tile.store", tile, place, out, span=call.span))
    return _loop(cv, call, lambda place, out: _expanded_page(cv, call, place, out))


def _expanded_page(cv: Converter, call: Call, place: list[Expr], out: Expr) -> Call:
    """Page ``place[0]`` of the source, its one row repeated, stored to that page of ``out``."""
    source, target = call.args
    _, rows, columns = kind_of(target).shape
    one = index_const(1)
    if cv.is_tile(source):
        window = build("tile.slice", cv.tile(source), [one, one, columns], place, span=call.span)
    else:
        shape = [one, one, columns]
        window = cv.load_call(cv.rewrite(source), place, shape, shape, MemorySpace.Vec, call.span)
    page = cv.emit("page", window)
    whole = scratch(cv, "target", [one, rows, columns], kind_of(page).dtype, call)
    expanded = cv.emit("columns", build("tile.col_expand", whole, page, span=call.span))
    return build("tile.store", expanded, place, out, span=call.span)


def _loop(cv: Converter, call: Call, store: Callable[[list[Expr], Expr], Call]) -> Expr:
    """``out = store([i, 0, 0], out)`` for every page ``i`` of the target."""
    target = cv.rewrite(call.args[1])
    index = Var("page", ScalarType(DataType.INDEX), call.span)
    carried = IterArg("written", target.type, target, call.span)
    body, stored = cv.collect(lambda: store([index, _ZERO, _ZERO], carried))
    made = Var("stored", stored.type, call.span)
    last: list[Stmt] = [AssignStmt(made, stored, call.span), YieldStmt([made], call.span)]
    result = Var("written", target.type, call.span)
    extent = kind_of(call.args[1]).shape[0]
    loop = ForStmt(index, _ZERO, extent, index_const(1), [carried], seq([*body, *last]), [result], call.span)
    cv.emit_stmt(loop)
    return result
