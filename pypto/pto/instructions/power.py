"""Powers, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checks import dtypes, row_major, same_dtype, same_valid, scalar_of, vec
from ..errors import PtoError
from ..numerics import is_floating
from ..runtime import Array, elementwise, vector_cost
from ..spec import Check, Site, declare

_INTEGERS = "i8 i16 i32"
_UNSIGNED = "ui8 ui16 ui32"


def _power(base: Array, exponent: Any) -> Array:
    if is_floating(base.dtype):
        power = np.asarray(exponent).astype(np.float32)
        return np.power(base.astype(np.float32), power).astype(base.dtype)
    if np.any(np.asarray(exponent) < 0):
        raise PtoError("an integer to a negative power is no integer")
    return np.power(base, exponent).astype(base.dtype)


def _scratch(source: str) -> Check:
    """Floats need scratch of the result's type that covers it; integers take none."""

    def check(site: Site) -> None:
        tile, name = site.tile(source), site.spec.mnemonic
        floating = is_floating(tile.numpy)
        if site.has("tmp") != floating:
            raise PtoError(f"'pto.{name}': {tile.dtype} {'needs a' if floating else 'takes no'} 'tmp' tile")
        if not floating:
            if site.attrs["precisionType"] != "default":
                raise PtoError(f"'pto.{name}': high precision is for floats, not {tile.dtype}")
            return
        tmp = site.tile("tmp")
        if tmp.dtype != tile.dtype or tmp.rows < tile.rows or tmp.cols < tile.cols:
            raise PtoError(
                f"'pto.{name}': 'tmp' must be {tile.dtype} of at least {tile.rows}x{tile.cols}, "
                f"got {tmp.rows}x{tmp.cols} {tmp.dtype}"
            )
        if site.arch == "a2a3" and site.attrs["precisionType"] != "default":
            raise PtoError(f"'pto.{name}': {site.arch} has no high-precision power")

    return check


def _declare(name: str, operands: str, tiles: Sequence[str], integers: str, *more: Check) -> None:
    declare(
        name,
        operands,
        pipe="V",
        attrs="precisionType:pow_precision=default",
        checks=(
            vec(*tiles, "tmp", "dst"),
            same_dtype("dst", *tiles),
            dtypes("dst", f"{integers} f32", f"{integers} f16 f32"),
            row_major(*tiles, "tmp", "dst"),
            same_valid("dst", *tiles),
            *more,
            _scratch(tiles[0]),
        ),
        bind=elementwise(_power),
        bits="int",
        through={"bf16": "f32"},
        cost=vector_cost(8),
        doc="base to the power exp; in f32 and rounded for floats, wrapped to the type for integers.",
    )


_declare("tpow", "base exp ~tmp? -> dst", ("base", "exp"), f"{_INTEGERS} {_UNSIGNED}")
_declare("tpows", "src scalar:scalar ~tmp? -> dst", ("src",), _INTEGERS, scalar_of("scalar", "src", signed=True))
