"""What codegen hands to the templates: SSA values, operations, functions. Plain data, nothing left to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple


class Value(NamedTuple):
    """An SSA value: its name with the percent sign, its type as text.

    ``known`` is the type of a tile with the valid extents that its type leaves to operands, and that stay as they are.
    """

    name: str
    type: str
    known: str = ""

    @property
    def told(self) -> str:
        """The type with all that is known of it."""
        return self.known or self.type


class Location(NamedTuple):
    """Where the user wrote what an operation stands for."""

    file: str
    line: int
    column: int


class Op:
    """One output construct: ``kind`` names its template macro, the other attributes are what the macro prints.

    ``call`` is the operator call it was written for; ``roles`` names an instruction's operands, once it is checked.
    """

    call: Any = None
    roles: Sequence[str] = ()

    def __init__(self, kind: str, loc: Location | None = None, **parts: Any) -> None:
        self.kind = kind
        self.loc = loc
        self.__dict__.update(parts)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


@dataclass
class FunctionContext:
    """One ``func.func``."""

    name: str
    kind: str
    args: list[Value] = field(default_factory=list)
    constants: list[Op] = field(default_factory=list)
    prologue: list[Op] = field(default_factory=list)
    body: list[Op] = field(default_factory=list)


@dataclass
class ModuleContext:
    """One ``.pto`` file. ``arch`` is the module attribute ``pto.target_arch``."""

    arch: str
    functions: list[FunctionContext]
