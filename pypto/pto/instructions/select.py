"""Comparison to packed masks, selection by them, and bitwise operations.

A mask has one bit an element, eight to a byte, lowest bit first; each row of the tile starts a new
row of the mask. The packing of real masks is the target's business: a mask is only good for
selection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..checks import Apart, ContractError, dtypes, row_major, same_dtype, same_valid, scalar_of, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, elementwise, to_scalar, vector_cost
from ..scratch import covers, enough, like, mask_words, on_a2a3, one_row
from ..spec import Bind, Run, Site, declare

_COMPARE: dict[str, Callable[[Any, Any], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _mask_room(mask: str, data: str):
    def check(site: Site) -> None:
        held, tile = site.tile(mask), site.tile(data)
        need = -(-(tile.v_col if tile.v_col is not None else tile.cols) // 8)
        if held.cols * held.item < need or held.rows < (tile.v_row or 0):
            raise PtoError(
                f"'pto.{site.spec.mnemonic}': '{mask}' must have rows of {need} bytes, one bit an element, "
                f"got {held.rows}x{held.cols}"
            )

    return check


def _mask_as_wide(site: Site) -> None:
    src, mask = site.tile("src0"), site.tile("dst")
    if site.target.quirks.mask_as_wide and (mask.rows, mask.cols) != (src.rows, src.cols):
        raise ContractError(
            f"'pto.tcmp': the mask must have the extents of the tiles compared, {src.rows}x{src.cols}, got "
            f"{mask.rows}x{mask.cols}",
            hint="compare tiles of a multiple of 32 columns, of which valid_shape says how many are valid",
        )


def _i32_equal_only(site: Site) -> None:
    name = "src0" if site.has("src0") else "src"
    if site.arch == "a2a3" and site.tile(name).dtype == "i32" and site.attrs["cmpMode"] != "eq":
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': a2a3 compares i32 for equality only, whatever the mode; "
            "convert to f32 or compare a difference's sign"
        )


def _pack(bits: Array) -> Array:
    return np.packbits(bits, axis=1, bitorder="little")


def _write_mask(dst: TileValue, bits: Array) -> None:
    packed = _pack(bits)
    item = dst.type.item
    if item > 1:
        packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % item)))
    dst.write_at(0, 0, np.ascontiguousarray(packed).view(dst.type.numpy))


def _read_mask(mask: TileValue, rows: int, cols: int) -> Array:
    item = mask.type.item
    raw = np.ascontiguousarray(mask.read_at(0, 0, rows, -(-cols // (8 * item)))).view(np.uint8)
    return np.unpackbits(raw, axis=1, bitorder="little")[:, :cols].astype(bool)


def _compare(site: Site) -> Run:
    compare = _COMPARE[site.attrs["cmpMode"]]

    def run(src0: TileValue, src1: TileValue, dst: TileValue) -> None:
        if src0.valid != src1.valid:
            raise PtoError(f"'pto.tcmp': sources have {src0.valid} and {src1.valid} valid elements")
        _write_mask(dst, compare(src0.read(), src1.read()))

    return run


def _compare_scalar(site: Site) -> Run:
    compare = _COMPARE[site.attrs["cmpMode"]]
    dtype = site.tile("src").numpy

    def run(src: TileValue, scalar: Any, dst: TileValue) -> None:
        _write_mask(dst, compare(src.read(), to_scalar(scalar, dtype)))

    return run


declare(
    "tcmp",
    "src0 src1 -> dst",
    pipe="V",
    attrs="cmpMode:cmp=eq",
    checks=(
        vec("src0", "src1", "dst"),
        same_dtype("src0", "src1"),
        dtypes("src0", "i32 f16 f32", "i8 i16 i32 f16 bf16 f32"),
        dtypes("dst", "i8 ui8"),
        row_major("src0", "src1", "dst"),
        _mask_as_wide,
        same_valid("src0", "src1"),
        _mask_room("dst", "src0"),
        _i32_equal_only,
    ),
    through={"bf16": "f32"},
    bind=_compare,
    cost=vector_cost(of="src0"),
)
declare(
    "tcmps",
    "src scalar:scalar -> dst",
    pipe="V",
    attrs="cmpMode:cmp=eq",
    checks=(
        vec("src", "dst"),
        dtypes("src", "i16 i32 f16 f32", "i8 i16 i32 f16 f32"),
        scalar_of("scalar", "src"),
        dtypes("dst", "i8 ui8", "i8 ui8 i32 ui32"),
        row_major("src", "dst"),
        _mask_room("dst", "src"),
        _i32_equal_only,
    ),
    through={"bf16": "f32"},
    bind=_compare_scalar,
    cost=vector_cost(of="src"),
)


def _select(site: Site) -> Run:
    def run(mask: TileValue, src0: TileValue, src1: TileValue, dst: TileValue) -> None:
        if not src0.valid == src1.valid == dst.valid:
            raise PtoError(f"'pto.tsel': valid elements differ: {src0.valid}, {src1.valid}, {dst.valid}")
        dst.write(np.where(_read_mask(mask, *dst.valid), src0.read(), src1.read()))

    return run


def _select_scalar(site: Site) -> Run:
    dtype = site.tile("src").numpy

    def run(mask: TileValue, src: TileValue, scalar: Any, dst: TileValue) -> None:
        if src.valid != dst.valid:
            raise PtoError(f"'pto.tsels': valid elements differ: {src.valid}, {dst.valid}")
        dst.write(np.where(_read_mask(mask, *dst.valid), src.read(), to_scalar(scalar, dtype)))

    return run


_SELECTABLE = "i16 i32 ui16 ui32 f16 bf16 f32"
declare(
    "tsel",
    "mask src0 src1 ~tmp? -> dst",
    pipe="V",
    checks=(
        vec("mask", "src0", "src1", "tmp", "dst"),
        same_dtype("dst", "src0", "src1"),
        dtypes("dst", _SELECTABLE, "i8 ui8 " + _SELECTABLE),
        row_major("src0", "src1", "dst"),
        same_valid("dst", "src0", "src1"),
        _mask_room("mask", "dst"),
        enough,
    ),
    scratch=mask_words,
    bind=_select,
    cost=vector_cost(),
    doc="src0 where the mask's bit is set, else src1.",
)
declare(
    "tsels",
    "mask src ~tmp? scalar:scalar -> dst",
    pipe="V",
    checks=(
        vec("mask", "src", "tmp", "dst"),
        same_dtype("dst", "src"),
        dtypes("dst", _SELECTABLE, "i8 ui8 i16 i32 ui16 ui32 f16 f32"),
        scalar_of("scalar", "src"),
        row_major("src", "dst"),
        same_valid("dst", "src"),
        _mask_room("mask", "dst"),
        enough,
        Apart("tmp/mask tmp/src"),
    ),
    scratch=one_row,
    bind=_select_scalar,
    cost=vector_cost(),
    doc="src where the mask's bit is set, else the scalar.",
)


def shift_left(values: Array, count: Any) -> Array:
    """Shift by a count of the same type; counts outside 0..width-1 shift everything out."""
    bits = values.dtype.itemsize * 8
    inside = (np.asarray(count) >= 0) & (np.asarray(count) < bits)
    shifted = np.left_shift(values, np.where(inside, count, 0).astype(values.dtype))
    return np.where(inside, shifted, 0).astype(values.dtype)


def shift_right(values: Array, count: Any) -> Array:
    """Shift keeping the sign of signed types; counts outside 0..width-1 leave the sign alone."""
    bits = values.dtype.itemsize * 8
    inside = (np.asarray(count) >= 0) & (np.asarray(count) < bits)
    clamped = np.where(inside, count, bits - 1).astype(values.dtype)
    shifted = np.right_shift(values, clamped)
    return shifted if values.dtype.kind == "i" else np.where(inside, shifted, 0).astype(values.dtype)


def _by_scalar(name: str, function: Callable[..., Array]) -> Bind:
    """An operation with a scalar, which as a count of bits is not negative."""
    bind = elementwise(function)
    if name not in ("tshl", "tshr"):
        return bind

    def checked(site: Site) -> Run:
        shift = bind(site)

        def run(src: TileValue, count: int, dst: TileValue) -> None:
            if int(count) < 0:
                raise PtoError(f"'pto.{name}s': a shift by {int(count)}: counts are 0 or greater")
            shift(src, count, dst)

        return run

    return checked


_BITS = "i8 i16 i32 ui8 ui16 ui32"
_NARROW = "i8 i16 ui8 ui16"
_APART = Apart("tmp/src0 tmp/src1 tmp/dst src0/dst src1/dst", "tmp/src0 tmp/src1 tmp/dst")
_SCALAR_APART = Apart("tmp/src tmp/dst src/dst", "tmp/src tmp/dst src/dst")
_NOT_IN_PLACE = Apart("src/dst", "src/dst")
"""The library spreads the scalar over the destination before it reads the source."""

for _name, _function, _a2a3, _scalar_a2a3, _tmp, _rules, _scalar_rules in (
    ("tand", np.bitwise_and, _BITS, _NARROW, "", (), (_NOT_IN_PLACE,)),
    ("tor", np.bitwise_or, _BITS, _NARROW, "", (), (_NOT_IN_PLACE,)),
    (
        "txor",
        np.bitwise_xor,
        _BITS,
        _NARROW,
        " ~tmp?",
        (on_a2a3(like("dst"), covers("dst")), _APART),
        (on_a2a3(like("dst"), covers("dst")), _SCALAR_APART),
    ),
    ("tshl", shift_left, _BITS, "i16 i32 ui16 ui32", "", (), ()),
    ("tshr", shift_right, _BITS, "i16 i32 ui16 ui32", "", (), ()),
):
    declare(
        _name,
        f"src0 src1{_tmp} -> dst",
        pipe="V",
        checks=(
            vec("src0", "src1", "tmp", "dst"),
            same_dtype("dst", "src0", "src1"),
            dtypes("dst", _a2a3, _BITS),
            row_major("src0", "src1", "dst"),
            same_valid("dst", "src0", "src1"),
            *_rules,
        ),
        bind=elementwise(_function),
        cost=vector_cost(),
        in_place=True,
    )
    declare(
        f"{_name}s",
        f"src scalar:int{_tmp} -> dst",
        pipe="V",
        checks=(
            vec("src", "tmp", "dst"),
            same_dtype("dst", "src"),
            dtypes("dst", _scalar_a2a3, _BITS),
            scalar_of("scalar", "src"),
            row_major("src", "dst"),
            same_valid("dst", "src"),
            *_scalar_rules,
        ),
        bind=_by_scalar(_name, _function),
        cost=vector_cost(),
        in_place=True,
    )

declare(
    "tnot",
    "src -> dst",
    pipe="V",
    checks=(
        vec("src", "dst"),
        same_dtype("dst", "src"),
        dtypes("dst", "i16 ui16", _BITS),
        row_major("src", "dst"),
        same_valid("dst", "src"),
    ),
    bind=elementwise(np.invert),
    cost=vector_cost(),
    in_place=True,
)
