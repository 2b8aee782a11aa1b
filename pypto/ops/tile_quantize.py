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
_VECTOR: dict[str, Any] = {"core": Core.VECTOR, "result_space": MemorySpace.Vec, "inplace_safe": False}


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
