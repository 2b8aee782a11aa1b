"""A mutable set of members of one enumeration, as the public API spells sets of properties and of checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

E = TypeVar("E", bound=Enum)


class EnumSet(Generic[E]):
    """Members in the order of their values. Sets are equal when their members are."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[E] = ()) -> None:
        self._items = set(items)

    def insert(self, item: E) -> None:
        self._items.add(item)

    def remove(self, item: E) -> None:
        """Take ``item`` out; nothing happens when it is not in."""
        self._items.discard(item)

    def contains(self, item: E) -> bool:
        return item in self._items

    def contains_all(self, other: Iterable[E]) -> bool:
        return self._items.issuperset(other)

    def empty(self) -> bool:
        return not self._items

    def union_with(self, other: Iterable[E]) -> Self:
        return type(self)(self._items.union(other))

    def difference(self, other: Iterable[E]) -> Self:
        return type(self)(self._items.difference(other))

    def intersection(self, other: Iterable[E]) -> Self:
        return type(self)(self._items.intersection(other))

    def to_list(self) -> list[E]:
        """The members in the order of their values."""
        return sorted(self._items, key=lambda item: item.value)

    def __iter__(self) -> Iterator[E]:
        return iter(self.to_list())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, type(self)) else NotImplemented

    def __repr__(self) -> str:
        return "{" + ", ".join(item.name for item in self) + "}"
