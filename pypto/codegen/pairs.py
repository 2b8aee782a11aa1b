"""FP4 elements as PTO counts them: two share a byte, and extents, strides and offsets along rows are of pairs."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith.modular import ModularSet, ModularSetAnalyzer
from ..dtypes import DataType
from ..errors import user_error
from ..ir.enums import TensorLayout
from ..ir.expr import ConstInt, Expr, Var, index_const
from ..ir.scalar import build_scalar
from ..ir.span import UNKNOWN_SPAN, Span
from ..ir.types import TensorType
from ..ops.rules import dim_text

PAIRED = frozenset({DataType.FP4})


def in_pairs(dims: Sequence[Expr], dtype: DataType, what: str, span: Span) -> Sequence[Expr]:
    """Dimensions of ``dtype`` elements, the last counted in pairs where they are. ValueError when it may be odd."""
    if dtype not in PAIRED or not dims:
        return dims
    return *dims[:-1], _half(dims[-1], what, span, ModularSetAnalyzer())


def tensor_in_pairs(
    extents: Sequence[Expr], strides: Sequence[Expr], layout: TensorLayout, type: TensorType, span: Span
) -> tuple[Sequence[Expr], Sequence[Expr]]:
    """Extents and strides of a view of a tensor, in pairs where its elements are.

    Rows have an even extent, as binding the array checks. Raises ValueError unless their elements follow each other.
    """
    if type.dtype not in PAIRED:
        return extents, strides
    last = strides[-1]
    if layout is not TensorLayout.ND or not isinstance(last, ConstInt) or last.value != 1:
        raise user_error(
            ValueError,
            "FP4 elements share bytes with their neighbours, which must follow each other along the last axis",
            span,
            hint="give the tensor the layout pl.ND, with its last axis contiguous",
        )
    known = ModularSetAnalyzer()
    if isinstance(type.shape[-1], Var):
        known.update(type.shape[-1], ModularSet(2, 0))
    halves = [_half(s, "a stride", span, known) for s in strides[:-1]]
    return (*extents[:-1], _half(extents[-1], "an extent", span, known)), (*halves, last)


def _half(dim: Expr, what: str, span: Span, known: ModularSetAnalyzer) -> Expr:
    if isinstance(dim, ConstInt):
        if dim.value % 2 == 0:
            return index_const(dim.value // 2)
    else:
        residues = known(dim)
        if residues.coeff % 2 == 0 and residues.base % 2 == 0:
            return build_scalar("FloorDiv", (dim, index_const(2)), UNKNOWN_SPAN)
    raise user_error(
        ValueError,
        f"{what} {dim_text(dim)} of FP4 elements is not known to be even, and two elements share a byte",
        span,
        hint="count pairs and write 2 * n, or multiply an index by an even number",
    )
