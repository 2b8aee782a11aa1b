"""CanonicalizeTileSlice: windows of tiles become extractions where reading them in place would be wrong or slow.

A window of a Mat tile is folded into the extraction or matmul that reads it. A window of a Vec tile is copied out where
codegen would otherwise repack it over its own live source (``tile.col_expand_*``), or where it does not provably start
at a multiple of 32 bytes. Everything else keeps its zero-copy view. A strided window of an Acc tile as the
accumulator of a matmul has no repair and is refused.
"""

from __future__ import annotations

from ...ir.program import Function
from ..base import P, Pass, function_pass
from .acc_windows import check_accumulators
from .rewrite import rewrite_slices

_PROPERTIES = frozenset({P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.NormalizedStmtStructure})


def canonicalize_tile_slice() -> Pass:
    """The pass; see the module. Raises ValueError for a strided accumulator window."""
    return function_pass(
        "CanonicalizeTileSlice", canonicalize, requires=_PROPERTIES, produces=_PROPERTIES, looks_for=("tile.slice",)
    )


def canonicalize(function: Function) -> Function:
    """``function`` with its tile slices in canonical form; functions that run on no core are kept."""
    if not function.is_incore:
        return function
    check_accumulators(function)
    return rewrite_slices(function)
