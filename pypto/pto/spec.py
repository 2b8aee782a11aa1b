"""How a PTO instruction is declared, and the table of all of them.

One `declare` call gives everything the dialect, the verifier and the simulator know about an
instruction. Operands are written as in the assembly, scratch ones marked ``~``, optional ones ``?``::

    declare("trowsum", "src ~tmp? -> dst", pipe="V", checks=(...), bind=...)

A kind follows a colon; without one the operand is a tile. Kinds: ``tile``, ``view`` (a window of
global memory), ``scalar``, ``int``, ``index``, ``any`` (tile or scalar), ``block`` (tile or window). Attributes are
``name:kind=default``, or ``name?:kind`` without one; a kind is an enumeration of `ENUMERATIONS`,
``bool``, ``int`` or ``str``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pypto.backend.target import Target

from .elements import item_bytes
from .enumerations import ENUMERATIONS
from .errors import PtoError
from .shapes import Tile, View

OperandType = Tile | View | str
"""What `Site.types` holds: a tile, a window, or the name of a scalar type."""

Check = Callable[["Site"], None]
Run = Callable[..., None]
Bind = Callable[["Site"], Run]
Cost = Callable[["Site", int, int], float]


@dataclass(frozen=True, slots=True)
class Operand:
    name: str
    kind: str
    optional: bool
    scratch: bool

    def accepts(self, shape: str) -> bool:
        """Whether an operand of this kind may be a ``tile``, a ``view`` or a ``scalar``."""
        if self.kind in ("tile", "view"):
            return shape == self.kind
        if self.kind == "any":
            return shape != "view"
        if self.kind == "block":
            return shape != "scalar"
        return shape == "scalar"


@dataclass(frozen=True, slots=True)
class Attr:
    name: str
    kind: str
    default: Any
    required: bool = False


@dataclass(frozen=True)
class Instruction:
    """One PTO instruction.

    ``bind`` is given a `Site` once, when a module is compiled, and returns the function that does
    the work each time: it takes the runtime values of `uses`, in order, None for an absent optional.
    ``cost`` gives cycles from the rows and columns of the region the instruction writes.
    ``pipe`` names the pipe, or computes it from the site. ``in_place``: the sources whose place the result may take,
    element for element. ``scratch``: what ``tmp`` must be at a site, None where there is none, or what is there will
    do. ``constant``: the operand whose valid extents must be constants at a site, if any. ``bits``: elements of another
    type of the same width give the same bits, ``any`` type or another ``int``. ``through``: element types it does not
    take, and the wider ones in which an operator gives the same results.
    """

    mnemonic: str
    ins: tuple[Operand, ...]
    outs: tuple[Operand, ...]
    attrs: Mapping[str, Attr]
    pipe: str | Callable[[Site], str]
    checks: tuple[Check, ...]
    bind: Bind
    cost: Cost
    in_place: frozenset[str] = frozenset()
    scratch: Callable[[Site], Room | None] | None = None
    constant: Callable[[Site], str] | None = None
    bits: str = ""
    through: Mapping[str, str] = field(default_factory=dict)
    doc: str = ""
    apart: str = ""
    """What stands between the other operands' types and the operand ``fp``, whose type stands beside it."""
    _orders: dict[tuple[str, ...], tuple[Operand, ...] | None] = field(default_factory=dict, compare=False)

    @property
    def op_name(self) -> str:
        return f"pto.{self.mnemonic}"

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """Names of the operands `bind`'s function takes: all but scratch."""
        return tuple(operand.name for operand in (*self.ins, *self.outs) if not operand.scratch)

    @cached_property
    def by_name(self) -> dict[str, Operand]:
        return {operand.name: operand for operand in (*self.ins, *self.outs)}

    def assign(self, ins: tuple[str, ...], outs: tuple[str, ...]) -> tuple[Operand, ...] | None:
        """Which declared operands the given ones are, from whether each is a tile, a view or a scalar."""
        key = (*ins, "->", *outs)
        if key not in self._orders:
            left, right = _match(self.ins, ins), _match(self.outs, outs)
            self._orders[key] = None if left is None or right is None else left + right
        return self._orders[key]

    def usage(self) -> str:
        """The assembly form, for messages."""
        ins = ", ".join(operand.name + "?" * operand.optional for operand in self.ins)
        outs = ", ".join(operand.name + "?" * operand.optional for operand in self.outs)
        return f"{self.op_name} ins({ins}) outs({outs})"


def _match(declared: tuple[Operand, ...], given: tuple[str, ...]) -> tuple[Operand, ...] | None:
    if not declared:
        return None if given else ()
    head, rest = declared[0], declared[1:]
    if given and head.accepts(given[0]):
        tail = _match(rest, given[1:])
        if tail is not None:
            return (head, *tail)
    return _match(rest, given) if head.optional else None


class Site:
    """One occurrence of an instruction: operand types by name, attribute values, target."""

    __slots__ = ("spec", "types", "attrs", "target", "arch")

    def __init__(self, spec: Instruction, types: dict[str, OperandType], attrs: dict[str, Any], target: Target) -> None:
        self.spec, self.types, self.attrs, self.target = spec, types, attrs, target
        self.arch = target.module_arch

    def tile(self, name: str) -> Tile:
        found = self.types[name]
        if not isinstance(found, Tile):
            raise PtoError(f"'{name}' of pto.{self.spec.mnemonic} must be a tile, got {describe(found)}")
        return found

    def view(self, name: str) -> View:
        found = self.types[name]
        if not isinstance(found, View):
            raise PtoError(f"'{name}' of pto.{self.spec.mnemonic} must be a tensor window, got {describe(found)}")
        return found

    def has(self, name: str) -> bool:
        return name in self.types

    @property
    def pipe(self) -> str:
        pipe = self.spec.pipe
        return pipe if isinstance(pipe, str) else pipe(self)


class Room(NamedTuple):
    """Scratch: its element type and extents. Of one row only the bytes count, in elements of any type where ``dtype``
    is empty. ``like_source``: it is valid where the first source is."""

    dtype: str
    rows: int
    cols: int
    like_source: bool = False

    @property
    def nbytes(self) -> int:
        return self.rows * self.cols * item_bytes(self.dtype or "i32")

    def is_in(self, tile: Tile) -> bool:
        """Whether a tile will do."""
        if self.dtype and tile.dtype != self.dtype:
            return False
        return tile.nbytes >= self.nbytes if self.rows == 1 else tile.rows >= self.rows and tile.cols >= self.cols


def describe(found: OperandType) -> str:
    if isinstance(found, Tile):
        return f"a {found.loc} tile {found.rows}x{found.cols} {found.dtype}"
    if isinstance(found, View):
        return f"a tensor window {found.text}"
    return f"a scalar {found}"


INSTRUCTIONS: dict[str, Instruction] = {}
"""Every declared instruction by mnemonic, such as ``tadd``."""


def _operand(text: str) -> Operand:
    name, _, kind = text.partition(":")
    scratch = name.startswith("~")
    optional = name.endswith("?")
    return Operand(name.strip("~?"), kind or "tile", optional, scratch)


def _attr(text: str) -> Attr:
    name, _, rest = text.partition(":")
    kind, equals, default = rest.partition("=")
    if kind not in ENUMERATIONS and kind not in ("bool", "int", "str"):
        raise ValueError(f"unknown attribute kind '{kind}'")
    value: Any = default or None
    if equals and kind == "bool":
        value = default == "true"
    elif equals and kind == "int":
        value = int(default)
    return Attr(name.rstrip("?"), kind, value, not equals and not name.endswith("?"))


def declare(
    mnemonic: str,
    operands: str,
    *,
    pipe: str | Callable[[Site], str],
    bind: Bind,
    checks: Sequence[Check] = (),
    attrs: str = "",
    cost: Cost,
    in_place: bool | str = False,
    scratch: Callable[[Site], Room | None] | None = None,
    constant: Callable[[Site], str] | None = None,
    bits: str = "",
    through: Mapping[str, str] | None = None,
    doc: str = "",
    apart: str = "",
) -> None:
    """Add one instruction to `INSTRUCTIONS`. ``operands`` and ``attrs`` are written as the module docstring says.

    ``in_place`` names the sources whose place the result may take, True for all of them.
    """
    left, _, outs = operands.partition("->")
    ins = tuple(_operand(text) for text in left.split())
    sources = [operand.name for operand in ins if operand.accepts("tile") and not operand.scratch]
    places = in_place.split() if isinstance(in_place, str) else sources if in_place else ()
    parsed = [_attr(text) for text in attrs.split()]
    INSTRUCTIONS[mnemonic] = Instruction(
        mnemonic,
        ins,
        tuple(_operand(text) for text in outs.split()),
        {attr.name: attr for attr in parsed},
        pipe,
        tuple(checks),
        bind,
        cost,
        frozenset(places),
        scratch,
        constant,
        bits,
        through or {},
        doc,
        apart,
    )
