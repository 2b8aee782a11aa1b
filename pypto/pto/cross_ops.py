"""PTO operations between the cores of a group, and between groups: pipes, events, meetings of all cores."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntegerAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from . import asm
from .attrs import ENUMS, plain
from .ops import PtoOp, TemplateOp, commas
from .scalar_types import INDEX, scalar_type
from .types import PtrType

I32 = scalar_type("i32")
_ATTRIBUTES = r"(?P<attributes>\{[^{}]*\})"
_BUFFER = re.compile(r"(\w+)\s*=\s*(%[\w$.-]+(?:#\d+)?)\s*:\s*(!?[\w.]+(?:<[^>]*>)?)")


class _Attributed(PtoOp):
    """An operation whose attributes are a dictionary."""

    known: ClassVar[tuple[str, ...]]
    """Attributes it may have; `required` those it must have."""
    required: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def attributes_of(cls, parser, found) -> dict[str, Attribute]:
        given = asm.attributes_in(parser, found, "attributes")
        unknown = next((name for name in given if name not in cls.known), None)
        missing = [name for name in cls.required if name not in given]
        if unknown is not None or missing:
            problem = f"has no attribute '{unknown}'" if unknown is not None else f"needs attribute {missing[0]}"
            parser.raise_error(f"{cls.name} {problem}", found.start("attributes"), found.end("attributes"))
        return given

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or ``default``."""
        found = self.attributes.get(name)
        if isinstance(found, SymbolRefAttr):
            return found.root_reference.data
        return default if found is None else plain(found)

    def braces(self):
        yield "{"
        for position, (name, value) in enumerate(self.attributes.items()):
            yield from (", " if position else "", f"{name} = ")
            yield str(plain(value)).lower() if isinstance(value, IntegerAttr) and value.type != I32 else value
        yield "}"


class _BufferAddress(_Attributed):
    template = _ATTRIBUTES + " -> i32"

    @classmethod
    def pieces(cls, parser, found):
        return [], (I32,), cls.attributes_of(parser, found)

    def parts(self):
        yield from self.braces()
        yield " -> i32"


class ReserveBuffer(_BufferAddress):
    """Room for the slots of a pipe in the memory of the core that pops from it; the value is its address."""

    name = "pto.reserve_buffer"
    usage = '{name = "slots", size = 4096, location = #pto.address_space<vec>, auto = false, base = 0} -> i32'
    known = ("name", "size", "location", "auto", "base")
    required = ("name", "size", "location", "auto")


class ImportReservedBuffer(_BufferAddress):
    """The address of a buffer that another function of the group reserves."""

    name = "pto.import_reserved_buffer"
    usage = '{name = "slots", peer_func = @vector_kernel} -> i32'
    known = required = ("name", "peer_func")


class InitializePipe(_Attributed):
    """One end of a pipe: its directions, the size and number of its slots, where they are."""

    usage = "{id = 0, dir_mask = 1, slot_size = 1024} (c2v_consumer_buf = %a : i32, v2c_consumer_buf = %b : i32)"
    template = _ATTRIBUTES + r" \( (?P<buffers>[^)]*) \)"
    known = ("id", "dir_mask", "slot_size", "slot_num", "local_slot_num", "nosplit")
    required = ("dir_mask", "slot_size")
    buffers = ("gm_slot_buffer", "c2v_consumer_buf", "v2c_consumer_buf")
    kind: ClassVar[str]
    """The kind of core it runs on."""
    roles: tuple[str, ...] = ()

    @classmethod
    def build(cls, parser, found):
        attributes = cls.attributes_of(parser, found)
        start = found.start("buffers")
        roles, operands = [], []
        for part in _BUFFER.finditer(found.group("buffers")):
            if part.group(1) not in cls.buffers:
                parser.raise_error(f"{cls.name} has no buffer '{part.group(1)}'", start + part.start(1))
            roles.append(part.group(1))
            type = asm.parse_type_text(part.group(3))
            operands.append(asm.value(parser, part.group(2), start + part.start(2), type))
        op = cls.create(operands=operands, attributes=attributes)
        op.roles = tuple(roles)
        return op

    def buffer(self, name: str) -> SSAValue | None:
        """The operand called ``name``."""
        roles = self.roles or self._matched()
        return self.operands[roles.index(name)] if name in roles else None

    def _matched(self) -> tuple[str, ...]:
        """A clone has operands but no record of which is which; only the first kind is a pointer."""
        has_pointer = bool(self.operands) and isinstance(self.operands[0].type, PtrType)
        return self.buffers[0 if has_pointer else 1 :][: len(self.operands)]

    def parts(self):
        yield from self.braces()
        yield " ("
        for position, (role, value) in enumerate(zip(self.roles or self._matched(), self.operands, strict=True)):
            yield from (", " if position else "", f"{role} = ", value, " : ", value.type)
        yield ")"


class AicInitializePipe(InitializePipe):
    """The cube's end of a pipe."""

    name = "pto.aic_initialize_pipe"
    kind = "cube"


class AivInitializePipe(InitializePipe):
    """The vector lanes' end of a pipe."""

    name = "pto.aiv_initialize_pipe"
    kind = "vector"


class Transfer(_Attributed):
    """A step of passing tiles through a pipe: ``kind`` is the core it runs on, ``direction`` the way tiles go."""

    known = ("id", "split")
    required = ("split",)
    kind: ClassVar[str]
    direction: ClassVar[str]

    @property
    def pipe(self) -> int:
        """The pipe's number."""
        return self.get("id", 0)

    @property
    def split(self) -> int:
        """0: the lanes share whole tiles; 1 and 2: each has half the rows, or columns; 3 and 4: of an odd number."""
        return self.get("split")


class Push(Transfer):
    """Hand a tile on, once a slot is free."""

    usage = "(%tile : !pto.tile_buf<..>) {split = 1}"
    template = r"\( V:entry : T:type \) " + _ATTRIBUTES

    @classmethod
    def pieces(cls, parser, found):
        attributes = cls.attributes_of(parser, found)
        return asm.operands(parser, found, "entry", asm.types_in(parser, found, "type")), (), attributes

    def parts(self):
        yield from ("(", self.operands[0], " : ", self.operands[0].type, ") ")
        yield from self.braces()


class PushToAiv(Push):
    """A tile from the cube to the vector lanes."""

    name = "pto.tpush_to_aiv"
    kind, direction = "cube", "c2v"


class PushToAic(Push):
    """A tile, or a lane's share of one, from the vector lanes to the cube."""

    name = "pto.tpush_to_aic"
    kind, direction = "vector", "v2c"


class Pop(Transfer):
    """The next tile, in its slot; its valid extents where its type leaves them open."""

    usage = "[(%rows, %cols)] {split = 1} -> !pto.tile_buf<..>"
    template = r"(?:\( V:row , V:col \) )?" + _ATTRIBUTES + " -> T:type"

    @classmethod
    def pieces(cls, parser, found):
        attributes = cls.attributes_of(parser, found)
        extents: list[SSAValue] = []
        for group in ("row", "col"):
            if found.group(group):
                extents += asm.operands(parser, found, group, (INDEX,))
        return extents, asm.types_in(parser, found, "type"), attributes

    def parts(self):
        if self.operands:
            yield from ("(", *commas(self.operands), ") ")
        yield from self.braces()
        yield from (" -> ", self.results[0].type)


class PopFromAic(Pop):
    """A tile, or a lane's share of one, from the cube."""

    name = "pto.tpop_from_aic"
    kind, direction = "vector", "c2v"


class PopFromAiv(Pop):
    """A tile from the vector lanes."""

    name = "pto.tpop_from_aiv"
    kind, direction = "cube", "v2c"


class Free(Transfer):
    """Give back the slot of the tile popped first of those not given back."""

    usage = "{split = 1}"
    template = _ATTRIBUTES

    @classmethod
    def pieces(cls, parser, found):
        return [], (), cls.attributes_of(parser, found)

    def parts(self):
        yield from self.braces()


class FreeFromAic(Free):
    """Give a slot back to the cube."""

    name = "pto.tfree_from_aic"
    kind, direction = "vector", "c2v"


class FreeFromAiv(Free):
    """Give a slot back to the vector lanes."""

    name = "pto.tfree_from_aiv"
    kind, direction = "cube", "v2c"


class SyncAll(PtoOp):
    """Wait for all cores of the launch: by hardware, or through a workspace in global memory."""

    name = "pto.syncall"
    usage = "([%workspace, %cores : ..]) mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<mix>"
    template = (
        r"\( (?:(?P<operands>[^:)]+) : (?P<types>[^)]+))? \) mode = #pto\.sync_all_mode<(?P<mode>\w+)> , "
        r"core_type = #pto\.sync_core_type<(?P<core_type>\w+)>"
    )

    @classmethod
    def pieces(cls, parser, found):
        kinds = {"mode": ENUMS["sync_all_mode"], "core_type": ENUMS["sync_core_type"]}
        attributes = {group: kind.named(parser, found, group, f"{group} must be") for group, kind in kinds.items()}
        given = found.group("operands") is not None
        types = asm.types_in(parser, found, "types") if given else ()
        return asm.operands(parser, found, "operands", types), (), attributes

    @property
    def mode(self) -> str:
        """``hard`` or ``soft``."""
        return str(plain(self.attributes["mode"]))

    @property
    def core_type(self) -> str:
        """Which cores take part: ``aiv_only``, ``aic_only`` or ``mix``."""
        return str(plain(self.attributes["core_type"]))

    def parts(self):
        yield "("
        if self.operands:
            yield from (*commas(self.operands), " : ", *commas([value.type for value in self.operands]))
        yield from (") mode = ", self.attributes["mode"], ", core_type = ", self.attributes["core_type"])


class _CrossEvent(_Attributed):
    usage = "<PIPE_MTE3>, 4 [{ffts_mode = 2 : i32}]"
    template = rf"<(?P<pipe>\w+)> , (?:(?P<number>\d+)|V:event)(?: {_ATTRIBUTES})?"

    @classmethod
    def pieces(cls, parser, found):
        attributes: dict[str, Attribute] = {"pipe": ENUMS["pipe"].named(parser, found, "pipe")}
        if found.group("number"):
            attributes["event_id"] = IntegerAttr(int(found.group("number")), 32)
        if found.group("attributes"):
            attributes |= cls.attributes_of(parser, found)
        event = asm.operands(parser, found, "event", (INDEX,)) if found.group("event") else []
        return event, (), attributes

    def parts(self):
        yield f"<{self.get('pipe')}>, "
        yield self.operands[0] if self.operands else str(self.get("event_id"))
        if "ffts_mode" in self.attributes:
            yield from (" {ffts_mode = ", self.attributes["ffts_mode"], "}")


class SyncSet(_CrossEvent):
    """Raise an event for other cores when a pipe gets here."""

    name = "pto.sync.set"
    known = ("ffts_mode",)


class SyncWait(_CrossEvent):
    """Hold a pipe until other cores have raised an event."""

    name = "pto.sync.wait"
    known = ()


class SetFfts(TemplateOp):
    """Name the workspace of the event unit."""

    name = "pto.set_ffts"
    usage = "%workspace : !pto.ptr<i64>"
    template = r"V:workspace : T:workspace_type"


CROSS_OPS: tuple[type[PtoOp], ...] = (
    ReserveBuffer, ImportReservedBuffer, AicInitializePipe, AivInitializePipe, PushToAiv, PushToAic, PopFromAic,
    PopFromAiv, FreeFromAic, FreeFromAiv, SyncAll, SyncSet, SyncWait, SetFfts,
)  # fmt: skip
