"""Affine quantization to 8-bit integers and back, with one scale and offset a row."""

from __future__ import annotations

import numpy as np

from ..checks import OnlyOn, dtypes, no_box, row_major, same_dtype, same_valid, valid_axis, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, vector_cost
from ..scratch import like_source
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
    if not site.attrs["quant_type"].startswith("INT8"):
        raise PtoError(f"'pto.tquant': {site.attrs['quant_type']} is for pto.tquant.mx")
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
    scratch=like_source,
    bind=_quantize,
    cost=vector_cost(6, of="src"),
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
    doc="(src - offset) * scale in f32, with the offset and the scale of the row.",
)


_GROUP = 32
_MOST = np.float32(448)
"""The largest e4m3 element."""


def _group_shape(site: Site, rows: int, cols: int) -> tuple[int, int]:
    return (rows, cols // _GROUP) if site.attrs["grpAxis"] == "axis1" else (rows // _GROUP, cols)


def _groups(site: Site) -> None:
    """Whole groups of 32 along the axis, with their outputs where the instruction finds them."""
    if site.attrs["quant_type"] != "MXFP8" or site.attrs["quantScaleAlg"] != "ocp" or site.attrs["interleave"]:
        raise PtoError("'pto.tquant.mx': only MXFP8 with ocp scales that are not interleaved has a meaning here")
    src, along_rows = site.tile("src"), site.attrs["grpAxis"] == "axis1"
    rows, cols = src.v_row, src.v_col
    if rows is None or cols is None or (cols if along_rows else rows) % _GROUP:
        raise PtoError(f"'pto.tquant.mx': 'src' must have whole groups of {_GROUP}, got {rows}x{cols} valid elements")
    want = _group_shape(site, rows, cols)
    for name in ("exp", "max", "scaling"):
        tile = site.tile(name)
        if (tile.v_row, tile.v_col) != want:
            raise PtoError(
                f"'pto.tquant.mx': '{name}' must have {want[0]}x{want[1]} valid elements, one a group, got "
                f"{tile.v_row}x{tile.v_col}"
            )
        stride = src.cols if not along_rows else None if name == "exp" or tile.v_row == 1 else want[1]
        if stride is not None and tile.cols != stride:
            raise PtoError(f"'pto.tquant.mx': '{name}' must have {stride} columns, without gaps, got {tile.cols}")
    if site.tile("dst").cols != src.cols:
        raise PtoError(f"'pto.tquant.mx': 'dst' must have the {src.cols} columns of 'src', got {site.tile('dst').cols}")


def _quantize_mx(site: Site) -> Run:
    axis = 1 if site.attrs["grpAxis"] == "axis1" else 0
    dtype = site.tile("dst").numpy

    def run(src: TileValue, dst: TileValue, exp: TileValue, most: TileValue, scaling: TileValue) -> None:
        import ml_dtypes

        data = src.read()
        shape = _group_shape(site, *data.shape)
        split = (*data.shape[:axis], shape[axis], _GROUP, *data.shape[axis + 1 :])
        grouped = np.abs(data).reshape(split)
        greatest = grouped.max(axis=axis + 1)
        bits = greatest.view(np.uint32) >> 23
        exponents = np.where(np.isnan(greatest), 255, np.maximum(bits.astype(np.int32) - 8, 0)).astype(np.uint8)
        factors = ((254 - exponents.astype(np.uint32)) << 23).view(np.float32)
        factors = np.where(np.isnan(greatest), np.float32(np.nan), factors)
        scaled = np.clip(data * np.repeat(factors, _GROUP, axis=axis), -_MOST, _MOST)
        dst.write(scaled.astype(ml_dtypes.float8_e4m3fn).view(dtype))
        exp.write(exponents)
        most.write(greatest)
        scaling.write(factors)

    return run


declare(
    "tquant.mx",
    "src -> dst exp max scaling",
    pipe="V",
    attrs="quant_type:quant_type quantScaleAlg:quant_scale_alg=ocp grpAxis:mx_group_axis=axis1 interleave:bool=false",
    checks=(
        OnlyOn("a5"),
        vec("src", "dst", "exp", "max", "scaling"),
        dtypes("src", "f32"),
        dtypes("dst", "i8 ui8"),
        dtypes("exp", "i8 ui8"),
        same_dtype("src", "max", "scaling"),
        row_major("src", "dst", "exp", "max", "scaling"),
        same_valid("dst", "src"),
        _groups,
    ),
    bind=_quantize_mx,
    cost=vector_cost(6, of="src"),
    doc="The e4m3 bytes of src times 2^(127 - exp), nearest even and clamped, exp the f8E8M0 scale of each group of 32 "
    "along an axis: the exponent of its greatest magnitude less 8, 0 at least. max is that magnitude and scaling the "
    "factor.",
)
