"""C++ blocks as they are filled, and what variables stand for in them."""

from __future__ import annotations

from typing import NamedTuple

from ..context import Op

ALLOCATION_LIMIT = 16
"""Tensors one ``alloc_tensors`` call makes, at most."""


class Allocation:
    """One ``alloc_tensors`` call under construction."""

    def __init__(self, name: str, block: Block) -> None:
        self.infos: list[str] = []
        self.made: list[str] = []
        self.declarations: list[Op] = []
        self.op = Op("allocate", name=name, infos=self.infos, made=self.made)
        self.block = block

    @property
    def full(self) -> bool:
        return len(self.made) >= ALLOCATION_LIMIT


class Block:
    """A C++ block: its statements, whether it still is being filled, the allocations at its head.

    A ``transparent`` block is a manual scope: tensors declared in it are seen after it, so that their declarations
    go to the block around it, ahead of the scope.
    """

    def __init__(self, parent: Block | None, transparent: bool = False) -> None:
        self.parent, self.transparent = parent, transparent
        self.open = True
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.allocations: list[Allocation] = []
        self.ops: list[Op] = []

    @property
    def home(self) -> Block:
        """Where declarations go that are to outlive a manual scope."""
        block = self
        while block.transparent and block.parent is not None:
            block = block.parent
        return block

    def finish(self) -> list[Op]:
        """Close the block; all its statements, allocations first."""
        self.open = False
        return [*self.head(), *self.ops]

    def head(self) -> list[Op]:
        return [op for a in self.allocations for op in (*a.declarations, a.op)]


class Handle(NamedTuple):
    """What a variable is in C++: ``text`` is an expression valid while ``block`` is open.

    ``guarded``: a task id that may name no task. ``extent``: the size of an array, whose contents are those of
    ``version``. ``assignable``: a scalar variable of its own. ``natural``: an integer that is never negative.
    """

    text: str
    block: Block
    guarded: bool = False
    extent: int = 0
    version: int = 0
    assignable: bool = False
    natural: bool = False
    view: tuple[str, tuple[str, ...]] | None = None
    """For a window of a tensor: that tensor, and where the window begins."""
    fresh: bool = False
    """A task id not yet in a variable."""
