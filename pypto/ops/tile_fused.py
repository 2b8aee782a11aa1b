"""Powers, and sums fused with a product or a limit."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.types import TileType, Type
from .registry import Bound, Core, Pto, declare
from .rules import all_same, check_dtype, check_same_dtype, fresh_like, shaped, valid_of
from .tile_elementwise import check_same_shape, common_region, vec

_D = DataType
_VECTOR: dict[str, Any] = {
    "core": Core.VECTOR, "result_space": MemorySpace.Vec, "row_major": True, "same_valid": True
}  # fmt: skip
_INTEGERS = (_D.INT8, _D.INT16, _D.INT32, _D.UINT8, _D.UINT16, _D.UINT32)
_POWERS = (*_INTEGERS, _D.FP16, _D.BF16, _D.FP32)


def _check_power(b: Bound, base: str) -> None:
    """Floats need scratch like the base; integers take none and have one precision."""
    t, tmp = b.type(base), b["tmp"]
    check_dtype(b, base, _POWERS)
    if t.dtype.is_float() and tmp is None:
        raise b.fail(f"of {t.dtype} needs a scratch tile tmp of {shaped(t)}", "tmp = pl.tile.create(shape, dtype)")
    if not t.dtype.is_float() and (tmp is not None or b["high_precision"]):
        raise b.fail(f"of {t.dtype} takes neither tmp nor high_precision: they are for floats")
    if tmp is not None:
        check_same_dtype(b, base, "tmp")
        check_same_shape(b, base, "tmp")


def _power(b: Bound) -> Type:
    check_same_dtype(b, "lhs", "rhs")
    check_same_shape(b, "lhs", "rhs")
    _check_power(b, "lhs")
    return fresh_like(b.type("lhs"), None, common_region(b, "lhs", "rhs"))


def _power_scalar(b: Bound) -> Type:
    _check_power(b, "lhs")
    valid_of(b, "lhs")
    return fresh_like(b.type("lhs"))


_ABOUT_POWER = (
    "\n\nFloats need ``tmp``, a scratch tile of the base's shape and dtype; integers take none, wrap, and have no "
    "negative exponents. ``high_precision`` (floats, Ascend950) is slower and closer."
)
declare(
    "tile.pow",
    "in lhs: tile, in rhs: tile, out tmp: tile?, attr high_precision: bool = False",
    _power,
    "Element by element, lhs to the power rhs; a scalar exponent is `pows`." + _ABOUT_POWER,
    spaces=vec("lhs", "rhs", "tmp"),
    pto=Pto("pto.tpow", ("lhs", "rhs", "tmp"), attrs={"precisionType": "high_precision"}),
    **_VECTOR,
)
declare(
    "tile.pows",
    "in lhs: tile, in rhs: scalar like lhs, out tmp: tile?, attr high_precision: bool = False",
    _power_scalar,
    "Element by element, lhs to the power of a scalar." + _ABOUT_POWER,
    spaces=vec("lhs", "tmp"),
    pto=Pto("pto.tpows", ("lhs", "rhs", "tmp"), attrs={"precisionType": "high_precision"}),
    **_VECTOR,
)


def _add_relu(b: Bound) -> Type:
    check_same_dtype(b, "lhs", "rhs")
    check_dtype(b, "lhs", (_D.INT16, _D.FP16, _D.FP32))
    check_same_shape(b, "lhs", "rhs")
    return fresh_like(b.type("lhs"), None, common_region(b, "lhs", "rhs"))


declare(
    "tile.add_relu",
    "in lhs: tile, in rhs: tile",
    _add_relu,
    "Element by element, lhs + rhs, or 0 where that is negative. `LegalizeTileOps` writes it out.",
    spaces=vec("lhs", "rhs"),
    pto=Pto(form="composite"),
    **_VECTOR,
)


def _axpy(b: Bound) -> Type:
    acc, tile = b.type("acc"), b.type("tile")
    check_dtype(b, "tile", (_D.FP16, _D.BF16, _D.FP32))
    if acc.dtype is not tile.dtype and (tile.dtype, acc.dtype) != (_D.FP16, _D.FP32):
        raise b.fail(f"requires acc of the tile's dtype, or FP32 for FP16, got {shaped(acc)} and {shaped(tile)}")
    check_same_shape(b, "acc", "tile")
    if not all_same(valid_of(b, "acc"), valid_of(b, "tile")):
        raise b.fail(f"requires the same valid_shape, got {shaped(acc)} and {shaped(tile)}")
    return TileType(acc.shape, acc.dtype, None, acc.tile_view, acc.memory_space)


declare(
    "tile.axpy",
    "inout acc: tile, in tile: tile, in factor: scalar like tile",
    _axpy,
    "acc += tile * factor in place, rounded once. FP16 tiles may be added to an FP32 ``acc``.",
    spaces=vec("acc", "tile"),
    reuses="acc",
    pto=Pto("pto.taxpy", ("tile", "factor"), out="acc"),
    **_VECTOR,
)
