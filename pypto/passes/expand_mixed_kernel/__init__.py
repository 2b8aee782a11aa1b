"""ExpandMixedKernel: a kernel for cube and vector cores becomes one for each, and a Group that runs both.

Every core keeps the control flow and what has an effect on it. Tiles that cross are pushed by one core and popped by
the other, through a pipe that is set up first; every popped tile is freed after its last use. Kernels that need one
core only become AIC or AIV functions as they are, so that no InCore function is left. On targets that run a kernel
without a split on both vector cores all the same, its AIV function is marked ``dual_aiv_dispatch``.
"""

from __future__ import annotations

from ...ir.program import Program
from ..base import P, Pass
from ..context import PassContext
from .expand import expand


def expand_mixed_kernel() -> Pass:
    """The pass; see the module. Raises KernelValueError for what the cores cannot tell each other."""
    return Pass(
        "ExpandMixedKernel",
        _run,
        requires={P.SSAForm, P.IncoreTileOps, P.SplitIncoreOrch, P.TileOps2D, P.TileMemoryInferred,
                  P.NormalizedStmtStructure},
        produces={P.SSAForm, P.MixedKernelExpanded, P.NormalizedStmtStructure, P.HardSyncallOccupancyValid},
    )  # fmt: skip


def _run(program: Program, context: PassContext) -> Program:
    return expand(program, context.target)
