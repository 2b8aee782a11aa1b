"""Combination of two tiles of different extents that keeps track of where each element came from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import dtypes, row_major, same_dtype, same_valid, vec
from ..errors import PtoError
from ..runtime import Array, TileValue, vector_cost
from ..spec import Run, Site, declare


def _pick(wins: Callable[[Array, Array], Array]) -> Callable[[Site], Run]:
    """The first source where it ``wins`` over the second and where only it has an element, else the second."""

    def bind(site: Site) -> Run:
        name = site.spec.mnemonic

        def run(
            src0: TileValue,
            src1: TileValue,
            src0Idx: TileValue,
            src1Idx: TileValue,
            dst: TileValue,
            dstIdx: TileValue,
        ) -> None:
            if src0.valid != src0Idx.valid or src1.valid != src1Idx.valid or dst.valid != dstIdx.valid:
                raise PtoError(f"'pto.{name}': values and their indices must have the same valid elements")
            whole, part = (src0, src1) if src0.valid == dst.valid else (src1, src0)
            if whole.valid != dst.valid or any(p > w for p, w in zip(part.valid, dst.valid)):
                raise PtoError(
                    f"'pto.{name}': one source must have the {dst.valid} valid elements of 'dst' and the other lie "
                    f"within them, got {src0.valid} and {src1.valid}"
                )
            rows, cols = part.valid
            first, second = src0.read()[:rows, :cols], src1.read()[:rows, :cols]
            left = wins(first, second)
            values = np.array(whole.read())
            indices = np.array((src0Idx if whole is src0 else src1Idx).read())
            values[:rows, :cols] = np.where(left, first, second)
            indices[:rows, :cols] = np.where(left, src0Idx.read()[:rows, :cols], src1Idx.read()[:rows, :cols])
            dst.write(values)
            dstIdx.write(indices)

        return run

    return bind


for _name, _wins, _what in (("tpartargmax", np.greater, "greater"), ("tpartargmin", np.less, "smaller")):
    declare(
        _name,
        "src0 src1 src0Idx src1Idx -> dst dstIdx",
        pipe="V",
        checks=(
            vec("src0", "src1", "src0Idx", "src1Idx", "dst", "dstIdx"),
            same_dtype("dst", "src0", "src1"),
            dtypes("dst", "f16 f32"),
            same_dtype("dstIdx", "src0Idx", "src1Idx"),
            dtypes("dstIdx", "i32 ui32"),
            row_major("src0", "src1", "src0Idx", "src1Idx", "dst", "dstIdx"),
            same_valid("src0", "src0Idx"),
            same_valid("src1", "src1Idx"),
            same_valid("dst", "dstIdx"),
        ),
        bind=_pick(_wins),
        cost=vector_cost(3),
        doc=f"The {_what} of two elements and its index, the second's when they are equal; the only one where one "
        "source has none.",
    )
