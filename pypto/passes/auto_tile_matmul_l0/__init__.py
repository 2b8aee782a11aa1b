"""AutoTileMatmulL0: matrix products of operands in Mat are computed in tiles that L0A, L0B and L0C hold."""

from __future__ import annotations

from ...ir.program import INCORE_TYPES, Function, Program
from ..base import P, Pass
from ..context import MemoryPlanner, PassContext
from .pipelines import double_accumulators
from .product import MATMULS
from .rewrite import tile_products
from .split_k import split_reductions

_PROPERTIES = frozenset({P.SSAForm, P.SplitIncoreOrch, P.IncoreTileOps, P.TileOps2D, P.NormalizedStmtStructure})


def auto_tile_matmul_l0() -> Pass:
    """The pass; see the module. Raises CapacityError for an operand placed in L0 that is larger than it."""

    def run(program: Program, context: PassContext) -> Program:
        if not context.has_target:
            return program
        return program.map_functions(lambda f: _tiled(f, context) if made.concerns(f) else f)

    made = Pass("AutoTileMatmulL0", run, _PROPERTIES, _PROPERTIES, looks_for=MATMULS, only=INCORE_TYPES)
    return made


def _tiled(function: Function, context: PassContext) -> Function:
    made = tile_products(split_reductions(function, context), context)
    # Other planners see for themselves which accumulators may be in use at once.
    return double_accumulators(made, context.target) if context.memory_planner is MemoryPlanner.PYPTO else made
