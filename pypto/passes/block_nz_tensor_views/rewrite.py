"""Rewrites the NZ tensors of one function, and the loads that read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeGuard

from ...errors import InternalError, user_error
from ...ir.enums import MemorySpace, TensorLayout, TileLayout
from ...ir.expr import Call, ConstInt, Expr, FloorDiv, GlobalVar, MakeTuple, Submit, Var, index_const, tensor_type_of
from ...ir.naming import written_name
from ...ir.node import NodeList
from ...ir.program import Function
from ...ir.span import Span
from ...ir.tensor_view_semantics import FRACTAL_ROWS, nz_c0
from ...ir.types import TensorType, TileType, TupleType, Type, same_dims
from ...ir.visitor import Rewriter
from ...ops.registry import rebind
from ...ops.rules import dims_text
from .proofs import Facts
from .shapes import block_shape

_PROVABLE = (
    "write it as a sum or product of constants, loop variables with constant bounds, pl.tile.get_block_idx() and "
    "pl.tile.get_block_num(), as in n0 = block * {example}, or for k0 in pl.range(0, K, {example})"
)


def is_nz(type: Type) -> TypeGuard[TensorType]:
    return isinstance(type, TensorType) and type.layout is TensorLayout.NZ


def holds_nz(type: Type) -> bool:
    """Whether a type is, or has among its members, an NZ tensor."""
    return is_nz(type) or (isinstance(type, TupleType) and any(holds_nz(t) for t in type.types))


class Blocker(Rewriter):
    """``span`` is that of the node whose type is at hand, ``name`` what the user calls it."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function
        self._span: Span = function.span
        self._name = f"a result of {function.name}"

    @cached_property
    def _facts(self) -> Facts:
        return Facts(self._function)

    # Types

    def rewrite_type(self, type: Type) -> Type:
        return self._blocked(super().rewrite_type(type))

    def _blocked(self, type: Type) -> Type:
        if is_nz(type):
            return block_shape(type, self._name, self._span)
        if isinstance(type, TupleType) and holds_nz(type):
            return TupleType([self._blocked(t) for t in type.types])
        return type

    def define(self, var: Any) -> Any:
        outer = self._span, self._name
        self._span, self._name = var.span, f"'{written_name(var.name_hint)}'"
        made = super().define(var)
        self._span, self._name = outer
        return made

    def visit_var(self, op: Var) -> Any:
        return self.vars[op] if op in self.vars else self.define(op)

    # Uses

    def visit_call(self, op: Call) -> Expr:
        outer, self._span = self._span, op.span
        made = self._call(op)
        self._span = outer
        return made

    def _call(self, op: Call) -> Expr:
        if isinstance(op.op, GlobalVar):
            return self.generic(op)
        if op.op.name == "tile.load" and is_nz(op.args[0].type):
            return self._load(op)
        read = next((a for a in op.args if holds_nz(a.type)), None)
        if read is not None or holds_nz(op.type):
            raise self._refuse_use(op, read)
        return self.generic(op)

    def _refuse_use(self, op: Call, tensor: Expr | None) -> Exception:
        if tensor is None:
            message = f"{op.op.name} makes a tensor in NZ: here NZ is read-only, and only tile.load reads it"
        else:
            message = f"{op.op.name} uses NZ tensor {_named(tensor)}: here NZ is read-only, and only tile.load reads it"
        return user_error(
            ValueError,
            message,
            op.span,
            "load a window of the tensor with target_memory=pl.Mem.Mat, or annotate it pl.ND and keep its bytes in "
            "row-major order",
        )

    def visit_submit(self, op: Submit) -> Expr:
        outer, self._span = self._span, op.span
        made = self.generic(op)
        self._span = outer
        return made

    def _load(self, op: Call) -> Call:
        source = tensor_type_of(op.args[0])
        tensor = self.rewrite(op.args[0])
        load = _Load(op, source, self._facts)
        args = [tensor, *(MakeTuple(dims, op.span) for dims in load.blocked(tensor.type))]
        return Call(op.op, args, op.kwargs, op.attrs, op.type, op.span)


def _named(tensor: Expr) -> str:
    return f"'{written_name(tensor.name_hint)}'" if isinstance(tensor, Var) else "here"


class _Load:
    """One load of an NZ tensor, in the coordinates of its author."""

    def __init__(self, op: Call, source: TensorType, facts: Facts) -> None:
        self._op, self._source, self._facts = op, source, facts
        self._name = _named(op.args[0])
        self._c0 = nz_c0(source.dtype)
        bound = rebind(op)
        self._space = bound["target_memory"]
        self._offsets: Sequence[Expr] = bound.dims("offsets")
        self._window: Sequence[Any] = bound.dims("shapes")
        self._asked: Sequence[Expr] = bound.dims("valid_shape") or self._window

    def blocked(self, tensor: TensorType) -> list[NodeList]:
        """Offsets, window and valid shape of the load of the blocked ``tensor``."""
        self._check_tile()
        self._check_window()
        batch = self._offsets[0] if len(self._offsets) == 3 else index_const(0)
        rows = self._block(-2, FRACTAL_ROWS, "rows")
        columns = self._block(-1, self._c0, "columns")
        zero = index_const(0)
        window = [index_const(1), self._count(-1, self._c0), self._count(-2, FRACTAL_ROWS), *tensor.shape[3:]]
        return [NodeList([batch, columns, rows, zero, zero]), NodeList(window), NodeList(window)]

    def _refuse(self, message: str, hint: str, note: str | None = None) -> Exception:
        return user_error(ValueError, f"tile.load of NZ tensor {self._name}: {message}", self._op.span, hint, note)

    def _check_tile(self) -> None:
        tile, span = self._op.type, self._op.span
        if self._space is not MemorySpace.Mat:
            space = self._space.name if self._space is not None else "no memory in particular"
            raise self._refuse(
                f"it goes to {space}, but NZ bytes are an operand of the cube and reach pl.Mem.Mat only",
                "load with target_memory=pl.Mem.Mat, or annotate the tensor pl.ND",
            )
        if not isinstance(tile, TileType) or len(tile.shape) != 2:
            raise InternalError("an NZ load whose tile is not 2-D: FlattenTileNdTo2D has not run", span)
        view = tile.get_effective_tile_view()
        if (view.blayout, view.slayout) != (TileLayout.col_major, TileLayout.row_major):
            raise self._refuse(
                "the tile is not in NZ, and these bytes are not converted on the way",
                "load the tile as it is and take pl.tile.transpose_view of it where the operand is transposed",
            )
        if not same_dims(self._asked, self._window) or not same_dims(tile.valid_shape, tile.shape):
            raise self._refuse(
                f"it is valid in {dims_text(self._asked)} of {dims_text(self._window)} only, or cut at the tensor's "
                "edge: a part of a fractal cannot be loaded",
                "load whole windows that lie inside the tensor, without valid_shape and clamp",
            )

    def _check_window(self) -> None:
        rank = len(self._source.shape)
        if len(self._window) != rank or len(self._offsets) != rank:
            raise self._refuse(
                f"offsets {dims_text(self._offsets)} and window {dims_text(self._window)} must have one entry for "
                f"each dimension of {dims_text(self._source.shape)}",
                "write an offset and an extent for every dimension, 1 for the batch",
            )
        if rank == 3 and not _is(self._window[0], 1):
            raise self._refuse(
                f"a window of {dims_text(self._window)} spans several batches, whose fractals do not follow each "
                "other as the rows of one tile do",
                "load one batch at a time: an extent of 1 in dimension 0",
            )
        for axis, unit, what in ((-2, FRACTAL_ROWS, "rows"), (-1, self._c0, "columns")):
            extent = self._window[axis]
            if not isinstance(extent, ConstInt) or extent.value % unit:
                raise self._refuse(
                    f"a window of {dims_text(self._window)} does not hold {what} in whole blocks of {unit}",
                    f"make the window a multiple of {unit} in dimension {rank + axis}",
                )

    def _count(self, axis: int, unit: int) -> Expr:
        """Blocks of the window in a dimension, whose extent `_check_window` found to hold whole ones."""
        return index_const(self._window[axis].value // unit)

    def _block(self, axis: int, unit: int, what: str) -> Expr:
        """The block an offset falls on: the offset as it is evaluated, divided. Its arithmetic is not touched.

        Arithmetic wraps at its width; ``n * 256 / 16`` and ``n * 16`` differ where the product wraps.
        """
        offset = self._offsets[axis]
        if isinstance(offset, ConstInt):
            return self._constant_block(offset.value, axis, unit, what)
        shown = _shown(offset)
        hint = _PROVABLE.format(example=max(unit, 256))
        if not self._facts.is_multiple(offset, unit, self._op.span):
            raise self._refuse(
                f"the offset {shown} of its {what} is not provably a multiple of {unit}",
                hint,
                "a parameter, a value carried around a loop, and what is computed otherwise prove nothing",
            )
        if not self._facts.of(offset).non_negative:
            raise self._refuse(
                f"the offset {shown} of its {what} is a multiple of {unit}, but not provably non-negative",
                hint,
                "differences and negative constants can be negative, and a negative block would be read as block 0",
            )
        span = offset.span if offset.span.is_valid() else self._op.span
        return FloorDiv(offset, ConstInt(unit, offset.dtype), offset.dtype, span)

    def _constant_block(self, offset: int, axis: int, unit: int, what: str) -> Expr:
        if offset % unit or offset < 0:
            fault = "is negative" if offset < 0 else f"is not a multiple of {unit}"
            raise self._refuse(
                f"the offset {offset} of its {what} {fault}: no block starts there",
                f"start the window at a multiple of {unit} in dimension {len(self._source.shape) + axis}",
            )
        return index_const(offset // unit)


def _is(dim: Expr, wanted: int) -> bool:
    return isinstance(dim, ConstInt) and dim.value == wanted


def _shown(offset: Expr) -> str:
    from ...ir.printer import python_print

    return f"'{written_name(offset.name_hint)}'" if isinstance(offset, Var) else python_print(offset)
