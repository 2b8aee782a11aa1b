"""Tiles that need not cross between the cores: what is in Mat is loaded again, and an empty tile made again."""

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
    """The loads and creations of tiles of one kernel, loads with the tensors they may read."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._made: dict[Expr, tuple[Call, Expr]] = {}

    def note(self, made: Var, call: Call, tensor: Expr) -> None:
        """``made`` comes of ``call``, whose first argument the kernel before this pass calls ``tensor``."""
        self._made[made] = call, tensor

    @cached_property
    def _roots(self) -> BufferRoots:
        return BufferRoots(self._function, ReturnLineage({self._function.name: self._function}), views=True)

    @cached_property
    def _written(self) -> frozenset[Var]:
        """The tensors the kernel writes to."""
        return written_buffers(self._function.body, self._roots)

    def again(self, tile: Expr, span: Span) -> Call | None:
        """A load into Vec of what ``tile`` holds. None when nothing loads that: ExpandMixedKernel refuses the move."""
        load, tensor = self._made.get(tile, (None, tile))
        if load is None or load.op.name != "tile.load" or kind_of(tensor).layout is not TensorLayout.ND:
            return None
        if not self._written.isdisjoint(self._roots.of(tensor)):
            return None
        return build(load.op.name, *load.args, span=span, **{**load.kwargs, "target_memory": MemorySpace.Vec})

    def is_empty(self, tile: Expr) -> bool:
        """Whether ``tile`` has no contents."""
        call, _ = self._made.get(tile, (None, tile))
        return call is not None and call.op.name == "tile.create"

    def empty(self, tile: Expr, space: MemorySpace, span: Span) -> Call | None:
        """A tile in ``space`` for one that has no contents, when that is what ``tile`` is."""
        call, _ = self._made.get(tile, (None, tile))
        if call is None or not self.is_empty(tile):
            return None
        return build("tile.create", call.args[0], span=span, dtype=call.kwargs["dtype"], target_memory=space)
