"""Valid regions: what a window reads, what a write leaves behind, what a reshape keeps.

A valid region is one rectangle anchored at the origin. Where the exact region is not such a rectangle the
operation is refused: padding must never pass for data, nor data for padding.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import expr as E
from ..ir.expr import Expr, index_const
from .registry import Bound
from .rules import (
    at_most,
    dim_text,
    dims_text,
    exceeds,
    greatest,
    least,
    minus,
    plus,
    product,
    same,
    times,
    value,
)


def check_offsets(b: Bound, offsets: Sequence[Expr]) -> None:
    """Raise OpError for an offset that is provably negative."""
    for axis, offset in enumerate(offsets):
        known = value(offset)
        if known is not None and known < 0:
            raise b.fail(f"has an offset that is provably negative in dimension {axis}: {known}")


def read_region(
    b: Bound,
    source: Sequence[Expr],
    source_valid: Sequence[Expr],
    offsets: Sequence[Expr],
    window: Sequence[Expr],
    requested: Sequence[Expr],
    *,
    clamp: bool = False,
    extent: Sequence[Expr] | None = None,
    no_clamp: str = "",
) -> list[Expr]:
    """The valid region of a window at ``offsets``: ``min(requested, clamp(source_valid - offset, 0, window))``.

    ``extent`` is what must lie inside the source, ``requested`` by default. A source extent that nothing relates to
    the request is trusted; a partial source with a runtime offset gives a runtime minimum.
    Raises OpError for windows that provably leave the source.
    """
    if len(requested) != len(window):
        raise b.fail(
            f"requires valid_shape to have the same rank as the window {dims_text(window)}, got {dims_text(requested)}"
        )
    for axis, (want, size) in enumerate(zip(requested, window)):
        known = value(want)
        if exceeds(want, size):
            raise b.fail(f"asks for a valid extent that exceeds the window extent in dimension {axis}: "
                         f"{dim_text(want)} of {dim_text(size)}")  # fmt: skip
        if known is not None and known < 0:
            raise b.fail(f"requires valid_shape to be >= 0, got {known} in dimension {axis}")
    if len(window) != len(source) or len(offsets) != len(source):
        return list(requested)
    check_offsets(b, offsets)
    if not clamp:
        _check_inside(b, source, offsets, requested if extent is None else extent, no_clamp)
    return [
        _visible(source[i], source_valid[i], offsets[i], window[i], requested[i], clamp) for i in range(len(window))
    ]


def _check_inside(b: Bound, source: Sequence[Expr], offsets: Sequence[Expr], extent: Sequence[Expr], note: str) -> None:
    for axis, (size, offset, span) in enumerate(zip(source, offsets, extent)):
        end = plus(offset, span) if value(offset) is not None and value(span) is not None else None
        if end is not None and exceeds(end, size):
            raise b.fail(
                f"reads past the end of dimension {axis}: offset {dim_text(offset)} + {dim_text(span)} = "
                f"{dim_text(end)} of {dim_text(size)}" + (f"; {note}" if note else ""),
                f"read {max(0, (value(size) or 0) - (value(offset) or 0))} there with valid_shape"
                + ("" if note else ", or pass clamp=True to cut the window at the edge"),
            )


def _visible(size: Expr, valid: Expr, offset: Expr, window: Expr, want: Expr, clamp: bool) -> Expr:
    """One axis of `read_region`."""
    full = same(valid, size)
    if not clamp and (value(valid) is None or (full and (value(offset) is None or value(want) is None))):
        return want
    if value(valid) is None:
        return least(want, greatest(index_const(0), minus(valid, offset)))
    if value(offset) is None:
        available = greatest(index_const(0), minus(valid, offset))
        return least(want, available)
    available = max(0, (value(valid) or 0) - (value(offset) or 0))
    if value(window) is not None:
        available = min(available, value(window) or 0)
    if value(want) is None:
        full = value(window)
        return want if full is not None and available >= full else least(want, index_const(available))
    return want if (value(want) or 0) <= available else index_const(available)


def write_region(
    b: Bound,
    target: Sequence[Expr],
    target_valid: Sequence[Expr],
    offsets: Sequence[Expr],
    source_valid: Sequence[Expr],
    extent: Sequence[Expr],
    note: str,
) -> list[Expr]:
    """The valid region of ``target`` after ``source_valid`` was written at ``offsets``.

    ``extent`` is what must lie inside the target, ``note`` says why. Raises OpError when it does not, or when the
    union is not one rectangle from the origin.
    """
    check_offsets(b, offsets)
    for axis, (size, offset, span) in enumerate(zip(target, offsets, extent)):
        if value(offset) is not None and value(span) is not None and exceeds(plus(offset, span), size):
            raise b.fail(
                f"writes past the end of dimension {axis}: offset {dim_text(offset)} + {dim_text(span)} of "
                f"{dim_text(size)}; {note}"
            )
    if any(value(d) == 0 for d in source_valid) or all(same(v, s) for v, s in zip(target_valid, target)):
        return list(target_valid)
    at_origin = all(value(o) == 0 for o in offsets)
    if any(value(d) == 0 for d in target_valid):
        if at_origin:
            return list(source_valid)
        raise b.fail(
            f"writes to an empty target at {dims_text(offsets)}: the region does not start at the origin",
            "write its first part at offset 0",
        )
    if at_origin and all(at_most(t, s) for t, s in zip(target_valid, source_valid)):
        return list(source_valid)
    return _union(b, target, target_valid, offsets, source_valid)


def _reaches_at_most(end: Expr, offset: Expr, span: Expr) -> bool:
    """Whether ``span`` is limited, by min, to what is left from ``offset`` to ``end``."""
    if isinstance(span, E.Min):
        return any(_reaches_at_most(end, offset, part) for part in (span.left, span.right))
    return same(span, minus(end, offset))


def _union(
    b: Bound, target: Sequence[Expr], held: Sequence[Expr], offsets: Sequence[Expr], written: Sequence[Expr]
) -> list[Expr]:
    ends = [plus(o, w) for o, w in zip(offsets, written)]
    grows = [
        axis for axis, (end, have) in enumerate(zip(ends, held))
        if not at_most(end, have) and not _reaches_at_most(have, offsets[axis], written[axis])
    ]  # fmt: skip
    if not grows:
        return list(held)
    if len(grows) > 1:
        raise b.fail(
            f"grows the valid region {dims_text(held)} in dimensions {grows[0]} and {grows[1]} at once: "
            f"the union with {dims_text(written)} at {dims_text(offsets)} is no rectangle",
            "write one dimension at a time",
        )
    axis = grows[0]
    if not at_most(offsets[axis], held[axis]):
        raise b.fail(
            f"leaves a gap in dimension {axis}: valid data end at {dim_text(held[axis])}, the write starts at "
            f"{dim_text(offsets[axis])}",
            f"start it at {dim_text(held[axis])}",
        )
    for other in range(len(held)):
        if other == axis:
            continue
        if value(offsets[other]) != 0:
            raise b.fail(
                f"grows dimension {axis}, so the write must span dimension {other} from the origin, "
                f"it starts at {dim_text(offsets[other])}"
            )
        if not same(written[other], held[other]):
            raise b.fail(
                f"grows dimension {axis}, so its extent in dimension {other} must provably equal the target valid "
                f"extent {dim_text(held[other])}, got {dim_text(written[other])}"
            )
    result = list(held)
    result[axis] = ends[axis] if at_most(ends[axis], target[axis]) else least(ends[axis], target[axis])
    return result


def reshape_region(
    b: Bound, source: Sequence[Expr], valid: Sequence[Expr], shape: Sequence[Expr], row_major: bool
) -> list[Expr]:
    """The valid region of a row-major buffer seen with another shape. Raises OpError when it is no rectangle there."""
    if all(same(v, s) for v, s in zip(valid, source)):
        return list(shape)
    if any(value(v) == 0 for v in valid):
        return [index_const(0)] * len(shape)
    kept = _unit_axes_only(source, valid, shape)
    if kept is not None:
        return kept
    if not row_major:
        raise b.fail(
            f"cannot map the valid region {dims_text(valid)} of {dims_text(source)}: the source is not stored row-major"
        )
    return _prefix(b, source, valid, shape)


def _unit_axes_only(source: Sequence[Expr], valid: Sequence[Expr], shape: Sequence[Expr]) -> list[Expr] | None:
    """The region when the shapes differ in full axes of size 1 only."""
    if any(value(s) == 1 and not same(v, s) for s, v in zip(source, valid)):
        return None
    kept = [(s, v) for s, v in zip(source, valid) if value(s) != 1]
    wanted = [d for d in shape if value(d) != 1]
    if len(kept) != len(wanted) or not all(same(s, d) for (s, _), d in zip(kept, wanted)):
        return None
    extents = iter([v for _, v in kept])
    return [index_const(1) if value(d) == 1 else next(extents) for d in shape]


def _prefix(b: Bound, source: Sequence[Expr], valid: Sequence[Expr], shape: Sequence[Expr]) -> list[Expr]:
    """The rectangle of ``shape`` over the same leading cells as the rows ``valid`` covers."""
    axis = next((i for i, (v, s) in enumerate(zip(valid, source)) if value(s) != 1 or not same(v, s)), 0)
    if not all(same(v, s) for v, s in zip(valid[axis + 1 :], source[axis + 1 :])):
        raise b.fail(
            f"cannot reshape {dims_text(source)} with valid region {dims_text(valid)}: real data is scattered across "
            "the buffer, not a prefix of it",
            "move the valid part into a tile of its own first",
        )
    row = product(source[axis + 1 :])
    cells = times(valid[axis], row)
    outer = next((i for i, d in enumerate(shape) if value(d) != 1), len(shape) - 1)
    inner = product(shape[outer + 1 :])
    rows = _rows(valid[axis], row, cells, inner)
    if rows is not None and not exceeds(rows, shape[outer]):
        return [index_const(1)] * outer + [rows, *shape[outer + 1 :]]
    if value(cells) is None:
        raise b.fail(
            f"cannot reshape {dims_text(source)} with valid region {dims_text(valid)} to {dims_text(shape)}: "
            "no target axis has the matching row size"
        )
    narrower = _within_one_row(cells, shape)
    if narrower is not None:
        return narrower
    raise b.fail(
        f"cannot reshape {dims_text(source)} with valid region {dims_text(valid)} to {dims_text(shape)}: "
        f"{dim_text(cells)} cells do not fill a whole number of rows of {dim_text(inner)}"
    )


def _rows(valid: Expr, row: Expr, cells: Expr, inner: Expr) -> Expr | None:
    """How many target rows of ``inner`` cells the prefix fills exactly."""
    if same(row, inner):
        return valid
    total, per_row = value(cells), value(inner)
    if total is None or not per_row or total % per_row:
        return None
    return index_const(total // per_row)


def _within_one_row(cells: Expr, shape: Sequence[Expr]) -> list[Expr] | None:
    """A prefix shorter than the innermost row that fills axes further in."""
    total = value(cells)
    for axis in range(len(shape)):
        inner = value(product(shape[axis + 1 :]))
        if total is None or inner is None or total % inner:
            continue
        rows = total // inner
        size = value(shape[axis])
        if size is not None and rows <= size:
            return [index_const(1)] * axis + [index_const(rows), *shape[axis + 1 :]]
    return None
