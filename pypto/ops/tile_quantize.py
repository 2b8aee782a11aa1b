"""Quantization to 8-bit integers and back, with a factor and an offset for each row."""

from __future__ import annotations

from typing import Any

from ..dtypes import DataType
from ..ir.enums import MemorySpace
from ..ir.types import Type
from .registry import Bound, Core, Pto, declare
from .rules import check_dtype, check_rank, fresh_like, same, shaped, valid_of, value
from .tile_elementwise import check_same_shape, vec

_D = DataType
_VECTOR: dict[str, Any] = {"core": Core.VECTOR, "result_space": MemorySpace.Vec}


def _check_column(b: Bound, name: str) -> None:
    """Raise OpError unless ``name`` is an FP32 column ``[M, 1]`` of the tile's rows."""
    if b[name] is None:
        return
    check_dtype(b, name, (_D.FP32,))
    t, tile = b.type(name), b.type("tile")
    if len(t.shape) != 2 or value(t.shape[1]) != 1 or not same(t.shape[0], tile.shape[0]):
        raise b.fail(f"requires {name} of shape [M, 1], a value for each row of {shaped(tile)}, got {shaped(t)}")
    if not same(valid_of(b, name)[0], valid_of(b, "tile")[0]):
        raise b.fail(f"requires {name} with the valid rows of the tile, got {shaped(t)} for {shaped(tile)}")


def _quant(b: Bound) -> Type:
    check_rank(b, "tile", 2)
    check_dtype(b, "tile", (_D.FP32,))
    _check_column(b, "scale")
    _check_column(b, "offset")
    if b["tmp"] is not None:
        check_dtype(b, "tmp", (_D.FP32,))
        check_same_shape(b, "tile", "tmp")
    return fresh_like(b.type("tile"), _D.INT8 if b["offset"] is None else _D.UINT8)


declare(
    "tile.quant",
    "in tile: tile, in scale: tile, in offset: tile?, out tmp: tile?",
    _quant,
    "tile * scale rounded to the nearest even integer and clamped to INT8; with ``offset``, tile * scale + offset "
    "clamped to UINT8.\n\n"
    "``scale`` and ``offset`` are FP32 columns ``[M, 1]``, one value a row: ``scale`` is the inverse of the "
    "quantization step. ``tmp`` is scratch of the tile's shape. NaN gives 0.",
    spaces=vec("tile", "scale", "offset", "tmp"),
    pto=Pto("pto.tquant", ("tile", "scale", "offset"), form="quant"),
    **_VECTOR,
)


def _dequant(b: Bound) -> Type:
    check_rank(b, "tile", 2)
    check_dtype(b, "tile", (_D.INT8, _D.INT16))
    _check_column(b, "scale")
    _check_column(b, "offset")
    return fresh_like(b.type("tile"), _D.FP32)


declare(
    "tile.dequant",
    "in tile: tile, in scale: tile, in offset: tile",
    _dequant,
    "(tile - offset) * scale in FP32.\n\n``scale`` and ``offset`` are FP32 columns ``[M, 1]``, one value a row.",
    spaces=vec("tile", "scale", "offset"),
    pto=Pto("pto.tdequant", ("tile", "scale", "offset")),
    **_VECTOR,
)


_GROUP = 32


def _quant_mx(b: Bound) -> Type:
    check_rank(b, "tile", 2)
    check_dtype(b, "tile", (_D.FP32,))
    tile, axis = b.type("tile"), b["axis"]
    if axis not in (0, 1):
        raise b.fail(f"groups along axis 0 or 1, not {axis}")
    extents = [n for d in tile.shape if (n := value(d)) is not None]
    whole = len(extents) == 2 and all(same(v, s) for v, s in zip(valid_of(b, "tile"), tile.shape))
    if not whole or extents[axis] % _GROUP:
        raise b.fail(f"requires a whole tile of groups of {_GROUP} along axis {axis}, got {shaped(tile)}")
    groups = [d if i != axis else d // _GROUP for i, d in enumerate(extents)]
    for name, dtype in (("exp", _D.UINT8), ("max", _D.FP32), ("scaling", _D.FP32)):
        check_dtype(b, name, (dtype,))
        have = [value(d) for d in valid_of(b, name)]
        if have != groups:
            raise b.fail(f"requires {name} {groups} {dtype}, one element a group, got {shaped(b.type(name))}")
    return fresh_like(tile, _D.INT8)


declare(
    "tile.quant_mx",
    "in tile: tile, out exp: tile, out max: tile, out scaling: tile, attr axis: int = 1",
    _quant_mx,
    "The bytes of the FP8E4M3FN elements of a block-scaled (MX) operand, as INT8, and into ``exp`` those of its "
    "FP8E8M0 scales, as UINT8: one for each 32 elements along ``axis``.\n\n"
    "A scale is the exponent of the group's greatest magnitude less 8; elements are divided by it, rounded to the "
    "nearest, ties to even, and clamped to 448. ``max`` gets the magnitudes and ``scaling`` what elements were "
    "multiplied with, FP32. A group with NaN is all NaN.",
    spaces=vec("tile", "exp", "max", "scaling"),
    pure=False,
    row_major=True,
    pto=Pto("pto.tquant.mx", ("tile",), form="quant_mx"),
    **_VECTOR,
)
