"""Checks an instruction declaration is built from: each raises `PtoError` naming operand and rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .elements import item_bytes
from .errors import PtoError
from .shapes import Tile, View
from .spec import Check, Instruction, Site, describe


def _fail(site: Site, reason: str) -> None:
    raise PtoError(f"'pto.{site.spec.mnemonic}': {reason}")


def _dtype(site: Site, name: str) -> str:
    found = site.types[name]
    return found if isinstance(found, str) else found.dtype


def same_dtype(first: str, *others: str) -> Check:
    """All operands present have the element type of the first."""

    def check(site: Site) -> None:
        want = _dtype(site, first)
        for name in others:
            if site.has(name) and _dtype(site, name) != want:
                _fail(site, f"'{name}' must have the element type {want} of '{first}', got {_dtype(site, name)}")

    return check


class ElementTypeError(PtoError):
    """An operand's element type is none of those an architecture takes; the three attributes say which."""

    def __init__(self, site: Site, operand: str, found: str, allowed: Sequence[str]) -> None:
        self.operand, self.found, self.allowed = operand, found, allowed
        super().__init__(
            f"'pto.{site.spec.mnemonic}': element type {found} of '{operand}' is not supported on {site.arch}; "
            f"use {', '.join(allowed)}"
        )


class ContractError(PtoError):
    """Operands do not stand to each other, or scratch to the operation, as an instruction of this target needs."""


class Apart:
    """Operands that must not share bytes on an architecture, as pairs of names.

    An instruction that states none wants its scratch apart from every other operand. Types do not say where tiles are:
    who knows places asks `apart`.
    """

    __slots__ = ("pairs",)

    def __init__(self, a2a3: str, a5: str = "") -> None:
        self.pairs = {arch: _pairs(text) for arch, text in (("a2a3", a2a3), ("a5", a5))}

    def __call__(self, site: Site) -> None:
        """Nothing that types show."""


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((first, second) for first, second in (pair.split("/") for pair in text.split()))


def apart(spec: Instruction, arch: str) -> tuple[tuple[str, str], ...]:
    """The pairs of operands of an instruction that must not share bytes: scratch first."""
    for check in spec.checks:
        if isinstance(check, Apart):
            return check.pairs[arch]
    operands = (*spec.ins, *spec.outs)
    return tuple((s.name, o.name) for s in operands if s.scratch for o in operands if o is not s)


def in_place(spec: Instruction) -> frozenset[str]:
    """The operands whose place the result may take: sources it says so of, scratch that need not be apart from it.

    What one architecture forbids counts for all.
    """
    pairs = {pair for arch in ("a2a3", "a5") for pair in apart(spec, arch)}
    banned = {name for pair in pairs if "dst" in pair for name in pair}
    return frozenset(o.name for o in spec.ins if (o.scratch or o.name in spec.in_place) and o.name not in banned)


class ElementTypes:
    """Element types allowed for an operand, by architecture; only ``within`` a memory, where one is named."""

    __slots__ = ("name", "allowed", "within")

    def __init__(self, name: str, allowed: Mapping[str, frozenset[str]], within: str = "") -> None:
        self.name, self.allowed, self.within = name, allowed, within

    def __call__(self, site: Site) -> None:
        name, allowed = self.name, self.allowed[site.arch]
        if self.within and {site.tile("src").loc, site.tile("dst").loc} != {self.within}:
            return
        if site.has(name) and _dtype(site, name) not in allowed:
            raise ElementTypeError(site, name, _dtype(site, name), sorted(allowed))


def dtypes(name: str, a2a3: str, a5: str | None = None, within: str = "") -> ElementTypes:
    """Element types allowed for an operand, by architecture; one list serves both when ``a5`` is absent."""
    lists = {"a2a3": frozenset(a2a3.split()), "a5": frozenset((a2a3 if a5 is None else a5).split())}
    return ElementTypes(name, lists, within)


def element_types(spec: Instruction, arch: str, operand: str = "dst", within: str = "") -> frozenset[str] | None:
    """The element types an instruction takes for an operand on ``arch``, None when it states no limit.

    ``within`` names the memory that source and result are in, where limits on that are meant too.
    """
    limits = (c for c in spec.checks if isinstance(c, ElementTypes) and c.name == operand)
    rules = [c.allowed[arch] for c in limits if c.within in ("", within)]
    return frozenset.intersection(*rules) if rules else None


_INTEGERS = frozenset(f"{sign}{bits}" for sign in ("i", "ui") for bits in (8, 16, 32))
_WHOLE = _INTEGERS | {"f16", "bf16", "f32"}


def stand_in(spec: Instruction, arch: str, dtype: str, operand: str = "dst") -> str | None:
    """The element type an instruction takes in place of ``dtype``: that one, or another of its width where bits count.

    None where there is none.
    """
    allowed = element_types(spec, arch, operand, "vec")
    if allowed is None or dtype in allowed:
        return dtype
    if not spec.bits or (spec.bits == "int" and dtype not in _INTEGERS) or dtype not in _WHOLE:
        return None
    alike = [a for a in allowed if item_bytes(a) == item_bytes(dtype) and (spec.bits == "any" or a.startswith("i"))]
    return min(alike, default=None)


class OnlyOn:
    """The instruction exists on one architecture."""

    __slots__ = ("arch",)

    def __init__(self, arch: str) -> None:
        self.arch = arch

    def __call__(self, site: Site) -> None:
        if site.arch != self.arch:
            _fail(site, f"{site.arch} has no such instruction; {self.arch} has")


def exists_on(spec: Instruction, arch: str) -> bool:
    """Whether an architecture has the instruction."""
    return all(check.arch == arch for check in spec.checks if isinstance(check, OnlyOn))


def loc(name: str, *locs: str) -> Check:
    """The memory an operand must be in."""

    def check(site: Site) -> None:
        found = site.types.get(name)
        if isinstance(found, Tile) and found.loc not in locs:
            _fail(site, f"'{name}' must be in {' or '.join(locs)}, got {describe(found)}")

    return check


def vec(*names: str) -> Check:
    """Operands in the vector core's buffer."""

    def check(site: Site) -> None:
        for name in names:
            found = site.types.get(name)
            if isinstance(found, Tile) and found.loc != "vec":
                _fail(site, f"'{name}' must be in vec, got {describe(found)}")

    return check


def row_major(*names: str) -> Check:
    """Operands stored row after row, without boxes; one-row or one-column tiles of that order too."""

    def check(site: Site) -> None:
        for name in names:
            found = site.types.get(name)
            if isinstance(found, Tile) and not found.nd:
                _fail(
                    site,
                    f"'{name}' must be blayout=row_major, slayout=none_box, "
                    f"got blayout={found.blayout}, slayout={found.slayout}",
                )

    return check


def no_box(*names: str) -> Check:
    """Operands without a fractal layout."""

    def check(site: Site) -> None:
        for name in names:
            found = site.types.get(name)
            if isinstance(found, Tile) and found.boxed:
                _fail(site, f"'{name}' must have slayout=none_box, got {found.slayout}")

    return check


def same_valid(first: str, *others: str) -> Check:
    """Valid extents equal wherever both are known; the simulator checks the rest when it runs."""

    def check(site: Site) -> None:
        want = site.tile(first)
        for name in others:
            found = site.types.get(name)
            if isinstance(found, Tile):
                for axis, left, right in (("rows", want.v_row, found.v_row), ("columns", want.v_col, found.v_col)):
                    if left is not None and right is not None and left != right:
                        _fail(site, f"'{name}' has {right} valid {axis} but '{first}' has {left}")

    return check


def valid_axis(first: str, other: str, axis: int) -> Check:
    """Valid rows (axis 0) or columns (axis 1) of two tiles agree where both are known."""

    def check(site: Site) -> None:
        left, right = site.types.get(first), site.types.get(other)
        if isinstance(left, Tile) and isinstance(right, Tile):
            a, b = (left.v_row, right.v_row) if axis == 0 else (left.v_col, right.v_col)
            if a is not None and b is not None and a != b:
                _fail(site, f"'{other}' has {b} valid {('rows', 'columns')[axis]} but '{first}' has {a}")

    return check


def open_extents(site: Site) -> str:
    """The operand of a site whose valid extents must be constants and are not; empty where there is none."""
    name = "" if site.spec.constant is None else site.spec.constant(site)
    return name if name and None in (site.tile(name).v_row, site.tile(name).v_col) else ""


def constant_extents(site: Site) -> None:
    """The valid extents are constants that the instruction wants so."""
    name = open_extents(site)
    if name:
        raise ContractError(
            f"'pto.{site.spec.mnemonic}': the valid extents of '{name}' must be constants",
            hint="give the tile constant extents: pl.fillpad it first",
        )


def valid_extent(name: str, axis: int, extent: int) -> Check:
    """A tile has exactly ``extent`` valid rows (axis 0) or columns (axis 1), where known."""

    def check(site: Site) -> None:
        found = site.tile(name)
        got = found.v_row if axis == 0 else found.v_col
        if got is not None and got != extent:
            _fail(site, f"'{name}' must have {extent} valid {('row', 'column')[axis]}, got {got}")

    return check


def column_result(name: str) -> Check:
    """A column of results: col_major with one column, or row_major with one valid column."""

    def check(site: Site) -> None:
        found = site.tile(name)
        if found.boxed or (found.blayout == "col_major" and found.cols != 1):
            _fail(site, f"'{name}' must be a column: blayout=col_major with cols=1, or row_major with v_col=1")
        if found.v_col not in (None, 1):
            _fail(site, f"'{name}' must have 1 valid column, got {found.v_col}")

    return check


def item_size(*names: str, bytes: tuple[int, ...]) -> Check:
    """Width of an element."""

    def check(site: Site) -> None:
        for name in names:
            found = site.types.get(name)
            if isinstance(found, Tile) and found.item not in bytes:
                _fail(site, f"'{name}' must have {' or '.join(map(str, bytes))}-byte elements, got {found.dtype}")

    return check


def same_item_size(first: str, other: str) -> Check:
    def check(site: Site) -> None:
        left, right = site.types[first], site.types[other]
        if isinstance(left, Tile | View) and isinstance(right, Tile | View):
            a, b = item_bytes(left.dtype), item_bytes(right.dtype)
            if a != b:
                _fail(site, f"'{other}' has {b}-byte elements ({right.dtype}) but '{first}' {a}-byte ({left.dtype})")

    return check


def scalar_of(scalar: str, tile: str, signed: bool = False) -> Check:
    """A scalar has the element type of a tile. Signless integers go with unsigned tiles too, unless ``signed``."""

    def check(site: Site) -> None:
        found, want = site.types.get(scalar), site.tile(tile).dtype
        if isinstance(found, str) and found != (want if signed else want.removeprefix("u")):
            _fail(site, f"'{scalar}' must be {want} like '{tile}', got {found}")

    return check
