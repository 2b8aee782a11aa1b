"""Rules of pipes between cores: what one function says of them, and what it says of the others of its group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from pypto.backend.target import Target

from .attrs import plain
from .comm_rules import check_piped
from .cross_ops import ImportReservedBuffer, InitializePipe, Pop, Push, ReserveBuffer, Transfer
from .errors import PtoError
from .parser import location_of
from .shapes import Tile
from .targets import memory
from .types import TileBufType

C2V, V2C = "c2v", "v2c"
MASKS = {C2V: 1, V2C: 2}
"""The bit of ``dir_mask`` that is each direction."""
BOTH_WAYS = 3
NO_SPLIT, SPLITS, ODD_SPLITS = 0, range(5), (3, 4)
_FLAGS = 16


def kernel_kind(function: FuncOp) -> str:
    """``cube`` or ``vector``: the core a function says it runs on; a vector core when it says nothing."""
    found = function.attributes.get("pto.kernel_kind")
    return str(plain(found)) if found is not None else "vector"


def slot_count(op: InitializePipe) -> int:
    """Slots of each ring of a pipe: 8 unless it says otherwise, 4 each when tiles go both ways."""
    return op.get("slot_num") or (4 if op.get("dir_mask") == BOTH_WAYS else 8)


class Crossings:
    """What one function says of pipes, and which core it runs on."""

    def __init__(self, function: FuncOp) -> None:
        self.kind = kernel_kind(function)
        self.setups: list[InitializePipe] = []
        self.transfers: list[Transfer] = []
        self.reserved: list[ReserveBuffer] = []
        self.imported: list[ImportReservedBuffer] = []
        for op in function.walk():
            if isinstance(op, Transfer):
                self.transfers.append(op)
            elif isinstance(op, InitializePipe):
                self.setups.append(op)
            elif isinstance(op, ReserveBuffer):
                self.reserved.append(op)
            elif isinstance(op, ImportReservedBuffer):
                self.imported.append(op)
        self.pipes = {setup.get("id", 0): setup for setup in self.setups}
        self.splits: dict[tuple[int, str], set[int]] = {}
        for transfer in self.transfers:
            self.splits.setdefault((transfer.pipe, transfer.direction), set()).add(transfer.split)
        self.numbers = Counter(setup.get("id", 0) for setup in self.setups)
        self.names = Counter(op.get("name") for op in self.reserved)
        self.peers = Counter((op.get("name"), op.get("peer_func")) for op in self.imported)


def check_pipes(function: FuncOp, target: Target) -> None:
    """What a function says of pipes is right, and fits the functions of its module. Raises PtoError."""
    found = Crossings(function)
    for rule, ops in _rules(found):
        for op in ops:
            try:
                rule(op, found, target)
            except PtoError as error:
                raise PtoError(error.message, location_of(op), error.hint) from None


def _rules(found: Crossings) -> list[tuple[Callable[..., None], Sequence[Operation]]]:
    return [
        (_check_reserve, found.reserved),
        (_check_import, found.imported),
        (_check_setup, found.setups),
        (_check_transfer, found.transfers),
    ]


def _check_kind(op: InitializePipe | Transfer, found: Crossings) -> None:
    if found.kind != op.kind:
        raise PtoError(f"'{op.name}' is for a {op.kind} kernel, and this is a {found.kind} kernel")


def _check_setup(op: InitializePipe, found: Crossings, target: Target) -> None:
    """One end of a pipe: its figures, and the room reserved for its slots."""
    _check_kind(op, found)
    mask, size, local = op.get("dir_mask"), op.get("slot_size"), op.get("local_slot_num")
    if mask not in (1, 2, BOTH_WAYS):
        raise PtoError(f"'{op.name}': dir_mask is 1 (cube to vector), 2 (vector to cube) or 3, got {mask}")
    slots = slot_count(op)
    if size <= 0 or slots <= 0 or (local is not None and not 0 < local <= slots):
        raise PtoError(f"'{op.name}': {slots} slots of {size} bytes, {slots if local is None else local} of them local")
    if local is not None and not target.quirks.gm_pipe_buffer:
        raise PtoError(f"'{op.name}': the pipes of {target.module_arch} are local, local_slot_num is not theirs to say")
    if found.numbers[op.get("id", 0)] > 1:
        raise PtoError(f"'{op.name}': pipe {op.get('id', 0)} is set up twice")
    flags = sum(4 if other.get("dir_mask") == BOTH_WAYS else 2 for other in found.setups)
    if flags > _FLAGS:
        raise PtoError(f"'{op.name}': the pipes of this function take {flags} event flags, there are {_FLAGS}")
    _check_room(op, slots if local is None else local)


def _check_room(op: InitializePipe, slots: int) -> None:
    for direction, mask in MASKS.items():
        buffer = op.buffer(f"{direction}_consumer_buf")
        reserved = buffer.owner if buffer is not None else None
        if op.get("dir_mask") & mask and isinstance(reserved, ReserveBuffer):
            need = slots * op.get("slot_size")
            if reserved.get("size") < need:
                raise PtoError(
                    f"'{op.name}': {slots} slots of {op.get('slot_size')} bytes take {need}, but "
                    f"'{reserved.get('name')}' has {reserved.get('size')}"
                )


def _check_transfer(op: Transfer, found: Crossings, target: Target) -> None:
    """A push, pop or free: its pipe, its split, and the memory of its tile."""
    _check_kind(op, found)
    _check_pipe(op, found)
    if op.split not in SPLITS:
        raise PtoError(f"'{op.name}': split is 0 to 4, got {op.split}")
    if op.split in ODD_SPLITS and op.direction == V2C:
        raise PtoError(f"'{op.name}': split {op.split}, of an odd extent, goes from the cube to the vectors only")
    splits = found.splits[op.pipe, op.direction]
    if NO_SPLIT in splits and len(splits) > 1:
        raise PtoError(f"'{op.name}': pipe {op.pipe} has tiles that are split and tiles that are not")
    if isinstance(op, Push):
        check_piped(op.name, _tile(op.operands[0].type, op))
    elif isinstance(op, Pop):
        tile = _tile(op.results[0].type, op)
        check_piped(op.name, tile)
        left = (tile.v_row is None) + (tile.v_col is None)
        if left != len(op.operands):
            raise PtoError(f"'{op.name}' has {len(op.operands)} extents for a tile that leaves {left} open")


def _check_pipe(op: Transfer, found: Crossings) -> None:
    setup = found.pipes.get(op.pipe)
    if setup is None:
        known = f"it sets up {', '.join(map(str, sorted(found.pipes)))}" if found.pipes else "it sets up none"
        raise PtoError(f"'{op.name}' uses pipe {op.pipe}, which its function does not set up: {known}")
    if not setup.get("dir_mask") & MASKS[op.direction]:
        way = "from the cube to the vectors" if op.direction == C2V else "from the vectors to the cube"
        raise PtoError(f"'{op.name}' goes {way}, and pipe {op.pipe} has dir_mask {setup.get('dir_mask')}")


def _tile(type: object, op: Operation) -> Tile:
    if not isinstance(type, TileBufType):
        raise PtoError(f"'{op.name}' takes a tile, got {type}")
    return type.data


def _check_reserve(op: ReserveBuffer, found: Crossings, target: Target) -> None:
    """Room for slots: in a memory of its core, at an address unless PTOAS chooses it."""
    place, size, base = memory(target, op.get("location")), op.get("size"), op.get("base")
    if size <= 0:
        raise PtoError(f"'{op.name}': {size} bytes")
    if (base is None) != op.get("auto"):
        raise PtoError(f"'{op.name}' has either auto = true or a base")
    if base is not None and not 0 <= base <= place.usable - size:
        raise PtoError(f"'{op.name}': {size} bytes at {base} end outside {place.pto_name}, of {place.usable} bytes")
    if found.names[op.get("name")] > 1:
        raise PtoError(f"'{op.name}': '{op.get('name')}' is reserved twice")


def _check_import(op: ImportReservedBuffer, found: Crossings, target: Target) -> None:
    """A buffer of another function: that function is in the module and reserves it."""
    if reserved_by(op) is None:
        raise PtoError(f"'{op.name}': @{op.get('peer_func')} of this module reserves no '{op.get('name')}'")
    if found.peers[op.get("name"), op.get("peer_func")] > 1:
        raise PtoError(f"'{op.name}': '{op.get('name')}' is imported twice")


def reserved_by(op: ImportReservedBuffer) -> ReserveBuffer | None:
    """The reservation an import names."""
    module = op.get_toplevel_object()
    for function in module.ops if isinstance(module, ModuleOp) else ():
        if isinstance(function, FuncOp) and function.sym_name.data == op.get("peer_func"):
            found = (r for r in function.walk() if isinstance(r, ReserveBuffer) and r.get("name") == op.get("name"))
            return next(found, None)
    return None
