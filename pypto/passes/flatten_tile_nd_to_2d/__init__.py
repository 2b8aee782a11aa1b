"""FlattenTileNdTo2D: every tile of a kernel becomes two-dimensional.

``[A, B, C]`` becomes ``[A * B, C]`` and ``[N]`` becomes ``[1, N]``; what addresses a tile (offsets, windows, shapes,
valid regions) follows, windows of tensors keep the tensor's rank. Batched products are done matrix by matrix, and a
transpose gets the scratch tile its instruction needs.
"""

from __future__ import annotations

from ...ir.program import Function
from ...ir.types import TileType
from ..base import P, Pass, function_pass
from . import matmul as matmul
from .rewrite import Flattener


def flatten_tile_nd_to_2d() -> Pass:
    """The pass. Raises KernelValueError for a tile without a two-dimensional form."""
    properties = {P.SSAForm, P.NormalizedStmtStructure}
    return function_pass(
        "FlattenTileNdTo2D",
        _run,
        requires=properties | {P.IncoreTileOps},
        produces=properties | {P.TileOps2D},
        looks_for=(TileType,),
    )


def _run(function: Function) -> Function:
    if not function.is_incore:
        return function
    flattener = Flattener()
    flattener.span = function.span
    return flattener.rewrite(function)
