"""What becomes of an operator when each lane has a part of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...errors import user_error
from ...ir.expr import Call, Expr, MakeTuple, Var, tile_type_of
from ...ir.naming import written_name
from ...ir.node import NodeList
from ...ir.types import TileType
from ...ops.registry import OpDecl, rebind
from ...ops.rules import same, value as known
from ..emitting import reinfer
from .halves import Lane, Share, extent_of, replaced

Shares = Sequence[Share | None]
GENERATORS: Final = frozenset({"tile.full", "tile.create"})
"""Operators that make a tile of nothing, the same everywhere in it."""
POSITIONAL: Final = frozenset({"tile.ci", "tile.random", "tile.tri"})
"""Operators whose result depends on where in it one looks."""
_ACROSS: Final = frozenset({"sum", "prod", "max", "min", "argmax", "argmin"})
_CELLWISE: Final = frozenset({
    "add", "adds", "sub", "subs", "mul", "muls", "maximum", "maximums", "minimum", "minimums", "fmod", "fmods",
    "div", "divs", "rem", "rems", "part_add", "part_mul", "part_max", "part_min", "addc", "subc", "addsc", "subsc",
    "neg", "abs", "exp", "sqrt", "relu", "not", "log", "recip", "sin", "cos", "rsqrt", "cast", "and", "ands", "or",
    "ors", "xor", "xors", "shl", "shls", "shr", "shrs", "cmp", "cmps", "sel", "sels", "prelu", "lrelu", "pow",
    "pows", "add_relu", "axpy", "expands", "move", "fillpad", "fillpad_inplace", "row_expand_add", "col_expand_add",
    "row_expand_sub", "col_expand_sub", "row_expand_mul", "col_expand_mul", "row_expand_div", "col_expand_div",
    "row_expand_max", "col_expand_max", "row_expand_min", "col_expand_min", "row_expand_expdif",
    "col_expand_expdif", "row_expand", "col_expand",
})  # fmt: skip
"""Operators that compute each cell from cells of its own row and column."""


def reduces(name: str, axis: int) -> bool:
    """Whether an operator collapses ``axis``."""
    kind, _, what = name.removeprefix("tile.").partition("_")
    return what in _ACROSS and {"col": 0, "row": 1}.get(kind) == axis


def refuse(call: Call, message: str, hint: str) -> Exception:
    return user_error(ValueError, f"{call.op.name} {message}", call.span, hint)


WHOLE: Final = (
    "leave the kernel whole (no pl.split), or divide the work yourself: "
    "for lane in pl.split_aiv(2, mode=pl.SplitMode...)"
)


def load(call: Call, lane: Lane, axis: int) -> tuple[Call, Share] | None:
    """A load of the lane's part; None when the tile has nothing to divide."""
    kind = tile_type_of(call)
    size = extent_of(kind, axis)
    if len(kind.shape) < 2 or size == 1:
        return None
    if size is None:
        raise refuse(call, f"makes a tile whose axis {axis} is not constant: lanes cannot divide it", WHOLE)
    share = lane.share(axis, size)
    bound = rebind(call)
    offsets = replaced(bound.dims("offsets"), axis, lane.moved(bound.dims("offsets")[axis], share))
    part = lane.part(kind, share)
    args = [call.args[0], _dims(offsets, call), _dims(part.shape, call), _dims(part.valid_shape, call)]
    return call.replace(args=NodeList([*args, *call.args[4:]]), type=part), share


def _dims(items: Sequence[Expr], call: Call) -> MakeTuple:
    return MakeTuple(list(items), call.span)


def store(call: Call, share: Share | None, lane: Lane) -> Call:
    """A store of the lane's part to its place. What is not divided both lanes store alike."""
    bound = rebind(call)
    if share is None:
        if "atomic" in call.kwargs:
            raise refuse(call, "adds a tile that the lanes have not divided: it would be added twice", WHOLE)
        return call
    if bound["shapes"] is not None and bound.dims("shapes"):
        raise refuse(call, "states the shape it stores, which the lanes divide", "leave shapes out")
    offsets = bound.dims("offsets")
    at = len(offsets) - 2 + share.axis
    moved = _dims(replaced(offsets, at, lane.moved(offsets[at], share)), call)
    return call.replace(args=NodeList([call.args[0], moved, *call.args[2:]]))


def slice_(call: Call, share: Share | None, lane: Lane, axis: int) -> tuple[Call, Share] | None:
    """A window of a tile: of the lane's part, which is in its own coordinates, or the lane's part of the window."""
    kind, bound = tile_type_of(call), rebind(call)
    if len(kind.shape) < 2 or bound["drop_dims"]:
        if share is not None:
            raise refuse(call, "drops an axis of a tile the lanes divide", WHOLE)
        return None
    if share is not None:
        axis = share.axis
    size = extent_of(kind, axis)
    if size == 1 and share is None:
        return None
    if size is None:
        raise refuse(call, "has a shape that is not constant: lanes cannot divide it", WHOLE)
    offsets = list(bound.dims("offset"))
    made = lane.share(axis, size)
    if share is None:
        offsets[axis] = lane.moved(offsets[axis], made)
    elif made.half != share.half or known(offsets[axis]) != 0:
        raise refuse(call, "takes a part of the axis the lanes divide, which is not all of it", WHOLE)
    part = lane.part(kind, made)
    args = [call.args[0], _dims(part.shape, call), _dims(offsets, call)]
    if bound["valid_shape"] is not None:
        args.append(_dims(part.valid_shape, call))
    return call.replace(args=NodeList([*args, *call.args[len(args) :]]), type=part), made


def migrated(call: Call, source: TileType, share: Share, lane: Lane) -> tuple[Call, Share]:
    """A reshape of the lane's part: the lane's cells have to be consecutive along one axis of the result, too."""
    kind = tile_type_of(call)
    before, after = [known(d) for d in source.shape], [known(d) for d in kind.shape]
    if None in before or None in after or not same_dims(source.valid_shape, source.shape):
        raise refuse(call, "moves the split axis of a tile whose extents are not constant", WHOLE)
    count = _cells_before(before, share)
    for axis, size in enumerate(after):
        inner = _product(after[axis + 1 :])
        if size and size % 2 == 0 and inner * (size // 2) == count and _product(after[:axis]) == 1:
            made = Share(axis, size // 2, size // 2)
            part = lane.part(kind, made)
            return call.replace(args=NodeList([call.args[0], _dims(part.shape, call)]), type=part), made
    raise refuse(call, "moves the split axis where the lanes' parts are not in one piece", WHOLE)


def _cells_before(dims: Sequence[int | None], share: Share) -> int | None:
    """Cells of lane 0's part when they come before all of lane 1's; None when the parts alternate."""
    if _product(dims[: share.axis]) != 1 or (dims[share.axis] or 0) != 2 * share.half:
        return None
    return share.half * _product(dims[share.axis + 1 :])


def _product(dims: Sequence[int | None]) -> int:
    total = 1
    for dim in dims:
        total *= dim or 0
    return total


def same_dims(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return all(same(x, y) for x, y in zip(a, b))


def generate(call: Call, lane: Lane, axis: int) -> tuple[Call, Share] | None:
    """A tile of one value, or of nothing yet: the lane's part of it."""
    kind = tile_type_of(call)
    size = extent_of(kind, axis)
    if len(kind.shape) < 2 or size is None or size == 1:
        return None
    share = lane.share(axis, size)
    part = lane.part(kind, share)
    return call.replace(args=NodeList([_dims(part.shape, call), *call.args[1:]]), type=part), share


def reinterpret(call: Call, share: Share, lane: Lane, original: Call) -> tuple[Call, Share]:
    """Bits read as another type: the lane's part of a row is a row's part only when cells keep their number of rows."""
    kind, source = tile_type_of(original), tile_type_of(original.args[0])
    plain = reinfer(original.replace(args=NodeList(original.args[:1])), original.args[:1])
    if not same_dims(tile_type_of(plain).shape, kind.shape):
        raise refuse(call, "shape must match its auto-inferred shape where lanes divide the tile", "leave shape out")
    size, before = extent_of(kind, share.axis), extent_of(source, share.axis)
    if size is None or before is None or size * share.half % before:
        raise refuse(call, "changes the cells of the axis the lanes divide unevenly", WHOLE)
    made = lane.share(share.axis, size)
    part = lane.part(kind, made)
    args = [call.args[0], *([_dims(part.shape, call)] if len(call.args) > 1 else [])]
    return call.replace(args=NodeList(args), type=part), made


def set_validshape(call: Call, share: Share, lane: Lane) -> tuple[Call, Share]:
    """What is valid of a tile: what is valid of the lane's part."""
    kind = tile_type_of(call)
    part = lane.part(kind, share)
    args = list(call.args)
    extent = known(args[1 + share.axis])
    if extent is None or extent > share.half:
        args[1 + share.axis] = part.valid_shape[share.axis]
    return call.replace(args=NodeList(args), type=part), share


def cellwise(call: Call, shares: Shares, decl: OpDecl, lane: Lane, axis: int) -> tuple[Call, Share]:
    """An operator on cells of one row and column. Operands that have the axis are all divided."""
    found = next(s for s in shares if s is not None)
    name = decl.name
    if reduces(name, found.axis):
        raise refuse(call, "reduces on the split axis: each lane has half of it", "split the other axis, or reduce it "
                     "after pl.aic_gather")  # fmt: skip
    short = name.removeprefix("tile.")
    if short not in _CELLWISE and not reduces(name, 1 - found.axis):
        raise refuse(call, "is not known to work on parts of its tiles: lanes cannot divide it", WHOLE)
    for arg, share in zip(call.args, shares):
        if isinstance(arg.type, TileType) and share != found and extent_of(arg.type, found.axis) != 1:
            what = repr(written_name(arg.name_hint)) if isinstance(arg, Var) else "an operand"
            raise refuse(call, f"takes {what} whole beside a tile the lanes divide", WHOLE)
    kind = tile_type_of(call)
    size = extent_of(kind, found.axis)
    if size is None or lane.share(found.axis, size) != found:
        raise refuse(call, "changes the axis the lanes divide", WHOLE)
    return call.replace(type=lane.part(kind, found)), found

