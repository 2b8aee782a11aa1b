"""Printing from a kernel."""

from __future__ import annotations

import numpy as np

from ..checks import dtypes, vec
from ..numerics import is_floating
from ..runtime import Array, TileValue, vector_cost
from ..spec import Run, Site, declare

_WIDTHS = {"width8_precision4": (8, 4), "width8_precision2": (8, 2), "width10_precision6": (10, 6)}


def lines_of(whole: Array, valid: tuple[int, int], width: int, precision: int) -> list[str]:
    """A tile as text, a row a line; elements outside the valid region stand behind a bar."""
    floating = is_floating(whole.dtype)
    text = [[f"{float(x):{width}.{precision}f}" if floating else f"{int(x):{width}d}" for x in row] for row in whole]
    rows, cols = valid
    made = []
    for i, row in enumerate(text):
        inside = cols if i < rows else 0
        bar = [" |"] if inside < len(row) else []
        made.append(" ".join([*row[:inside], *bar, *row[inside:]]))
    return made


def _print(site: Site) -> Run:
    tile = site.tile("src")
    width, precision = _WIDTHS[site.attrs["printFormat"]]

    def run(src: TileValue) -> None:
        whole = np.asarray(src.read_at(0, 0, tile.rows, tile.cols))
        print(f"tile {tile.rows}x{tile.cols} {tile.dtype}, {src.valid[0]}x{src.valid[1]} valid")
        print("\n".join(lines_of(whole, src.valid, width, precision)))

    return run


declare(
    "tprint",
    "src ->",
    pipe="V",
    attrs="printFormat:print_format=width8_precision4",
    checks=(vec("src"), dtypes("src", "i8 i16 i32 f16 f32")),
    bind=_print,
    cost=vector_cost(of="src"),
    doc="The whole buffer as text on the debug channel, elements outside the valid region behind a bar. A device "
    "prints only where the kernel is built with printing enabled.",
)
