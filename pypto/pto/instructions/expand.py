"""Broadcasts of a column over rows, or of a row over columns, alone or combined with a tile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import dtypes, no_box, row_major, same_dtype, same_valid, valid_axis, vec
from ..errors import PtoError
from ..numerics import in_f32
from ..runtime import Array, TileValue, vector_cost
from ..scratch import on_a2a3, row_blocks, row_copies
from ..shapes import Tile
from ..spec import Run, Site, declare
from .elementwise import quotient

_USUAL = "i16 i32 f16 f32"
_FLOATS = "f16 f32"
_ANY = "i8 i16 i32 ui8 ui16 ui32 f16 bf16 f32"


def _vector(site: Site, name: str, tile: TileValue, axis: int, extent: int) -> Array:
    """The first column (axis 0) or first row (axis 1) of a tile, as long as the result is."""
    rows, cols = tile.valid
    if (rows, cols)[axis] != extent or not rows or not cols:
        what = ("rows", "columns")[axis]
        raise PtoError(f"'pto.{site.spec.mnemonic}': '{name}' has {rows}x{cols} valid elements for {extent} {what}")
    data = tile.read()
    if axis:
        return data[:1, :]
    first = data[:, :1]
    if cols > 1 and site.spec.mnemonic != "trowexpand" and not _copies(data):
        raise PtoError(f"'pto.{site.spec.mnemonic}': '{name}' must hold copies of one value in the 32 bytes of a row")
    return first


def _copies(data: Array) -> bool:
    """Whether every row holds one value only, bit by bit."""
    bits = np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}")
    return bool((bits == bits[:, :1]).all())


def _alone(axis: int) -> Callable[[Site], Run]:
    def bind(site: Site) -> Run:
        def run(src: TileValue, dst: TileValue) -> None:
            if 0 in dst.valid:
                return
            dst.write(np.broadcast_to(_vector(site, "src", src, axis, dst.valid[axis]), dst.valid))

        return run

    return bind


def _combined(function: Callable[[Array, Array], Array], axis: int) -> Callable[[Site], Run]:
    """One source has the result's extents; the other gives one element for each row (axis 0) or column (1)."""

    def bind(site: Site) -> Run:
        def operand(name: str, tile: TileValue, want: tuple[int, int]) -> Array:
            return tile.read() if tile.valid == want else _vector(site, name, tile, axis, want[axis])

        def run(src0: TileValue, src1: TileValue, dst: TileValue) -> None:
            want = dst.valid
            if 0 in want:
                return
            if src0.valid != want and src1.valid != want:
                raise PtoError(
                    f"'pto.{site.spec.mnemonic}': neither source has the {want[0]}x{want[1]} valid elements of 'dst'"
                )
            left = operand("src0", src0, want)
            right = _vector(site, "src1", src1, axis, want[axis]) if src0.valid == want else operand("src1", src1, want)
            dst.write(function(left, right))

        return run

    return bind


def _difference(left: Array, right: Array) -> Array:
    return in_f32(np.exp)(left - right)


def _one_spreads(site: Site) -> None:
    """One source has the valid region of the result; the other is a column, or a block of 32 bytes a row."""
    want = site.tile("dst")
    full = [n for n in ("src0", "src1") if _may_be(site.tile(n), want.v_row, want.v_col)]
    for name in ("src0", "src1"):
        others = [n for n in full if n != name]
        if others and _spreads(site.tile(name)):
            return
    src0, src1 = site.tile("src0"), site.tile("src1")
    raise PtoError(
        f"'pto.{site.spec.mnemonic}': one source must have the valid elements of 'dst' and the other be a column, or "
        f"a block of 32 bytes a row, got {_described(src0)} and {_described(src1)}"
    )


def _may_be(tile: Tile, rows: int | None, cols: int | None) -> bool:
    return tile.nd and all(a is None or b is None or a == b for a, b in ((tile.v_row, rows), (tile.v_col, cols)))


def _spreads(tile: Tile) -> bool:
    if tile.blayout == "col_major":
        return tile.v_col in (None, 1)
    return tile.v_col in (None, 32 // tile.item)


def _described(tile: Tile) -> str:
    valid = "x".join("?" if extent is None else str(extent) for extent in (tile.v_row, tile.v_col))
    return f"{tile.rows}x{tile.cols} {tile.blayout} with {valid} valid"


_ROW_RULES = (_one_spreads, on_a2a3(same_dtype("dst", "tmp"), row_copies))
_COLUMN_RULES = (row_major("src0", "src1"), same_valid("dst", "src0"))


_OPERATIONS: dict[str, tuple[Callable[[Array, Array], Array], str, str, float]] = {
    "add": (np.add, _USUAL, "i8 i16 i32 f16 f32", 1),
    "sub": (np.subtract, _USUAL, "i8 i16 i32 f16 f32", 1),
    "mul": (np.multiply, _USUAL, "i8 i16 i32 f16 f32", 1),
    "div": (quotient, _FLOATS, _FLOATS, 4),
    "max": (np.maximum, _USUAL, "i8 i16 i32 f16 f32", 1),
    "min": (np.minimum, _USUAL, "i8 i16 i32 f16 f32", 1),
    "expdif": (_difference, _FLOATS, _FLOATS, 3),
}

for _axis, _word, _operands in ((0, "row", "src0 src1 ~tmp? -> dst"), (1, "col", "src0 src1 -> dst")):
    declare(
        f"t{_word}expand",
        "src -> dst",
        pipe="V",
        checks=(
            vec("src", "dst"),
            same_dtype("dst", "src"),
            dtypes("dst", _ANY),
            no_box("src") if _axis == 0 else row_major("src"),
            row_major("dst"),
            valid_axis("dst", "src", _axis),
        ),
        bind=_alone(_axis),
        cost=vector_cost(),
    )
    for _name, (_function, _a2a3, _a5, _passes) in _OPERATIONS.items():
        declare(
            f"t{_word}expand{_name}",
            _operands,
            pipe="V",
            attrs="precisionType:div_precision=default" if _name == "div" else "",
            checks=(
                vec("src0", "src1", "tmp", "dst"),
                same_dtype("dst", "src0", "src1"),
                dtypes("dst", _a2a3, _a5),
                no_box("src0", "src1"),
                row_major("dst"),
                valid_axis("dst", "src0", _axis),
                valid_axis("dst", "src1", _axis),
                *(_ROW_RULES if _axis == 0 else _COLUMN_RULES),
            ),
            bind=_combined(_function, _axis),
            cost=vector_cost(_passes),
            in_place=True,
            scratch=row_blocks if _axis == 0 else None,
        )
