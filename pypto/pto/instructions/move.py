"""Movement of data: global memory to tiles and back, between tiles, in and out of larger tiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..checks import dtypes, item_size, loc, same_dtype, same_item_size
from ..elements import data_type
from ..errors import PtoError
from ..numerics import convert, is_floating, limits
from ..runtime import Array, TileValue, WindowValue
from ..shapes import PADS, Tile
from ..spec import Run, Site, declare
from ..targets import moves
from .fixpipe import check_quantized, check_words, quantizer

GM_BYTES_PER_CYCLE = 32.0
"""Assumed rate of one core's share of global memory. No published figure: compare kernels, do not time them."""
_UB_BYTES_PER_CYCLE = 256.0


def _gm_cost(site: Site, rows: int, cols: int) -> float:
    """Each row is a burst rounded up to the access granularity of global memory."""
    tile = site.types["dst"] if isinstance(site.types["dst"], Tile) else site.types["src"]
    item = tile.item if isinstance(tile, Tile) else 4
    granule = site.target.gm_granularity
    return rows * (-(-cols * item // granule) * granule) / GM_BYTES_PER_CYCLE


def _drain_cost(site: Site, item: int, rows: int, cols: int) -> float:
    costs = site.target.costs
    return costs.drain_cycles + max(costs.drain_row_cycles * rows, rows * cols * item / costs.drain_bytes_per_cycle)


def _store_cost(site: Site, rows: int, cols: int) -> float:
    if site.tile("src").loc == "acc":
        return _drain_cost(site, site.view("dst").numpy.itemsize, rows, cols)
    return _gm_cost(site, rows, cols)


def _move_cost(site: Site, rows: int, cols: int) -> float:
    """Rates of the target's cost figures; a copy within the vector buffer moves one 256-byte repeat a cycle."""
    src, dst = site.tile("src"), site.tile("dst")
    if src.loc == "acc":
        return _drain_cost(site, dst.item, rows, cols)
    costs = site.target.costs
    rates = {"left": costs.l0a_bytes_per_cycle, "right": costs.l0b_bytes_per_cycle}
    rate = rates.get(dst.loc, _UB_BYTES_PER_CYCLE)
    return rows * cols * dst.item / rate


_ALL = "i8 i16 i32 i64 ui8 ui16 ui32 ui64 f16 bf16 f32"
_ALL_A5 = _ALL + " f8E4M3FN f8E5M2 !pto.hif8 !pto.f4E1M2x2 !pto.f4E2M1x2 !pto.f8E8M0"


def _fits_window(site: Site) -> None:
    """Static extents of the window fit the tile's buffer."""
    view, tile = site.view("src"), site.tile("dst")
    if len(view.shape) == 2 and tile.slayout == "none_box":
        for axis, extent, room in zip(("rows", "columns"), view.shape, (tile.rows, tile.cols), strict=True):
            if extent is not None and extent > room:
                raise PtoError(
                    f"'{site.spec.op_name}': window of {extent} {axis} does not fit a tile of {tile.rows}x{tile.cols}"
                )


_SCALES = ("mx_a_zz", "mx_b_nn")


def _load(site: Site) -> Run:
    dtype = site.tile("dst").numpy
    room = site.tile("dst").rows, site.tile("dst").cols

    def run(src: WindowValue, dst: TileValue) -> None:
        rows, cols = src.matrix_shape()
        # Scales come in whole boxes, of which the tile may count a part.
        valid_rows, valid_cols = room if src.layout in _SCALES else dst.valid
        if rows > valid_rows or cols > valid_cols:
            raise PtoError(
                f"'{site.spec.op_name}': window of {rows}x{cols} elements, but 'dst' has "
                f"{valid_rows}x{valid_cols} valid ones"
            )
        data = src.read()
        if data.dtype != dtype:
            data = data.view(dtype)
        if (rows, cols) == dst.valid:
            dst.write(data)
        else:
            dst.write_at(0, 0, data)

    return run


declare(
    "tload",
    "src:view -> dst",
    pipe="MTE2",
    attrs="pad_mode?:pad_mode init_out_buffer:bool=false layout?:layout",
    checks=(loc("dst", "vec", "mat"), dtypes("dst", _ALL, _ALL_A5), same_item_size("src", "dst"), _fits_window),
    bind=_load,
    cost=_gm_cost,
    doc="A window of global memory into a tile; only the window's extents are written.",
)

declare(
    "tprefetch",
    "src:view -> dst",
    pipe="MTE2",
    checks=(loc("dst", "vec", "mat"), dtypes("dst", _ALL, _ALL_A5), same_item_size("src", "dst"), _fits_window),
    bind=_load,
    cost=_gm_cost,
    doc="A window of global memory brought near: as `tload`, but later instructions do not wait for it.",
)

COMBINE: Mapping[str, Callable[[Array, Array], Array] | None] = {
    "atomic_none": None,
    "atomic_add": np.add,
    "atomic_max": np.maximum,
    "atomic_min": np.minimum,
}
"""What a store with each ``atomicType`` makes of old and new elements; None replaces them."""


def _check_store(site: Site) -> None:
    tile, view = site.tile("src"), site.view("dst")
    if site.has("fp"):
        check_quantized(site, view.dtype)
    elif tile.loc == "acc":
        dtypes("src", "i32 f32")(site)
        if data_type(view.dtype) not in site.target.acc_store_dtypes:
            raise PtoError(f"'pto.tstore': {site.arch} does not store an accumulator as {view.dtype}")
        if tile.dtype == "i32" and view.dtype != "i32":
            raise PtoError(f"'pto.tstore': an i32 accumulator is stored as i32, not {view.dtype}, without quantization")
        if tile.dtype == "f32" and view.dtype == "i32":
            raise PtoError("'pto.tstore': an f32 accumulator cannot be stored as i32")
    else:
        if tile.loc == "mat" and site.arch == "a5":
            raise PtoError(f"'pto.tstore': {site.arch} stores tiles in vec and acc, not in mat")
        dtypes("src", _ALL, _ALL_A5)(site)
        same_item_size("src", "dst")(site)
        if site.attrs["reluPreMode"] != "no_relu":
            raise PtoError("'pto.tstore': reluPreMode needs a source in acc")


def _drained(values: Array, dtype: np.dtype, relu: bool) -> Array:
    """Elements leaving the accumulator: optional relu, then rounded to nearest even."""
    if relu:
        values = np.maximum(values, values.dtype.type(0))
    return convert(values, dtype)


def _check_atomic(site: Site) -> None:
    dtype = site.view("dst").dtype
    if site.attrs["atomicType"] != "atomic_none" and data_type(dtype) not in site.target.atomic_add_dtypes:
        raise PtoError(f"'pto.tstore': {site.arch} has no {site.attrs['atomicType']} of {dtype} in global memory")


def _store(site: Site) -> Run:
    tile = site.tile("src")
    dtype = site.view("dst").numpy
    relu = site.attrs["reluPreMode"] == "normal_relu"
    combine = COMBINE[site.attrs["atomicType"]]
    drains = tile.loc == "acc"
    quantize = quantizer(site, dtype) if site.has("fp") else None

    def run(src: TileValue, fp: TileValue | None, dst: WindowValue) -> None:
        rows, cols = dst.matrix_shape()
        valid_rows, valid_cols = src.valid
        if valid_rows > rows or valid_cols > cols:
            raise PtoError(
                f"'pto.tstore': {valid_rows}x{valid_cols} valid elements of 'src' exceed the window of {rows}x{cols}"
            )
        data = src.read()
        if quantize is not None:
            data = quantize(data, fp, 0)
        else:
            data = _drained(data, dtype, relu) if drains else data if data.dtype == dtype else _as(data, dtype)
        dst.write(data, combine)

    return run


def _as(data: Array, dtype: np.dtype) -> Array:
    return np.ascontiguousarray(data).view(dtype)


declare(
    "tstore",
    "src fp? -> dst:view",
    apart="fp",
    pipe=lambda site: "FIX" if site.tile("src").loc == "acc" else "MTE3",
    attrs="stPhase:st_phase=unspecified atomicType:atomic_type=atomic_none reluPreMode:relu_pre_mode=no_relu "
    "layout?:layout",
    checks=(loc("src", "vec", "mat", "acc"), _check_store, _check_atomic),
    bind=_store,
    cost=_store_cost,
    doc="The valid region of a tile into a window of global memory, optionally combined with what is there.",
)


def _legal_move(site: Site) -> None:
    src, dst = site.tile("src"), site.tile("dst")
    legal = moves(site.target)
    if dst.loc not in legal.get(src.loc, ()):
        options = ", ".join(f"{a} to {b}" for a, targets in legal.items() for b in targets)
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': no move from {src.loc} to {dst.loc} on {site.arch} (there are: {options})",
            hint="start an accumulator with pl.matmul, go on with pl.matmul_acc" if dst.loc == "acc" else None,
        )


def _moved_dtype(site: Site) -> None:
    src, dst = site.tile("src"), site.tile("dst")
    if site.has("fp"):
        check_quantized(site, dst.dtype)
    elif src.loc == "acc":
        allowed = ("f16", "bf16", "f32") if site.target.quirks.tinsert_f32_destination else ("f16", "bf16")
        if src.dtype == "i32" and dst.dtype == "i32" and dst.loc == "vec":
            return
        if src.dtype != "f32" or dst.dtype not in allowed:
            raise PtoError(
                f"'pto.{site.spec.mnemonic}': acc to {dst.loc} takes f32 to {' or '.join(allowed)}, "
                f"got {src.dtype} to {dst.dtype}"
            )
    elif dst.loc == "bias":
        if (data_type(src.dtype), data_type(dst.dtype)) not in site.target.bias_moves:
            raise PtoError(f"'pto.{site.spec.mnemonic}': no move of {src.dtype} to a {dst.dtype} bias")
    elif dst.loc == "scaling" and not dst.boxed:
        check_words(site, "dst")
        same_dtype("src", "dst")(site)
    elif dst.loc == "scaling" and dst.dtype == "!pto.f8E8M0":
        dtypes("src", "ui8 !pto.f8E8M0")(site)
    else:
        same_dtype("src", "dst")(site)


def _only_from_acc(site: Site) -> None:
    if site.tile("src").loc != "acc" and site.attrs["reluPreMode"] != "no_relu":
        raise PtoError(f"'pto.{site.spec.mnemonic}': reluPreMode needs a source in acc")


def _pipe(site: Site) -> str:
    src, dst = site.tile("src").loc, site.tile("dst").loc
    if src == "acc":
        return "FIX"
    if src == "mat":
        return "MTE1"
    return "V" if dst == "vec" else "MTE3"


def _outside(site: Site, what: str, row: int, col: int, rows: int, cols: int, tile: Tile) -> None:
    if row < 0 or col < 0 or row + rows > tile.rows or col + cols > tile.cols:
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': {rows}x{cols} elements at ({row}, {col}) are outside {what}, "
            f"a tile of {tile.rows}x{tile.cols}"
        )


def _same_buffer(site: Site) -> None:
    src, dst = site.tile("src"), site.tile("dst")
    if src.loc == "mat" and (src.rows, src.cols) != (dst.rows, dst.cols):
        raise PtoError(
            f"'pto.tmov': 'src' {src.rows}x{src.cols} and 'dst' {dst.rows}x{dst.cols} must have the same extents; "
            "pto.textract takes a part"
        )


def _row_as_vector(site: Site) -> bool:
    """A plain row in mat goes to left as the vector of a `tgemv`, which fills whole fractals one after another."""
    src, dst = site.tile("src"), site.tile("dst")
    return src.loc == "mat" and dst.loc == "left" and src.rows == 1 and not src.boxed


def _whole_fractals(site: Site) -> None:
    src, dst = site.tile("src"), site.tile("dst")
    if _row_as_vector(site) and (src.nbytes % dst.fractal or dst.nbytes % dst.fractal):
        unit = dst.fractal // src.item
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': a row goes to left in blocks of {dst.fractal} bytes, {unit} elements of "
            f"{src.dtype}, got rows of {src.cols} and {dst.cols}",
            hint=f"load [1, {-(-src.cols // unit) * unit}] with valid_shape, and as many rows of the right operand",
        )


def _mover(site: Site) -> Callable[[Array, TileValue | None, int], Array]:
    """What elements become, given the tile of quantization words, if any, and the column of src they start at."""
    src, dst = site.tile("src"), site.tile("dst")
    dtype = dst.numpy
    relu = site.attrs["reluPreMode"] == "normal_relu"
    if site.has("fp"):
        return quantizer(site, dtype)
    if src.loc == "acc":
        return lambda data, _fp, _col: _drained(data, dtype, relu)
    if dst.loc == "scaling":
        return lambda data, _fp, _col: np.ascontiguousarray(data).view(dtype)
    if src.dtype != dst.dtype:
        return lambda data, _fp, _col: convert(data, dtype)
    return lambda data, _fp, _col: data


def _move(site: Site) -> Run:
    convert_data = _mover(site)

    def run(src: TileValue, fp: TileValue | None, dst: TileValue) -> None:
        rows, cols = dst.valid
        if src.valid == dst.valid:
            dst.write(convert_data(src.read(), fp, 0))
            return
        _outside(site, "'src'", 0, 0, rows, cols, src.type)
        dst.write(convert_data(src.read_at(0, 0, rows, cols), fp, 0))

    return run


_MOVE_ATTRS = "accToVecMode?:acc_to_vec_mode reluPreMode:relu_pre_mode=no_relu"

declare(
    "tmov",
    "src fp? -> dst",
    apart=",",
    pipe=_pipe,
    attrs=_MOVE_ATTRS,
    checks=(_legal_move, _moved_dtype, _only_from_acc, _same_buffer, _whole_fractals),
    bind=_move,
    cost=_move_cost,
    in_place="src",
    doc="A tile to another memory or layout; the valid extents of dst are copied.",
)


def _extract(site: Site) -> Run:
    convert_data = _mover(site)
    item, block = site.tile("src").item, site.tile("dst").fractal if _row_as_vector(site) else 1

    def run(src: TileValue, row: int, col: int, fp: TileValue | None, dst: TileValue) -> None:
        rows, cols = dst.valid
        if col * item % block:
            raise PtoError(
                f"'pto.textract': part of a row goes to left in blocks of {block} bytes, not from column {col}"
            )
        _outside(site, "'src'", row, col, rows, cols, src.type)
        dst.write(convert_data(src.read_at(row, col, rows, cols), fp, col))

    return run


_EXTRACTED = dtypes(
    "dst", "i8 ui8 f16 bf16 f32", "i8 ui8 f16 bf16 f32 f8E4M3FN f8E5M2 !pto.hif8", within="vec"
)
declare(
    "textract",
    "src indexRow:index indexCol:index fp? -> dst",
    apart="fp",
    pipe=_pipe,
    attrs=_MOVE_ATTRS,
    checks=(_legal_move, _moved_dtype, _only_from_acc, _EXTRACTED, _whole_fractals),
    bits="any",
    bind=_extract,
    cost=_move_cost,
    doc="A window of a tile, laid out as dst wants it.",
)


def _insert(site: Site) -> Run:
    convert_data = _mover(site)

    def run(src: TileValue, row: int, col: int, fp: TileValue | None, dst: TileValue) -> None:
        rows, cols = src.valid
        _outside(site, "'dst'", row, col, rows, cols, dst.type)
        dst.write_at(row, col, convert_data(src.read(), fp, 0))

    return run


_INSERTED = dtypes(
    "dst", "i8 ui8 f16 bf16 f32", "i8 ui8 i32 f16 bf16 f32 f8E4M3FN f8E5M2 !pto.hif8", within="vec"
)
declare(
    "tinsert",
    "src indexRow:index indexCol:index fp? -> dst",
    apart="fp",
    pipe=_pipe,
    attrs=_MOVE_ATTRS,
    checks=(_legal_move, _moved_dtype, _only_from_acc, _INSERTED),
    bits="any",
    bind=_insert,
    cost=_move_cost,
    doc="A tile into a window of a larger one.",
)


def _pad_value(pad: str, dtype: np.dtype) -> Any:
    low, high = limits(dtype)
    return {"zero": dtype.type(0), "max": high, "min": low}[pad]


def _check_fillpad(site: Site) -> None:
    src, dst = site.tile("src"), site.tile("dst")
    if PADS[dst.pad] == "null":
        raise PtoError("'pto.tfillpad': the type of 'dst' must state a pad other than null")
    if dst.rows < src.rows or dst.cols < src.cols:
        raise PtoError(f"'pto.tfillpad': 'dst' {dst.rows}x{dst.cols} is smaller than 'src' {src.rows}x{src.cols}")
    if dst.loc == "mat" and (src.rows, src.cols) != (dst.rows, dst.cols):
        raise PtoError("'pto.tfillpad': tiles in mat must have the same extents")
    if dst.loc == "mat" and (PADS[dst.pad] != "zero" or (dst.blayout, dst.slayout) != ("col_major", "row_major")):
        raise PtoError(
            f"'pto.tfillpad': a tile in mat is filled with zeros, and is blayout=col_major, slayout=row_major, "
            f"got pad={PADS[dst.pad]}, blayout={dst.blayout}, slayout={dst.slayout}"
        )
    if is_floating(dst.numpy) and dst.item == 1 and PADS[dst.pad] != "zero":
        raise PtoError(f"'pto.tfillpad': an 8-bit float has no infinity to pad with; use pad=1 (zero), not {dst.pad}")


def _fillpad(site: Site) -> Run:
    dst_type = site.tile("dst")
    value = _pad_value(PADS[dst_type.pad], dst_type.numpy)

    def run(src: TileValue, dst: TileValue) -> None:
        rows, cols = src.valid
        whole = np.full((dst_type.rows, dst_type.cols), value, dst_type.numpy)
        whole[:rows, :cols] = src.read()
        dst.write_at(0, 0, whole)

    return run


declare(
    "tfillpad",
    "src -> dst",
    pipe=lambda site: "MTE1" if site.tile("dst").loc == "mat" else "V",
    attrs="padValue?:pad_value",
    checks=(
        loc("src", "vec", "mat"),
        loc("dst", "vec", "mat"),
        same_dtype("dst", "src"),
        item_size("src", "dst", bytes=(1, 2, 4)),
        _check_fillpad,
    ),
    bind=_fillpad,
    in_place=True,
    cost=lambda site, _rows, _cols: site.tile("dst").nbytes / _UB_BYTES_PER_CYCLE,
    doc="The valid elements of src, and the pad of dst's type in the rest of dst's buffer.",
)
