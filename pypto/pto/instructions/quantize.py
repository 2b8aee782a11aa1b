"""Affine quantization to 8-bit integers and back, with one scale and offset a row."""

from __future__ import annotations

import numpy as np

from ..checks import dtypes, no_box, row_major, same_dtype, same_valid, valid_axis, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, vector_cost
from ..shapes import Tile
from ..spec import Check, Run, Site, declare


def _per_row(*names: str) -> Check:
    """A parameter is a column: col_major storage with one valid column."""

    def check(site: Site) -> None:
        for name in names:
            if site.has(name):
                tile = site.tile(name)
                if tile.blayout != "col_major" or tile.v_col not in (None, 1):
                    raise PtoError(
                        f"'pto.{site.spec.mnemonic}': '{name}' must be a column, one value a row of the source, "
                        f"got {tile.rows}x{tile.cols} with {tile.v_col} valid columns, {tile.blayout}"
                    )

    return check


def _mode(site: Site) -> None:
    asymmetric = site.attrs["quant_type"] == "INT8_ASYM"
    want = "ui8" if asymmetric else "i8"
    if site.tile("dst").dtype != want:
        raise PtoError(f"'pto.tquant': {site.attrs['quant_type']} gives {want}, not {site.tile('dst').dtype}")
    if site.has("offset") != asymmetric:
        raise PtoError(f"'pto.tquant': {site.attrs['quant_type']} {'needs' if asymmetric else 'takes no'} offset")


def _scratch(site: Site) -> None:
    if not site.has("tmp"):
        return
    src, tmp = site.tile("src"), site.tile("tmp")
    same = (tmp.dtype, tmp.rows, tmp.cols) == (src.dtype, src.rows, src.cols)
    for left, right in ((src.v_row, tmp.v_row), (src.v_col, tmp.v_col)):
        same = same and (left is None or right is None or left == right)
    if not same:
        raise PtoError(
            f"'pto.tquant': 'tmp' must have the source's element type and extents, {_described(src)}, "
            f"got {_described(tmp)}"
        )


def _described(tile: Tile) -> str:
    valid = "x".join("?" if extent is None else str(extent) for extent in (tile.v_row, tile.v_col))
    return f"{tile.rows}x{tile.cols} {tile.dtype} with {valid} valid"


def _rows(site: Site, name: str, tile: TileValue, rows: int) -> Array:
    if tile.valid != (rows, 1):
        raise PtoError(f"'pto.{site.spec.mnemonic}': '{name}' has {tile.valid} valid elements for {rows} rows")
    return tile.read()


def _same(site: Site, src: TileValue, dst: TileValue) -> None:
    if src.valid != dst.valid:
        raise PtoError(f"'pto.{site.spec.mnemonic}': 'src' has {src.valid} valid elements and 'dst' {dst.valid}")


def _quantize(site: Site) -> Run:
    dtype = site.tile("dst").numpy
    limits = np.iinfo(dtype)

    def run(src: TileValue, fp: TileValue, offset: TileValue | None, dst: TileValue) -> None:
        _same(site, src, dst)
        rows = src.valid[0]
        scaled = src.read() * _rows(site, "fp", fp, rows)
        if offset is not None:
            scaled = scaled + _rows(site, "offset", offset, rows)
        rounded = np.rint(np.nan_to_num(scaled, nan=0.0, posinf=np.inf, neginf=-np.inf))
        dst.write(np.clip(rounded, limits.min, limits.max).astype(dtype))

    return run


declare(
    "tquant",
    "src fp offset? -> dst ~tmp?",
    pipe="V",
    attrs="quant_type:quant_type",
    checks=(
        vec("src", "fp", "offset", "tmp", "dst"),
        dtypes("src", "f32"),
        dtypes("fp", "f32"),
        dtypes("offset", "f32"),
        dtypes("dst", "i8 ui8"),
        row_major("src", "tmp", "dst"),
        _per_row("fp", "offset"),
        same_valid("dst", "src"),
        valid_axis("src", "fp", 0),
        _mode,
        _scratch,
    ),
    bind=_quantize,
    cost=vector_cost(6, of="src"),
    in_place=False,
    doc="src * fp, plus offset, rounded once to nearest even and clamped to 8 bits; NaN gives 0. The factor and the "
    "offset are those of the row.",
)


def _dequantize(site: Site) -> Run:
    def run(src: TileValue, scale: TileValue, offset: TileValue, dst: TileValue) -> None:
        _same(site, src, dst)
        rows = src.valid[0]
        centred = src.read().astype(np.float32) - _rows(site, "offset", offset, rows)
        dst.write(centred * _rows(site, "scale", scale, rows))

    return run


declare(
    "tdequant",
    "src scale offset -> dst",
    pipe="V",
    checks=(
        vec("src", "scale", "offset", "dst"),
        dtypes("src", "i8 i16"),
        dtypes("dst", "f32"),
        same_dtype("dst", "scale", "offset"),
        row_major("src", "dst"),
        no_box("scale", "offset"),
        _per_row("scale", "offset"),
        same_valid("dst", "src"),
        valid_axis("dst", "scale", 0),
        valid_axis("dst", "offset", 0),
    ),
    bind=_dequantize,
    cost=vector_cost(4),
    in_place=False,
    doc="(src - offset) * scale in f32, with the offset and the scale of the row.",
)
