"""Rewrites the tensors of one function that are in a blocked layout, and the loads that read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

from ...errors import user_error
from ...ir.enums import TensorLayout
from ...ir.expr import Call, ConstInt, Expr, FloorDiv, GlobalVar, MakeTuple, Var, index_const, tensor_type_of
from ...ir.naming import written_name
from ...ir.node import NodeList
from ...ir.program import Function
from ...ir.span import Span
from ...ir.types import TensorType, TupleType, Type
from ...ops.registry import rebind
from ..type_rewriter import TypeRewriter
from .proofs import Facts

_PROVABLE = (
    "write it as a sum or product of constants, loop variables with constant bounds, pl.tile.get_block_idx() and "
    "pl.tile.get_block_num(), as in n0 = block * {example}, or for k0 in pl.range(0, K, {example})"
)


class BlockedLoad:
    """One load of a blocked tensor, in the coordinates of its author."""

    words: ClassVar[str]
    """What messages call such a tensor."""
    blocked: Callable[[TensorType], list[NodeList]]
    """Offsets, window and valid shape of the load of a blocked tensor. Raises KernelValueError."""

    def __init__(self, op: Call, source: TensorType, facts: Facts) -> None:
        self._op, self._source, self._facts = op, source, facts
        self.name = named(op.args[0])
        bound = rebind(op)
        self._space = bound["target_memory"]
        self._offsets: Sequence[Expr] = bound.dims("offsets")
        self._window: Sequence[Any] = bound.dims("shapes")
        self._asked: Sequence[Expr] = bound.dims("valid_shape") or self._window

    def refuse(self, message: str, hint: str, note: str | None = None) -> Exception:
        text = f"tile.load of {self.words} tensor {self.name}: {message}"
        return user_error(ValueError, text, self._op.span, hint, note)

    def count(self, axis: int, unit: int) -> Expr:
        """Blocks of the window in a dimension, whose constant extent holds whole ones."""
        return index_const(self._window[axis].value // unit)

    def block(self, axis: int, unit: int, what: str, example: int) -> Expr:
        """The block an offset falls on: the offset as it is evaluated, divided. Its arithmetic is not touched.

        Arithmetic wraps at its width; ``n * 256 / 16`` and ``n * 16`` differ where the product wraps. ``example`` is
        an offset the hint shows.
        """
        offset = self._offsets[axis]
        if isinstance(offset, ConstInt):
            return self._constant_block(offset.value, axis, unit, what)
        shown = _shown(offset)
        hint = _PROVABLE.format(example=example)
        if not self._facts.is_multiple(offset, unit, self._op.span):
            raise self.refuse(
                f"the offset {shown} of its {what} is not provably a multiple of {unit}",
                hint,
                "a parameter, a value carried around a loop, and what is computed otherwise prove nothing",
            )
        if not self._facts.of(offset).non_negative:
            raise self.refuse(
                f"the offset {shown} of its {what} is a multiple of {unit}, but not provably non-negative",
                hint,
                "differences and negative constants can be negative, and a negative block would be read as block 0",
            )
        span = offset.span if offset.span.is_valid() else self._op.span
        return FloorDiv(offset, ConstInt(unit, offset.dtype), offset.dtype, span)

    def _constant_block(self, offset: int, axis: int, unit: int, what: str) -> Expr:
        if offset % unit or offset < 0:
            fault = "is negative" if offset < 0 else f"is not a multiple of {unit}"
            dimension = len(self._source.shape) + axis if axis < 0 else axis
            raise self.refuse(
                f"the offset {offset} of its {what} {fault}: no block starts there",
                f"start the window at a multiple of {unit} in dimension {dimension}",
            )
        return index_const(offset // unit)


class Blocker(TypeRewriter):
    """Gives tensors of ``layouts`` the shape of their blocks, and windows of them that of whole blocks."""

    layouts: ClassVar[tuple[TensorLayout, ...]]
    load: ClassVar[type[BlockedLoad]]
    elsewhere: ClassVar[str]
    """What to do instead of using such a tensor otherwise than in a load."""

    def __init__(self, function: Function) -> None:
        super().__init__(function.span, f"a result of {function.name}")
        self._function = function

    @cached_property
    def _facts(self) -> Facts:
        return Facts(self._function)

    # Types

    def concerns(self, type: Type) -> TypeGuard[TensorType]:
        return isinstance(type, TensorType) and type.layout in self.layouts

    def holds(self, type: Type) -> bool:
        """Whether a type is, or has among its members, such a tensor."""
        return self.concerns(type) or (isinstance(type, TupleType) and any(self.holds(t) for t in type.types))

    block_shape: Callable[[TensorType, str, Span], TensorType]
    """The blocked type of a tensor. Raises KernelValueError at the span, calling it by the name."""

    def rewrite_type(self, type: Type) -> Type:
        return self._blocked(super().rewrite_type(type))

    def _blocked(self, type: Type) -> Type:
        if self.concerns(type):
            return self.block_shape(type, self.name, self.span)
        if isinstance(type, TupleType) and self.holds(type):
            return TupleType([self._blocked(t) for t in type.types])
        return type

    # Uses

    def rewrite_call(self, op: Call) -> Expr:
        if isinstance(op.op, GlobalVar):
            return self.generic(op)
        if op.op.name == "tile.load" and self.concerns(op.args[0].type):
            return self._load(op)
        read = next((a for a in op.args if self.holds(a.type)), None)
        if read is not None or self.holds(op.type):
            raise self._refuse_use(op, read)
        return self.generic(op)

    def _refuse_use(self, op: Call, tensor: Expr | None) -> Exception:
        words = self.load.words
        does = f"makes a tensor in {words}" if tensor is None else f"uses {words} tensor {named(tensor)}"
        message = f"{op.op.name} {does}: here {words} is read-only, and only tile.load reads it"
        return user_error(ValueError, message, op.span, self.elsewhere)

    def _load(self, op: Call) -> Call:
        load = self.load(op, tensor_type_of(op.args[0]), self._facts)
        tensor = self.rewrite(op.args[0])
        args = [tensor, *(MakeTuple(dims, op.span) for dims in load.blocked(tensor.type))]
        return Call(op.op, args, op.kwargs, op.attrs, op.type, op.span)


def named(tensor: Expr) -> str:
    return f"'{written_name(tensor.name_hint)}'" if isinstance(tensor, Var) else "here"


def _shown(offset: Expr) -> str:
    from ...ir.printer import python_print

    return f"'{written_name(offset.name_hint)}'" if isinstance(offset, Var) else python_print(offset)
