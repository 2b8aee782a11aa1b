"""`pl.MemRef`: an allocation described by address, or declared by the author."""

from __future__ import annotations

from typing import Any

from ..ir.memref import MemRef as IrMemRef


class MemRefSlot:
    """One slot of a declared allocation; ``index`` may be an expression of the kernel."""

    __slots__ = ("declaration", "index")

    def __init__(self, declaration: MemRef, index: Any) -> None:
        self.declaration = declaration
        self.index = index


class MemRef:
    """``MemRef(base, byte_offset, size)`` describes a byte range of an allocation; with at most a name it declares one.

    A declaration keeps its tiles out of automatic reuse. ``slots`` equal slots of it are picked with ``[i]``. Without
    a name it takes that of the variable holding it. Sizes come from the tiles, addresses from the allocator.
    """

    __slots__ = ("name", "slots")

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 or kwargs.keys() - {"name", "slots"}:
            return IrMemRef(*args, **kwargs)
        return super().__new__(cls)

    def __init__(self, name: str | None = None, *, slots: int = 1) -> None:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"a declared allocation is named by a string, got {type(name).__name__}")
        if not isinstance(slots, int) or slots < 1:
            raise ValueError(f"slots must be a positive integer (an allocation has at least one slot), got {slots!r}")
        self.name = name
        self.slots = slots

    def __getitem__(self, index: Any) -> MemRefSlot:
        return MemRefSlot(self, index)
