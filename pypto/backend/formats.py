"""The physical order of a tile's buffer on a target."""

from __future__ import annotations

from ..ir.enums import MemorySpace, TileLayout
from ..ir.types import TileType, implicit_layout
from .target import Target, TileFormat

_ROW = TileFormat(TileLayout.row_major, TileLayout.none_box, 512)


def tile_format(type: TileType, target: Target) -> TileFormat:
    """How the elements of ``type`` stand in its memory on ``target``.

    A tile that states no layout of its own has its memory's; so has every tile in Left, Bias and Scaling, whose
    instructions know no other. A single row in Mat is a plain row, as a bias is loaded: boxes need sixteen.
    """
    stated = type.order
    memory = target.memories.get(type.memory_space) if type.memory_space is not None else None
    if memory is None:
        return TileFormat(*stated)
    if memory.space is MemorySpace.Mat and len(type.shape) == 2 and getattr(type.shape[0], "value", None) == 1:
        return _ROW
    if memory.space in (MemorySpace.Left, MemorySpace.Bias, MemorySpace.Scaling):
        return memory.format
    boxed = memory.format.slayout is not TileLayout.none_box
    return memory.format if boxed and stated == implicit_layout(type.shape, type.memory_space) else TileFormat(*stated)


def round_up(value: int, unit: int) -> int:
    """The least multiple of ``unit`` that is not below ``value``."""
    return -(-value // unit) * unit
