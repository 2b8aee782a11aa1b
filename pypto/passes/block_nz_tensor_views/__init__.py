"""BlockNzTensorViews: NZ tensors take the shape of their bytes, and the loads that read them follow.

``pl.Tensor[[R, C], dtype, pl.NZ]`` states that the bytes in global memory already are in fractal order. The shape of
that order has always five dimensions, ``[B, C/c0, R/16, 16, c0]`` with c0 the elements in 32 bytes: its row-major
strides are those of the fractals. Every tensor type in NZ is blocked so, a missing batch becoming 1; a
``tile.load`` addresses the blocks instead of the elements and keeps its tile, which stays rows by columns.

What cannot be addressed exactly is refused. Blocking twice would be wrong, and a blocked shape can look like a logical
one, so a rewritten function is marked ``nz_tensor_views_blocked`` and left alone from then on.
"""

from __future__ import annotations

from ...ir.program import Function, summarize
from ...ir.types import TensorView
from ..base import P, Pass, function_pass
from .rewrite import NzBlocker

BLOCKED_MARK = "nz_tensor_views_blocked"
"""The attribute of a function whose NZ tensors are blocked."""

_PROPERTIES = frozenset({P.SSAForm, P.IncoreTileOps, P.TileOps2D, P.NormalizedStmtStructure})


def block_nz_tensor_views() -> Pass:
    """The pass; see the module. Raises KernelValueError for an NZ tensor, or a use of one, that it cannot address."""
    return function_pass(
        "BlockNzTensorViews", block_function, requires=_PROPERTIES, produces=_PROPERTIES, looks_for=(TensorView,)
    )


def block_function(function: Function) -> Function:
    """``function`` with its NZ tensors blocked; one without, or marked as done, is kept."""
    if function.attrs.get(BLOCKED_MARK) or TensorView not in summarize(function).kinds:
        return function
    made = NzBlocker(function).rewrite(function)
    return made if made is function else made.replace(attrs={**made.attrs, BLOCKED_MARK: True})
