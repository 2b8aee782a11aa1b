"""Arithmetic on each element: tile with tile, tile with scalar, one tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..checks import (
    Apart,
    ContractError,
    constant_extents,
    dtypes,
    loc,
    row_major,
    same_dtype,
    same_valid,
    scalar_of,
    vec,
)
from ..errors import PtoError
from ..numerics import in_f32, is_floating
from ..runtime import Array, elementwise, to_scalar, vector_cost
from ..scratch import at_least, like, on_a2a3
from ..shapes import Tile
from ..spec import Check, Site, declare

_FLOATS = "f16 f32"
_USUAL = "i16 i32 f16 f32"
_WIDE = "i8 i16 i32 f16 bf16 f32"
_SCALED = "i16 i32 f16 bf16 f32"


def quotient(left: Array, right: Array) -> Array:
    """Division: IEEE for floats; integers truncate toward zero, and dividing by zero gives all ones."""
    dtype = left.dtype if isinstance(left, np.ndarray) else right.dtype
    if is_floating(dtype):
        return left / right
    safe = np.where(right == 0, 1, right).astype(dtype)
    floor = np.floor_divide(left, safe)
    inexact = (floor * safe != left) & ((left < 0) != (safe < 0))
    return np.where(right == 0, dtype.type(-1 if dtype.kind == "i" else np.iinfo(dtype).max), floor + inexact).astype(
        dtype
    )


def _binary(
    name: str,
    function: Callable[..., Array],
    a2a3: str,
    a5: str,
    attrs: str = "",
    passes: float = 1,
    only: Sequence[Check] = (),
    in_place: bool = True,
) -> None:
    declare(
        name,
        "src0 src1 -> dst",
        pipe="V",
        attrs=attrs,
        checks=(
            *only,
            vec("src0", "src1", "dst"),
            same_dtype("dst", "src0", "src1"),
            dtypes("dst", a2a3, a5),
            row_major("src0", "src1", "dst"),
            same_valid("dst", "src0", "src1"),
        ),
        bind=elementwise(function),
        cost=vector_cost(passes),
        in_place=in_place,
    )


def _scalar(
    name: str, function: Callable[..., Array], a2a3: str, a5: str, src: str = "src", in_place: bool = True
) -> None:
    declare(
        name,
        f"{src} scalar:scalar -> dst",
        pipe="V",
        checks=(
            vec(src, "dst"),
            same_dtype("dst", src),
            dtypes("dst", a2a3, a5),
            scalar_of("scalar", src),
            row_major(src, "dst"),
            same_valid("dst", src),
        ),
        bind=elementwise(function),
        cost=vector_cost(),
        in_place=in_place,
    )


def _unary(
    name: str,
    function: Callable[..., Array],
    a2a3: str,
    a5: str,
    attrs: str = "",
    passes: float = 1,
    more: Sequence[Check] = (),
) -> None:
    declare(
        name,
        "src -> dst",
        pipe="V",
        attrs=attrs,
        checks=(
            vec("src", "dst"),
            same_dtype("dst", "src"),
            dtypes("dst", a2a3, a5),
            row_major("src", "dst"),
            same_valid("dst", "src"),
            *more,
        ),
        bind=elementwise(function),
        cost=vector_cost(passes),
        in_place=True,
    )


_DIV = "precisionType:div_precision=default"

_binary("tadd", np.add, _USUAL, _WIDE)
_binary("tsub", np.subtract, _USUAL, "i8 i16 i32 f16 f32")
_binary("tmul", np.multiply, _USUAL, _USUAL)
_binary("tdiv", quotient, _FLOATS, _USUAL, _DIV, passes=4)
_binary("tmax", np.maximum, _USUAL, "i8 i16 i32 f16 f32")
_binary("tmin", np.minimum, _USUAL, "i8 i16 i32 f16 f32")
# The quotient is written before the dividend is read again.
_binary("tfmod", np.fmod, _FLOATS, _USUAL, "precisionType:fmod_precision=default", passes=4, in_place=False)

_scalar("tadds", np.add, _USUAL, _WIDE)
_scalar("tsubs", np.subtract, _USUAL, _WIDE)
_scalar("tmuls", np.multiply, _USUAL, _SCALED, src="src0")
_scalar("tmaxs", np.maximum, _USUAL, "i8 i16 i32 f16 f32")
_scalar("tmins", np.minimum, _USUAL, _WIDE)
_scalar("tfmods", np.fmod, "f32", _USUAL, in_place=False)


def _divide_scalar(site: Site) -> Any:
    """The tile may be either operand: ``tile / scalar`` or ``scalar / tile``."""
    return elementwise(quotient)(site)


def _tile_of(site: Site) -> Tile:
    return site.tile("src") if isinstance(site.types["src"], Tile) else site.tile("scalar")


def _check_divs(site: Site) -> None:
    tile = "src" if isinstance(site.types["src"], Tile) else "scalar"
    other = "scalar" if tile == "src" else "src"
    for check in (
        vec("src", "scalar", "dst"),
        same_dtype("dst", tile),
        row_major("src", "scalar", "dst"),
        same_valid("dst", tile),
        scalar_of(other, tile),
    ):
        check(site)


declare(
    "tdivs",
    "src:any scalar:any -> dst",
    pipe="V",
    attrs=_DIV,
    checks=(dtypes("dst", _USUAL), _check_divs),
    bind=_divide_scalar,
    cost=vector_cost(4),
    in_place=True,
    doc="Division by a scalar, or of a scalar by each element.",
)


def _negate(values: Array) -> Array:
    return -values if is_floating(values.dtype) else (0 - values).astype(values.dtype)


_unary("tneg", _negate, _USUAL, _SCALED)
_unary("tabs", np.abs, _FLOATS, _FLOATS)
_unary("texp", in_f32(np.exp), _FLOATS, _FLOATS, "precisionType:exp_precision=default", passes=2)
_unary("tlog", in_f32(np.log), _FLOATS, _FLOATS, "precisionType:log_precision=default", passes=2)
_unary("tsqrt", in_f32(np.sqrt), _FLOATS, _FLOATS, "precisionType:sqrt_precision=default", passes=2)
_unary(
    "trecip",
    lambda x: x.dtype.type(1) / x,
    _FLOATS,
    _FLOATS,
    "precisionType:recip_precision=default",
    passes=4,
    more=(Apart("src/dst"),),
)
_unary("trelu", lambda x: np.maximum(x, x.dtype.type(0)), "f16 f32 i32", "f16 f32 i32")

declare(
    "trsqrt",
    "src ~tmp? -> dst",
    pipe="V",
    attrs="precisionType:rsqrt_precision=default",
    checks=(
        vec("src", "dst", "tmp"),
        same_dtype("dst", "src"),
        dtypes("dst", _FLOATS),
        row_major("src", "dst"),
        same_valid("dst", "src"),
    ),
    bind=elementwise(in_f32(lambda x: np.float32(1) / np.sqrt(x))),
    cost=vector_cost(6),
    doc="1 / sqrt(x).",
)


def _leaky(site: Site) -> Any:
    dtype = site.tile("src").numpy
    slope_type = np.dtype(dtype)

    def evaluate(values: Array, slope: Any) -> Array:
        return np.where(values > 0, values, values * to_scalar(slope, slope_type)).astype(dtype)

    return elementwise(evaluate)(site)


declare(
    "tlrelu",
    "src slope:scalar -> dst",
    pipe="V",
    checks=(
        vec("src", "dst"),
        same_dtype("dst", "src"),
        dtypes("dst", _FLOATS),
        dtypes("slope", "f32"),
        row_major("src", "dst"),
        same_valid("dst", "src"),
    ),
    bind=_leaky,
    cost=vector_cost(2),
    in_place=True,
    doc="x where x > 0, else x * slope; the slope is f32 and is rounded to the tile's type.",
)

def _prelu_scratch(site: Site) -> None:
    """The 910B keeps a mask in ``tmp``, one bit an element, and one row more than there are masks."""
    if site.arch != "a2a3" or not site.has("tmp"):
        return
    tmp, dst = site.tile("tmp"), site.tile("dst")
    rows = (dst.rows if dst.v_row is None else dst.v_row) + 1
    columns = -(-(dst.cols if dst.v_col is None else dst.v_col) // 8)
    if tmp.dtype != "ui8":
        raise ContractError(f"'pto.tprelu': A2/A3 requires UINT8 tmp scratch, got {tmp.dtype}")
    if tmp.rows < rows:
        raise ContractError(f"'pto.tprelu': 'tmp' needs {rows} physical rows, one more than the result, got {tmp.rows}")
    if tmp.v_col is None or tmp.v_col < columns:
        found = "as many as the run tells" if tmp.v_col is None else tmp.v_col
        raise ContractError(
            f"'pto.tprelu': 'tmp' needs {columns} valid columns, a bit for each element of the result, got {found}"
        )


declare(
    "tprelu",
    "src0 src1 ~tmp? -> dst",
    pipe="V",
    checks=(
        vec("src0", "src1", "dst"),
        same_dtype("dst", "src0", "src1"),
        dtypes("dst", _FLOATS),
        row_major("src0", "src1", "dst"),
        same_valid("dst", "src0", "src1"),
        _prelu_scratch,
        constant_extents,
        Apart("tmp/src0 tmp/src1 tmp/dst src0/src1 src0/dst src1/dst"),
    ),
    constant=lambda site: "dst" if site.arch == "a2a3" else "",
    bind=elementwise(lambda x, slope: np.where(x > 0, x, x * slope)),
    cost=vector_cost(3),
    doc="x where x > 0, else x * slope, with a slope for each element.",
)


def _fused(name: str, operands: str, function: Callable[..., Array]) -> None:
    scalar = ":scalar" in operands
    checks = [
        vec("src0", "src1", "src2", "dst"),
        same_dtype("dst", "src0", "src1", "src2"),
        dtypes("dst", _USUAL, _WIDE),
        row_major("src0", "src1", "src2", "dst"),
        same_valid("dst", "src0", "src1", "src2"),
    ]
    if scalar:
        checks.append(scalar_of("scalar", "src0"))
    declare(name, operands, pipe="V", checks=checks, bind=elementwise(function), cost=vector_cost(2), in_place=True)


_fused("taddc", "src0 src1 src2 -> dst", lambda a, b, c: a + b + c)
_fused("tsubc", "src0 src1 src2 -> dst", lambda a, b, c: a - b + c)
_fused("taddsc", "src0 scalar:scalar src1 -> dst", lambda a, s, b: a + s + b)
_fused("tsubsc", "src0 scalar:scalar src1 -> dst", lambda a, s, b: a - s + b)


def _axpy(site: Site) -> Any:
    out = site.tile("dst").numpy

    def run(src: Any, scalar: Any, dst: Any) -> None:
        product = src.read().astype(np.float64) * np.float64(to_scalar(scalar, site.tile("src").numpy))
        dst.write((product + dst.read().astype(np.float64)).astype(out))

    return run


def _same_or_wider(site: Site) -> None:
    pair = site.tile("src").dtype, site.tile("dst").dtype
    if pair[0] != pair[1] and pair != ("f16", "f32"):
        raise PtoError(f"'pto.taxpy': 'dst' must have the type of 'src', or be f32 for f16, got {pair[0]} to {pair[1]}")


declare(
    "taxpy",
    "src scalar:scalar -> dst",
    pipe="V",
    checks=(
        vec("src", "dst"),
        dtypes("src", _FLOATS, "f16 bf16 f32"),
        dtypes("dst", _FLOATS, "f16 bf16 f32"),
        _same_or_wider,
        scalar_of("scalar", "src"),
        row_major("src", "dst"),
        same_valid("dst", "src"),
    ),
    bind=_axpy,
    cost=vector_cost(),
    doc="dst + src * scalar, rounded once.",
)


def _remainder(left: Array, right: Array) -> Array:
    """Remainder with the sign of the divisor; for integers a zero divisor gives all ones."""
    dtype = left.dtype
    if is_floating(dtype):
        wide, divisor = left.astype(np.float64), np.asarray(right).astype(np.float64)
        return np.where(divisor == 0, np.nan, wide - np.floor(wide / divisor) * divisor).astype(dtype)
    safe = np.where(right == 0, 1, right).astype(dtype)
    return np.where(right == 0, dtype.type(-1), np.remainder(left, safe)).astype(dtype)


_EXACT = 1 << 24
"""The 910B computes remainders of i32 in f32, which holds integers to here."""


def _remainders(site: Site) -> Any:
    if site.arch != "a2a3" or site.tile("dst").dtype != "i32":
        return elementwise(_remainder)(site)

    def evaluate(left: Array, right: Array) -> Array:
        for values in (left, right):
            far = np.abs(np.asarray(values, np.int64)) > _EXACT
            if far.any():
                found = np.atleast_1d(values)[np.atleast_1d(far)][0]
                raise PtoError(
                    f"'pto.{site.spec.mnemonic}': {found} is beyond 2**24, and {site.arch} computes remainders in f32",
                    hint="split the number, or compute the remainder with divisions and products",
                )
        return _remainder(left, right)

    return elementwise(evaluate)(site)


for _name, _operands, _others, _attrs, _rows in (
    ("trem", "src0 src1 ~tmp? -> dst", ("src0", "src1"), "precisionType:rem_precision=default", 2),
    ("trems", "src scalar:scalar ~tmp? -> dst", ("src",), "", 1),
):
    declare(
        _name,
        _operands,
        pipe="V",
        attrs=_attrs,
        checks=(
            vec(*_others, "tmp", "dst"),
            same_dtype("dst", *_others),
            dtypes("dst", "i32 f32", _USUAL),
            row_major(*_others, "tmp", "dst"),
            same_valid("dst", *_others),
            on_a2a3(like("dst"), at_least(_rows)),
        ),
        bind=_remainders,
        cost=vector_cost(6),
        in_place=True,
    )


def _expanded_layout(site: Site) -> None:
    if site.tile("dst").loc == "vec":
        row_major("dst")(site)


def _expands(site: Site) -> Any:
    tile = site.tile("dst")
    dtype, whole = tile.numpy, (tile.rows, tile.cols)

    def run(scalar: Any, dst: Any) -> None:
        if tile.loc == "mat":
            dst.write_at(0, 0, np.full(whole, to_scalar(scalar, dtype), dtype))
        else:
            dst.write(np.broadcast_to(to_scalar(scalar, dtype), dst.valid))

    return run


declare(
    "texpands",
    "scalar:scalar -> dst",
    pipe="V",
    checks=(
        loc("dst", "vec", "mat"),
        dtypes("dst", "i16 i32 f16 bf16 f32", _WIDE),
        scalar_of("scalar", "dst", signed=True),
        _expanded_layout,
    ),
    bits="int",
    through={"i8": "i16", "ui8": "i16"},
    bind=_expands,
    cost=vector_cost(),
    doc="A scalar in every valid element; in every element of a tile in mat.",
)
