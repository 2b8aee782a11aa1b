"""Conversion between element types."""

from __future__ import annotations

from ..checks import row_major, same_valid, vec
from ..elements import data_type
from ..errors import PtoError
from ..numerics import convert
from ..runtime import TileValue, vector_cost
from ..spec import Run, Site, declare


def _legal(site: Site) -> None:
    source, result = site.tile("src").dtype, site.tile("dst").dtype
    before, after = data_type(source), data_type(result)
    if before is None or after is None or not site.target.can_cast(before, after):
        options = ", ".join(dtype.mlir for dtype in site.target.casts.get(before, ())) if before else "none"
        raise PtoError(
            f"'pto.tcvt': {site.arch} has no conversion from {source} to {result} (from {source}: {options})"
        )


def _cast(site: Site) -> Run:
    dtype = site.tile("dst").numpy
    mode, saturate = site.attrs["rmode"], site.attrs["satmode"] == "ON"

    def run(src: TileValue, dst: TileValue) -> None:
        if src.valid != dst.valid:
            raise PtoError(f"'pto.tcvt': 'src' has {src.valid} valid elements and 'dst' {dst.valid}")
        dst.write(convert(src.read(), dtype, mode, saturate))

    return run


declare(
    "tcvt",
    "src ~tmp? -> dst",
    pipe="V",
    attrs="rmode:round_mode=CAST_RINT satmode:saturation_mode=OFF",
    checks=(vec("src", "tmp", "dst"), row_major("src", "dst"), same_valid("dst", "src"), _legal),
    bind=_cast,
    cost=vector_cost(of="src"),
    doc="Elements in another type, with a rounding mode, clamped to its range when satmode is ON.",
)
