"""Where the rows of a product lie: the cube packs an accumulator's boxes by the rows that are valid."""

from __future__ import annotations

from ..backend.formats import round_up
from ..ir.enums import CompactMode, MemorySpace
from ..ir.expr import Expr
from ..ir.types import TileType, Type
from ..ops.rules import same, value

BOX_ROWS = 16


def is_whole(kind: TileType) -> bool:
    """Whether all of a tile is valid."""
    return all(same(v, d) for v, d in zip(kind.valid_shape, kind.shape))


def is_packed(type: Type) -> bool:
    """Whether a tile is an accumulator packed by its valid rows."""
    if not isinstance(type, TileType) or type.memory_space is not MemorySpace.Acc:
        return False
    return type.get_effective_tile_view().compact is CompactMode.normal


def lies_as(type: TileType, rows: Expr) -> bool:
    """Whether a tile lies in memory as one of its shape with ``rows`` valid rows does."""
    if not is_packed(type) or same(rows, type.valid_shape[0]):
        return True
    wanted, valid = value(rows), value(type.valid_shape[0])
    if wanted is None:
        return False
    return wanted <= BOX_ROWS or (valid is not None and round_up(valid, BOX_ROWS) == round_up(wanted, BOX_ROWS))
