"""Tile reductions: along a row to a column ``[M, 1]``, along a column to a row ``[1, N]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.types import Type
from .registry import Bound, Core, Pto, declare
from .rules import INT_OR_FLOAT, ND, check_dtype, dims_text, layout_of, same, shaped, tile_type, valid_of, value
from .tile_elementwise import vec


def check_not_empty(b: Bound, valid: Sequence[Expr], axis: int) -> None:
    """Raise OpError when nothing is there to reduce."""
    if value(valid[axis]) == 0:
        raise b.fail(f"has nothing to reduce: the valid extent on axis {axis} is 0")


def reduced(dims: Sequence[Expr], axis: int) -> list[Expr]:
    """Dimensions with ``axis`` reduced to 1."""
    return [index_const(1) if i == axis else d for i, d in enumerate(dims)]


def _result(b: Bound, axis: int, dtype: DataType | None) -> Type:
    t = b.type("tile")
    if len(t.shape) < 2:
        raise b.fail(f"requires a tile of at least 2 dimensions, got {shaped(t)}")
    valid = valid_of(b, "tile")
    axis += len(t.shape)
    check_not_empty(b, valid, axis)
    return tile_type(reduced(t.shape, axis), dtype or t.dtype, reduced(valid, axis), MemorySpace.Vec)


def _check_scratch(b: Bound, exact: bool) -> None:
    t, tmp = b.type("tile"), b.type("tmp_tile")
    if tmp.dtype is not t.dtype:
        raise b.fail(f"requires tmp_tile dtype to match input dtype {t.dtype}, got {tmp.dtype}")
    fits = len(tmp.shape) == len(t.shape)
    if exact:
        fits = fits and all(same(x, y) for x, y in zip(tmp.shape, t.shape))
    else:
        fits = fits and not any(_smaller(x, y) for x, y in zip(tmp.shape, t.shape))
    if not fits:
        how = "to exactly match" if exact else "to be at least"
        raise b.fail(
            f"requires tmp_tile shape {how} the input shape {dims_text(t.shape)}, got {dims_text(tmp.shape)}",
            f"pl.create_tile({dims_text(t.shape)}, dtype=pl.{t.dtype.name})",
        )


def _smaller(have: Expr, need: Expr) -> bool:
    x, y = value(have), value(need)
    return x < y if x is not None and y is not None else not same(have, need)


def _row(exact: bool, dtype: DataType | None = None, strict: bool = False) -> Callable[[Bound], Type]:
    def rule(b: Bound) -> Type:
        if strict:
            check_dtype(b, "tile", INT_OR_FLOAT, "input")
            layout = layout_of(b.type("tile"))
            if layout[:2] != ND:
                names = f"{layout[0].name}, {layout[1].name}"
                raise b.fail(f"requires an ND input layout (row_major, none_box), got {names}")
        _check_scratch(b, exact)
        return _result(b, -1, dtype)

    return rule


def _col(b: Bound) -> Type:
    return _result(b, -2, None)


def _col_arg(b: Bound) -> Type:
    if b["tmp_tile"] is not None and b.type("tmp_tile").dtype is not b.type("tile").dtype:
        raise b.fail(f"requires tmp_tile dtype to match input dtype {b.type('tile').dtype}, "
                     f"got {b.type('tmp_tile').dtype}")  # fmt: skip
    return _result(b, -2, DataType.INT32)


def _col_sum(b: Bound) -> Type:
    if b["tmp_tile"] is not None:
        _check_scratch(b, False)
    return _result(b, -2, None)


WHAT = {"sum": "sum", "prod": "product", "max": "maximum", "min": "minimum"}
ARG_WHAT = {"argmax": "the index of the maximum", "argmin": "the index of the minimum"}

for _name, _what in WHAT.items():
    declare(
        f"tile.row_{_name}",
        "in tile: tile, out tmp_tile: tile",
        _row(False, strict=_name == "min"),
        f"The {_what} of each row's valid part, as a column ``[M, 1]``. ``tmp_tile`` is scratch of the tile's dtype "
        "and "
        "at least its shape.",
        core=Core.VECTOR,
        spaces=vec("tile", "tmp_tile"),
        result_space=MemorySpace.Vec,
        pto=Pto(f"pto.trow{_name}", ("tile", "tmp_tile")),
    )

for _name, _what in ARG_WHAT.items():
    declare(
        f"tile.row_{_name}",
        "in tile: tile, out tmp_tile: tile",
        _row(True, DataType.INT32),
        f"Row by row, {_what} of the valid part (INT32), the first of equals. ``tmp_tile`` is scratch of the tile's "
        "dtype and shape.",
        core=Core.VECTOR,
        spaces=vec("tile", "tmp_tile"),
        result_space=MemorySpace.Vec,
        pto=Pto(f"pto.trow{_name}", ("tile", "tmp_tile")),
    )
    declare(
        f"tile.col_{_name}",
        "in tile: tile, out tmp_tile: tile",
        _col_arg,
        f"Column by column, {_what} of the valid part (INT32), the first of equals. ``tmp_tile`` is scratch.",
        core=Core.VECTOR,
        spaces=vec("tile", "tmp_tile"),
        result_space=MemorySpace.Vec,
        pto=Pto(f"pto.tcol{_name}", ("tile", "tmp_tile")),
    )

for _name in ("prod", "max", "min"):
    declare(
        f"tile.col_{_name}",
        "in tile: tile",
        _col,
        f"The {WHAT[_name]} of each column's valid part, as a row ``[1, N]``.",
        core=Core.VECTOR,
        spaces=vec("tile"),
        result_space=MemorySpace.Vec,
        pto=Pto(f"pto.tcol{_name}", ("tile",)),
    )

declare(
    "tile.col_sum",
    "in tile: tile, out tmp_tile: tile?",
    _col_sum,
    "The sum of each column's valid part, as a row ``[1, N]``: one row after the other, or as a binary tree when "
    "scratch "
    "``tmp_tile`` of the tile's dtype and at least its shape is given.",
    core=Core.VECTOR,
    spaces=vec("tile", "tmp_tile"),
    result_space=MemorySpace.Vec,
    pto=Pto("pto.tcolsum", ("tile", "tmp_tile"), form="col_sum"),
)
