"""The cube on block-scaled operands: each group of 32 elements along the depth shares a power-of-two scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import OnlyOn, dtypes, loc
from ..errors import PtoError
from ..runtime import Array, TileValue
from ..shapes import Tile
from ..spec import Check, Run, Site, declare
from .cube import LIMIT, blocked

GROUP = 32
_PHASE = "accPhase:acc_phase=unspecified"
_FP8, _FP4 = frozenset({"f8E4M3FN", "f8E5M2"}), frozenset({"!pto.f4E1M2x2", "!pto.f4E2M1x2"})


def _operands(site: Site) -> None:
    a, b, dst, name = site.tile("a"), site.tile("b"), site.tile("dst"), site.spec.mnemonic
    if not any({a.dtype, b.dtype} <= family for family in (_FP8, _FP4)):
        raise PtoError(
            f"'pto.{name}': 'a' and 'b' must both be 8-bit or both 4-bit floats, got {a.dtype} and {b.dtype}"
        )
    vector = name.startswith("tgemv")
    rows = a.rows in (1, 16) and dst.rows in (a.rows, 16) if vector else a.rows == dst.rows
    if not rows or a.cols != b.rows or b.cols != dst.cols:
        raise PtoError(f"'pto.{name}': {_shape(a)} times {_shape(b)} does not give {_shape(dst)}")
    groups = -(-a.cols // GROUP)
    for scale, want in (("a_scale", (a.rows, groups)), ("b_scale", (groups, b.cols))):
        found = site.tile(scale)
        if (found.rows, found.cols) != want:
            raise PtoError(
                f"'pto.{name}': '{scale}' must be {want[0]}x{want[1]}, a scale for each {GROUP} along the depth, "
                f"got {_shape(found)}"
            )


def _shape(tile: Tile) -> str:
    return f"{tile.rows}x{tile.cols}"


def _one_row(site: Site) -> None:
    rows = site.tile("dst").v_row
    if rows not in (None, 1):
        raise PtoError(f"'pto.{site.spec.mnemonic}': a vector times a matrix has 1 valid row, got {rows}")


def scaled_product(a: Array, a_scale: Array, b: Array, b_scale: Array) -> Array:
    """``(a * a_scale) @ (b * b_scale)`` as f32, a scale standing for 32 elements along the depth.

    Two scales together may leave the range of f32 where the product of what they scale does not: f64 holds every
    scaled element exactly.
    """
    depth = a.shape[1]
    left = a.astype(np.float64) * np.repeat(a_scale.astype(np.float64), GROUP, axis=1)[:, :depth]
    right = b.astype(np.float64) * np.repeat(b_scale.astype(np.float64), GROUP, axis=0)[:depth]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return blocked(left, right).astype(np.float32)


def _value(site: Site, a: TileValue, a_scale: TileValue, b: TileValue, b_scale: TileValue, dst: TileValue) -> Array:
    rows, depth = a.valid
    if b.valid[0] != depth or dst.valid != (rows, b.valid[1]):
        raise PtoError(f"'pto.{site.spec.mnemonic}': valid {a.valid} times {b.valid} does not give {dst.valid}")
    if not all(0 < extent <= LIMIT for extent in (rows, depth, b.valid[1])):
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': rows, depth and columns must be 1..{LIMIT}, got {rows}, {depth}, {b.valid[1]}"
        )
    groups = -(-depth // GROUP)
    if a_scale.valid != (rows, groups) or b_scale.valid != (groups, b.valid[1]):
        raise PtoError(
            f"'pto.{site.spec.mnemonic}': valid scales must be {rows}x{groups} and {groups}x{b.valid[1]}, got "
            f"{a_scale.valid} and {b_scale.valid}"
        )
    return scaled_product(a.read(), a_scale.read(), b.read(), b_scale.read())


def _multiply(site: Site) -> Run:
    _refuse_pairs(site)
    return lambda a, a_scale, b, b_scale, dst: dst.write(_value(site, a, a_scale, b, b_scale, dst))


def _refuse_pairs(site: Site) -> None:
    """PTO does not say along which axis of each operand FP4 elements are paired."""
    if site.tile("a").dtype in _FP4:
        raise PtoError(f"'pto.{site.spec.mnemonic}': products of packed FP4 elements are not simulated")


def _accumulate(site: Site) -> Run:
    _refuse_pairs(site)

    def run(c_in: TileValue, *operands: Any) -> None:
        operands[-1].write(c_in.read() + _value(site, *operands))

    return run


def _biased(site: Site) -> Run:
    _refuse_pairs(site)

    def run(
        a: TileValue, a_scale: TileValue, b: TileValue, b_scale: TileValue, bias: TileValue, dst: TileValue
    ) -> None:
        if bias.valid != (1, dst.valid[1]):
            raise PtoError(f"'pto.{site.spec.mnemonic}': bias of {bias.valid} for {dst.valid[1]} columns")
        dst.write(bias.read() + _value(site, a, a_scale, b, b_scale, dst))

    return run


def _cost(site: Site, rows: int, cols: int) -> float:
    """One head a K block, then a pass for each fractal product."""
    tile, costs = site.tile("a"), site.target.costs
    depth = tile.v_col if tile.v_col is not None else tile.cols
    return costs.mad_head_cycles + -(-rows // 16) * -(-cols // 16) * -(-depth * tile.item // 32)


_PLACES: tuple[Check, ...] = (
    OnlyOn("a5"),
    loc("a", "left"),
    loc("b", "right"),
    loc("a_scale", "scaling"),
    loc("b_scale", "scaling"),
    loc("dst", "acc"),
    loc("c_in", "acc"),
    loc("bias", "bias"),
    dtypes("a", " ".join(sorted(_FP8 | _FP4))),
    dtypes("a_scale", "!pto.f8E8M0"),
    dtypes("b_scale", "!pto.f8E8M0"),
    dtypes("dst", "f32"),
    dtypes("c_in", "f32"),
    dtypes("bias", "f32"),
    _operands,
)



def _bindable(site: Site) -> None:
    src, dst = site.tile("src"), site.tile("dst")
    axis = 1 if src.loc == "left" else 0
    want = [src.rows, src.cols]
    want[axis] = -(-want[axis] // GROUP)
    if [dst.rows, dst.cols] != want:
        raise PtoError(
            f"'pto.tget_scale_addr': the scales of {_shape(src)} are {want[0]}x{want[1]}, got {_shape(dst)}"
        )


def _bind(site: Site) -> Run:
    """Where scales stand follows from where their data does; here they stay where they were moved to."""
    return lambda src, dst: None


declare(
    "tget_scale_addr",
    "src -> dst",
    pipe="S",
    checks=(OnlyOn("a5"), loc("src", "left", "right"), loc("dst", "scaling"), dtypes("dst", "!pto.f8E8M0"), _bindable),
    bind=_bind,
    cost=lambda site, rows, cols: 1.0,
    doc="dst becomes the scales the cube finds for src: nothing is copied.",
)

for _name, _rows in (("tmatmul.mx", ()), ("tgemv.mx", (_one_row,))):
    for _suffix, _signature, _bind, _attrs, _doc in (
        ("", "a a_scale b b_scale -> dst", _multiply, _PHASE, "(a * a_scale) @ (b * b_scale)"),
        (".acc", "c_in a a_scale b b_scale -> dst", _accumulate, _PHASE, "c_in + (a * a_scale) @ (b * b_scale)"),
        (".bias", "a a_scale b b_scale bias -> dst", _biased, "", "(a * a_scale) @ (b * b_scale) + bias"),
    ):
        declare(
            f"{_name}{_suffix}",
            _signature,
            pipe="M",
            attrs=_attrs,
            checks=(*_PLACES, *_rows),
            bind=_bind,
            cost=_cost,
            in_place="c_in" if _suffix == ".acc" else "",
            doc=f"dst = {_doc}, a scale for each 32 elements along the depth.",
        )
