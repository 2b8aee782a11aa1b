"""IR types as PTO types."""

from __future__ import annotations

from typing import NamedTuple

from ..backend.formats import tile_format
from ..backend.target import Target
from ..dtypes import DataType
from ..errors import InternalError
from ..ir.enums import CompactMode
from ..ir.types import TensorType, TileType
from .pairs import PAIRED
from .render import type_text


class PtrKey(NamedTuple):
    dtype: str
    macro: str = "ptr"


class TensorViewKey(NamedTuple):
    rank: int
    dtype: str
    macro: str = "tensor_view"


class PartitionKey(NamedTuple):
    dims: tuple[int | None, ...]
    dtype: str
    macro: str = "partition_view"


class LocalArrayKey(NamedTuple):
    extent: int
    dtype: str
    macro: str = "local_array"


class TileKey(NamedTuple):
    loc: str
    dtype: str
    rows: int
    cols: int
    v_row: int | None
    v_col: int | None
    blayout: str
    slayout: str
    fractal: int
    pad: int
    compact: bool
    macro: str = "tile_buf"


def element(dtype: DataType) -> str:
    """The PTO element type of a tensor or tile."""
    text = dtype.mlir
    if text is None:
        raise ValueError(f"{dtype} has no PTO element type")
    return text


def scalar_text(dtype: DataType) -> str:
    """The type of a scalar SSA value: MLIR integers carry no sign."""
    text = element(dtype)
    return text[1:] if text.startswith("ui") else text


def ptr_text(type: TensorType) -> str:
    return type_text(PtrKey(element(type.dtype)))


def tensor_view_text(rank: int, dtype: DataType) -> str:
    return type_text(TensorViewKey(rank, element(dtype)))


def partition_text(dims: tuple[int | None, ...], dtype: DataType) -> str:
    return type_text(PartitionKey(dims, element(dtype)))


def array_text(extent: int, dtype: DataType) -> str:
    return type_text(LocalArrayKey(extent, scalar_text(dtype)))


def tile_key(type: TileType, target: Target, open_valid: bool = False) -> TileKey:
    """The buffer type of a tile; ``open_valid`` leaves its valid region to operands."""
    rows, cols = (getattr(d, "value", None) for d in type.shape) if len(type.shape) == 2 else (None, None)
    memory = target.memories.get(type.memory_space) if type.memory_space is not None else None
    if rows is None or cols is None or memory is None:
        raise InternalError(f"a tile reaches codegen as a static 2-D buffer in a memory of {target.name}, not {type}")
    view = type.get_effective_tile_view()
    order = tile_format(type, target)
    v_row, v_col = (None if open_valid else getattr(d, "value", None) for d in view.valid_shape)
    if type.dtype in PAIRED:
        cols, v_col = cols // 2, None if v_col is None else v_col // 2
    compact = view.compact is CompactMode.normal
    return TileKey(
        memory.pto_name, element(type.dtype), rows, cols, v_row, v_col,
        order.blayout.name, order.slayout.name, order.fractal, view.pad.value, compact,
    )  # fmt: skip


def written_key(known: TileKey, constant_extents: bool) -> TileKey:
    """The type a buffer is written with: its valid extents as constants, or all left to operands.

    The tile library has no type of 0 valid rows or columns, so an empty region is an operand always.
    """
    if not constant_extents:
        return known._replace(v_row=None, v_col=None)
    return known._replace(v_row=known.v_row or None, v_col=known.v_col or None)


def tile_text(type: TileType, target: Target, open_valid: bool = False) -> str:
    return type_text(tile_key(type, target, open_valid))
