"""What operations between cores or ranks ask of their operands, in the types alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from .errors import PtoError
from .shapes import Tile, View
from .spec import OperandType, describe

_PIPED: Final = {
    "pto.tpush_to_aiv": ("acc", "the cube hands the vector cores only what it multiplied (Acc)"),
    "pto.tpush_to_aic": ("vec", "the vector cores hand the cube only what they have in Vec"),
    "pto.tpop_from_aic": ("vec", "a vector core gets tiles in Vec only"),
    "pto.tpop_from_aiv": ("mat", "the cube gets tiles in Mat only"),
}
"""The memory of the tile each end of a pipe takes or gives, on every target."""

_HINTS: Final = {
    "pto.tpush_to_aiv": "load it a second time with target_memory=pl.Mem.Vec, before its tensor is written to; move "
    "products to Vec before they are assembled"
}


def check_piped(name: str, tile: OperandType, called: str = "the tile") -> None:
    """Raise PtoError unless a push or pop is of a tile in the memory its core's end of a pipe works with."""
    memory, reason = _PIPED[name]
    if isinstance(tile, Tile) and tile.loc != memory:
        raise PtoError(f"'{name}': {called} is in {tile.loc.capitalize()}, and {reason}", hint=_HINTS.get(name))


def check_signal(name: str, signal: OperandType, value: OperandType) -> None:
    """Raise PtoError unless 32-bit signals meet a 32-bit number."""
    if not isinstance(signal, View) or signal.dtype != "i32":
        raise PtoError(f"'{name}': 'signal' must be a tensor window of i32, got {describe(signal)}")
    if value != "i32":
        raise PtoError(f"'{name}': 'value' must be an i32, got {describe(value)}")


def check_transfer(
    name: str,
    dst: OperandType,
    src: OperandType,
    stages: Sequence[OperandType],
    layouts: tuple[str | None, str | None] = (None, None),
) -> None:
    """Raise PtoError unless both windows and the tiles between them fit each other."""
    if not isinstance(dst, View) or not isinstance(src, View):
        raise PtoError(f"'{name}' moves one tensor window to another, got {describe(dst)} and {describe(src)}")
    if dst.dtype != src.dtype or dst.shape != src.shape:
        raise PtoError(f"'{name}': 'dst' is {describe(dst)}, but 'src' is {describe(src)}")
    if any(extent is not None and extent <= 0 for extent in src.shape):
        raise PtoError(f"'{name}': extents must be positive, got {describe(src)}")
    if None not in layouts and layouts[0] != layouts[1]:
        raise PtoError(f"'{name}': 'dst' is laid out {layouts[0]}, but 'src' is {layouts[1]}")
    for stage in stages:
        if not isinstance(stage, Tile) or stage.loc != "vec" or stage.dtype != src.dtype:
            raise PtoError(f"'{name}' moves {src.dtype} elements through vec tiles of {src.dtype}, "
                           f"got {describe(stage)}")  # fmt: skip
        if stage != stages[0]:
            raise PtoError(f"'{name}': both staging tiles must have one type")
        _check_chunks(name, src, stage)


def _check_chunks(name: str, whole: View, stage: Tile) -> None:
    """A transfer in chunks of fixed extents has no room for a smaller last one."""
    known = None if None in whole.shape[:-1] else prod(e for e in whole.shape[:-1] if e is not None)
    for axis, extent, chunk in (("rows", known, stage.v_row), ("columns", whole.shape[-1], stage.v_col)):
        if extent is not None and chunk is not None and extent > chunk and extent % chunk:
            raise PtoError(
                f"'{name}': chunks of {chunk} {axis} do not divide {extent} {axis}, and the staging tile's valid "
                "extents are fixed"
            )
