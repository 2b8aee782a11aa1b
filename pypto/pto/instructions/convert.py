"""Conversion between element types."""

from __future__ import annotations

from ..checks import constant_extents, row_major, same_valid, valid_axis, vec
from ..elements import PAIRS, data_type
from ..errors import PtoError
from ..numerics import convert, pack_pairs, unpack_pairs
from ..runtime import TileValue, vector_cost
from ..scratch import enough, narrowed
from ..spec import Run, Site, declare


def _legal(site: Site) -> None:
    source, result = site.tile("src").dtype, site.tile("dst").dtype
    before, after = data_type(source), data_type(result)
    if before is None or after is None or not site.target.can_cast(before, after):
        options = ", ".join(dtype.mlir for dtype in site.target.casts.get(before, ())) if before else "none"
        raise PtoError(
            f"'pto.tcvt': {site.arch} has no conversion from {source} to {result} (from {source}: {options})"
        )


def _same_elements(site: Site) -> None:
    """Valid regions agree, those of pairs counted twice along rows."""
    src, dst = site.tile("src"), site.tile("dst")
    if src.dtype not in PAIRS and dst.dtype not in PAIRS:
        same_valid("dst", "src")(site)
        return
    valid_axis("dst", "src", 0)(site)
    counts = [None if t.v_col is None else t.v_col * (2 if t.dtype in PAIRS else 1) for t in (src, dst)]
    if None not in counts and counts[0] != counts[1]:
        raise PtoError(f"'pto.tcvt': {counts[0]} valid elements in a row of 'src' but {counts[1]} in one of 'dst'")


def _cast(site: Site) -> Run:
    source, target = (PAIRS.get(site.tile(name).dtype) for name in ("src", "dst"))
    dtype = site.tile("dst").numpy if target is None else target.numpy
    each = [1 if paired is None else 2 for paired in (source, target)]
    mode, saturate = site.attrs["rmode"], site.attrs["satmode"] == "ON"

    def run(src: TileValue, dst: TileValue) -> None:
        (rows, cols), (dst_rows, dst_cols) = src.valid, dst.valid
        if rows != dst_rows or cols * each[0] != dst_cols * each[1]:
            raise PtoError(f"'pto.tcvt': 'src' has {src.valid} valid elements and 'dst' {dst.valid}")
        data = src.read() if source is None else unpack_pairs(src.read(), source.numpy)
        made = convert(data, dtype, mode, saturate)
        dst.write(made if target is None else pack_pairs(made))

    return run


declare(
    "tcvt",
    "src ~tmp? -> dst",
    pipe="V",
    attrs="rmode:round_mode=CAST_RINT satmode:saturation_mode=OFF",
    checks=(vec("src", "tmp", "dst"), row_major("src", "dst"), _same_elements, _legal, enough, constant_extents),
    scratch=narrowed,
    constant=lambda site: "dst" if narrowed(site) is not None else "",
    bind=_cast,
    cost=vector_cost(of="src"),
    in_place="src",
    doc="Elements in another type, with a rounding mode, clamped to its range when satmode is ON.",
)
