"""Memory that variables name: byte ranges of on-chip allocations, and windows between ranks."""

from __future__ import annotations

from typing import Final

from .enums import MemorySpace
from .expr import Expr, Var, index_const, next_unique_id
from .node import DATA, NODE, node, use
from .span import UNKNOWN_SPAN, Span
from .types import PtrType, UnknownType, WindowBufferType

_NO_TYPE: Final = UnknownType()


@node
class MemRef(Var):
    """A byte range of an allocation: ``size`` bytes at ``byte_offset`` from the address variable ``base``.

    ``is_pinned`` marks an allocation the author declared, with ``slot_count`` equal slots of which
    ``slot_index`` is denoted.
    """

    base: Var = use(NODE)
    byte_offset: Expr = use(NODE)
    size: int = use(DATA)
    is_pinned: bool = use(DATA, False)
    slot_count: int = use(DATA, 1)
    slot_index: Expr | None = use(NODE, None)

    def __new__(
        cls,
        base: MemorySpace | Var | str,
        byte_offset: Expr | int = 0,
        size: int = 0,
        id: int | Span | None = None,
        span: Span = UNKNOWN_SPAN,
        *,
        is_pinned: bool = False,
        slot_count: int = 1,
        slot_index: Expr | int | None = None,
    ) -> MemRef:
        if isinstance(id, Span):
            span, id = id, None
        if isinstance(base, MemorySpace):
            base = f"mem_{base.name.lower()}_{id if id is not None else next_unique_id()}"
        if isinstance(base, str):
            base = Var(base, PtrType(), span)
        offset = index_const(byte_offset) if isinstance(byte_offset, int) else byte_offset
        slot = index_const(slot_index) if isinstance(slot_index, int) else slot_index
        return cls._build(
            _NO_TYPE, base, offset, size, is_pinned, slot_count, slot, span, base.name_hint, next_unique_id()
        )

    @property
    def base_(self) -> Var:
        return self.base

    @property
    def byte_offset_(self) -> Expr:
        return self.byte_offset

    @property
    def size_(self) -> int:
        return self.size

    @property
    def is_pinned_(self) -> bool:
        return self.is_pinned

    @property
    def slot_count_(self) -> int:
        return self.slot_count

    @property
    def slot_index_(self) -> Expr | None:
        return self.slot_index

    @staticmethod
    def same_allocation(a: MemRef, b: MemRef) -> bool:
        """Whether both name the same allocation."""
        return a.base is b.base

    @staticmethod
    def may_alias(a: MemRef, b: MemRef) -> bool:
        """Whether the two byte ranges can share a byte; unknown offsets may."""
        if a.base is not b.base:
            return False
        x, y = getattr(a.byte_offset, "value", None), getattr(b.byte_offset, "value", None)
        if x is None or y is None:
            return True
        return x < y + b.size and y < x + a.size


@node
class WindowBuffer(Var):
    """A communication window of ``size`` bytes a rank, addressed by ``base``."""

    base: Var = use(NODE)
    size: Expr = use(NODE)
    load_from_host: bool = use(DATA, False)
    store_to_host: bool = use(DATA, False)

    def __new__(
        cls,
        base: Var,
        size: Expr,
        load_from_host: bool = False,
        store_to_host: bool = False,
        span: Span = UNKNOWN_SPAN,
    ) -> WindowBuffer:
        return cls._build(
            WindowBufferType(), base, size, load_from_host, store_to_host, span, base.name_hint, next_unique_id()
        )
