"""Tiles in Mat that the vector cores need: pipes take only products to them, so they load such a tile themselves."""

from __future__ import annotations

from functools import cached_property

from ...ir.enums import MemorySpace, TensorLayout
from ...ir.expr import Call, Expr, Var
from ...ir.program import Function
from ...ir.span import Span
from ..buffer_roots import BufferRoots, written_buffers
from ..emitting import build, kind_of
from ..return_lineage import ReturnLineage


class Reloads:
    """The loads into Mat of one kernel, each with the tensors it may read."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._loads: dict[Var, tuple[Call, Expr]] = {}

    def note(self, made: Var, load: Call, tensor: Expr) -> None:
        """``made`` is loaded by ``load``, from what the kernel before this pass calls ``tensor``."""
        self._loads[made] = load, tensor

    @cached_property
    def _roots(self) -> BufferRoots:
        return BufferRoots(self._function, ReturnLineage({self._function.name: self._function}), views=True)

    @cached_property
    def _written(self) -> frozenset[Var]:
        """The tensors the kernel writes to."""
        return written_buffers(self._function.body, self._roots)

    def again(self, tile: Expr, span: Span) -> Call | None:
        """A load into Vec of what ``tile`` holds. None when nothing loads that: ExpandMixedKernel refuses the move."""
        load, tensor = self._loads.get(tile, (None, None)) if isinstance(tile, Var) else (None, None)
        if load is None or tensor is None or kind_of(tensor).layout is not TensorLayout.ND:
            return None
        if not self._written.isdisjoint(self._roots.of(tensor)):
            return None
        return build(load.op.name, *load.args, span=span, **{**load.kwargs, "target_memory": MemorySpace.Vec})
