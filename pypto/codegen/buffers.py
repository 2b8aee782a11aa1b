"""The buffers of tiles: a handle for each variable, at its address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import DataType
from ..errors import user_error
from ..ir.expr import ConstInt, Expr, Var
from ..ir.memref import MemRef
from ..ir.naming import written_name
from ..ir.types import TileType
from .context import Op, Value
from .pairs import in_pairs
from .render import type_text
from .types import TileKey, tile_key, written_key

if TYPE_CHECKING:
    from .kernel import KernelBuilder

_OPEN = "v_row=?, v_col=?"


class Buffers:
    """Allocates the tile buffers of one kernel.

    With addresses, a tile is wherever it is planned to be, and any number of handles may be there. Without, PTOAS
    places each handle, so that all tiles of one allocation are seen through the first.
    """

    def __init__(self, kernel: KernelBuilder) -> None:
        self.kernel = kernel
        self._tiles: dict[Any, Value] = {}
        self._placed: dict[Expr, Value] = {}
        """Without addresses, the handle that stands for each allocation."""
        self.shared: set[Var] = set()
        """Tiles carried by a loop or merged by a branch: they must be where what flows into them is."""
        self.own: dict[Var, Value] = {}
        """Handles that nothing else is seen through, of tiles whose valid region will be set."""
        self._regions: dict[Expr, Sequence[Expr]] = {}
        """Without addresses, the region that is valid in an allocation, known only when the kernel runs."""

    def of(self, var: Var, shared: bool = False) -> Value:
        """The buffer at a tile's address, by a handle of its own; a ``shared`` one may be any of this type there."""
        if isinstance(var.type, TileType) and var.type.memref is None:
            return self._unplaced(var, var.type)
        type, memref = self._allocated(var)
        known_type = tile_key(type, self.kernel.target)
        text = type_text(known_type)
        dynamic = [d for d in type.valid_shape if not isinstance(d, ConstInt)]
        address = memref.byte_offset
        launched = self.kernel.options.addresses and all(map(self.kernel.is_argument, dynamic))
        movable = (launched or not dynamic) and isinstance(address, ConstInt)
        base = None if self.kernel.options.addresses else memref.base
        key = (base, getattr(address, "value", id(address)), text, *(id(d) for d in dynamic))
        known = self._tiles.get(key) if movable else None
        if known is not None and (shared or base is not None):
            return known
        if base is not None and dynamic:
            return self._opened(var, type, base)
        if base is not None and base in self._placed:
            return self._retyped(var, text, self._placed[base])
        made = self._alloc(var, type, known_type, type.valid_shape, movable)
        if var in self.kernel.narrowed:
            self.own[var] = made
        elif movable:
            self._tiles[key] = made
        if base is not None:
            self._placed[base] = made
        return made

    def _unplaced(self, var: Var, type: TileType) -> Value:
        """A buffer of its own that PTOAS places: nobody planned where the tile is."""
        if var in self.shared:
            raise self.kernel.unsupported(var, f"tile {var.name_hint!r} without an allocation")
        return self._alloc(var, type, tile_key(type, self.kernel.target), type.valid_shape, False)

    def open(self, var: Var) -> Value:
        """A handle of a tile's own whose valid region can be set, at first everything."""
        type, memref = self._allocated(var)
        if not self.kernel.options.addresses:
            raise self._needs_addresses(var)
        opened = tile_key(type, self.kernel.target, open_valid=True)
        return self._alloc(var, type, opened, type.shape, isinstance(memref.byte_offset, ConstInt))

    def at(self, type: TileType, base: Expr, offset: Expr, hint: str) -> Value:
        """A handle of ``type``, ``offset`` bytes from address ``base``."""
        start = self._address(base)
        constant = isinstance(offset, ConstInt) and offset.value == 0
        if not constant:
            start = self.kernel.scalars.sum(start, self._address(offset))
        return self._alloc_at(hint, type, tile_key(type, self.kernel.target), type.valid_shape, start)

    def _allocated(self, var: Var) -> tuple[TileType, MemRef]:
        type = var.type
        assert isinstance(type, TileType)
        if type.memref is None:
            raise self.kernel.unsupported(var, f"tile {var.name_hint!r} without an allocation")
        return type, type.memref

    def _opened(self, var: Var, type: TileType, base: Expr) -> Value:
        """A buffer PTOAS will place whose valid region is set where its contents are made."""
        region = self._regions.setdefault(base, type.valid_shape)
        if any(a is not b for a, b in zip(region, type.valid_shape)):
            raise self._needs_addresses(var)
        made = self._placed.get(base)
        if made is None:
            made = self._alloc(var, type, tile_key(type, self.kernel.target, open_valid=True), type.shape, True)
            self._placed[base] = made
        elif _OPEN not in made.told:
            raise self._needs_addresses(var)
        extents = [self.kernel.scalars.index(d) for d in type.valid_shape]
        self.kernel.add(Op("set_validshape", source=made, extents=extents))
        return made

    def _retyped(self, var: Var, text: str, first: Value) -> Value:
        """Another type of a buffer PTOAS will place: a view of the handle that stands for it."""
        if _OPEN in first.told:
            raise self._needs_addresses(var)
        made = self.kernel.fresh(var.name_hint, text)
        self.kernel.add(Op("treshape", result=made, source=first))
        return made

    def _needs_addresses(self, var: Var) -> Exception:
        return user_error(
            ValueError,
            f"the valid region of {written_name(var.name_hint)!r} is known only when the kernel runs, and PTOAS cannot "
            "place a buffer that is seen with several",
            var.span,
            "let pypto plan memory: memory_planner=passes.MemoryPlanner.PYPTO",
        )

    def _alloc(self, var: Var, type: TileType, known: TileKey, extents: Sequence[Expr], movable: bool) -> Value:
        """An ``alloc_tile``, at the head of the function when ``movable``. ``known`` says which extents stay."""
        outer = self.kernel.block
        if movable:
            self.kernel.block = self.kernel.context.prologue
        placed = type.memref is not None and self.kernel.options.addresses
        address = self._address(type.memref.byte_offset) if placed and type.memref is not None else None
        result = self._alloc_at(var.name_hint, type, known, extents, address)
        self.kernel.block = outer
        return result

    def _alloc_at(
        self, hint: str, type: TileType, known: TileKey, extents: Sequence[Expr], address: Value | None
    ) -> Value:
        """Extents that the type as written leaves open are operands."""
        written = written_key(known, self.kernel.options.constant_extents)
        result = self.kernel.fresh(hint, type_text(written), type_text(known))
        rows, cols = in_pairs(extents, type.dtype, "a valid extent", self.kernel.span)
        valid_row = self.kernel.scalars.index(rows) if written.v_row is None else None
        valid_col = self.kernel.scalars.index(cols) if written.v_col is None else None
        self.kernel.add(Op("alloc_tile", result=result, addr=address, valid_row=valid_row, valid_col=valid_col))
        return result

    def _address(self, offset: Expr) -> Value:
        if isinstance(offset, ConstInt):
            return self.kernel.scalars.constant(offset.value, DataType.INT64)
        return self.kernel.scalars.convert(self.kernel.scalars.emit(offset), offset.dtype, DataType.INT64)
