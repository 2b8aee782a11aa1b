"""Argument directions by their short names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .enums import ArgDirection
from .expr import Call, Expr, Op
from .span import Span
from .types import Type, UnknownType

input = ArgDirection.Input
output = ArgDirection.Output
inout = ArgDirection.InOut
output_existing = ArgDirection.OutputExisting
no_dep = ArgDirection.NoDep
scalar = scalar_dir = ArgDirection.Scalar


def make_call(
    op: Op,
    args: Sequence[Expr],
    kwargs: dict[str, Any] | None = None,
    *,
    directions: Sequence[ArgDirection] | None = None,
    type: Type | None = None,
    span: Span | None = None,
) -> Call:
    """A call that notes how it uses each argument. ValueError for another number of directions than arguments."""
    if directions is not None and len(directions) != len(args):
        raise ValueError(f"directions length ({len(directions)}) must match args length ({len(args)})")
    attrs = {} if directions is None else {"arg_directions": list(directions)}
    return Call(op, args, kwargs or {}, attrs, type or UnknownType(), span or Span.here())
