"""Histograms, and concatenation by counts."""

from __future__ import annotations

import numpy as np

from ..checks import OnlyOn, dtypes, row_major, same_dtype, valid_axis, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, vector_cost
from ..shapes import Tile
from ..spec import Run, Site, declare

BINS = 256


def _upper_bytes(site: Site) -> int:
    """How many bytes above the counted one are compared with `idx`."""
    return site.tile("src").item - 1 - site.attrs["byte"]


def _selector(site: Site) -> None:
    src, idx, byte = site.tile("src"), site.tile("idx"), site.attrs["byte"]
    if not 0 <= byte < src.item:
        raise PtoError(f"'pto.thistogram': byte must be 0..{src.item - 1} for a source of {src.dtype}, got {byte}")
    if src.item == 2:
        _column(src, idx)
    elif byte < 3 and not (idx.nd and idx.v_row in (None, 3 - byte) and idx.v_col in (None, src.v_col)):
        raise PtoError(
            f"'pto.thistogram': byte {byte} of ui32 needs 'idx' with {3 - byte} valid rows and the columns of 'src', "
            f"row_major, got {idx.v_row}x{idx.v_col} {idx.blayout}"
        )


def _column(src: Tile, idx: Tile) -> None:
    if idx.blayout != "col_major" or idx.boxed or idx.cols != 1 or idx.v_row != src.v_row:
        raise PtoError(
            f"'pto.thistogram': 'idx' of a ui16 source must be a column of its {src.v_row} valid rows, "
            f"got {idx.v_row}x{idx.v_col} {idx.blayout}"
        )


def _bins(site: Site) -> None:
    dst = site.tile("dst")
    if dst.cols < BINS or (dst.v_col is not None and dst.v_col < BINS):
        raise PtoError(f"'pto.thistogram': 'dst' must have {BINS} valid columns, got {dst.v_col} of {dst.cols}")


def _histogram(site: Site) -> Run:
    item, byte = site.tile("src").item, site.attrs["byte"]
    upper = _upper_bytes(site)

    def wanted(idx: TileValue, row: int, position: int) -> int:
        """The value byte ``position`` of the elements counted in ``row`` has."""
        if item == 2:
            return int(idx.read_at(row, 0, 1, 1)[0, 0])
        return int(idx.read_at(3 - position, 0, 1, 1)[0, 0])

    def run(src: TileValue, idx: TileValue, dst: TileValue) -> None:
        values = src.read().astype(np.uint32)
        rows = values.shape[0]
        counts = np.zeros((rows, dst.valid[1]), np.uint32)
        for row in range(rows):
            kept = values[row]
            for position in range(item - 1, item - 1 - upper, -1):
                kept = kept[(kept >> (8 * position)) & 0xFF == wanted(idx, row, position)]
            counts[row, :BINS] = np.bincount((kept >> (8 * byte)) & 0xFF, minlength=BINS)
        dst.write(counts)

    return run


declare(
    "thistogram",
    "src idx -> dst",
    pipe="V",
    attrs="byte:int=1",
    checks=(
        OnlyOn("a5"),
        vec("src", "idx", "dst"),
        dtypes("src", "ui16 ui32"),
        dtypes("idx", "ui8"),
        dtypes("dst", "ui32"),
        row_major("src", "dst"),
        valid_axis("src", "dst", 0),
        _selector,
        _bins,
    ),
    bind=_histogram,
    cost=vector_cost(4, of="src"),
    doc="How often each of the 256 values of a byte occurs in a row, among elements whose bytes above it are those of "
    "idx: byte 1 of ui16 and byte 3 of ui32 count all. A ui16 source has one value a row in idx, a ui32 source one row "
    "of idx for each byte above, highest first.",
)


def _joined(site: Site) -> Run:
    width = site.tile("dst").cols

    def counts(index: TileValue, rows: int) -> Array:
        if index.valid[0] != rows or not index.valid[1]:
            raise PtoError(f"'pto.tconcatidx': counts with {index.valid} valid elements for {rows} rows")
        return index.read()[:, 0].astype(np.int64)

    def run(src0: TileValue, src1: TileValue, src0Idx: TileValue, src1Idx: TileValue, dst: TileValue) -> None:
        rows, cols = dst.valid
        first, second = counts(src0Idx, rows), counts(src1Idx, rows)
        left, right = src0.read(), src1.read()
        out = np.array(dst.read_at(0, 0, rows, width))
        for row in range(rows):
            taken = max(0, min(int(first[row]), left.shape[1], cols))
            more = max(0, min(int(second[row]), right.shape[1], cols - taken))
            out[row, :taken] = left[row, :taken]
            out[row, taken : taken + more] = right[row, :more]
        dst.write_at(0, 0, out)

    return run


declare(
    "tconcatidx",
    "src0 src1 src0Idx src1Idx -> dst",
    pipe="V",
    checks=(
        vec("src0", "src1", "src0Idx", "src1Idx", "dst"),
        same_dtype("dst", "src0", "src1"),
        dtypes("dst", "i8 i16 i32 f16 bf16 f32"),
        same_dtype("src0Idx", "src1Idx"),
        dtypes("src0Idx", "i8"),
        row_major("src0", "src1", "src0Idx", "src1Idx", "dst"),
        *(valid_axis("dst", name, 0) for name in ("src0", "src1", "src0Idx", "src1Idx")),
    ),
    bind=_joined,
    cost=vector_cost(2),
    doc="Row by row, as many columns of src0 as src0Idx says, then of src1 as src1Idx says; the rest of dst is left "
    "alone. The library divides counts by their own size: only those of one byte are counts.",
)
