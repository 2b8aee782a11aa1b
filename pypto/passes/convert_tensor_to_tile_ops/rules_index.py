"""Gathers and scatters of tensors: the indices of a dimension become positions in the tile's buffer."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ...dtypes import DataType
from ...errors import user_error
from ...ir.enums import ForKind
from ...ir.expr import Call, ConstInt, Expr, IterArg, Var, index_const
from ...ir.stmt import ForStmt, YieldStmt, seq
from ...ir.types import ScalarType
from ...ops.rules import dims_text
from ..emitting import EmittingRewriter, build, kind_of
from .rules import VEC, rule, scratch

if TYPE_CHECKING:
    from ...ir.enums import MemorySpace
    from .rewrite import Converter

_I16_POSITIONS = 32767
"""The last position 16-bit indices reach."""
_BLOCK = 32
"""Bytes of a vector block."""


class Steps:
    """Builds tile operators one by one at the place of a call."""

    def __init__(self, cv: EmittingRewriter, call: Call, name: str) -> None:
        self.cv, self.call, self.name = cv, call, name

    def emit(self, role: str, op: str, *args: Any, **kwargs: Any) -> Var:
        return self.cv.emit(f"{self.name}_{role}", self.make(op, *args, **kwargs))

    def make(self, op: str, *args: Any, **kwargs: Any) -> Call:
        return build(f"tile.{op}", *args, span=self.call.span, **kwargs)

    def matrix(self, role: str, tile: Expr) -> Expr:
        """``tile`` as rows and columns."""
        shape = static_shape(tile, self.call)
        return tile if len(shape) == 2 else self.emit(role, "reshape", tile, [prod(shape[:-1]), shape[-1]])

    def full(self, role: str, shape: list[int], dtype: DataType, value: float) -> Var:
        return self.emit(role, "full", shape, dtype=dtype, value=value)

    def sequence(self, role: str, length: int) -> Var:
        """0, 1, .. in one row."""
        return self.emit(role, "ci", ConstInt(0, DataType.INT32, self.call.span), [1, length], dtype=DataType.INT32)


def static_shape(tile: Expr, call: Call) -> list[int]:
    """The extents of ``tile``. Raises KernelValueError when one is not constant."""
    shape = kind_of(tile).shape
    extents = [d.value for d in shape if isinstance(d, ConstInt)]
    if len(extents) != len(shape):
        raise user_error(ValueError, f"{call.op.name} needs constant extents, got {dims_text(shape)}", call.span)
    return extents


def _row_base(steps: Steps, index: Expr, width: int) -> Var:
    """``index`` (INT32 rows and columns) plus ``width`` times its row."""
    rows, columns = static_shape(index, steps.call)
    if columns * 4 % _BLOCK:
        order = steps.emit("row_arange", "reshape", steps.sequence("ci_rows", rows), [rows, 1])
        base = steps.emit("row_base", "muls", order, width)
        return steps.emit("flat_idx", "row_expand_add", index, base)
    order = steps.emit("lin2d", "reshape", steps.sequence("lin", rows * columns), [rows, columns])
    base = steps.emit("row_base", "muls", steps.emit("row_ids", "divs", order, columns), width)
    return steps.emit("flat_idx", "add", index, base)


def _wide(steps: Steps, index: Expr) -> Expr:
    """``index`` as INT32, in which positions are computed."""
    if kind_of(index).dtype is DataType.INT32:
        return index
    return steps.emit("idx_i32", "cast", index, target_type=DataType.INT32, mode="none")


def _narrow(steps: Steps, flat: Expr, dtype: DataType) -> Expr:
    if dtype is DataType.INT32:
        return flat
    return steps.emit("flat_i16", "cast", flat, target_type=dtype, mode="none")


def _packed(steps: Steps, tile: Expr) -> Var:
    """A copy of ``tile`` whose rows follow each other: those of a view lie apart, and positions count them so."""
    space = steps.emit("src_alloc", "create", kind_of(tile).shape, dtype=kind_of(tile).dtype, target_memory=VEC)
    return steps.emit("src_copy", "assemble", space, tile, [0, 0])


@rule("tensor.gather")
def _gather(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    b = cv.bound(call)
    steps = Steps(cv, call, "gather")
    source = steps.matrix("inp", cv.tile(b["input"]))
    if cv.is_tile(b["input"]):
        source = _packed(steps, source)
    given = cv.tile(b["index"])
    index = steps.matrix("idx", given)
    rows, columns = static_shape(source, call)
    dtype = kind_of(index).dtype
    flat = index
    if rows > 1:
        fits = rows * columns <= _I16_POSITIONS + 1
        flat = _row_base(steps, _wide(steps, index), columns)
        flat = _narrow(steps, flat, dtype if fits else DataType.INT32)
    tmp = scratch(cv, "gather_tmp", kind_of(flat).shape, kind_of(flat).dtype, call)
    made = cv.emit("gather", steps.make("gather", source, flat, tmp))
    return made if given is index else steps.make("reshape", made, list(kind_of(given).shape))


# Scatters. The instruction need not keep what it does not write, so the old elements are selected afterwards.


def _scattered(steps: Steps, target: Expr, source: Expr, flat: Expr) -> Call:
    """``target`` with the elements of ``source`` at positions ``flat``."""
    shape, dtype = static_shape(target, steps.call), kind_of(target).dtype
    marks = DataType.FP32 if dtype.get_byte() == 4 else DataType.FP16
    base = steps.full("base", shape, dtype, 0)
    values = steps.emit("values", "scatter", base, source, flat)
    ones = steps.full("ones", static_shape(source, steps.call), marks, 1.0)
    mask = steps.emit("mask", "scatter", steps.full("mask_base", shape, marks, 0.0), ones, flat)
    return _kept(steps, mask, target, values)


def _kept(steps: Steps, mask: Expr, old: Expr, new: Expr) -> Call:
    """``new`` where ``mask`` is set, ``old`` elsewhere."""
    zero = steps.emit("pred", "cmps", mask, 0.0, cmp_type=0)
    tmp = scratch(steps.cv, f"{steps.name}_tmp", [index_const(1), index_const(_BLOCK)], DataType.UINT8, steps.call)
    return steps.make("sel", zero, old, new, tmp)


def _check_positions(target: Expr, call: Call) -> DataType:
    """The dtype of positions in ``target``. Raises KernelValueError when it cannot reach the last."""
    rows, columns = static_shape(target, call)
    if kind_of(target).dtype.get_byte() == 4:
        return DataType.INT32
    if rows * columns > _I16_POSITIONS:
        raise user_error(
            ValueError,
            f"{call.op.name} into [{rows}, {columns}] {kind_of(target).dtype}: {rows * columns} elements exceed the "
            f"i16 flat-index limit of {_I16_POSITIONS}, and elements this narrow take 16-bit indices",
            call.span,
            "scatter into smaller blocks, or in FP32",
        )
    return DataType.INT16


@rule("tensor.scatter")
def _scatter(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    b = cv.bound(call)
    steps = Steps(cv, call, "scatter")
    whole = cv.tile(b["input"])
    target, source = steps.matrix("inp", whole), steps.matrix("src", cv.tile(b["src"]))
    index = steps.matrix("idx", cv.tile(b["index"]))
    positions = _check_positions(target, call)
    flat = _wide(steps, index)
    rows, columns = static_shape(index, call)
    if rows > 1:
        order = steps.emit("row_arange", "reshape", steps.sequence("ci_rows", rows), [rows, 1])
        base = steps.emit("row_base", "muls", order, static_shape(target, call)[1])
        flat = steps.emit("flat_idx", "row_expand_add", flat, base)
    made = _scattered(steps, target, source, _narrow(steps, flat, positions))
    if target is whole:
        return made
    return steps.make("reshape", cv.emit("scatter_rows", made), list(kind_of(whole).shape))


@rule("tensor.scatter_mask")
def _scatter_mask(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    b = cv.bound(call)
    steps = Steps(cv, call, "scatter")
    source, old = cv.tile(b["input"]), cv.tile(b["dst"])
    shape, dtype, pattern = static_shape(old, call), kind_of(old).dtype, b["mask_pattern"]
    marks = DataType.FP32 if dtype.get_byte() == 4 else DataType.FP16
    values = steps.emit("values", "scatter_mask", steps.full("base", shape, dtype, 0), source, mask_pattern=pattern)
    ones = steps.full("ones", static_shape(source, call), marks, 1.0)
    mask = steps.emit(
        "mask", "scatter_mask", steps.full("mask_base", shape, marks, 0.0), ones, mask_pattern=pattern
    )  # fmt: skip
    return _kept(steps, mask, old, values)


@rule("tensor.scatter_update")
def _scatter_update(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    b = cv.bound(call)
    target, source, index = (cv.tile(b[n]) for n in ("input", "src", "index"))
    return replace_rows(Steps(cv, call, "scatter"), target, source, index)


def replace_rows(steps: Steps, target: Expr, source: Expr, index: Expr) -> Call:
    """``target`` with its rows ``index`` replaced by the rows of ``source``."""
    if len(kind_of(target).shape) != 2:
        raise user_error(
            ValueError,
            f"{steps.call.op.name} of {dims_text(kind_of(target).shape)}: only 2D input/src is currently supported",
            steps.call.span,
            "reshape both to [rows, width]",
        )
    positions = _check_positions(target, steps.call)
    rows, width = static_shape(source, steps.call)
    column = steps.emit("idx_column", "reshape", _wide(steps, index), [rows, 1])
    base = steps.emit("row_base", "muls", column, width)
    zeros = steps.full("zeros", [rows, width], DataType.INT32, 0)
    columns = steps.emit("columns", "col_expand", zeros, steps.sequence("ci_cols", width))
    flat = steps.emit("flat_idx", "row_expand_add", columns, base)
    return _scattered(steps, target, source, _narrow(steps, flat, positions))


# Rows of a paged pool.


@rule("tensor.paged_gather")
def _paged_gather(cv: Converter, call: Call, space: MemorySpace) -> Expr:
    """A loop over the indices, which moves one row of the pool on chip each time."""
    b, span = cv.bound(call), call.span
    source, indices, table = (cv.rewrite(b[n]) for n in ("src", "indices", "block_table"))
    axis = len(kind_of(indices).shape) - 1
    count = cv.emit("pg_rows", _tensor("dim", call, indices, axis))
    shape = list(kind_of(call).shape)
    made = build("tile.create", shape, span=span, dtype=kind_of(call).dtype, target_memory=b["space"])
    first = cv.emit("pg_acc", made)
    at = Var("pg_i", ScalarType(DataType.INDEX), span)
    acc = IterArg("pg_acc_iter", first.type, first, span)
    leading = [index_const(0)] * axis

    def body() -> Var:
        index = _read_index(cv, call, indices, [*leading, at], "pg_idx")
        size = b["block_size"]
        block = cv.emit("pg_blk", index // size, span)
        inner = cv.emit("pg_rem", index % size, span)
        page = _read_index(cv, call, table, [*[index_const(0)] * (len(kind_of(table).shape) - 1), block], "pg_pblk")
        row = cv.emit("pg_phys", page * size + inner, span)
        place = [index_const(0), at] if b["is_trans"] else [at, index_const(0)]
        moved = build(
            "tile.gather_row", acc, source, place, [row, index_const(0)], [1, b["size"]],
            span=span, transpose=b["is_trans"],
        )  # fmt: skip
        return cv.emit("pg_row", moved)

    emitted, last = cv.collect(body)
    result = Var("pg_res", last.type, span)
    inside = seq([*emitted, YieldStmt([last], span)])
    zero, one = index_const(0), index_const(1)
    cv.emit_stmt(ForStmt(at, zero, count, one, [acc], inside, [result], span, kind=ForKind.Sequential))
    return result


def _tensor(op: str, call: Call, *args: Any) -> Call:
    return build(f"tensor.{op}", *args, span=call.span)


def _read_index(cv: Converter, call: Call, tensor: Expr, place: list[Expr], name: str) -> Var:
    """An element of an index tensor, as an INDEX."""
    from ...ir.scalar import cast_scalar

    raw = cv.emit(f"{name}_raw", _tensor("read", call, tensor, place))
    return cv.emit(name, cast_scalar(raw, DataType.INDEX, call.span), call.span)
