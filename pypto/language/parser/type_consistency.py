"""Whether an annotation agrees with the type of what it annotates."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...dtypes import DataType
from ...errors import ParserTypeError
from ...ir.span import Span
from ...ir.types import ScalarType, ShapedType, TileType, Type, UnknownType

_ONE_REPRESENTATION = frozenset({DataType.INDEX, DataType.INT64})


def flattens(annotated: Type, inferred: Type) -> bool:
    """Whether ``annotated`` is the two-dimensional form of a tile: leading dimensions run together, or ``[1, N]``."""
    if not isinstance(annotated, TileType) or not isinstance(inferred, TileType) or len(annotated.shape) != 2:
        return False
    wanted, given = ([getattr(d, "value", None) for d in t.shape] for t in (annotated, inferred))
    if len(given) == 2 or None in wanted or annotated.dtype is not inferred.dtype:
        return False
    known = [g for g in given if g is not None]
    return len(known) == len(given) and wanted == [prod(known[:-1]), known[-1]]


def difference(annotated: Type, inferred: Type, memory: bool = True) -> str | None:
    """How an annotation contradicts the inferred type; None when it does not. Unknown dimensions agree with any.

    Without ``memory``, where tiles are does not count: values that meet in a loop or branch are placed later.
    """
    if isinstance(inferred, UnknownType) or isinstance(annotated, UnknownType):
        return None
    kinds = [type(t).__name__.removesuffix("Type") for t in (annotated, inferred)]
    if not (isinstance(inferred, type(annotated)) or isinstance(annotated, type(inferred))):
        return f"the annotation is a {kinds[0]}, the value a {kinds[1]}"
    if isinstance(annotated, ScalarType) and isinstance(inferred, ScalarType):
        if annotated.dtype is inferred.dtype or {annotated.dtype, inferred.dtype} == _ONE_REPRESENTATION:
            return None
        return f"the annotation has dtype {annotated.dtype}, the value {inferred.dtype}"
    if not isinstance(annotated, ShapedType) or not isinstance(inferred, ShapedType):
        return None
    if annotated.dtype is not inferred.dtype:
        return f"the annotation has dtype {annotated.dtype}, the value {inferred.dtype}"
    if len(annotated.shape) != len(inferred.shape):
        return f"the annotation has rank {len(annotated.shape)}, the value rank {len(inferred.shape)}"
    for i, (a, b) in enumerate(zip(annotated.shape, inferred.shape)):
        x, y = getattr(a, "value", None), getattr(b, "value", None)
        if x is not None and y is not None and x != y:
            return f"the annotation has shape dimension {i} = {x}, the value {y}"
    if memory and isinstance(annotated, TileType) and isinstance(inferred, TileType):
        a, b = annotated.memory_space, inferred.memory_space
        if a is not None and b is not None and a is not b:
            return f"the annotation has memory {a.name}, the value {b.name}"
    return None


def check_consistent(
    annotated: Type,
    inferred: Type,
    span: Span,
    source_lines: Sequence[str] | None,
    what: str = "Type annotation",
    memory: bool = True,
) -> None:
    """ParserTypeError when ``annotated`` contradicts ``inferred``."""
    found = difference(annotated, inferred, memory)
    if found is not None:
        raise ParserTypeError(
            f"{what} does not match the value: {found}",
            span,
            hint="correct the annotation, or convert the value (pl.cast, pl.reshape)",
            source_lines=source_lines,
        )
