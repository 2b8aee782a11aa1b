"""Rules on tile types and views that hold whatever the instruction: each raises `PtoError`."""

from __future__ import annotations

from collections.abc import Sequence

from pypto.backend.target import Target

from .errors import PtoError
from .shapes import Tile
from .spec import Site
from .targets import memory, scaling_orders


def check_tile(tile: Tile, target: Target) -> None:
    """A tile type makes sense on a target. Raises PtoError."""
    if tile.loc == "scaling" and tile.slayout not in scaling_orders(target):
        raise PtoError(f"{target.module_arch} has no memory 'scaling' for tiles of slayout={tile.slayout} ({tile})")
    capacity = memory(target, tile.loc).usable
    if tile.nbytes > capacity:
        raise PtoError(f"a tile of {tile.nbytes} bytes does not fit {tile.loc}, which has {capacity} ({tile})")
    for axis, valid, room in (("rows", tile.v_row, tile.rows), ("columns", tile.v_col, tile.cols)):
        if valid is not None and valid > room:
            raise PtoError(f"{valid} valid {axis} in a tile with {room} ({tile})")
    if tile.loc in ("left", "right", "acc") and tile.rows > 1:
        form = memory(target, tile.loc).format
        want = (form.blayout.name, form.slayout.name, form.fractal)
        if (tile.blayout, tile.slayout, tile.fractal) != want:
            raise PtoError(
                f"a tile in {tile.loc} of {target.module_arch} has blayout={want[0]}, slayout={want[1]}, "
                f"fractal={want[2]}, got {tile}"
            )
    if tile.boxed:
        box_rows, box_cols = tile.box
        if tile.rows % box_rows or tile.cols % box_cols:
            raise PtoError(f"a {tile.rows}x{tile.cols} tile is not made of whole {box_rows}x{box_cols} boxes ({tile})")
    elif tile.loc == "vec":
        line = tile.cols if tile.blayout == "row_major" else tile.rows
        if line * tile.item % 32:
            unit = "row" if tile.blayout == "row_major" else "column"
            raise PtoError(
                f"a {unit} of {line} {tile.dtype} is not a multiple of 32 bytes ({tile})",
                hint="make the tile larger and narrow what is valid with valid_shape",
            )


def check_address(tile: Tile, address: int, target: Target) -> None:
    """A tile lies inside its memory at a legal address. Raises PtoError."""
    usable = memory(target, tile.loc).usable
    if address < 0 or address + tile.nbytes > usable:
        raise PtoError(f"a tile of {tile.nbytes} bytes at {address} ends outside {tile.loc}, which has {usable} bytes")
    if address % target.vector_address_alignment:
        raise PtoError(f"address {address} in {tile.loc} is not a multiple of {target.vector_address_alignment} bytes")


def check_subview(source: Tile, result: Tile, sizes: Sequence[int], offsets: Sequence[int | None]) -> None:
    """A window of ``sizes`` at ``offsets`` (None: known only at run time) of ``source`` has type ``result``."""
    if (result.rows, result.cols) != sizes:
        raise PtoError(f"'pto.subview': sizes {list(sizes)} but the type is {result.rows}x{result.cols}")
    for what in ("loc", "dtype", "blayout", "slayout", "fractal", "pad"):
        if getattr(result, what) != getattr(source, what):
            raise PtoError(
                f"'pto.subview': {what} {getattr(result, what)} of a view of a tile with {getattr(source, what)}"
            )
    for axis, offset, size, room in zip(("row", "column"), offsets, sizes, (source.rows, source.cols), strict=True):
        if size > room or (offset is not None and not 0 <= offset <= room - size):
            raise PtoError(
                f"'pto.subview': {axis}s {offset}..+{size} are outside a tile of {source.rows}x{source.cols}"
            )
    if source.boxed:
        _check_boxed_subview(source, sizes, offsets)


def _check_boxed_subview(tile: Tile, sizes: Sequence[int], offsets: Sequence[int | None]) -> None:
    for axis, size, offset, box in zip(("rows", "columns"), sizes, offsets, tile.box, strict=True):
        if size % box or (offset or 0) % box:
            raise PtoError(f"'pto.subview': {axis} of a boxed tile are taken in multiples of {box}")
    whole = 1 if tile.blayout == "row_major" else 0
    if sizes[whole] != (tile.rows, tile.cols)[whole] or offsets[whole] != 0:
        raise PtoError(f"'pto.subview': a boxed {tile.blayout} tile keeps all its {('rows', 'columns')[whole]}")


def check_reshape(source: Tile, result: Tile) -> None:
    """The bytes of ``source`` can be seen as ``result``."""
    if source.loc != result.loc:
        raise PtoError(f"'pto.treshape' cannot move a tile from {source.loc} to {result.loc}")
    if source.nbytes != result.nbytes:
        raise PtoError(f"'pto.treshape': {source.nbytes} bytes seen as {result.nbytes} bytes")
    if source.boxed != result.boxed:
        raise PtoError("'pto.treshape' cannot change between boxed and plain layouts")
    if result.v_row is None or result.v_col is None:
        # PTOAS 0.61 makes the view from its type, and hands on no extents: nothing of it would be valid.
        raise PtoError(
            "'pto.treshape': the valid extents of the result must be constants",
            hint="copy the tile first, to a place of its own: pl.move(tile, target_memory=pl.Mem.Vec)",
        )


_SCALES = {("row_major", "row_major"): {"mx_a_zz"}, ("col_major", "col_major"): {"mx_b_nn"}}


def check_window_layout(site: Site, layout: str) -> None:
    """A load or store joins a tensor view of ``layout`` with a tile it goes with."""
    tile = site.tile("dst" if site.spec.mnemonic == "tload" else "src")
    if tile.loc == "acc":
        return
    kind = (tile.blayout, tile.slayout)
    pairs = {("row_major", "none_box"): {"nd"}, ("col_major", "none_box"): {"dn"}, ("col_major", "row_major"): {"nz"},
             **_SCALES}  # fmt: skip
    allowed = set(pairs.get(kind, set()))
    if tile.loc == "mat" and site.spec.mnemonic == "tload":
        allowed |= {("col_major", "row_major"): {"nd"}, ("row_major", "col_major"): {"dn"}}.get(kind, set())
    if layout not in allowed and not (tile.rows == tile.cols == 1):
        wanted = " or ".join(sorted(allowed)) or "no layout"
        raise PtoError(
            f"'{site.spec.op_name}': a tensor view of layout {layout} and a tile in {tile.loc} with "
            f"blayout={tile.blayout}, slayout={tile.slayout}; that tile takes {wanted}"
        )
