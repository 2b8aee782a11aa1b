"""InferTileMemorySpace: a memory for every tile, and a move where a tile is not where an operator wants it.

Operators state where their operands and results are. What may be loaded or created anywhere goes where its consumers
need the fewest moves; views stay with what they view; loop carries and branch results stay in one memory. When a
target is chosen (by the pass context or the backend), only its own on-chip moves are used, and a tile that cannot
get where it is needed is refused. Without one, every move is taken to exist. Matmul operands that a loop loads anew in
each iteration, and need not, are loaded before it.
"""

from __future__ import annotations

from ...errors import user_error
from ...ir.naming import written_name
from ...ir.program import Function, Program
from ...ir.types import TileType
from ..base import P, Pass
from ..context import PassContext
from .moves import Moves
from .residency import CallSites, Residency
from .rewrite import Placer


def infer_tile_memory_space() -> Pass:
    """The pass. Raises KernelValueError for a tile that cannot get where it is needed."""
    properties = {P.SSAForm, P.NormalizedStmtStructure}
    return Pass(
        "InferTileMemorySpace",
        _run,
        requires=properties | {P.IncoreTileOps, P.SplitIncoreOrch},
        produces=properties | {P.TileMemoryInferred, P.AivSplitValid, P.AccToGmStoreValid},
        invalidates={P.AivSplitValid},
    )


def _run(program: Program, context: PassContext) -> Program:
    moves, sites = Moves(context.target if context.has_target else None), CallSites(program)
    return program.map_functions(lambda f: _place(f, moves, sites) if f.is_incore else f)


def _place(function: Function, moves: Moves, sites: CallSites) -> Function:
    for param in function.params:
        if isinstance(param.type, TileType):
            raise user_error(
                ValueError,
                f"parameter {written_name(param.name_hint)!r} of kernel {function.name!r} is a Tile: a kernel's data "
                "comes from and goes to global memory",
                param.span,
                "take a pl.Tensor and load it",
            )
    placer = Placer(function, moves)
    made = placer.rewrite(function)
    return Residency(made, sites.unwritten(made), moves.target).rewrite(made) if placer.marked else made
